package channel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// wire is a connection that only records what channels write.
type wire struct {
	t       *testing.T
	m       *channel.Machine
	table   *channel.Table
	server  bool
	full    bool // the packet window
	slow    bool // above the bandwidth
	extends bool // bunches may be merged
	next    int64
	sent    []sentBunch
	// most is how many more bunches may be sent, if it isn't 0; slow says when they were.
	most int
	// largest is the bits up to which bunches are merged, if it isn't 0.
	largest int
	spent   int // of Budget
	err     error
	local   bool
	ended   bool
}

type sentBunch struct {
	h    bunch.Header
	data []byte
	ch   *channel.Channel
	seq  int64
	id   int64
}

func (w *wire) HasRoom(int) bool { return !w.full }

// HasPackets is what HasRoom is.
func (w *wire) HasPackets(int) bool { return !w.full }
func (w *wire) MaySend(int) bool    { return !w.full && !w.slow }
func (w *wire) WriteBunch(h *bunch.Header, data []byte, ch *channel.Channel, seq int64) int64 {
	require.False(w.t, w.full)
	if w.next++; w.most > 0 {
		w.most--
		w.slow = w.most == 0
	}
	w.m.Noted(ch)
	w.sent = append(w.sent, sentBunch{*h, append([]byte(nil), data[:(h.Bits+7)/8]...), ch, seq, w.next})
	return w.next
}
func (w *wire) PacketID() int64                 { return w.next + 1 }
func (w *wire) Heard() int64                    { return 0 }
func (w *wire) EndPacket()                      {}
func (w *wire) ExtendBunch([]byte, int) bool    { return w.extends }
func (w *wire) MayMerge(bits int) bool          { return w.largest == 0 || bits <= w.largest }
func (w *wire) IsNetReady() bool                { return true }
func (w *wire) FreeBits() int                   { return 0 << 13 }
func (w *wire) Budget() int                     { return 1000 - w.spent }
func (w *wire) Now() time.Duration              { return 0 }
func (w *wire) IsServer() bool                  { return w.server }
func (w *wire) AllowOpen(*bunch.In) error       { return nil }
func (w *wire) Fail(err error, local bool)      { w.err, w.local = err, local }
func (w *wire) CloseInOrder()                   { _ = w.m.CloseControl() }
func (w *wire) ControlClosed(bunch.CloseReason) { w.ended = true }
func (w *wire) Table() *channel.Table           { return w.table }

// acked and naked are the fate of a packet with one bunch.
func (w *wire) acked(ch *channel.Channel, seq, id int64) {
	w.m.Acked(ch, seq, id)
	w.m.Settled(ch, id, true)
}

func (w *wire) naked(ch *channel.Channel, seq, id int64) {
	w.m.Naked(ch, seq, id)
	w.m.Settled(ch, id, false)
	w.m.Pump()
}

type log struct {
	bunches []string
	acks    []int64
	naks    []int64
	closed  []channel.CloseReason
}

func (l *log) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	l.bunches = append(l.bunches, string(b))
}
func (l *log) ReceivedAck(_ *channel.Channel, id int64) { l.acks = append(l.acks, id) }
func (l *log) ReceivedNak(_ *channel.Channel, id int64) { l.naks = append(l.naks, id) }
func (l *log) Closed(_ *channel.Channel, reason channel.CloseReason) {
	l.closed = append(l.closed, reason)
}

var game = bunch.Name{Index: 300}

const initSeq = 1020 // so that the ChSequence wraps soon

func newWire(t *testing.T, server bool, edit func(*channel.Config)) (*wire, *log) {
	l := &log{}
	accept := func(*channel.Channel) channel.Handler { return l }
	cfg := channel.Config{Types: []channel.Type{
		{Name: bunch.Control, ClientOpen: true, Static: true, Accept: accept},
		{Name: game, ClientOpen: true, ServerOpen: true, Accept: accept},
		{Name: bunch.Actor, ServerOpen: true, Accept: accept},
	}}
	if edit != nil {
		edit(&cfg)
	}
	w := &wire{t: t, server: server}
	var err error
	w.m, err = channel.NewMachine(cfg, w, w, initSeq, initSeq)
	require.NoError(t, err)
	w.table = w.m.Table()
	return w, l
}

