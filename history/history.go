package history

import "github.com/bunchnet/bunchnet/bunch/bitio"

const (
	// Bits is how many packets back the history goes.
	Bits = 256
	// MaxWords is Bits in the 32-bit words of the wire.
	MaxWords = Bits / 32
)

// History is which of the last 256 packets were delivered. The zero History
// says none. Histories are comparable values.
type History struct {
	words [Bits / 64]uint64 // bit i of word 0 is the packet i before the newest
}

// Add shifts the history by one packet, the new newest one.
func (h *History) Add(delivered bool) {
	w := &h.words
	w[3] = w[3]<<1 | w[2]>>63
	w[2] = w[2]<<1 | w[1]>>63
	w[1] = w[1]<<1 | w[0]>>63
	w[0] <<= 1
	if delivered {
		w[0] |= 1
	}
}

// AddLost shifts in n packets that weren't delivered; n >= 0.
func (h *History) AddLost(n int) {
	if n >= Bits {
		*h = History{}
		return
	}
	skip, s := n/64, uint(n%64)
	for i := len(h.words) - 1; i >= 0; i-- {
		var v uint64
		if j := i - skip; j >= 0 {
			v = h.words[j] << s
			if j > 0 {
				v |= h.words[j-1] >> (64 - s) // s == 0: shifted out, 0
			}
		}
		h.words[i] = v
	}
}

// Delivered reports whether the packet i before the newest was delivered; false for
// one beyond the history.
func (h *History) Delivered(i int) bool {
	return uint(i) < Bits && h.words[i/64]>>uint(i%64)&1 != 0
}

// AnyDelivered reports whether any of the newest n packets was delivered.
func (h *History) AnyDelivered(n int) bool {
	for i := 0; i < len(h.words) && n > 0; i, n = i+1, n-64 {
		w := h.words[i]
		if n < 64 {
			w &= 1<<uint(n) - 1
		}
		if w != 0 {
			return true
		}
	}
	return false
}

// Word is word i of the wire: the packets 32*i to 32*i+31 before the newest.
func (h *History) Word(i int) uint32 { return uint32(h.words[i/2] >> (32 * uint(i&1))) }

// WriteRest writes words 1 to n-1 of n, at most MaxWords. The header that the history is in has word 0 in its own first word.
func (h *History) WriteRest(w *bitio.Writer, n int) {
	i := 1
	for ; i+1 < n; i += 2 {
		w.WriteUint64(uint64(h.Word(i)) | uint64(h.Word(i+1))<<32)
	}
	if i < n {
		w.WriteUint32(h.Word(i))
	}
}

// ReadRest sets word 0, and reads words 1 to n-1 of n, at most MaxWords; the packets behind them count as not delivered.
func (h *History) ReadRest(r *bitio.Reader, first uint32, n int) {
	*h = History{words: [Bits / 64]uint64{uint64(first)}}
	i := 1
	for ; i+1 < n; i += 2 {
		v := r.ReadUint64()
		h.words[i/2] |= v << 32
		h.words[i/2+1] = v >> 32
	}
	if i < n {
		h.words[i/2] |= uint64(r.ReadUint32()) << 32
	}
}
