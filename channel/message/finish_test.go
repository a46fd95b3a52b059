package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
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

// TestLastWordsBesideAFullQueue: at an orderly end a queue that has more left than the path carries until LingerTimeout leaves others theirs, whichever was opened first.
func TestLastWordsBesideAFullQueue(t *testing.T) {
	for chat := range 2 { // the first that is opened, or the second
		for _, speed := range []int{20_000, 50_000, 200_000} {
			var now time.Duration
			var conns [2]*netconn.Conn
			var links [2]*netsim.Link
			var queues [2][2]*message.Attached
			ks := [2]*kinds{newKinds(), newKinds()}
			accepted, heard := 0, 0
			for i := range conns {
				for k := range 2 {
					queues[i][k] = message.Attach(message.New(message.Config{Kinds: &ks[i].reg}))
				}
				var err error
				links[i], err = netsim.NewLink(netsim.Settings{Lag: 30 * time.Millisecond}, uint64(i))
				require.NoError(t, err)
				types := []channel.Type{{Name: messageName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler {
					accepted++
					return queues[i][accepted-1]
				}}}
				conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, NetSpeed: speed, LowLevelSend: func(p []byte) { links[i].Push(now, p) }}, 0, 7, 7)
				require.NoError(t, err)
			}
			step := func() {
				now += 16 * time.Millisecond
				for i, c := range conns {
					for p, ok := links[1-i].Pop(now); ok; p, ok = links[1-i].Pop(now) {
						_ = c.ReceivedPacket(now, p)
					}
					c.PostTickDispatch(now)
					for k, q := range queues[i] {
						for m, kind := q.Receive(); m != nil; m, kind = q.Receive() {
							kind.Free(m)
							if k == chat {
								heard++
							}
						}
						q.Tick(now)
					}
					c.Tick(now)
				}
			}
			for k, q := range queues[1] {
				_, err := conns[1].Open(messageName, q)
				require.NoError(t, err)
				for accepted <= k {
					step()
				}
			}
			for range 60 {
				for queues[1][1-chat].Send(ks[1].number, &number{Fill: make([]byte, 600)}) == nil {
				}
				step()
			}
			for range 5 {
				require.NoError(t, queues[1][chat].Send(ks[1].number, &number{Fill: make([]byte, 20)}))
			}
			for conns[1].Close(now, ""); !conns[1].Closed(); {
				step()
			}
			require.Equal(t, 5, heard, "%d, %d bytes a second", chat, speed)
			require.Len(t, conns[1].Result().Undelivered, 1)
		}
	}
}
