package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// trigger is an input with a shot in it.
type trigger struct {
	Seen interp.Seen
	N    uint16 // the shot
}

// shooter is a predicted actor; it shoots in each tick.
type shooter struct {
	actorrep.Base
	Shots int32 `predict:""`
}

func (k *shooter) Simulate(in trigger, _ time.Duration) {
	k.Shots++
	if f, ok := k.World().User.(func(in trigger)); ok && in.N != 0 {
		f(in)
	}
}

// TestShotsInInputs: a shot in a predicted input is tested where it was drawn, however long the input waited for its tick: right after the possession it is
// some tenths of a second. A claim of more than that is limited all the same.
func TestShotsInInputs(t *testing.T) {
	for _, lie := range []time.Duration{0, 200 * time.Millisecond} {
		for _, grouped := range []bool{false, true} {
			var s *stage
			var v *viewer
			var shots []map[netguid.GUID]vec
			var classes [2]*predict.Class[*shooter, trigger]
			var ticks [2]func(now time.Duration) error
			s = newStageOf(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{MaxRewind: time.Second}, func(w *actorrep.World) (err error) {
				end := 0
				if !w.IsServer() {
					end = 1
				}
				cfg := predict.Config[*shooter, trigger]{Input: func(*shooter) trigger {
					drawn := map[netguid.GUID]vec{}
					for _, w := range s.actors {
						w := v.line.World.Find(w.GUID()).(*walker)
						v.class.At(w, &v.drawn)
						drawn[w.GUID()] = v.drawn.Pos
					}
					shots = append(shots, drawn)
					seen := v.in.Seen()
					seen.At -= uint16(lie >> 19)
					return trigger{seen, uint16(len(shots))}
				}}
				if grouped {
					g, err := predict.NewGroup(w, predict.GroupConfig{})
					require.NoError(t, err)
					cfg.Group, ticks[end] = g, g.Tick
				}
				if classes[end], err = predict.Register(w, "Shooter", cfg); !grouped {
					ticks[end] = classes[end].Tick
				}
				return err
			})
			v = s.viewers[0]
			s.move = func(i int, w *walker, now time.Duration) {
				if circle(i, w, now); i == 0 {
					require.NoError(t, ticks[0](now))
				}
			}
			s.spawn(3)
			v.draw = func(now time.Duration, _ *viewer) { require.NoError(t, ticks[1](now)) }
			s.run(2 * time.Second)

			n, worst := 0, 0.0
			s.Server.User = func(in trigger) {
				view := s.in.Rewind(v.line.Peer, in.Seen)
				for _, w := range s.actors {
					var past walker
					require.True(t, s.class.Pose(view, w, &past))
					worst = max(worst, past.Pos.to(shots[in.N-1][w.GUID()]))
				}
				n++
			}
			k := &shooter{}
			require.NoError(t, s.Server.Spawn(k))
			require.NoError(t, classes[0].Possess(k, v.line.Peer, s.Now))
			s.run(5 * time.Second)
			t.Logf("grouped %v, lie %v: %d shots, %.3f m off at most, %d of %d clamped", grouped, lie, n, worst, s.in.Counters.Clamped, s.in.Counters.Rewinds)
			require.Greater(t, n, 200)
			if lie == 0 {
				require.Zero(t, s.in.Counters.Clamped, "an honest client is believed")
				require.Less(t, worst, 0.02)
				continue
			}
			require.EqualValues(t, n, s.in.Counters.Clamped)
			s.in.Rewind(v.line.Peer, interp.Seen{At: uint16((s.Server.Now() - 250*time.Millisecond) >> 19), Reach: 32})
			require.EqualValues(t, n+1, s.in.Counters.Clamped, "outside of Simulate nothing has waited")
		}
	}
}
