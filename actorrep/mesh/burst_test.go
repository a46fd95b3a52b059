package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// TestManyActorsAreGivenInTurn: of a zone that is handed, or merged, with thousands of actors so many are given in a Step as the doc says, and no more than go into the next packet: each is played by the other server in its next
// Step, though the last ones go much later. They go as fast as packets are acknowledged.
func TestManyActorsAreGivenInTurn(t *testing.T) {
	for _, c := range []struct{ n, bytes, rounds int }{{2000, 0, 9}, {2000, 300, 35}, {100, 10 << 10, 70}} {
		a, b := newPost(t, 0, nil), newPost(t, 1, nil)
		a.state = make([]byte, c.bytes)
		for range c.n {
			a.lit(50)
		}
		deliver(3, a, b)
		table := a.zone.table
		table.Epoch, table.Servers = 2, []string{name(1), name(1), name(2)}
		require.NoError(t, a.zone.SetTable(table))
		require.NoError(t, b.zone.SetTable(table))
		rounds := 0
		for given := uint64(0); len(b.taken) < c.n; rounds++ {
			require.Less(t, rounds, c.rounds, "%d of %d bytes", c.n, c.bytes)
			deliver(1, a, b)
			require.LessOrEqual(t, a.zone.Counters.Given-given, uint64(256))
			require.EqualValues(t, a.zone.Counters.Given, len(b.taken), "what was given is played now")
			given = a.zone.Counters.Given
		}
		t.Logf("%d actors of %d bytes in %d rounds", c.n, c.bytes, rounds)
	}
}

// TestGivesBesideCalls: an actor crosses the border though calls to the other server fill most of what can go there.
func TestGivesBesideCalls(t *testing.T) {
	a, b := newPost(t, 0, func(c *ZoneConfig) { c.Forget = time.Hour }), newPost(t, 1, nil)
	there, mirror := b.lit(150), &lamp{X: 150}
	require.NoError(t, a.world.SpawnAs(mirror, nil, there.GUID()))
	r := a.zone.add(there.GUID())
	r.a, r.owner, r.epoch = mirror, b.id, 1
	var l *lamp
	for i := range 40 {
		if i == 10 {
			l = a.lit(150)
		}
		for range 70 {
			require.NoError(t, a.zone.Call(there.GUID(), make([]byte, 400)))
		}
		deliver(1, a, b)
	}
	require.False(t, a.zone.Owns(l), "it waits for ever")
	require.Equal(t, b.id, b.zone.records[l.GUID()].owner)
	require.Greater(t, len(b.calls), 30*70)
}

// TestStoreHasRoom: however many zones a server takes, splits, merges and hands at once, however many actors it has, and of however many servers it is the heir, less is asked of the store at a time than natskv has room for: 256, above which an op is unknown at once, and
// be it the renewal of the lease. All is done in the end.
func TestStoreHasRoom(t *testing.T) {
	const zones, actors, late, room = 600, 1000, 3, 250
	s := &shelf{solo: newScales(t, zones, 30, func(Actor) float64 { return 0 }), keys: map[string]kv.Event{}, was: map[string]time.Duration{}, next: []kv.Event{{Kind: kv.Begin, Store: 1}, {Kind: kv.Current}}}
	cfg := s.keeper.cfg
	s.zone.keeper = nil
	cfg.Split, cfg.Spread, cfg.Zones = 10, time.Hour, cfg.Plan.Servers
	var err error
	s.keeper, err = NewKeeper(cfg)
	require.NoError(t, err)
	k := s.keeper
	under, most := 0, 0
	kinds := map[string]int{}
	var answers [late + 1][]kv.Event
	s.lost = func(op kv.Op) bool {
		kind := strings.Split(op.Key, ".")[1]
		kinds[kind]++
		under++
		most = max(most, under)
		require.LessOrEqual(t, under, room, "%v are under way", kinds)
		return false
	}
	s.told = func(r kv.Event) { answers[late] = append(answers[late], r) }
	run := func(d time.Duration) {
		for end := s.now + d; s.now < end; {
			s.next = append(s.next, answers[0]...)
			under -= len(answers[0])
			copy(answers[:], answers[1:])
			answers[late] = nil
			s.run(10 * time.Millisecond)
			require.False(t, k.Over())
		}
	}
	for range actors {
		a := &sheep{}
		require.NoError(t, s.world.Spawn(a))
		require.NoError(t, s.zone.Own(a, 1))
	}
	run(3 * time.Second)
	require.Equal(t, zones, k.holds("a"))
	require.EqualValues(t, actors, k.Counters.Written)
	calm := divided(wholly("a"), 0)
	for i := range calm {
		calm[i].calm = true
	}
	for _, z := range k.zones {
		s.write("mesh.zone."+z.name, (&zoneValue{z.value.epoch + 1, calm}).append(nil))
	}
	run(50 * time.Millisecond)
	require.Equal(t, 4*zones, k.holds("a"))
	for range zones {
		k.ops = nil
		k.stepCalm()
		for _, op := range k.ops {
			require.LessOrEqual(t, len(k.ops), 48)
			s.write(op.Key, op.Value)
			k.result(kv.Event{ID: op.ID, Status: kv.OK})
		}
		if k.holds("a") == zones {
			break
		}
		run(10 * time.Millisecond)
	}
	require.EqualValues(t, zones, k.Counters.Merged)
	other := leaseValue{beat: 1, length: time.Hour}
	s.write("mesh.server.b", other.append(nil))
	run(50 * time.Millisecond)
	for _, z := range k.zones {
		require.NoError(t, k.Hand(z.name, "b"))
	}
	run(3 * time.Second)
	require.Equal(t, zones, k.holds("b"))
	other.over, other.heir = true, "a"
	s.write("mesh.server.b", other.append(nil))
	run(3 * time.Second)
	require.Equal(t, zones, k.holds("a"))
	const servers = 300
	for i := range servers {
		other = leaseValue{beat: 1, length: time.Second}
		s.write(fmt.Sprint("mesh.server.c", i), other.append(nil))
		id := netguid.GUID(1_000_000 + 6*i)
		s.keys[fmt.Sprintf("mesh.list.c%d.0", i)] = kv.Event{Value: appendPage(nil, []netguid.GUID{id, id + 2, id + 4}), Revision: 1}
	}
	for end := s.now + 10*time.Second; s.now < end && (k.Counters.Ended < servers || len(k.leases) > 1); {
		run(100 * time.Millisecond)
	}
	require.EqualValues(t, servers, k.Counters.Ended)
	require.Len(t, k.leases, 1, "what they had is taken over, and they are forgotten")
	require.Len(t, k.kept, actors)
	require.Equal(t, []string{"actor", "list", "server", "zone"}, slices.Sorted(maps.Keys(kinds)))
	t.Log(fmt.Sprint(most, " at a time: ", kinds))
}
