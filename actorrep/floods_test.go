package actorrep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// told counts the errors that a client's game was told, one by one and only as a number.
func told(t *testing.T, failed []error, what string) (single, more int) {
	for _, err := range failed {
		n := 0
		if _, _ = fmt.Sscanf(err.Error(), "actorrep: %d more "+what, &n); n > 0 {
			more += n
			require.Error(t, errors.Unwrap(err), "the last is told")
		} else {
			single++
		}
	}
	return single, more
}

// TestFloodOfUntaken: a server that sends values and calls that its client can't take, without end, has the client told of a few in a second, and of how many more
// there were; each is counted.
func TestFloodOfUntaken(t *testing.T) {
	say := actorrep.MulticastRPC(func(_ actorrep.Call, s *sign, p picky) error { return nil })
	hear := actorrep.MulticastRPC(func(_ actorrep.Call, s *smallSign, p picky) error { return nil })
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("sign", (*sign)(nil), actorrep.RPCs{"Say": say}))
		require.NoError(t, w.Register("tank", (*wideTank)(nil)))
	})
	l := w.JoinOther(func(w *actorrep.World) error {
		return errors.Join(w.Register("sign", (*smallSign)(nil), actorrep.RPCs{"Say": hear}), w.Register("tank", (*narrowTank)(nil)))
	})
	var signs []*sign
	var tanks []*wideTank
	for range 20 {
		s, a := &sign{}, &wideTank{}
		require.NoError(t, w.Server.Spawn(s))
		require.NoError(t, w.Server.Spawn(a))
		signs, tanks = append(signs, s), append(tanks, a)
	}
	for range 10 {
		w.Step()
	}
	require.Empty(t, l.Failed)
	const seconds = 3
	for i := range 30 * seconds {
		for _, s := range signs {
			s.Text = strings.Repeat("y", 11+i%5)
			require.NoError(t, say.Call(s, picky{99}))
		}
		for _, a := range tanks {
			a.Fuel = 1<<20 + uint32(i)
		}
		w.Step()
	}
	for _, s := range signs {
		s.Text = ""
	}
	for _, a := range tanks {
		a.Fuel = 7
	}
	for range 60 {
		w.Step()
	}
	single, more := told(t, l.Failed, "values and calls")
	require.LessOrEqual(t, single, 16*(seconds+2))
	require.GreaterOrEqual(t, single, 16*seconds)
	c := l.World.Counters
	require.EqualValues(t, single+more, c.Unfit+c.CallsDropped, "what isn't told is counted")
	require.Greater(t, more, 1000)
	require.Zero(t, c.Bad)
	l.Failed = nil
	signs[0].Text = strings.Repeat("y", 11)
	for range 10 {
		w.Step()
	}
	require.Len(t, l.Failed, 1, "the next second begins anew")
	require.ErrorIs(t, l.Failed[0], actorrep.ErrUnread)
}

// TestForgottenAddConn: a client that is connected to a server that never calls AddConn is told so, once; one whose server does is not, however long the
// connection is over afterwards, nor one whose game stood still.
func TestForgottenAddConn(t *testing.T) {
	for _, forgotten := range []bool{true, false} {
		w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
		l := w.JoinOther(w.register)
		if forgotten {
			w.Server.RemoveConn(l.Peer) // before anything was sent
		}
		for range 29 * 30 {
			w.Step()
		}
		require.Empty(t, l.Failed)
		require.Equal(t, !forgotten, l.World.Conn() != nil)
		if !forgotten {
			l.C.Close(w.Now, "")
			w.Server.RemoveConn(l.Peer)
		}
		for i := range time.Duration(60 * 30) {
			if forgotten {
				w.Step()
			} else {
				l.C.Tick(w.Now + i*time.Second/30)
				l.World.Step(w.Now + i*time.Second/30)
			}
		}
		if !forgotten {
			require.Empty(t, l.Failed)
			continue
		}
		require.Len(t, l.Failed, 1, "once")
		require.ErrorIs(t, l.Failed[0], actorrep.ErrNoClasses)
		require.ErrorContains(t, l.Failed[0], "AddConn")
	}
	var failed []error
	still := actorrep.NewClient(actorrep.Config{Failed: func(err error) { failed = append(failed, err) }})
	_, err := netconn.New(netconn.Config{Protocol: netconn.Bunchnet(), Channels: still.ChannelTypes(), LowLevelSend: func([]byte) {}}, 0, 1, 1)
	require.NoError(t, err)
	for i := range time.Duration(20) {
		still.Step(i * time.Hour)
	}
	require.Empty(t, failed)
}

// TestDestroyNothing: what World.Find doesn't find may be destroyed, at both ends.
func TestDestroyNothing(t *testing.T) {
	for _, w := range []*actorrep.World{actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})} {
		require.NoError(t, w.Destroy(w.Find(2)))
		require.NoError(t, w.Destroy(actorrep.Ref[*sailor]{}.In(w)), "a nil of the class's type")
	}
}
