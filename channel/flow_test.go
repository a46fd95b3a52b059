package channel

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// stub is a connection that keeps what its channels write, and all that they ask of it.
type stub struct {
	t            *testing.T
	m            *Machine
	table        *Table
	server       bool
	slow, full   bool
	room, budget int // bunches that may be written in all, and reliable ones; 0 any
	window       int // packets that there is room for; 0 any
	extends      bool
	now          time.Duration
	sent         []written
	err          error
	controlEnded int
	refuse       error
	got          []string
	closed       []CloseReason
	packet, free int   // bits of a packet, and what is left of the one at hand
	ends         []int // how much was sent at each EndPacket
	endFills     bool  // EndPacket uses up what may be sent
	together     bool  // packets end at EndPacket, not after each bunch
	heard        int64 // the newest packet of the peer's
	readyFor     int   // bunches until IsNetReady isn't true any more; 0 any
}

type written struct {
	h    bunch.Header
	data []byte
	ch   *Channel
	seq  int64
}

func (s *stub) IsNetReady() bool       { return s.readyFor == 0 || len(s.sent) < s.readyFor }
func (s *stub) Budget() int            { return 1000 }
func (s *stub) FreeBits() int          { return s.free }
func (s *stub) Now() time.Duration     { return s.now }
func (s *stub) IsServer() bool         { return s.server }
func (s *stub) Fail(err error, _ bool) { s.err = err }
func (s *stub) Table() *Table          { return s.table }
func (s *stub) HasRoom(int) bool       { return !s.full && (s.room == 0 || len(s.sent) < s.room) }
func (s *stub) HasPackets(n int) bool  { return !s.full && (s.window == 0 || n <= s.window) }
func (s *stub) MaySend(int) bool {
	return !s.full && !s.slow && (s.budget == 0 || len(s.sent) < s.budget)
}
func (s *stub) CloseInOrder()             { require.NoError(s.t, s.m.CloseControl()) }
func (s *stub) ControlClosed(CloseReason) { s.controlEnded++ }
func (s *stub) AllowOpen(*bunch.In) error { return s.refuse }
func (s *stub) PacketID() int64 {
	if s.together {
		return int64(1001 + len(s.ends))
	}
	return int64(1001 + len(s.sent))
}

func (s *stub) Heard() int64 { return s.heard }

func (s *stub) EndPacket() {
	s.ends, s.free = append(s.ends, len(s.sent)), s.packet
	s.slow = s.slow || s.endFills
}

func (s *stub) MayMerge(int) bool { return true }

func (s *stub) ExtendBunch([]byte, int) bool {
	return s.extends
}
func (s *stub) WriteBunch(h *bunch.Header, data []byte, ch *Channel, seq int64) int64 {
	s.m.Noted(ch)
	s.free -= h.Bits + bunch.MaxHeaderBits
	id := s.PacketID()
	s.sent = append(s.sent, written{*h, bytes.Clone(data[:(h.Bits+7)/8]), ch, seq})
	return id
}
func (s *stub) ReceivedBunch(_ *Channel, in *bunch.In) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	s.got = append(s.got, string(b))
}
func (s *stub) ReceivedAck(*Channel, int64)      {}
func (s *stub) ReceivedNak(*Channel, int64)      {}
func (s *stub) Closed(_ *Channel, r CloseReason) { s.closed = append(s.closed, r) }

// ack is the fate of the packet with what was written i-th.
func (s *stub) ack(i int) {
	w := s.sent[i]
	s.m.Acked(w.ch, w.seq, int64(1001+i))
	s.m.Settled(w.ch, int64(1001+i), true)
}

// lose is the other fate of it.
func (s *stub) lose(i int) {
	w := s.sent[i]
	s.m.Naked(w.ch, w.seq, int64(1001+i))
	s.m.Settled(w.ch, int64(1001+i), false)
}

func (s *stub) ackFrom(i int) {
	for ; i < len(s.sent); i++ {
		s.ack(i)
	}
}

var stubGame = bunch.Name{Index: 300}

func newStub(t *testing.T, server bool, edit func(c *Config)) *stub {
	s := &stub{t: t, server: server}
	accept := func(*Channel) Handler { return s }
	cfg := Config{Types: []Type{{Name: bunch.Control, ClientOpen: true, Static: true, Accept: accept}, {Name: stubGame, ClientOpen: true, ServerOpen: true, Accept: accept}}}
	if edit != nil {
		edit(&cfg)
	}
	var err error
	s.m, err = NewMachine(cfg, s, s, 100, 100)
	require.NoError(t, err)
	s.table = s.m.Table()
	return s
}

// noControl is a table without a control channel's type.
func noControl(c *Config) { c.Types = c.Types[1:] }

func (s *stub) open(name bunch.Name) *Channel {
	ch, err := s.table.Open(name, s)
	require.NoError(s.t, err)
	return ch
}

func (s *stub) send(ch *Channel, n int) {
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: true, NoMerge: true})
	require.NoError(s.t, err)
}

// header is of the reliable bunch seq of an index, counted from 1.
func header(index uint32, seq int, name bunch.Name, edit func(h *bunch.Header)) bunch.Header {
	h := bunch.Header{ChIndex: index, Reliable: true, WireSeq: uint16(100 + seq), Name: name}
	if edit != nil {
		edit(&h)
	}
	return h
}

func opening(h *bunch.Header) { h.Open = true }
func closes(h *bunch.Header)  { h.Close = true }

// receive hands a bunch over from a buffer that holds something else right afterwards.
func (s *stub) receive(h bunch.Header, data string) (nak bool, err error) {
	return s.receiveIn(5, h, data)
}

// receiveIn is receive in the packet id.
func (s *stub) receiveIn(id int64, h bunch.Header, data string) (nak bool, err error) {
	b := []byte(data)
	in := &bunch.In{Header: h, PacketID: id}
	in.Bits = len(b) * 8
	in.Data.Reset(b, in.Bits)
	s.m.ReceivedPacket(id)
	nak, err = s.m.ReceivedBunch(in)
	for i := range b {
		b[i] = '#'
	}
	return nak, err
}

// accepts is a receive that works.
func (s *stub) accepts(h bunch.Header, data string) {
	s.t.Helper()
	nak, err := s.receive(h, data)
	require.NoError(s.t, err)
	require.False(s.t, nak)
}

// TestEarlyBunchesAreCopied: the packet's buffer is the connection's again when it is processed.
func TestEarlyBunchesAreCopied(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 3, stubGame, nil), "third")
	s.accepts(header(1, 2, stubGame, nil), "second")
	s.accepts(header(1, 1, stubGame, opening), "first")
	require.Equal(t, []string{"first", "second", "third"}, s.got)
}

