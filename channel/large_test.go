package channel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// begun is the channels of which a first part was written, in that order.
func (s *stub) begun() (list []uint32) {
	for _, w := range s.sent {
		if w.h.PartialInitial {
			list = append(list, w.h.ChIndex)
		}
	}
	return list
}

// fourBegin is the begunRoom with which four payloads of the largest size may begin.
const fourBegin = 3 * 64 << 10

// TestPayloadsBeginInLine: of large payloads on many channels so many begin as fit, and the others in their order as those are acked; a small bunch
// waits for none but those before it on its own channel.
func TestPayloadsBeginInLine(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	const n, size = 30, 60_000 // each counts 64 KiB
	var chs []*Channel
	for range n {
		ch := s.open(stubGame)
		chs = append(chs, ch)
		s.send(ch, 1)
	}
	for i, ch := range chs {
		s.ack(i)
		s.send(ch, size)
		require.LessOrEqual(t, s.table.begun, (64<<10 + fourBegin))
	}
	require.Equal(t, []uint32{1, 3, 5, 7}, s.begun(), "256 KiB")
	before := len(s.sent)
	s.send(chs[0], 10)
	s.send(chs[5], 10)
	require.Len(t, s.sent, before+1, "behind the channel's own payload")
	require.Zero(t, s.table.Waiting(), "what waits for others' acks waits for no bandwidth")

	require.NoError(t, chs[4].Close(bunch.Destroyed))
	s.table.remove(chs[6], bunch.Destroyed) // in line: nobody waits for it
	for acked := n; len(s.begun()) < n-1; {
		require.Less(t, acked, len(s.sent), "someone is always under way")
		s.ack(acked)
		acked++
		s.m.Pump()
		require.LessOrEqual(t, s.table.begun, maxBegun)
	}
	var want []uint32
	for i := range uint32(n) {
		if i != 6 {
			want = append(want, 1+2*i)
		}
	}
	require.Equal(t, want, s.begun())
	require.Greater(t, s.table.begunRoom, (64<<10 + fourBegin), "what arrives makes room for more at once")
	s.ackFrom(n)
	require.Zero(t, s.table.begun)
	require.Zero(t, s.table.line.len()+s.table.line.waiting)
	require.Zero(t, s.table.Unacked())
}

// TestOneChannelBeginsAlways: a channel's payloads follow each other without waiting for acks while no other channel's wait.
func TestOneChannelBeginsAlways(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	ch := s.open(stubGame)
	for range 3 {
		s.send(ch, 65_536)
	}
	require.Len(t, s.begun(), 3)
	other := s.open(stubGame)
	s.send(other, 65_536)
	require.Equal(t, 2*65_536, s.table.begun, "they count once a channel: the peer joins one at a time")
}

// TestBegunFallsWithRefusals: the parts of payloads that are lost again and again bring down how many begin, to one.
func TestBegunFallsWithRefusals(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	chs := []*Channel{s.open(stubGame), s.open(stubGame), s.open(stubGame)}
	s.send(chs[0], 1)
	s.ack(0)
	s.send(chs[0], 60_000)
	parts := len(s.sent) - 1
	for n := 1; n <= refusedOften; n++ {
		from := len(s.sent) - parts
		for i := range parts {
			s.lose(from + i)
		}
		s.m.Pump()
		if n < refusedOften {
			require.Len(t, s.sent, from+2*parts)
		} else {
			require.Len(t, s.sent, from+parts+maxTurns, "until it is known what becomes of the first")
		}
		require.Equal(t, n == refusedOften, s.table.begunRoom < fourBegin, "the third time")
	}
	require.Zero(t, s.table.begunRoom)
	require.Equal(t, bufferSize(bunch.MaxPayload), s.table.mostBegun())
	s.send(chs[1], 2000)
	require.Len(t, s.begun(), 1+refusedOften, "none while one is under way")
	s.ackFrom(0)
	s.m.Pump()
	s.ackFrom(1 + refusedOften)
	require.Len(t, s.begun(), 2+refusedOften)
}

