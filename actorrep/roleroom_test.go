package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
)

// TestOwnerChangesWithoutRoom: an actor gets an owner, a value and a call while its opening leaves its channel room for anything from nothing to all of these. They arrive, and
// nobody is told that a value is too large.
func TestOwnerChangesWithoutRoom(t *testing.T) {
	var ran []int32
	opened := actorrep.MulticastRPC0(func(c actorrep.Call, b *chest) error {
		if !c.World.IsServer() {
			ran = append(ran, b.X)
		}
		return nil
	}, actorrep.Reliable)
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("chest", (*chest)(nil), actorrep.RPCs{"Opened": opened}))
	})
	w.ReliableBuffer = 4
	l := w.join()
	for !l.Peer.Ready() {
		w.Step()
	}
	for size := 0; size < 2900; size += 100 {
		ran = nil
		b := &chest{X: 1, Load: make([]byte, size)}
		require.NoError(t, w.Server.Spawn(b))
		w.Step()
		b.X = 2
		b.SetOwner(l.Peer)
		require.NoError(t, opened.Call(b))
		w.Until(func(l *rig.Line) string {
			if m, _ := l.World.Find(b.GUID()).(*chest); m == nil || m.X != 2 || !m.IsOwned() || len(ran) == 0 {
				return w.Server.Explain(l.Peer, b).Text
			}
			return ""
		})
		require.Equal(t, []int32{2}, ran)
	}
}