// receive gives the table a bunch as if it came in packet id.
func (w *wire) receive(id int64, h bunch.Header, data string) (bool, error) {
	in := &bunch.In{Header: h, PacketID: id}
	in.Bits = len(data) * 8
	in.Data.Reset([]byte(data), in.Bits)
	w.m.ReceivedPacket(id)
	return w.m.ReceivedBunch(in)
}

func reliable(index uint32, seq int, name bunch.Name) bunch.Header {
	return bunch.Header{ChIndex: index, Reliable: true, WireSeq: uint16((initSeq + seq) & 1023), Name: name}
}

// opened is a server with the control channel and channel 1 open.
func opened(t *testing.T, edit func(*channel.Config)) (*wire, *log) {
	w, l := newWire(t, true, edit)
	for _, ch := range []struct {
		index uint32
		name  bunch.Name
	}{{0, bunch.Control}, {1, game}} {
		h := reliable(ch.index, 1, ch.name)
		h.Open = true
		nak, err := w.receive(1, h, "open")
		require.NoError(t, err)
		require.False(t, nak)
	}
	l.bunches = nil
	return w, l
}

func TestInOrderOnce(t *testing.T) {
	w, l := opened(t, nil)
	for _, seq := range []int{3, 5, 3, 2, 2, 4, 1, 6} {
		nak, err := w.receive(2, reliable(1, seq, game), fmt.Sprint(seq))
		require.NoError(t, err)
		require.False(t, nak)
	}
	require.Equal(t, []string{"2", "3", "4", "5", "6"}, l.bunches)
	require.EqualValues(t, 3, w.table.Counters.Duplicate)
}

// TestBadInput: each broken rule has its own answer, and channel 1 goes on.
func TestBadInput(t *testing.T) {
	part := func(seq int, initial, final bool) bunch.Header {
		h := reliable(1, seq, game)
		h.Partial, h.PartialInitial, h.PartialFinal = true, initial, final
		return h
	}
	withOpen := func(h bunch.Header) bunch.Header { h.Open = true; return h }
	cases := []struct {
		name   string
		h      bunch.Header
		before []bunch.Header
		nak    bool
		err    error
		count  func(c *channel.Counters) uint64
	}{
		{name: "index out of range", h: bunch.Header{ChIndex: 32767}, err: channel.ErrBadIndex},
		{name: "another name", h: reliable(1, 2, bunch.Voice), err: channel.ErrWrongType},
		{name: "exports from a client", h: bunch.Header{ChIndex: 1, HasPackageMapExports: true}, err: channel.ErrExportsFromClient},
		{name: "far ahead", h: reliable(1, 300, game), err: channel.ErrSequenceAhead},
		{name: "unknown channel, unreliable", h: bunch.Header{ChIndex: 9}, nak: true, count: func(c *channel.Counters) uint64 { return c.UnknownChannel }},
		{name: "unknown type", h: withOpen(reliable(9, 1, bunch.Name{Index: 77})), count: func(c *channel.Counters) uint64 { return c.UnknownType }},
		{name: "may not open", h: withOpen(reliable(9, 1, bunch.Actor)), count: func(c *channel.Counters) uint64 { return c.MayNotOpen }},
		{name: "reliable before its open", h: reliable(9, 1, game), err: channel.ErrReliableNotOpen},
		{name: "partial without initial, unreliable", h: bunch.Header{ChIndex: 1, Partial: true}, nak: true, count: func(c *channel.Counters) uint64 { return c.Refused }},
		{name: "initial in the middle", h: part(3, true, false), before: []bunch.Header{part(2, true, false)}, err: bunch.ErrPartialInitialReliable},
		{name: "a reliable part that continues nothing", h: part(4, false, true), before: []bunch.Header{part(2, true, false), reliable(1, 3, game)}, err: bunch.ErrPartialMergeReliable},
		{name: "mixed reliability", h: bunch.Header{ChIndex: 1, Partial: true, PartialFinal: true}, before: []bunch.Header{part(2, true, false)}, nak: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, l := opened(t, nil)
			for _, h := range c.before {
				_, err := w.receive(2, h, "x")
				require.NoError(t, err)
			}
			nak, err := w.receive(3, c.h, "y")
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.nak, nak)
			if c.count != nil {
				require.EqualValues(t, 1, c.count(&w.table.Counters))
			}
			l.bunches = nil
			nak, err = w.receive(4, bunch.Header{ChIndex: 0}, "still here")
			require.NoError(t, err)
			require.False(t, nak)
			require.Equal(t, []string{"still here"}, l.bunches)
		})
	}
}

