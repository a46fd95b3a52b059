package wire

import "github.com/bunchnet/bunchnet/bunch/bitio"

// Path names the records from which a record's numbers are predicted, by their frames: Age Steps before the record's, and then every Gap
// Steps before that, as many as the layout.Form says. Gap is 0 when there is but one, Age when there is none.
type Path struct {
	Age, Gap uint8
	Form     uint8
}

// A chunk's records name a path by its place among the last ones of the chunk.
const (
	knownPaths = 6
	noPath     = 7
	gapBits    = 5
	formBits   = 2
)

// Paths is the last paths of a chunk.
type Paths struct {
	paths [knownPaths]Path
	n     uint8 // so far, each counted when it was new
	Last  Path  // of the record before; it has an age of 0 when that had none
}

// Write writes a path:
//
//	1             that of the record before
//	0, 3 bits     0 to 5: one of the last six new ones of the chunk, by its place; 6: a new one follows; 7: none
//	new           8 age | 1 when there is a gap, then: 5 gap, 2 form
func (l *Paths) Write(w *bitio.Writer, t Path) {
	same := t == l.Last
	w.WriteBool(same)
	if same {
		return
	}
	l.Last = t
	if t == (Path{}) {
		w.WriteBits(noPath, 3)
		return
	}
	for i := range min(l.n, knownPaths) {
		if l.paths[i] == t {
			w.WriteBits(uint64(i), 3)
			return
		}
	}
	w.WriteBits(knownPaths, 3)
	w.WriteBits(uint64(t.Age), 8)
	if w.WriteBool(t.Gap != 0); t.Gap != 0 {
		w.WriteBits(uint64(t.Gap), gapBits)
		w.WriteBits(uint64(t.Form), formBits)
	}
	l.add(t)
}

// add makes a path one of the last ones, in place of the oldest.
func (l *Paths) add(t Path) {
	l.paths[l.n%knownPaths] = t
	if l.n++; l.n == 2*knownPaths {
		l.n = knownPaths
	}
}

// Read reads a path.
func (l *Paths) Read(r *bitio.Reader) Path {
	if r.ReadBool() {
		return l.Last
	}
	switch i := r.ReadBits(3); i {
	case noPath:
		l.Last = Path{}
	case knownPaths:
		t := Path{Age: r.ReadUint8()}
		if r.ReadBool() {
			t.Gap = uint8(r.ReadBits(gapBits))
			t.Form = uint8(r.ReadBits(formBits))
		}
		l.Last = t
		l.add(t)
	default:
		l.Last = l.paths[i]
	}
	return l.Last
}
