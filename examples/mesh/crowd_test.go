package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a mesher with four servers, which told of a table: the owners of its zones, and those of the quarters of the zone that is split.
func world(owners string, split int, of string) *mesher {
	g := &mesher{began: time.Now()}
	g.view.live = true // so that nothing is printed
	for i := range g.slots {
		g.slots[i] = &slot{number: i + 1, now: &start{number: i + 1, id: string(rune('1' + i)), last: report{Start: i + 1}}}
	}
	g.heardTable(2, owners, split, of)
	return g
}

func (g *mesher) heardTable(epoch uint64, owners string, split int, of string) {
	t := plan()
	t.Epoch, t.Servers = epoch, strings.Split(owners+of, "")
	if of != "" {
		t.Servers[split], t.Splits = "", []int{split}
	}
	g.starts = map[int]*start{1: g.slots[0].now}
	g.heard(report{Start: 1, Epoch: epoch, Table: &t})
}

func (g *mesher) told(part string) bool {
	return slices.ContainsFunc(g.events, func(e event) bool { return strings.Contains(e.what, part) })
}

// TestParts: the plane is drawn as the newest table divides it, with what no server has that is there, and what changes is told.
func TestParts(t *testing.T) {
	g := world("12341234", 1, "1234")
	parts := g.parts()
	if len(parts) != 7+quarters || parts[0] != (part{"a1", 0, 0, 2, 1}) || parts[2] != (part{"b1 ne", 3, 0, 1, 2}) || parts[3] != (part{"b1 sw", 2, 1, 1, 3}) || parts[10] != (part{"d2", 6, 2, 2, 4}) {
		t.Fatal(parts)
	}
	if g.apart() == "" {
		t.Fatal("nobody says that b1 is split")
	}
	g.slots[2].now = nil
	if p := g.parts()[3]; p.Server != 0 || !g.nobodys(p) || g.nobodys(part{"b1", 2, 0, 1, 0}) || !g.nobodys(part{"b1", 2, 0, 2, 0}) {
		t.Fatal("server 3 is gone, and has a quarter of b1")
	}
	g.heardTable(1, "11111111", 0, "")
	if !g.split(1) {
		t.Fatal("an older table was taken")
	}
	g.heardTable(3, "12141214", 1, "1214")
	if !g.told("server 1 has taken b1 sw, c1, c2") {
		t.Fatal(g.events)
	}
	g.heardTable(4, "11141214", 0, "")
	if !g.told("zone b1 is merged, and server 1 has it") || g.apart() != "" || len(g.parts()) != 8 {
		t.Fatal(g.events)
	}
	g.heardTable(5, "11141214", 4, "1124")
	if !g.told("zone a2 is split") || !g.told("server 2 has taken a2 sw") || !g.told("server 4 has taken a2 se") || g.told("server 1 has taken a2") {
		t.Fatal(g.events)
	}
	if g.disagrees() == "" {
		t.Fatal("server 2 has told of no table")
	}
}

