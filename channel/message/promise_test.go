package message_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSlowGameIsNoAttack: an end that doesn't receive for long ends nothing; all arrives when it does.
func TestSlowGameIsNoAttack(t *testing.T) {
	x := newTransfer(t, netsim.Settings{Loss: 5, Lag: 20 * time.Millisecond}, 2, bucket)
	const n = 5000
	sent, got := uint32(0), uint32(0)
	step := func() {
		for sent < n && x.qa.Send(x.ka.number, &number{N: sent}) == nil {
			sent++
		}
		x.step(16 * time.Millisecond)
	}
	for x.now < 20*time.Second {
		step()
	}
	require.Less(t, sent, uint32(2*1024+1), "the sender is told that there is no room")
	require.LessOrEqual(t, x.qb.Held(), 1024*42/8)
	for got < n {
		require.Less(t, x.now, 2*time.Minute, "%d of %d", got, n)
		step()
		for range 50 {
			m, k := x.qb.Receive()
			if m == nil {
				break
			}
			require.Equal(t, got, m.(*number).N)
			got++
			k.Free(m)
		}
	}
	require.Zero(t, x.qb.Held())
}

// TestLostCreditIsToldAgain: the ack of a packet that carries no credit doesn't confirm what a lost one told.
func TestLostCreditIsToldAgain(t *testing.T) {
	k := newKinds()
	cfg := message.Config{Kinds: &k.reg, Window: 16}
	a, b := message.New(cfg), message.New(cfg)
	now, id := time.Duration(0), int64(0)
	pass := func(from, to *message.Queue, arrives bool) (wrote int) {
		now += 10 * time.Millisecond
		id++
		w := bitio.NewWriter(make([]byte, 1000))
		if wrote = from.Write(now, w); wrote == 0 {
			return 0
		}
		from.Sent(id)
		if arrives {
			require.NoError(t, to.Read(bitio.NewReader(w.Bytes(), w.Len())))
		}
		return wrote
	}
	send := func(q *message.Queue) error { return q.Send(k.number, &number{}) }
	for range 16 {
		require.NoError(t, send(a))
	}
	require.Equal(t, 16, pass(a, b, true))
	a.Acked(id)
	for m, _ := b.Receive(); m != nil; m, _ = b.Receive() {
	}
	require.NoError(t, send(a))
	require.Zero(t, pass(a, b, true), "there is no credit")
	require.Equal(t, 1, pass(b, a, false)) // the credit alone
	lost := id
	require.NoError(t, send(b))
	require.Equal(t, 1, pass(b, a, true)) // without
	b.Lost(lost)
	b.Acked(id)
	for range 20 {
		pass(b, a, true)
	}
	require.Equal(t, 1, pass(a, b, true))
}

// TestManyPacketsUnderWay: what so many packets carried is known until their fate is.
func TestManyPacketsUnderWay(t *testing.T) {
	k := newKinds()
	a := message.New(message.Config{Kinds: &k.reg})
	for id := range int64(1024) {
		require.NoError(t, a.Send(k.number, &number{}))
		require.Equal(t, 1, a.Write(0, bitio.NewWriter(make([]byte, 100))))
		a.Sent(id)
	}
	for id := range int64(1024) {
		a.Acked(id)
	}
	require.Zero(t, a.Pending())
}

// TestSplitMessagesAndBlocks: where a packet of the connection is smaller than a message or fragment, the loss of any of its
// packets is its loss. That holds also where it takes as many packets as other large bunches are made reliable for, beside a type of channel with a long name.
func TestSplitMessagesAndBlocks(t *testing.T) {
	for i, size := range []int{256, 512, 900, 256} {
		protocol := netconn.Bunchnet()
		protocol.Bunch.MaxPacket = size
		set := netsim.Settings{Loss: 10, Lag: 20 * time.Millisecond}
		x := newTransferIn(t, set, 9, protocol, bucket, message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) {
			if i == 3 {
				c.Channels = append(slices.Clone(c.Channels), channel.Type{Name: bunch.Name{Text: strings.Repeat("ä", 64)}, ClientOpen: true})
			}
		})
		want := data(1, 200_000)
		_, err := x.out.Send(want)
		require.NoError(t, err)
		const n = 500
		sent, got := uint32(0), uint32(0)
		for got < n || x.received[0] == nil {
			require.Less(t, x.now, time.Minute, "MaxPacket %d: %d of %d messages, block arrived: %v", size, got, n, x.received[0] != nil)
			for sent < n && x.qa.Send(x.ka.number, &number{N: sent, Fill: make([]byte, 600)}) == nil {
				sent++
			}
			x.step(16 * time.Millisecond)
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		require.True(t, bytes.Equal(want, x.received[0]))
	}
}

