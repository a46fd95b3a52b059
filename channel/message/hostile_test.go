package message_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBoundsThatTakeNothing: a peer whose bounds would hold up blocks for good breaks the protocol.
func TestBoundsThatTakeNothing(t *testing.T) {
	for _, c := range []struct {
		blocks, bytes uint32
		held          uint64
		refused       bool
	}{{4, 1000, 1000, false}, {1, 1, 1, false}, {0, 1000, 1000, true}, {4, 0, 1000, true}, {4, 1000, 999, true}, {4, 1000, math.MaxUint64, false}} {
		x := newTransfer(t, netsim.Settings{Lag: 10 * time.Millisecond}, 1, bucket)
		w := bitio.NewWriter(make([]byte, 17))
		w.WriteUint8(0)
		w.WriteUint32(c.bytes)
		w.WriteUint32(c.blocks)
		w.WriteUint64(c.held)
		in := &bunch.In{}
		in.Reliable = true
		in.Data.Reset(w.Bytes(), w.Len())
		x.out.ReceivedBunch(x.blocks, in)
		x.conns[0].Tick(time.Millisecond)
		require.Equal(t, c.refused, x.conns[0].Closed(), "%+v", c)
	}
}

// TestBlocksClosedAmidAProgress: a block that failed with its channel isn't received afterwards, and nothing of it is said on the
// next channel.
func TestBlocksClosedAmidAProgress(t *testing.T) {
	var b *message.Blocks
	var said []string
	b = message.NewBlocks(message.BlocksConfig{
		Progress: func(int64, int, int) { b.Closed(nil, 0) },
		Received: func(int64, []byte) { said = append(said, "received") },
		Broken: func(_ int64, err error) {
			require.ErrorIs(t, err, message.ErrNoChan)
			said = append(said, "failed")
		},
	})
	hear(b, 0, 10, 0, 10)
	require.Equal(t, []string{"failed"}, said)
	require.Zero(t, b.Held())
}

// TestBlockWithdrawnAfterItBegan: a peer that withdraws a block of which something has come breaks the protocol, and the game is told that the block
// won't come.
func TestBlockWithdrawnAfterItBegan(t *testing.T) {
	var failed []error
	in := message.BlocksConfig{Broken: func(_ int64, err error) { failed = append(failed, err) }}
	x := newTransferOf(t, netsim.Settings{Lag: 10 * time.Millisecond}, 1, bucket, message.BlocksConfig{}, in)
	_, err := x.out.Send(make([]byte, 1<<20))
	require.NoError(t, err)
	for x.in.Held() == 0 {
		x.step(time.Millisecond)
	}
	_, err = x.blocks.SendBunch(&bunch.Out{Data: []byte{3, 0, 0}, Reliable: true, NoMerge: true})
	require.NoError(t, err)
	for range 20 {
		x.now += time.Millisecond
		for p, ok := x.links[0].Pop(x.now); ok; p, ok = x.links[0].Pop(x.now) {
			_ = x.conns[1].ReceivedPacket(x.now, p)
		}
		for _, c := range x.conns {
			c.PostTickDispatch(x.now)
			c.Tick(x.now)
		}
	}
	require.True(t, x.conns[1].Closed())
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], message.ErrNoChan)
	require.Zero(t, x.in.Held())
}

// huge has a field whose bound is the largest.
type huge struct{ b []byte }

func (h *huge) Serialize(s *message.Stream) { s.Bytes(&h.b, math.MaxInt32) }

// TestLengthsThatOverflow: a length beyond what came is refused before there is room for it, on 32 bits as well.
func TestLengthsThatOverflow(t *testing.T) {
	var reg message.Registry
	var last *huge
	kind := reg.Add("huge", func() message.Message { last = &huge{}; return last })
	q := message.New(message.Config{Mode: message.Unordered, Kinds: &reg})
	require.NoError(t, q.Send(kind, &huge{b: []byte{1}}))
	for _, n := range []uint64{1 << 28, 1 << 29, 1<<29 + 1, 1 << 30, math.MaxInt32} {
		w := bitio.NewWriter(make([]byte, 20))
		w.WriteInt(1, 65)
		w.WriteBits(n, 31)
		w.WriteUint64(0)
		require.Error(t, q.Read(bitio.NewReader(w.Bytes(), w.Len())), "%d", n)
		require.Zero(t, cap(last.b))
	}
}

// signal has no fields.
type signal struct{}

func (signal) Serialize(*message.Stream) {}

