package actorrep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestServerWithoutClasses: a server that replicates nothing, at least not yet, has clients that answer.
func TestServerWithoutClasses(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 10}, actorrep.Config{}, func(testing.TB, *actorrep.World) {})
	l := w.JoinOther(func(*actorrep.World) error { return nil })
	w.Await("an answer", w.Step, l.Peer.Ready)
	require.Empty(t, l.Failed)
}

// TestAckedCallsAreForgotten: what a server keeps of an owner's calls, so that they may go with the actor to another server, are those that its client hasn't acked, also
// when there are always some, and values too large for a packet between them.
func TestAckedCallsAreForgotten(t *testing.T) {
	ring := actorrep.ClientRPC(func(actorrep.Call, *parcelOf, uint8) error { return nil }, actorrep.Reliable)
	w := newWorld(t, 1, netsim.Settings{Lag: 60 * time.Millisecond}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 2}}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("parcel", (*parcelOf)(nil), actorrep.RPCs{"Ring": ring}))
	})
	l := w.join()
	a := &parcelOf{}
	require.NoError(t, w.Server.Spawn(a))
	a.SetOwner(l.Peer)
	w.Await("it", w.Step, func() bool { return l.World.Find(a.GUID()) != nil })
	for i := range 200 {
		for j := range a.Text {
			a.Text[j] = string(make([]byte, 1000+i%7))
		}
		require.NoError(t, ring.Call(a, uint8(i)))
		w.Step()
		require.LessOrEqual(t, actorrep.KeptByServer(l.Peer, a), 20, "Step %d", i)
	}
	require.Greater(t, l.World.Counters.CallsReceived, uint64(150))
	for range 30 {
		w.Step()
	}
	require.Zero(t, actorrep.KeptByServer(l.Peer, a))
}

// parcelOf is larger than a packet.
type parcelOf struct {
	actorrep.Base
	Text [3]string `net:"cap=1024"`
}
