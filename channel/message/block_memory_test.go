package message_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBlocksWithinMaxMemory: whatever bounds are configured, blocks that are being received count within MaxMemory, one
// that can't fit is refused with an error, and those that fit arrive.
func TestBlocksWithinMaxMemory(t *testing.T) {
	for _, memory := range []int{256 << 10, 1 << 20} {
		for _, blocks := range []int{4, 512} {
			refused := 0
			out := message.BlocksConfig{MaxBlocks: 512, Failed: func(_ int64, err error) {
				require.ErrorIs(t, err, message.ErrBlockBig)
				refused++
			}}
			in := message.BlocksConfig{MaxBlocks: blocks, Broken: func(id int64, err error) { t.Error(memory, id, err) }}
			x := newTransferIn(t, netsim.Settings{Loss: 5, Lag: 20 * time.Millisecond}, 3, netconn.Protocol{}, bucket, out, in, func(c *netconn.Config) { c.MaxMemory = memory })
			_, err := x.out.Send(make([]byte, memory)) // before the bounds are known
			require.NoError(t, err)
			for range 20 {
				x.step(16 * time.Millisecond)
			}
			require.Equal(t, 1, refused)
			largest := memory / 2
			for _, err = x.out.Send(make([]byte, largest)); errors.Is(err, message.ErrBlockBig); _, err = x.out.Send(make([]byte, largest)) {
				largest -= 500
			}
			require.NoError(t, err)
			require.Less(t, largest, memory*3/8)
			require.Greater(t, largest, memory/8, "%d blocks in %d bytes", blocks, memory)
			most, want := 0, 1
			for ; want < 40; want++ {
				n := largest
				if want > 3 {
					n = 1 // what small blocks cost counts as well
				}
				_, err := x.out.Send(data(uint64(want), n))
				require.NoError(t, err)
			}
			for len(x.received) < want {
				x.step(16 * time.Millisecond)
				most = max(most, x.conns[1].Table().Held())
				require.Less(t, x.now, 5*time.Minute, "%d of %d", len(x.received), want)
			}
			require.LessOrEqual(t, most, memory/2)
			require.Zero(t, x.in.Held())
			require.Less(t, x.conns[1].Table().Held(), memory/10)
		}
	}
}

// TestBlockWithoutRoom: a block for which other data has left no memory is refused at both ends, costs no other, and
// goes when there is room.
func TestBlockWithoutRoom(t *testing.T) {
	var failed [2][]error
	cfg := func(i int) message.BlocksConfig {
		note := func(_ int64, err error) { failed[i] = append(failed[i], err) }
		if i == 0 {
			return message.BlocksConfig{MaxBlocks: 8, Failed: note}
		}
		return message.BlocksConfig{MaxBlocks: 8, Broken: note}
	}
	x := newTransferIn(t, netsim.Settings{Loss: 5, Lag: 20 * time.Millisecond}, 3, netconn.Protocol{}, bucket, cfg(0), cfg(1), func(c *netconn.Config) { c.MaxMemory = 1 << 20 })
	for range 20 {
		x.step(16 * time.Millisecond)
	}
	var other *channel.Channel
	x.conns[1].Table().All(func(ch *channel.Channel) bool {
		other = ch
		return ch.Name() != messageName
	})
	require.Equal(t, messageName, other.Name())
	taken := 300 << 10
	require.NoError(t, other.Hold(taken))
	for _, n := range []int{200_000, 10_000} {
		_, err := x.out.Send(data(uint64(n), n))
		require.NoError(t, err)
	}
	for len(x.received) == 0 || len(failed[0]) == 0 {
		x.step(16 * time.Millisecond)
		require.Less(t, x.now, time.Minute)
	}
	for _, errs := range failed {
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], message.ErrRoom)
	}
	require.Len(t, x.received, 1)
	require.Len(t, x.received[1], 10_000)
	other.Release(taken)
	_, err := x.out.Send(data(1, 200_000))
	require.NoError(t, err)
	for len(x.received) < 2 {
		x.step(16 * time.Millisecond)
		require.Less(t, x.now, 2*time.Minute)
	}
	require.Zero(t, x.in.Held())
}

