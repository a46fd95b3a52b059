package mailbox

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestInboxBound: what waits is bounded in datagrams and in bytes, of all and of one, and memory is used again.
func TestInboxBound(t *testing.T) {
	b := NewInbox(10, 3000)
	one, other := NewSource(netip.AddrPort{}, 4), NewSource(netip.AddrPort{}, 100)
	put := func(from *Source, n int) bool { return b.Put(from, b.Buffer()[:n]) }
	for i := range 6 {
		require.Equal(t, i < 4, put(&one, 10), i)
	}
	for i := range 8 {
		require.Equal(t, i < 6, put(&other, 10), i)
	}
	in := make([]udp.Message, 20)
	for i := range in {
		in[i].Buf = make([]byte, MaxDatagram)
	}
	n, err := b.Reader().TryReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, 10, n)
	for i := range 4 {
		require.Equal(t, i < 2, put(&other, 1400), i)
	}
	n, err = b.Reader().TryReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		put(&other, 100)
		if n, err := b.Reader().TryReadBatch(in); n != 1 || err != nil {
			t.Error(n, err)
		}
	}))
}

// TestInboxLeavesRoom: however many sources fill it, at once or one after another, with small datagrams or large ones, one that has little unread has room.
func TestInboxLeavesRoom(t *testing.T) {
	for _, size := range []int{1, 200, MaxDatagram} {
		for _, inTurn := range []bool{false, true} {
			for _, sources := range []int{1, 16, 24, 40, 60} {
				b := NewInbox(4096, 4<<20)
				many := make([]Source, sources)
				for i := range many {
					many[i] = NewSource(netip.AddrPort{}, 256)
				}
				for i := range 256 * sources {
					at := i % sources
					if inTurn {
						at = i / 256
					}
					b.Put(&many[at], b.Buffer()[:size])
				}
				one := NewSource(netip.AddrPort{}, 256)
				for range few {
					require.True(t, b.Put(&one, b.Buffer()[:100]), "%d in turn %v", sources, inTurn)
				}
			}
		}
	}
}

// TestOutboxBound: the oldest make room, in datagrams and in bytes, and memory is used again.
func TestOutboxBound(t *testing.T) {
	o := NewOutbox(1000)
	require.Zero(t, o.Push(make([]byte, 600)))
	require.Equal(t, 1, o.Push(make([]byte, 500)))
	require.Zero(t, o.Push(make([]byte, 400)))
	require.Equal(t, 2, o.Push(make([]byte, 2000)), "one that is larger than the queue waits alone")
	require.Len(t, o.Pop(nil), 2000)
	require.Nil(t, o.Pop(nil))
	dropped := 0
	for range maxOut + 5 {
		dropped += o.Push([]byte{1})
	}
	require.Equal(t, 5, dropped)
	var room []byte
	for range maxOut {
		room = o.Pop(room)
		require.NotNil(t, room)
	}
	require.Nil(t, o.Pop(room))
	p := make([]byte, 100)
	for range 2 * maxOut { // each buffer once
		o.Push(p)
		room = o.Pop(room)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		o.Push(p)
		room = o.Pop(room)
	}))
}
