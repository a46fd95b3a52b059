package channel

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestPacketsAreNotKept: what waits for its turn or for its other parts keeps nothing of the packet that it came in, which would be memory that nobody counts.
func TestPacketsAreNotKept(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	s.accepts(header(3, 1, stubGame, opening), "")
	part := func(h *bunch.Header) { h.Partial, h.PartialInitial = true, true }
	var packets []weak.Pointer[byte]
	for _, h := range []bunch.Header{
		header(1, 3, stubGame, nil),
		header(1, 4, stubGame, part),
		header(3, 2, stubGame, part),
		header(5, 0, stubGame, func(h *bunch.Header) { part(h); h.Reliable, h.Open = false, true }),
	} {
		packet := make([]byte, 1<<16)
		packets = append(packets, weak.Make(&packet[0]))
		in := &bunch.In{Header: h, PacketID: 10}
		in.Bits = 16
		in.Data.Reset(packet, 8*len(packet))
		nak, err := s.m.ReceivedBunch(in)
		require.NoError(t, err)
		require.False(t, nak)
	}
	runtime.GC()
	for i, p := range packets {
		require.Nil(t, p.Value(), "%d", i)
	}
	require.Equal(t, 2, s.table.Channel(1).NumInRec())
	require.True(t, s.table.Channel(3).rare.assembly.Active())
	require.True(t, s.table.Channel(5).rare.assembly.Active())
}
