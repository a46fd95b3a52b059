package bitio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStringBytes(t *testing.T) {
	cases := []struct {
		s    string
		want []byte
	}{
		{"", []byte{0, 0, 0, 0}},
		{"a", []byte{2, 0, 0, 0, 'a', 0}},
		{"ab", []byte{3, 0, 0, 0, 'a', 'b', 0}},
		{"é", []byte{0xfe, 0xff, 0xff, 0xff, 0xe9, 0, 0, 0}},
		{"a世", []byte{0xfd, 0xff, 0xff, 0xff, 'a', 0, 0x16, 0x4e, 0, 0}},
		{"😀", []byte{0xfd, 0xff, 0xff, 0xff, 0x3d, 0xd8, 0x00, 0xde, 0, 0}},
	}
	for _, c := range cases {
		for lead := range 8 {
			w := NewWriter(make([]byte, 32))
			w.WriteBits(0, lead)
			w.WriteString(c.s)
			require.NoError(t, w.Err())
			require.Equal(t, lead+len(c.want)*8, w.Len(), c.s)
			r := NewReader(w.Bytes(), w.Len())
			r.Skip(lead)
			got := make([]byte, len(c.want))
			r.ReadBytes(got)
			require.Equal(t, c.want, got, c.s)

			r.Reset(w.Bytes(), w.Len())
			r.Skip(lead)
			require.Equal(t, c.s, r.ReadString(8))
			require.NoError(t, r.Err())
			require.Zero(t, r.Remaining())
			checkPrefixes(t, w, lead)
		}
	}
}

// checkPrefixes reads the string that ends w out of fewer bits than it has.
func checkPrefixes(t *testing.T, w *Writer, lead int) {
	for n := lead; n < w.Len(); n++ {
		r := NewReader(w.Bytes(), n)
		r.Skip(lead)
		require.Empty(t, r.ReadString(100))
		require.ErrorIs(t, r.Err(), ErrShort)
	}
}

func TestStringInvalid(t *testing.T) {
	w := NewWriter(make([]byte, 64))
	w.WriteString("a\xffb")
	r := NewReader(w.Bytes(), w.Len())
	require.Equal(t, "a\ufffdb", r.ReadString(10), "no UTF-8")

	cases := []struct {
		name string
		in   []byte
		want string
		err  error
	}{
		{"Latin-1", []byte{3, 0, 0, 0, 0xe9, 0xff, 0}, "éÿ", nil},
		{"only a NUL", []byte{1, 0, 0, 0, 0}, "", nil},
		{"only a wide NUL", []byte{0xff, 0xff, 0xff, 0xff, 0, 0}, "", nil},
		{"half a pair", []byte{0xfe, 0xff, 0xff, 0xff, 0x3d, 0xd8, 0, 0}, "\ufffd", nil},
		{"no NUL", []byte{2, 0, 0, 0, 'a', 'b'}, "", ErrFormat},
		{"NUL within", []byte{3, 0, 0, 0, 'a', 0, 0}, "", ErrFormat},
		{"ten and one", []byte{12, 0, 0, 0}, "", ErrFormat},
		{"wide ten and one", []byte{0xf4, 0xff, 0xff, 0xff}, "", ErrFormat},
		{"not there", []byte{11, 0, 0, 0, 'a'}, "", ErrShort},
		{"largest", []byte{0xff, 0xff, 0xff, 0x7f}, "", ErrFormat},
		{"most negative", []byte{0, 0, 0, 0x80}, "", ErrFormat},
	}
	for _, c := range cases {
		r := NewReader(c.in, len(c.in)*8)
		require.Equal(t, c.want, r.ReadString(10), c.name)
		require.ErrorIs(t, r.Err(), c.err, c.name)
	}
}

// A string that doesn't fit leaves an error, and nothing after a rollback.
func TestStringOverflow(t *testing.T) {
	for _, s := range []string{strings.Repeat("x", 50), strings.Repeat("ü", 30)} {
		w := NewWriter(make([]byte, 20))
		w.WriteUint8(7)
		m := w.Mark()
		w.WriteString(s)
		require.ErrorIs(t, w.Err(), ErrOverflow)
		w.Rollback(m)
		require.Equal(t, []byte{7}, w.Bytes())
	}
}

// A count that promises more than there is must not cost memory.
func TestStringMemory(t *testing.T) {
	in := append([]byte{0, 0, 0, 0x40}, make([]byte, 100)...)
	got := testing.AllocsPerRun(100, func() {
		var r Reader
		r.Reset(in, len(in)*8)
		r.ReadString(1 << 30)
		if r.Err() == nil {
			t.Fatal("read a gigabyte")
		}
	})
	require.Zero(t, got)
}

func TestPrintable(t *testing.T) {
	require.Equal(t, "????\ufffda é 語", Printable("\x1b\u202e\u2028\u200b\xffa é 語"))
	require.Equal(t, "a?b", Printable("a\nb"))
}