func TestPartialTooLarge(t *testing.T) {
	w, _ := opened(t, nil)
	part := string(make([]byte, 900))
	for i := range 100 {
		h := reliable(1, 2+i, game)
		h.Partial, h.PartialInitial = true, i == 0
		if _, err := w.receive(int64(i+2), h, part); err != nil {
			require.ErrorIs(t, err, bunch.ErrPartialTooLarge)
			require.Equal(t, 65536/900, i)
			return
		}
	}
	t.Fatal("65536 bytes were exceeded")
}

func TestControlFirst(t *testing.T) {
	h := reliable(1, 1, game)
	h.Open = true
	w, _ := newWire(t, true, nil)
	nak, err := w.receive(1, h, "early")
	require.NoError(t, err)
	require.True(t, nak, "it has to come again")
	w, _ = newWire(t, true, func(c *channel.Config) { c.StrictControl = true })
	_, err = w.receive(1, h, "early")
	require.ErrorIs(t, err, channel.ErrNoControl)
}

// TestLateBehindTheClose: the close of the control channel overtakes a bunch that opens another. That breaks no rule: the bunch is refused, so that its sender
// doesn't believe that it arrived.
func TestLateBehindTheClose(t *testing.T) {
	for _, strict := range []bool{false, true} {
		w, _ := opened(t, func(c *channel.Config) { c.StrictControl = strict })
		h := reliable(0, 2, bunch.Control)
		h.Close = true
		_, err := w.receive(3, h, "")
		require.NoError(t, err)
		require.Nil(t, w.table.Channel(0))
		for i, open := range []bunch.Header{{ChIndex: 5, Name: game, Open: true, Reliable: true, WireSeq: initSeq + 1}, {ChIndex: 5, Name: game}} {
			nak, err := w.receive(int64(4+i), open, "late")
			require.NoError(t, err)
			require.True(t, nak)
			require.Nil(t, w.table.Channel(5))
		}
	}
}

func open(t *testing.T, w *wire, name bunch.Name) (*channel.Channel, *log) {
	l := &log{}
	ch, err := w.table.Open(name, l)
	require.NoError(t, err)
	return ch, l
}

func send(t *testing.T, ch *channel.Channel, n int, reliable bool) {
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: reliable, NoMerge: true})
	require.NoError(t, err)
}

func TestReliableFullBeforeAnythingIsQueued(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	for range 255 {
		send(t, ch, 10, true)
	}
	require.Zero(t, ch.Room())
	before := len(w.sent)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
	require.ErrorIs(t, err, channel.ErrReliableFull)
	require.Len(t, w.sent, before)
	require.NoError(t, w.err)
	require.NoError(t, ch.Close(bunch.Destroyed), "there is always room for the close")
	w, _ = newWire(t, false, func(c *channel.Config) { c.CloseOnOverflow = true })
	ch, _ = open(t, w, game)
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 60000), Reliable: true})
	require.NoError(t, err)
	for range 3 {
		_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 60000), Reliable: true})
		require.NoError(t, err)
	}
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 60000), Reliable: true})
	require.ErrorIs(t, err, channel.ErrReliableFull, "all its parts or none")
	require.ErrorIs(t, w.err, channel.ErrOverflow)
	require.True(t, w.local)
}