// TestSmallMessagesInSmallPackets: messages that fit a packet are never spread over several, of which each loss would be theirs.
func TestSmallMessagesInSmallPackets(t *testing.T) {
	protocol := netconn.Bunchnet()
	protocol.Bunch.MaxPacket = 300
	x := newTransferIn(t, netsim.Settings{Loss: 30, Lag: 20 * time.Millisecond}, 5, protocol, bucket, message.BlocksConfig{}, message.BlocksConfig{})
	const n = 1000
	sizes := []int{20, 150, 0, 90}
	for sent, got := uint32(0), uint32(0); got < n; {
		require.Less(t, x.now, 3*time.Second, "%d of %d", got, n)
		for sent < n && x.qa.Send(x.ka.number, &number{N: sent, Fill: make([]byte, sizes[sent%4])}) == nil {
			sent++
		}
		x.step(16 * time.Millisecond)
		for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
			require.Equal(t, got, m.(*number).N)
			got++
			k.Free(m)
		}
	}
	require.Zero(t, x.conns[0].Table().Counters.Split)
}

// TestSequencedAfterManyLost: whatever number is lost, the next one that arrives is delivered.
func TestSequencedAfterManyLost(t *testing.T) {
	k := newKinds()
	a := message.New(message.Config{Mode: message.Sequenced, Kinds: &k.reg})
	b := message.New(message.Config{Mode: message.Sequenced, Kinds: &k.reg})
	w := bitio.NewWriter(make([]byte, 1000))
	for _, lost := range []int{1, 32_767, 32_768, 40_000, 65_535, 65_536, 100_000} {
		for i := range lost + 1 {
			require.NoError(t, a.Send(k.number, &number{N: uint32(i)}))
			w.Reset(make([]byte, 100))
			require.Equal(t, 1, a.Write(0, w))
			a.Sent(int64(i))
		}
		require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
		m, _ := b.Receive()
		require.NotNil(t, m, "after %d lost ones", lost)
	}
}

// TestNotSentKeepsMessages in all modes: what couldn't leave is written again, all of it.
func TestNotSentKeepsMessages(t *testing.T) {
	for mode := range message.Sequenced + 1 {
		k := newKinds()
		a := message.New(message.Config{Mode: mode, Kinds: &k.reg})
		b := message.New(message.Config{Mode: mode, Kinds: &k.reg})
		for i := range uint32(3) {
			require.NoError(t, a.Send(k.number, &number{N: i}))
		}
		for id := range int64(2) {
			w := bitio.NewWriter(make([]byte, 1000))
			require.Equal(t, 3, a.Write(0, w), "mode %d", mode)
			if id == 0 {
				a.NotSent()
				require.Equal(t, 3, a.Pending())
				continue
			}
			a.Sent(id)
			require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
		}
		for i := range uint32(3) {
			m, _ := b.Receive()
			require.NotNil(t, m)
			require.Equal(t, i, m.(*number).N)
		}
	}
}

// TestPacketsAreFilled: a message that doesn't fit doesn't keep smaller ones behind it from going.
func TestPacketsAreFilled(t *testing.T) {
	for _, mode := range []message.Mode{message.Ordered, message.Unordered} {
		k := newKinds()
		a := message.New(message.Config{Mode: mode, Kinds: &k.reg})
		require.NoError(t, a.Send(k.number, &number{Fill: make([]byte, 400)}))
		require.NoError(t, a.Send(k.number, &number{Fill: make([]byte, 500)}))
		for range 10 {
			require.NoError(t, a.Send(k.number, &number{Fill: make([]byte, 10)}))
		}
		w := bitio.NewWriter(make([]byte, 875))
		require.Equal(t, 11, a.Write(0, w), "mode %d", mode)
		a.Sent(1)
		w.Reset(make([]byte, 875))
		require.Equal(t, 1, a.Write(0, w))
	}
}

