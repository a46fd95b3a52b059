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

// late hands over a reliable bunch of a packet that was repaired after its turn.
func (s *stub) late(h bunch.Header, data string) (nak bool) {
	in := &bunch.In{Header: h, PacketID: s.heard}
	in.Bits = len(data) * 8
	in.Data.Reset([]byte(data), in.Bits)
	nak, err := s.m.ReceivedLate(in)
	require.NoError(s.t, err)
	return nak
}

// TestWhatIsTakenLate: what fills a gap, and what is further ahead, up to maxLate; nothing twice, no index that can't be, and not the end of the
// connection.
func TestWhatIsTakenLate(t *testing.T) {
	newTable := func() *stub {
		return newStub(t, true, func(c *Config) {
			c.Protocol = bunch.Protocol{SequenceBits: 13}
			c.ReliableBuffer, c.MaxChannels = 4096, 100
		})
	}
	s := newTable()
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.accepts(header(3, 1, stubGame, opening), "1")
	s.accepts(header(3, 3, stubGame, nil), "3")
	require.False(t, s.late(header(3, 2, stubGame, nil), "2"))
	require.Equal(t, []string{"1", "2", "3"}, s.got)
	require.False(t, s.late(header(3, 2, stubGame, nil), "2"), "a duplicate")
	require.False(t, s.late(header(3, 3+maxLate, stubGame, nil), "as far ahead as may be"))
	require.Equal(t, 1, s.table.Channel(3).NumInRec())
	require.True(t, s.late(header(3, 4+maxLate, stubGame, nil), "too far"))
	require.True(t, s.late(header(100, 1, stubGame, opening), "no such index"))
	require.True(t, s.late(header(0, 2, bunch.Control, closes), ""))
	require.False(t, s.late(header(0, 2, bunch.Control, nil), "a word"))
	require.False(t, s.late(header(99, 1, stubGame, opening), "the last index"))
	require.Equal(t, []string{"1", "2", "3", "a word", "the last index"}, s.got)
	require.Zero(t, s.controlEnded)
}

// TestNothingLateOfFormerChannels: where sequences are short, or begin again with each channel of an index, what comes late may be of a channel
// that is gone, so it isn't taken.
func TestNothingLateOfFormerChannels(t *testing.T) {
	for _, edit := range []func(c *Config){
		func(c *Config) { c.RestartSequence = true },
		func(c *Config) { c.Protocol.SequenceBits = 12 },
	} {
		s := newStub(t, false, func(c *Config) {
			noControl(c)
			c.Protocol = bunch.Protocol{SequenceBits: 13}
			edit(c)
		})
		s.accepts(header(2, 1, stubGame, opening), "1")
		s.accepts(header(2, 2, stubGame, closes), "")
		s.got = nil
		s.accepts(header(2, 1, stubGame, opening), "1")
		require.True(t, s.late(header(2, 3, stubGame, nil), "of the former"))
		if ch := s.table.Channel(2); ch != nil {
			require.Zero(t, ch.NumInRec())
		}
	}
}

// TestNothingLateFromBeforeACloseWasSeen: an end that closes a channel doesn't wait for what the peer sent on it and lost. The peer fills those sequences with empty
// bunches when the index has its next channel, so what comes late of them is not of that one.
func TestNothingLateFromBeforeACloseWasSeen(t *testing.T) {
	for _, late := range []int64{19, 20, 21} {
		s := newStub(t, true, func(c *Config) {
			noControl(c)
			c.Protocol = bunch.Protocol{SequenceBits: 13}
		})
		former := s.open(stubGame)
		s.send(former, 1)
		s.accepts(header(former.Index(), 1, stubGame, nil), "1")
		require.NoError(t, former.Close(bunch.Destroyed))
		s.heard = 20
		s.ackFrom(0)
		ch := s.open(stubGame)
		require.Equal(t, former.Index(), ch.Index())
		s.heard, s.got = late, nil
		require.Equal(t, late <= 20, s.late(header(ch.Index(), 2, stubGame, nil), "2"))
		require.Equal(t, late > 20, len(s.got) == 1)
	}
}
