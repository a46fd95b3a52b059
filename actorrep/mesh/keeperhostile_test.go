package mesh

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// shelf is a store of one server, which does at once what it is asked.
type shelf struct {
	*solo
	keys map[string]kv.Event
	next []kv.Event               // what the server hears in its next Step
	lost func(op kv.Op) bool      // an op that never arrives
	told func(r kv.Event)         // takes an answer; nil: the next Step has it
	was  map[string]time.Duration // when the op was sent that has written a key
}

func newShelf(t testing.TB) *shelf {
	return &shelf{solo: newSolo(t), keys: map[string]kv.Event{}, was: map[string]time.Duration{}, next: []kv.Event{{Kind: kv.Begin, Store: 1}, {Kind: kv.Current}}}
}

// write has somebody write a key.
func (s *shelf) write(key string, value []byte) {
	s.rev++
	e := kv.Event{Kind: kv.Changed, Key: key, Value: value, Revision: s.rev}
	s.keys[key] = e
	if kv.Matches(s.keeper.Watches(), key) {
		s.next = append(s.next, e)
	}
}

// run steps the server for a time, each 10 ms.
func (s *shelf) run(d time.Duration) {
	for end := s.now + d; s.now < end; {
		in := s.next
		s.next = nil
		for _, op := range s.step(10*time.Millisecond, in...) {
			if s.lost != nil && s.lost(op) {
				continue
			}
			have, ok := s.keys[op.Key]
			r := kv.Event{Kind: kv.Result, ID: op.ID}
			switch {
			case op.Kind == kv.Get && !ok:
				r.Status = kv.Missing
			case op.Kind == kv.Get:
				r.Key, r.Value, r.Revision = op.Key, have.Value, have.Revision
			case op.Expect != kv.Any && op.Expect != have.Revision:
				r.Status = kv.Conflict
			case op.Kind == kv.Put:
				s.write(op.Key, op.Value)
				s.was[op.Key] = s.now
				r.Revision = s.rev
			case ok:
				delete(s.keys, op.Key)
				s.rev++
				if kv.Matches(s.keeper.Watches(), op.Key) {
					s.next = append(s.next, kv.Event{Kind: kv.Deleted, Key: op.Key, Revision: s.rev})
				}
			}
			if s.told != nil {
				s.told(r)
			} else {
				s.next = append(s.next, r)
			}
		}
		s.zone.Step(s.now)
	}
}

// TestKeeperAnswers: whichever requests and answers are lost, late, out of order or come twice, a server is over 98 % of Lease after it has sent the last write of its lease that the store has.
func TestKeeperAnswers(t *testing.T) {
	worst := time.Duration(0)
	for seed := range uint64(100) {
		s := newShelf(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		type answer struct {
			at time.Duration
			r  kv.Event
		}
		var late []answer
		lossy := false
		s.lost = func(op kv.Op) bool {
			if !lossy || op.Kind == kv.Get || rng.IntN(20) == 0 {
				return false
			}
			if seed%2 == 0 { // it is said at once
				s.next = append(s.next, kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown})
			}
			return true
		}
		s.told = func(r kv.Event) {
			for range 1 + rng.IntN(2) {
				late = append(late, answer{s.now + time.Duration(rng.Int64N(int64(600*time.Millisecond)>>(seed%8))), r})
			}
		}
		for !s.keeper.Over() {
			require.Less(t, s.now, 10*time.Minute, "seed %d", seed)
			lossy = lossy || s.now > 3*time.Second
			late = slices.DeleteFunc(late, func(a answer) bool {
				if a.at > s.now {
					return false
				}
				s.next = append(s.next, a.r)
				return true
			})
			s.run(10 * time.Millisecond)
			if sent, ok := s.was["mesh.server.a"]; ok && s.keeper.mine.held {
				worst = max(worst, s.now-sent)
				if !s.keeper.Over() && s.now-sent >= 1960*time.Millisecond {
					t.Fatalf("seed %d: the store has what was sent %v ago", seed, s.now-sent)
				}
			}
		}
	}
	require.Equal(t, 1960*time.Millisecond, worst)
}