// TestTooSmallAWriter: messages pass by one that a Write's room can't take, and the counter tells of it.
func TestTooSmallAWriter(t *testing.T) {
	k := newKinds()
	a := message.New(message.Config{Kinds: &k.reg})
	b := message.New(message.Config{Kinds: &k.reg})
	require.NoError(t, a.Send(k.number, &number{N: 0, Fill: make([]byte, 500)}))
	require.NoError(t, a.Send(k.number, &number{N: 1}))
	w := bitio.NewWriter(make([]byte, 300))
	require.Equal(t, 1, a.Write(0, w))
	require.Equal(t, uint64(1), a.Counters.NoRoom)
	a.Sent(1)
	require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	m, _ := b.Receive()
	require.Nil(t, m, "its turn hasn't come")
	w.Reset(make([]byte, 1000))
	require.Equal(t, 1, a.Write(0, w))
	require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	for i := range uint32(2) {
		m, _ := b.Receive()
		require.NotNil(t, m)
		require.Equal(t, i, m.(*number).N)
	}
}

// TestBroadcastSerialisesOnce: a message for a hundred queues is encoded once, and changing it
// afterwards changes nothing.
func TestBroadcastSerialisesOnce(t *testing.T) {
	k := newKinds()
	calls := 0
	count := k.reg.Add("counted", func() message.Message { return &counted{} })
	m := &counted{N: 1, calls: &calls}
	var queues [100]*message.Queue
	for i := range queues {
		queues[i] = message.New(message.Config{Kinds: &k.reg})
	}
	e, err := count.Encode(m)
	require.NoError(t, err)
	for _, q := range queues {
		require.NoError(t, q.SendEncoded(e))
	}
	other := newKinds()
	require.ErrorIs(t, message.New(message.Config{Kinds: &other.reg}).SendEncoded(e), message.ErrKind)
	e.Release()
	m.N = 999
	b := message.New(message.Config{Kinds: &k.reg})
	for i, q := range queues {
		w := bitio.NewWriter(make([]byte, 1000))
		for id := range int64(2) { // sent again
			w.Reset(make([]byte, 1000))
			require.Equal(t, 1, q.Write(time.Duration(id)*time.Second, w))
			q.Sent(id)
		}
		q.Acked(1)
		require.Zero(t, q.Held())
		if i%50 == 0 {
			require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
		}
	}
	got, _ := b.Receive()
	require.Equal(t, uint32(1), got.(*counted).N)
	require.Equal(t, 2, calls, "measured once, written once")
}

// TestEncodedAfterItsEnd: an Encoded that nobody holds is neither sent nor released once more.
func TestEncodedAfterItsEnd(t *testing.T) {
	k := newKinds()
	q := message.New(message.Config{Kinds: &k.reg})
	e, err := k.number.Encode(&number{})
	require.NoError(t, err)
	e.Release()
	require.Panics(t, func() { _ = q.SendEncoded(e) })
	require.Panics(t, func() { e.Release() })
}

// counted counts its encodings.
type counted struct {
	N     uint32
	calls *int
}

func (c *counted) Serialize(s *message.Stream) {
	if c.calls != nil {
		*c.calls++
	}
	s.Uint32(&c.N)
}

// TestUrgentFirstNobodyStarves: messages of a kind with Slack let others pass, but not for longer than that.
func TestUrgentFirstNobodyStarves(t *testing.T) {
	k := newKinds()
	k.other.Slack = time.Second
	a := message.New(message.Config{Mode: message.Unordered, Kinds: &k.reg})
	b := message.New(message.Config{Mode: message.Unordered, Kinds: &k.reg})
	now := time.Duration(0)
	write := func() {
		now += 16 * time.Millisecond
		w := bitio.NewWriter(make([]byte, 700)) // room for one
		require.Equal(t, 1, a.Write(now, w))
		a.Sent(0)
		require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	}
	require.NoError(t, a.Send(k.other, &other{Name: "123456789012345678901234567890"}))
	var waited time.Duration
	for waited == 0 {
		require.Less(t, now, 2*time.Second)
		require.NoError(t, a.Send(k.number, &number{Fill: make([]byte, 650)}))
		write()
		m, kind := b.Receive()
		if kind == k.other {
			waited = now
		}
		kind.Free(m)
	}
	require.InDelta(t, time.Second, waited, float64(50*time.Millisecond))
}

