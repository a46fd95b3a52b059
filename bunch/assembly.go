package bunch

import (
	"errors"
	"fmt"
)

// Errors of Assembly.Add. Each is fatal to the connection in Unreal: reliable
// parts come in order, so a peer that sends these is broken or lying.
var (
	ErrPartialInitialReliable = errors.New("bunch: a reliable partial began before the last one was final")
	ErrPartialMergeReliable   = errors.New("bunch: a reliable partial doesn't continue the reliable one under way")
	ErrPartialInitialAlign    = errors.New("bunch: the initial part isn't whole bytes")
	ErrPartialAlign           = errors.New("bunch: a part that isn't final isn't whole bytes")
	ErrPartialFinalExports    = errors.New("bunch: the final part has package map exports")
	ErrPartialTooLarge        = fmt.Errorf("bunch: parts add up to more than %d bytes", MaxPayload)
)

// Progress is what Add did with a part.
type Progress uint8

const (
	// Merged: the part was taken; more must come.
	Merged Progress = iota
	// Complete: the part was the last; Assembly.Take returns the whole.
	Complete
	// Refused: the part fits nothing. Its packet must be naked so that the
	// sender learns of it.
	Refused
)

// Assembly joins the partial bunches of one channel. The zero Assembly is ready.
//
// Invariant: while active, whole bytes are in data[:bits/8], and bits <= 8*MaxPayload.
type Assembly struct {
	active  bool
	lastSeq int64 // ChSequence of the last part, or its packet id when unreliable
	whole   In
	data    []byte
	bits    int
	dropped uint64
}

// Dropped counts unreliable partials that were given up because a part was missing.
func (a *Assembly) Dropped() uint64 { return a.dropped }

// Active reports whether parts of an unfinished bunch are held.
func (a *Assembly) Active() bool { return a.active }

// Unreliable reports whether the unfinished bunch is unreliable.
func (a *Assembly) Unreliable() bool { return a.active && !a.whole.Reliable }

// Expire gives up an unfinished unreliable bunch whose next part is lost, and reports whether it did. Call it when a bunch of packet id
// arrives: the next part can only be in the packet of the part before it, or in the packet after that.
func (a *Assembly) Expire(id int64) bool {
	if !a.Unreliable() || id-a.lastSeq <= 1 {
		return false
	}
	a.dropped++
	a.active = false
	return true
}

// Reset drops the unfinished bunch, and returns the buffer for reuse.
func (a *Assembly) Reset() []byte {
	b := a.data
	*a = Assembly{dropped: a.dropped}
	return b
}

// Grow gives the assembly a larger buffer, and returns the old one for reuse.
func (a *Assembly) Grow(buf []byte) (old []byte) {
	old = a.data
	a.data = append(buf[:0], a.data...)
	return old
}

// Len is the number of bytes joined so far, Cap how many the buffer holds.
func (a *Assembly) Len() int { return len(a.data) }

// Cap is how many bytes fit without a larger buffer; see Grow.
func (a *Assembly) Cap() int { return cap(a.data) }

func sequence(in *In) int64 {
	if in.Reliable {
		return in.ChSequence
	}
	return in.PacketID
}

// Add takes the next part. Reliable parts must come in ChSequence order. An error
// is a broken rule of the peer's; the assembly is then as it was before.
func (a *Assembly) Add(in *In) (Progress, error) {
	if in.PartialInitial {
		return a.begin(in)
	}
	return a.merge(in)
}

func (a *Assembly) begin(in *In) (Progress, error) {
	if a.active && a.whole.Reliable {
		if in.Reliable {
			return Refused, ErrPartialInitialReliable
		}
		return Refused, nil // the reliable one goes on
	}
	if !in.PartialFinal && !in.HasPackageMapExports && in.Bits&7 != 0 {
		return Refused, ErrPartialInitialAlign
	}
	if in.Bits > MaxPayload*8 {
		return Refused, ErrPartialTooLarge
	}
	if a.active {
		a.dropped++
	}
	a.active, a.lastSeq, a.bits, a.data = true, sequence(in), 0, a.data[:0]
	a.whole = *in
	a.whole.Data.Reset(nil, 0) // it would keep the packet
	return a.append(in), nil
}

func (a *Assembly) merge(in *In) (Progress, error) {
	if !a.active || a.whole.Reliable != in.Reliable || !a.continues(in) {
		return a.mismatch(in)
	}
	if !in.PartialFinal && !in.HasPackageMapExports && in.Bits&7 != 0 {
		return Refused, ErrPartialAlign
	}
	if in.PartialFinal && in.HasPackageMapExports {
		return Refused, ErrPartialFinalExports
	}
	if a.bits+in.Bits > MaxPayload*8 {
		return Refused, ErrPartialTooLarge
	}
	a.lastSeq = sequence(in)
	if in.PartialFinal {
		a.whole.Close, a.whole.CloseReason = in.Close, in.CloseReason
		a.whole.ReplicationPaused = in.ReplicationPaused
		a.whole.HasMustBeMappedGUIDs = in.HasMustBeMappedGUIDs
	}
	return a.append(in), nil
}

func (a *Assembly) continues(in *In) bool {
	d := sequence(in) - a.lastSeq
	return d == 1 || !in.Reliable && d == 0
}

// mismatch is a part that continues nothing: "nak the packet; a reliable one
// under way is kept, an unreliable one is given up".
func (a *Assembly) mismatch(in *In) (Progress, error) {
	if a.active && a.whole.Reliable {
		if in.Reliable {
			return Refused, ErrPartialMergeReliable
		}
		return Refused, nil
	}
	if a.active {
		a.dropped++
		a.active = false
	}
	return Refused, nil
}

// append takes a part that may be taken.
func (a *Assembly) append(in *In) Progress {
	if a.bits&7 != 0 { // an export part of odd bits came before
		a.appendBits(in)
	} else {
		n := len(a.data)
		end := n + (in.Bits+7)/8
		a.data = grow(a.data, end)
		in.Data.ReadBitsTo(a.data[n:end], in.Bits)
		a.bits += in.Bits
	}
	if !in.PartialFinal {
		return Merged
	}
	return Complete
}

func (a *Assembly) appendBits(in *In) {
	for left := in.Bits; left > 0; {
		n := min(left, 8-a.bits&7)
		if a.bits&7 == 0 {
			a.data = append(a.data, 0)
		}
		a.data[len(a.data)-1] |= byte(in.Data.ReadBits(n)) << uint(a.bits&7)
		a.bits, left = a.bits+n, left-n
	}
}

func grow(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	nb := make([]byte, n, min(MaxPayload, max(2*cap(b), n)))
	copy(nb, b)
	return nb
}

// Take returns the joined bunch after Add has returned Complete. Partial isn't set; Open and PacketID are those of the first part, Close
// that of the last. It is valid until the next Add or Reset.
func (a *Assembly) Take() *In {
	a.active = false
	w := &a.whole
	w.Partial, w.PartialInitial, w.PartialFinal, w.PartialCustomExportsFinal = false, false, false, false
	w.Bits = a.bits
	w.ChSequence = a.lastSeq
	w.Data.Reset(a.data, a.bits)
	return w
}