// TestCrowd: a crowd's zone is split among servers when the crowd is there, several servers have it, and none more than half of it; and merged when it is whole after they have left.
func TestCrowd(t *testing.T) {
	g := world("12341234", 0, "")
	g.bots = make([]*bot, 8)
	if err := g.gather("b1", time.Now(), nil); err != nil || g.most() != 2 {
		t.Fatal(err, g.most())
	}
	c := g.crowd
	see := func(want bool, what string) {
		t.Helper()
		if g.watchCrowds(time.Now()); (c.split > 0) != want {
			t.Fatalf("%s: split %v", what, c.split)
		}
	}
	g.heardTable(3, "12341234", 1, "1234")
	see(false, "nobody is there")
	x, y := c.middle()
	for i := range uint32(4) {
		last := &g.slots[1+i%3].now.last // server 1 tells of tables
		last.Dots = append(last.Dots, dot{Player: 1 + i%3, X: x + 40, Y: y - 40})
	}
	g.heardTable(4, "12341234", 0, "")
	see(false, "it isn't split")
	g.heardTable(5, "12341234", 1, "2222")
	see(false, "one server has it")
	g.heardTable(6, "12341234", 1, "2322")
	see(false, "one server has most of it")
	g.heardTable(7, "12341234", 1, "2324")
	see(true, "three servers have it")
	if g.most() != 2 || g.apart() != "" {
		t.Fatal(g.most(), g.apart())
	}
	g.heardTable(8, "12341234", 0, "")
	if g.watchCrowds(time.Now()); c.merged != 0 {
		t.Fatal("it was merged while they were there")
	}
	g.heardTable(9, "12341234", 1, "2324")
	g.leave(time.Now())
	if g.watchCrowds(time.Now()); c.merged != 0 || g.apart() == "" || g.most() != 0 {
		t.Fatal("it is split still")
	}
	if err := g.do("kill crowd", time.Now()); err != errNoCrowd {
		t.Fatal("nobody gathers", err)
	}
	g.heardTable(10, "12341234", 0, "")
	if g.watchCrowds(time.Now()); c.merged == 0 || g.apart() != "" {
		t.Fatal("it is whole")
	}
	c.merged = 0
	if err := g.gather("b1", time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	g.leave(time.Now())
	if g.watchCrowds(time.Now()); c.merged != 0 {
		t.Fatal("another crowd was there since")
	}
}

// TestOutage: a time without NATS ends when all servers have the store again, and not when NATS is to begin anew: what is refused until then counts.
func TestOutage(t *testing.T) {
	g := world("12341234", 0, "")
	g.nats = &cluster{}
	for i := range g.nats.configs {
		g.nats.configs[i].Name = string(rune('a' + i))
	}
	now := time.Now()
	g.natsOff(now)
	g.history.refused += 3
	g.nats.leader = "b"
	if g.watchOutage(now); g.outage == nil {
		t.Fatal("nobody has started NATS")
	}
	g.outage.on = true
	g.slots[1].now.last.Away = true
	g.history.refused += 9
	if g.watchOutage(now); g.outage == nil {
		t.Fatal("server 2 is without the store")
	}
	g.slots[1].now.last = report{}
	if g.watchOutage(now); g.outage == nil {
		t.Fatal("server 2 begins")
	}
	g.slots[1].now.last, g.nats.leader = report{Start: 2}, ""
	if g.watchOutage(now); g.outage == nil {
		t.Fatal("NATS has no leader")
	}
	g.nats.leader = "b"
	if g.watchOutage(now.Add(time.Second)); g.outage != nil || len(g.outages) != 1 || g.outages[0].refused != 12 || !g.told("without NATS for 1.0 s") {
		t.Fatal(g.outages, g.events)
	}
	if g.outages[0].stood {
		t.Fatal("the machine didn't stand still")
	}
	g.natsOff(now)
	g.starts[2] = g.slots[1].now
	g.heard(report{Start: 2, Away: true})
	if g.heard(report{Start: 2, Over: true, Late: lease}); g.told("has the store again") {
		t.Fatal("server 2 is over without the store")
	}
	g.outage.on, g.nats.leader = true, "b"
	if g.watchOutage(now); len(g.outages) != 2 || g.outages[1].ended != 1 || !g.outages[1].stood {
		t.Fatal("a server has ended because it stood still")
	}
	g.natsOff(now)
	if g.outage.refused != 12 {
		t.Fatal("what was refused before counts again")
	}
}

// TestSplitAt: the zone of a crowd is split, and what scattered players weigh lets it be merged, however many they are.
func TestSplitAt(t *testing.T) {
	for players := fewest; players <= 64; players++ {
		n := float64(players)
		if crowd, calm := 0.75*n*(1+0.75*n/3), splitAt(players)/16; splitAt(players) > 0.8*crowd || n/32*(1+n/32) > 0.9*calm {
			t.Errorf("%d players: a crowd of %v, split at %v, calm at %v", players, crowd, splitAt(players), calm)
		}
	}
}

// TestLossWhileAway: the zones of a server that was killed when it might have played on without the store may wait until nobody can believe that any more.
func TestLossWhileAway(t *testing.T) {
	g := world("12341234", 0, "")
	g.starts[2] = g.slots[1].now
	for _, c := range []struct {
		since time.Duration // a server was without the store
		want  time.Duration
	}{{time.Hour, 0}, {5 * lease, 0}, {3 * lease, g.away()}} {
		g.awayAt = time.Now().Add(-c.since)
		if l := g.lost(g.slots[1], time.Now()); l.away != c.want || len(l.parts) != 2 {
			t.Error(c.since, l)
		}
	}
	if g.heard(report{Start: 2, Away: true}); time.Since(g.awayAt) > lease {
		t.Error("server 2 is without the store")
	}
}
