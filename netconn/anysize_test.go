package netconn

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	sizeSeeds = flag.Uint64("sizes", 4, "seeds of TestSizesUnderAnything")
	sizeFirst = flag.Uint64("sizesfirst", 0, "the first of them")
)

// The paths of TestSizesUnderAnything.
const (
	pathStays   = iota
	pathFlaps   // each 50 ms to 2 s its MTU is another
	pathSlowly  // each 15 s
	pathPartial // loses a share of the packets above the base size
	pathDark    // one way, up to 2 s, again and again
	pathSecond  // each second
	pathOneWay  // only one way has an MTU
	paths
)

// TestSizesUnderAnything: whatever becomes of the path's MTU, with settings of all kinds, what is reliable arrives whole, no connection
// ends, and what is held stays within MaxMemory.
func TestSizesUnderAnything(t *testing.T) {
	for seed := *sizeFirst; seed < *sizeFirst+*sizeSeeds; seed++ {
		sizesUnderAnything(t, seed)
	}
}

func sizesUnderAnything(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 77))
	set := netsim.Settings{Lag: time.Duration(1+rng.IntN(100)) * time.Millisecond, Loss: []float64{0, 0, 1, 5, 15}[rng.IntN(5)], MTU: []int{2000, widest, 1400, 1300, 1267, 1100, 1024}[rng.IntN(7)]}
	shape := rng.IntN(paths)
	base := 1024
	if rng.IntN(6) == 0 {
		base = []int{256, 576, 1200}[rng.IntN(3)]
	}
	set.MTU = max(set.MTU, base)
	buffer := []int{256, 256, 64, 128, 1024}[rng.IntN(5)]
	w := newWide(t, set, seed, func(i int, c *Config) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c.Protocol = Bunchnet()
		c.Protocol.Bunch.MaxPacket = base
		c.Protocol.ReliableBuffer = buffer
		if r.IntN(3) == 0 {
			c.Redundancy.Copies = 1 + r.IntN(3)
		}
		if r.IntN(4) == 0 {
			c.KeepAlive = time.Millisecond
		}
		if r.IntN(4) == 0 {
			c.LargestPacket = 0
		}
		if r.IntN(4) == 0 {
			c.LargestPacket = base + r.IntN(1500-base)
		}
		if r.IntN(5) == 0 {
			c.Controller = nil
			c.NetSpeed = 20000 + r.IntN(2_000_000)
		}
	})
	w.tick = []time.Duration{time.Millisecond, testTick, testTick, 50 * time.Millisecond}[rng.IntN(4)]
	held := 0
	var chs [2]*channel.Channel
	for i := range chs {
		chs[i] = w.open(i)
	}
	w.got = [2]int{}
	sent := [2]int{}
	mode := rng.IntN(4)
	rate := 1 + rng.IntN(3)
	lossy := rng.Float64() * 100
	small := rng.IntN(2) == 0
	r2 := rand.New(rand.NewPCG(seed, 78))
	over := func(p []byte, m int) bool { return len(p) > m }
	mtu := 100000
	for i := range 2 {
		if shape == pathOneWay && i == 1 {
			continue
		}
		w.lose[i] = func(p []byte) bool {
			if shape == pathPartial {
				return over(p, base) && r2.Float64()*100 < lossy
			}
			return over(p, mtu)
		}
	}
	game := func() {
		for i := range chs {
			for range rate {
				size := 0
				switch mode {
				case 0:
					size = rng.IntN(3000)
				case 1:
					size = rng.IntN(30000)
				case 2:
					size = 1000 + rng.IntN(500)
				case 3:
					size = rng.IntN(1500)
				}
				if small && rng.IntN(2) == 0 {
					size = rng.IntN(100)
				}
				if chs[i].Room() < 3 || w.conns[i].Table().Waiting() > 20 || w.res[i] != nil {
					continue
				}
				size++
				_, err := chs[i].SendBunch(&bunch.Out{Data: labMsg(w.now, uint64(w.n), max(size, 16)), Reliable: true, NoMerge: rng.IntN(3) == 0})
				w.n++
				if err == nil {
					sent[i] += max(size, 16)
				}
			}
			held = max(held, w.conns[i].Stats().Held)
		}
	}
	for range 20 {
		w.dark = [2]bool{}
		switch shape {
		case pathStays:
		case pathFlaps, pathSlowly, pathSecond, pathOneWay:
			mtu = base + rng.IntN(1500-base)
			if rng.IntN(3) == 0 {
				mtu = 2000
			}
		case pathPartial:
			if rng.IntN(4) == 0 {
				lossy = rng.Float64() * 100
			}
		case pathDark:
			w.dark[rng.IntN(2)] = true
			w.run(time.Duration(rng.IntN(2000))*time.Millisecond, game)
			w.dark = [2]bool{}
		}
		d := time.Duration(50+rng.IntN(2000)) * time.Millisecond
		if shape == pathSecond {
			d = time.Second
		}
		if shape == pathSlowly {
			d = 15 * time.Second
		}
		w.run(d, game)
		for i, r := range w.res {
			require.Nil(t, r, "seed %d, path %d, end %d: %v", seed, shape, i, r)
		}
	}
	for end := w.now + 40*time.Second; w.now < end && (w.conns[0].Table().Unacked() > 0 || w.conns[1].Table().Unacked() > 0); {
		w.run(50*time.Millisecond, nil)
	}
	for i, r := range w.res {
		require.Nil(t, r, "seed %d, path %d, end %d: %v", seed, shape, i, r)
		require.Equal(t, sent[i], w.got[1-i], "seed %d, path %d, from end %d: %+v", seed, shape, i, w.conns[i].search)
	}
	require.LessOrEqual(t, held, w.conns[0].cfg.MaxMemory, "seed %d", seed)
}
