package wire

import "github.com/bunchnet/bunchnet/bunch/bitio"

// Why is why calls of a client were refused.
type Why uint8

// The reasons.
const (
	NotOwner Why = iota
	TooMany      // above the procedure's RateLimit
	Absent       // the actor isn't there any more, or not for this client
	whyBits  = 2
)

// Refusal is calls of a client that were refused: of a procedure of an actor, for one reason. Those of actor 0 are of several.
type Refusal struct {
	GUID, Procedure uint32
	Why             Why
	Count           uint32
}

// Write writes it.
func (f Refusal) Write(w *bitio.Writer) {
	w.WriteBits(Refused, KindBits)
	w.WriteIntPacked(f.GUID)
	if f.GUID != 0 {
		w.WriteIntPacked(f.Procedure)
		w.WriteBits(uint64(f.Why), whyBits)
	}
	w.WriteIntPacked(f.Count)
}

// Read reads it, after its kind.
func (f *Refusal) Read(r *bitio.Reader) {
	*f = Refusal{GUID: r.ReadIntPacked()}
	if f.GUID != 0 {
		f.Procedure = r.ReadIntPacked()
		f.Why = Why(r.ReadBits(whyBits))
	}
	f.Count = r.ReadIntPacked()
}