// TestKeeperPages: what the store is said to have is found by who takes over, which reads the pages of the list up to the first that isn't there.
func TestKeeperPages(t *testing.T) {
	s := newShelf(t)
	s.run(100 * time.Millisecond)
	s.lost = func(op kv.Op) bool { return op.Kind == kv.Put && op.Key == "mesh.list.a.0" }
	told := 0
	for range 2*pageIDs + 1 {
		a := &sheep{}
		require.NoError(t, s.world.Spawn(a))
		require.NoError(t, s.zone.Own(a, 1))
		require.NoError(t, s.keeper.Keep(a, func(err error) {
			require.NoError(t, err)
			told++
		}))
	}
	s.run(time.Second)
	require.Zero(t, told, "said to be in the store, and no list has it")
	s.lost = nil
	s.run(2 * time.Second)
	require.Equal(t, 2*pageIDs+1, told)
	for i := range 3 {
		require.Contains(t, s.keys, fmt.Sprintf("mesh.list.a.%d", i))
	}
}

// TestKeeperSameID: a server that begins anew with the ID of its former start, whose lease isn't over yet, is over itself: it would never have what that one had.
func TestKeeperSameID(t *testing.T) {
	s := newShelf(t)
	s.run(time.Second)
	require.EqualValues(t, 1, s.keeper.Holds("z"))
	for range 3 { // whichever beat its lease has
		o := newShelf(t)
		o.keys, o.rev = maps.Clone(s.keys), s.rev
		for _, key := range slices.Sorted(maps.Keys(o.keys)) {
			if kv.Matches(o.keeper.Watches(), key) {
				o.next = slices.Insert(o.next, 1, o.keys[key])
			}
		}
		o.run(200 * time.Millisecond)
		require.True(t, o.keeper.Over())
		require.Zero(t, o.keeper.Holds("z"))
		s.run(500 * time.Millisecond)
		require.False(t, s.keeper.Over())
	}
}

// TestKeeperDamagedLease: of a lease that can't be read, such as of another version, nothing is taken while it is renewed, and all when it isn't.
func TestKeeperDamagedLease(t *testing.T) {
	s := newShelf(t)
	zone := zoneValue{7, wholly("b")}
	s.write("mesh.server.b", []byte{keepVersion + 1, 1, 2, 3})
	s.write("mesh.zone.z", zone.append(nil))
	for i := range 10 {
		s.write("mesh.server.b", []byte{keepVersion + 1, byte(i)})
		s.run(500 * time.Millisecond)
		require.Zero(t, s.keeper.Holds("z"))
	}
	s.run(4 * time.Second)
	require.EqualValues(t, 8, s.keeper.Holds("z"))
	require.EqualValues(t, 1, s.keeper.Counters.Ended)
}

// TestKeeperDamagedZone: a zone whose holder can't be read, or whose epoch can't be, is taken, by an epoch above all that it has had.
func TestKeeperDamagedZone(t *testing.T) {
	for _, value := range [][]byte{nil, {}, {keepVersion}, {keepVersion + 1, 3, 1, 'b'}, {keepVersion, 3, 100, 'b'}, (&zoneValue{math.MaxUint64, wholly("b")}).append(nil), (&zoneValue{math.MaxUint64 - 1, wholly("b")}).append(nil)} {
		s := newShelf(t)
		for range 20 {
			s.write("mesh.zone.z", (&zoneValue{20, wholly("b")}).append(nil))
		}
		s.write("mesh.zone.z", value)
		s.run(5 * time.Second)
		require.Greater(t, s.keeper.Holds("z"), uint64(20), "%v", value)
		require.Zero(t, s.keeper.Counters.Failed)
		require.True(t, s.keeper.tabled)
		require.Greater(t, s.zone.table.Epoch, uint64(20))
	}
}