// TestOftenLostTakesTurns: a bunch that is lost for the third time doesn't hold up what was never sent: the peer may be refusing it.
func TestOftenLostTakesTurns(t *testing.T) {
	s := newStub(t, false, noControl)
	lost, other := s.open(stubGame), s.open(stubGame)
	s.send(lost, 1)
	s.ack(0)
	for range 4 {
		s.send(lost, 1)
	}
	carried := []int{1, 2, 3, 4}
	for n := 1; n <= refusedOften; n++ {
		s.slow = true
		for _, i := range carried {
			s.m.Naked(lost, s.sent[i].seq, int64(1001+i))
		}
		for range 4 {
			s.send(other, 2)
		}
		before := len(s.sent)
		s.slow = false
		s.m.Pump()
		var order []uint32
		carried = nil
		for i, w := range s.sent[before:] {
			order = append(order, w.h.ChIndex)
			if w.ch == lost {
				carried = append(carried, before+i)
			}
		}
		if n < refusedOften {
			require.Equal(t, []uint32{1, 1, 1, 1, 3, 3, 3, 3}, order)
		} else {
			require.Equal(t, []uint32{1, 3, 1, 3, 1, 3, 1, 3}, order)
		}
	}
	rec := lost.out.at(lost.out.first)
	for range 300 {
		i := len(s.sent) - 1
		for s.sent[i].seq != rec.seq || s.sent[i].ch != lost {
			i--
		}
		s.m.Naked(lost, rec.seq, int64(1001+i))
		s.m.Pump()
	}
	require.EqualValues(t, lostMost, rec.lost)
	h, _, _ := s.m.Copy(lost, rec.seq, 5)
	require.Nil(t, h, "no copy of it spoils other packets")
}

// TestOnePayloadIsAlwaysJoined: when parts of many payloads fill the memory for them, one goes on to its end whatever others hold, and then the next.
func TestOnePayloadIsAlwaysJoined(t *testing.T) {
	s := newStub(t, true, func(c *Config) { noControl(c); c.MaxMemory = minMaxMemory })
	half := s.table.cfg.MaxMemory / 2
	part := func(i, k int) (refused bool) {
		h := header(uint32(1+2*i), 1+k, stubGame, func(h *bunch.Header) {
			h.Open, h.Partial, h.PartialInitial, h.PartialFinal = k == 0, true, k == 0, k == 65
		})
		nak, err := s.receive(h, string(make([]byte, 980)))
		require.NoError(t, err)
		require.LessOrEqual(t, s.table.Held(), half)
		return nak
	}
	const n = 8
	var next [n]int
	for range 66 { // in turn, as senders do
		for i := range next {
			if next[i] < 65 && !part(i, next[i]) {
				next[i]++
			}
		}
	}
	require.Equal(t, 65, next[0], "the first is served")
	require.Less(t, next[1], 65)
	require.True(t, part(1, next[1]))
	ch := s.table.Channel(1)
	for err := error(nil); err == nil; err = ch.Hold(100) {
	}
	require.False(t, part(0, 65), "handlers leave room for it, too")
	ch.Release(1 << 30)
	for i := 1; i < n; i++ {
		for ; next[i] < 66; next[i]++ {
			require.False(t, part(i, next[i]), "part %d of %d", next[i], i)
		}
	}
	require.Len(t, s.got, n)
	require.Zero(t, s.table.joining)
}

// TestEarlyPartsCountAsJoined: the turn of parts that came early needs no more memory than they have.
func TestEarlyPartsCountAsJoined(t *testing.T) {
	s := newStub(t, true, func(c *Config) { noControl(c); c.MaxMemory = minMaxMemory })
	half := s.table.cfg.MaxMemory / 2
	var taken [8]int
	for i := range taken {
		s.accepts(header(uint32(1+2*i), 1, stubGame, opening), "x")
	}
	for k := 1; k < 60; k++ {
		for i := range taken {
			if taken[i] == k-1 {
				nak, err := s.receive(header(uint32(1+2*i), 2+k, stubGame, func(h *bunch.Header) { h.Partial = true }), string(make([]byte, 500+i)))
				require.NoError(t, err)
				if !nak {
					taken[i]++
				}
			}
		}
	}
	require.Greater(t, taken[0], 3)
	require.Less(t, taken[0], 59)
	joined := 0
	for i := range taken {
		nak, err := s.receive(header(uint32(1+2*i), 2, stubGame, func(h *bunch.Header) { h.Partial, h.PartialInitial = true, true }), "first")
		require.NoError(t, err)
		require.LessOrEqual(t, s.table.Held(), half)
		if !nak {
			joined++
			require.Zero(t, s.table.Channel(uint32(1+2*i)).early())
		}
	}
	require.Equal(t, len(taken), joined)
}

