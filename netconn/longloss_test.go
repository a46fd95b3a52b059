package netconn

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// fill is a minute and more of channels that the client keeps full of reliable bunches, over a path with the same loss and delay each way. It returns
// what came of what the rate and the path let through.
func (l *lab) fill(channels, size int, through float64, took time.Duration) (share float64) {
	l.control()
	for l.conns[1].Channel(0) == nil {
		l.step(nil)
	}
	var chs []*channel.Channel
	for range channels {
		chs = append(chs, l.open(0))
	}
	start, got := l.now, l.got[1]
	l.run(took, func() {
		for _, ch := range chs {
			for n := 0; n < 20 && ch.Room() > 1+size/800 && l.conns[0].Table().Waiting() < 300; n++ {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true}); err != nil {
					break
				}
			}
		}
	})
	return float64(l.got[1]-got) / ((l.now - start).Seconds() * through)
}

// TestReliableThroughHeavyLoss: of what a path lets through reliable bunches use most, however many are lost. Loss isn't taken for a peer that refuses
// them, as long as it takes some.
func TestReliableThroughHeavyLoss(t *testing.T) {
	for _, c := range []struct {
		lag   time.Duration
		loss  float64
		share float64
	}{{50, 70, 0.9}, {50, 80, 0.85}, {500, 50, 0.8}, {500, 70, 0.75}, {1800, 50, 0.4}} {
		for _, channels := range []int{1, 8} {
			l := newLab(t, [2]netsim.Settings{{Lag: c.lag * time.Millisecond, Loss: c.loss}, {Lag: c.lag * time.Millisecond}}, 1, nil)
			share := l.fill(channels, 900, defaultNetSpeed*(1-c.loss/100)*900/930, 2*time.Minute)
			t.Logf("%v ms, %v %% lost, %d channels: %.2f", int(c.lag), c.loss, channels, share)
			require.Greater(t, share, c.share, "%v ms, %v %% lost, %d channels", int(c.lag), c.loss, channels)
			require.Equal(t, [2]*CloseResult{}, l.res)
		}
	}
}

// TestLongLossyPathIsNoRefusal: a peer that is short of memory, and behind a path that is long and loses much, isn't taken for one that refuses everything:
// the one bunch that it would take goes again once in a round trip.
func TestLongLossyPathIsNoRefusal(t *testing.T) {
	type path struct {
		lag                    time.Duration
		loss                   float64
		memory, channels, size int
	}
	paths := []path{{300, 65, 1 << 20, 1, 900}, {1000, 30, 256 << 10, 1, 20000}, {1000, 50, 256 << 10, 1, 900}, {1800, 30, 1 << 20, 1, 900}, {1800, 50, 1 << 20, 8, 900}, {1800, 65, 8 << 20, 8, 20000}}
	if os.Getenv("CI") != "" {
		for n := range 3 * 4 * 3 * 2 * 3 / 6 {
			k := 6*n + n%6 // every sixth of all combinations
			paths = append(paths, path{[]time.Duration{300, 1000, 1800}[k%3], []float64{30, 50, 65, 80}[k/3%4], 256 << 10 << (k / 12 % 3 * 2), 1 + k/36%2*7, []int{60, 900, 20000}[k/72]})
		}
	}
	for i, p := range paths {
		l := newLab(t, both(netsim.Settings{Lag: p.lag * time.Millisecond, Loss: p.loss}), uint64(i), func(i int, c *Config) {
			if i == 1 {
				c.MaxMemory = p.memory
			}
		})
		l.fill(p.channels, p.size, 1, 110*time.Second)
		require.Equal(t, [2]*CloseResult{}, l.res, "%v ms, %v %% lost, MaxMemory %d, %d channels, %d bytes: %v %v", int(p.lag), p.loss, p.memory, p.channels, p.size, l.res[0], l.res[1])
	}
}

// TestGapsKeepTheirRoom: where much is lost, what comes behind the gaps of a channel leaves room in the peer's MaxMemory for what is missing in them. Otherwise the channel goes on
// by one gap a round trip: 3 kB/s in the first case, and 258 in the other.
func TestGapsKeepTheirRoom(t *testing.T) {
	for _, c := range []struct {
		what       string
		size       int
		controller func() congestion.Controller
		least      float64 // bytes a second, of the three seeds' mean
	}{
		{"payloads of 20 kB", 20_000, adapt, 40_000},
		{"bunches of 900 B, three times what the path carries", 900, func() congestion.Controller { return congestion.NewTokenBucket(3_000_000) }, 500_000},
	} {
		mean := 0.0
		for seed := range uint64(3) {
			l := newLab(t, both(netsim.Settings{Lag: 100 * time.Millisecond, Loss: 25, Bandwidth: 8 << 20, QueueDelay: 200 * time.Millisecond}), seed, func(i int, cfg *Config) {
				if i == 0 {
					cfg.Controller = c.controller()
				}
			})
			l.join()
			ch := l.open(0)
			game := func() {
				for l.conns[0].Table().Waiting() < 400 && ch.Room() > c.size/800+1 {
					if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, c.size), Reliable: true, NoMerge: true}); err != nil {
						return
					}
				}
			}
			l.run(10*time.Second, game)
			got, offered := l.got[1], l.offered[0]
			l.run(20*time.Second, game)
			rate := float64(l.got[1]-got) / 20
			t.Logf("%s, seed %d: %.0f B/s, %.1f times offered", c.what, seed, rate, float64(l.offered[0]-offered)/float64(max(l.got[1]-got, 1)))
			mean += rate / 3
		}
		require.Greater(t, mean, c.least, c.what)
	}
}