// TestPartsAreJoined: whatever their sizes, within the memory that they take, which comes back; with a close at their end, too.
func TestPartsAreJoined(t *testing.T) {
	for _, last := range []func(h *bunch.Header){nil, closes} {
		s := newStub(t, true, noControl)
		want, base := "", 0
		for i := range 70 {
			part := string(bytes.Repeat([]byte{byte('a' + i%26)}, 900))
			want += part
			s.accepts(header(1, 1+i, stubGame, func(h *bunch.Header) {
				h.Open, h.Partial, h.PartialInitial, h.PartialFinal = i == 0, true, i == 0, i == 69
				if i == 69 && last != nil {
					last(h)
				}
			}), part)
			if i == 0 {
				base = s.table.Held() - joinCost(900)
				require.Equal(t, channelCost+pageCost+openRoom, base)
			}
			if i < 69 {
				n := 900 * (i + 1)
				require.LessOrEqual(t, s.table.Held()-base, 2*n+1024, "%d parts", i+1)
				require.GreaterOrEqual(t, s.table.Held()-base, n)
			}
		}
		require.Equal(t, []string{want}, s.got)
		base -= openRoom
		if last != nil {
			base -= channelCost
		}
		require.Equal(t, base, s.table.Held())
	}
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	for range 50 { // unreliable parts whose ends are lost: the next ones take their place
		held := 0
		for i := range 2 {
			s.accepts(bunch.Header{ChIndex: 1, Partial: true, PartialInitial: i == 0}, string(make([]byte, 500)))
			held = s.table.Held()
		}
		require.LessOrEqual(t, held-channelCost-pageCost, joinCost(1000))
	}
}

// TestFinerPartsAreEven: where larger packets make a payload go in more parts than it must, they are of one size, whatever EvenParts says; full parts would leave
// nothing for the last ones.
func TestFinerPartsAreEven(t *testing.T) {
	for _, even := range []bool{false, true} {
		s := newStub(t, false, func(c *Config) { c.EvenParts = even })
		ch := s.open(stubGame)
		finer := 0
		for bits := s.table.SingleBits()/8*8 + 8; bits < 60_000*8; bits += 5000 {
			for _, packet := range []int{8 * 1439, 8 * 4000, 8 * 8000} {
				s.m.SetPacketBits(packet)
				s.sent = nil
				data := make([]byte, (bits+7)/8)
				for i := range data {
					data[i] = byte(i*7 + i>>8)
				}
				_, err := ch.SendBunch(&bunch.Out{Data: data, Bits: bits, NoMerge: true, StayUnreliable: ch.openSent, Reliable: !ch.openSent})
				require.NoError(t, err)
				var got []byte
				total := 0
				for _, w := range s.sent {
					require.NotZero(t, w.h.Bits)
					got = append(got, w.data...)
					total += w.h.Bits
				}
				require.Equal(t, bits, total)
				require.True(t, bytes.Equal(data, got))
				if len(s.sent) > s.table.parts(bits) {
					finer++
				}
			}
		}
		require.Greater(t, finer, 10)
	}
}

// TestSplitIsWhole: the parts of a payload are its bits, in order, all full but the last or all alike; the flags are where they belong.
func TestSplitIsWhole(t *testing.T) {
	for _, even := range []bool{false, true} {
		for _, bits := range []int{0, 8, 12345, 40_000*8 - 3, 65536 * 8} {
			s := newStub(t, false, func(c *Config) { c.EvenParts = even })
			single := s.table.SingleBits()
			if bits == 0 {
				bits = single
			}
			if bits == 8 {
				bits = single + 1
			}
			data := make([]byte, (bits+7)/8)
			for i := range data {
				data[i] = byte(i*7 + i>>8)
			}
			ch := s.open(stubGame)
			r, err := ch.SendBunch(&bunch.Out{Data: data, Bits: bits, Reliable: true, HasPackageMapExports: true})
			require.NoError(t, err)
			require.Equal(t, PacketRange{1001, int64(1000 + len(s.sent))}, r)
			parts := max(1, (bits+single-1)/(single/8*8))
			if bits <= single {
				parts = 1
			}
			require.Len(t, s.sent, parts)
			var got []byte
			total := 0
			for i, w := range s.sent {
				last := i == parts-1
				if !last {
					require.Zero(t, w.h.Bits%8)
				}
				require.LessOrEqual(t, w.h.Bits, single)
				if even && parts > 1 && !last {
					require.Equal(t, s.sent[0].h.Bits, w.h.Bits)
				} else if !last {
					require.Equal(t, single/8*8, w.h.Bits)
				}
				require.Equal(t, i == 0, w.h.Open)
				require.Equal(t, parts > 1, w.h.Partial)
				require.Equal(t, parts == 1 || !last, w.h.HasPackageMapExports)
				got = append(got, w.data...)
				total += w.h.Bits
			}
			require.Equal(t, bits, total)
			if bits%8 != 0 {
				data[len(data)-1] &= 1<<(bits%8) - 1
			}
			require.Equal(t, data, got)
			if even && parts > 1 {
				require.InDelta(t, s.sent[0].h.Bits, s.sent[parts-1].h.Bits, float64(8*parts))
			}
			base := 0
			s.ackFrom(0)
			require.Equal(t, base, s.table.Held())
		}
	}
}

// TestPromotion: an unreliable bunch of eight parts or more is made reliable if there is room for it, and pauses replication until its
// last part is acked.
func TestPromotion(t *testing.T) {
	s := newStub(t, false, nil)
	part := s.table.partBytes()
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	unreliable := func(n int) *bunch.Out { return &bunch.Out{Data: make([]byte, n), NoMerge: true} }
	_, err := ch.SendBunch(unreliable(7 * part))
	require.NoError(t, err)
	require.Zero(t, s.table.Counters.Promoted)
	require.False(t, ch.ReplicationPaused())
	first := len(s.sent)
	_, err = ch.SendBunch(unreliable(8 * part))
	require.NoError(t, err)
	require.EqualValues(t, 1, s.table.Counters.Promoted)
	for i := first; i < len(s.sent); i++ {
		require.True(t, ch.ReplicationPaused(), "%d of 8 acked", i-first)
		s.ack(i)
	}
	require.False(t, ch.ReplicationPaused())
	for ch.Room() > 8 {
		s.send(ch, 1)
	}
	_, err = ch.SendBunch(unreliable(8 * part))
	require.NoError(t, err)
	require.EqualValues(t, 2, s.table.Counters.Promoted, "exactly as much room")
	s.ackFrom(first + 8)
	for ch.Room() > 7 {
		s.send(ch, 1)
	}
	_, err = ch.SendBunch(unreliable(8 * part))
	require.NoError(t, err)
	require.EqualValues(t, 2, s.table.Counters.Promoted)
	require.Equal(t, 7, ch.Room())
	never := newStub(t, false, func(c *Config) { c.PartialReliableThreshold = -1 })
	ch = never.open(stubGame)
	never.send(ch, 1)
	never.ack(0)
	_, err = ch.SendBunch(unreliable(60 * part))
	require.NoError(t, err)
	require.Zero(t, never.table.Counters.Promoted)
}

