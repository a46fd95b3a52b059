package actorrep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestByHand: a connection by hand sees what SetRelevant says and nothing else, with every Relevancy. What is no longer relevant goes at once, and nothing that is
// set from then on is sent; when it is relevant again it comes with its values.
func TestByHand(t *testing.T) {
	register := func(w *actorrep.World) error { return w.Register("thing", (*heldThing)(nil)) }
	for _, relevancy := range []func(*actorrep.World) actorrep.Relevancy{nil, (&graph.Graph{}).Relevancy} {
		r := rig.New(t, 1, netsim.Settings{Loss: 10, Lag: 30 * time.Millisecond}, actorrep.Config{Relevancy: relevancy}, register)
		l, all := r.Join(register), r.Join(register)
		actorrep.ByHand(l.Peer)
		a, other := &heldThing{N: 1}, &heldThing{N: 2}
		for _, a := range []*heldThing{a, other} {
			require.NoError(t, r.Server.Spawn(a))
			a.SetAlwaysRelevant(true)
		}
		l.Peer.SetRelevant(a, true)
		seen := func() int32 {
			m, _ := l.World.Find(a.GUID()).(*heldThing)
			if m == nil {
				return 0
			}
			return m.N
		}
		r.Await("it is there", r.Step, func() bool { return seen() == 1 && all.World.Len() == 2 })
		for round := range int32(20) {
			a.N = 100 + round
			l.Peer.SetRelevant(a, false)
			require.False(t, l.Peer.IsRelevant(a))
			require.Contains(t, r.Server.Explain(l.Peer, a).Text, "another server's")
			for i := 0; seen() != 0; i++ {
				require.Less(t, seen(), 100+round, "nothing is sent any more")
				require.Less(t, i, 60, "it goes at once")
				r.Step()
			}
			l.Peer.SetRelevant(a, true)
			if round%2 == 0 { // and not at all
				l.Peer.SetRelevant(a, false)
				l.Peer.SetRelevant(a, true)
			}
			r.Await("it is there again", r.Step, func() bool { return seen() == 100+round })
			require.Equal(t, 1, l.World.Len())
		}
		l.Peer.SetRelevant(a, false)
		actorrep.WaitsForRoom(l.Peer, true)
		l.Peer.SetRelevant(a, true)
		require.False(t, l.Peer.IsRelevant(a), "its end isn't told")
		actorrep.WaitsForRoom(l.Peer, false)
		l.Peer.SetRelevant(a, true)
		require.True(t, l.Peer.IsRelevant(a))
		r.Server.RemoveConn(l.Peer)
		r.Server.Step(r.Now + time.Second)
	}
}
