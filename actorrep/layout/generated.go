package layout

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// Generated is a struct for which package actorrep/gen has written code: its fields have setters that mark them, and
// are compared without reflection.
type Generated interface {
	// NetUnits is the Signature of the layout for which the code was written.
	NetUnits() string
	// NetCompare does for the units of m that are numbers what Layout.Compare does; words are the Shadow's.
	NetCompare(words []uint64, m Mask) (changed Mask)
}

// ErrStale is generated code of another struct than that at hand.
var ErrStale = errors.New("layout: the generated code is out of date; run go generate")

// Signature is the units in words: their names and forms, in order.
func (l *Layout) Signature() string {
	var b strings.Builder
	for i := range l.Units {
		fmt.Fprintf(&b, "%s %v\n", l.Units[i].Path, l.Units[i].Wire)
		for j := range l.Units[i].Parts {
			fmt.Fprintf(&b, " %s %v\n", l.Units[i].Parts[j].Path, l.Units[i].Parts[j].Wire)
		}
	}
	return b.String()
}

// useGenerated has Compare use the struct's own code.
func (l *Layout) useGenerated() error {
	own, ok := reflect.New(l.Type).Interface().(Generated)
	if !ok {
		return nil
	}
	if was := own.NetUnits(); was != l.Signature() {
		return fmt.Errorf("%w: %v: it is for\n%sand the struct is\n%s", ErrStale, l.Type, was, l.Signature())
	}
	for i := range l.Units {
		if !l.Units[i].Kind.IsBlob() {
			l.compared |= 1 << i
		}
	}
	l.Pushed = l.All() &^ (l.Fasts &^ l.Pushed) // a fast array has no setter: it says so itself, or is looked at
	return nil
}

// Steps is the number of steps nearest to v, in zigzag. What a step can't count is the last that it can, and NaN one below
// the lowest: neither fits.
func Steps(v, step float64) uint64 {
	n := math.RoundToEven(v / step)
	if !(math.Abs(n) <= stepLimit) {
		n = lastStep(n)
	}
	return zigzag(int64(n))
}

// lastStep is what Steps makes of what a step can't count.
func lastStep(n float64) float64 {
	switch {
	case n > 0:
		return stepLimit
	case n < 0:
		return -stepLimit
	}
	return -stepLimit - 1 // NaN
}

// Turn is an angle in degrees as a part of a turn, of so many bits; NaN and infinities are a whole turn, which doesn't fit.
func Turn(v float64, bits uint8) uint64 {
	turn := int64(1) << bits
	n := math.RoundToEven(v / 360 * float64(turn))
	if !(math.Abs(n) < 1<<62) {
		return lastTurn(v/360, turn)
	}
	return uint64(int64(n) & (turn - 1))
}

// lastTurn is what Turn makes of what is no number, infinite, or more than an int64 counts.
func lastTurn(turns float64, turn int64) uint64 {
	if turns -= math.Floor(turns); turns != turns {
		return uint64(turn)
	}
	return uint64(int64(math.RoundToEven(turns*float64(turn))) & (turn - 1))
}

// Signed is an integer in zigzag.
func Signed(v int64) uint64 { return zigzag(v) }

// Bit is 1 for true.
func Bit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}
