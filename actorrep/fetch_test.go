package actorrep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// TestReadInAdvance: what is read in advance of a batch is of each of its actors that are there, and of those that changed of the first of their views. The
// sums show it; nothing else would but the time.
func TestReadInAdvance(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	for range fetchedViews + 1 {
		p := s.newPeer()
		p.out = noOutlet{}
		s.addPeer(p)
	}
	var actors []*Base
	var batch []comparison
	for i := range 5 {
		a := &place{N: int32(i + 1)}
		require.NoError(t, s.Spawn(a))
		b := a.base()
		s.compareNow(b)
		for n, p := range s.peers {
			if v := newView(p, b); i != 3 || n == 0 {
				v.total, v.dirty = uint64(100*n+i), 1<<n
			}
		}
		b.rep.count, b.rep.lastFrame, b.rep.shadow.Stamp = int64(10*i+1), uint32(1000*i+7), int64(100_000*i)
		actors = append(actors, b)
		batch = append(batch, comparison{b: b})
	}
	gone := actors[2]
	require.NoError(t, s.Destroy(gone.self))
	require.Nil(t, gone.rep)
	batch[1].changed, batch[2].changed, batch[3].changed = 1, 1, 1
	counts, shadows, views := int64(0), int64(0), int64(0)
	for i, b := range actors {
		if b == gone {
			continue
		}
		r := b.rep
		counts += r.count
		shadows += int64(b.guid) + int64(r.lastFrame) + r.shadow.Stamp
		if n := len(r.shadow.Words); n > 0 {
			shadows += int64(r.shadow.Words[n-1])
		}
		if batch[i].changed != 0 {
			for _, v := range r.views[:fetchedViews] {
				views += int64(v.dirty) + int64(v.total)
			}
		}
	}
	require.Equal(t, counts, fetchMarked(actors))
	require.Equal(t, shadows, fetchShadows(batch))
	require.Equal(t, views, fetchViews(batch))
	require.Positive(t, min(counts, shadows, views))

	p := s.peers[0]
	for _, v := range p.list[:3] {
		p.sent.next().v = v
		p.sent.push()
	}
	require.EqualValues(t, 1+2+3, p.sent.fetch(p.sent.end()))
	require.EqualValues(t, 1+2, p.sent.fetch(3))
}

// TestComparedWhenDue: an actor with a frequency is compared in the Step at which it is due, not in the one after it.
func TestComparedWhenDue(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	a := &place{}
	require.NoError(t, s.Spawn(a))
	require.NoError(t, a.SetUpdateFrequency(10))
	for i := range 20 {
		before := s.Counters.Compared
		s.Step(time.Duration(i+1) * time.Second / 20)
		if i > 0 {
			require.EqualValues(t, i%2, s.Counters.Compared-before, "Step %d", i)
		}
	}
}

// TestCoresCountLosses: with several cores each lost record counts once, also in Steps in which the connections themselves mark what has changed.
func TestCoresCountLosses(t *testing.T) {
	s := NewServer(Config{Parallel: driver.Cores(2)})
	s.CompareOnCoresFrom(1)
	require.NoError(t, s.Register("place", (*place)(nil)))
	var lanes []*lane
	for range 2 {
		c := NewClient(Config{})
		require.NoError(t, c.Register("place", (*place)(nil)))
		lanes = append(lanes, addLane(t, s, c))
	}
	var all []*place
	for range 30 {
		all = append(all, &place{})
		require.NoError(t, s.Spawn(all[len(all)-1]))
	}
	now := time.Duration(0)
	step := func() {
		for _, a := range all {
			a.N++
		}
		now += time.Second / 30
		s.Step(now)
		for _, l := range lanes {
			l.deliver()
		}
	}
	for range 9 {
		step()
	}
	require.Zero(t, s.Counters.Resent)
	for _, lost := range []bool{true, false} {
		for _, l := range lanes {
			l.packet, l.drop, l.lost = l.packet+1, lost, lost
		}
		step()
	}
	for range 5 {
		step()
		require.LessOrEqual(t, len(s.hearing), len(lanes))
	}
	require.EqualValues(t, 60, s.Counters.Resent)
}

