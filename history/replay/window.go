// Package replay refuses packets that come again. A Window remembers which of the last
// sequences were received; ask Check before a packet is authenticated, and tell Accept after,
// so that forged sequences can't move it.
//
//	newest-size+1                    newest
//	     |                              |
//	too old: refused   | once each      | newer: fresh
package replay

// Size is how many sequences back the window goes (netcode's 256).
const Size = 256

// Window is the sequences received. The zero Window has none. Windows are comparable values.
type Window struct {
	newest uint64
	any    bool
	bits   [Size / 64]uint64 // bit seq%Size
}

// Check reports whether seq is neither too old nor received before.
func (w *Window) Check(seq uint64) bool {
	switch {
	case !w.any || seq > w.newest:
		return true
	case w.newest-seq >= Size: // by subtraction: an addition would wrap near 2^64
		return false
	}
	return w.bits[seq%Size/64]>>(seq%64)&1 == 0
}

// Accept notes that seq was received and is authentic; Check must have allowed it.
func (w *Window) Accept(seq uint64) {
	w.any = true
	w.newest = max(w.newest, seq-min(seq, Size)) // what is further back is forgotten
	for w.newest < seq {
		w.newest++
		w.bits[w.newest%Size/64] &^= 1 << (w.newest % 64)
	}
	w.bits[seq%Size/64] |= 1 << (seq % 64)
}
