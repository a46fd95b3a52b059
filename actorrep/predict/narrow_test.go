package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTickOverNarrowLines: with players of little bandwidth, and one whose packets don't come through for 25 s, Tick returns no error at either end, so that a game
// which ends with it isn't ended by a player.
func TestTickOverNarrowLines(t *testing.T) {
	path := netsim.Settings{Lag: 40 * time.Millisecond, Loss: 2}
	dark := func(r interface{ step() }, up, down *netsim.Link) {
		for _, l := range []*netsim.Link{nil, up, down} {
			if l != nil {
				require.NoError(t, l.Set(netsim.Settings{Loss: 100}))
			}
			for range 25 * 30 {
				r.step()
			}
			if l != nil {
				require.NoError(t, l.Set(path))
			}
		}
	}
	for _, speed := range []int{control.MinNetSpeed, 3000, 1 << 20} {
		t.Run("alone", func(t *testing.T) {
			s := newStage(t, 1, path, right())
			s.Speed = speed
			for range 4 {
				l := s.join()
				for i := range 3 {
					r := &runner{Pos: vec{X: float64(i)}}
					require.NoError(t, s.Server.Spawn(r))
					require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
				}
			}
			dark(s, s.Lines[0].Up, s.Lines[0].Down)
		})
		t.Run("group", func(t *testing.T) {
			s := newRink(t, 1, path, predict.GroupConfig{})
			s.Speed = speed
			for i := range 6 {
				s.skate(s.join(), vec{float64(i), float64(-i)})
			}
			dark(s, s.Lines[0].Up, s.Lines[0].Down)
		})
	}
}
