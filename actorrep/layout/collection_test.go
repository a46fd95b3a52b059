package layout

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// toyList is a fast array of one number.
type toyList struct{ n, told, bound int }

func (l *toyList) NetKey() uint32                     { return uint32(l.n) }
func (l *toyList) NetWrite(w *bitio.Writer, b uint32) { w.WriteUint32(uint32(l.n)); w.WriteUint32(b) }
func (l *toyList) NetRead(r *bitio.Reader) error {
	l.n = int(r.ReadUint32())
	return r.Err()
}
func (l *toyList) NetBind(f func()) { l.bound++ }
func (l *toyList) NetTell(tell bool) {
	if tell {
		l.told++
	}
}

// TestFast: fast arrays are told from what version to write, can be skipped, and say whether they have changed.
func TestFast(t *testing.T) {
	type lists struct {
		A toyList    `net:""`
		N int        `net:""`
		B [1]toyList `net:"owner"`
	}
	p := newPair(t, reflect.TypeFor[lists]())
	src, dst := p.src.Interface().(*lists), p.dst.Interface().(*lists)
	require.Len(t, p.l.Vars, 2)
	require.Equal(t, p.l.Fasts, p.l.Pushed)
	src.A.n, src.B[0].n = 5, 6
	require.Equal(t, p.l.Fasts, p.compare(p.l.All()))
	var keys [MaxFast]uint32
	p.l.Keys(p.shadow, keys[:])
	require.Equal(t, [MaxFast]uint32{5, 6}, keys)
	one := newPair(t, reflect.TypeFor[struct {
		A toyList `net:""`
	}]())
	one.src.Interface().(*struct {
		A toyList `net:""`
	}).A.n = 7
	one.compare(1)
	keys = [MaxFast]uint32{}
	one.l.Keys(one.shadow, keys[:])
	require.Equal(t, [MaxFast]uint32{7}, keys, "and no more")
	w := p.write(2, &Base{Keys: [MaxFast]uint32{3, 4}})
	whole := bitio.NewReader(w.Bytes(), w.Len())
	require.EqualValues(t, 2*32, whole.ReadBits(fastLength))
	require.EqualValues(t, 6, whole.ReadUint32())
	require.EqualValues(t, 4, whole.ReadUint32(), "the version that the peer has")
	for i, want := range []bool{true, false} {
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.Equal(t, want, p.remote.ReadUnit(r, 2, nil, nil, p.l.Object(p.dst.UnsafePointer())), "%d", i)
		require.Zero(t, r.Remaining())
	}
	require.Equal(t, 6, dst.B[0].n)
	r := bitio.NewReader(w.Bytes(), w.Len())
	require.False(t, p.remote.ReadUnit(r, 2, nil, nil, Object{}))
	require.Zero(t, r.Remaining())
	p.l.Tell(p.dst.UnsafePointer(), p.l.FieldMask("B"), true)
	p.l.Tell(p.dst.UnsafePointer(), p.l.All(), false)
	require.Equal(t, []int{0, 1}, []int{dst.A.told, dst.B[0].told})
	_, err := Build(reflect.TypeFor[struct {
		L []toyList `net:""`
	}]())
	require.ErrorIs(t, err, ErrKind)
}
