package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestOvertakenIsDrawn: what is drawn of an actor at rest is where the server has it, also when the record of its last change of one field may be overtaken by that of another.
func TestOvertakenIsDrawn(t *testing.T) {
	for name, net := range map[string]netsim.Settings{"reordered": {LagMin: time.Millisecond, LagMax: 60 * time.Millisecond}, "lossy": {LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 10}} {
		for seed := range uint64(3) {
			s := newStage(t, seed, net, interp.Config{})
			ticks := 0
			s.move = func(_ int, w *walker, _ time.Duration) {
				switch ticks++; ticks % 90 {
				case 0:
					w.Pos.X += 0.5
				case 1:
					w.Yaw = float64(ticks % 300)
				}
			}
			s.spawn(1)
			s.run(2 * time.Second)
			w, v := s.actors[0], s.viewers[0]
			for range 60 {
				for ticks%90 != 89 {
					s.tick()
				}
				var seen walker
				require.True(t, v.class.At(s.at(v, w), &seen), name)
				require.InDelta(t, w.Pos.X, seen.Pos.X, 1e-3, "%s, seed %d, tick %d", name, seed, ticks)
				require.InDelta(t, w.Yaw, seen.Yaw, 0.01, "%s, seed %d, tick %d", name, seed, ticks)
				s.run(2 * step)
			}
		}
	}
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
