package channel_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// headerBits is the size of a header as it is written.
func headerBits(p *bunch.Protocol, h *bunch.Header, buf []byte) int {
	w := bitio.NewWriter(buf)
	p.WriteHeader(w, h)
	return w.Len()
}

// seeds is how many seeds or rounds a test takes, a tenth of them in short mode.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// TestEarlyAgainstModel keeps bunches that come in any order, and releases them as a map would.
func TestEarlyAgainstModel(t *testing.T) {
	for seed := range seeds(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w, l := opened(t, nil)
		next, model := 2, map[int]string{}
		var want []string
		for step := range 3000 {
			seq := next + rng.IntN(200) - 20
			if rng.IntN(3) == 0 {
				seq = next
			}
			if seq < 2 {
				continue
			}
			text := fmt.Sprint(seq)
			nak, err := w.receive(int64(step+2), reliable(1, seq, game), text)
			require.NoError(t, err, "seed %d", seed)
			require.False(t, nak)
			if seq >= next {
				model[seq] = text
			}
			for text, ok := model[next]; ok; text, ok = model[next] {
				want = append(want, text)
				delete(model, next)
				next++
			}
			require.Equal(t, len(model), w.table.Channel(1).NumInRec(), "seed %d, step %d", seed, step)
		}
		require.Equal(t, want, l.bunches, "seed %d", seed)
	}
}

// TestHeldComesBack: whatever happens on its channels, what a table counts against MaxMemory is gone with them.
func TestHeldComesBack(t *testing.T) {
	for seed := range seeds(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w, _ := newWire(t, true, func(c *channel.Config) { c.MaxMemory = 1 << 20; c.MaxChannels = 32; c.ReliableBuffer = 32 })
		h := reliable(0, 1, bunch.Control)
		h.Open = true
		_, err := w.receive(1, h, "open")
		require.NoError(t, err)
		seqs := map[uint32]int{0: 1}
		for step := range 4000 {
			index := uint32(1 + 2*rng.IntN(15))
			switch rng.IntN(6) {
			case 0, 1, 2: // in turn or early, opening, closing, in parts
				seq := seqs[index] + 1
				if rng.IntN(3) == 0 {
					seq += rng.IntN(25)
				}
				h := reliable(index, seq, game)
				h.Open = w.table.Channel(index) == nil || rng.IntN(9) == 0
				h.Close = rng.IntN(20) == 0
				h.Partial = !h.Close && rng.IntN(5) == 0
				h.PartialInitial, h.PartialFinal = h.Partial, h.Partial && rng.IntN(2) == 0
				if _, err := w.receive(int64(step+2), h, string(make([]byte, rng.IntN(900)))); err != nil {
					break // a rule of the protocol; a connection would end here, and the count must hold all the same
				}
				if seq == seqs[index]+1 {
					seqs[index]++
				}
			case 3:
				if ch := w.table.Channel(index); ch != nil {
					_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, rng.IntN(3000)), Reliable: true, NoMerge: rng.IntN(2) == 0}) // or there is no room
				}
			case 4:
				if ch := w.table.Channel(index); ch != nil && ch.Hold(rng.IntN(5000)) == nil {
					ch.Release(rng.IntN(5000))
				}
			case 5:
				w.slow = rng.IntN(2) == 0
				for _, s := range w.sent {
					if rng.IntN(3) > 0 {
						w.acked(s.ch, s.seq, s.id)
					} else {
						w.m.Naked(s.ch, s.seq, s.id)
						w.m.Settled(s.ch, s.id, false)
					}
				}
				w.sent = nil
				w.m.Pump()
			}
			require.LessOrEqual(t, w.table.Held(), 1<<20, "seed %d", seed)
			unacked := 0
			for ch := range w.table.All {
				unacked += ch.NumOutRec()
			}
			require.Equal(t, unacked, w.table.Unacked(), "seed %d, step %d", seed, step)
		}
		for _, s := range w.sent {
			w.acked(s.ch, s.seq, s.id)
		}
		const pages = 2 * 32 * 32 // the sequences of indices stay: two pages at most
		w.m.End()
		require.LessOrEqual(t, w.table.Held(), pages, "seed %d", seed)
		require.GreaterOrEqual(t, w.table.Held(), 0, "seed %d", seed)
		require.Zero(t, w.table.Unacked(), "seed %d", seed)
	}
}