// TestHowMuchBegins: one payload of the largest size at first, and a quarter of half of MaxMemory and 1 MiB at most; one payload always may.
func TestHowMuchBegins(t *testing.T) {
	for memory, most := range map[int]int{256 << 10: 64 << 10, 1 << 20: 64 << 10, 64 << 20: 64 << 10} {
		s := newStub(t, false, func(c *Config) { noControl(c); c.MaxMemory = memory })
		require.Equal(t, most, s.table.mostBegun(), "%d", memory)
		for range 20 {
			ch := s.open(stubGame)
			s.send(ch, 1)
			s.ack(len(s.sent) - 1)
			if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 4000), Reliable: true}); err != nil {
				break
			}
		}
		require.Equal(t, min(20, most/4096), len(s.begun()), "each of 4000 bytes counts 4096")
		s.table.begunRoom = 1 << 30
		require.Equal(t, max(64<<10, min(memory/8, maxBegun)), s.table.mostBegun(), "%d", memory)
		(*Machine)(s.table).SetPeerMemory(1 << 20)
		require.Equal(t, min(max(64<<10, min(memory/8, maxBegun)), (448<<10-s.table.opened*openCost)/2), s.table.mostBegun(), "%d: what the peer has room for", memory)
		(*Machine)(s.table).SetPeerMemory(1)
		require.Equal(t, (64<<10-s.table.opened*openCost)/2, s.table.mostBegun(), "%d: the least that a peer may have", memory)
	}
	s := newStub(t, false, noControl)
	a := s.open(stubGame)
	require.True(t, s.table.begin(a, 1, 2))
	require.True(t, s.table.begin(a, 300<<10, 3), "the only one may be larger than all that begins")
	b := s.open(stubGame)
	require.False(t, s.table.begin(b, 1, 2))
	s.table.endBegun(a)
	require.True(t, s.table.begin(b, 1, 2))
	require.Equal(t, bufferSize(1), s.table.begun)
	require.EqualValues(t, 2, b.rare.begunEnd)
}

// TestBeginsOncePerPayload: a payload that waited for bandwidth begins with its first part, and its parts don't ask again; the next of its channel does.
func TestBeginsOncePerPayload(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	var chs []*Channel
	for range 7 {
		ch := s.open(stubGame)
		chs = append(chs, ch)
		s.send(ch, 1)
	}
	s.ackFrom(0)
	s.slow = true
	for _, ch := range chs {
		s.send(ch, 10) // so that the payload isn't the first to wait
		s.send(ch, 60_000)
		s.send(ch, 20)
	}
	require.Zero(t, s.table.begun, "none of it has its turn yet")
	s.slow = false
	s.m.Pump()
	require.Equal(t, []uint32{1, 3, 5, 7}, s.begun())
	require.Equal(t, (64<<10 + fourBegin), s.table.begun)
	require.Equal(t, 3, s.table.line.len())
	from := 7
	for n := len(s.sent); from < n; from++ {
		if s.sent[from].ch == chs[0] {
			s.ack(from)
		}
	}
	require.Equal(t, []uint32{1, 3, 5, 7}, s.begun())
	require.Equal(t, 1, s.table.line.len(), "the first two in line have begun: more may, as one has arrived")
	require.False(t, chs[5].inLine)
	require.True(t, chs[6].inLine)
	require.Positive(t, s.table.Waiting())
	s.send(chs[0], 30_000)
	require.True(t, chs[0].inLine, "behind those that wait")
	s.m.Pump()
	require.Equal(t, []uint32{1, 3, 5, 7, 9, 11}, s.begun())
	for i, w := range s.sent[from:] {
		require.True(t, w.ch != chs[6] || w.h.Bits == 80, "%d", i)
	}
}

