package message_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestFullQueuesLeaveRoomForOthers: queues that the game doesn't receive from fill, and those that it receives from, in each mode, flow beside them as
// without them. Both ends can tell which are full.
func TestFullQueuesLeaveRoomForOthers(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	kinds := newKinds()
	for memory, fullest := range map[int]int{256 << 10: 2, 1 << 20: 4} {
		for full := 1; full <= fullest; full *= 2 {
			modes := append(make([]message.Mode, full), message.Ordered, message.Unordered, message.Sequenced)
			now := time.Duration(0)
			var conns [2]*netconn.Conn
			var links [2]*netsim.Link
			var ends [2][]*message.Attached
			queue := func(end int) *message.Attached {
				q := message.Attach(message.New(message.Config{Mode: modes[len(ends[end])], Kinds: &kinds.reg}))
				ends[end] = append(ends[end], q)
				return q
			}
			types := []channel.Type{{Name: messageName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return queue(1) }}}
			for i := range conns {
				var err error
				links[i], err = netsim.NewLink(netsim.Settings{Lag: 40 * ms}, uint64(i))
				require.NoError(t, err)
				conns[i], err = netconn.New(netconn.Config{Server: i == 1, MaxMemory: memory, Channels: types, Controller: congestion.NewTokenBucket(1 << 20),
					LowLevelSend: func(p []byte) { links[i].Push(now, p) }}, 0, 7, 7)
				require.NoError(t, err)
			}
			sent, got, worst := make([]int, len(modes)), make([]int, len(modes)), time.Duration(0)
			step := func() {
				now += 16 * ms
				for i, c := range conns {
					for p, ok := links[1-i].Pop(now); ok; p, ok = links[1-i].Pop(now) {
						require.NoError(t, c.ReceivedPacket(now, p))
					}
					c.PostTickDispatch(now)
				}
				for i, q := range ends[1] {
					for i >= full {
						m, k := q.Receive()
						if m == nil {
							break
						}
						got[i]++
						worst = max(worst, now-time.Duration(m.(*number).N)*ms)
						k.Free(m)
					}
				}
				for i, c := range conns {
					for _, q := range ends[i] {
						q.Tick(now)
					}
					c.Tick(now)
					require.False(t, c.Closed(), "%v", c.Result())
				}
			}
			for i := range modes {
				_, err := conns[0].Open(messageName, queue(0))
				require.NoError(t, err)
				for len(ends[1]) <= i {
					step()
				}
			}
			send := func(i, n, size int) {
				for range n {
					if ends[0][i].Send(kinds.number, &number{N: uint32(now / ms), Fill: make([]byte, size)}) == nil {
						sent[i]++
					}
				}
			}
			for step(); now < 14*second; step() {
				for i := range modes {
					switch {
					case i < full:
						send(i, 10, 600)
					case now > 10*second:
						send(i, 5, 100)
					}
				}
			}
			for range 20 {
				step()
			}
			require.Equal(t, []int{5 * 249, 5 * 249, 5 * 249}, sent[full:])
			require.Equal(t, sent[full:], got[full:], "%d full queues in %d bytes", full, memory)
			require.LessOrEqual(t, worst, 80*ms)
			for i, q := range ends[1] {
				err := ends[0][i].Send(kinds.number, &number{})
				if i >= full {
					require.NoError(t, err)
					require.Zero(t, q.Counters.Refused+q.Counters.Dropped)
					continue
				}
				require.ErrorIs(t, err, message.ErrFull)
				require.ErrorContains(t, err, "Receive")
				require.Positive(t, q.Counters.Refused)
			}
		}
	}
}

// TestRefusedQueuesFlowOn: where the peer has no memory for all that queues send ahead, or its game receives nothing for five seconds, they find out how far ahead they may
// send. The rate stays where the controller has put it for what is refused otherwise.
func TestRefusedQueuesFlowOn(t *testing.T) {
	for _, c := range []struct {
		offer, least int // messages a tick, bytes a second in the last ten
		lag, deaf    time.Duration
	}{{4, 30_000, 40 * time.Millisecond, 0}, {1, 60_000, time.Millisecond, 5 * time.Second}} {
		var taken []*message.Attached
		types := []channel.Type{{Name: blockName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}}
		kinds := newKinds()
		types = append(types, channel.Type{Name: messageName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
			taken = append(taken, message.Attach(message.New(message.Config{Kinds: &kinds.reg})))
			return taken[len(taken)-1]
		}})
		x := newTransferIn(t, netsim.Settings{Lag: c.lag, Bandwidth: 8e6, QueueDelay: 200 * time.Millisecond}, 1, netconn.Protocol{}, func() congestion.Controller { return nil },
			message.BlocksConfig{}, message.BlocksConfig{}, func(cfg *netconn.Config) { cfg.Channels, cfg.MaxMemory = types, 256<<10 })
		queues := []*message.Attached{x.qa}
		for len(queues) < 3 {
			q := message.Attach(message.New(message.Config{Kinds: &x.ka.reg}))
			_, err := x.conns[0].Open(messageName, q)
			require.NoError(t, err)
			queues = append(queues, q)
		}
		rng, got := rand.New(rand.NewPCG(1, 1)), 0
		for x.now < 40*time.Second {
			for _, q := range queues {
				for range c.offer {
					_ = q.Send(x.ka.number, &number{Fill: make([]byte, rng.IntN(700))}) // it may be full
				}
				q.Tick(x.now)
			}
			x.step(16 * time.Millisecond)
			for _, q := range taken {
				for x.now >= c.deaf {
					m, k := q.Receive()
					if m == nil {
						break
					}
					if x.now > 30*time.Second {
						got += len(m.(*number).Fill)
					}
					k.Free(m)
				}
			}
		}
		require.Greater(t, got/10, c.least, "%+v", c)
	}
}