// TestKeeperLateLease: a zone's holder whose lease this server hears of later isn't without one.
func TestKeeperLateLease(t *testing.T) {
	s := newShelf(t)
	s.run(5 * time.Second)
	s.write("mesh.zone.z", (&zoneValue{9, wholly("b")}).append(nil))
	for range 4 {
		s.run(500 * time.Millisecond)
		s.write("mesh.server.b", (&leaseValue{beat: 1, length: 2 * time.Second}).append(nil))
	}
	s.run(time.Second)
	require.Zero(t, s.keeper.Holds("z"))
}

// TestKeeperAfterOwn: actors that the zone has before it gets a Keeper are kept too.
func TestKeeperAfterOwn(t *testing.T) {
	s := newShelf(t)
	s.zone.keeper = nil
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	var err error
	s.keeper, err = NewKeeper(s.keeper.cfg)
	require.NoError(t, err)
	s.run(100 * time.Millisecond)
	told := 0
	require.NoError(t, s.keeper.Keep(a, func(err error) {
		require.NoError(t, err)
		told++
	}))
	s.run(100 * time.Millisecond)
	require.Equal(t, 1, told)
	require.EqualValues(t, 2, s.zone.Release(a, "b"))
}

// FuzzStore: whatever a store has under a Keeper's keys, the Keeper goes on, and asks no more than its bounds.
func FuzzStore(f *testing.F) {
	lease := leaseValue{over: true, length: 2 * time.Second, beat: 3, seen: 9, heir: "a"}
	f.Add(lease.append(nil), lease.append(nil), (&zoneValue{1, wholly("b")}).append(nil), appendPage(nil, []netguid.GUID{2, 4}), (&actorRecord{epoch: 1, write: 1, holder: "b", class: "Sheep"}).append(nil))
	around := leaseValue{over: true, length: 2 * time.Second, beat: math.MaxUint64, seen: math.MaxUint64, heir: "b"}
	back := leaseValue{over: true, length: 2 * time.Second, heir: "c"}
	f.Add(back.append(nil), around.append(nil), (&zoneValue{math.MaxUint64, wholly("c")}).append(nil), []byte{1, 0, 0, 255}, (&actorRecord{epoch: maxEpoch - 1, holder: "b", write: math.MaxUint64}).append(nil))
	f.Add(lease.append(nil), around.append(nil), (&zoneValue{5, []part{{1, true, "a"}, {1, false, "b"}, {1, true, "c"}, {1, true, "d"}}}).append(nil), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, b, c, zone, page, actor []byte) {
		s := newShelf(t)
		s.write("mesh.server.b", b)
		s.write("mesh.server.c", c)
		s.write("mesh.zone.z", zone)
		for _, id := range []string{"b.0", "c.0", "a.0"} {
			s.write("mesh.list."+id, page)
		}
		for id := range 8 {
			s.write(fmt.Sprintf("mesh.actor.%d", id), actor)
		}
		own := &sheep{}
		require.NoError(t, s.world.Spawn(own))
		require.NoError(t, s.zone.Own(own, 1))
		s.lost = func(op kv.Op) bool {
			if len(op.Value) > maxRecord || len(s.keeper.pending) > maxActorOps+16 {
				t.Fatalf("%d bytes, %d ops under way", len(op.Value), len(s.keeper.pending))
			}
			return false
		}
		for i := range 4 {
			s.run(2 * time.Second)
			if i == 1 {
				s.write("mesh.server.b", c)
				s.write("mesh.server.c", b)
			}
		}
		if s.keeper.Over() {
			t.Fatal("it is over")
		}
	})
}