// TestUnreliablePartsAreRefused: where memory is full, the parts of one payload are taken, reliable or not. Of a further one they are lost, and the packet counts as refused.
func TestUnreliablePartsAreRefused(t *testing.T) {
	s := newStub(t, true, func(c *Config) { noControl(c); c.MaxMemory = minMaxMemory })
	s.accepts(header(1, 1, stubGame, opening), "")
	s.accepts(header(3, 1, stubGame, opening), "")
	full := s.table.cfg.MaxMemory/2 - joinCost(bunch.MaxPayload)
	s.table.held = full
	first := func(h *bunch.Header) { h.Partial, h.PartialInitial = true, true }
	part := bunch.Header{ChIndex: 1, Partial: true, PartialInitial: true}
	refused := func(h bunch.Header, n int) {
		before := s.table.Counters
		nak, err := s.receive(h, string(make([]byte, n)))
		require.NoError(t, err)
		require.True(t, nak)
		require.Equal(t, before.MemoryFull+1, s.table.Counters.MemoryFull)
		require.Equal(t, before.Refused+1, s.table.Counters.Refused)
	}
	s.accepts(part, string(make([]byte, 500)))
	require.Equal(t, full+joinCost(500), s.table.held)
	require.Equal(t, joinCost(500), s.table.joining)
	refused(header(3, 2, stubGame, first), 500)
	s.accepts(bunch.Header{ChIndex: 1, Partial: true, PartialFinal: true}, string(make([]byte, 500)))
	require.Len(t, s.got, 1)
	require.Equal(t, full, s.table.held)

	s.accepts(header(3, 2, stubGame, first), "one")
	require.Same(t, s.table.Channel(3), s.table.served)
	refused(part, 500)
	s.table.held -= joinCost(500) - 1
	refused(part, 500)
	s.table.held--
	s.accepts(part, string(make([]byte, 500)))
}

// TestWhatPartsCount: what a payload counts covers its buffer, however it grows, and never more than the largest payload.
func TestWhatPartsCount(t *testing.T) {
	require.Equal(t, 2*1+32, joinCost(1))
	require.Equal(t, 2*1000+32, joinCost(1000))
	require.Equal(t, 65536, joinCost(40_000))
	require.Equal(t, 65536, joinCost(bunch.MaxPayload))
	for _, part := range []int{1, 31, 33, 500, 850} {
		s := newStub(t, true, noControl)
		for n := 1; n*part <= bunch.MaxPayload && n < 300; n++ {
			s.accepts(header(1, n, stubGame, func(h *bunch.Header) { h.Open, h.Partial, h.PartialInitial = n == 1, true, n == 1 }), string(make([]byte, part)))
			a := &s.table.Channel(1).rare.assembly
			require.LessOrEqual(t, a.Cap(), joinCost(n*part))
			require.Equal(t, bufferSize(a.Cap()), a.Cap(), "the pool's")
			require.Equal(t, joinCost(n*part), s.table.joining)
		}
	}
}

// TestLargestPayloadIsCharged: the buffer in which a payload is joined is never larger than what it counts, whatever the parts are.
func TestLargestPayloadIsCharged(t *testing.T) {
	for _, size := range []int{32, 64, 256, 512} {
		s := newStub(t, true, noControl)
		s.table.typeOf(stubGame).Accept = func(*Channel) Handler { return &measure{t: t} }
		n := bunch.MaxPayload / size
		for k := range n {
			s.accepts(header(1, 1+k, stubGame, func(h *bunch.Header) {
				h.WireSeq &= 1023
				h.Open, h.Partial, h.PartialInitial, h.PartialFinal = k == 0, true, k == 0, k == n-1
			}), string(make([]byte, size)))
			if ch := s.table.Channel(1); ch.rare != nil {
				require.LessOrEqual(t, ch.rare.assembly.Cap(), int(ch.rare.joining))
			}
		}
		require.Equal(t, 1, s.table.Channel(1).handler.(*measure).got)
	}
}

// measure looks at the largest payload while it has it.
type measure struct {
	Nop
	t   *testing.T
	got int
}

func (m *measure) ReceivedBunch(ch *Channel, in *bunch.In) {
	m.got++
	require.Equal(m.t, bunch.MaxPayload*8, in.Bits)
	require.Equal(m.t, bunch.MaxPayload, ch.rare.assembly.Cap())
	require.EqualValues(m.t, bunch.MaxPayload, ch.rare.joining)
}

