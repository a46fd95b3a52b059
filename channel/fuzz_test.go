package channel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// FuzzTable gives a server's table arbitrary bunches, each of 8 bytes that say what it is and as much payload as they say, and acks and
// naks what it sends. Reliable ones come in order and once, and nothing outgrows its bound.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0x03, 0, 253, 1, 4, 0, 0, 'o', 'p', 'e', 'n', 1, 0x03, 1, 253, 1, 2, 0, 0, 'h', 'i', 1, 0x05, 1, 254, 1, 0, 0, 0})
	f.Add([]byte{1, 0x13, 1, 253, 1, 3, 0, 0, 1, 2, 3, 1, 0x31, 1, 254, 1, 3, 0, 0, 4, 5, 6, 2, 0xff, 9, 9, 9, 0, 9, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		w, l := newWire(t, true, func(c *channel.Config) { c.MaxChannels = 64; c.ReliableBuffer = 16 })
		for id := int64(0); len(script) >= 8 && w.err == nil; id++ {
			head := script[:8]
			n := min(int(head[5]), len(script)-8)
			payload := script[8 : 8+n]
			script = script[8+n:]
			h := bunch.Header{ChIndex: uint32(head[0]), Reliable: head[1]&1 != 0, Open: head[1]&2 != 0, Close: head[1]&4 != 0, Partial: head[1]&16 != 0,
				PartialInitial: head[1]&32 != 0, PartialFinal: head[1]&64 != 0, WireSeq: uint16(head[3]) | uint16(head[4]&3)<<8}
			h.Name = []bunch.Name{bunch.Control, game, bunch.Actor, {Index: 77}}[head[2]&3]
			before := len(l.bunches)
			_, err := w.receive(id, h, string(payload))
			if err != nil {
				require.LessOrEqual(t, len(l.bunches)-before, 16)
				return
			}
			for _, s := range w.sent {
				if head[6]&1 != 0 {
					w.acked(s.ch, s.seq, s.id)
				} else {
					w.naked(s.ch, s.seq, s.id)
				}
			}
			w.sent = w.sent[:0]
			require.LessOrEqual(t, w.table.Len(), 64)
			for ch := range w.table.All {
				require.LessOrEqual(t, ch.NumInRec(), 16)
			}
		}
	})
}
