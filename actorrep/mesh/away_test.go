package mesh

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// drawAway is drawKept with a store that goes away from all or some servers, for longer or shorter than they may go on.
func drawAway(seed uint64) simtest.Script {
	s := drawKept(seed)
	rng := simtest.NewRand(seed, 0x61776179)
	away := 4*time.Second + time.Duration(rng.Int64N(int64(12*time.Second)))
	s.Set("away", strconv.Itoa(int(away/time.Millisecond)))
	s.Run, s.Settle = 30*time.Second, 200*time.Second
	for range 1 + rng.IntN(2) {
		at := 3*time.Second + time.Duration(rng.Int64N(int64(12*time.Second)))
		long := time.Duration(rng.Int64N(int64(away + 6*time.Second)))
		if rng.IntN(3) == 0 {
			s.Faults = append(s.Faults, simtest.Fault{At: at, Kind: []simtest.Kind{simtest.Crash, simtest.Pause}[rng.IntN(2)], Host: storeHost, For: long})
			continue
		}
		for i := range 4 {
			if rng.IntN(8) == 0 {
				continue
			}
			f := simtest.Fault{At: at + time.Duration(rng.Int64N(int64(300*time.Millisecond))), Kind: simtest.Cut, Host: fmt.Sprintf("server%d", i+1), Other: storeHost, For: long}
			switch rng.IntN(3) {
			case 0:
				f.For = time.Duration(rng.Int64N(int64(away + 6*time.Second)))
			case 1:
				f.Kind = simtest.CutOne
			}
			s.Faults = append(s.Faults, f)
		}
	}
	slices.SortStableFunc(s.Faults, func(a, b simtest.Fault) int { return cmp.Compare(a.At, b.At) })
	return s
}

// quietAway is a run without other faults than these, in which servers may go on for 65 s without the store.
func quietAway(seed uint64, faults ...simtest.Fault) simtest.Script {
	s := quietPlain(seed)
	s.Servers, s.Run, s.Settle, s.Faults = 5, 70*time.Second, 120*time.Second, faults
	s.Set("store", "1")
	s.Set("away", "65000")
	return s
}

// TestStoreAway: the store is away for 60 s, and all play on, each in its zone; what waited for the store is kept when it is back.
func TestStoreAway(t *testing.T) {
	for _, kind := range []simtest.Kind{simtest.Crash, simtest.Pause} {
		steps := map[uint32]uint32{} // of each sheep, when the store goes, and when it comes back
		var before, after, kept int
		away := 0
		r, g := playPlain(quietAway(*first, simtest.Fault{At: 5 * time.Second, Kind: kind, Host: storeHost, For: 60 * time.Second}), func(g *plain) {
			g.w.At(7*time.Second, func() {
				before = g.trades
				for _, o := range g.order {
					steps[o.name] = o.count
				}
			})
			g.w.At(64900*time.Millisecond, func() {
				for _, s := range g.servers {
					away += b2i(s.keeper.Away())
				}
				for _, o := range g.order {
					if n, ok := steps[o.name]; ok && !o.over && o.count < n+57*20 {
						g.w.Failf("stood", "sheep %d went %d steps in 57.9 s", o.name, o.count-n)
					}
				}
				after = g.trades
				for _, s := range g.servers {
					kept += s.keeper.waiting
				}
			})
		})
		if !r.OK() {
			t.Fatalf("seed %d: %v", *first, r.Failure)
		}
		logins := uint64(0)
		for _, c := range g.clients {
			logins = max(logins, c.logins)
		}
		if g.ended != 0 || away != 4 || logins != 1 || len(steps) < 40 || kept == 0 {
			t.Fatalf("%d servers lost their lease, %d were without the store, a player logged in %d times, %d sheep, %d changes waited", g.ended, away, logins, len(steps), kept)
		}
		t.Logf("%s: %d sheep went on; %d trades before, %d more begun meanwhile; %d changes waited for the store, and all gold was there in the end", kind, len(steps), before, after-before, kept)
	}
}

