package channel

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestPoolLendsWhatItGot: buffers of the size asked for, the next power of two from 32 bytes to 64 KiB, the same ones again;
// what is larger isn't kept, nor is what exceeds MaxFree.
func TestPoolLendsWhatItGot(t *testing.T) {
	for n, size := range map[int]int{0: 0, 1: 32, 31: 32, 32: 32, 33: 64, 64: 64, 65: 128, 1000: 1024, 65535: 65536, 65536: 65536, 65537: 65537, 100_000: 100_000} {
		require.Equal(t, size, bufferSize(n), "%d", n)
		var p Pool
		b := p.Get(n)
		require.Len(t, b, n)
		require.Equal(t, size, cap(b), "%d", n)
		p.Put(b)
		if n == 0 || n > 65536 {
			require.Zero(t, p.unused, "%d", n)
			continue
		}
		require.Equal(t, size+freeCost, p.unused)
		again := p.Get(size)
		require.Zero(t, p.unused)
		require.Same(t, &b[:1][0], &again[0])
		require.NotSame(t, &b[:1][0], &p.Get(size)[0], "lent once")
	}
	p := Pool{MaxFree: 96 + 2*freeCost}
	p.Put(make([]byte, 64))
	p.Put(make([]byte, 32))
	p.Put(make([]byte, 32))
	require.Equal(t, 96+2*freeCost, p.unused)
	p.Put(make([]byte, 48))
	require.Equal(t, 96+2*freeCost, p.unused, "of no size that is lent")
	p = Pool{MaxFree: -1}
	p.Put(make([]byte, 64))
	require.Zero(t, p.unused)
	p = Pool{}
	for range 200 {
		p.Put(make([]byte, 65536))
	}
	require.LessOrEqual(t, p.unused, 12<<20)
	require.Greater(t, p.unused, 12<<20-65536-freeCost)
}

// TestPoolForgetsWhatNobodyNeeds: what a burst left is gone within half a minute, but for a little of each kind; what is used all the time stays.
func TestPoolForgetsWhatNobodyNeeds(t *testing.T) {
	var p Pool
	rings := [][]outRec{}
	for range 1000 {
		rings = append(rings, p.getRing(1))
	}
	for i := range rings {
		p.Put(make([]byte, 32))
		p.Put(make([]byte, 1024))
		p.putRing(rings[i])
		p.putEarly(new(early))
		p.putRare(new(rare))
	}
	require.Equal(t, 1000*(32+1024+outRecSize+earlySize+rareSize+5*freeCost), p.unused)
	now := time.Second
	var lent [][]byte
	use := func(n int) {
		lent = lent[:0]
		for range n {
			lent = append(lent, p.Get(20))
		}
		for _, b := range lent {
			p.Put(b)
		}
	}
	for range 40 * 30 {
		now += time.Second / 30
		use(100)
		p.tick(now)
	}
	require.Len(t, p.free[0].items, 100)
	require.Equal(t, 100*(32+freeCost)+keptUnused*(1024+outRecSize+earlySize+rareSize+4*freeCost), p.unused)
	require.LessOrEqual(t, cap(p.free[5].items), 2*keptUnused)
	for range 40 * 30 {
		now += time.Second / 30
		require.Zero(t, testing.AllocsPerRun(1, func() { use(100) }))
		p.tick(now)
	}
	p.tick(now - time.Hour) // the clock goes back
	p.tick(now - time.Hour + 2*trimPeriod)
	require.Equal(t, keptUnused*(32+1024+outRecSize+earlySize+rareSize+5*freeCost), p.unused)
	use(100)
	require.Equal(t, 100*(32+freeCost)+keptUnused*(1024+outRecSize+earlySize+rareSize+4*freeCost), p.unused)
}

// TestPoolTrimsOnceAPeriod: what nobody needed for a whole period goes at its end, to the tick, and a list of which nothing goes stays where it is.
func TestPoolTrimsOnceAPeriod(t *testing.T) {
	var p Pool
	for range 100 {
		p.Put(make([]byte, 32))
	}
	has := func(n int, now time.Duration) {
		t.Helper()
		p.tick(now)
		require.Len(t, p.free[0].items, n, "%v", now)
	}
	has(100, trimPeriod-1)
	has(100, trimPeriod) // they came amid it
	first := &p.free[0].items[0]
	has(100, trimPeriod)
	has(100, trimPeriod+1)
	has(100, 2*trimPeriod-1)
	require.Same(t, first, &p.free[0].items[0])
	has(keptUnused, 2*trimPeriod)
	first = &p.free[0].items[0]
	has(keptUnused, 3*trimPeriod)
	require.Same(t, first, &p.free[0].items[0])
}