// TestMergedBytesAreCounted: what merging adds counts against MaxMemory, and comes back.
func TestMergedBytesAreCounted(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		s := newStub(t, false, nil)
		s.extends = true
		ch := s.open(stubGame)
		s.send(ch, 1)
		s.slow = waiting
		for range 40 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
			require.NoError(t, err)
		}
		require.EqualValues(t, 39, s.table.Counters.Merged)
		require.Equal(t, 2*outCost+32+512, s.table.Held())
		s.table.heldOut = s.table.cfg.MaxMemory/2 - controlReserve
		for range 11 { // 510 bytes fit the buffer there is
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
			require.NoError(t, err)
		}
		require.EqualValues(t, 50, s.table.Counters.Merged)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
		require.ErrorIs(t, err, ErrReliableFull, "a larger one has no room")
		require.EqualValues(t, 50, s.table.Counters.Merged)
		s.table.heldOut = 2*outCost + 32 + 512
		s.slow = false
		s.m.Pump()
		s.ackFrom(0)
		require.Zero(t, s.table.Held())
	}
	s := newStub(t, false, nil)
	ch := s.open(stubGame)
	s.send(ch, 1)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte{2}, Reliable: true})
	require.NoError(t, err)
	require.Zero(t, s.table.Counters.Merged, "the connection had no room behind it")
	require.Len(t, s.sent, 3)
}

// TestRoomForWhatIsSent: half of MaxMemory, less what is the control channel's, each bunch with what keeps it, to the byte.
func TestRoomForWhatIsSent(t *testing.T) {
	s := newStub(t, false, func(c *Config) { c.MaxMemory = 256 << 10 })
	tb := s.table
	tb.heldOut = 112<<10 - 100 - 3*(outCost+32)
	require.True(t, tb.fitsOut(1, 100, 3))
	require.False(t, tb.fitsOut(1, 101, 3))
	require.False(t, tb.fitsOut(1, 100, 4))
	require.True(t, tb.fitsOut(1, 100+outCost+32, 2))
	require.True(t, tb.fitsOut(0, 100+(16<<10), 3), "the control channel has more")
	require.False(t, tb.fitsOut(0, 101+(16<<10), 3))
	ch := s.open(stubGame)
	tb.heldOut = 112<<10 - (outCost + 32)
	s.send(ch, 0)
	tb.heldOut = 112<<10 - (outCost + 32) - 1024
	s.send(ch, 800)
	tb.heldOut = 112<<10 - (outCost + 32) - 1023
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 800), Reliable: true, NoMerge: true})
	require.ErrorIs(t, err, ErrReliableFull)
	require.EqualValues(t, 1, tb.Counters.ReliableFull)
	tb.heldOut = 112<<10 - (outCost + 32) - 63
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 33), Reliable: true, NoMerge: true})
	require.ErrorIs(t, err, ErrReliableFull)
	tb.heldOut--
	s.send(ch, 33)
	tb.heldOut = 112 << 10
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 33), NoMerge: true})
	require.NoError(t, err, "an unreliable one isn't kept")
	require.NoError(t, ch.Close(bunch.Destroyed), "the close always has room")
	require.True(t, s.sent[len(s.sent)-1].h.Close)
}

// TestControlQueueCounts: the bytes of the queue, exactly, until they are sent or the connection ends; parts wait until all of them fit, and
// nothing overflows.
func TestControlQueueCounts(t *testing.T) {
	s := newStub(t, false, func(c *Config) { c.CloseOnOverflow = true })
	ch := s.open(bunch.Control)
	s.send(ch, 1)
	s.ack(0)
	s.m.Tick(1)
	require.Zero(t, s.table.Held())
	for ch.Room() > 0 {
		s.send(ch, 0)
	}
	full := s.table.Held()
	s.send(ch, 65)
	s.send(ch, 3000) // of four parts
	s.send(ch, 5)
	require.Equal(t, full+128+4096+32+3*queuedCost+4*(outCost+1<<minClass), s.table.Held())
	require.Equal(t, 258, s.table.Unacked())
	n := len(s.sent)
	for range 3 {
		s.m.Tick(2)
	}
	require.Len(t, s.sent, n)
	require.NoError(t, s.err)
	for i := 1; i <= 4; i++ {
		s.ack(i)
	}
	s.m.Tick(3)
	require.Len(t, s.sent, n+1, "three more have room, and the next is four")
	require.Equal(t, 2, len(ch.queued()))
	require.Zero(t, ch.queued()[:3][2], "what left is forgotten")
	s.ack(5)
	s.m.Tick(4)
	require.Len(t, s.sent, n+5)
	s.ackFrom(6)
	s.m.Tick(5)
	require.Len(t, s.sent, n+6)
	require.Nil(t, ch.queued())
	s.ackFrom(n + 5)
	require.Zero(t, s.table.Held())
	require.Zero(t, s.table.Unacked())

	for ch.Room() > 0 {
		s.send(ch, 0)
	}
	s.send(ch, 100)
	s.m.End()
	require.Zero(t, s.table.Held())
	require.Zero(t, s.table.Unacked())
	require.Zero(t, s.controlEnded, "the connection knows")
}

// TestOpenOfControlIsRepeated: once a second exactly, with up to eight bunches that aren't acked and don't wait, until the open is acked; and
// only by who opened it.
func TestOpenOfControlIsRepeated(t *testing.T) {
	s := newStub(t, false, nil)
	s.now = time.Minute
	ch := s.open(bunch.Control)
	s.m.Tick(s.now + 5*time.Second)
	require.Empty(t, s.sent, "nothing was sent yet")
	for range 8 {
		s.send(ch, 1)
	}
	s.m.Tick(s.now + 999*time.Millisecond)
	require.Len(t, s.sent, 8)
	s.ack(3)
	s.slow = true
	s.m.Naked(ch, s.sent[5].seq, 1006)
	s.m.Tick(s.now + time.Second)
	require.Len(t, s.sent, 8)
	s.slow = false
	s.m.Pump()
	s.sent = s.sent[:8]
	s.m.Tick(s.now + 2*time.Second - 1)
	require.Len(t, s.sent, 8, "the attempt counts")
	s.m.Tick(s.now + 2*time.Second)
	require.Len(t, s.sent, 15, "all but the acked one")
	require.EqualValues(t, 1+7, s.table.Counters.Resent, "the lost one, and all of them")
	s.send(ch, 1)
	s.m.Tick(s.now + 4*time.Second)
	require.Len(t, s.sent, 16, "more than eight")
	for i := range 8 {
		s.ack(i)
	}
	s.m.Tick(s.now + 8*time.Second)
	require.Len(t, s.sent, 16, "the open is acked")

	server := newStub(t, true, nil)
	server.accepts(header(0, 1, bunch.Control, opening), "hello")
	server.send(server.table.Channel(0), 1)
	server.m.Tick(10 * time.Second)
	require.Len(t, server.sent, 1)
}

