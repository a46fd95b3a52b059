package interp

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// TestRest: a gap is a rest when fewer packets were missed in it than values would have come, or when so many in a row aren't lost.
func TestRest(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		gap    time.Duration
		missed int64
		reach  float64
		rest   bool
	}{
		{100 * ms, 0, 1, false}, {200 * ms, 0, 1, false}, {300 * ms, 0, 1, true}, {3000 * ms, 2, 1, true},
		{300 * ms, 1, 3, true}, {300 * ms, 2, 3, false}, {500 * ms, 30, 3, false}, {600 * ms, 30, 3, true}, {600 * ms, 30, 6, false},
	} {
		require.Equal(t, c.rest, isRest(c.gap, 100*ms, c.missed, c.reach), "%+v", c)
	}
}

type jumper struct {
	actorrep.Base
	X float64 `net:"" interp:""`
	J uint8   `net:"" interp:"jump"`
}

// TestSameTime: other values of the newest time take the place of those before; a teleport among them isn't interpolated.
func TestSameTime(t *testing.T) {
	p, err := planOf(reflect.TypeFor[*jumper](), nil)
	require.NoError(t, err)
	for _, jump := range []uint8{0, 1} {
		buffer, err := interpolation.NewBuffer(interpolation.BufferConfig[sample]{Lerp: p.between, MaxExtrapolation: -1})
		require.NoError(t, err)
		k, n := &track{base: &actorrep.Base{}, class: &class{plan: p}, buffer: buffer}, Counters{}
		at := func(at time.Duration) float64 {
			s, _ := buffer.At(at)
			var j jumper
			p.store(unsafe.Pointer(&j), &s)
			return j.X
		}
		for i, j := range []jumper{{X: 0}, {X: 10}, {X: 20, J: jump}} {
			var s sample
			p.load(unsafe.Pointer(&j), &s)
			k.sample(time.Duration(1+min(i, 1))*50*time.Millisecond, &s, 0, 1, 0, &n)
		}
		require.Equal(t, 20.0, at(100*time.Millisecond))
		require.InDelta(t, []float64{10, 5}[jump], at(75*time.Millisecond), 0.01)
	}
}