// TestJoinedBuffersComeBack: the pool has them again when the payload is delivered, and when its channel goes.
func TestJoinedBuffersComeBack(t *testing.T) {
	s := newStub(t, true, noControl)
	p := s.table.cfg.Pool
	join := func(seq int, final bool) {
		for n := range 4 {
			s.accepts(header(1, seq+n, stubGame, func(h *bunch.Header) {
				h.Open, h.Partial, h.PartialInitial, h.PartialFinal = seq+n == 1, true, n == 0, final && n == 3
			}), string(make([]byte, 900)))
		}
	}
	join(1, true)
	unused := p.unused
	require.Positive(t, unused)
	require.Nil(t, s.table.Channel(1).rare)
	join(5, true)
	require.Equal(t, unused, p.unused, "the same ones were used again")
	join(9, false)
	require.Less(t, p.unused, unused)
	s.m.End()
	require.Zero(t, s.table.joining)
}

// TestWhoIsUnderWayGoesOn: a channel's next payload takes the place of its last one in the count, and its sequences are its own.
func TestWhoIsUnderWayGoesOn(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	a, b := s.open(stubGame), s.open(stubGame)
	s.send(a, 60_000)
	s.send(b, 60_000)
	third := s.open(stubGame)
	s.send(third, 60_000)
	require.Equal(t, a.out.next, a.rare.begunEnd)
	s.send(a, 60_000) // 256 KiB, were it counted anew
	s.send(b, 60_000)
	require.Len(t, s.begun(), 5)
	require.Equal(t, 3*65_536, s.table.begun)
	require.Equal(t, a.out.next, a.rare.begunEnd)
	s.ack(0)
	s.ack(1)
	require.Equal(t, 3*65_536, s.table.begun, "until all of it is acked")
	s.ackFrom(2)
	require.Zero(t, s.table.begun)
	require.Nil(t, a.rare, "lent for as long as it is needed")

	s = newStub(t, false, noControl)
	a = s.open(stubGame)
	s.send(a, 1)
	s.slow = true
	s.send(a, 5000)
	s.send(a, 5001)
	s.slow = false
	s.m.Pump()
	require.Equal(t, 8192, s.table.begun)
	require.Equal(t, a.out.next, a.rare.begunEnd)
	s.table.begun = 1 << 30 // of others
	s.send(a, 5002)
	require.Len(t, s.begun(), 2, "each payload asks")
	require.True(t, a.inLine)
}

// TestSmallPayloadsWaitInLine: one that would find room doesn't overtake those that wait.
func TestSmallPayloadsWaitInLine(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	for range 4 {
		s.send(s.open(stubGame), 60_000)
	}
	s.table.begun -= 4096 // there is room for a small one
	large, small, alone := s.open(stubGame), s.open(stubGame), s.open(stubGame)
	s.send(large, 60_000)
	s.send(small, 4000)
	require.True(t, small.inLine)
	s.slow = true
	s.send(alone, 1)
	s.send(alone, 4000)
	s.slow = false
	s.m.Pump()
	require.True(t, alone.inLine)
	require.Len(t, s.begun(), 4)
}

// TestLinesOfClosedChannels: what waits in line goes with its channel, and is forgotten when that is most of the line.
func TestLinesOfClosedChannels(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	for range 4 {
		s.send(s.open(stubGame), 60_000)
	}
	var waiting []*Channel
	for range 3 * maxStale {
		ch := s.open(stubGame)
		s.send(ch, 4000)
		waiting = append(waiting, ch)
	}
	require.Equal(t, 3*maxStale, s.table.line.len())
	for _, ch := range waiting[:2*maxStale+1] {
		s.table.remove(ch, bunch.Destroyed)
	}
	require.Less(t, s.table.line.len(), 3*maxStale)
	for _, ch := range waiting {
		s.table.remove(ch, bunch.Destroyed)
	}
	require.Zero(t, s.table.line.waiting)
	require.Equal(t, (64<<10 + fourBegin), s.table.begun)
	s.m.End()
	require.Zero(t, s.table.begun)
}

// TestControlNeverWaitsInLine: the control channel's payloads go out whatever has begun on others, and don't count.
func TestControlNeverWaitsInLine(t *testing.T) {
	s := newStub(t, false, nil)
	control := s.open(bunch.Control)
	s.send(control, 1)
	s.ackFrom(0)
	for range 5 {
		s.send(s.open(stubGame), 60_000)
	}
	begun := s.table.begun
	s.send(control, 5000)
	require.False(t, control.inLine)
	require.Equal(t, begun, s.table.begun)
	require.Zero(t, s.begun()[len(s.begun())-1])
}