// TestNotesOfBlocksWaitForMemory: what an end that sends no blocks has to tell leaves once there is memory for it, though nothing of its channel is in flight.
func TestNotesOfBlocksWaitForMemory(t *testing.T) {
	var sent []int64
	cfg := message.BlocksConfig{Sent: func(id int64) { sent = append(sent, id) }}
	x := newTransferIn(t, netsim.Settings{Lag: 20 * time.Millisecond}, 3, netconn.Protocol{}, bucket, cfg, message.BlocksConfig{}, func(c *netconn.Config) { c.MaxMemory = 1 << 20 })
	for range 20 {
		x.step(16 * time.Millisecond)
	}
	other, taken := x.conns[1].Channel(x.messages.Index()), 0
	for n := 1 << 20; n > 0; n /= 2 {
		for other.HoldSent(n) == nil {
			taken += n
		}
	}
	_, err := x.out.Send(data(1, 10_000))
	require.NoError(t, err)
	for range 100 {
		x.step(16 * time.Millisecond)
	}
	require.Len(t, x.received, 1)
	require.Empty(t, sent)
	other.ReleaseSent(taken)
	for range 20 {
		x.step(16 * time.Millisecond)
	}
	require.Equal(t, []int64{0}, sent)
}

// TestNotesThatWaitCostLittle: a note that waits for memory costs a tick the same, however many ids are before it that aren't over, or were told. A peer can have 800 Blocks wait.
func TestNotesThatWaitCostLittle(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cost := func(before uint16) time.Duration {
		x := newTransferIn(t, netsim.Settings{}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) { c.MaxMemory = 1 << 20 })
		step := func(until time.Duration) {
			for x.now < until {
				x.step(16 * time.Millisecond)
			}
		}
		step(time.Second)
		for id := range before {
			hear(x.in, id+1, 1, 0, 1) // 0 never comes
		}
		step(2 * time.Second)
		for other, n := x.conns[1].Channel(x.messages.Index()), 1<<20; n > 0; n /= 2 {
			for other.HoldSent(n) == nil {
			}
		}
		hear(x.in, before+1, 1, 0, 1)
		best := time.Hour
		for range 3 {
			began := cputime.Thread()
			for range 4000 {
				x.conns[1].Tick(x.now)
			}
			best = min(best, cputime.Thread()-began)
		}
		return best
	}
	few, many := cost(1), cost(1000)
	t.Logf("4000 ticks: %v and %v", few, many)
	require.Less(t, many, 3*few+time.Millisecond) // some clocks are as coarse
}

// TestBlockWithoutRoomInSmallPackets: so is one whose fragments take several packets, though there is no memory for the parts of one either.
func TestBlockWithoutRoomInSmallPackets(t *testing.T) {
	p := netconn.Bunchnet()
	p.Bunch.MaxPacket = 300
	var failed, broken []error
	out := message.BlocksConfig{Failed: func(_ int64, err error) { failed = append(failed, err) }}
	in := message.BlocksConfig{Broken: func(_ int64, err error) { broken = append(broken, err) }}
	x := newTransferIn(t, netsim.Settings{Loss: 5, Lag: 20 * time.Millisecond}, 3, p, bucket, out, in, func(c *netconn.Config) { c.MaxMemory = 256 << 10 })
	for range 20 {
		x.step(16 * time.Millisecond)
	}
	other := x.conns[1].Table().Channel(x.messages.Index())
	taken := 0
	for other.Hold(16) == nil {
		taken += 16
	}
	_, err := x.out.Send(data(1, 10*896))
	require.NoError(t, err)
	for x.now < 5*time.Second && len(failed) == 0 {
		x.step(16 * time.Millisecond)
	}
	require.Len(t, failed, 1)
	require.Len(t, broken, 1)
	require.ErrorIs(t, failed[0], message.ErrRoom)
	require.ErrorIs(t, broken[0], message.ErrRoom)
	other.Release(taken)
	_, err = x.out.Send(data(1, 10*896))
	require.NoError(t, err)
	for len(x.received) == 0 {
		x.step(16 * time.Millisecond)
		require.Less(t, x.now, 10*time.Second)
	}
}

