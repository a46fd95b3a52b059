package actorrep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type heldThing struct {
	actorrep.Base
	N int32 `net:""`
}

// TestHold: what is held is opened after Release, with its components, its newest values and the reliable calls that waited; what the client
// had before goes on; who calls something held that is destroyed is told.
func TestHold(t *testing.T) {
	var heard []int32
	call := actorrep.MulticastRPC(func(c actorrep.Call, _ *heldThing, n int32) error {
		if !c.World.IsServer() {
			heard = append(heard, n)
		}
		return nil
	}, actorrep.Reliable)
	register := func(w *actorrep.World) error {
		return w.Register("thing", (*heldThing)(nil), actorrep.RPCs{"Call": call})
	}
	var failed []error
	r := rig.New(t, 1, netsim.Settings{Loss: 10, Lag: 30 * time.Millisecond}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, register)
	l := r.Join(register)
	before, after, gone, part := &heldThing{N: 1}, &heldThing{N: 2}, &heldThing{N: 3}, &heldThing{N: 4}
	require.NoError(t, r.Server.Spawn(before))
	r.Until(func(l *rig.Line) string {
		if l.World.Len() != 1 {
			return "not there"
		}
		return ""
	})
	l.Peer.Hold(func(a actorrep.Actor) bool { return a != actorrep.Actor(before) })
	require.NoError(t, r.Server.Spawn(after))
	require.NoError(t, r.Server.Spawn(gone))
	require.NoError(t, r.Server.SpawnIn(after, part))
	r.Step()
	require.NoError(t, call.Call(after, 10))
	require.NoError(t, call.Call(gone, 11))
	before.N, after.N = 21, 22
	for range 60 {
		r.Step()
	}
	require.Equal(t, 1, l.World.Len())
	require.EqualValues(t, 21, l.World.Find(before.GUID()).(*heldThing).N)
	require.Equal(t, "waits for Peer.Release", r.Server.Explain(l.Peer, after).Text)
	require.Equal(t, actorrep.ReasonWaiting, r.Server.Explain(l.Peer, part).Reason)
	require.Empty(t, heard)
	require.NoError(t, r.Server.Destroy(gone))
	r.Step()
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], actorrep.ErrActorGone)

	l.Peer.Release()
	r.Until(func(l *rig.Line) string {
		if l.World.Len() != 3 || len(heard) == 0 {
			return "not there"
		}
		return ""
	})
	require.EqualValues(t, 22, l.World.Find(after.GUID()).(*heldThing).N)
	require.EqualValues(t, 4, l.World.Find(part.GUID()).(*heldThing).N)
	require.Equal(t, []int32{10}, heard)
}
