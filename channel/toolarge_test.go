package channel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestWhatNeverFitsIsTold: a payload for which there is no room even when all is acked is ErrTooLarge, not one that waits for acks
// or, on the control channel, in its queue.
func TestWhatNeverFitsIsTold(t *testing.T) {
	small := func(c *Config) { c.Protocol.MaxPacket = 256; c.CloseOnOverflow = true }
	for _, v := range []struct {
		what  string
		edit  func(c *Config)
		bytes int // the most that fits
	}{
		{"all fits", nil, bunch.MaxPayload},
		{"255 parts of 185 bytes", small, 255 * 185},
		{"15 parts of 953 bytes", func(c *Config) { c.ReliableBuffer = 16 }, 15 * 953},
		{"half of MaxMemory", func(c *Config) {
			c.Protocol.SequenceBits, c.ReliableBuffer, c.Protocol.MaxPacket, c.MaxMemory = 11, 1024, 256, 256<<10
		}, (64 << 10) / (outCost + 1<<minClass) * 185}, // beside a buffer of 64 KiB for all of them
	} {
		for _, name := range []bunch.Name{bunch.Control, stubGame} {
			s := newStub(t, false, v.edit)
			ch := s.open(name)
			if s.table.cfg.MaxMemory == 256<<10 && name == stubGame { // a buffer of 32 KiB, or one of 64 KiB and few parts
				v.bytes = max(32<<10, (64<<10-controlReserve)/(outCost+1<<minClass)*185)
			}
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, v.bytes+1), Reliable: true})
			require.ErrorIs(t, err, ErrTooLarge, v.what)
			require.NotErrorIs(t, err, ErrReliableFull, v.what)
			require.NoError(t, s.err, "it is no overflow")
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, v.bytes), Reliable: true})
			require.NoError(t, err, v.what)
		}
	}

	s := newStub(t, false, small)
	ch := s.open(bunch.Control)
	for !ch.mustQueue(8) {
		s.send(ch, 1)
	}
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 255*185+1), Reliable: true})
	require.ErrorIs(t, err, ErrTooLarge)
	s.send(ch, 1)
	s.ackFrom(0)
	s.m.Tick(1)
	require.Empty(t, ch.queued(), "what comes behind it goes on")
}
