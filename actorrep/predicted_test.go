package actorrep_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// flyer is an actor whose numbers move in a way of its own.
type flyer struct {
	actorrep.Base
	Pos [3]float32 `net:"q=0.01"`
	Rot [2]float32 `net:"rot=16"`
	Att [4]float32 `net:"quat=12"`
	Own float64    `net:"q=0.1,owner"`
}

// fly moves it to where it is in a Step: along a line, a curve, with leaps and rests, or at random.
func (f *flyer) fly(i, step int, r func(n int) int) {
	t := float64(step) / 30
	switch i % 5 {
	case 0:
		f.Pos = [3]float32{float32(7 * t), float32(-3 * t), 1}
		f.Rot[0] = float32(math.Mod(170*t, 360))
	case 1:
		f.Pos = [3]float32{float32(50 * math.Sin(t)), float32(40 * math.Cos(t*0.7)), float32(t * t)}
		f.Rot[1] = float32(math.Mod(30*t*t, 360))
	case 2: // rests and leaps
		switch {
		case step%50 < 20:
		case step%97 == 0:
			f.Pos = [3]float32{float32(r(1e6)) - 5e5, float32(r(1e6)) - 5e5, 0}
		default:
			f.Pos[0] += 0.3
		}
	case 3:
		for j := range f.Pos {
			f.Pos[j] += float32(r(200)-100) / 30
		}
		f.Rot[0] = float32(r(360))
	case 4: // now this, now that
		if step/9%2 == 0 {
			f.Pos[1] += 0.2
		}
		if step/7%2 == 0 {
			f.Rot[1] = float32(math.Mod(90*t, 360))
		}
	}
	if i%2 == 0 || step%40 < 30 {
		a := t * float64(1+i%4)
		f.Att = [4]float32{float32(math.Sin(a) * 0.6), 0, float32(math.Sin(a) * 0.8), float32(math.Cos(a))}
	}
	if i%5 == 3 {
		f.Att[r(4)] = float32(r(100)-50) / 50
	}
	f.Own += 0.5
}

// state is the values as they are sent.
func (f *flyer) state() (pos, rot, att string) {
	for _, v := range f.Pos {
		pos += fmt.Sprint(" ", layout.Steps(float64(v), 0.01))
	}
	for _, v := range f.Rot {
		rot += fmt.Sprint(" ", layout.Turn(float64(v), 16))
	}
	x, y, z, w := layout.Quaternion(float64(f.Att[0]), float64(f.Att[1]), float64(f.Att[2]), float64(f.Att[3]), 12)
	return pos, "turned" + rot, fmt.Sprint("at", x, y, z, w)
}

// TestPredictedUnderLoss: what is predicted is what the server had, whatever was lost, late and out of order, and at whatever rates actors
// are compared and sent; the client always has what the server builds on.
func TestPredictedUnderLoss(t *testing.T) {
	for seed, set := range []netsim.Settings{
		{LagMin: 50 * time.Millisecond, LagMax: 50 * time.Millisecond},
		{LagMin: 20 * time.Millisecond, LagMax: 140 * time.Millisecond, Loss: 5, Dup: 5},
		{LagMin: 120 * time.Millisecond, LagMax: 160 * time.Millisecond, Loss: 35},
		{LagMin: 400 * time.Millisecond, LagMax: 500 * time.Millisecond, Loss: 10},
	} {
		w := newWorld(t, uint64(seed), set, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("flyer", (*flyer)(nil)))
		})
		a, b := w.join(), w.join()
		var all []*flyer
		had := map[netguid.GUID]map[string]bool{}
		note := func(f *flyer) {
			pos, rot, att := f.state()
			had[f.GUID()][pos], had[f.GUID()][rot], had[f.GUID()][att] = true, true, true
		}
		for i := range 20 {
			f := &flyer{}
			require.NoError(t, w.Server.Spawn(f))
			if i >= 15 {
				require.NoError(t, f.SetUpdateFrequency(float64(3+i%4*4)))
			}
			if i%3 == 0 {
				f.SetOwner(a.Peer)
			}
			all = append(all, f)
			had[f.GUID()] = map[string]bool{}
			note(f)
		}
		for step := range 600 {
			for i, f := range all {
				f.fly(i, step, w.Rand.IntN)
				note(f)
			}
			if step%100 == 50 {
				all[step/100].SetOwner([]*actorrep.Peer{nil, a.Peer, b.Peer}[step/100%3])
				b.Peer.SetUpdateEvery(all[step/100], 1+step/100)
			}
			w.Step()
			for m := range a.World.All {
				f := m.(*flyer)
				pos, rot, att := f.state()
				require.True(t, had[f.GUID()][pos] && had[f.GUID()][rot] && had[f.GUID()][att], "seed %d, step %d, %v: %s, %s, %s", seed, step, f.GUID(), pos, rot, att)
			}
		}
		w.Until(func(l *rig.Line) string {
			for _, f := range all {
				m, ok := l.World.Find(f.GUID()).(*flyer)
				if !ok {
					return f.GUID().String()
				}
				pos, rot, att := f.state()
				if p, r, a := m.state(); p != pos || r != rot || a != att {
					return fmt.Sprint(f.GUID(), pos, p, rot, r, att, a)
				}
			}
			return ""
		})
		require.Greater(t, w.Server.Counters.Deltas, w.Server.Counters.Updates/2, "seed %d", seed)
		require.LessOrEqual(t, w.Server.Counters.Deltas, w.Server.Counters.Updates, "seed %d", seed)
	}
}

// TestBitsAreShared: connections that know the same of an actor get the same bits, which are encoded once; who is alone with it gets as many.
func TestBitsAreShared(t *testing.T) {
	shared := map[int]float64{}
	for _, clients := range []int{1, 2, 8} {
		w := newWorld(t, 1, netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 40 * time.Millisecond}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("flyer", (*flyer)(nil)))
		})
		for range clients {
			w.join()
		}
		var all []*flyer
		for range 10 {
			all = append(all, &flyer{})
			require.NoError(t, w.Server.Spawn(all[len(all)-1]))
		}
		run := func(from, to int) {
			for step := from; step < to; step++ {
				for i, f := range all {
					f.fly(i%2, step, w.Rand.IntN)
				}
				w.Step()
			}
		}
		run(0, 60)
		before := w.Server.Counters
		run(60, 200)
		c := w.Server.Counters
		require.Greater(t, c.Deltas-before.Deltas, uint64(9*140*clients))
		shared[clients] = float64(c.SharedBits-before.SharedBits) / float64(c.UpdateBits-before.UpdateBits)
	}
	require.Zero(t, shared[1])
	require.Greater(t, shared[2], 0.33, "the heads of records are each one's own")
	require.Greater(t, shared[8], 0.58)
	t.Log(shared)
}