// TestIdleChannelIsSmall: a connection has thousands.
func TestIdleChannelIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Channel{}), uintptr(128))
	s := newStub(t, true, noControl)
	ch := s.open(stubGame)
	s.send(ch, 10)
	s.ack(0)
	require.True(t, ch.OpenAcked())
	require.Nil(t, ch.out.slots)
	require.Nil(t, ch.rare)
	s.accepts(header(1, 1, stubGame, opening), "x")
	peers := s.table.Channel(1)
	require.Nil(t, peers.rare)
	s.accepts(header(1, 3, stubGame, nil), "x")
	require.NotNil(t, peers.rare, "one that came early")
	s.accepts(header(1, 2, stubGame, nil), "x")
	require.Nil(t, peers.rare)
}

// TestPoolCountsWhatHoldsBunches: rings, lists and places of early bunches count as unused as long as nobody has them.
func TestPoolCountsWhatHoldsBunches(t *testing.T) {
	var p Pool
	for _, n := range []int{4, 8, 512} {
		r := p.getRing(n)
		require.Len(t, r, n)
		p.putRing(r)
		require.Equal(t, n*outRecSize+freeCost, p.unused)
		require.Same(t, &r[0], &p.getRing(n)[0])
		require.Zero(t, p.unused)
	}
	e := p.getEarly()
	e.data = []byte{1}
	p.putEarly(e)
	require.Equal(t, earlySize+freeCost, p.unused)
	require.Same(t, e, p.getEarly())
	require.Nil(t, e.data)
	require.Zero(t, p.unused)
}

// TestConfigLimits: the values at each limit and one beyond.
func TestConfigLimits(t *testing.T) {
	long := bunch.Name{Text: string(make([]byte, 70))}
	other := bunch.Name{Index: 301}
	testGame := bunch.Name{Index: 300}
	for _, v := range []struct {
		cfg  Config
		fine bool
	}{
		{Config{}, true},
		{Config{Protocol: bunch.Protocol{SequenceBits: 2}, ReliableBuffer: 2}, false}, {Config{Protocol: bunch.Protocol{SequenceBits: 3}, ReliableBuffer: 4}, true},
		{Config{ReliableBuffer: 1}, false}, {Config{ReliableBuffer: 2}, true}, {Config{ReliableBuffer: 512}, true}, {Config{ReliableBuffer: 1024}, false}, {Config{ReliableBuffer: 100}, false},
		{Config{MaxChannels: -1}, false}, {Config{MaxChannels: 1}, true}, {Config{MaxChannels: 32767}, true}, {Config{MaxChannels: 32768}, false},
		{Config{MaxMemory: 256<<10 - 1}, false}, {Config{MaxMemory: 256 << 10}, true}, {Config{MaxMemory: math.MaxInt32}, true},
		{Config{PeerMemory: 256<<10 - 1}, false}, {Config{PeerMemory: 256 << 10}, true}, {Config{PeerMemory: math.MaxInt32}, true},
		{Config{MaxQueuedControl: -1}, false}, {Config{MaxQueuedControl: 1}, true}, {Config{MaxQueuedControl: 1<<20 + 1}, false},
		{Config{MaxChannels: 5, Types: []Type{{Name: testGame, Static: true, Index: 4}}}, true},
		{Config{MaxChannels: 5, Types: []Type{{Name: testGame, Static: true, Index: 5}}}, false},
		{Config{MaxChannels: 5, Types: []Type{{Name: testGame, Index: 5}}}, false},
		{Config{Types: []Type{{}}}, false},
		{Config{Types: []Type{{Name: testGame, Static: true}}}, false},
		{Config{Types: []Type{{Name: bunch.Control, Static: true, Index: 1}}}, false},
		{Config{Types: []Type{{Name: bunch.Control, Static: true}}}, true},
		{Config{Types: []Type{{Name: long}}}, false},
		{Config{Types: []Type{{Name: testGame}, {Name: other}, {Name: testGame}}}, false},
		{Config{Types: []Type{{Name: testGame, Static: true, Index: 3}, {Name: other, Static: true, Index: 3}}}, false},
		{Config{Types: []Type{{Name: testGame, Static: true, Index: 3}, {Name: other}}}, true},
		{Config{Types: []Type{{Name: testGame, Static: true, Index: 3}, {Name: other, Static: true, Index: 4}}}, true},
	} {
		require.Equal(t, v.fine, v.cfg.Validate() == nil, "%+v", v.cfg)
	}
	f := Config{}.filled()
	require.Equal(t, []int{256, 32767, 8 << 20, 8, 32768}, []int{f.ReliableBuffer, f.MaxChannels, f.MaxMemory, f.PartialReliableThreshold, f.MaxQueuedControl})
}