// TestNothingIsGivenToWhoIsForgotten: a zone whose holder has no lease, as a late write of a server leaves it that was over and is forgotten, is taken over. Until then no actor is given to that server, which would never have it.
func TestNothingIsGivenToWhoIsForgotten(t *testing.T) {
	s := newShelf(t)
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	s.run(5 * time.Second)
	require.EqualValues(t, 1, s.keeper.Counters.Written)
	epoch := s.keeper.Holds("z")
	s.write("mesh.zone.z", (&zoneValue{epoch + 1, wholly("ghost")}).append(nil))
	s.run(time.Second)
	require.Equal(t, "ghost", s.zone.Table().At(0, 0))
	require.True(t, s.zone.Owns(a))
	s.run(5 * time.Second)
	require.Equal(t, epoch+2, s.keeper.Holds("z"))
	require.True(t, s.zone.Owns(a))
	require.Zero(t, s.zone.Counters.Given)
}

// TestLeaveWhileTakingOver: a server that is to stop while it takes an actor over stops when the store has that, not a checkpoint later.
func TestLeaveWhileTakingOver(t *testing.T) {
	s := newShelf(t)
	s.keeper.cfg.Checkpoint, s.keeper.durable = time.Hour, nil
	s.write("mesh.server.b", (&leaseValue{beat: 1, length: 2 * time.Second}).append(nil))
	s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{4002}))
	s.write("mesh.actor.4002", (&actorRecord{epoch: 5, write: 1, holder: "b", class: "Sheep"}).append(nil))
	left := false
	s.lost = func(op kv.Op) bool {
		if op.Kind == kv.Put && op.Key == "mesh.actor.4002" && !left {
			left = true
			s.keeper.Leave()
		}
		return false
	}
	s.run(10 * time.Second)
	require.True(t, left)
	require.EqualValues(t, 1, s.keeper.Counters.Restored)
	require.True(t, s.keeper.Over())
}

// TestKeeperLyingGive: an actor that a lying neighbour gives while this server's claim to it is under way is still this server's.
func TestKeeperLyingGive(t *testing.T) {
	s := newShelf(t)
	s.write("mesh.server.b", (&leaseValue{beat: 1, length: 2 * time.Second}).append(nil))
	s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{4002}))
	s.write("mesh.actor.4002", (&actorRecord{epoch: 5, write: 1, holder: "b", class: "Sheep"}).append(nil))
	gave := false
	s.lost = func(op kv.Op) bool {
		if op.Kind == kv.Put && op.Key == "mesh.actor.4002" && !gave {
			gave = true
			s.zone.heard(s.zone.neighbour("c"), &zoneMessage{kind: zoneGive, id: 4002, epoch: 100, class: "Sheep"})
		}
		return false
	}
	s.run(10 * time.Second)
	require.True(t, gave)
	a, _ := s.world.Find(4002).(*sheep)
	require.NotNil(t, a)
	require.True(t, s.zone.Owns(a))
	require.EqualValues(t, 100, a.Epoch)
	require.Zero(t, s.keeper.Counters.Failed)
	require.Empty(t, s.keeper.estates)
}

// TestKeeperLease: a lease is as long as its holder says, also for servers that have another one.
func TestKeeperLease(t *testing.T) {
	s := newShelf(t)
	s.write("mesh.server.b", (&leaseValue{beat: 1, length: 5 * time.Second}).append(nil))
	s.write("mesh.zone.z", (&zoneValue{1, wholly("b")}).append(nil))
	s.run(4900 * time.Millisecond)
	require.Zero(t, s.keeper.Counters.Ended)
	s.run(time.Second)
	require.EqualValues(t, 1, s.keeper.Counters.Ended)
	require.EqualValues(t, 2, s.keeper.Holds("z"))
	var own leaseValue
	require.True(t, own.read(s.keys["mesh.server.a"].Value))
	require.Equal(t, 2*time.Second, own.length)
	require.False(t, own.read((&leaseValue{length: maxLease + time.Millisecond}).append(nil)))
}

