package channel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestOldCopiesBehindEarlyBunches: a packet that was held back brings copies as old as all that may be in flight. They are duplicates,
// however far the channel has moved on meanwhile through bunches that were taken before their packets' turn.
func TestOldCopiesBehindEarlyBunches(t *testing.T) {
	for bits, most := range map[uint8]int{0: 510, 11: 1022, 13: 4094} {
		s := newStub(t, false, func(c *Config) {
			noControl(c)
			c.Protocol = bunch.Protocol{SequenceBits: bits}
			c.ReliableBuffer = most + 2
		})
		mask := s.table.cfg.Protocol.Sequences().Mask()
		give := func(f func(*bunch.In) (bool, error), seq int) {
			data := []byte(fmt.Sprint(seq))
			in := &bunch.In{Header: header(2, seq, stubGame, nil)}
			in.WireSeq = uint16(100+seq) & uint16(mask)
			in.Open, in.Bits = seq == 1, len(data)*8
			in.Data = *bitio.NewReader(data, in.Bits)
			nak, err := f(in)
			require.NoError(t, err)
			require.False(t, nak)
		}
		for seq := 1; seq <= most; seq++ {
			give(s.m.ReceivedBunch, seq)
		}
		for seq := most + 1; seq <= 2*most; seq++ {
			give(s.m.ReceivedEarly, seq)
		}
		for seq := 1; seq <= 2*most; seq++ { // the copies, and then the packets that were taken early
			give(s.m.ReceivedBunch, seq)
		}
		s.m.InTurn()
		for seq := 2*most + 1; seq <= 5*most; seq++ {
			give(s.m.ReceivedBunch, seq)
		}
		require.Zero(t, s.table.Channel(2).NumInRec())
		require.Len(t, s.got, 5*most)
		for i, text := range s.got {
			require.Equal(t, fmt.Sprint(i+1), text)
		}
	}
}

// TestNewBehindEarlyBunches: what fills a hole in order, while bunches are taken early, leads the channel to the end of what was kept behind
// it; new bunches are told apart from there.
func TestNewBehindEarlyBunches(t *testing.T) {
	s := newStub(t, false, func(c *Config) {
		noControl(c)
		c.Protocol = bunch.Protocol{SequenceBits: 5}
		c.ReliableBuffer = 16
	})
	give := func(f func(*bunch.In) (bool, error), seqs ...int) {
		for _, seq := range seqs {
			in := &bunch.In{Header: header(2, seq, stubGame, nil)}
			in.WireSeq = uint16(100+seq) & 31
			in.Open, in.Bits = seq == 1, 8
			in.Data = *bitio.NewReader([]byte{byte(seq)}, in.Bits)
			nak, err := f(in)
			require.NoError(t, err)
			require.False(t, nak)
		}
	}
	give(s.m.ReceivedBunch, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
	give(s.m.ReceivedEarly, 3)
	give(s.m.ReceivedBunch, 3)
	give(s.m.ReceivedBunch, 19, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28)
	require.Len(t, s.got, 28)
	for i, text := range s.got {
		require.Equal(t, byte(i+1), text[0])
	}
}

// TestFewIndicesAreAhead: bunches of so many indices are taken early at the same time, and those of others wait.
func TestFewIndicesAreAhead(t *testing.T) {
	s := newStub(t, false, noControl)
	give := func(index uint32) bool {
		in := &bunch.In{Header: header(index, 1, stubGame, opening)}
		nak, err := s.m.ReceivedEarly(in)
		require.NoError(t, err)
		return !nak
	}
	for i := range uint32(maxAhead) {
		require.True(t, give(2+i))
	}
	require.False(t, give(1000))
	require.Nil(t, s.table.Channel(1000))
	require.True(t, give(2))
	s.m.InTurn()
	require.True(t, give(1000))
}
