package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestClassesOfAClosingConnection: classes that are described while the client closes its connection, so that it can't answer, are no error.
func TestClassesOfAClosingConnection(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
	l := w.JoinOther(w.register)
	w.Step()
	require.Zero(t, l.World.Counters.Received)
	l.C.Close(w.Now, "")
	for p, ok := l.Down.Pop(w.Now + tick); ok; p, ok = l.Down.Pop(w.Now + tick) {
		_ = l.C.ReceivedPacket(w.Now+tick, p)
	}
	l.World.Step(w.Now + tick)
	require.NotZero(t, l.World.Counters.Received)
	require.Zero(t, l.World.Counters.Bad)
	require.Empty(t, l.Failed)
}