// TestBacklogKeepsItsOrder: pushes and pops in any mixture, with room that is used again and given back.
func TestBacklogKeepsItsOrder(t *testing.T) {
	var b backlog
	ch := new(Channel)
	next, first := int64(0), int64(0)
	for round := range 50 {
		for range round * 90 % 1300 {
			b.push(ch, next)
			next++
		}
		for b.len() > round%7 {
			_, seq := b.first()
			require.Equal(t, first, seq)
			b.pop()
			first++
			require.EqualValues(t, next-first, b.len())
			require.Less(t, b.head, max(1, len(b.items)))
		}
	}
	for b.len() > 0 {
		b.pop()
	}
	require.LessOrEqual(t, cap(b.items), maxIdleBacklog)
	for i := range int64(40) { // one in, one out: it doesn't grow
		b.push(ch, i)
		b.push(ch, i)
		b.pop()
		b.pop()
	}
	b.push(ch, 0)
	for i := range int64(100_000) {
		b.push(ch, i)
		b.pop()
	}
	require.LessOrEqual(t, cap(b.items), maxIdleBacklog)
}

// TestCompactKeepsWhatWaits: each bunch that waits stays once, in its order; the rest goes, and its memory.
func TestCompactKeepsWhatWaits(t *testing.T) {
	p := new(Pool)
	ch := new(Channel)
	var b backlog
	for i := range 256 {
		rec := ch.out.push(p)
		rec.waiting = i%3 == 0
	}
	b.push(ch, -1)
	b.pop()
	for range 20 {
		for seq := ch.out.first; seq < ch.out.next; seq++ {
			b.push(ch, seq)
		}
		b.push(ch, 5000) // of a bunch that is gone
	}
	b.compact()
	require.Equal(t, 86, b.len())
	require.LessOrEqual(t, cap(b.items), 2*maxIdleBacklog)
	for i := range int64(86) {
		_, seq := b.first()
		require.Equal(t, 3*i, seq)
		require.False(t, ch.out.at(seq).seen)
		b.pop()
	}
}

// each calls f for all early bunches, and depth has the most that any of them has above it.
func (q *earlyBunches) each(f func(*early)) (depth int) {
	var visit func(e *early, above int)
	visit = func(e *early, above int) {
		if e == nil {
			return
		}
		depth = max(depth, above)
		f(e)
		visit(e.below[0], above+1)
		visit(e.below[1], above+1)
	}
	visit(q.root, 0)
	return depth
}

// TestEarlyBunchesByTheirSequence: in whatever order they come and go, against a map.
func TestEarlyBunchesByTheirSequence(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q earlyBunches
		model := map[int64]*early{}
		base := int64(rng.Uint64() >> 8)
		for range 200 {
			base += rng.Int64N(40)
			for range rng.IntN(60) {
				e := new(early)
				e.in.ChSequence = base + rng.Int64N(300)
				q.add(e)
				if model[e.in.ChSequence] == nil {
					model[e.in.ChSequence] = e
				}
			}
			for range rng.IntN(60) {
				seq := base + rng.Int64N(300)
				require.Equal(t, model[seq] != nil, q.has(seq))
				require.Same(t, model[seq], q.take(seq), "seed %d", seed)
				delete(model, seq)
			}
			require.Equal(t, len(model), q.n)
			n := 0
			q.each(func(e *early) { require.Same(t, model[e.in.ChSequence], e); n++ })
			require.Equal(t, len(model), n)
		}
		for seq := range model {
			require.Same(t, model[seq], q.take(seq))
		}
		require.Nil(t, q.root)
	}
}