// TestSlackForEver: a message of a kind with the longest Slack goes behind all others.
func TestSlackForEver(t *testing.T) {
	k := newKinds()
	k.other.Slack = math.MaxInt64
	a := message.New(message.Config{Mode: message.Unordered, Kinds: &k.reg})
	w := bitio.NewWriter(make([]byte, 700)) // room for one
	require.Zero(t, a.Write(time.Second, w))
	require.NoError(t, a.Send(k.other, &other{Name: "123456789012345678901234567890"}))
	require.NoError(t, a.Send(k.number, &number{Fill: make([]byte, 650)}))
	require.Equal(t, 1, a.Write(2*time.Second, w))
	b := message.New(message.Config{Mode: message.Unordered, Kinds: &k.reg})
	require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	_, kind := b.Receive()
	require.Equal(t, k.number, kind)
}

// TestQueueCloses: who sends is told what may not have arrived, and that nothing is sent any more.
func TestQueueCloses(t *testing.T) {
	x := newTransfer(t, netsim.Settings{Lag: 20 * time.Millisecond}, 2, bucket)
	for i := range uint32(10) {
		require.NoError(t, x.qa.Send(x.ka.number, &number{N: i}))
	}
	ended := -1
	x.qa.Ended = func(unacked int) { ended = unacked }
	x.messages.Conn().Fail(errors.New("enough"), true)
	require.Equal(t, 10, ended)
	require.Zero(t, x.qa.Held())
	require.ErrorIs(t, x.qa.Send(x.ka.number, &number{}), message.ErrClosed)
}

// TestQueueOfAClosingChannel: who sends on a channel that is about to be closed is told that nothing is sent any more.
func TestQueueOfAClosingChannel(t *testing.T) {
	x := newTransfer(t, netsim.Settings{Lag: 20 * time.Millisecond}, 2, bucket)
	require.NoError(t, x.qa.Send(x.ka.number, &number{}))
	x.messages.Close(bunch.Destroyed)
	require.ErrorIs(t, x.qa.Send(x.ka.number, &number{}), message.ErrClosed)
}

// TestSequencedKeepsTheNewest: of more messages than Window that wait for Receive, the oldest are dropped.
func TestSequencedKeepsTheNewest(t *testing.T) {
	l := newLine(message.Sequenced, 1, 0)
	for i := range 1500 {
		require.NoError(t, l.a.Send(l.ka.number, &number{N: uint32(i)}))
		w := bitio.NewWriter(make([]byte, 1000))
		require.Equal(t, 1, l.a.Write(l.now, w))
		l.a.Sent(int64(i))
		require.NoError(t, l.b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	}
	require.EqualValues(t, 1500-1024, l.b.Counters.Dropped)
	for want := uint32(1500 - 1024); want < 1500; want++ {
		m, _ := l.b.Receive()
		require.Equal(t, want, m.(*number).N)
	}
}

// TestCreditIsToldAtOnceAgain: credit whose packet is lost, or never left, is in the next one, without a wait.
func TestCreditIsToldAtOnceAgain(t *testing.T) {
	k := newKinds()
	cfg := message.Config{Kinds: &k.reg, Window: 16}
	a, b := message.New(cfg), message.New(cfg)
	for range 16 {
		require.NoError(t, a.Send(k.number, &number{}))
	}
	w := bitio.NewWriter(make([]byte, 1000))
	require.Equal(t, 16, a.Write(0, w))
	require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	for m, _ := b.Receive(); m != nil; m, _ = b.Receive() {
	}
	wrote := func() int { return b.Write(time.Millisecond, bitio.NewWriter(make([]byte, 100))) }
	require.Equal(t, 1, wrote())
	b.NotSent()
	require.Equal(t, 1, wrote())
	b.Sent(1)
	require.Zero(t, wrote(), "it is under way")
	b.Lost(1)
	require.Equal(t, 1, wrote())
	b.Sent(2)
	b.Acked(2)
	require.Zero(t, wrote(), "it has arrived")
}

// TestLookahead: a small message goes before 63 that don't fit the packet, and not before more: so much a packet looks at.
func TestLookahead(t *testing.T) {
	for _, mode := range []message.Mode{message.Ordered, message.Unordered} {
		for large, wrote := range map[int]int{1: 1, 63: 1, 64: 0, 500: 0} {
			k := newKinds()
			q := message.New(message.Config{Mode: mode, Kinds: &k.reg})
			for range large {
				require.NoError(t, q.Send(k.number, &number{Fill: make([]byte, 600)}))
			}
			require.NoError(t, q.Send(k.number, &number{}))
			require.Equal(t, wrote, q.Write(0, bitio.NewWriter(make([]byte, 100))), "mode %d, %d", mode, large)
		}
	}
}
