package bitio

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestZeroValues(t *testing.T) {
	var w Writer
	require.Zero(t, w.Free())
	require.Empty(t, w.Bytes())
	w.WriteBytes(nil)
	require.NoError(t, w.Err())
	w.WriteBool(true)
	require.ErrorIs(t, w.Err(), ErrOverflow)

	var r Reader
	require.Zero(t, r.Remaining())
	require.Zero(t, r.ReadBits(0))
	require.NoError(t, r.Err())
	require.False(t, r.ReadBool())
	require.ErrorIs(t, r.Err(), ErrShort)
}

// What a caller may get wrong is an error, at the extremes of int too.
func TestWriterMisuse(t *testing.T) {
	src := make([]byte, 8)
	cases := map[string]struct {
		do   func(w *Writer)
		want error
	}{
		"too wide":           {func(w *Writer) { w.WriteBits(0, 65) }, ErrOverflow},
		"negative width":     {func(w *Writer) { w.WriteBits(0, -1) }, ErrOverflow},
		"int at its limit":   {func(w *Writer) { w.WriteInt(15, 15) }, ErrValue},
		"int without values": {func(w *Writer) { w.WriteInt(0, 0) }, ErrValue},
		"NUL in a string":    {func(w *Writer) { w.WriteString("a\x00b") }, ErrValue},
		"patch ahead":        {func(w *Writer) { w.PatchBits(0, 0, 9) }, ErrOverflow},
		"patch across":       {func(w *Writer) { w.PatchBits(4, 0, 5) }, ErrOverflow},
		"patch before":       {func(w *Writer) { w.PatchBits(-1, 0, 1) }, ErrOverflow},
		"patch far ahead":    {func(w *Writer) { w.PatchBits(math.MaxInt, 0, 1) }, ErrOverflow},
		"patch too wide":     {func(w *Writer) { w.PatchBits(0, 0, 65) }, ErrOverflow},
		"patch negative":     {func(w *Writer) { w.PatchBits(0, 0, -1) }, ErrOverflow},
		"copy too much":      {func(w *Writer) { w.WriteBitsFrom(src, 0, 65) }, ErrOverflow},
		"copy from outside":  {func(w *Writer) { w.WriteBitsFrom(src, 100, 0) }, ErrOverflow},
		"copy from far":      {func(w *Writer) { w.WriteBitsFrom(src, math.MaxInt, 1) }, ErrOverflow},
		"copy from before":   {func(w *Writer) { w.WriteBitsFrom(src, -1, 1) }, ErrOverflow},
		"copy nothing twice": {func(w *Writer) { w.WriteBitsFrom(src, 0, -1) }, ErrOverflow},
	}
	for name, c := range cases {
		w := NewWriter(make([]byte, 100))
		w.WriteUint8(1)
		c.do(w)
		require.ErrorIs(t, w.Err(), c.want, name)
		require.Equal(t, 8, w.Len(), name)
	}
}

func TestReaderMisuse(t *testing.T) {
	cases := map[string]func(r *Reader){
		"too wide":       func(r *Reader) { r.ReadBits(65) },
		"negative width": func(r *Reader) { r.ReadBits(-1) },
		"skip back":      func(r *Reader) { r.Skip(-1) },
		"skip far":       func(r *Reader) { r.Skip(math.MaxInt) },
		"sub negative":   func(r *Reader) { r.Sub(-1) },
		"sub far":        func(r *Reader) { r.Sub(math.MaxInt) },
		"small dst":      func(r *Reader) { r.ReadBitsTo(make([]byte, 1), 9) },
		"negative to":    func(r *Reader) { r.ReadBitsTo(make([]byte, 1), -1) },
	}
	for name, do := range cases {
		r := NewReader(make([]byte, 100), 800)
		do(r)
		require.ErrorIs(t, r.Err(), ErrShort, name)
		require.Zero(t, r.Pos(), name)
	}
	require.Equal(t, 8, NewReader(make([]byte, 1), 1000).Remaining(), "no more bits than bytes")
	require.Zero(t, NewReader(make([]byte, 1), -5).Remaining())
}