func TestResendOnNak(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, l := open(t, w, game)
	send(t, ch, 10, true)
	send(t, ch, 20, true)
	first := w.sent[0]
	w.naked(ch, first.seq, first.id)
	again := w.sent[2]
	require.Equal(t, first.h, again.h, "the same bunch under its old ChSequence")
	require.Equal(t, first.data, again.data)
	require.NotEqual(t, first.id, again.id)
	require.Equal(t, []int64{first.id}, l.naks)
	w.acked(ch, w.sent[1].seq, w.sent[1].id)
	require.Equal(t, 2, ch.NumOutRec(), "released in order")
	require.False(t, ch.OpenAcked())
	w.acked(ch, again.seq, again.id)
	require.Zero(t, ch.NumOutRec())
	require.True(t, ch.OpenAcked())
}

func TestWindowFull(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 10, true)
	w.full = true
	send(t, ch, 20, true)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 5)})
	require.ErrorIs(t, err, channel.ErrNotSent)
	require.Equal(t, 1, w.table.Waiting())
	w.full = false
	w.m.Tick(0)
	require.Len(t, w.sent, 2)
	require.Len(t, w.sent[1].data, 20)
}

func TestSplit(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 5000, true)
	require.Len(t, w.sent, 6)
	for i, s := range w.sent {
		require.True(t, s.h.Partial)
		require.Equal(t, i == 0, s.h.PartialInitial)
		require.Equal(t, i == 5, s.h.PartialFinal)
		require.Equal(t, i == 0, s.h.Open, "Open only on the first")
		require.EqualValues(t, (initSeq+1+i)&1023, s.h.WireSeq)
	}
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 65537), Reliable: true})
	require.ErrorIs(t, err, channel.ErrTooLarge)
	require.Len(t, w.sent, 6)
}

func TestLargeUnreliableIsPromoted(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)
	send(t, ch, 8000, false)
	require.True(t, w.sent[1].h.Reliable)
	require.True(t, ch.ReplicationPaused())
	for _, s := range w.sent {
		w.acked(ch, s.seq, s.id)
	}
	require.False(t, ch.ReplicationPaused())
}

func TestCloseAndReuse(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, l := open(t, w, game)
	require.EqualValues(t, 1, ch.Index())
	send(t, ch, 10, true)
	require.NoError(t, ch.Close(bunch.Relevancy))
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrClosed)
	other, _ := open(t, w, game)
	require.EqualValues(t, 3, other.Index(), "a client takes odd indices, and 1 isn't free yet")
	last := w.sent[len(w.sent)-1]
	require.True(t, last.h.Close)
	require.Zero(t, last.h.Bits)
	require.Equal(t, bunch.Relevancy, last.h.CloseReason)
	for _, s := range w.sent {
		w.acked(s.ch, s.seq, s.id)
	}
	require.Equal(t, []channel.CloseReason{bunch.Relevancy}, l.closed)
	again, _ := open(t, w, game)
	require.EqualValues(t, 1, again.Index())
	send(t, again, 1, true)
	require.EqualValues(t, (initSeq+3)&1023, w.sent[len(w.sent)-1].h.WireSeq, "the sequence belongs to the index")
}

// TestClosedWithItsAck: a channel is gone when its close is acked, not when all before it is.
func TestClosedWithItsAck(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, l := open(t, w, game)
	send(t, ch, 8, true)
	require.NoError(t, ch.Close(bunch.Destroyed))
	require.Len(t, w.sent, 2)
	w.acked(ch, w.sent[0].seq, w.sent[0].id)
	require.Empty(t, l.closed, "its close may be lost")
	require.Equal(t, 1, w.table.Unacked())
	w.naked(ch, w.sent[1].seq, w.sent[1].id)
	w.m.Pump()
	require.Len(t, w.sent, 3)
	w.acked(ch, w.sent[2].seq, w.sent[2].id)
	require.Len(t, l.closed, 1)
	require.Zero(t, w.table.Unacked())
}