// TestBytesOfBitsBegin: a payload's last bits are a byte.
func TestBytesOfBitsBegin(t *testing.T) {
	s := newStub(t, false, noControl)
	_, err := s.open(stubGame).SendBunch(&bunch.Out{Data: make([]byte, 4097), Bits: 4096*8 + 1, Reliable: true})
	require.NoError(t, err)
	require.Equal(t, 8192, s.table.begun)
}

// TestNobodyPassesThoseWhoWait: a bunch of another channel waits too, also when the bandwidth would allow it now.
func TestNobodyPassesThoseWhoWait(t *testing.T) {
	s := newStub(t, false, noControl)
	a, b := s.open(stubGame), s.open(stubGame)
	s.slow = true
	s.send(a, 1)
	s.slow = false
	s.send(b, 2)
	require.Empty(t, s.sent)
	s.m.Pump()
	require.Equal(t, a, s.sent[0].ch)
	require.Len(t, s.sent, 2)
}

// TestAllSeesEveryPage: channels of one end only, near and far.
func TestAllSeesEveryPage(t *testing.T) {
	for _, index := range []uint32{1, 2, 17, 33, 34, 1001} {
		s := newStub(t, true, noControl)
		s.accepts(header(index, 1, stubGame, opening), "")
		var seen []uint32
		for ch := range s.table.All {
			seen = append(seen, ch.index)
		}
		require.Equal(t, []uint32{index}, seen)
	}
}

// ender ends its channel while it has a payload, and has the next one begin.
type ender struct {
	Nop
	s    *stub
	bits int
	end  int
}

func (e *ender) ReceivedBunch(ch *Channel, in *bunch.In) {
	e.bits = in.Bits
	e.s.table.remove(ch, bunch.Destroyed)
	e.s.accepts(header(3, 1, stubGame, func(h *bunch.Header) { h.Open, h.Partial, h.PartialInitial = true, true, true }), "another")
	e.end = in.Bits
}

// TestPayloadOutlivesItsChannel: what a handler has in hand stays as it is when it ends the channel, and others receive.
func TestPayloadOutlivesItsChannel(t *testing.T) {
	s := newStub(t, true, noControl)
	e := &ender{s: s}
	s.table.typeOf(stubGame).Accept = func(*Channel) Handler { return e }
	for n := range 2 {
		s.accepts(header(1, 1+n, stubGame, func(h *bunch.Header) {
			h.Open, h.Partial, h.PartialInitial, h.PartialFinal = n == 0, true, n == 0, n == 1
		}), string(make([]byte, 800)))
	}
	require.Equal(t, 1600*8, e.bits)
	require.Equal(t, 1600*8, e.end)
}

// TestTickTrimsThePool: what nobody needed for two periods is forgotten, and what is left is counted.
func TestTickTrimsThePool(t *testing.T) {
	s := newStub(t, false, noControl)
	p := s.table.cfg.Pool
	var chs []*Channel
	for range 40 {
		ch := s.open(stubGame)
		for range 9 {
			s.send(ch, 100)
		}
		chs = append(chs, ch)
	}
	s.ackFrom(0)
	before := p.unused
	require.Equal(t, before, unusedBytes(p))
	for i := range 3 {
		s.m.Tick(time.Duration(i+1) * 2 * trimPeriod)
		require.Equal(t, unusedBytes(p), p.unused)
	}
	require.Less(t, p.unused, before/4)
	require.Len(t, chs, 40)
}

// unusedBytes counts what a pool has.
func unusedBytes(p *Pool) (n int) {
	for i := range p.free {
		n += len(p.free[i].items) * (1<<(minClass+i) + freeCost)
	}
	if r := p.recs; r != nil {
		for i := range ringClasses {
			n += len(r.rings[i].items) * (outRecSize<<i + freeCost)
		}
		n += len(r.early.items)*(earlySize+freeCost) + len(r.rare.items)*(rareSize+freeCost)
	}
	return n
}

