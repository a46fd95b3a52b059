package channel

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestUnfinishedBunchesAreGivenUp: an unreliable bunch of which a part is lost holds its memory, and its channel's index when it is all there
// is of a channel, no longer than until a bunch of a packet comes in which its next part can't be.
func TestUnfinishedBunchesAreGivenUp(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	before := s.table.Held()
	id := int64(10)
	part := func(h bunch.Header) {
		h.Partial = true
		nak, err := s.receiveIn(id, h, string(make([]byte, 1000)))
		require.NoError(t, err)
		require.False(t, nak)
	}
	other := func() {
		_, err := s.receiveIn(id, header(1, 0, stubGame, func(h *bunch.Header) { h.Reliable = false }), "x")
		require.NoError(t, err)
	}
	for i := range uint32(500) {
		part(bunch.Header{ChIndex: 3 + 2*i, Name: stubGame, Open: true, PartialInitial: true})
		part(bunch.Header{ChIndex: 1, PartialInitial: true})
		id++
		other()
		require.EqualValues(t, i, s.table.Counters.HalfOpen, "the next part may be in this packet")
		part(bunch.Header{ChIndex: 3 + 2*i})
		id += 2 // lost
		require.LessOrEqual(t, s.table.Len(), 2)
		require.LessOrEqual(t, s.table.Held(), before+(1000/pageSize+1)*pageCost+channelCost+2*2048)
	}
	other()
	require.EqualValues(t, 500, s.table.Counters.HalfOpen)
	require.Equal(t, 1, s.table.Len())
	require.Equal(t, (len(s.table.pages)+1)/2*pageCost+channelCost, s.table.Held(), "the sequences of odd indices stay")

	part(bunch.Header{ChIndex: 1, PartialInitial: true})
	id++
	part(bunch.Header{ChIndex: 1, PartialFinal: true})
	require.Len(t, s.got[len(s.got)-1], 2000, "what comes whole is delivered")
}

// TestUnfinishedWaitForLatePackets: bunches that are taken before their packets' turn say nothing of those in packets before.
func TestUnfinishedWaitForLatePackets(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	_, err := s.receiveIn(10, bunch.Header{ChIndex: 3, Name: stubGame, Open: true, Partial: true, PartialInitial: true}, "one ")
	require.NoError(t, err)
	in := &bunch.In{Header: header(1, 2, stubGame, nil), PacketID: 12}
	in.Bits = 8 * len("early")
	in.Data.Reset([]byte("early"), in.Bits)
	_, err = s.m.ReceivedEarly(in)
	require.NoError(t, err)
	_, err = s.receiveIn(11, bunch.Header{ChIndex: 3, Close: true, Partial: true, PartialFinal: true}, "two")
	require.NoError(t, err)
	require.Equal(t, []string{"early", "one two"}, s.got)
	require.Zero(t, s.table.Counters.HalfOpen)
}

// TestNoHoleInUnreliablePayloads: an unreliable payload of which a part found no room in memory isn't delivered without that part, when the last one is small, finds
// room, and came in the same packet.
func TestNoHoleInUnreliablePayloads(t *testing.T) {
	s := newStub(t, true, func(c *Config) { noControl(c); c.MaxMemory = minMaxMemory })
	s.accepts(header(1, 1, stubGame, opening), "")
	s.accepts(header(3, 1, stubGame, func(h *bunch.Header) { h.Open, h.Partial, h.PartialInitial = true, true, true }), "the one that is served")
	part := func(initial, final bool) bunch.Header {
		return bunch.Header{ChIndex: 1, Partial: true, PartialInitial: initial, PartialFinal: final}
	}
	_, err := s.receiveIn(5, part(true, false), strings.Repeat("a", 900))
	require.NoError(t, err)
	s.table.held += s.table.cfg.MaxMemory/2 - s.table.rest() - s.table.held - 200 // others fill the memory but for 200 bytes
	nak, err := s.receiveIn(6, part(false, false), strings.Repeat("b", 900))
	require.NoError(t, err)
	require.True(t, nak)
	_, err = s.receiveIn(6, part(false, true), "c")
	require.NoError(t, err)
	require.Empty(t, s.got, "of it")
}

// TestHalfSentTemporaryKeepsItsIndex: when only a part of a temporary channel's bunch could be sent, its index is taken until that part's fate is known, though
// its game gives it up: the peer may have the part when another type's open comes.
func TestHalfSentTemporaryKeepsItsIndex(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		s := newStub(t, true, nil)
		s.accepts(header(0, 1, bunch.Control, opening), "")
		s.room = 1
		ch, err := s.table.Open(stubGame, s)
		require.NoError(t, err)
		_, err = ch.SendTemporary(&bunch.Out{Data: make([]byte, 1500)})
		require.ErrorIs(t, err, ErrNotSent)
		require.Len(t, s.sent, 1)
		require.NoError(t, ch.Close(bunch.Relevancy))
		require.Empty(t, s.closed)
		_, err = ch.SendTemporary(&bunch.Out{Data: make([]byte, 10)})
		require.ErrorIs(t, err, ErrClosed)
		next, err := s.table.Open(stubGame, s)
		require.NoError(t, err)
		require.NotEqual(t, ch.Index(), next.Index())
		if arrives {
			s.ack(0)
		} else {
			s.lose(0)
		}
		require.Equal(t, []CloseReason{bunch.Relevancy}, s.closed)
		require.Nil(t, s.table.Channel(ch.Index()))
	}
}