func TestIndexOptions(t *testing.T) {
	w, _ := newWire(t, false, func(c *channel.Config) { c.NeverReuseIndex, c.RestartSequence = true, true })
	for want := uint32(1); want < 20; want += 2 {
		ch, _ := open(t, w, game)
		require.Equal(t, want, ch.Index())
		send(t, ch, 1, true)
		require.EqualValues(t, (initSeq+1)&1023, w.sent[len(w.sent)-1].h.WireSeq)
		require.NoError(t, ch.Close(bunch.Destroyed))
		for _, s := range w.sent {
			w.acked(s.ch, s.seq, s.id)
		}
		w.sent = nil
	}
	w, _ = newWire(t, true, func(c *channel.Config) { c.FirstFree = true })
	a, _ := open(t, w, game)
	b, _ := open(t, w, game)
	require.Equal(t, [2]uint32{1, 2}, [2]uint32{a.Index(), b.Index()})
	_, err := w.table.Open(bunch.Control, nil)
	require.ErrorIs(t, err, channel.ErrMayNotOpen)
	_, err = w.table.Open(bunch.Voice, nil)
	require.ErrorIs(t, err, channel.ErrUnknownType)
}

// TestBothEndsOpen: where FirstFree says that only one end opens channels, and both do, the error says so.
func TestBothEndsOpen(t *testing.T) {
	for _, free := range []bool{true, false} {
		w, _ := newWire(t, true, func(c *channel.Config) { c.FirstFree = free })
		ch, _ := open(t, w, game)
		send(t, ch, 1, true)
		h := reliable(ch.Index(), 1, bunch.Name{Index: 77})
		h.Open = true
		_, err := w.receive(1, h, "")
		require.ErrorIs(t, err, channel.ErrWrongType)
		require.Equal(t, free, strings.Contains(err.Error(), "only one end may open"))
	}
}

// TestCloseReasons: a reason that a bunch has no room for is an error of Close, and the channel stays open.
func TestCloseReasons(t *testing.T) {
	w, _ := newWire(t, true, nil)
	ch, l := open(t, w, game)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	require.ErrorContains(t, ch.Close(15), "below 15")
	require.False(t, ch.Closing())
	require.NoError(t, ch.Close(14))
	require.True(t, ch.Closing())
	require.Empty(t, l.closed)
}

func TestOnlyTheOpenerCloses(t *testing.T) {
	w, l := opened(t, nil)
	require.ErrorIs(t, w.table.Channel(1).Close(bunch.Destroyed), channel.ErrNotOpener)
	h := reliable(1, 2, game)
	h.Close, h.CloseReason = true, bunch.TearOff
	_, err := w.receive(2, h, "last words")
	require.NoError(t, err)
	require.Equal(t, []string{"last words"}, l.bunches)
	require.Equal(t, []channel.CloseReason{bunch.TearOff}, l.closed)
	require.Nil(t, w.table.Channel(1))
	require.False(t, w.ended)
	h = reliable(0, 2, bunch.Control)
	h.Close = true
	_, err = w.receive(3, h, "")
	require.NoError(t, err)
	require.True(t, w.ended, "channel 0 is the connection")
}

func TestTemporary(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, l := open(t, w, game)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrFirstReliable)
	_, err = ch.SendTemporary(&bunch.Out{Data: []byte("puff")})
	require.NoError(t, err)
	s := w.sent[0]
	require.True(t, s.h.Open && s.h.Close && !s.h.Reliable)
	w.acked(ch, s.seq, s.id)
	require.Len(t, l.closed, 1)
	ctl, l := open(t, w, bunch.Control)
	_, err = ctl.SendTemporary(&bunch.Out{Data: []byte("puff")})
	require.ErrorContains(t, err, "can't be temporary")
	require.False(t, ctl.Closing())
	require.Len(t, w.sent, 1)
	require.Empty(t, l.closed)

	srv, got := opened(t, nil)
	s.h.ChIndex = 3
	_, err = srv.receive(5, s.h, "puff")
	require.NoError(t, err)
	require.Equal(t, []string{"puff"}, got.bunches)
	require.Nil(t, srv.table.Channel(3))
}

func TestControlQueue(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, bunch.Control)
	for range 400 {
		send(t, ch, 10, true)
	}
	require.Len(t, w.sent, 255)
	require.EqualValues(t, 145, w.table.Counters.QueuedControl)
	for _, s := range w.sent {
		w.acked(ch, s.seq, s.id)
	}
	w.m.Tick(time.Second / 60)
	require.Len(t, w.sent, 400)
	w, _ = newWire(t, false, func(c *channel.Config) { c.MaxQueuedControl = 5 })
	ch, _ = open(t, w, bunch.Control)
	for range 260 {
		send(t, ch, 10, true)
	}
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrControlQueueFull)
	require.ErrorIs(t, w.err, channel.ErrControlQueueFull)
}