// TestGapIsNobodys: what fills the gap of an earlier channel isn't listed as lost, and without memory for it the next channel isn't
// opened.
func TestGapIsNobodys(t *testing.T) {
	gap := func() *stub {
		s := newStub(t, true, func(c *Config) { c.Types = c.Types[1:]; c.FirstFree = true })
		s.accepts(header(1, 1, stubGame, opening), "")
		for range 3 {
			s.send(s.table.Channel(1), 1)
		}
		s.accepts(header(1, 2, stubGame, closes), "")
		require.Nil(t, s.table.Channel(1))
		require.EqualValues(t, 101, s.table.slot(1).gap)
		return s
	}
	s := gap()
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.send(ch, 1)
	require.EqualValues(t, 3, s.table.Counters.Filled)
	require.Equal(t, 5, s.table.Unacked())
	require.Equal(t, []Undelivered{{Index: 1, Name: stubGame, Bunches: 2}}, s.m.Undelivered())
	for i, w := range s.sent[3:] {
		require.EqualValues(t, 101+i, w.h.WireSeq)
		require.Equal(t, i == 3, w.h.Open)
		require.Equal(t, i < 3, w.h.Bits == 0)
	}
	for i := 3; i < 6; i++ {
		s.ack(i)
		require.False(t, ch.OpenAcked(), "it is behind them")
	}
	s.ack(6)
	require.True(t, ch.OpenAcked())
	s.ackFrom(7)
	require.Empty(t, s.m.Undelivered())
	require.Zero(t, s.table.heldOut)

	s = gap()
	s.table.heldOut = s.table.cfg.MaxMemory/2 - controlReserve - 3*(outCost+32) + 1
	ch = s.open(stubGame)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.ErrorIs(t, err, ErrReliableFull)
	require.EqualValues(t, 1, s.table.Counters.MemoryFull)
	require.EqualValues(t, 1, s.table.Counters.ReliableFull)
	s.table.heldOut--
	require.True(t, s.table.fillGap(ch))

	s = gap() // the peer opens it anew in a packet that filled as much as it may
	require.True(t, s.table.mayFill(254))
	nak, err := s.receive(header(1, 3, stubGame, opening), "")
	require.NoError(t, err)
	require.True(t, nak)
	require.EqualValues(t, 1, s.table.Counters.Refused)
	s.m.Tick(time.Second)
	s.accepts(header(1, 3, stubGame, opening), "")
	require.EqualValues(t, 3, s.table.Counters.Filled)
	require.EqualValues(t, 3, s.table.filled)
}

// TestRestartedSequences: with RestartSequence a channel of a used index begins with the first sequences both ways; without it they go on.
func TestRestartedSequences(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := newStub(t, true, func(c *Config) { c.Types = c.Types[1:]; c.RestartSequence, c.FirstFree = restart, true })
		s.accepts(header(1, 1, stubGame, opening), "one")
		s.send(s.table.Channel(1), 1)
		s.ack(0)
		s.accepts(header(1, 2, stubGame, closes), "")
		ch := s.open(stubGame)
		require.EqualValues(t, 1, ch.Index())
		s.send(ch, 1)
		want := 102
		if restart {
			want = 101
		}
		require.EqualValues(t, want, s.sent[1].h.WireSeq)
		s.accepts(header(1, want-100+map[bool]int{true: 0, false: 1}[restart], stubGame, nil), "answer")
		require.Equal(t, []string{"one", "answer"}, s.got)
	}
}

// TestIndicesOfTheOtherEndAreItsOwn: a free index of the peer's parity isn't taken; and channels far from each other are listed.
func TestIndicesOfTheOtherEndAreItsOwn(t *testing.T) {
	s := newStub(t, false, noControl)
	s.accepts(header(2, 1, stubGame, opening), "")
	require.EqualValues(t, 1, s.open(stubGame).Index())
	s.accepts(header(2, 2, stubGame, closes), "")
	require.EqualValues(t, 3, s.open(stubGame).Index())
	s.accepts(header(100, 1, stubGame, opening), "")
	var list []uint32
	for ch := range s.table.All {
		list = append(list, ch.Index())
	}
	require.Equal(t, []uint32{1, 3, 100}, list)
	require.Equal(t, 2*pageCost+channelCost, s.table.Held())
}

