package packetnotify

import (
	"errors"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

const (
	wordsBits  = 4
	seqBits    = int(seqnum.Packet)
	packedBits = 2*seqBits + wordsBits
	firstBits  = packedBits + 32
)

// ErrHistoryWords is a header that says it has more history than there is.
var ErrHistoryWords = errors.New("packetnotify: more than 8 words of history")

// Header is the packet header. Sequences are as on the wire.
type Header struct {
	Seq, AckedSeq uint16
	Words         int // 1 to 8
	History       history.History
}

// packed is what stands before the history.
func packed(seq, acked uint16, words int) uint64 {
	return uint64(seq)<<(seqBits+wordsBits) | uint64(acked)<<wordsBits | uint64(words-1)
}

// write writes a header. What stands before the history and its first word are one number.
func write(w *bitio.Writer, packed uint64, h *history.History, words int) {
	w.WriteBits(packed|uint64(h.Word(0))<<packedBits, firstBits)
	h.WriteRest(w, words)
}

// Write writes h.
func (h *Header) Write(w *bitio.Writer) {
	write(w, packed(h.Seq, h.AckedSeq, h.Words), &h.History, h.Words)
}

// Read reads h. An error is r's sticky error too, and h zero then.
func (h *Header) Read(r *bitio.Reader) error {
	v := r.ReadBits(firstBits)
	h.Words = int(v&(1<<wordsBits-1)) + 1
	h.AckedSeq = uint16(v>>wordsBits) & seqnum.Packet.Mask()
	h.Seq = uint16(v>>(seqBits+wordsBits)) & seqnum.Packet.Mask()
	if h.Words > history.MaxWords {
		r.Fail(ErrHistoryWords)
	} else {
		h.History.ReadRest(r, uint32(v>>packedBits), h.Words)
	}
	if r.Err() != nil {
		*h = Header{}
	}
	return r.Err()
}