// TestControlQueuesLarge: the control channel queues a payload of several parts, too, while fewer places are left than it has parts; it is no overflow.
func TestControlQueuesLarge(t *testing.T) {
	for _, left := range []int{0, 1, 5, 19} {
		w, _ := newWire(t, false, func(c *channel.Config) { c.CloseOnOverflow = true })
		ch, _ := open(t, w, bunch.Control)
		for ch.Room() > left {
			send(t, ch, 1, true)
		}
		large := strings.Repeat("0123456789", 2000)
		_, err := ch.SendBunch(&bunch.Out{Data: []byte(large), Reliable: true})
		require.NoError(t, err, "%d places left", left)
		require.NoError(t, w.err)
		send(t, ch, 1, true)
		before := len(w.sent)
		for _, s := range w.sent {
			w.acked(ch, s.seq, s.id)
		}
		w.m.Tick(time.Second)
		parts := w.sent[before:]
		require.True(t, parts[0].h.PartialInitial)
		require.True(t, parts[len(parts)-2].h.PartialFinal)
		require.False(t, parts[len(parts)-1].h.Partial, "what was sent behind it comes behind it")
	}
}

// TestControlQueueIsSent: a payload of several parts that channel 0 queued is sent once all before it is acked, however little memory there is.
func TestControlQueueIsSent(t *testing.T) {
	ran := 0
	for _, mem := range []int{256 << 10, 300 << 10, 1 << 20} {
		for _, buffer := range []int{64, 128, 256} {
			for size := 5_000; size <= 65_000; size += 5_000 {
				for n := 1; n <= 4; n++ {
					w, _ := newWire(t, false, func(c *channel.Config) { c.MaxMemory, c.ReliableBuffer = mem, buffer })
					ch, _ := open(t, w, bunch.Control)
					for range 20 {
						send(t, ch, 1, true)
					}
					taken := 0
					for range n {
						if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true}); err == nil {
							taken++
						}
					}
					require.NoError(t, w.err)
					for acked, round := 0, 0; round < 300; round++ {
						for ; acked < len(w.sent); acked++ {
							w.acked(ch, w.sent[acked].seq, w.sent[acked].id)
						}
						w.m.Tick(time.Duration(round) * time.Second)
					}
					require.Zero(t, w.table.Unacked(), "MaxMemory %d, ReliableBuffer %d, %d payloads of %d bytes", mem, buffer, n, size)
					ran += taken
				}
			}
		}
	}
	require.Greater(t, ran, 500)
}

// TestLargeOnControlIsRefused: a payload of several parts that memory has no room for now is refused on channel 0, too, and ends no connection: it isn't the peer's fault.
func TestLargeOnControlIsRefused(t *testing.T) {
	for _, name := range []bunch.Name{bunch.Control, game} {
		w, _ := newWire(t, false, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
		ch, _ := open(t, w, name)
		for ch.Room() > 40 {
			send(t, ch, 1, true)
		}
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 60_000), Reliable: true})
		require.ErrorIs(t, err, channel.ErrReliableFull)
		require.NoError(t, w.err)
		require.EqualValues(t, 1, w.table.Counters.ReliableFull)
	}
}

// TestControlQueueOverflows: small payloads that the peer never acks end the connection when memory has no room for more.
func TestControlQueueOverflows(t *testing.T) {
	w, _ := newWire(t, false, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	ch, _ := open(t, w, bunch.Control)
	var err error
	for n := 0; err == nil && n < 10_000; n++ {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true, NoMerge: true})
	}
	require.ErrorIs(t, err, channel.ErrControlQueueFull)
	require.ErrorIs(t, w.err, channel.ErrControlQueueFull)
}