// TestKeeperAnswerAfterEnd: who hears from the store after its lease has ended that it has a change tells nobody: whoever took over may have looked before.
func TestKeeperAnswerAfterEnd(t *testing.T) {
	s := newShelf(t)
	s.run(100 * time.Millisecond)
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	var told []error
	require.NoError(t, s.keeper.Keep(a, func(err error) { told = append(told, err) }))
	for s.keys[s.keeper.actorKey(a.GUID())].Revision == 0 {
		s.run(10 * time.Millisecond)
	}
	require.Empty(t, told)
	s.step(3*time.Second, s.next...)
	require.Equal(t, []error{ErrGone}, told)
	require.True(t, s.keeper.Over())
}

// TestKeeperDamagedRecord: a record that can't be read is looked at each second, and counted; when it can be read again, the actor is played.
func TestKeeperDamagedRecord(t *testing.T) {
	s := newShelf(t)
	good := actorRecord{epoch: 4, write: 1, holder: "b", class: "Sheep", state: []byte("s")}
	s.write("mesh.actor.10", good.append(nil)[1:])
	s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{10}))
	s.write("mesh.server.b", (&leaseValue{beat: 1, length: 2 * time.Second}).append(nil))
	s.run(12 * time.Second)
	n := s.keeper.Counters.Damaged
	require.True(t, n >= 8 && n <= 11, "%d", n)
	require.Zero(t, s.keeper.Counters.Restored)
	s.write("mesh.actor.10", good.append(nil))
	s.run(2 * time.Second)
	require.EqualValues(t, 1, s.keeper.Counters.Restored)
}

// TestLateFirstWrite: the first write of an actor comes to the store when its server has destroyed the actor, or is over: at no time does that leave a record that is nobody's.
func TestLateFirstWrite(t *testing.T) {
	for _, what := range []string{"destroyed", "over"} {
		came := map[string]int{}
		for at := range 150 {
			s := newShelf(t)
			const id = netguid.GUID(2*3 + 2) // of another share
			key, late, had, deleted := s.keeper.actorKey(id), []byte(nil), false, false
			s.run(100 * time.Millisecond)
			if what == "destroyed" {
				s.lost = func(op kv.Op) bool {
					if key == op.Key && op.Kind == kv.Put && late == nil {
						late = op.Value
						return true
					}
					return false
				}
				a := &sheep{}
				require.NoError(t, s.world.SpawnAs(a, nil, id))
				require.NoError(t, s.zone.Own(a, 1))
				for late == nil {
					s.run(10 * time.Millisecond)
				}
				require.NoError(t, s.world.Destroy(a))
			} else {
				s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{id}))
				s.write("mesh.server.b", (&leaseValue{over: true, beat: 1, length: 2 * time.Second, heir: "a"}).append(nil))
				late = (&actorRecord{epoch: 1, write: 1, holder: "b", class: "Sheep", state: []byte("state")}).append(nil)
			}
			for step := range 400 {
				_, there := s.keys[key]
				deleted = deleted || had && !there
				if step == at {
					if there || deleted {
						came["too late"]++
					} else {
						came["in time"]++
						s.write(key, late)
						there = true
					}
				}
				had = there
				s.run(10 * time.Millisecond)
			}
			e, there := s.keys[key]
			var r actorRecord
			if there && (!r.read(e.Value) || r.holder != "a" || r.epoch == 1 || what == "destroyed") {
				t.Fatalf("%s: the first write came in step %d: the store has %+v", what, at, r)
			}
			if _, there := s.keys["mesh.server.b"]; there {
				t.Fatalf("%s: the first write came in step %d: the server isn't taken over yet", what, at)
			}
		}
		require.NotZero(t, came["too late"], what)
		require.NotZero(t, came["in time"], what)
	}
}