// TestCutOff: a server that can't reach the store is over after its lease when others can, whether it reaches them or not; and when nobody can reach the store, but it can't reach the others
// either, all are.
func TestCutOff(t *testing.T) {
	const at, long = 5 * time.Second, 20 * time.Second
	cut := func(a, b string) simtest.Fault {
		return simtest.Fault{At: at, Kind: simtest.Cut, Host: a, Other: b, For: long}
	}
	alone := []simtest.Fault{cut("server2", "server1"), cut("server2", "server3"), cut("server2", "server4")}
	for _, c := range []struct {
		what   string
		faults []simtest.Fault
		ended  int
	}{
		{"from the store", []simtest.Fault{cut("server2", storeHost)}, 1},
		{"from the store and the others", append(slices.Clone(alone), cut("server2", storeHost)), 1},
		{"from the others", alone, 0},
		{"all from the store, one from the others", append(slices.Clone(alone), simtest.Fault{At: at, Kind: simtest.Crash, Host: storeHost, For: long}), 4},
	} {
		over := time.Duration(0)
		r, g := playPlain(quietAway(*first, c.faults...), func(g *plain) {
			g.fault.step = func(k *Keeper) {
				if g.w.Now() < at+long && k.mine.held && k.now >= k.mine.until {
					over = max(over, g.w.Now()-at)
				}
			}
		})
		if !r.OK() {
			t.Fatalf("%s: seed %d: %v", c.what, *first, r.Failure)
		}
		if g.ended != c.ended || over > 2*time.Second+zoneTick {
			t.Fatalf("%s: %d servers lost their lease, the last one %v after it was cut off", c.what, g.ended, over)
		}
	}
}

// TestAllowedThenCut: when all have said that a server may go on without the store, it does, whatever becomes of them: one that crashes then ends nobody else.
func TestAllowedThenCut(t *testing.T) {
	r, g := playPlain(quietAway(*first, simtest.Fault{At: 5 * time.Second, Kind: simtest.Crash, Host: storeHost, For: 40 * time.Second},
		simtest.Fault{At: 10 * time.Second, Kind: simtest.Crash, Host: "server2", For: time.Second},
		simtest.Fault{At: 10 * time.Second, Kind: simtest.Cut, Host: "server3", Other: "server4", For: 30 * time.Second}), nil)
	if !r.OK() {
		t.Fatalf("seed %d: %v", *first, r.Failure)
	}
	if g.ended != 0 || len(g.took) == 0 {
		t.Fatalf("%d servers lost their lease, %d actors were taken over", g.ended, len(g.took))
	}
	t.Logf("%d actors of the one that crashed were played on after %v at most", len(g.took), slices.Max(g.took))
}

// TestStranger: three servers go on without the store, and hear of a fourth one that has begun with it, which they haven't asked. It doesn't end them.
func TestStranger(t *testing.T) {
	faults := []simtest.Fault{{At: 9 * time.Second, Kind: simtest.Crash, Host: "server3", For: time.Second}}
	for _, host := range []string{"server1", "server2", "server3", "server4"} {
		f := simtest.Fault{At: 5 * time.Second, Kind: simtest.CutOne, Host: host, Other: storeHost, For: 12 * time.Second}
		if host == "server3" {
			f.For = 5 * time.Second
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b simtest.Fault) int { return cmp.Compare(a.At, b.At) })
	heard := 0
	r, g := playPlain(quietAway(*first, faults...), func(g *plain) {
		g.fault.step = func(k *Keeper) {
			if k.Away() && k.lease("server3-2") != nil {
				heard++
			}
		}
	})
	if !r.OK() {
		t.Fatalf("seed %d: %v", *first, r.Failure)
	}
	if heard == 0 || g.ended != 0 {
		t.Fatalf("it was heard of in %d ticks, %d servers lost their lease", heard, g.ended)
	}
}

// TestAway is TestKept with a store that goes away from all or some.
func TestAway(t *testing.T) {
	n := seedsToPlay(*keptSeeds, 6, 3)
	var rounds, granted uint64
	ended := 0
	for seed := *first; seed < *first+uint64(n); seed++ {
		r, g := playPlain(drawAway(seed), func(g *plain) {
			g.fault.step = func(k *Keeper) {
				if k.Away() {
					granted++
				}
			}
		})
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		for _, s := range g.servers {
			rounds += s.keeper.mine.away.round
		}
		ended += g.ended
	}
	t.Logf("seeds %d to %d: %d ticks were played without the store, %d servers lost their lease", *first, *first+uint64(n)-1, granted, ended)
	if granted == 0 || rounds == 0 {
		t.Fatal("nothing was tried")
	}
}