// TestBunchWithoutPayload opens a channel and is nothing to its handler.
func TestBunchWithoutPayload(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.got = nil
	s.accepts(header(1, 1, stubGame, opening), "")
	require.True(t, s.table.Channel(1).OpenAcked())
	s.accepts(header(1, 2, stubGame, nil), "")
	require.Empty(t, s.got)
	s.accepts(header(1, 3, stubGame, nil), "x")
	require.Equal(t, []string{"x"}, s.got)
}

// TestUnfinishedAreNotedOnce: a peer that begins unreliable bunches again and again, and finishes them or not, on one channel or on many, has this end look
// through each of these channels once a packet, and remember nothing of those that are closed.
func TestUnfinishedAreNotedOnce(t *testing.T) {
	s := newStub(t, true, noControl)
	const channels = 20
	for i := range uint32(channels) {
		s.accepts(header(1+2*i, 1, stubGame, opening), "")
	}
	for id := int64(10); id < 60; id++ {
		s.m.ReceivedPacket(id)
		part := func(index uint32, open, final bool) {
			_, err := s.m.ReceivedBunch(&bunch.In{Header: bunch.Header{ChIndex: index, Name: stubGame, Open: open, Partial: true, PartialInitial: !final, PartialFinal: final}, PacketID: id})
			require.NoError(t, err)
		}
		for i := range uint32(10 * channels) {
			part(1+2*(i%channels), false, false)
			if i%2 == 0 { // half of the channels finish theirs
				part(1+2*(i%channels), false, true)
			}
			if i < channels {
				part(101+2*i, true, false) // temporary channels
			}
		}
		if id%2 == 0 { // one makes way for another channel
			_, err := s.receiveIn(id, header(101, 0, stubGame, func(h *bunch.Header) {
				h.Reliable, h.Open, h.Close, h.Partial, h.PartialInitial = false, true, true, true, true
			}), "")
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(s.table.strange.unfinished), 3*channels+1)
	}
	s.accepts(header(1, 2, stubGame, nil), "x") // long after
	_, err := s.receiveIn(100, header(1, 3, stubGame, nil), "x")
	require.NoError(t, err)
	require.Empty(t, s.table.strange.unfinished)
	require.Equal(t, channels, s.table.Len())
}

// TestRefusedPartsLeaveNothing: a channel of the peer's of which a part was refused for want of memory, and nothing is kept, holds nothing itself, at
// whatever part memory runs out.
func TestRefusedPartsLeaveNothing(t *testing.T) {
	refused := uint64(0)
	for level := 0; level < 12_000; level += 500 {
		for _, reliable := range []bool{false, true} {
			s := newStub(t, true, func(c *Config) { noControl(c); c.MaxMemory = 256 << 10 })
			s.accepts(header(1, 1, stubGame, opening), "")
			busy := s.table.Channel(1)
			for busy.Hold(1000) == nil {
			}
			busy.Release(level)
			s.table.slot(3)
			before, id, counters := s.table.Held(), int64(10), s.table.Counters
			for i := range 8 {
				h := bunch.Header{ChIndex: 3, Name: stubGame, Open: i == 0, Partial: true, PartialInitial: i == 0}
				if reliable {
					h.Reliable, h.WireSeq = true, uint16(100+2)
				}
				nak, err := s.receiveIn(id, h, string(make([]byte, 900)))
				require.NoError(t, err)
				if i == 0 {
					require.Equal(t, nak, s.table.Channel(3) == nil, "%d bytes", level)
				}
				if nak {
					require.True(t, i > 0 || s.table.Counters.ChannelsOpened == counters.ChannelsOpened && s.table.Counters.ChannelsClosed == counters.ChannelsClosed, "%d bytes", level)
					refused++
					break
				}
				id++
				if reliable {
					break
				}
			}
			if reliable {
				require.Equal(t, s.table.Channel(3) != nil, s.table.Held() > before)
				continue
			}
			id += 2
			_, err := s.receiveIn(id, header(1, 0, stubGame, func(h *bunch.Header) { h.Reliable = false }), "x")
			require.NoError(t, err)
			require.Nil(t, s.table.Channel(3), "%d bytes", level)
			require.Equal(t, before, s.table.Held(), "%d bytes", level)
		}
	}
	require.Positive(t, refused)
}