// TestControlIsGone: what channel 0 had unacked at its end is listed, and it isn't opened again.
func TestControlIsGone(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.send(s.table.Channel(0), 1)
	s.send(s.table.Channel(0), 1)
	s.accepts(header(0, 2, bunch.Control, closes), "")
	require.Equal(t, 1, s.controlEnded)
	require.Equal(t, []Undelivered{{Name: bunch.Control, Bunches: 2}}, s.m.Undelivered())
	s.accepts(header(0, 3, bunch.Control, opening), "again")
	require.Nil(t, s.table.Channel(0))
	require.EqualValues(t, 1, s.table.Counters.Ignored)

	s = newStub(t, false, noControl) // where there is none, it is opened for its close
	require.NoError(t, s.m.CloseControl())
	require.Len(t, s.sent, 1)
	require.True(t, s.sent[0].h.Open && s.sent[0].h.Close && s.sent[0].h.ChIndex == 0)
	s.ack(0)
	require.Equal(t, 1, s.controlEnded)

	s = newStub(t, true, noControl) // and the peer takes it
	s.accepts(header(0, 1, bunch.Control, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	require.Equal(t, 1, s.controlEnded)
	s = newStub(t, true, noControl)
	s.accepts(header(0, 1, bunch.Control, opening), "no control channel here")
	require.EqualValues(t, 1, s.table.Counters.UnknownType)
	require.Zero(t, s.controlEnded)
	s.accepts(header(4, 1, bunch.Name{Index: 99}, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	s.accepts(header(5, 1, bunch.Control, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	require.EqualValues(t, 3, s.table.Counters.UnknownType)
	s = newStub(t, true, nil) // where there is one, its handler hears
	s.accepts(header(0, 1, bunch.Control, func(h *bunch.Header) { h.Open, h.Close = true, true }), "only to say this")
	require.Equal(t, []string{"only to say this"}, s.got)

	s = newStub(t, false, nil) // before we had the answer to our own open
	s.send(s.open(bunch.Control), 1)
	s.accepts(header(0, 1, bunch.Control, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	require.Equal(t, 1, s.controlEnded)
	s = newStub(t, false, nil)
	s.send(s.open(bunch.Control), 1)
	_, err := s.receive(header(0, 1, bunch.Control, opening), "")
	require.ErrorIs(t, err, ErrAlreadyOpen)
	s = newStub(t, false, noControl)
	s.send(s.open(stubGame), 1)
	_, err = s.receive(header(1, 1, stubGame, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	require.ErrorIs(t, err, ErrAlreadyOpen)
}

// TestBothEndsClose: the peer's close of the connection is refused while ours waits for what is unacked, and taken otherwise.
func TestBothEndsClose(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.accepts(header(1, 1, stubGame, opening), "")
	s.send(s.table.Channel(1), 1)
	s.m.Shut()
	s.accepts(header(1, 2, stubGame, nil), "goes on")
	nak, err := s.receive(header(0, 2, bunch.Control, closes), "")
	require.NoError(t, err)
	require.True(t, nak)
	require.EqualValues(t, 1, s.table.Counters.Refused)
	require.Zero(t, s.controlEnded)
	s.ack(0)
	s.accepts(header(0, 2, bunch.Control, closes), "")
	require.Equal(t, 1, s.controlEnded)

	s = newStub(t, true, nil) // ours is under way
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.m.Shut()
	require.NoError(t, s.m.CloseControl())
	require.Equal(t, 1, s.table.Unacked())
	s.accepts(header(0, 2, bunch.Control, closes), "")
	require.Equal(t, 1, s.controlEnded)

	s = newStub(t, true, nil) // not closing: whatever is unacked
	s.accepts(header(0, 1, bunch.Control, opening), "")
	s.accepts(header(1, 1, stubGame, opening), "")
	s.send(s.table.Channel(1), 1)
	s.accepts(header(0, 2, bunch.Control, closes), "")
	require.Equal(t, 1, s.controlEnded)
}

// TestClosingChannelsListenNoMore: what comes behind our close is ignored, but on channel 0; and so is all where nobody listens.
func TestClosingChannelsListenNoMore(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	ch := s.open(stubGame)
	s.send(ch, 1)
	require.NoError(t, ch.Close(bunch.TearOff))
	s.accepts(header(ch.Index(), 1, stubGame, nil), "late")
	require.Empty(t, s.got)
	require.EqualValues(t, 1, s.table.Counters.Ignored)
	require.NoError(t, s.table.Channel(0).Close(bunch.Destroyed))
	s.accepts(header(0, 2, bunch.Control, nil), "last words")
	require.Equal(t, []string{"last words"}, s.got)

	s = newStub(t, true, func(c *Config) { c.Types = []Type{{Name: stubGame, ClientOpen: true}} })
	s.accepts(header(1, 1, stubGame, opening), "to nobody")
	require.EqualValues(t, 1, s.table.Counters.Ignored)
}

// TestOpensThatHaveToComeAgain: without memory, or when the connection says so.
func TestOpensThatHaveToComeAgain(t *testing.T) {
	refused := errors.New("not now")
	s := newStub(t, true, noControl)
	s.refuse = refused
	nak, err := s.receive(header(1, 1, stubGame, opening), "x")
	require.NoError(t, err)
	require.True(t, nak)
	require.Equal(t, Counters{Received: 1, ReceivedReliable: 1, Refused: 1}, s.table.Counters)
	s.refuse = nil
	s.accepts(header(1, 1, stubGame, opening), "x")

	for index, cost := range map[uint32]int{3: channelCost + openRoom, 40: channelCost + openRoom + pageCost} { // of a page in use, of a new one
		s.table.held = s.table.cfg.MaxMemory/2 - s.table.largeRoom() - cost + 1
		before := s.table.Counters.Refused
		nak, err = s.receive(header(index, 1, stubGame, opening), "x")
		require.NoError(t, err)
		require.True(t, nak, "%d", index)
		require.Equal(t, before+1, s.table.Counters.Refused)
		s.table.held--
		s.accepts(header(index, 1, stubGame, opening), "x")
	}
	require.EqualValues(t, 2, s.table.Counters.MemoryFull)

	unknown := newStub(t, true, noControl) // unreliable before its open, with and without a part of it
	nak, err = unknown.receive(bunch.Header{ChIndex: 1, Name: stubGame, Open: true}, "x")
	require.NoError(t, err)
	require.True(t, nak)
	require.Equal(t, Counters{Received: 1, UnknownChannel: 1, Refused: 1}, unknown.table.Counters)
}

// TestHowFarAheadIsTooFar: a reliable bunch ReliableBuffer after the one that is missing breaks the rule, one before that is kept.
func TestHowFarAheadIsTooFar(t *testing.T) {
	s := newStub(t, true, func(c *Config) { c.Types = c.Types[1:]; c.ReliableBuffer = 16 })
	s.accepts(header(1, 1, stubGame, opening), "")
	s.accepts(header(1, 2+15, stubGame, nil), "x")
	_, err := s.receive(header(1, 2+16, stubGame, nil), "x")
	require.ErrorIs(t, err, ErrSequenceAhead)
	require.ErrorContains(t, err, "118 after 101")
	before := s.table.Held()
	s.table.early = 48 << 10 // as many as there always is room for
	s.table.held = s.table.cfg.MaxMemory*9/32 - earlyCost - 63
	nak, err := s.receive(header(1, 4, stubGame, nil), string(make([]byte, 60)))
	require.NoError(t, err)
	require.True(t, nak)
	require.EqualValues(t, 1, s.table.Counters.Refused)
	s.table.held--
	s.accepts(header(1, 4, stubGame, nil), string(make([]byte, 60)))
	require.Positive(t, before)
}

// TestHalfOpenGivesWay: to whatever opens its index anew, reliable or not, and is gone then.
func TestHalfOpenGivesWay(t *testing.T) {
	for _, reliable := range []bool{true, false} {
		s := newStub(t, true, noControl)
		half := bunch.Header{ChIndex: 1, Name: stubGame, Open: true, Partial: true, PartialInitial: true}
		s.accepts(half, "first half")
		s.accepts(bunch.Header{ChIndex: 1, Partial: true}, "a bit more")
		require.Zero(t, s.table.Counters.HalfOpen, "it goes on")
		if reliable {
			s.accepts(header(1, 1, stubGame, opening), "another")
		} else {
			s.accepts(bunch.Header{ChIndex: 1, Name: stubGame, Open: true, Close: true}, "another")
		}
		require.EqualValues(t, 1, s.table.Counters.HalfOpen)
		require.Equal(t, []string{"another"}, s.got)
		require.Equal(t, map[bool]int{true: 1, false: 0}[reliable], s.table.Len())
		require.Equal(t, pageCost+channelCost*s.table.Len(), s.table.Held())
	}
}

// TestFatesOfCopies: a bunch that rides in several packets is lost when all of them are; one that waits to go again and is acked after all
// doesn't go.
func TestFatesOfCopies(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	s.send(ch, 1)
	s.send(ch, 1)
	seq := s.sent[1].seq
	s.m.Copied(ch, seq, 50)
	s.slow = true
	s.m.Naked(ch, seq, 1002)
	require.Zero(t, s.table.Waiting())
	s.m.Naked(ch, seq, 50)
	require.Equal(t, 1, s.table.Waiting())
	s.m.Naked(ch, -1, 51) // of an unreliable one
	s.m.Naked(ch, 7000, 51)
	s.m.Acked(ch, -1, 51)
	s.m.Acked(ch, seq, 52)
	require.Zero(t, s.table.Waiting())
	s.slow = false
	n := len(s.sent)
	s.m.Pump()
	require.Len(t, s.sent, n)
	require.Equal(t, 1, s.table.Unacked())

	s.send(ch, 1)
	ch.openAt = 1004
	s.m.Settled(ch, 1004, true)
	require.NotNil(t, s.table.Channel(ch.Index()), "no temporary one")
	last := s.sent[len(s.sent)-1].seq
	s.m.End()
	s.m.Acked(ch, last, 60)
	s.m.Naked(ch, last, 60)
	require.Zero(t, s.table.Waiting())
	require.Len(t, s.closed, 1)
}

// TestOpenIsAckedWithItsBunch: not with a later one.
func TestOpenIsAckedWithItsBunch(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.send(ch, 1)
	s.ack(1)
	require.False(t, ch.OpenAcked())
	s.ack(0)
	require.True(t, ch.OpenAcked())
	other := s.open(stubGame)
	s.slow = true
	s.send(other, 1)
	require.True(t, other.openWaits(&bunch.Header{Bits: 8}))
	s.slow = false
	s.m.Pump()
	require.False(t, other.openWaits(&bunch.Header{Bits: 8}))
	s.m.Naked(other, s.sent[2].seq, 1003)
	require.True(t, other.openWaits(&bunch.Header{Bits: 8}), "it is lost")
	s.m.Pump()
	require.False(t, other.openWaits(&bunch.Header{Bits: 8}))
	require.False(t, ch.openWaits(&bunch.Header{Bits: 8}))
}

// TestSentPayloadIsItsBits: what is behind the last bit of the caller's data isn't sent.
func TestSentPayloadIsItsBits(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{0xff, 0xff}, Bits: 11, Reliable: true})
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 7}, s.sent[0].data)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte{0xff, 0xff}, Bits: 16, Reliable: true})
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0xff}, s.sent[1].data)
}

// TestPoolTakesNothingItCantLend: what is too large or of another size, and what there is no room for.
func TestPoolTakesNothingItCantLend(t *testing.T) {
	var p Pool
	p.Put(make([]byte, 131072))
	p.Put(nil)
	p.Put(make([]byte, 16))
	require.Zero(t, p.unused)
	p = Pool{MaxFree: 40 + freeCost}
	p.Put(make([]byte, 32))
	p.Put(make([]byte, 32))
	require.Len(t, p.free[0].items, 1)
	p.putRing(make([]outRec, 4))
	p.putEarly(new(early))
	require.Nil(t, p.recs)
}

// TestHurryLeavesTheAcked: last words are what hasn't arrived.
func TestHurryLeavesTheAcked(t *testing.T) {
	s := newStub(t, false, nil)
	ch := s.open(bunch.Control)
	s.send(ch, 1)
	s.send(ch, 1)
	s.ack(1)
	s.slow = true
	s.send(ch, 1)
	s.m.HurryControl()
	require.Greater(t, len(s.sent), 2)
	for _, w := range s.sent[2:] {
		require.NotEqual(t, s.sent[1].seq, w.seq)
	}
	require.Equal(t, s.sent[1].seq+1, s.sent[len(s.sent)-1].seq)
}

// TestPoolGetsAllBack: what early bunches, queues, merging and rings lent, when they are done and when the connection ends.
func TestPoolGetsAllBack(t *testing.T) {
	const early3 = 3*64 + 7*freeCost // with their places and what is rare
	for _, end := range []bool{false, true} {
		p := new(Pool)
		pool := func(c *Config) { c.Pool = p }
		s := newStub(t, true, func(c *Config) { noControl(c); pool(c) })
		for _, seq := range []int{3, 2, 4} {
			s.accepts(header(1, seq, stubGame, nil), string(make([]byte, 60)))
		}
		if end {
			s.m.End()
		} else {
			s.accepts(header(1, 1, stubGame, opening), "")
		}
		require.Equal(t, early3+3*earlySize+rareSize, p.unused, "early bunches; end %v", end)

		*p = Pool{}
		s = newStub(t, false, pool)
		ch := s.open(bunch.Control)
		s.send(ch, 0)
		s.ack(0)
		for ch.Room() > 0 {
			s.send(ch, 0)
		}
		s.send(ch, 100)
		before := p.unused
		if end {
			s.m.End()
			require.Equal(t, before+128+256*outRecSize+rareSize+3*freeCost, p.unused, "the queue")
		} else {
			s.ack(1)
			s.m.Tick(1)
			require.Equal(t, before+128+rareSize+2*freeCost, p.unused, "what was queued has another buffer now")
		}

		*p = Pool{}
		s = newStub(t, false, pool)
		ch = s.open(stubGame)
		for i := range 5 {
			s.send(ch, 0)
			require.Equal(t, []int{0, 1, 1, 1, 5}[i]*outRecSize+[]int{0, 1, 1, 1, 2}[i]*freeCost, p.unused, "rings that were outgrown")
		}
		for i := range 5 {
			require.NotNil(t, ch.out.slots)
			s.ack(i)
		}
		require.Nil(t, ch.out.slots)
		require.Equal(t, 13*outRecSize+3*freeCost, p.unused)
		for _, rec := range p.recs.rings[3].items[0] {
			require.Zero(t, rec)
		}

		*p = Pool{}
		s = newStub(t, false, pool)
		s.extends = true
		ch = s.open(stubGame)
		s.send(ch, 0)
		for range 4 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
			require.NoError(t, err)
		}
		require.Equal(t, 32+outRecSize+2*freeCost, p.unused, "the smaller buffer, and the first ring")
	}
}

// TestManyOpenInOnePacket: nothing is to be filled, so they don't count.
func TestManyOpenInOnePacket(t *testing.T) {
	s := newStub(t, true, noControl)
	for index := range uint32(20) {
		s.accepts(header(1+index, 1, stubGame, opening), "x")
	}
	require.Equal(t, 20, s.table.Len())
}

// TestAcceptMayEndIt: a handler that ends the connection when it is made gets nothing.
func TestAcceptMayEndIt(t *testing.T) {
	var s *stub
	s = newStub(t, true, func(c *Config) {
		c.Types = []Type{{Name: stubGame, ClientOpen: true, Accept: func(*Channel) Handler { s.m.End(); return s }}}
	})
	s.accepts(header(1, 1, stubGame, opening), "x")
	require.Empty(t, s.got)
	require.Zero(t, s.table.Len())
}

// TestMergingKeepsTheOrder: a bunch isn't put behind one in the SendBuffer when another waits between them.
func TestMergingKeepsTheOrder(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	for i, text := range []string{"one", "two", "three"} {
		s.slow, s.extends = i == 1, i == 2
		_, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true})
		require.NoError(t, err)
	}
	s.m.Pump()
	require.Equal(t, "one", string(s.sent[1].data))
	require.Equal(t, "twothree", string(s.sent[2].data))
	require.Equal(t, 3, s.table.Unacked())
}

