package channel

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// heapNow is the bytes on the heap that are in use.
func heapNow() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestPoolKeepsToMaxFree: what a pool keeps unused takes no more of the heap than MaxFree, whatever is given back: buffers of any size,
// rings and places of early bunches.
func TestPoolKeepsToMaxFree(t *testing.T) {
	const most = 2 << 20
	for name, give := range map[string]func(p *Pool, i int){
		"small buffers": func(p *Pool, _ int) { p.Put(make([]byte, 32)) },
		"buffers":       func(p *Pool, i int) { p.Put(make([]byte, 32<<(i%12))) },
		"small rings":   func(p *Pool, _ int) { p.putRing(make([]outRec, 2)) },
		"early places":  func(p *Pool, _ int) { p.putEarly(new(early)) },
	} {
		p := &Pool{MaxFree: most}
		before := heapNow()
		for i := range 100_000 {
			give(p, i)
		}
		kept := heapNow() - before
		require.LessOrEqual(t, kept, most+64<<10, "%s: %d counted", name, p.unused)
		require.Greater(t, kept, most/3, name)
		runtime.KeepAlive(p)
	}
}

// TestOwnPoolIsAnEighth: a table without a Pool keeps an eighth of its MaxMemory unused at most, and nothing of it when it was idle between two
// calls of Shrink. Others' pools are theirs.
func TestOwnPoolIsAnEighth(t *testing.T) {
	for _, own := range []bool{true, false} {
		shared := new(Pool)
		s := newStub(t, false, func(c *Config) {
			if c.MaxMemory = 1 << 20; !own {
				c.Pool = shared
			}
		})
		p, ch := s.table.cfg.Pool, s.open(stubGame)
		for range 10 {
			for range 200 {
				s.send(ch, 900)
			}
			s.ackFrom(0)
			s.sent = nil
			require.LessOrEqual(t, p.unused, map[bool]int{true: 1 << 17, false: 12 << 20}[own])
		}
		require.Positive(t, p.unused)
		s.m.Shrink()
		require.Positive(t, p.unused, "it was used")
		s.m.Shrink()
		require.Equal(t, own, p.unused == 0)
		s.send(ch, 900)
		s.ackFrom(0)
		require.Positive(t, p.unused)
	}
}

// TestQueuesShrink: queues that were long keep no memory of an idle connection's, and what waits in them stays.
func TestQueuesShrink(t *testing.T) {
	s := newStub(t, false, nil)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	s.slow = true
	for range 200 {
		s.send(ch, 1)
	}
	s.m.Shrink()
	s.m.Shrink()
	require.Equal(t, 200, s.table.Waiting())
	s.slow = false
	s.m.Tick(0)
	require.Zero(t, s.table.Waiting())
	require.Positive(t, cap(s.table.fresh.list))
	for i := range s.sent {
		s.m.Naked(ch, s.sent[i].seq, int64(i))
	}
	require.Positive(t, s.table.due.len())
	s.m.Tick(0)
	require.Positive(t, cap(s.table.due.items))
	s.m.Shrink()
	require.Zero(t, cap(s.table.fresh.list)+cap(s.table.due.items))
}

// TestBusyBothWaysKeepsThePool: as much received as sent is no idleness.
func TestBusyBothWaysKeepsThePool(t *testing.T) {
	s := newStub(t, true, noControl)
	s.accepts(header(1, 1, stubGame, opening), "x")
	ch := s.table.Channel(1)
	for i := range 5 {
		s.send(ch, 900)
		s.ack(i)
		s.m.Shrink()
		require.Positive(t, s.table.cfg.Pool.unused)
		s.accepts(header(1, 2+i, stubGame, nil), "x")
	}
	s.m.Shrink()
	s.m.Shrink()
	require.Zero(t, s.table.cfg.Pool.unused)
}

// TestUnreleased: what isn't acked counts, and what the control channel has for itself isn't the game's.
func TestUnreleased(t *testing.T) {
	s := newStub(t, false, func(c *Config) { c.MaxMemory = 1 << 20 })
	s.m.Reserve(1000)
	used, most := s.table.Unreleased()
	require.Zero(t, used)
	require.Equal(t, 1<<19-1000-controlReserve, most)
	s.send(s.open(stubGame), 1000)
	used, _ = s.table.Unreleased()
	require.GreaterOrEqual(t, used, 1024+outCost)
	s.ackFrom(0)
	used, _ = s.table.Unreleased()
	require.Zero(t, used)
}
