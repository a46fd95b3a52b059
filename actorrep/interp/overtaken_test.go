package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// wave is a call before which the values go that were set before it, in a bunch that is sent again when it is lost.
var wave = actorrep.MulticastRPC0(func(actorrep.Call, *walker) error { return nil }, actorrep.Reliable)

// TestOvertakenIsDrawn: what is drawn of an actor at rest is where the server has it, also when its last change of one field was sent before a reliable call, was lost,
// and comes only after a newer one of another field.
func TestOvertakenIsDrawn(t *testing.T) {
	overtaken := 0
	for name, net := range map[string]netsim.Settings{"reordered": {LagMin: time.Millisecond, LagMax: 60 * time.Millisecond}, "lossy": {LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 10}} {
		for seed := range uint64(3) {
			s := newStage(t, seed, net, interp.Config{}, actorrep.RPCs{"Wave": wave})
			ticks := 0
			s.move = func(_ int, w *walker, _ time.Duration) {
				switch ticks++; ticks % 90 {
				case 0:
					w.Pos.X += 0.5
					require.NoError(t, wave.Call(w))
				case 1:
					w.Yaw = float64(ticks % 300)
				}
			}
			s.spawn(1)
			s.run(2 * time.Second)
			w, v := s.actors[0], s.viewers[0]
			for range 60 {
				c := s.at(v, w)
				for ticks%90 != 89 {
					x := c.Pos.X
					newest, _ := c.ServerTime()
					s.tick()
					if at, _ := c.ServerTime(); c.Pos.X != x && at == newest {
						overtaken++
					}
				}
				var seen walker
				require.True(t, v.class.At(s.at(v, w), &seen), name)
				require.InDelta(t, w.Pos.X, seen.Pos.X, 1e-3, "%s, seed %d, tick %d", name, seed, ticks)
				require.InDelta(t, w.Yaw, seen.Yaw, 0.01, "%s, seed %d, tick %d", name, seed, ticks)
				s.run(2 * step)
			}
		}
	}
	require.Greater(t, overtaken, 10)
}

// at is a viewer's copy of an actor.
func (s *stage) at(v *viewer, w *walker) *walker {
	a, _ := v.line.World.Find(w.GUID()).(*walker)
	require.NotNil(s.T, a)
	return a
}

// TestDrawnWhileTimeStands: a server whose time stands, as that of a game that is paused, may change actors, and who draws them sees it; Rewind too.
func TestDrawnWhileTimeStands(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	s.move = func(_ int, w *walker, now time.Duration) { w.Pos.X = now.Seconds() }
	s.spawn(1)
	s.run(2 * time.Second)
	s.move = nil
	w, v := s.actors[0], s.viewers[0]
	for range 3 {
		w.Pos.X++
		s.Server.Step(s.Server.Now())
		s.in.Tick(s.Server.Now())
		s.nextStep = s.Now + time.Second // the game's own steps come later
		s.run(time.Second / 2)
	}
	s.nextStep = s.Now
	s.run(time.Second)
	var seen walker
	require.True(t, v.class.At(s.at(v, w), &seen))
	require.InDelta(t, w.Pos.X, seen.Pos.X, 1e-3)
	view := s.in.Rewind(v.line.Peer, v.in.Seen())
	require.True(t, s.class.Pose(view, w, &seen))
	require.InDelta(t, w.Pos.X, seen.Pos.X, 1e-3)
	before := w.Pos.X
	w.Pos.X += 0.1
	v.draw = func(_ time.Duration, v *viewer) {
		v.each(func(_, drawn *walker) {
			require.GreaterOrEqual(t, drawn.Pos.X, before-1e-3, "it has rested there since")
		})
	}
	s.run(time.Second)
}
