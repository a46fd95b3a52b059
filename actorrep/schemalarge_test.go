package actorrep

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// wide is a class with many names.
type wide[T any] struct {
	Base
	N uint8 `net:""`
}

func registerWide[T any](w *World, rpcs int) error {
	names := RPCs{}
	for i := range rpcs {
		names[strings.Repeat("x", 200)+fmt.Sprint(i)] = MulticastRPC(func(Call, *wide[T], uint8) error { return nil })
	}
	return w.Register(fmt.Sprintf("%T", *new(T)), (*wide[T])(nil), names)
}

// wideWorld has 120 KiB of names.
func wideWorld(t testing.TB, w *World) *World {
	for _, register := range []func(*World, int) error{registerWide[[0]int], registerWide[[1]int], registerWide[[2]int], registerWide[[3]int],
		registerWide[[4]int], registerWide[[5]int], registerWide[[6]int], registerWide[[7]int], registerWide[[8]int], registerWide[[9]int]} {
		require.NoError(t, register(w, 60))
	}
	return w
}

// TestManyNames: classes that no bunch describes come in several, and a class that none could describe is refused.
func TestManyNames(t *testing.T) {
	server, client := wideWorld(t, NewServer(Config{})), wideWorld(t, NewClient(Config{}))
	require.ErrorIs(t, registerWide[[99]int](server, 100), ErrManyNames)
	data, n := server.encodeSchema()
	require.Greater(t, len(data), 100<<10)
	list, err := client.readSchema(bitio.NewReader(data[:len(data):len(data)], n))
	require.Error(t, err, "it begins with the message's kind")
	require.Nil(t, list)
	r := bitio.NewReader(data, n)
	r.ReadBits(wire.KindBits)
	list, err = client.readSchema(r)
	require.NoError(t, err)
	require.Len(t, list, 10)

	h := &replicationHandler{client: client.client}
	parts := 0
	for first := 0; first < 10; parts++ {
		last := server.schemaPart(first, classBytes)
		w := server.message()
		server.writeSchema(w, first, last)
		require.NoError(t, w.Err())
		require.Nil(t, client.client.schema)
		require.NoError(t, h.message(bitio.NewReader(w.Bytes(), w.Len())))
		first = last
	}
	require.Greater(t, parts, 5)
	require.Len(t, client.client.schema, 10)
}

// TestLyingSchemas: descriptions out of order, again, without classes, of other totals or without end are refused.
func TestLyingSchemas(t *testing.T) {
	server := wideWorld(t, NewServer(Config{}))
	part := func(total, first, count int) *bitio.Reader {
		w := bitio.NewWriter(make([]byte, bunch.MaxPayload))
		w.WriteBits(wire.Schema, wire.KindBits)
		for _, n := range []int{total, first, count} {
			w.WriteIntPacked(uint32(n))
		}
		for i := range count {
			c := server.classes[(first+i)%10]
			w.WriteBitsFrom(c.description, 0, c.descriptionBits)
		}
		return bitio.NewReader(w.Bytes(), w.Len())
	}
	for name, lies := range map[string][][3]int{
		"again":     {{10, 0, 1}, {10, 0, 1}},
		"skips":     {{10, 0, 1}, {10, 2, 1}},
		"none":      {{10, 0, 1}, {10, 1, 0}},
		"other":     {{10, 0, 1}, {11, 1, 1}},
		"too many":  {{maxClasses + 1, 0, 1}},
		"over":      {{2, 0, 1}, {2, 1, 2}},
		"same name": {{20, 0, 4}, {20, 4, 4}, {20, 8, 2}, {20, 10, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			client := wideWorld(t, NewClient(Config{}))
			h := &replicationHandler{client: client.client}
			for i, l := range lies {
				err := h.message(part(l[0], l[1], l[2]))
				if i < len(lies)-1 {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, errFormat)
				}
			}
			require.Nil(t, client.client.schema)
			require.Nil(t, h.read.list, "nothing is kept")
			require.ErrorIs(t, h.message(part(10, 0, 1)), errFormat, "it had its chance")
		})
	}
	t.Run("endless", func(t *testing.T) {
		client := wideWorld(t, NewClient(Config{}))
		h := &replicationHandler{client: client.client}
		long := strings.Repeat("y", 250)
		var err error
		n := 0
		for ; err == nil && n < maxClasses; n++ {
			w := bitio.NewWriter(make([]byte, bunch.MaxPayload))
			w.WriteBits(wire.Schema, wire.KindBits)
			for _, v := range []int{maxClasses, n, 1} {
				w.WriteIntPacked(uint32(v))
			}
			for _, s := range []string{fmt.Sprint(n)} {
				w.WriteIntPacked(uint32(len(s)))
				w.WriteBytes([]byte(s))
			}
			w.WriteIntPacked(0) // no units
			w.WriteIntPacked(100)
			for range 100 {
				w.WriteIntPacked(uint32(len(long)))
				w.WriteBytes([]byte(long))
				w.WriteBits(0, 35)
			}
			err = h.message(bitio.NewReader(w.Bytes(), w.Len()))
		}
		require.ErrorIs(t, err, errFormat)
		require.LessOrEqual(t, n, maxSchema/25000+2)
		require.Nil(t, client.client.schema)
	})
}

// TestRefusalText: what a client can't take is told whole, or how much of it isn't.
func TestRefusalText(t *testing.T) {
	require.Empty(t, refusal(nil))
	short := errors.New(strings.Repeat("z", maxRefusal))
	require.Equal(t, short.Error(), refusal(short))
	var errs []error
	for i := range 1000 {
		errs = append(errs, fmt.Errorf("class %d", i))
	}
	text := refusal(errors.Join(errs...))
	require.LessOrEqual(t, len(text), maxRefusal)
	lines := strings.Split(text, "\n")
	require.Equal(t, fmt.Sprintf("(%d lines more; the client's Config.Failed has all)", 1000-(len(lines)-1)), lines[len(lines)-1])
	require.Equal(t, fmt.Sprintf("class %d", len(lines)-2), lines[len(lines)-2])
}