// TestLateLastWrite: the last write of a server comes to the store when that server is over, and was taken over and forgotten. Who takes over from the one that had the actor before finds the record, and has the actor play on:
// the holder has no lease. A holder whose lease the store has, and of which this server hasn't heard yet, keeps it.
func TestLateLastWrite(t *testing.T) {
	for _, begins := range []bool{false, true} {
		s := newShelf(t)
		s.run(100 * time.Millisecond)
		const id = netguid.GUID(2*3 + 2) // of another share
		key := s.keeper.actorKey(id)
		s.write(key, (&actorRecord{epoch: 4, write: 1, holder: "c", class: "Sheep", state: []byte("state")}).append(nil))
		s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{id}))
		if begins {
			s.rev++
			s.keys["mesh.server.c"] = kv.Event{Kind: kv.Changed, Key: "mesh.server.c", Value: (&leaseValue{beat: 1, length: 2 * time.Second}).append(nil), Revision: s.rev}
		}
		s.write("mesh.server.b", (&leaseValue{over: true, beat: 1, length: 2 * time.Second, heir: "a"}).append(nil))
		s.run(time.Second)
		var r actorRecord
		require.True(t, r.read(s.keys[key].Value))
		if begins {
			require.Equal(t, "c", r.holder)
			s.next = append(s.next, s.keys["mesh.server.c"])
			s.run(time.Second)
			require.True(t, r.read(s.keys[key].Value))
			require.Equal(t, "c", r.holder)
			continue
		}
		require.Equal(t, "a", r.holder)
		require.EqualValues(t, 7, r.epoch)
		require.EqualValues(t, 1, s.keeper.Counters.Restored)
		require.NotContains(t, s.keys, "mesh.server.b", "it is taken over")
	}
}

// TestKeeperFullStore: a store that refuses to write, but renews the lease, isn't asked in each Step, and what waited is written when it has room again.
func TestKeeperFullStore(t *testing.T) {
	s := newShelf(t)
	s.run(time.Second)
	full, ops := true, 0
	s.lost = func(op kv.Op) bool {
		if strings.HasPrefix(op.Key, "mesh.server.") || strings.HasPrefix(op.Key, "mesh.zone.") {
			return false
		}
		ops++
		if full && op.Kind == kv.Put {
			s.next = append(s.next, kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown})
			return true
		}
		return false
	}
	told := 0
	var all []*sheep
	for range 20 {
		a := &sheep{}
		require.NoError(t, s.world.Spawn(a))
		require.NoError(t, s.zone.Own(a, 1))
		all = append(all, a)
	}
	s.run(2 * time.Second) // their list isn't written
	require.LessOrEqual(t, ops, 2*2*8)
	full = false
	s.run(time.Second)
	full, ops = true, 0
	for _, a := range all {
		require.NoError(t, s.keeper.Keep(a, func(err error) {
			require.NoError(t, err)
			told++
		}))
	}
	s.state = []byte("another")
	s.run(2 * time.Second)
	require.LessOrEqual(t, ops, 2*2*5*len(all), "a write and a read, four times a second")
	require.Zero(t, told)
	full = false
	s.run(time.Second)
	require.Equal(t, len(all), told)
	require.False(t, s.keeper.Over())
}

// TestKeeperWritesAgain: a checkpoint that never arrived is written again, before the next one is due; so is what Leave waits for.
func TestKeeperWritesAgain(t *testing.T) {
	s := newShelf(t)
	s.run(time.Second)
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	s.run(time.Second)
	s.state = []byte("newer")
	lost := 0
	s.lost = func(op kv.Op) bool {
		if lost == 0 && op.Kind == kv.Put && strings.HasPrefix(op.Key, "mesh.actor.") {
			lost++
			return true
		}
		return false
	}
	for lost == 0 {
		require.Less(t, s.now, time.Minute)
		s.run(10 * time.Millisecond)
	}
	s.run(2 * time.Second)
	require.Contains(t, string(s.keys[s.keeper.actorKey(a.GUID())].Value), "newer")
}

