package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMessagesArriveAtAClose: messages queued when the connection closes in order arrive, at 20 % loss, if LingerTimeout suffices; what
// doesn't is counted by Ended; and whoever sends afterwards is told.
func TestMessagesArriveAtAClose(t *testing.T) {
	for _, c := range []struct {
		what string
		dark bool
	}{{"20 % loss", false}, {"in darkness", true}} {
		t.Run(c.what, func(t *testing.T) {
			x := newTransfer(t, netsim.Settings{Loss: 20, Lag: 20 * time.Millisecond}, 3, bucket)
			for x.now < time.Second {
				x.step(16 * time.Millisecond)
			}
			ended := -1
			x.qa.Ended = func(unacked int) { ended = unacked }
			const n = 1000
			for i := range uint32(n) {
				require.NoError(t, x.qa.Send(x.ka.number, &number{N: i}))
			}
			x.conns[0].Close(x.now, "")
			require.ErrorIs(t, x.qa.Send(x.ka.number, &number{}), message.ErrClosed)
			got, begin := uint32(0), x.now
			for !x.conns[0].Closed() {
				x.closing(c.dark)
				for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
					require.Equal(t, got, m.(*number).N)
					got++
					k.Free(m)
				}
				require.Less(t, x.now-begin, 3*time.Second)
			}
			if c.dark {
				require.Equal(t, n, ended)
				require.NotZero(t, x.conns[0].Result().Unacked)
			} else {
				require.EqualValues(t, n, got)
				require.Zero(t, ended)
				require.Zero(t, x.conns[0].Result().Unacked)
			}
		})
	}
}

// TestMessagesArriveWhenBothClose: what one end has queued arrives at 10 % loss, though the other one, which has nothing left, closes at the same time.
func TestMessagesArriveWhenBothClose(t *testing.T) {
	for seed := range uint64(20) {
		x := newTransfer(t, netsim.Settings{Loss: 10, Lag: 20 * time.Millisecond}, seed, bucket)
		for x.now < time.Second {
			x.step(16 * time.Millisecond)
		}
		const n = 20
		for i := range uint32(n) {
			require.NoError(t, x.qa.Send(x.ka.number, &number{N: i}))
		}
		for _, c := range x.conns {
			c.Close(x.now, "")
		}
		got, begin := 0, x.now
		for !x.conns[0].Closed() || !x.conns[1].Closed() {
			x.closing(false)
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				got++
				k.Free(m)
			}
		}
		require.Equal(t, n, got, "seed %d: %v, %v", seed, x.conns[0].Result(), x.conns[1].Result())
		require.Zero(t, x.conns[0].Result().Unacked)
		require.Less(t, x.now-begin, 1900*time.Millisecond, "it doesn't linger")
	}
}