// TestWhatIsMissing: what is missing between early bunches counts as much as they do on average, with the one that comes.
func TestWhatIsMissing(t *testing.T) {
	var q earlyBunches
	add := func(seq int64, n int) {
		e := &early{data: make([]byte, n)}
		e.in.ChSequence = seq
		q.add(e)
	}
	const each = 1000
	require.Zero(t, q.missing(10, 500, each), "the first may come from anywhere")
	add(20, each-earlyCost)
	require.Zero(t, q.missing(10, 21, each))
	require.Equal(t, 4*each, q.missing(10, 25, each))
	require.Equal(t, 4*2*each, q.missing(10, 25, 3*each))
	require.Zero(t, q.missing(10, 15, each), "in between")
	add(30, each-earlyCost)
	require.Zero(t, q.missing(10, 29, each), "in between")
	require.Equal(t, 9*each, q.missing(10, 31, each))
	add(15, each-earlyCost)
	require.Equal(t, 13*each, q.missing(10, 31, each))
	require.NotNil(t, q.take(15))
	require.NotNil(t, q.take(20))
	require.Equal(t, 7*each, q.missing(22, 31, each), "23 to 29")
	require.NotNil(t, q.take(30))
	require.Zero(t, q.bytes)
	add(50, 0)
	require.Equal(t, 4*earlyCost, q.missing(30, 55, earlyCost))
	part := &early{data: make([]byte, 100)}
	part.in.ChSequence, part.in.Partial = 51, true
	q.add(part)
	require.Equal(t, 2*earlyCost+200, q.bytes, "a part counts what it will when it is joined")
}

// TestEarlyBunchesAreNeverDeep: a peer that sends as many early bunches as there may be, in the worst order, has none looked for among more than 14.
func TestEarlyBunchesAreNeverDeep(t *testing.T) {
	orders := map[string]func(i int64) int64{
		"forward":   func(i int64) int64 { return i },
		"backward":  func(i int64) int64 { return largestRing - 1 - i },
		"low bits":  func(i int64) int64 { return i<<6&(largestRing-1) | i>>7 },
		"high bits": func(i int64) int64 { return int64(bits.Reverse16(uint16(i)) >> 3) },
	}
	for name, order := range orders {
		for _, base := range []int64{0, 12345} {
			var q earlyBunches
			for i := range int64(largestRing) {
				e := new(early)
				e.in.ChSequence = base + order(i)
				q.add(e)
			}
			require.Equal(t, largestRing, q.n, name)
			require.LessOrEqual(t, q.each(func(*early) {}), 13, name)
			require.EqualValues(t, base+largestRing-1, q.newest)
			for seq := base; seq < base+largestRing; seq++ {
				require.NotNil(t, q.take(seq))
			}
			require.Nil(t, q.root)
		}
	}
}

// TestUnackedBunchesByTheirSequence: as long as they aren't popped, in a ring that grows and goes back to the pool.
func TestUnackedBunchesByTheirSequence(t *testing.T) {
	p := new(Pool)
	var o outRecs
	o.first, o.next = 1000, 1000
	for round := range 150 {
		for range 1 + round%9 {
			rec := o.push(p)
			require.Equal(t, o.next-1, rec.seq)
			require.Equal(t, bunch.NoPacket, rec.packetID)
			rec.data = p.Get(40)
		}
		for range round % 5 {
			if o.len() > 0 {
				o.popFirst(p)
			}
		}
		require.Nil(t, o.at(o.first-1))
		require.Nil(t, o.at(o.next))
		for seq := o.first; seq < o.next; seq++ {
			require.Equal(t, seq, o.at(seq).seq)
		}
	}
	require.Greater(t, o.len(), 256)
	for o.len() > 0 {
		o.popFirst(p)
	}
	require.Nil(t, o.slots)
	require.Positive(t, p.unused)
}

// TestPacketRange: of the first and the last packet that there is.
func TestPacketRange(t *testing.T) {
	r := noPackets
	r.add(bunch.NoPacket)
	require.Equal(t, noPackets, r)
	r.add(5)
	r.add(bunch.NoPacket)
	require.Equal(t, PacketRange{5, 5}, r)
	r.add(7)
	require.Equal(t, PacketRange{5, 7}, r)
}

// TestAppendBits: behind any number of bits, with those before as they were.
func TestAppendBits(t *testing.T) {
	for n := range 20 {
		for bits := range 30 {
			dst, want := make([]byte, 8), ""
			for i := range n {
				dst[i/8] |= byte(i&1) << (i % 8)
				want += fmt.Sprint(i & 1)
			}
			data := []byte{0b10110101, 0b01110011, 0b11001010, 0b1}
			for i := range bits {
				want += fmt.Sprint(data[i/8] >> (i % 8) & 1)
			}
			appendBits(dst, n, data, bits)
			got := ""
			for i := range n + bits {
				got += fmt.Sprint(dst[i/8] >> (i % 8) & 1)
			}
			require.Equal(t, want, got, "%d behind %d", bits, n)
		}
	}
}

