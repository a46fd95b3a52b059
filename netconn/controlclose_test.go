package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestClosingControlEndsInOrder: a game that closes channel 0 itself ends the connection as Close does: what was sent on all channels arrives first, also when
// it has to be sent again, nothing more is taken, and this end reads that it has closed.
func TestClosingControlEndsInOrder(t *testing.T) {
	for seed := range uint64(20) {
		l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond, Loss: 20}), seed, func(_ int, c *Config) { c.ReorderWindow = time.Second })
		control := l.control()
		l.run(2*time.Second, nil)
		ch := l.open(0)
		say := func(data string) error {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte(data), Reliable: true, NoMerge: true})
			return err
		}
		require.NoError(t, say("open"))
		l.run(2*time.Second, nil)
		before := l.got[1]
		for range 20 {
			require.NoError(t, say("before"))
		}
		require.NoError(t, control.Close(bunch.Destroyed))
		require.NoError(t, control.Close(bunch.Destroyed), "again")
		require.ErrorIs(t, say("behind"), channel.ErrClosed)
		_, err := l.conns[0].Open(testName, channel.Nop{})
		require.ErrorIs(t, err, channel.ErrClosed)
		for end := l.now + 10*time.Second; l.now < end && (l.res[0] == nil || l.res[1] == nil); {
			l.step(nil)
		}
		require.NotNil(t, l.res[0], "seed %d", seed)
		require.NotNil(t, l.res[1], "seed %d", seed)
		require.Equal(t, ClosedByUs, l.res[0].Code, "seed %d", seed)
		require.Zero(t, l.res[0].Unacked, "seed %d", seed)
		require.Equal(t, before+20*len("before"), l.got[1], "seed %d", seed)
	}
}

// TestClosingSilentControlEndsInOrder: so it does before anything was said on channel 0. A temporary channel 0, which would end the connection with bunches in flight, is refused.
func TestClosingSilentControlEndsInOrder(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, nil)
	control, err := l.conns[0].Open(bunch.Control, channel.Nop{})
	require.NoError(t, err)
	_, err = control.SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorContains(t, err, "can't be temporary")
	require.NoError(t, control.Close(bunch.Destroyed))
	for l.now < time.Second {
		l.step(nil)
	}
	for i, code := range []CloseCode{ClosedByUs, ClosedByPeer} {
		require.NotNil(t, l.res[i], "end %d", i)
		require.Equal(t, code, l.res[i].Code, "end %d", i)
	}
}

// TestTheCloseOvertakesTheOpen: an end that ends at once says so though the packet with its open of channel 0 is lost: its peer doesn't take the close for a broken rule.
func TestTheCloseOvertakesTheOpen(t *testing.T) {
	for _, protocol := range []Protocol{{}, Unreal51()} {
		l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) { c.Protocol = protocol })
		l.dark[0] = true
		l.control()
		l.run(100*time.Millisecond, nil)
		l.dark[0] = false
		l.conns[0].Abort(l.now, "")
		for l.now < time.Second {
			l.step(nil)
		}
		require.NotNil(t, l.res[1])
		require.Equal(t, ClosedByPeer, l.res[1].Code, "%v", l.res[1])
		require.Equal(t, len("hello"), l.got[1])
	}
}

// TestIgnoredByAClose: an end without a channel 0 opens one to say that it closes, and acks and ignores what its peer said on its own one meanwhile. The peer's result lists that.
func TestIgnoredByAClose(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, nil)
	control := l.control()
	l.conns[1].Close(l.now, "full")
	l.lose[1] = func([]byte) bool { return l.conns[1].Table().Counters.Ignored == 0 }
	for l.now < 5*time.Second {
		l.step(nil)
	}
	require.True(t, control.OpenAcked())
	require.Zero(t, l.got[1])
	require.NotNil(t, l.res[0])
	require.Equal(t, ClosedByPeer, l.res[0].Code)
	require.Equal(t, []channel.Undelivered{{Name: bunch.Control, Bunches: 1}}, l.res[0].Undelivered)
	require.Equal(t, 1, l.res[0].Unacked)
	require.NotNil(t, l.res[1])
	require.Zero(t, l.res[1].Unacked)
}