// TestMergedIsNoLargerThanABunch: however many are merged.
func TestMergedIsNoLargerThanABunch(t *testing.T) {
	s := newStub(t, false, noControl)
	s.extends = true
	ch := s.open(stubGame)
	for range 300 {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
		require.NoError(t, err)
	}
	total := 0
	for seq := ch.out.first; seq < ch.out.next; seq++ {
		require.LessOrEqual(t, ch.out.at(seq).header.Bits, s.table.SingleBits())
		total += ch.out.at(seq).header.Bits
	}
	require.Equal(t, 300*80, total)
	require.Less(t, ch.NumOutRec(), 10)
}

// TestFullIsCounted: each bunch that finds the buffer full.
func TestFullIsCounted(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	for ch.Room() > 0 {
		s.send(ch, 0)
	}
	for range 2 {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true, NoMerge: true})
		require.ErrorIs(t, err, ErrReliableFull)
	}
	require.EqualValues(t, 2, s.table.Counters.ReliableFull)
}

// TestPartsWithoutRoomForAll: where the window hasn't room for all parts of an unreliable bunch, none of them is sent.
func TestPartsWithoutRoomForAll(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	say := func() error {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 4*s.table.partBytes()), NoMerge: true, StayUnreliable: true})
		return err
	}
	s.window = 3
	require.ErrorIs(t, say(), ErrNotSent)
	require.Len(t, s.sent, 1)
	require.EqualValues(t, 1, s.table.Counters.NotSent)
	s.window = 4
	require.NoError(t, say())
	require.Len(t, s.sent, 5)
}

