package packetnotify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
)

// What is read and written again is the same bytes, and an end that gets it stays
// sound, whatever it says.
func FuzzReadHeader(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, uint16(5), uint16(9))
	f.Add([]byte{0x07, 0, 0, 0}, uint16(0), uint16(0))
	f.Add([]byte{0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint16(16383), uint16(16383))
	f.Add([]byte{0x0f, 1, 2, 3}, uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, in, out uint16) {
		r := bitio.NewReader(b, len(b)*8)
		var h Header
		err := h.Read(r)
		if err != nil {
			if err != r.Err() || h != (Header{}) {
				t.Fatalf("%+v, %v, reader %v", h, err, r.Err())
			}
			return
		}
		w := bitio.NewWriter(make([]byte, 64))
		h.Write(w)
		if w.Err() != nil || string(w.Bytes()) != string(b[:w.Len()/8]) {
			t.Fatalf("read from %x, written as %x", b, w.Bytes())
		}
		for _, cfg := range worlds {
			var n Notify
			n.Init(cfg, in, out)
			for range 40 {
				w.Reset(make([]byte, 64))
				n.WriteHeader(w)
				n.Commit()
			}
			want := n.Delta(&h)
			delta, process := n.Update(&h, &recorder{})
			if delta > want || process && delta != want {
				t.Fatalf("%d ahead, moved %d", want, delta)
			}
			if process {
				n.AckSeq(true)
			}
			n.Late(&h)
			checkInvariants(t, &n, "after the header")
		}
	})
}

// listener is a Handler that insists on each packet, once and in order.
type listener struct {
	t    *testing.T
	last int64
}

func (l *listener) PacketAcked(id int64) {
	if id != l.last+1 {
		l.t.Fatalf("heard of %d after %d", id, l.last)
	}
	l.last = id
}

func (l *listener) PacketLost(id int64) { l.PacketAcked(id) }

// Each byte is a step: send, get a genuine header of a peer, or a forged one.
func FuzzNotify(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 2, 0, 1, 9, 40, 80, 120, 160, 200, 240, 255}, uint8(0))
	f.Add([]byte{2, 2, 2, 0, 0, 0, 1, 1, 3, 3, 3, 253, 0, 252, 1, 251, 2, 250}, uint8(1))
	f.Fuzz(func(t *testing.T, program []byte, world uint8) {
		cfg := []Config{{}, {AckRecords: 3}, {WaitForFlush: true}, {WaitForFlush: true, AckRecords: maxRecords}}[world%4]
		var n, peer Notify
		n.Init(cfg, 16380, 7)
		peer.Init(cfg, 7, 16380)
		l := &listener{t, 6}
		var w bitio.Writer
		buf := make([]byte, 64)
		for i, op := range program {
			var h Header
			w.Reset(buf)
			switch op & 3 {
			case 0: // we send 1 to 32 packets
				for range 1 + op>>3 {
					w.Reset(buf)
					n.WriteHeader(&w)
					if op&4 != 0 {
						n.RefreshHeader(&w, 0)
					}
					n.Commit()
				}
				continue
			case 1: // the peer gets the last of them
				n.outSeq-- // as if it had been written just now
				h = headerOf(&n, int(op>>5)+1)
				n.outSeq++
				if _, process := peer.Update(&h, &recorder{}); process {
					peer.AckSeq(op&4 != 0)
				}
				continue
			case 2: // and answers, perhaps after some that were lost
				for range 1 + op>>2 {
					w.Reset(buf)
					peer.WriteHeader(&w)
					peer.Commit()
				}
				_ = h.Read(bitio.NewReader(w.Bytes(), w.Len()))
			default: // a forged header, not far from a real one
				h = Header{Seq: uint16(n.inSeq+int64(op>>2)*int64(i+1)) & 0x3fff,
					AckedSeq: uint16(n.outAckSeq+int64(op>>4)*int64(i)) & 0x3fff, Words: int(op>>5) + 1}
				h.History.Add(op&4 != 0)
				h.History.AddLost(i)
			}
			before := n.InID()
			delta, process := n.Update(&h, l)
			if l.last != n.OutAckID() || n.InID() != before+delta {
				t.Fatalf("step %d: heard up to %d, known %d; moved %d by %d", i, l.last, n.OutAckID(), n.InID()-before, delta)
			}
			if process {
				n.AckSeq(op&8 != 0)
			}
			checkInvariants(t, &n, "fuzzed")
		}
	})
}

func TestHeaderTruncated(t *testing.T) {
	h := Header{Seq: 9999, AckedSeq: 16383, Words: history.MaxWords}
	h.History.Add(true)
	w := bitio.NewWriter(make([]byte, 64))
	h.Write(w)
	for n := range w.Len() {
		r := bitio.NewReader(w.Bytes(), n)
		var got Header
		err := got.Read(r)
		require.ErrorIs(t, err, bitio.ErrShort, "%d bits", n)
		require.Zero(t, got)
	}
	for words := range 16 {
		b := append([]byte{byte(words)}, make([]byte, 100)...)
		r := bitio.NewReader(b, len(b)*8)
		var got Header
		err := got.Read(r)
		if words < history.MaxWords {
			require.NoError(t, err)
			require.Equal(t, words+1, got.Words)
			continue
		}
		require.ErrorIs(t, err, ErrHistoryWords)
		require.ErrorIs(t, r.Err(), ErrHistoryWords)
	}
}

// A Notify that wasn't initialized is of no use, but does no harm.
func TestZeroValue(t *testing.T) {
	var n Notify
	w := bitio.NewWriter(make([]byte, 64))
	n.WriteHeader(w)
	require.True(t, n.RefreshHeader(w, 0))
	for range 600 {
		n.Commit()
	}
	require.NoError(t, w.Err())
	for seq := range uint16(700) {
		h := Header{Seq: seq, AckedSeq: seq, Words: 1}
		if _, process := n.Update(&h, &recorder{}); process {
			n.AckSeq(true)
		}
	}
	require.True(t, n.WindowFull(300))
	require.False(t, n.WaitingForFlush())
}