// TestControlThatKeepsSomethingEarly: while a bunch that came before its turn is kept, the control channel repeats no open that is acked nor one that isn't
// its own, and what it queued holds no memory once it has left, nor counts.
func TestControlThatKeepsSomethingEarly(t *testing.T) {
	for _, server := range []bool{false, true} {
		s := newStub(t, server, func(c *Config) { c.ReliableBuffer = 4 })
		if server {
			s.accepts(header(0, 1, bunch.Control, opening), "")
		} else {
			s.send(s.open(bunch.Control), 1)
			s.ack(0)
		}
		control := s.table.Channel(0)
		s.accepts(header(0, 3, bunch.Control, nil), "early")
		for range 10 {
			s.send(control, 50)
		}
		require.Len(t, control.queued(), 7)
		n := len(s.sent)
		for i := range 10 {
			s.m.Tick(time.Duration(i) * time.Minute)
		}
		require.Len(t, s.sent, n)
		s.ack(n - 3)
		s.m.Tick(time.Hour)
		require.Len(t, s.sent, n+1)
		require.Len(t, control.queued(), 6)
		if server {
			s.m.End()
			require.Zero(t, s.table.heldOut)
			continue
		}
		for i := n - 2; i < len(s.sent); i++ {
			s.ack(i)
			s.m.Tick(time.Hour)
		}
		require.NotNil(t, control.rare)
		require.Nil(t, control.rare.queue)
		require.Zero(t, control.rare.keptSent)
		require.Zero(t, s.table.heldOut)
	}
}

// TestControlQueueComesBack: what waited for room on the control channel doesn't count when it has been sent, and an open that is acked isn't
// repeated.
func TestControlQueueComesBack(t *testing.T) {
	s := newStub(t, false, func(c *Config) { c.ReliableBuffer = 4 })
	control := s.open(bunch.Control)
	for range 10 {
		s.send(control, 50)
	}
	require.NotEmpty(t, control.queued())
	for i := 0; i < len(s.sent); i++ {
		s.ack(i)
		s.m.Tick(0)
	}
	require.Len(t, s.sent, 10)
	require.Zero(t, s.table.heldOut)
	s.send(control, 50)
	for range 5 {
		s.now += time.Second
		s.m.Tick(s.now)
	}
	require.Len(t, s.sent, 11)
	s.ack(10)
	s.m.End()
	require.Zero(t, s.table.heldOut)
}

// TestRefusedChannelsTakeTurns: of channels whose parts are refused each has its turn, however slowly they go out and however soon the news of a loss
// comes; and the one that is taken goes on at once.
func TestRefusedChannelsTakeTurns(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	chs := []*Channel{s.open(stubGame), s.open(stubGame), s.open(stubGame)}
	for i, ch := range chs {
		s.send(ch, 1)
		s.ack(i)
	}
	for _, ch := range chs {
		s.send(ch, 20_000)
	}
	lost := 3
	for range refusedOften {
		for to := len(s.sent); lost < to; lost++ {
			s.lose(lost)
		}
		s.m.Pump()
	}
	for to := len(s.sent); lost < to; lost++ {
		s.lose(lost)
	}
	turns := map[*Channel]int{}
	for range 60 { // one packet at a time, lost at once
		s.now += mostVain * time.Millisecond
		s.budget = len(s.sent) + 1
		s.m.Pump()
		require.Equal(t, s.budget, len(s.sent))
		w := s.sent[lost]
		turns[w.ch]++
		require.Equal(t, w.ch.out.first, w.seq, "the oldest")
		s.lose(lost)
		lost++
	}
	for _, ch := range chs {
		require.Equal(t, 20, turns[ch])
	}
	s.now += mostVain * time.Millisecond
	s.budget = len(s.sent) + 1
	s.m.Pump()
	taken := s.sent[lost].ch
	s.ack(lost)
	lost++
	s.budget = len(s.sent) + 10
	s.m.Pump()
	for _, w := range s.sent[lost:] {
		require.Same(t, taken, w.ch, "the one of which a bunch was acked")
	}
}

// TestPausedByLargeBunchesOnly: other things that a channel has rarely don't pause replication.
func TestPausedByLargeBunchesOnly(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	s.accepts(header(1, 3, stubGame, nil), "early")
	ch := s.table.Channel(1)
	require.NotNil(t, ch.rare)
	require.False(t, ch.ReplicationPaused())
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20_000)})
	require.NoError(t, err)
	require.True(t, ch.ReplicationPaused())
	s.ackFrom(0)
	require.False(t, ch.ReplicationPaused())
}