// TestPartsThatFindNoRoom: some of an unreliable bunch may have been sent; the caller is told, and the packets of those.
func TestPartsThatFindNoRoom(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	s.room = 3
	r, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 4*s.table.partBytes()), NoMerge: true})
	require.ErrorIs(t, err, ErrNotSent)
	require.Equal(t, PacketRange{1002, 1003}, r)
	require.Len(t, s.sent, 3)
}

// TestNothingOnceShut: temporary channels neither, and what needs a control channel first is refused and counted.
func TestNothingOnceShut(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.m.Shut()
	_, err := ch.SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, s.sent)
	s = newStub(t, true, nil)
	nak, err := s.receive(header(1, 1, stubGame, opening), "x")
	require.NoError(t, err)
	require.True(t, nak)
	require.EqualValues(t, 1, s.table.Counters.Refused)
}

// TestTidiedQueuesCountRight: entries that wait no more don't count as waiting, before and after the queues are tidied, whichever queue they
// are in.
func TestTidiedQueuesCountRight(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	ctl := s.table.Channel(0)
	for range 100 {
		s.send(ctl, 1)
	}
	const channels = 100
	for i := range uint32(channels) {
		s.accepts(header(1+i, 1, stubGame, opening), "")
		s.send(s.table.Channel(1+i), 1)
	}
	s.slow = true
	for i, w := range s.sent {
		s.m.Naked(w.ch, w.seq, int64(1001+i))
	}
	require.Equal(t, 200, s.table.Waiting())
	for _, w := range s.sent[:100] { // copies that arrived after all
		s.m.Acked(w.ch, w.seq, 5000)
	}
	require.Equal(t, 100, s.table.Waiting())
	for i := range uint32(channels) {
		s.accepts(header(1+i, 2, stubGame, closes), "")
		require.EqualValues(t, channels-1-i, s.table.Waiting())
		require.LessOrEqual(t, s.table.first.len()+s.table.due.len(), 2*s.table.Waiting()+maxStale+1)
	}
	s.slow = false
	n := len(s.sent)
	s.m.Pump()
	require.Len(t, s.sent, n)
	require.Zero(t, s.table.stale)
}

// TestLostAgainAndAgain: where the oldest bunches of a channel are lost again before the others have their turn, the queue doesn't grow with each loss.
func TestLostAgainAndAgain(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	ctl := s.table.Channel(0)
	const bunches, each = 100, 10
	for range bunches {
		s.send(ctl, 1)
	}
	for lost := 0; lost < 10_000; {
		for ; lost < len(s.sent); lost++ {
			s.lose(lost)
			require.LessOrEqual(t, QueueLen(s.table), 2*s.table.Waiting()+maxStale+1)
		}
		require.Equal(t, bunches, s.table.Waiting())
		s.budget = len(s.sent) + each
		s.m.Pump()
		require.Equal(t, bunches-each, s.table.Waiting())
	}
	s.budget = 0
	n := len(s.sent)
	s.m.Pump()
	require.Len(t, s.sent, n+bunches-each, "each is sent once")
}

// TestNamesArePrintable: the error for a peer that calls a channel something else has nothing in it that a terminal obeys.
func TestNamesArePrintable(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "")
	_, err := s.receive(header(1, 2, bunch.Name{Text: "x\x1b[2J\n\u202e"}, nil), "")
	require.ErrorIs(t, err, ErrWrongType)
	require.Contains(t, err.Error(), "x?[2J??")
}

// TestQueuesAreTidiedSeldom: entries of closed channels stay until they are more than maxStale and more than what waits, as each time all of it is walked
// over.
func TestQueuesAreTidiedSeldom(t *testing.T) {
	for count, tidied := range map[int]int{150: 76, 131: 66, 130: 66, 100: 65} { // at this many
		s := newStub(t, true, noControl)
		for i := range count {
			index := uint32(1 + i)
			s.accepts(header(index, 1, stubGame, opening), "")
			s.send(s.table.Channel(index), 1)
		}
		s.slow = true
		for i := range count {
			s.lose(i)
		}
		for i := 1; i <= tidied; i++ {
			s.table.remove(s.table.Channel(uint32(i)), bunch.Destroyed)
			if i < tidied {
				require.Equal(t, i, s.table.stale, "of %d", count)
			}
		}
		require.Zero(t, s.table.stale, "of %d", count)
		require.Equal(t, count-tidied, s.table.due.len())
	}
}

// TestFilledGapHoldsNothing: a channel that was opened anew where another left bunches unacked has no memory of that once they are acked, also when
// the game says nothing on it; and one that overflows then does so by itself.
func TestFilledGapHoldsNothing(t *testing.T) {
	gap := func(early bool) (*stub, *Channel) {
		s := newStub(t, true, func(c *Config) { noControl(c); c.CloseOnOverflow, c.ReliableBuffer = true, 8 })
		s.accepts(header(1, 1, stubGame, opening), "")
		for range 3 {
			s.send(s.table.Channel(1), 1)
		}
		s.accepts(header(1, 2, stubGame, closes), "")
		s.accepts(header(1, 3, stubGame, opening), "again")
		require.Len(t, s.sent, 6)
		if early {
			s.accepts(header(1, 5, stubGame, nil), "early")
		}
		return s, s.table.Channel(1)
	}
	s, ch := gap(false)
	require.NotNil(t, ch.rare)
	s.ackFrom(3)
	require.Nil(t, ch.rare)

	for _, acked := range []int{2, 3} {
		s, ch = gap(true)
		for i := range acked {
			s.ack(3 + i)
		}
		var err error
		for err == nil {
			_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
		}
		require.ErrorIs(t, err, ErrReliableFull)
		require.Equal(t, acked == 3, s.err != nil, "%v", s.err)
	}
}

// TestIgnoredSequencesCount: what isn't taken moves the sequence of its index on, if it has one and they aren't restarted; without memory for
// that it has to come again.
func TestIgnoredSequencesCount(t *testing.T) {
	other := bunch.Name{Index: 77}
	for _, restart := range []bool{false, true} {
		s := newStub(t, true, func(c *Config) { noControl(c); c.RestartSequence = restart })
		s.table.held = s.table.cfg.MaxMemory/2 - s.table.largeRoom() - pageCost + 1
		nak, err := s.receive(header(1, 1, other, opening), "x")
		require.NoError(t, err)
		require.Equal(t, !restart, nak)
		require.EqualValues(t, map[bool]int{false: 1}[restart], s.table.Counters.MemoryFull)
		require.Equal(t, s.table.Counters.MemoryFull, s.table.Counters.Refused)
		s.accepts(bunch.Header{ChIndex: 1, Name: other, Open: true, Close: true}, "x")
		s.table.held--
		s.accepts(header(1, 1, other, opening), "x")
		require.EqualValues(t, map[bool]int{false: 101, true: 100}[restart], s.table.inReliable(1))
		s.table.held++
		s.accepts(header(1, 2, other, opening), "x")
		s.table.held = 0
		s.accepts(header(1, map[bool]int{false: 3, true: 1}[restart], stubGame, opening), "ours")
		require.Equal(t, []string{"ours"}, s.got)
	}
}

