package message

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// packetOf is a packet with a figure of a queue of this mode.
func packetOf(mode Mode, id int) *bitio.Reader {
	if mode == Ordered {
		return one(id)
	}
	w := bitio.NewWriter(make([]byte, 16))
	w.WriteInt(1, maxPerPacket+1)
	if mode == Sequenced {
		w.WriteUint32(uint32(id))
	}
	w.WriteUint8(uint8(id))
	return bitio.NewReader(w.Bytes(), w.Len())
}

// TestNotDeliveredIsUsedAgain: a message that is read and not delivered is the next one of its kind, whatever the reason, and the counters tell of it.
func TestNotDeliveredIsUsedAgain(t *testing.T) {
	for _, c := range []struct {
		what   string
		mode   Mode
		window int
		left   int // bytes of memory
		ids    []int
		cut    int // bits that the last packet lacks
		err    error
		told   Counters
	}{
		{"malformed", Ordered, 64, 1 << 20, []int{0}, 1, ErrFormat, Counters{}},
		{"right beyond the window", Ordered, 64, 1 << 20, []int{64}, 0, ErrWindow, Counters{Received: 1}},
		{"duplicate", Ordered, 64, 1 << 20, []int{0, 0}, 0, nil, Counters{Received: 2, Duplicate: 1}},
		{"no memory", Ordered, 64, 0, []int{1}, 0, channel.ErrMemory, Counters{Received: 1, Refused: 1}},
		{"overtaken", Sequenced, 64, 1 << 20, []int{1, 0}, 0, nil, Counters{Received: 2, Old: 1}},
		{"full, the newest", Unordered, 1, 1 << 20, []int{0, 1}, 0, nil, Counters{Received: 2, Dropped: 1}},
		{"full, the oldest", Sequenced, 1, 1 << 20, []int{0, 1}, 0, nil, Counters{Received: 2, Dropped: 1}},
	} {
		made := 0
		var reg Registry
		kind := reg.Add("figure", func() Message { made++; return new(figure) })
		q := New(Config{Mode: c.mode, Kinds: &reg, Window: c.window})
		q.memory = &purse{left: c.left}
		require.NoError(t, kind.check(new(figure)))
		made = 0 // what the check looks at is made once
		for i, id := range c.ids {
			r := packetOf(c.mode, id)
			if i < len(c.ids)-1 {
				require.NoError(t, q.Read(r), c.what)
				continue
			}
			last := r.Sub(r.Remaining() - c.cut)
			require.ErrorIs(t, q.Read(&last), c.err, c.what)
		}
		require.Equal(t, c.told, q.Counters, c.what)
		require.Equal(t, len(c.ids), made, c.what)
		kind.New()
		require.Equal(t, len(c.ids), made, c.what)
	}
}

// wide is a message of nine bits.
type wide struct{ n uint64 }

func (w *wide) Serialize(s *Stream) { s.Bits(&w.n, 9) }

// TestReadKeepsToMaxBits: a message of MaxBits is read, and a larger one breaks the format, though the peer's queue has sent it.
func TestReadKeepsToMaxBits(t *testing.T) {
	var reg Registry
	kind := reg.Add("wide", func() Message { return new(wide) })
	for maxBits, want := range map[int]error{8: ErrTooLarge, 9: nil} {
		a, b := New(Config{Kinds: &reg}), New(Config{Kinds: &reg, MaxBits: maxBits})
		require.NoError(t, a.Send(kind, &wide{n: 300}))
		w := bitio.NewWriter(make([]byte, 100))
		require.Equal(t, 1, a.Write(0, w))
		err := b.Read(bitio.NewReader(w.Bytes(), w.Len()))
		require.ErrorIs(t, err, want)
		if want != nil {
			require.ErrorIs(t, err, ErrFormat)
			continue
		}
		m, _ := b.Receive()
		require.EqualValues(t, 300, m.(*wide).n)
	}
}

// TestBitsCountAsBytes: a message counts the bytes that its bits take, and so does the largest one, of which each queue has room for one.
func TestBitsCountAsBytes(t *testing.T) {
	var reg Registry
	reg.Add("wide", func() Message { return new(wide) })
	for bits, bytes := range map[int]int{8: 1, 9: 2, 15: 2, 16: 2, 17: 3} {
		require.Equal(t, messageCost+bytes, (&incoming{bits: int32(bits)}).cost())
		require.Equal(t, 16*incomingSize+messageCost+bytes, New(Config{Kinds: &reg, MaxBits: bits}).reserve())
	}
}

// TestRoomForOthers: a message that waits ahead takes its own bytes, leaves those of each missing one before it, and a third of what the queue has then to others.
func TestRoomForOthers(t *testing.T) {
	const each = messageCost + 1
	for have, err := range map[int]error{each + each + each/3: nil, each + each + each/3 - 1: channel.ErrMemory} {
		var reg Registry
		reg.Add("figure", func() Message { return new(figure) })
		q, p := New(Config{Kinds: &reg}), &purse{left: have}
		q.memory = p
		require.ErrorIs(t, q.Read(one(1)), err)
		if err == nil {
			have -= each
		}
		require.Equal(t, have, p.left)
		require.NoError(t, q.Read(one(0)), "each queue has room for it")
	}
}