// TestOpenIsTheFirstPart: a peer that takes the first part of the payload that opens a channel doesn't refuse the channel; it has it once it has all parts.
func TestOpenIsTheFirstPart(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 5000)
	require.True(t, s.sent[0].h.Open)
	require.False(t, ch.openAcked)
	s.ack(0)
	require.True(t, ch.openAcked)
	require.False(t, ch.OpenAcked())
	w := s.sent[2]
	s.m.Naked(w.ch, w.seq, 1003)
	s.m.Settled(w.ch, 1003, false)
	require.Equal(t, 1, s.table.due.len(), "a loss, as there are")
	s.m.Pump()
	s.ackFrom(1)
	require.True(t, ch.OpenAcked())
}

// loseAll says of all bunches from one on that their packets are lost, and returns how many there are.
func (s *stub) loseAll(from int) (to int) {
	for to = len(s.sent); from < to; from++ {
		w := s.sent[from]
		s.m.Naked(w.ch, w.seq, int64(1001+from))
		s.m.Settled(w.ch, int64(1001+from), false)
	}
	return to
}

// TestRefusedOpenYields: a payload with which the peer doesn't let its channel open keeps none of other channels from beginning, and counts again when
// the channel is open.
func TestRefusedOpenYields(t *testing.T) {
	s := newStub(t, false, noControl)
	other := s.open(stubGame)
	s.send(other, 1)
	s.ack(0)
	refused := s.open(stubGame)
	s.send(refused, 60_000)
	s.send(other, 60_000)
	require.Equal(t, []uint32{3}, s.begun())
	lost := 1
	for range refusedOften {
		require.True(t, other.inLine)
		lost = s.loseAll(lost)
		s.m.Pump()
	}
	require.Contains(t, s.begun(), uint32(1))
	require.Equal(t, 64<<10, s.table.begun, "the other's")
	require.Zero(t, s.table.line.len())
	for i := lost; !refused.openAcked; i++ {
		s.ack(i)
	}
	require.Equal(t, 128<<10, s.table.begun, "both")
	s.table.remove(refused, bunch.Destroyed)
	require.Equal(t, 64<<10, s.table.begun)
}

// TestShortPeer: a peer that refuses part after part is asked less and less often, what it takes has the bandwidth meanwhile, and one payload begins at
// a time; when it takes what it is asked for, all is as before, but that more begins only slowly.
func TestShortPeer(t *testing.T) {
	s := newStub(t, false, noControl)
	s.table.begunRoom = fourBegin
	chs := []*Channel{s.open(stubGame), s.open(stubGame), s.open(stubGame)}
	for i, ch := range chs {
		s.send(ch, 1)
		s.ack(i)
		s.send(ch, 60_000)
	}
	require.Len(t, s.begun(), 3)
	lost := 3
	for !s.table.short {
		lost = s.loseAll(lost)
		s.m.Pump()
	}
	require.Equal(t, 64<<10, s.table.mostBegun())
	lost = s.loseAll(lost)
	vain := s.table.vain
	s.now += mostVain * time.Millisecond
	s.m.Pump()
	require.Equal(t, lost+1, len(s.sent), "one turn")
	at, ok := s.m.NextTurn()
	require.True(t, ok)
	require.Equal(t, s.now+time.Duration(vain)*time.Millisecond, at)
	require.Zero(t, s.table.Waiting(), "nothing waits for the bandwidth")
	s.now = at - 1
	s.m.Pump()
	require.Equal(t, lost+1, len(s.sent))
	lost = s.loseAll(lost)
	for s.table.vain < 2*mostVain {
		s.now += mostVain * time.Millisecond
		s.m.Pump()
		require.Equal(t, lost+1, len(s.sent))
		lost = s.loseAll(lost)
	}
	s.now += mostVain*time.Millisecond - 1
	s.m.Pump()
	require.Equal(t, lost, len(s.sent), "no rarer than that")

	s.now++
	s.m.Pump()
	for i := lost; len(s.sent) > i; i++ {
		s.ack(i)
		s.now += mostVain * time.Millisecond
		s.m.Pump()
	}
	require.False(t, s.table.short)
	require.Zero(t, s.table.Unacked())
	before := s.table.begunRoom
	s.send(chs[0], 60_000)
	s.ackFrom(len(s.sent) - 1)
	require.LessOrEqual(t, s.table.begunRoom-before, 64<<10/slowly)
}
