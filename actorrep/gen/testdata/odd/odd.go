// Package odd has classes whose names and types ask for care.
package odd

import (
	"math"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/gen/testdata/odd/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Mob's receiver can't be m.
type Mob struct {
	actorrep.Base
	Path [2]layout.Point `net:"q=1"`
	Own  Own             `net:""`
	Few  Few             `net:"max=3"`
	Mark layout.Mark     `net:""`
}

// Use calls what isn't written yet.
func (m *Mob) Use() {
	m.SetFew(Few(math.Floor(m.Path[0].X64())))
	m.SetPathAt(1, layout.Point{})
}

// Vehicle has no numbers.
type Vehicle struct {
	actorrep.Base
	Name string `net:""`
}

// Empty has nothing.
type Empty struct{ actorrep.Base }

// Few is a named number.
type Few uint8

// Own has its own serializer.
type Own struct{ a int8 }

// WriteNet writes it.
func (o *Own) WriteNet(w *bitio.Writer) { w.WriteUint8(uint8(o.a)) }

// ReadNet reads it.
func (o *Own) ReadNet(r *bitio.Reader) error {
	o.a = int8(r.ReadUint8())
	return r.Err()
}