// TestAwayPlanted plants faults in how servers go on without the store, and expects each to be found.
func TestAwayPlanted(t *testing.T) {
	drawn := quietAway(1, simtest.Fault{At: 3 * time.Second, Kind: simtest.Crash, Host: storeHost, For: 3 * time.Second},
		simtest.Fault{At: 17 * time.Second, Kind: simtest.Cut, Host: "server2", Other: storeHost, For: 6 * time.Second})
	drawn.Run = 25 * time.Second
	if r, _ := playPlain(drawn, nil); !r.OK() {
		t.Fatalf("without a fault: %v", r.Failure)
	}
	plants := []planted{ // found is a seed of drawAway, or 0 where it shows in drawn
		{20, "it takes its question for the answer", keeperFault{step: func(k *Keeper) {
			for _, n := range k.z.neighbours {
				n.granted = max(n.granted, n.ask)
			}
		}}},
		{0, "an answer counts for ever", keeperFault{step: func(k *Keeper) {
			for _, n := range k.z.neighbours {
				if n.granted > 0 {
					n.granted = max(n.granted, n.ask)
				}
			}
		}}},
		{3, "it doesn't keep its promise", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				l.promised = 0
			}
		}}},
		{53, "it doesn't wait for who doesn't ask it", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				if n := k.z.neighbour(l.id); n != nil {
					n.asks = true
				}
			}
		}}},
		{33, "it asks one only", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				if n := k.z.neighbour(l.id); n != nil && l != k.leases[0] {
					n.granted = max(n.granted, n.ask)
				}
			}
		}}},
		{1, "it goes on for Away from now on", keeperFault{step: func(k *Keeper) { k.mine.away.base = k.now }}},
		{3, "it says that it has the store before it has", keeperFault{op: func(op *kv.Op) {
			var v leaseValue
			if op.Kind == kv.Put && strings.HasPrefix(op.Key, "mesh.server.") && v.read(op.Value) && !v.over {
				v.closed = 1 << 40
				op.Value = v.append(nil)
			}
		}}},
	}
	expectFound(t, plants, 3, func(seed uint64, p planted) simtest.Result {
		s := drawAway(seed)
		if seed == 0 {
			s = drawn
		}
		r, _ := playPlain(s, func(g *plain) { g.fault = p.keeperFault })
		return r
	})
}

// beside is a server with a store, and what another one, b, says, which is the test.
func beside(t *testing.T, away time.Duration) (s *shelf, says func(ask, granted byte) error, sent *[]byte) {
	s, sent = newShelf(t), new([]byte)
	zone := s.zone.cfg
	b, err := newSeal(zone.Key, "b", rand.Reader, zoneSeal)
	require.NoError(t, err)
	zone.ToServer = func(_ string, packet []byte) {
		opened, ok := b.open("a", packet)
		require.True(t, ok)
		*sent = opened
	}
	s.zone, err = NewZone(zone)
	require.NoError(t, err)
	cfg := s.keeper.cfg
	cfg.Zone, cfg.Away = s.zone, away
	s.keeper, err = NewKeeper(cfg)
	require.NoError(t, err)
	return s, func(ask, granted byte) error {
		return s.zone.Receive("b", b.close("a", []byte{1, 1, 0, ask, granted}))
	}, sent
}