// TestPagesAreShared: messages far ahead that are near each other share a page, and where the ring may be as large as it need be for one there is none.
func TestPagesAreShared(t *testing.T) {
	const each = messageCost + 1
	var reg Registry
	reg.Add("figure", func() Message { return new(figure) })
	for first, pages := range map[int]int{thin*leastRing - 1: 0, thin * leastRing: 1, 4000: 1} {
		q, mem := New(Config{Kinds: &reg, Window: 4096}), new(held)
		q.memory = mem
		require.NoError(t, q.Read(one(first)))
		room := max(0, len(q.in)-leastRing)*incomingSize + pages*farCost
		require.Len(t, q.far, pages)
		require.Equal(t, each+room, mem.n)
		if first < 4000 {
			continue
		}
		for i := range farPage - 1 {
			require.NoError(t, q.Read(one(first+1+i)))
			require.Equal(t, (i+2)*each+room, mem.n)
		}
		require.NoError(t, q.Read(one(first+farPage)))
		require.Equal(t, (farPage+1)*each+room+farCost, mem.n)
	}
}

// TestReadyRingCounts: what unreliable messages wait in counts as it grows, and keeps nothing of what was received.
func TestReadyRingCounts(t *testing.T) {
	const n = 4*leastRing + 1
	for _, mode := range []Mode{Unordered, Sequenced} {
		var reg Registry
		reg.Add("figure", func() Message { return new(figure) })
		q, mem := New(Config{Mode: mode, Kinds: &reg}), new(held)
		q.memory = mem
		for i := range n {
			require.NoError(t, q.Read(packetOf(mode, i)))
			require.Equal(t, (i+1)*(messageCost+1)+(len(q.ready)-leastRing)*incomingSize, mem.n)
		}
		require.Len(t, q.ready, 8*leastRing)
		for i := range n {
			m, _ := q.Receive()
			require.EqualValues(t, i, m.(*figure).n)
		}
		require.Equal(t, make([]incoming, 8*leastRing), q.ready)
	}
}

// TestWhenRoomIsTold: the peer is told of room when it has a quarter of the window more than it is known to have heard of, once a wait, and of a sixteenth beside messages. An
// unreliable queue has none to tell of.
func TestWhenRoomIsTold(t *testing.T) {
	const wait = firstWait * defaultResend // before a round trip was measured
	for _, c := range []struct {
		mode                      Mode
		window                    int
		received, confirmed, told int64
		now                       time.Duration
		beside, alone             bool // whether it is due beside messages, and alone
	}{
		{window: 64},
		{window: 64, received: 3},
		{window: 64, received: 4, beside: true},
		{window: 64, received: 15, beside: true},
		{window: 64, received: 16, beside: true, alone: true},
		{window: 64, received: 10, told: 6, now: time.Hour, beside: true},
		{window: 64, received: 20, told: 17},
		{window: 64, received: 20, told: 16, beside: true},
		{window: 64, received: 20, told: 17, now: wait - 1},
		{window: 64, received: 20, told: 17, now: wait, beside: true, alone: true},
		{window: 64, received: 20, told: 17, confirmed: 17, now: time.Hour},
		{window: 64, received: 33, told: 17, confirmed: 17, beside: true, alone: true},
		{window: 8, now: time.Hour},
		{window: 8, received: 1, beside: true},
		{window: 8, received: 2, beside: true, alone: true},
		{window: 1, received: 1, beside: true, alone: true},
		{mode: Sequenced, window: 64, received: 64, now: time.Hour},
		{mode: Unordered, window: 64, received: 64, now: time.Hour},
	} {
		var reg Registry
		reg.Add("figure", func() Message { return new(figure) })
		q := New(Config{Mode: c.mode, Kinds: &reg, Window: c.window})
		w := int64(c.window)
		q.recvNext, q.told, q.confirmed, q.now = c.received, w+c.told, w+c.confirmed, c.now
		require.Equal(t, c.beside, q.creditDue(true), "%+v", c)
		require.Equal(t, c.alone, q.creditDue(false), "%+v", c)
	}
}

// TestUnusedMessagesCountAsTheLargest: of a kind, whatever was read last, and one that is used again isn't kept besides.
func TestUnusedMessagesCountAsTheLargest(t *testing.T) {
	var reg Registry
	kind := reg.Add("figure", func() Message { return new(figure) })
	kind.saw(8*700, 50)
	kind.Free(new(figure))
	kind.saw(8, 0)
	require.Equal(t, messageCost+750, reg.freeMessages)
	kind.saw(8*700, 51)
	require.Equal(t, messageCost+751, reg.freeMessages)
	kind.New()
	require.Zero(t, reg.freeMessages)
	require.Equal(t, []Message{nil}, kind.free[:1])
}

// TestLargestOfABudget: the least Budget takes no message, and each a message that fits it behind the header of a packet, and no larger one.
func TestLargestOfABudget(t *testing.T) {
	var reg Registry
	kind := reg.Add("blob", func() Message { return new(blob) })
	require.Panics(t, func() { New(Config{Kinds: &reg, Budget: headerBits - 1}) })
	require.ErrorIs(t, New(Config{Kinds: &reg, Budget: headerBits}).Send(kind, new(blob)), ErrTooLarge)
	const bits = 10 + 8*700 // of a length up to 800, and 700 bytes
	for less, want := range []error{nil, ErrTooLarge} {
		q := New(Config{Kinds: &reg, Budget: headerBits + overheadBits + bits - less})
		require.ErrorIs(t, q.Send(kind, &blob{data: make([]byte, 700)}), want)
		if want == nil {
			require.Equal(t, 1, q.Write(0, bitio.NewWriter(make([]byte, 1000))))
		}
	}
}

// TestAttachedKeepsToABunch: a queue on a channel takes no more for a message than a bunch has room for, whatever its Config says.
func TestAttachedKeepsToABunch(t *testing.T) {
	var reg Registry
	reg.Add("figure", func() Message { return new(figure) })
	q := New(Config{Kinds: &reg, MaxBits: maxMessageBits, Budget: maxMessageBits})
	require.Equal(t, leastRing*incomingSize+messageCost+65535, q.reserve())
	Attach(q)
	require.Equal(t, leastRing*incomingSize+messageCost+1024, q.reserve())
}