// TestFillsPerTick: the gaps that a peer has filled between two ticks are together no longer than a buffer, but one always may be.
func TestFillsPerTick(t *testing.T) {
	for _, v := range []struct {
		n    []int
		fits []bool
	}{{[]int{300, 1}, []bool{true, false}}, {[]int{100, 156, 1}, []bool{true, true, false}}, {[]int{200, 57, 56}, []bool{true, false, true}}} {
		tb := &Table{cfg: Config{ReliableBuffer: 256}.filled()}
		for i, n := range v.n {
			require.Equal(t, v.fits[i], tb.mayFill(n), "%v, %d", v.n, i)
		}
	}
}

// TestGapWithoutMemoryWaits: a peer that opens a channel anew, whose index has a gap, isn't at fault when what waits on other channels
// leaves no memory to fill it: the game is told so when it sends there, and the gap is filled when there is room again.
func TestGapWithoutMemoryWaits(t *testing.T) {
	s := newStub(t, true, func(c *Config) {
		noControl(c)
		c.MaxMemory = 256 << 10
	})
	s.accepts(header(3, 1, stubGame, opening), "a")
	for range 5 {
		s.send(s.table.Channel(3), 10)
	}
	s.accepts(header(3, 2, stubGame, closes), "")
	busy := s.open(stubGame)
	other := s.open(stubGame)
	var err error
	for _, ch := range []*Channel{busy, other} {
		for err = nil; err == nil; {
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
		}
		require.ErrorIs(t, err, ErrReliableFull)
	}
	for err = nil; err == nil; {
		_, err = other.SendBunch(&bunch.Out{Data: make([]byte, 1), Reliable: true, NoMerge: true})
	}
	require.ErrorIs(t, err, ErrReliableFull)
	nak, err := s.receive(header(3, 3, stubGame, opening), "again")
	require.NoError(t, err)
	require.False(t, nak)
	again := s.table.Channel(3)
	_, err = again.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.ErrorIs(t, err, ErrReliableFull)
	s.table.heldOut -= 3 * (outCost + 1<<minClass) // room for what is sent, but not for the gap as well
	_, err = again.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.ErrorIs(t, err, ErrReliableFull)
	s.table.heldOut += 3 * (outCost + 1<<minClass)
	s.ackFrom(0)
	_, err = again.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	require.EqualValues(t, 5, s.table.Counters.Filled)
	require.Equal(t, 6, again.NumOutRec())
}

// TestUnreliableOnIgnoredChannel: unreliable bunches on a channel that this end doesn't take are ignored like its reliable ones, until it is
// closed or its index used for another; before the open has come they are refused.
func TestUnreliableOnIgnoredChannel(t *testing.T) {
	forgotten := bunch.Name{Index: 999}
	unreliable := func(edit func(h *bunch.Header)) bunch.Header {
		return header(3, 0, forgotten, func(h *bunch.Header) {
			h.Reliable = false
			if edit != nil {
				edit(h)
			}
		})
	}
	s := newStub(t, true, noControl)
	gets := func(refused bool, h bunch.Header) {
		t.Helper()
		nak, err := s.receive(h, "x")
		require.NoError(t, err)
		require.Equal(t, refused, nak)
	}
	gets(true, unreliable(nil))
	gets(false, header(3, 1, forgotten, opening))
	gets(false, unreliable(nil))
	gets(false, header(3, 2, forgotten, closes))
	gets(true, unreliable(nil))
	gets(false, header(3, 3, forgotten, opening))
	gets(false, header(3, 4, stubGame, opening))
	gets(false, unreliable(nil))
	require.Equal(t, []string{"x", "x"}, s.got)
	gets(false, header(3, 5, stubGame, closes))
	gets(true, unreliable(nil))
	partOf := func(initial, final bool) func(h *bunch.Header) { // of a temporary channel
		return func(h *bunch.Header) {
			h.Partial, h.PartialInitial, h.PartialFinal, h.Open, h.Close = true, initial, final, initial, final
		}
	}
	gets(false, unreliable(partOf(true, false)))
	gets(false, unreliable(partOf(false, true)))
	gets(true, unreliable(nil))
	require.EqualValues(t, 2, s.table.Counters.Ignored)
}