// TestLeaveWaits: a server that leaves waits for the players who have been given to it, a Lease at most, and takes no others.
func TestLeaveWaits(t *testing.T) {
	for _, how := range []string{"done", "called off", "gone", "never", "not given"} {
		s := newShelf(t)
		p := newPair(t)
		at := p.servers[1]
		s.keeper.cfg.Server = at
		s.run(time.Second)
		require.NoError(t, p.servers[0].Travel(1, name(1)))
		given := func() bool { return len(at.arrivals) > 0 && at.arrivals[0].given != nil }
		for !given() && (how != "not given" || len(at.arrivals) == 0) {
			require.Less(t, p.now, time.Minute)
			p.step(t)
		}
		p.hold = true
		s.keeper.Leave()
		if how == "not given" {
			require.Empty(t, at.arrivals)
			s.run(100 * time.Millisecond)
			require.True(t, s.keeper.Over())
			p.hold = false
			for range 100 {
				p.step(t)
			}
			require.True(t, p.servers[0].Plays(1))
			require.Len(t, p.told, 1)
			require.ErrorIs(t, p.told[0], ErrRefused)
			continue
		}
		s.run(1500 * time.Millisecond)
		require.False(t, s.keeper.Over(), how)
		arrival := at.arrivals[0]
		switch how {
		case "done":
			require.NoError(t, at.receive(name(0), at.head(done, 1, arrival.attempt, arrival.nonce)))
			require.Equal(t, [2]int{0, 1}, p.plays)
		case "called off":
			require.NoError(t, at.receive(name(0), at.head(cancel, 1, arrival.attempt, arrival.nonce)))
		case "gone":
			s.keeper.gone(name(0))
		case "never":
			s.run(400 * time.Millisecond)
			require.False(t, s.keeper.Over())
		}
		s.run(200 * time.Millisecond)
		require.True(t, s.keeper.Over(), how)
	}
}

// TestStoreFailsAtOnce: a store that fails at once is asked for the lease sixteen times in each Lease at most, and for all else eight times. When it answers again the server goes on.
func TestStoreFailsAtOnce(t *testing.T) {
	s := newShelf(t)
	fails, ops := true, map[string]int{}
	s.lost = func(op kv.Op) bool {
		ops[op.Key]++
		if fails {
			s.next = append(s.next, kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown})
		}
		return fails
	}
	few := func(what string) {
		t.Helper()
		for key, n := range ops {
			most := 2 * 8
			if key == "mesh.server.a" {
				most = 16
			}
			require.LessOrEqual(t, n, most+2, "%s: %s", what, key)
		}
		clear(ops)
	}
	s.run(1500 * time.Millisecond) // it has no lease yet
	few("before the first lease")
	fails = false
	s.run(time.Second)
	require.EqualValues(t, 1, s.keeper.Holds("z"))
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	s.run(time.Second)
	s.write("mesh.list.b.0", appendPage(nil, []netguid.GUID{4002}))
	s.write("mesh.actor.4002", (&actorRecord{epoch: 5, write: 1, holder: "b", class: "Sheep"}).append(nil))
	s.write("mesh.server.b", (&leaseValue{over: true, beat: 1, length: 2 * time.Second, heir: "a"}).append(nil))
	clear(ops)
	fails = true
	s.state = []byte("newer")
	require.NoError(t, s.keeper.Keep(a, func(error) {}))
	b := &sheep{} // the list changes
	require.NoError(t, s.world.Spawn(b))
	require.NoError(t, s.zone.Own(b, 1))
	s.run(1400 * time.Millisecond)
	few("with a lease")
	fails = false
	s.run(2 * time.Second)
	require.False(t, s.keeper.Over())
	require.EqualValues(t, 1, s.keeper.Counters.Restored)
	require.Contains(t, string(s.keys[s.keeper.actorKey(a.GUID())].Value), "newer")
}
