package channel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestIndexWorksAfterIgnoredChannel: what one end ignores, as it doesn't know its type or the peer may not open it, doesn't hold
// up the next channel of its index.
func TestIndexWorksAfterIgnoredChannel(t *testing.T) {
	for _, name := range []bunch.Name{{Index: 999}, bunch.Actor} {
		w, l := newWire(t, true, nil)
		h := reliable(0, 1, bunch.Control)
		h.Open = true
		_, err := w.receive(1, h, "open")
		require.NoError(t, err)
		for seq := 1; seq <= 3; seq++ {
			h := reliable(1, seq, name)
			h.Open, h.Close = seq == 1, seq == 3
			nak, err := w.receive(int64(1+seq), h, "ignored")
			require.NoError(t, err)
			require.False(t, nak)
		}
		require.Nil(t, w.table.Channel(1))
		h = reliable(1, 4, game)
		h.Open = true
		nak, err := w.receive(5, h, "the next channel")
		require.NoError(t, err)
		require.False(t, nak)
		require.Equal(t, []string{"open", "the next channel"}, l.bunches, "after %v", name)
	}
}

// TestNothingBeforeTheControlChannel: a part of the control channel's open, or what follows it, is not its open: no other channel is
// accepted before the game's control channel has its handler.
func TestNothingBeforeTheControlChannel(t *testing.T) {
	part := bunch.Header{Name: bunch.Control, Open: true, Partial: true, PartialInitial: true}
	reliablePart := reliable(0, 1, bunch.Control)
	reliablePart.Open, reliablePart.Partial, reliablePart.PartialInitial = true, true, true
	for name, first := range map[string]bunch.Header{"unreliable part": part, "reliable part": reliablePart, "early": reliable(0, 2, bunch.Control)} {
		w, l := newWire(t, true, nil)
		_, err := w.receive(1, first, "x")
		require.NoError(t, err, name)
		h := reliable(1, 1, game)
		h.Open = true
		nak, err := w.receive(2, h, "too early")
		require.NoError(t, err, name)
		require.True(t, nak, name)
		require.Empty(t, l.bunches, name)
	}
}
