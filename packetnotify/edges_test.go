package packetnotify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
)

// begun is an end whose first packet, and the peer's, is number 1.
func begun(cfg Config) *Notify {
	n := new(Notify)
	n.Init(cfg, 1, 1)
	return n
}

// come is the peer's packet seq, which acks ours up to acked, all of them.
func come(n *Notify, seq, acked uint16) (delta int64, process bool) {
	h := Header{Seq: seq, AckedSeq: acked, Words: 8}
	for range history.Bits {
		h.History.Add(true)
	}
	delta, process = n.Update(&h, new(facts))
	if process {
		n.AckSeq(true)
	}
	return delta, process
}

// send commits a packet, whose header was written just before.
func send(n *Notify) int64 {
	var w bitio.Writer
	w.Reset(make([]byte, 64))
	n.WriteHeader(&w)
	return n.Commit()
}

// fullAfter100 waits for a flush: it told of 100 packets of the peer's in heard, and of all that its history holds in none.
func fullAfter100() (n *Notify, heard int64) {
	n = begun(Config{WaitForFlush: true, AckRecords: maxRecords})
	for seq := uint16(1); seq <= 100; seq++ {
		come(n, seq, 0)
	}
	heard = send(n)
	for seq := uint16(101); seq <= history.Bits; seq++ {
		come(n, seq, 0)
	}
	come(n, history.Bits+1, 0)
	return n, heard
}

// TestLate: what was missed or refused within the history and comes after all is late; what was taken, the newest and what is older than
// the history isn't.
func TestLate(t *testing.T) {
	n := begun(Config{})
	for _, seq := range []uint16{300, 303} {
		_, process := come(n, seq, 0)
		require.True(t, process)
	}
	h := Header{Seq: 305, Words: 1}
	_, process := n.Update(&h, new(facts))
	require.True(t, process)
	n.AckSeq(false)
	for seq, late := range map[uint16]bool{306: false, 305: false, 304: true, 303: false, 302: true, 301: true, 300: false, 299: true,
		305 - history.Bits + 1: true, 305 - history.Bits: false, 305 - history.Bits - 1: false, 3: false} {
		require.Equal(t, late, n.Late(&Header{Seq: seq, Words: 1}), "%d", seq)
	}
}

// TestWindowFullAtItsMargin: as many packets in flight as the history tells, less the margin.
func TestWindowFullAtItsMargin(t *testing.T) {
	n := begun(Config{})
	for i := range history.Bits + 10 {
		require.Equal(t, i >= history.Bits-7, n.WindowFull(7), "%d in flight", i)
		send(n)
	}
}

// TestAckedTwiceIsAckedOnce: a second word on the same packet changes nothing of the history.
func TestAckedTwiceIsAckedOnce(t *testing.T) {
	n := begun(Config{})
	come(n, 1, 0)
	come(n, 3, 0)
	before := n.in
	n.AckSeq(false)
	n.AckSeq(true)
	require.Equal(t, before, n.in)
}

// TestHeaderRoundTrip: a header is read as it was written, whatever was in the variable.
func TestHeaderRoundTrip(t *testing.T) {
	used := Header{Seq: 9, AckedSeq: 9, Words: 8}
	for range history.Bits {
		used.History.Add(true)
	}
	for words := 1; words <= history.MaxWords; words++ {
		h := Header{Seq: 0x3abc, AckedSeq: 0x1234, Words: words}
		for i := range 32 * words {
			h.History.Add(i%3 == 0)
		}
		w := bitio.NewWriter(make([]byte, 64))
		h.Write(w)
		got := used
		require.NoError(t, got.Read(bitio.NewReader(w.Bytes(), w.Len())))
		require.Equal(t, h, got, "%d words", words)
	}
}

// TestHeaderFromBeforeTheWait: a wait for a flush isn't over with the ack of a packet whose header was written before it began.
func TestHeaderFromBeforeTheWait(t *testing.T) {
	n := begun(Config{WaitForFlush: true, AckRecords: maxRecords})
	for seq := uint16(1); seq <= 200; seq++ {
		come(n, seq, 0)
	}
	var w bitio.Writer
	w.Reset(make([]byte, 64))
	n.WriteHeader(&w)
	for seq := uint16(201); seq <= history.Bits; seq++ {
		come(n, seq, 0)
	}
	delta, process := come(n, history.Bits+1, 0)
	require.Zero(t, delta)
	require.False(t, process)
	require.True(t, n.WaitingForFlush())
	first := n.Commit()
	require.True(t, n.WaitingForFlush())
	second := send(n)
	_, process = come(n, history.Bits+2, uint16(first))
	require.False(t, process)
	require.True(t, n.WaitingForFlush(), "it told of 200 only")
	_, process = come(n, history.Bits+3, uint16(second))
	require.True(t, process)
}

