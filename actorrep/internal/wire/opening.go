package wire

import "github.com/bunchnet/bunchnet/bunch/bitio"

// Opening is the head of an opening bunch:
//
//	1          more bunches of the opening follow
//	IntPacked  guid        IntPacked  parent's guid, 0 for none
//	IntPacked  class       32         frame
//	1          owner       1          autonomous       1  it was asleep: the values are what changed since
//	...        a bit a unit, values
//
// Of an opening in several bunches each begins with that bit; behind it stand messages as they do on the channel later.
type Opening struct {
	GUID, Parent, Class, Frame uint32
	Owner, Autonomous, Again   bool
}

// Write writes what is behind the first bit, up to the mask.
func (o *Opening) Write(w *bitio.Writer) {
	w.WriteIntPacked(o.GUID)
	w.WriteIntPacked(o.Parent)
	w.WriteIntPacked(o.Class)
	w.WriteUint32(o.Frame)
	WriteRole(w, o.Owner, o.Autonomous)
	w.WriteBool(o.Again)
}

// Read reads that.
func (o *Opening) Read(r *bitio.Reader) {
	o.GUID, o.Parent, o.Class, o.Frame = r.ReadIntPacked(), r.ReadIntPacked(), r.ReadIntPacked(), r.ReadUint32()
	o.Owner, o.Autonomous = ReadRole(r)
	o.Again = r.ReadBool()
}

// WriteRole writes what a client is to an actor.
func WriteRole(w *bitio.Writer, owner, autonomous bool) {
	w.WriteBool(owner)
	w.WriteBool(autonomous)
}

// ReadRole reads it.
func ReadRole(r *bitio.Reader) (owner, autonomous bool) {
	owner = r.ReadBool()
	return owner, r.ReadBool()
}