// TestSplitWaitsForSplit: an unreliable payload of several parts isn't sent while the rest of a reliable one waits.
func TestSplitWaitsForSplit(t *testing.T) {
	s := newStub(t, true, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ackFrom(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 2500), Reliable: true})
	require.NoError(t, err)
	n := len(s.sent)
	split := &bunch.Out{Data: make([]byte, 1500), NoMerge: true}
	_, err = ch.SendBunch(split)
	require.NoError(t, err, "all of it has been sent")
	s.m.Naked(ch, s.sent[n-1].seq, int64(1000+n)) // the last part is lost
	for i := 1; i < n-1; i++ {
		s.ack(i)
	}
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 15)})
	require.NoError(t, err, "it isn't split")
	_, err = ch.SendBunch(split)
	require.ErrorIs(t, err, ErrNotSent)

	s.m.Pump()
	s.ackFrom(n - 1)
	s.budget = len(s.sent) + 1
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 2500), Reliable: true})
	require.NoError(t, err)
	_, err = ch.SendBunch(split)
	require.ErrorIs(t, err, ErrNotSent, "the first part has left, the others never yet")
	s.budget = 0
	s.m.Pump()
	_, err = ch.SendBunch(split)
	require.NoError(t, err)
}

// TestAheadForLong: bunches that come in order while others are taken before their packets' turn are told apart however many they are, and
// from the beginning again on an index whose sequence restarts.
func TestAheadForLong(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := newStub(t, true, func(c *Config) { noControl(c); c.RestartSequence = restart })
		s.accepts(header(1, 1, stubGame, opening), "")
		in := &bunch.In{Header: header(1, 2, stubGame, nil), PacketID: 5}
		in.Bits = 8
		in.Data.Reset([]byte("e"), in.Bits)
		nak, err := s.m.ReceivedEarly(in)
		require.NoError(t, err)
		require.False(t, nak)
		for seq := 3; seq < 700; seq++ {
			h := header(1, seq, stubGame, nil)
			h.WireSeq = s.table.wireSeq(int64(100 + seq))
			s.accepts(h, "x")
		}
		require.Len(t, s.got, 698)
		if !restart {
			continue
		}
		h := header(1, 700, stubGame, closes)
		h.WireSeq = s.table.wireSeq(800)
		s.accepts(h, "")
		require.Nil(t, s.table.Channel(1))
		s.accepts(header(1, 1, stubGame, opening), "again")
		require.Equal(t, "again", s.got[len(s.got)-1])
	}
}

// TestSequenceAfterIgnoredChannel: a channel that is opened and closed in one bunch and ignored, on an index that was never used, has had its sequence.
func TestSequenceAfterIgnoredChannel(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1000, 1, bunch.Name{Index: 999}, func(h *bunch.Header) { h.Open, h.Close = true, true }), "")
	s.accepts(header(1000, 2, stubGame, opening), "hello")
	require.Equal(t, []string{"hello"}, s.got)
}

// TestControlOvertakesWhatWaits: a bunch of the control channel leaves at once when it may, though others wait.
func TestControlOvertakesWhatWaits(t *testing.T) {
	s := newStub(t, false, nil)
	control := s.open(bunch.Control)
	s.send(control, 1)
	game := s.open(stubGame)
	s.send(game, 1)
	s.slow = true
	s.send(game, 1)
	require.Len(t, s.sent, 2)
	s.slow = false
	s.send(control, 1)
	require.Len(t, s.sent, 3)
	require.Equal(t, control, s.sent[2].ch)
}

// TestUnusedIndex: a free index is found as by looking at one after the other, for each step and from any index on, also behind all that were taken.
func TestUnusedIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 14))
	for range 300 {
		var table Table
		taken := map[uint32]bool{}
		most := 1 + rng.Uint32N(300)
		for range rng.Uint32N(4 * most) {
			i := rng.Uint32N(most)
			taken[i] = rng.IntN(8) > 0
			table.setInUse(i, taken[i])
		}
		for step := uint32(1); step <= 2; step++ {
			for from := range most + 70 {
				want := from
				for taken[want] {
					want += step
				}
				require.Equal(t, want, table.unusedIndex(from, step), "from %d by %d", from, step)
			}
		}
	}
}