// TestRefusedWhileWaiting: packets are told lost as far as the history has room for that.
func TestRefusedWhileWaiting(t *testing.T) {
	for _, v := range []struct {
		seq   uint16
		delta int64
	}{{257, 1}, {300, 44}, {356, 100}, {357, 0}} { // 100 is known to be heard, so there is room up to 356
		n, heard := fullAfter100()
		require.True(t, n.WaitingForFlush())
		delta, process := come(n, v.seq, uint16(heard))
		require.False(t, process)
		require.Equal(t, v.delta, delta, "%d", v.seq)
		require.Equal(t, history.Bits+v.delta, n.InID())
		require.Equal(t, n.InID(), n.inAckSeq)
		for i := range v.delta {
			require.False(t, n.in.Delivered(int(i)))
		}
		require.True(t, n.in.Delivered(int(v.delta)))
	}
}

// TestPatienceOfTheWait: a peer a whole history ahead is accepted after 33 packets of ours that it didn't ack, and not before.
func TestPatienceOfTheWait(t *testing.T) {
	n := begun(Config{WaitForFlush: true, AckRecords: maxRecords})
	for seq := uint16(1); seq <= history.Bits; seq++ {
		come(n, seq, 0)
	}
	come(n, history.Bits+1, 0)
	for range flushPatience {
		_, process := come(n, 2*history.Bits+1, 0)
		require.False(t, process)
		send(n)
	}
	_, process := come(n, 2*history.Bits+1, 0)
	require.False(t, process)
	send(n)
	_, process = come(n, 2*history.Bits, 0)
	require.False(t, process, "not a whole history ahead")
	delta, process := come(n, 2*history.Bits+1, 0)
	require.True(t, process)
	require.EqualValues(t, history.Bits+1, delta)
}

// TestShrink: records shrink to what is asked, unless more packets than that are in flight, and none is forgotten.
func TestShrink(t *testing.T) {
	n := begun(Config{AckRecords: maxRecords})
	come(n, 1, 0)
	for range 1000 {
		send(n)
	}
	n.Shrink(512)
	require.Equal(t, 1024, len(n.records.acks), "all of them are in flight")
	come(n, 2, 984)
	n.Shrink(8)
	require.Equal(t, 1024, len(n.records.acks))
	require.Equal(t, 16, n.Outstanding())
	n.Shrink(16)
	require.Equal(t, 16, len(n.records.acks))
	checkInvariants(t, n, "shrunk")
	acks := &n.records.acks[0]
	n.Shrink(16)
	require.Same(t, acks, &n.records.acks[0], "nothing to give back")
	for range 100 {
		send(n)
	}
	come(n, 3, 995)
	require.EqualValues(t, 1, n.inAckSeqAck, "the record of 995 is there")
	n.Shrink(1 << 20)
	require.Equal(t, 128, len(n.records.acks))
}

// TestAcksOfARepeat: the newest packet sent once more, with the acks of now, tells them, and is no new packet. What is older than that, or acks what
// was told or never sent, tells nothing.
func TestAcksOfARepeat(t *testing.T) {
	a, b := begun(Config{}), begun(Config{})
	heard := new(facts)
	var h Header
	give := func(w *bitio.Writer) (delta int64, process bool) {
		require.NoError(t, h.Read(bitio.NewReader(w.Bytes(), w.Len())))
		return b.Update(&h, heard)
	}
	w := bitio.NewWriter(make([]byte, 64))
	a.WriteHeader(w)
	a.Commit()
	_, process := give(w)
	require.True(t, process)
	b.AckSeq(true)
	for range 300 {
		send(b)
	}
	for _, seq := range []uint16{7, 8, 10} {
		come(a, seq, 0)
	}
	w.Reset(make([]byte, 64))
	a.WriteAgain(w)
	delta, process := give(w)
	require.Zero(t, delta)
	require.False(t, process)
	require.Equal(t, int64(1), b.InID())
	require.EqualValues(t, 10, b.OutAckID())
	require.Len(t, *heard, 10)
	require.Equal(t, []fact{{7, true}, {8, true}, {9, false}, {10, true}}, []fact((*heard)[6:]))
	require.True(t, b.Again(&h))
	_, _ = give(w)
	require.Len(t, *heard, 10, "twice")
	for _, h := range []Header{{Seq: 0, AckedSeq: 20, Words: 1}, {Seq: 1, AckedSeq: 9, Words: 1}, {Seq: 1, AckedSeq: 301, Words: 1}} {
		require.False(t, b.Again(&h), "%+v", h)
		_, _ = b.Update(&h, heard)
		require.Len(t, *heard, 10, "%+v", h)
	}
	next := uint16(b.OutID())
	require.EqualValues(t, 1, b.Delta(&Header{Seq: 2, AckedSeq: next - 1, Words: 1}))
	require.Zero(t, b.Delta(&Header{Seq: 2, AckedSeq: next, Words: 1}), "an ack of what wasn't sent")
	checkInvariants(t, a, "")
	checkInvariants(t, b, "")
}