// TestPairsForCores: a Step's pairs of actor and connection are looked at on several cores when they are many, and no more of them than its share.
func TestPairsForCores(t *testing.T) {
	c := &crew{}
	s := NewServer(Config{Parallel: c})
	require.NoError(t, s.Register("place", (*place)(nil)))
	for range 2 {
		p := s.newPeer()
		p.out = noOutlet{}
		s.addPeer(p)
	}
	l := s.relevancy.(*list)
	for _, n := range []int{pairsForCores/2 - 1, pairsForCores / 2, fewPairs/2 + 1} {
		for s.Len() < n {
			require.NoError(t, s.Spawn(&place{}))
		}
		l.Update(0) // those that are new
		l.next = 0
		before := *c
		s.actors[0].onlyOwner = !s.actors[0].onlyOwner // in silence
		l.Update(0)
		require.Equal(t, 2*n >= pairsForCores, c.runs == before.runs+1, "%d actors", n)
		require.Equal(t, min(2*n, fewPairs)%(2*n), l.next, "%d actors", n)
		for _, changed := range l.parts {
			require.Empty(t, changed, "what has changed is looked at once")
		}
	}
}

// TestComparesOnCores: several cores compare when there are enough views for several connections; the connections mark what has changed when that is much of all.
func TestComparesOnCores(t *testing.T) {
	for _, cores := range []int{1, 3} {
		for _, peers := range []int{1, 2} {
			c, cfg := &crew{}, Config{}
			if cores > 1 {
				cfg.Parallel = c
			}
			s := NewServer(cfg)
			require.NoError(t, s.Register("place", (*place)(nil)))
			for range peers {
				w := NewClient(Config{})
				require.NoError(t, w.Register("place", (*place)(nil)))
				addLane(t, s, w)
			}
			var all []*place
			for range 20 {
				all = append(all, &place{})
				require.NoError(t, s.Spawn(all[len(all)-1]))
			}
			now := time.Duration(0)
			runs := func(changed int) int {
				for _, a := range all[:changed] {
					a.N++
				}
				before := c.runs
				now += time.Second / 30
				s.Step(now)
				return c.runs - before
			}
			for range 6 {
				require.Zero(t, runs(0))
			}
			for _, from := range []int{20*peers + 1, 20 * peers} {
				s.CompareOnCoresFrom(from)
				few, many := runs(1), runs(2)
				if cores == 1 || peers == 1 || from > 20*peers {
					require.Zero(t, few+many)
					require.Empty(t, s.compares.news)
				} else {
					require.Equal(t, []int{1, 2}, []int{few, many})
					require.Len(t, s.compares.news, 30, "half as much again as there are actors")
					s.compares.news = s.compares.news[:20]
					runs(1)
					require.Len(t, s.compares.news, 20)
				}
			}
		}
	}
}

// TestManyHaveChanged: the connections mark the changes themselves when one of sixteen of their views has some.
func TestManyHaveChanged(t *testing.T) {
	w := &World{peers: []*Peer{{list: make([]*view, 30)}, {list: make([]*view, 2)}}}
	for told, many := range []bool{false, false, true, true} {
		c := compares{told: []int{told / 2, told - told/2}}
		require.Equal(t, many, c.many(w), "%d", told)
	}
}

// TestBatchesOfOneCore: on one core actors are compared as soon as there is a batch of them, for which their memory was read in advance.
func TestBatchesOfOneCore(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	for range batched + 1 {
		require.NoError(t, s.Spawn(&place{}))
	}
	for i, b := range s.actors {
		s.compares.add(s, b)
		require.EqualValues(t, (i+1)/batched*batched, s.Counters.Compared)
	}
	s.compares.run(s)
	require.EqualValues(t, batched+1, s.Counters.Compared)
}
