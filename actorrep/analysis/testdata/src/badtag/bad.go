package badtag

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

type Inner struct {
	X, Y float64 `net:"q=0.5"`
}

type Conditional struct {
	X int `net:"owner"`
}

type Mixed struct {
	X  float32
	On bool
}

type Bad struct {
	actorrep.Base
	A  float32      `net:"quantise=0.01"`      // want `error: A: unknown option "quantise=0.01"`
	B  float32      `net:"q=0"`                // want `error: B: q=0 must be a step above 0, as in q=0.01`
	C  float32      `net:"q=1,rot=8"`          // want `error: C: q= and rot= exclude each other`
	D  float32      `net:"rot=7"`              // want `error: D: rot=7 must be from 8 to 16`
	E  uint8        `net:"max=none"`           // want `error: E: max=none must be from 1 to 4294967294`
	F  string       `net:"cap=70000"`          // want `error: F: cap=70000 must be from 1 to 65535`
	G  int          `net:"owner, skipowner"`   // want `error: G: two conditions, owner and skipowner`
	H  int          `net:"q=0.1"`              // want `error: q= is for floats, and H is int`
	QA [3]float32   `net:"quat=15"`            // want `error: quat= is for structs and arrays of four floats, x, y, z and w, and QA\[\] is float32`
	QB [4]float32   `net:"quat=15,q=1"`        // want `error: QB: quat= excludes q= and rot=: it says how all four numbers of a quaternion are sent`
	QC [4]float32   `net:"quat=20"`            // want `error: QC: quat=20 must be from 8 to 16`
	I  int          `net:"max=10"`             // want `error: max= is for unsigned integers, and I is int`
	J  float64      `net:"max=10"`             // want `error: max= is for unsigned integers, and J is float64`
	K  Mixed        `net:"q=0.1"`              // want `error: q= is for floats, and K.On is bool`
	L  netguid.GUID `net:"max=10"`             // want `error: max= is for unsigned integers, and L is netguid.GUID`
	M  string       `net:"q=0.1"`              // want `error: q= is for numbers, and M is string; cap= bounds a text`
	N  uint8        `net:"cap=10"`             // want `warning: cap= does nothing: it is for strings, bytes and slices, and N is uint8`
	O  Conditional  `net:""`                   // want `error: the condition or notify of O.X belongs to O as a whole; write it here`
	Z  Inner        `net:"q=0.1"`              // the tags within count
	P  float32      `net:"q=0.1,q=0.2"`        // want `warning: P: q= is given twice, the last counts`
	Q  uint8        `net:"notify=OnNothing"`   // want `error: Bad has no method OnNothing; declare func \(b \*Bad\) OnNothing\(old uint8\), or without the parameter`
	R  uint8        `net:"notify=onR"`         // want `error: notify method onR must be exported`
	S  uint8        `net:"notify=OnS"`         // want `error: notify method OnS must take nothing or the old uint8, not \(old int\)`
	T  uint8        `net:"notify=OnTwo"`       // want `error: notify method OnTwo must take nothing or the old uint8, not \(a uint8, c uint8\)`
	U  uint8        `net:"notify=OnMany"`      // want `error: notify method OnMany must take nothing or the old uint8`
	W  uint8        `json:"w" net:"mx=1"`      // want `error: W: unknown option "mx=1"`
	X  []int        `net:"max=3"`              // want `error: max= is for unsigned integers, and X\[\] is int`
	Y  uint8        "net:\"notify=OnNothing\"" // want `error: Bad has no method OnNothing`

	AA uint8    `net:"max=300"`   // want `error: max=300 is more than a uint8 holds`
	AB []uint16 `net:"max=70000"` // want `error: max=70000 is more than a uint16 holds`

	V actorrep.Var[uint8] `net:"notify=OnV"` // want `error: notify method OnV must take nothing or the old uint8, not \(old actorrep.Var\[uint8\]\)`
}

func (b *Bad) onR()                        {}
func (b *Bad) OnS(old int)                 {}
func (b *Bad) OnTwo(a, c uint8)            {}
func (b *Bad) OnMany(old ...uint8)         {}
func (b *Bad) OnV(old actorrep.Var[uint8]) {}