// TestEachMessageTakesAByte: a message without fields takes a byte of the packet, or a peer could make an end read 64 of them for five bytes.
func TestEachMessageTakesAByte(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		var reg message.Registry
		kind := reg.Add("signal", func() message.Message { return signal{} })
		q, w := message.New(message.Config{Mode: mode, Kinds: &reg}), bitio.NewWriter(make([]byte, 1000))
		for range 64 {
			require.NoError(t, q.Send(kind, signal{}))
		}
		require.Equal(t, 64, q.Write(0, w))
		require.Greater(t, w.Len(), 64*8)
		for _, cut := range []int{64*8 - 1, 1, 0} {
			in := message.New(message.Config{Mode: mode, Kinds: &reg})
			if err := in.Read(bitio.NewReader(w.Bytes(), w.Len()-cut)); cut > 0 {
				require.ErrorIs(t, err, message.ErrFormat)
				continue
			}
			for range 64 {
				_, k := in.Receive()
				require.Equal(t, kind, k)
			}
		}
	}
}

// TestManyWithdrawnBlocks: blocks that were too large for the peer don't move the ids of those behind them out of its window
// before it has heard of all of them.
func TestManyWithdrawnBlocks(t *testing.T) {
	for seed := range uint64(4) {
		out := message.BlocksConfig{MaxBlocks: 512}
		in := message.BlocksConfig{MaxBlocks: 512, MaxBytes: 1000, MaxHeld: 600_000}
		x := newTransferOf(t, netsim.Settings{Loss: 50, Lag: 100 * time.Millisecond}, seed, bucket, out, in)
		big, small := data(1, 1001), data(2, 10)
		for range 511 {
			_, err := x.out.Send(big)
			require.NoError(t, err)
		}
		for len(x.received) < 1500 {
			require.Less(t, x.now, time.Minute, "seed %d", seed)
			for x.now > 200*time.Millisecond {
				if _, err := x.out.Send(small); err != nil {
					break
				}
			}
			x.step(16 * time.Millisecond) // neither connection ends
		}
	}
}

// TestWithdrawnWhileTheOtherEndSends: an end that withdrew a block goes on sending while blocks come all the time, and notes of these are always under way.
func TestWithdrawnWhileTheOtherEndSends(t *testing.T) {
	came := 0
	out := message.BlocksConfig{MaxBlocks: 32, Received: func(int64, []byte) { came++ }}
	in := message.BlocksConfig{MaxBlocks: 32, MaxBytes: 1000, MaxHeld: 100_000}
	x := newTransferOf(t, netsim.Settings{Lag: 40 * time.Millisecond}, 1, bucket, out, in)
	_, err := x.out.Send(data(1, 1001))
	require.NoError(t, err)
	for small := data(2, 10); len(x.received) < 2000; x.step(16 * time.Millisecond) {
		require.Less(t, x.now, time.Minute, "%d blocks one way, %d the other", len(x.received), came)
		for range 2 {
			for _, b := range []*message.Blocks{x.out, x.in} {
				_, _ = b.Send(small) // the channel isn't open at the other end, or there are enough
			}
		}
	}
	require.Greater(t, came, 1500)
}

// TestNotesThatFindNoRoom: a peer that sends blocks and takes no note of them has this end remember 1024, and breaks the protocol with the next block.
func TestNotesThatFindNoRoom(t *testing.T) {
	b := message.NewBlocks(message.BlocksConfig{})
	for id := range uint16(2000) {
		hear(b, id, 1, 0, 1)
		require.EqualValues(t, max(0, int(id)-1023), b.Counters.Refused)
	}
	require.Zero(t, b.Held())
}

// TestFragmentsOfAnotherBlock: what bears a block's id and another size or checksum is refused.
func TestFragmentsOfAnotherBlock(t *testing.T) {
	b := message.NewBlocks(message.BlocksConfig{})
	for i, c := range []struct {
		total, sum, frag uint32
		refused          uint64
	}{{2000, 7, 0, 0}, {2001, 7, 1, 1}, {2000, 8, 1, 2}, {2000, 7, 1, 2}} {
		w := bitio.NewWriter(make([]byte, 1000))
		w.WriteUint16(0)
		w.WriteUint32(c.total)
		w.WriteUint32(c.sum)
		w.WriteUint32(c.frag)
		w.WriteBytes(make([]byte, 896))
		in := &bunch.In{}
		in.Data.Reset(w.Bytes(), w.Len())
		b.ReceivedBunch(nil, in)
		require.Equal(t, c.refused, b.Counters.Refused, "%d", i)
	}
	require.Equal(t, 2*896, b.Held())
}
