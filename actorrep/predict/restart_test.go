package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// chest is owned, sleeps, and knows who carries it.
type chest struct {
	actorrep.Base
	Carrier actorrep.Ref[*runner] `net:""`
	Secret  int32                 `net:"owner"`
	Gold    int32                 `net:""`
}

// TestRestartWithinATick: a client that restarts at once, and has a new connection before the server has noticed the end of the old one, plays on with what it had: its
// predicted actor, and what it owns, awake or asleep, with references. What the old connection still sends moves nothing, and its removal takes nothing away.
func TestRestartWithinATick(t *testing.T) {
	for seed := range uint64(20) {
		for _, order := range []string{"add, possess, remove late", "add, possess, remove", "remove, add, possess"} {
			var classes = map[*actorrep.World]*runners{}
			register := func(w *actorrep.World) (err error) {
				if err = w.Register("Chest", (*chest)(nil)); err != nil {
					return err
				}
				classes[w], err = predict.Register(w, "Runner", config{Input: func(r *runner) keys { return keys{X: 1} }})
				return err
			}
			r := rig.New(t, seed, netsim.Settings{Lag: 30 * time.Millisecond, LagVariance: 15 * time.Millisecond, Loss: 10}, actorrep.Config{Failed: func(error) {}}, register)
			class := classes[r.Server]
			var ghosts []*rig.Line // clients that have gone: their packets are still on the way
			frames := func(n int) {
				for range n {
					require.NoError(t, class.Tick(r.Now))
					r.Step()
					for _, g := range ghosts {
						for p, ok := g.Up.Pop(r.Now); ok; p, ok = g.Up.Pop(r.Now) {
							_ = g.S.ReceivedPacket(r.Now, p)
						}
						g.S.PostTickDispatch(r.Now)
						g.S.Tick(r.Now)
					}
					for _, l := range r.Lines {
						require.NoError(t, classes[l.World].Tick(r.Now))
					}
				}
			}
			old := r.JoinOther(register)
			mine, awake, asleep := &runner{Pos: vec{X: -20}}, &chest{Gold: 1}, &chest{Gold: 2}
			require.NoError(t, r.Server.Spawn(mine))
			for _, c := range []*chest{awake, asleep} {
				require.NoError(t, r.Server.Spawn(c))
				c.SetOwner(old.Peer)
				c.Carrier = actorrep.RefTo(mine)
				c.Secret = 7
			}
			require.NoError(t, class.Possess(mine, old.Peer, r.Now))
			frames(30)
			require.NoError(t, asleep.SetDormant(true))
			frames(30 + int(seed%5))
			x := mine.Pos.X
			require.Greater(t, x, -20.0)

			r.Lines, ghosts = nil, append(ghosts, old)
			if order == "remove, add, possess" {
				r.Server.RemoveConn(old.Peer)
			}
			l := r.JoinOther(register)
			require.NoError(t, class.Possess(mine, l.Peer, r.Now))
			awake.SetOwner(l.Peer)
			asleep.SetOwner(l.Peer)
			if order == "add, possess, remove" {
				r.Server.RemoveConn(old.Peer)
			}
			frames(45)
			if order == "add, possess, remove late" {
				r.Server.RemoveConn(old.Peer)
			}
			frames(60)
			here := own(l.World)
			require.NotNil(t, here, "%s, seed %d", order, seed)
			require.True(t, classes[l.World].Predicting(here), "%s, seed %d: %s", order, seed, class.Explain(mine))
			require.InDelta(t, mine.Pos.X, here.Pos.X, 2, "%s, seed %d", order, seed)
			require.Greater(t, mine.Pos.X, x+5, "%s, seed %d: it moves on", order, seed)
			found := 0
			for a := range l.World.All {
				if c, ok := a.(*chest); ok {
					found++
					require.True(t, c.IsOwned(), "%s, seed %d", order, seed)
					require.EqualValues(t, 7, c.Secret, "%s, seed %d", order, seed)
					require.Same(t, here, c.Carrier.In(l.World), "%s, seed %d", order, seed)
				}
			}
			require.Equal(t, 2, found, "%s, seed %d", order, seed)
			before := class.Counters().Server
			frames(30)
			require.LessOrEqual(t, class.Counters().Server.Missed-before.Missed, uint64(6), "%s, seed %d", order, seed)
		}
	}
}
