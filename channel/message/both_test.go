package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestQueuedArrivesWhenBothClose: an end that closes the connection with nothing left gives the queue of the other, which closes as well, room for all that waits.
func TestQueuedArrivesWhenBothClose(t *testing.T) {
	for _, lag := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond} {
		x := newTransfer(t, netsim.Settings{Lag: lag}, 1, bucket)
		sent, got := uint32(0), uint32(0)
		receive := func() {
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				k.Free(m)
				got++
			}
		}
		for x.now < 3*time.Second {
			for x.now > time.Second && x.qa.Pending() < 100 && x.qa.Send(x.ka.number, &number{N: sent}) == nil {
				sent++
			}
			x.step(16 * time.Millisecond)
			receive()
		}
		for x.qa.Send(x.ka.number, &number{N: sent}) == nil {
			sent++
		}
		require.Greater(t, x.qa.Pending(), 1000)
		for _, c := range x.conns {
			c.Close(x.now, "")
		}
		begun := x.now
		for !x.conns[0].Closed() || !x.conns[1].Closed() {
			x.closing(false)
			receive()
		}
		require.Equal(t, sent, got, "%v", lag)
		require.Less(t, x.now-begun, time.Second+500*time.Millisecond, "%v", lag)
	}
}

// TestGameTicksAQueueThatFinishes: a game that goes on to tick its queue while the connection closes keeps nothing back, though the peer's game had let it refuse messages for lack of memory.
func TestGameTicksAQueueThatFinishes(t *testing.T) {
	for _, ticks := range []bool{false, true} {
		x := newTransferIn(t, netsim.Settings{Lag: 40 * time.Millisecond}, 1, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) {
			if c.LingerTimeout = 10 * time.Second; c.Server {
				c.MaxMemory = 1 << 20
			}
		})
		sent, got := 0, 0
		for range 300 {
			for x.qa.Send(x.ka.number, &number{N: uint32(sent), Fill: make([]byte, 600)}) == nil {
				sent++
			}
			x.step(16 * time.Millisecond)
		}
		require.Positive(t, x.qb.Counters.Refused)
		x.conns[0].Close(x.now, "")
		for begun := x.now; !x.conns[0].Closed(); {
			if ticks {
				x.qa.Tick(x.now + 16*time.Millisecond) // which is the next tick
			}
			if x.closing(false); x.now-begun < 500*time.Millisecond {
				continue
			}
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				k.Free(m)
				got++
			}
			require.Less(t, x.now-begun, 5*time.Second, ticks)
		}
		require.Equal(t, sent, got, ticks)
	}
}
