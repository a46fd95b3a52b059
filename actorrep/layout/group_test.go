package layout

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestGroupsSayWhatChanged: of a class with as many values as there may be, whatever changes is noticed, the parts that changed after what the
// peer has are sent and no others, and a part that doesn't fit is told until it does.
func TestGroupsSayWhatChanged(t *testing.T) {
	type wide struct {
		A [600]uint16 `net:"max=999"`
		B [424]uint16 `net:"max=999"`
	}
	p := newPair(t, reflect.TypeFor[wide]())
	src, dst := p.src.Interface().(*wide), p.dst.Interface().(*wide)
	place := func(v *wide, i int) *uint16 {
		if i < len(v.A) {
			return &v.A[i]
		}
		return &v.B[i-len(v.A)]
	}
	rng := rand.New(rand.NewPCG(1, 14))
	known := make([]int64, len(p.l.Units))
	for step := int64(1); step < 60; step++ {
		want := map[string]bool{}
		for range rng.IntN(40) {
			i := rng.IntN(1024)
			v := uint16(rng.IntN(1000))
			if *place(src, i) != v {
				*place(src, i) = v
				if want[fmt.Sprintf("A[%d]", i)] = true; i >= 600 {
					delete(want, fmt.Sprintf("A[%d]", i))
					want[fmt.Sprintf("B[%d]", i-600)] = true
				}
			}
		}
		p.shadow.Stamp = step
		changed := p.compare(p.l.All())
		require.Zero(t, p.shadow.Unfit)
		require.Zero(t, p.compare(p.l.All()), "nothing changes between two compares")
		for i := range p.l.Units {
			base := Base{Known: known}
			w := p.write(i, &base)
			r := bitio.NewReader(w.Bytes(), w.Len())
			got := 0
			p.remote.ReadGroup(r, i, p.l.Object(p.dst.UnsafePointer()), func(*Unit) {}, func(own *Unit, changed, fits bool) {
				require.True(t, changed && fits && want[own.Path], "%s: %v %v", own.Path, changed, fits)
				got++
			})
			require.NoError(t, r.Err())
			require.Zero(t, r.Remaining())
			require.Equal(t, got > 0, changed>>i&1 != 0)
			for j := range p.l.Units[i].Parts {
				delete(want, p.l.Units[i].Parts[j].Path) // every one came
			}
		}
		require.Empty(t, want)
		require.Equal(t, src, dst)
		for i := range known {
			known[i] = step
		}
	}
	src.B[423] = 1000
	require.NotZero(t, p.compare(p.l.All()))
	require.Equal(t, Mask(1)<<p.l.bits[1023], p.shadow.Unfit)
	src.B[0] = (src.B[0] + 1) % 1000
	p.compare(p.l.All())
	require.NotZero(t, p.shadow.Unfit, "another that fits doesn't change that")
	src.B[423] = 999
	p.compare(p.l.All())
	require.Zero(t, p.shadow.Unfit)
}

// TestNotifiesStayAlone: of too many values those without a notify are put together first, so that a hook isn't asked about others.
func TestNotifiesStayAlone(t *testing.T) {
	var fields []reflect.StructField
	for i := range 100 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[uint16](), Tag: `net:""`})
	}
	fields[0].Tag, fields[99].Tag = `net:"notify=OnFirst"`, `net:"notify=OnLast"`
	l, err := Build(reflect.StructOf(fields))
	require.NoError(t, err)
	require.LessOrEqual(t, len(l.Units), MaxUnits)
	for _, i := range []int{0, 99} {
		require.NotEqual(t, Group, l.Units[l.bits[i]].Kind, "F%d", i)
	}
}

// TestGroupsOfMore: parts of a peer's group that we lack are skipped, and those behind them come.
func TestGroupsOfMore(t *testing.T) {
	type more struct {
		A [70]uint8 `net:"max=9"`
		B [70]uint8 `net:"max=9"`
	}
	type fewer struct {
		B [70]uint8 `net:"max=9"`
	}
	p := newPair(t, reflect.TypeFor[more]())
	l, err := Build(reflect.TypeFor[fewer]())
	require.NoError(t, err)
	m := p.schema(p.l)
	require.NoError(t, m.Match(l))
	src, dst := p.src.Interface().(*more), &fewer{}
	for i := range 70 {
		src.A[i], src.B[i] = uint8(i%10), uint8((i+3)%10)
	}
	require.Equal(t, p.l.All(), p.compare(p.l.All()))
	for i := range p.l.Units {
		w := p.write(i, nil)
		r := bitio.NewReader(w.Bytes(), w.Len())
		m.ReadGroup(r, i, l.Object(reflect.ValueOf(dst).UnsafePointer()), func(*Unit) {}, func(*Unit, bool, bool) {})
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		for n := range w.Len() { // cut short, nothing is told behind the end
			told := 0
			r := bitio.NewReader(w.Bytes(), n)
			m.ReadGroup(r, i, l.Object(reflect.New(l.Type).UnsafePointer()), func(*Unit) {}, func(*Unit, bool, bool) {
				require.NoError(t, r.Err())
				told++
			})
			require.Error(t, r.Err())
			require.Less(t, told, 70)
		}
	}
	require.Equal(t, src.B, dst.B)
}

// TestPartMasksThatLie: the place of a part that a group hasn't is an error, at every size of a group.
func TestPartMasksThatLie(t *testing.T) {
	for n := 2; n <= 64; n++ {
		for place := range 64 {
			r := readerOf(func(w *bitio.Writer) {
				w.WriteBool(false)
				w.WriteBits(1, listBits)
				w.WriteBits(uint64(place), 6)
			})
			width := 0
			for 1<<width < n {
				width++
			}
			place &= 1<<width - 1
			m := readPartMask(r, n)
			if place < n {
				require.NoError(t, r.Err())
				require.Equal(t, Mask(1)<<place, m)
			} else {
				require.ErrorIs(t, r.Err(), ErrLength, "%d of %d", place, n)
				require.Zero(t, m)
			}
		}
	}
}