// TestMemoryFullIsRefused: an early bunch for which there is no memory comes again, and so do the parts of a payload for which there is none until
// others are whole.
func TestMemoryFullIsRefused(t *testing.T) {
	w, l := opened(t, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	big := string(make([]byte, 1000))
	refused := 0
	for i := range 200 {
		nak, err := w.receive(int64(i+2), reliable(1, i+3, game), big)
		require.NoError(t, err)
		if nak {
			refused++
		}
	}
	require.Greater(t, refused, 50)
	require.EqualValues(t, refused, w.table.Counters.MemoryFull)
	require.LessOrEqual(t, w.table.Held(), 64<<10)
	nak, err := w.receive(300, reliable(1, 2, game), "the missing one")
	require.NoError(t, err)
	require.False(t, nak)
	require.Len(t, l.bunches, 1+200-refused)
	require.Less(t, w.table.Held(), 4<<10, "all of it is free again")

	taken := map[uint32]int{} // bunches of each channel
	got := len(l.bunches)
	for all := false; !all; {
		all = true
		for index := uint32(3); index < 20; index += 2 {
			for taken[index] < 60 {
				h := reliable(index, taken[index]+1, game)
				h.Open, h.Partial, h.PartialInitial, h.PartialFinal = taken[index] == 0, true, taken[index] == 0, taken[index] == 59
				nak, err := w.receive(400, h, big)
				require.NoError(t, err)
				require.LessOrEqual(t, w.table.Held(), 128<<10)
				if nak {
					all = false
					break
				}
				taken[index]++
				if len(l.bunches) == got && index == 3 && taken[index] == 59 {
					break // its last part waits: nobody after the second can begin
				}
			}
		}
	}
	require.Len(t, l.bunches, got+9)
}

// TestUnackedIsBounded: what the peer doesn't ack meets an error before the memory for it is gone.
func TestUnackedIsBounded(t *testing.T) {
	w, _ := newWire(t, false, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	var err error
	for range 10 {
		ch, _ := open(t, w, game)
		for ch.Room() > 0 && err == nil {
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
		}
	}
	require.ErrorIs(t, err, channel.ErrReliableFull)
	require.LessOrEqual(t, w.table.Held(), 128<<10+1<<10, "and the sequences of the indices")
}

// TestLargeTemporariesAreBounded: large payloads of temporary channels, which are made reliable, count as others. Without room they stay unreliable.
func TestLargeTemporariesAreBounded(t *testing.T) {
	w, _ := newWire(t, false, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	for range 100 {
		ch, _ := open(t, w, game)
		_, err := ch.SendTemporary(&bunch.Out{Data: make([]byte, 8000)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, w.table.Held(), 128<<10)
	require.Positive(t, w.table.Counters.Promoted)
	require.Less(t, w.table.Counters.Promoted, uint64(20))
}

// TestRingsFollow: what held many bunches is lent to the next channel that needs it.
func TestRingsFollow(t *testing.T) {
	w, _ := newWire(t, false, nil)
	round := func() {
		ch, _ := open(t, w, game)
		for range 200 {
			send(t, ch, 10, true)
		}
		for _, s := range w.sent {
			w.acked(ch, s.seq, s.id)
		}
		w.sent = w.sent[:0]
		require.NoError(t, ch.Close(bunch.Destroyed))
		s := w.sent[0]
		w.acked(ch, s.seq, s.id)
		w.sent = w.sent[:0]
	}
	round()
	allocs := testing.AllocsPerRun(10, round)
	require.Less(t, allocs, 450.0, "of which the test's own copies are 402")
}

// TestClosedChannelsAreForgotten: channels that are closed while their bunches wait leave nothing behind in the queues, although
// nothing may be sent.
func TestClosedChannelsAreForgotten(t *testing.T) {
	w, _ := opened(t, nil)
	send(t, w.table.Channel(1), 1, true)
	w.slow = true
	send(t, w.table.Channel(1), 1, true) // waits for ever
	seq := map[uint32]int{}
	for i := range int(seeds(20_000)) {
		w.m.Tick(time.Duration(i) * 10 * time.Millisecond)
		index := uint32(3 + 2*(i%50))
		seq[index]++
		h := reliable(index, seq[index], game)
		h.Open = true
		_, err := w.receive(int64(i+2), h, "open")
		require.NoError(t, err)
		_, _ = w.table.Channel(index).SendBunch(&bunch.Out{Data: []byte("answer"), Reliable: true}) // or the gap leaves no room
		seq[index]++
		h = reliable(index, seq[index], game)
		h.Close = true
		_, err = w.receive(int64(i+2), h, "")
		require.NoError(t, err)
		require.LessOrEqual(t, channel.QueueLen(w.table), 2*w.table.Waiting()+65)
	}
	require.LessOrEqual(t, w.table.Waiting(), 2)
	w.slow = false
	w.m.Pump()
	require.Zero(t, w.table.Waiting())
	require.Zero(t, channel.QueueLen(w.table))
}

// TestEarlyBunchesShareTheirName: a type's name that is text isn't kept once for each early bunch, as nobody counts it.
func TestEarlyBunchesShareTheirName(t *testing.T) {
	text := strings.Repeat("n", 60)
	w, _ := newWire(t, true, func(c *channel.Config) {
		c.MaxMemory = 2 << 20
		c.Types = append(c.Types, channel.Type{Name: bunch.Name{Text: text}, ClientOpen: true})
	})
	h := reliable(0, 1, bunch.Control)
	h.Open = true
	_, err := w.receive(1, h, "open")
	require.NoError(t, err)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for i := range 5000 {
		_, err := w.receive(2, reliable(uint32(1+i/200), 3+i%200, bunch.Name{Text: strings.Clone(text)}), "")
		require.NoError(t, err)
	}
	require.NotZero(t, w.table.Counters.Early)
	require.Less(t, heap()-before, w.table.Held()*11/10)
	runtime.KeepAlive(w)
}

// TestEarlyBunchesLeaveRoom: bunches behind one that was lost are refused before they take the memory that the lost one needs, when
// it comes in parts.
func TestEarlyBunchesLeaveRoom(t *testing.T) {
	for _, memory := range []int{256 << 10, 1 << 20, 8 << 20} {
		w, l := opened(t, func(c *channel.Config) {
			c.MaxMemory, c.ReliableBuffer = memory, 4096
			c.Protocol.SequenceBits, c.Protocol.MaxPacket = 13, 1400
		})
		part := string(make([]byte, 1200))
		const parts = 50 // of the largest payload's 55
		wide := func(seq int) bunch.Header {
			h := reliable(1, seq, game)
			h.WireSeq = uint16(initSeq+seq) & 8191
			return h
		}
		kept := 0
		for nak := false; !nak; kept++ {
			var err error
			nak, err = w.receive(int64(kept+3), wide(2+parts+kept), part)
			require.NoError(t, err)
		}
		require.Greater(t, kept, memory/16384, "MaxMemory %d", memory)
		for i := range parts {
			h := wide(2 + i)
			h.Partial, h.PartialInitial, h.PartialFinal = true, i == 0, i == parts-1
			nak, err := w.receive(int64(9000+i), h, part)
			require.NoError(t, err, "MaxMemory %d, part %d", memory, i)
			require.False(t, nak)
		}
		require.Equal(t, kept, len(l.bunches), "the one in parts, and what waited for it")
		require.Zero(t, w.table.Channel(1).NumInRec())
	}
}

// TestOwnChannelsLeaveRoom: what an end needs for channels that it opens takes nothing of what it may hold for the peer, so that the peer can open some.
func TestOwnChannelsLeaveRoom(t *testing.T) {
	w, _ := newWire(t, true, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	for range 10_000 {
		_, err := w.table.Open(game, channel.Nop{})
		require.NoError(t, err)
	}
	require.Zero(t, w.table.Held())
}

// TestFullAllocatesNothing: a sender that tries again while the memory for unacked bunches is full costs no allocation.
func TestFullAllocatesNothing(t *testing.T) {
	w, _ := newWire(t, true, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	ch, err := w.table.Open(game, channel.Nop{})
	require.NoError(t, err)
	out := &bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true}
	for err == nil {
		_, err = ch.SendBunch(out)
	}
	require.ErrorIs(t, err, channel.ErrReliableFull)
	require.ErrorContains(t, err, "MaxMemory")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, err = ch.SendBunch(out) }))
	require.ErrorContains(t, err, "MaxMemory")
}

// TestHandlersHaveAShare: early bunches leave a quarter to what handlers count, about which nothing can be done when it doesn't fit.
func TestHandlersHaveAShare(t *testing.T) {
	for _, memory := range []int{256 << 10, 1 << 20, 8 << 20} {
		w, _ := opened(t, func(c *channel.Config) { c.MaxMemory, c.ReliableBuffer = memory, 8192; c.Protocol.SequenceBits = 14 })
		for i, nak := 0, false; !nak; i++ {
			h := reliable(1, 3+i, game)
			h.WireSeq = uint16(initSeq+3+i) & 16383
			var err error
			nak, err = w.receive(int64(i+2), h, string(make([]byte, 1000)))
			require.NoError(t, err)
		}
		ch := w.table.Channel(1)
		n := (memory/2 - max(memory/8, 65536)) / 4
		require.NoError(t, ch.Hold(n), "of %d bytes", memory)
		require.ErrorIs(t, ch.Hold(n), channel.ErrMemory)
	}
}