// TestBlocksOfTheDefaults: the figures in the doc of Blocks.
func TestBlocksOfTheDefaults(t *testing.T) {
	for memory, largest := range map[int]int{8 << 20: 2_550_000, 64 << 20: 20_500_000} {
		x := newTransferIn(t, netsim.Settings{}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) { c.MaxMemory = memory })
		for range 5 {
			x.step(16 * time.Millisecond)
		}
		_, err := x.out.Send(make([]byte, largest))
		require.NoError(t, err)
		_, err = x.out.Send(make([]byte, largest/100*103))
		require.ErrorIs(t, err, message.ErrBlockBig)
	}
}

// TestBlockIDsWrap: blocks go on arriving once each when their 16-bit ids come again.
func TestBlockIDsWrap(t *testing.T) {
	const n = 70_000
	sent, began := 0, 0
	out := message.BlocksConfig{MaxBlocks: 512, Sent: func(int64) { sent++ }}
	x := newTransferOf(t, netsim.Settings{Lag: 5 * time.Millisecond}, 3, bucket, out, message.BlocksConfig{MaxBlocks: 512, Broken: func(id int64, err error) { t.Error(id, err) }})
	came := 0
	for came < n || sent < n {
		require.Less(t, x.now, 10*time.Minute, "%d of %d", came, n)
		for began < n {
			if _, err := x.out.Send([]byte{byte(began), byte(began >> 8), byte(began >> 16)}); err != nil {
				break
			}
			began++
		}
		x.step(16 * time.Millisecond)
		for id, b := range x.received {
			require.Equal(t, []byte{byte(id), byte(id >> 8), byte(id >> 16)}, b)
			delete(x.received, id)
			came++
		}
	}
	require.Equal(t, n, came)
	require.Equal(t, n, sent)
}

// TestBlocksAreNotKept: what came of a block is gone once it is over: on any number of channels, one after the other, a peer makes an end hold
// no more than MaxMemory.
func TestBlocksAreNotKept(t *testing.T) {
	const memory = 1 << 20
	x := newTransferIn(t, netsim.Settings{Lag: 5 * time.Millisecond}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) {
		c.MaxMemory = memory
		types := slices.Clone(c.Channels)
		types[0].Accept = func(*channel.Channel) channel.Handler {
			return message.NewBlocks(message.BlocksConfig{Received: func(int64, []byte) {}})
		}
		c.Channels = types
	})
	before := heap()
	for range 10 {
		sent := false
		b := message.NewBlocks(message.BlocksConfig{Sent: func(int64) { sent = true }})
		_, err := x.conns[0].Open(blockName, b)
		require.NoError(t, err)
		_, err = b.Send(make([]byte, 250_000))
		require.NoError(t, err)
		for !sent {
			x.step(16 * time.Millisecond)
			require.Less(t, x.now, time.Minute)
		}
	}
	server := x.conns[1]
	*x = transfer{}
	require.Less(t, heap()-before, memory, "of 2.5 MB that came")
	runtime.KeepAlive(server)
}

// TestUnackedFragmentsCount: what remembers the fragments in flight grows with them, counts against MaxMemory, and is given back.
func TestUnackedFragmentsCount(t *testing.T) {
	x := newTransferIn(t, netsim.Settings{Lag: 20 * time.Millisecond}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) { c.MaxMemory = 2 << 20 })
	for range 20 {
		x.step(16 * time.Millisecond)
	}
	sender := x.conns[0]
	begin, before := sender.Table().Held(), heap()
	_, err := x.out.Send(make([]byte, 1))
	require.NoError(t, err)
	x.step(16 * time.Millisecond)
	require.Less(t, heap()-before, 20_000, "one fragment is in flight")
	block := make([]byte, 500_000)
	_, err = x.out.Send(block)
	require.NoError(t, err)
	most := 0
	for len(x.received) < 2 {
		x.step(time.Millisecond)
		most = max(most, sender.Table().Held()-begin)
		require.Less(t, x.now, time.Minute)
	}
	require.Greater(t, most, 500_000/1000*40, "they were in flight at once")
	for range 70 * 60 {
		x.step(16 * time.Millisecond)
	}
	require.Equal(t, begin, sender.Table().Held())
}