// TestControlQueueKeepsFlags: what waited for room on the control channel goes with the flags that it was given.
func TestControlQueueKeepsFlags(t *testing.T) {
	for _, out := range []bunch.Out{{HasPackageMapExports: true}, {HasMustBeMappedGUIDs: true}, {ReplicationPaused: true}} {
		w, _ := newWire(t, true, func(c *channel.Config) { c.Types[0].ServerOpen = true })
		ch, _ := open(t, w, bunch.Control)
		for ch.Room() > 0 {
			send(t, ch, 1, true)
		}
		out.Data, out.Reliable = []byte{2}, true
		_, err := ch.SendBunch(&out)
		require.NoError(t, err)
		before := len(w.sent)
		for _, s := range w.sent {
			w.acked(ch, s.seq, s.id)
		}
		w.m.Tick(time.Second)
		require.Len(t, w.sent, before+1)
		h := w.sent[before].h
		require.Equal(t, []bool{out.HasPackageMapExports, out.HasMustBeMappedGUIDs, out.ReplicationPaused}, []bool{h.HasPackageMapExports, h.HasMustBeMappedGUIDs, h.ReplicationPaused})
	}
}

// lastCount notes NumOutRec as its channel is closed, and again once all others are.
type lastCount struct {
	channel.Nop
	counts *[]int
	end    func()
}

func (l *lastCount) Closed(ch *channel.Channel, _ channel.CloseReason) {
	*l.counts = append(*l.counts, ch.NumOutRec())
	if l.end != nil {
		l.end()
		*l.counts = append(*l.counts, ch.NumOutRec())
	}
}

// TestWhatAPeersCloseCutsOff: the handler of a channel that its peer has closed learns in Closed how many of its reliable bunches may not have arrived.
func TestWhatAPeersCloseCutsOff(t *testing.T) {
	var counts []int
	handler := &lastCount{counts: &counts}
	w, _ := opened(t, func(c *channel.Config) {
		c.Types[1].Accept = func(*channel.Channel) channel.Handler { return handler }
	})
	var channels []*channel.Channel
	for i := range uint32(3) {
		h := reliable(1+i, 1, game)
		h.Open = true
		_, err := w.receive(1, h, "open") // of the first it is a repeat
		require.NoError(t, err)
		ch := w.table.Channel(1 + i)
		channels = append(channels, ch)
		for n := range 10 {
			if send(t, ch, 1, true); n < int(i) {
				s := w.sent[len(w.sent)-1]
				w.acked(ch, s.seq, s.id)
			}
		}
	}
	h := reliable(1, 2, game)
	h.Close = true
	_, err := w.receive(2, h, "close")
	require.NoError(t, err)
	require.Equal(t, []int{10}, counts)
	counts, handler.end = nil, func() { handler.end = nil; w.m.End() }
	h = reliable(2, 2, game)
	h.Close = true
	_, err = w.receive(2, h, "close")
	require.NoError(t, err)
	require.Equal(t, []int{9, 8, 9}, counts, "the connection ends meanwhile")
	for _, ch := range channels {
		require.Zero(t, ch.NumOutRec())
	}
}

// TestRangeOfWhatWaits: the packets of a payload in parts are told once all have left, and none where some wait: acks of the others mustn't be taken for the whole payload's.
func TestRangeOfWhatWaits(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		for _, most := range []int{1, 5, 19, 100} {
			w, _ := newWire(t, false, nil)
			ch, _ := open(t, w, game)
			send(t, ch, 1, true)
			w.acked(ch, w.sent[0].seq, w.sent[0].id)
			w.most = most
			r, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 18_500), Reliable: reliable}) // 20 parts
			require.NoError(t, err)
			if most < 20 {
				require.Len(t, w.sent, 1+most)
				require.Equal(t, channel.PacketRange{First: bunch.NoPacket, Last: bunch.NoPacket}, r)
				continue
			}
			require.Len(t, w.sent, 21)
			require.Equal(t, channel.PacketRange{First: w.sent[1].id, Last: w.sent[20].id}, r)
		}
	}
}

func TestControlOpenIsRepeated(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, bunch.Control)
	send(t, ch, 10, true)
	for now := time.Duration(0); now < 2500*time.Millisecond; now += time.Second / 60 {
		w.m.Tick(now)
	}
	require.Len(t, w.sent, 3, "at 1 s and at 2 s")
	for _, s := range w.sent[1:] {
		require.Equal(t, w.sent[0].h, s.h)
	}
}