// TestAwayAlone: a server goes on without the store only by leave of the last round in which it asked.
func TestAwayAlone(t *testing.T) {
	for _, c := range []struct {
		what  string
		says  byte // the round that it allows
		until time.Duration
	}{
		{"it says nothing", 0, 1960 * time.Millisecond},
		{"it allows a former round", 1, 1960 * time.Millisecond},
		{"it allows it", 2, 9800 * time.Millisecond},
	} {
		s, says, sent := beside(t, 10*time.Second)
		beat := uint64(0)
		away := false
		s.lost = func(kv.Op) bool { return away }
		run := func(d time.Duration) {
			for end := s.now + d; s.now < end; {
				if beat++; beat%20 == 0 && !away {
					s.write("mesh.server.b", (&leaseValue{beat: beat, length: 2 * time.Second, away: 10 * time.Second}).append(nil))
				}
				s.run(10 * time.Millisecond)
			}
		}
		run(time.Second)
		away = true
		run(time.Second)
		require.EqualValues(t, 1, s.keeper.mine.away.round)
		if c.says == 1 {
			require.NoError(t, says(0, 1))
		}
		away = false
		run(2 * time.Second)
		require.EqualValues(t, 1, s.keeper.mine.away.closed, c.what)
		away = true
		run(time.Second)
		base := s.keeper.mine.acked
		require.EqualValues(t, 2, s.keeper.mine.away.round, c.what)
		require.EqualValues(t, 2, (*sent)[len(*sent)-2], "it asks")
		was := s.zone.Counters.Malformed
		require.Error(t, says(0, 3))
		require.Error(t, says(0, 128))
		require.Equal(t, was+2, s.zone.Counters.Malformed)
		if c.says == 2 {
			require.NoError(t, says(0, 2))
		}
		for !s.keeper.Over() && s.now < base+time.Minute {
			require.Equal(t, s.now >= base+1960*time.Millisecond, s.keeper.Away())
			run(10 * time.Millisecond)
		}
		require.Equal(t, base+c.until, s.now, c.what)
		require.False(t, s.keeper.Away())
	}
}

// TestAwayAnswers: a server is allowed to go on by one that lacks the store too, from the second Step after its question on, and not by one that has it. Who has allowed it waits for as long.
func TestAwayAnswers(t *testing.T) {
	s, says, sent := beside(t, 0)
	away, ended := false, time.Duration(0)
	s.lost = func(op kv.Op) bool {
		if op.Key == "mesh.server.b" && ended == 0 {
			ended = s.now
		}
		return away
	}
	s.write("mesh.server.b", (&leaseValue{beat: 7, length: 2 * time.Second, away: 10 * time.Second}).append(nil))
	s.run(100 * time.Millisecond)
	require.NoError(t, says(1, 0))
	s.run(500 * time.Millisecond)
	n := s.zone.neighbour("b")
	require.Zero(t, n.leave, "it has the store")
	away = true
	for s.now-s.keeper.mine.acked < 750*time.Millisecond {
		s.run(10 * time.Millisecond)
	}
	require.NoError(t, says(2, 0))
	s.run(10 * time.Millisecond) // the time that this Step is given may be older than the question
	require.EqualValues(t, 1, n.leave)
	s.run(10 * time.Millisecond)
	require.EqualValues(t, 2, n.leave)
	require.EqualValues(t, 2, (*sent)[len(*sent)-1])
	promised := s.now + 10*time.Second
	away = false
	s.run(12 * time.Second)
	require.False(t, s.keeper.Over())
	require.Equal(t, promised, ended)
}

// TestOneWay: a cut of one direction. Between two servers, whoever doesn't hear the other, no lease ends, and all converge when it is over. Between a server and the store, in either direction, that server is over after its
// lease, and no other; with Away as well, since the others have the store.
func TestOneWay(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ended    int
	}{{"server1", "server2", 0}, {"server2", "server1", 0}, {"server3", storeHost, 1}, {storeHost, "server3", 1}} {
		for _, away := range []string{"", "20000"} {
			s := quietPlain(*first)
			s.Servers, s.Run, s.Settle = 5, 16*time.Second, 120*time.Second
			s.Set("store", "1")
			if away != "" {
				s.Set("away", away)
			}
			s.Faults = []simtest.Fault{{At: 4 * time.Second, Kind: simtest.CutOne, Host: c.from, Other: c.to, For: 6 * time.Second}}
			r, g := playPlain(s, nil)
			if !r.OK() {
				t.Fatalf("from %s to %s, away %q: seed %d: %v", c.from, c.to, away, *first, r.Failure)
			}
			over := 0
			for _, s := range g.servers {
				over += s.boots - 1
			}
			if over < c.ended || c.ended == 0 && over > 0 || c.ended > 0 && g.servers[2].boots-1 != over {
				t.Fatalf("from %s to %s, away %q: seed %d: %d servers ended", c.from, c.to, away, *first, over)
			}
		}
	}
}