// TestUnreliableOnHalfAChannel: what comes before the rest of a temporary channel's bunch has to come again.
func TestUnreliableOnHalfAChannel(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(bunch.Header{ChIndex: 1, Name: stubGame, Open: true, Partial: true, PartialInitial: true}, "first half")
	nak, err := s.receive(bunch.Header{ChIndex: 1}, "x")
	require.NoError(t, err)
	require.True(t, nak)
	require.EqualValues(t, 1, s.table.Counters.UnknownChannel)
	require.EqualValues(t, 1, s.table.Counters.Refused)
	require.Empty(t, s.got)
}

// TestOpenRidesAlong: each packet with unreliable bunches of a channel that the peer may not have has its open, once. Where no copy of that fits, and
// while the open waits, the caller is told.
func TestOpenRidesAlong(t *testing.T) {
	s := newStub(t, false, noControl)
	s.packet, s.free, s.together = 8*1000, 8*1000, true
	ch := s.open(stubGame)
	say := func(bytes int) error {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, bytes), NoMerge: true})
		return err
	}
	kinds := func(from int) (k []bool) {
		for _, w := range s.sent[from:] {
			k = append(k, w.h.Open)
		}
		return k
	}
	s.send(ch, 100)
	require.NoError(t, say(10))
	require.NoError(t, say(10))
	require.Equal(t, []bool{true, false, false}, kinds(0))
	s.EndPacket()
	require.NoError(t, say(10))
	require.NoError(t, say(10))
	require.Equal(t, []bool{true, false, false}, kinds(3), "in another packet")
	require.NoError(t, say(800))
	require.NoError(t, say(10))
	require.Equal(t, []bool{true, false, true, false}, kinds(6), "no room for the third, nor the fourth")
	require.Len(t, s.ends, 3)
	lone := len(s.sent)
	require.NoError(t, say(s.table.single/8-100))
	require.Equal(t, []bool{false}, kinds(lone), "too large for both")
	require.NoError(t, say(s.table.single/8+1))
	require.Equal(t, []bool{false, false}, kinds(lone+1), "nothing comes between parts")
	s.full = true
	require.ErrorIs(t, say(10), ErrNotSent)
	s.full = false
	n := len(s.sent)
	for i, w := range s.sent {
		if w.h.Open {
			require.False(t, ch.openWaits(&bunch.Header{Bits: 8}))
			s.lose(i)
		}
	}
	require.ErrorIs(t, say(10), ErrNotSent, "lost")
	s.m.Pump()
	require.ErrorIs(t, say(s.table.single/8-100), ErrNotSent, "too large for both")
	require.NoError(t, say(10))
	require.Equal(t, []bool{true, false}, kinds(n), "sent again, in the same packet")
	s.ack(n)
	require.NoError(t, say(10))
	require.NoError(t, say(s.table.single/8))
	require.Equal(t, []bool{false, false}, kinds(n+2))
}

// TestUnreliableWaitsForParts: the peer has a channel once it has all parts of its open, so when one of them was lost, others than reliable bunches wait.
func TestUnreliableWaitsForParts(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 2*s.table.partBytes()+1)
	say := func() error {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}})
		return err
	}
	require.NoError(t, say(), "the open is on its way")
	s.ack(0)
	s.lose(1)
	require.ErrorIs(t, say(), ErrNotSent)
	s.m.Pump()
	require.ErrorIs(t, say(), ErrNotSent)
	for i := 2; i < len(s.sent); i++ {
		s.ack(i)
	}
	require.NoError(t, say())
	lost := len(s.sent)
	s.send(ch, 2*s.table.partBytes()+1)
	s.lose(lost)
	require.NoError(t, say(), "a later payload opens nothing")
}

// TestUnreliableWaitsForGap: an index whose earlier channel left something unacked opens once that is filled.
func TestUnreliableWaitsForGap(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.send(ch, 1)
	s.table.remove(ch, bunch.Destroyed)
	next := s.open(stubGame)
	require.Equal(t, ch.Index(), next.Index())
	s.send(next, 1)
	require.Greater(t, next.gapEnd(), next.out.first)
	for i, w := range s.sent {
		if w.h.Open && w.ch == next {
			s.lose(i)
		}
	}
	s.m.Pump()
	_, err := next.SendBunch(&bunch.Out{Data: []byte{1}})
	require.ErrorIs(t, err, ErrNotSent)
	s.ackFrom(2)
	_, err = next.SendBunch(&bunch.Out{Data: []byte{1}})
	require.NoError(t, err)
}

// TestCrossedCloses: a peer that opens channel 0 only to end the connection has read nothing of ours, whatever it acked; one that has accepted it has read that.
func TestCrossedCloses(t *testing.T) {
	for _, opens := range []bool{false, true} {
		s := newStub(t, false, nil)
		ctl := s.open(bunch.Control)
		for range 5 {
			s.send(ctl, 10)
		}
		s.ack(0)
		s.ack(1)
		s.accepts(header(0, 1, bunch.Control, func(h *bunch.Header) { h.Open, h.Close = opens, true }), "")
		require.Equal(t, 1, s.controlEnded)
		want := 3
		if opens {
			want = 5
		}
		require.Equal(t, []Undelivered{{Name: bunch.Control, Bunches: want}}, s.m.Undelivered())
	}
}

// TestCloseOfTheControlChannel: it is the connection's own, in order, and not the channel's alone.
func TestCloseOfTheControlChannel(t *testing.T) {
	s := newStub(t, false, nil)
	ctl := s.open(bunch.Control)
	s.send(ctl, 10)
	require.NoError(t, ctl.Close(bunch.Destroyed))
	require.True(t, ctl.Closing())
	require.Len(t, s.sent, 2)
	require.True(t, s.sent[1].h.Close)
}

// TestClosedChannelsKeepNoHandler: packets in flight may keep a channel for long, but not what its handler has.
func TestClosedChannelsKeepNoHandler(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 10)
	s.table.remove(ch, bunch.Destroyed)
	require.Equal(t, []CloseReason{bunch.Destroyed}, s.closed)
	require.Equal(t, Nop{}, ch.handler)
}

// TestControlQueueTakesSmallOnes: with the default MaxMemory MaxQueuedControl bounds the queue of small bunches, and not what they will count once they are sent; so they all are.
func TestControlQueueTakesSmallOnes(t *testing.T) {
	s := newStub(t, false, nil)
	ch := s.open(bunch.Control)
	s.send(ch, 1)
	s.ack(0)
	s.m.Tick(1)
	for ch.Room() > 0 {
		s.send(ch, 0)
	}
	for range 32768 {
		s.send(ch, 24)
	}
	require.NoError(t, s.err)
	require.Len(t, ch.queued(), 32768)
	for acked := 1; s.table.Unacked() > 0; {
		require.Less(t, acked, len(s.sent))
		s.ackFrom(acked)
		acked = len(s.sent)
		s.m.Tick(2)
	}
	require.Zero(t, s.table.Held())
}
