package handler

import (
	"errors"
	"math/bits"
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
		var r bitio.Reader
		err := c.Incoming(&r, w.Bytes())
		require.NoError(t, err)
		require.Equal(t, content, r.Remaining())
		for i := range content {
			require.Equal(t, i%3 == 0, r.ReadBool())
		}
		err = NewChain(tag{4, 3}).Incoming(new(bitio.Reader), w.Bytes())
		require.ErrorIs(t, err, errTag)
	}
}

func TestEnds(t *testing.T) {
	c := NewChain(tag{0, 20})
	err := c.Incoming(new(bitio.Reader), nil)
	require.ErrorIs(t, err, ErrZeroSize)
	err = c.Incoming(new(bitio.Reader), []byte{1, 0})
	require.ErrorIs(t, err, ErrZeroLastByte)
	err = c.Incoming(new(bitio.Reader), []byte{0, 1})
	require.ErrorIs(t, err, bitio.ErrShort, "no room for the prefix")
}

// counter counts the packets that pass, and takes no bits.
type counter struct{ out, in int }

func (*counter) ReservedBits() int                { return 0 }
func (c *counter) WritePrefix(*bitio.Writer)      { c.out++ }
func (c *counter) ReadPrefix(*bitio.Reader) error { c.in++; return nil }

// TestOrder: a component sees only packets that those before it let through.
func TestOrder(t *testing.T) {
	var before, after counter
	c := NewChain(&before, tag{6, 3}, &after)
	require.Equal(t, 4, c.ReservedBits())
	for _, value := range []uint64{6, 5, 6, 0} {
		w := bitio.NewWriter(make([]byte, 4))
		NewChain(tag{value, 3}).Begin(w)
		WriteTerminator(w)
		err := c.Incoming(new(bitio.Reader), w.Bytes())
		require.Equal(t, value == 6, err == nil)
	}
	w := bitio.NewWriter(make([]byte, 4))
	c.Begin(w)
	require.Equal(t, 3, w.Len())
	require.Equal(t, counter{1, 4}, before)
	require.Equal(t, counter{1, 2}, after)
}

// TestTwoTerminators: content's and chain's are adjacent, and each is taken off by who put it there.
func TestTwoTerminators(t *testing.T) {
	c := NewChain(tag{1, 2}, tag{1, 1})
	w := bitio.NewWriter(make([]byte, 4))
	c.Begin(w)
	w.WriteBits(0, 4)
	WriteTerminator(w)
	c.End(w)
	require.Equal(t, []byte{0b1_0000_1_01, 0b1}, w.Bytes())
	var r bitio.Reader
	err := c.Incoming(&r, w.Bytes())
	require.NoError(t, err)
	require.Equal(t, 5, r.Remaining())
	r.StripTerminator()
	require.Equal(t, 4, r.Remaining())
}

func TestNoComponents(t *testing.T) {
	for _, c := range []*Chain{nil, NewChain()} {
		require.Zero(t, c.ReservedBits())
		w := bitio.NewWriter(make([]byte, 4))
		c.Begin(w)
		c.End(w)
		require.Zero(t, w.Len())
		var r bitio.Reader
		err := c.Incoming(&r, []byte{1, 2})
		require.NoError(t, err)
		require.Equal(t, 16, r.Remaining())
	}
}

// TestTerminator tries every last byte, and every number of content bits.
func TestTerminator(t *testing.T) {
	_, err := StripTerminator(nil)
	require.ErrorIs(t, err, ErrZeroSize)
	for last := range 256 {
		n, err := StripTerminator([]byte{0xff, byte(last)})
		if last == 0 {
			require.ErrorIs(t, err, ErrZeroLastByte)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 8+bits.Len8(uint8(last))-1, n)
	}
	for content := range 65 {
		w := bitio.NewWriter(make([]byte, 16))
		w.WriteBits(0, content)
		WriteTerminator(w)
		n, err := StripTerminator(w.Bytes())
		require.NoError(t, err)
		require.Equal(t, content, n)
	}
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
		var r bitio.Reader
		if err := c.Incoming(&r, w.Bytes()); err != nil || r.ReadUint64() != 7 {
			t.Error(err)
		}
	}))
}

func FuzzIncoming(f *testing.F) {
	f.Add([]byte{5, 1})
	f.Fuzz(func(t *testing.T, p []byte) {
		var r bitio.Reader
		err := NewChain(tag{5, 3}).Incoming(&r, p)
		if err == nil && r.Remaining() > len(p)*8-4 {
			t.Fatalf("%d bits of %d bytes", r.Remaining(), len(p))
		}
	})
}