// The first error stays, whatever comes after.
func TestErrorsAreSticky(t *testing.T) {
	w := NewWriter(make([]byte, 1))
	w.WriteInt(9, 3)
	w.WriteUint64(0)
	require.ErrorIs(t, w.Err(), ErrValue)
	require.Zero(t, w.Len())

	r := NewReader([]byte{0xff}, 8)
	r.Fail(ErrFormat)
	r.Fail(ErrShort)
	r.Skip(100)
	require.ErrorIs(t, r.Err(), ErrFormat)
	require.Zero(t, r.ReadInt(100))
	r.Reset([]byte{0xff}, 8)
	require.NoError(t, r.Err())
	require.Equal(t, uint8(0xff), r.ReadUint8())
}

func TestIntPackedLimits(t *testing.T) {
	cases := []struct {
		name string
		in   []byte
		want uint64
		err  error
		wide bool
	}{
		{name: "largest", in: []byte{0xff, 0xff, 0xff, 0xff, 0x1e}, want: math.MaxUint32},
		{name: "33 bits", in: []byte{0xff, 0xff, 0xff, 0xff, 0x3e}, err: ErrFormat},
		{name: "six groups", in: []byte{1, 1, 1, 1, 1, 0}, err: ErrFormat},
		{name: "no end", in: []byte{1, 1}, err: ErrShort},
		{name: "cut in the last group", in: []byte{0xff, 0xff, 0xff, 0xff}, err: ErrShort},
		{name: "zero the long way", in: []byte{1, 1, 1, 1, 0}},
		{name: "largest of 64", in: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, want: math.MaxUint64, wide: true},
		{name: "65 bits", in: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x04}, err: ErrFormat, wide: true},
		{name: "eleven groups", in: []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, err: ErrFormat, wide: true},
	}
	for _, c := range cases {
		r := NewReader(c.in, len(c.in)*8)
		var got uint64
		if c.wide {
			got = r.ReadIntPacked64()
		} else {
			got = uint64(r.ReadIntPacked())
		}
		require.ErrorIs(t, r.Err(), c.err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

func TestStripTerminator(t *testing.T) {
	cases := []struct {
		name       string
		in         []byte
		bits, left int
		err        error
	}{
		{"a whole byte of padding", []byte{0xff, 0x01}, 16, 8, nil},
		{"no padding", []byte{0x80}, 8, 7, nil},
		{"nothing else", []byte{0x01}, 8, 0, nil},
		{"zero last byte", []byte{0xff, 0x00}, 16, 0, ErrFormat},
		{"eight zeros at an odd end", []byte{0x08, 0x00}, 12, 0, ErrFormat},
		{"seven zeros at an odd end", []byte{0x10, 0x00}, 12, 4, nil},
		{"empty", nil, 0, 0, ErrFormat},
	}
	for _, c := range cases {
		r := NewReader(c.in, c.bits)
		r.StripTerminator()
		require.ErrorIs(t, r.Err(), c.err, c.name)
		require.Equal(t, c.left, r.Remaining(), c.name)
	}
	r := NewReader([]byte{0x0f}, 8)
	r.Skip(4) // the ones are read already
	r.StripTerminator()
	require.ErrorIs(t, r.Err(), ErrFormat)
}

func TestLimits(t *testing.T) {
	buf := make([]byte, 4)
	var w Writer
	w.ResetBits(buf, 10)
	w.WriteBits(0, 10)
	require.NoError(t, w.Err())
	require.Zero(t, w.Free())
	w.SetLimit(12)
	require.Equal(t, 2, w.Free())
	w.SetLimit(1) // not below what is written
	require.Zero(t, w.Free())
	w.SetLimit(1000)
	require.Equal(t, 22, w.Free())
	m := w.Mark()
	w.WriteBits(0, 23)
	require.ErrorIs(t, w.Err(), ErrOverflow)
	w.SetLimit(1000)
	require.ErrorIs(t, w.Err(), ErrOverflow, "a limit doesn't mend an error")
	require.Zero(t, w.Free())
	w.Rollback(m)
	w.WriteBits(0, 22)
	require.NoError(t, w.Err())
	w.ResetBits(buf, 1000)
	require.Equal(t, 32, w.Free())
	w.ResetBits(buf, -1)
	require.Zero(t, w.Free())
}
