package handler

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

var errTag = errors.New("wrong tag")

// tag is a component with a prefix of a few bits.
type tag struct {
	value uint64
	bits  int
}

func (t tag) ReservedBits() int           { return t.bits }
func (t tag) WritePrefix(w *bitio.Writer) { w.WriteBits(t.value, t.bits) }
func (t tag) ReadPrefix(r *bitio.Reader) error {
	if r.ReadBits(t.bits) != t.value {
		return errTag
	}
	return nil
}

func TestChain(t *testing.T) {
	c := NewChain(tag{5, 3}, tag{1, 2}, tag{0x155, 9})
	require.Equal(t, 15, c.ReservedBits())
	for content := range 40 {
		w := bitio.NewWriter(make([]byte, 16))
		c.Begin(w)
		for i := range content {
			w.WriteBool(i%3 == 0)
		}
		c.End(w)
		r, err := c.Incoming(w.Bytes())
		require.NoError(t, err)
		require.Equal(t, content, r.Remaining())
		for i := range content {
			require.Equal(t, i%3 == 0, r.ReadBool())
		}
		_, err = NewChain(tag{4, 3}).Incoming(w.Bytes())
		require.ErrorIs(t, err, errTag)
	}
}

func TestEnds(t *testing.T) {
	c := NewChain(tag{0, 20})
	_, err := c.Incoming(nil)
	require.ErrorIs(t, err, ErrZeroSize)
	_, err = c.Incoming([]byte{1, 0})
	require.ErrorIs(t, err, ErrZeroLastByte)
	_, err = c.Incoming([]byte{0, 1})
	require.ErrorIs(t, err, bitio.ErrShort, "no room for the prefix")
	require.Equal(t, 1, NewChain().ReservedBits())
}

func TestAllocs(t *testing.T) {
	c := NewChain(tag{5, 3})
	buf := make([]byte, 64)
	var w bitio.Writer
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w.Reset(buf)
		c.Begin(&w)
		w.WriteUint64(7)
		c.End(&w)
		if r, err := c.Incoming(w.Bytes()); err != nil || r.ReadUint64() != 7 {
			t.Error(err)
		}
	}))
}

func FuzzIncoming(f *testing.F) {
	f.Add([]byte{5, 1})
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := NewChain(tag{5, 3}).Incoming(p)
		if err == nil && r.Remaining() > len(p)*8-4 {
			t.Fatalf("%d bits of %d bytes", r.Remaining(), len(p))
		}
	})
}
