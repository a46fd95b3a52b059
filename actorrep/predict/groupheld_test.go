package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// as is what a client has of a member in its newest tick, for a server that says the same.
func as(m *member) tale {
	b := m.actor.(*bead)
	return tale{id: m.id, sum: b.Sum, n: b.N, how: coasting, w: b.W}
}

// still returns beads after a second, and the client's group, of which nobody tells any more: each test tells it what it needs.
func still(t testing.TB, n int, cfg beadConfig) (r *rig.Rig, server, client *Class[*bead, pulse], g *Group) {
	r, server, client = beads(t, n, cfg)
	for range 60 {
		beadsFrame(t, r, server, client)
	}
	return r, server, client, client.group
}

// play has a client's group play some ticks in one frame.
func (g *Group) playTicks(t testing.TB, r *rig.Rig, ticks int64) {
	t.Helper()
	want := g.newest + ticks
	local := g.clock.local
	for at := time.Duration(0); ; at += time.Millisecond / 8 { // a client's time may run at another speed
		if k := g.clock; int64(k.target(local+at)/g.step) >= want {
			g.clock.restart()
			r.Now += at
			break
		}
	}
	require.NoError(t, g.Tick(r.Now))
	require.Equal(t, want, g.newest)
}

// TestGroupBounds: what the docs call the least and the most of a setting is taken, and what is beyond isn't.
func TestGroupBounds(t *testing.T) {
	for _, cfg := range []GroupConfig{{Rate: 10}, {Rate: 240}, {MaxCatchUp: 1}, {MaxCatchUp: 64}, {UpdateRate: 1}, {UpdateRate: 240}, {MaxBack: 1}, {MaxBack: 64}} {
		g, err := NewGroup(actorrep.NewServer(actorrep.Config{}), cfg)
		require.NoError(t, err)
		_, err = Register(g.world, "Bead", Config[*bead, pulse]{Group: g})
		require.NoError(t, err)
	}
	for _, cfg := range []Config[*bead, pulse]{{Rate: 10}, {Rate: 240}, {MaxCatchUp: 1}, {MaxCatchUp: 64}} {
		_, err := Register(actorrep.NewServer(actorrep.Config{}), "Bead", cfg)
		require.NoError(t, err)
	}
	for _, cfg := range []Config[*bead, pulse]{{Rate: 9.9}, {Rate: 240.1}, {MaxCatchUp: -1}, {MaxCatchUp: 65}} {
		_, err := Register(actorrep.NewServer(actorrep.Config{}), "Bead", cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestGroupStatesOfAnotherPossession: states that are of a possession that hasn't begun here, or has ended, are counted and change nothing.
func TestGroupStatesOfAnotherPossession(t *testing.T) {
	_, _, client, g := still(t, 2, beadConfig{})
	p, before, strange := client.pawns[0], g.Counters, client.Counters().Strange
	p.number++
	m := message[*bead, pulse]{number: p.number - 1}
	require.NoError(t, client.receiveStates(actorrep.Call{}, p.actor, m))
	require.NoError(t, client.receiveStates(actorrep.Call{}, g.members[1].actor.(*bead), m), "nobody here possesses it")
	require.Equal(t, before, g.Counters)
	require.Equal(t, strange+2, client.Counters().Strange)
}

// TestGroupStatesOfStrangers: states of actors that this end doesn't have, or of a class that is no group's, are counted, and those beside them are taken.
func TestGroupStatesOfStrangers(t *testing.T) {
	r, server, client, g := still(t, 3, beadConfig{})
	lone := &gun{}
	require.NoError(t, server.world.Spawn(lone))
	r.Await("the stranger", func() { beadsFrame(t, r, server, client) }, func() bool { return client.world.Find(lone.GUID()) != nil })
	before, tick := g.Counters, g.newest
	for _, stranger := range []netguid.GUID{12345, lone.GUID()} {
		tick++
		one, two := as(g.members[1]), as(g.members[2])
		require.NoError(t, tell(client, tick, false, one, tale{id: stranger}, two))
		require.Equal(t, tick, g.members[1].heard)
		require.Equal(t, tick, g.members[2].heard)
	}
	require.Equal(t, before.Unknown+2, g.Counters.Unknown)
	require.Equal(t, before.States+4, g.Counters.States)
}

// TestGroupOfMoreThanItHolds: a server that tells a client of more members than a group may have is counted, and the client goes on with those it has.
func TestGroupOfMoreThanItHolds(t *testing.T) {
	r, server, client, g := still(t, 2, beadConfig{})
	for range MaxMembers {
		require.NoError(t, server.world.Spawn(&bead{}))
	}
	r.Await("all came", r.Step, func() bool {
		n := 0
		for range client.world.All {
			n++
		}
		return n == MaxMembers+2
	})
	refused := 0
	for a := range client.world.All {
		if err := tell(client, g.newest, false, tale{id: baseOf(a).GUID()}); err != nil {
			t.Fatal(err)
		}
		refused++
	}
	require.Equal(t, MaxMembers, g.Len())
	require.EqualValues(t, refused-MaxMembers, g.Counters.Strange)
	require.NoError(t, g.Tick(r.Now))
}

// TestGroupStatesFarAhead: a client takes states of the ticks that it keeps, and refuses those of later ones: they are counted.
func TestGroupStatesFarAhead(t *testing.T) {
	_, _, client, g := still(t, 2, beadConfig{})
	a := as(g.members[1])
	require.NoError(t, tell(client, g.newest+keptStates-maxBack-1, false, a))
	require.Equal(t, g.newest+keptStates-maxBack-1, g.members[1].heard)
	require.Zero(t, g.Counters.Strange)
	require.NoError(t, tell(client, g.newest+keptStates-maxBack, false, a))
	require.Equal(t, g.newest+keptStates-maxBack-1, g.members[1].heard)
	require.EqualValues(t, 1, g.Counters.Strange)

	g.newest = 0 // before its first tick a client takes any tick whose time can be told
	require.NoError(t, tell(client, maxTickNumber, false, a))
	require.ErrorIs(t, tell(client, maxTickNumber+1, false, a), ErrStates)
}

// TestGroupTolerance: a state within the tolerance, the tolerance itself included, is as predicted, and one that is beyond isn't. Config.Corrected and the world's observer hear of a
// member that a rewind moves by more than a tolerance, and of no other.
func TestGroupTolerance(t *testing.T) {
	for off, good := range map[int16]bool{0: true, 2: true, -2: true, 3: false, -3: false} {
		r, _, client, g := still(t, 3, beadConfig{})
		seen := watched(client.world)
		before := g.Counters
		one, two := as(g.members[1]), as(g.members[2])
		one.w += off
		require.NoError(t, tell(client, g.newest, false, one))
		require.Equal(t, good, g.Counters.Good == before.Good+1, off)
		require.Equal(t, !good, g.dirty == g.newest)
		two.how, two.in = driven, 1 // the same place, by another input: news, though nothing moves
		require.NoError(t, tell(client, g.newest, false, two))
		require.Equal(t, g.newest, g.dirty)
		g.rewind(r.Now)
		require.Equal(t, off, g.members[1].actor.(*bead).W, "a rewind takes what is told")
		if good {
			require.Equal(t, before.Corrected, g.Counters.Corrected)
			require.Empty(t, seen.list)
		} else {
			require.Equal(t, before.Corrected+1, g.Counters.Corrected)
			require.Equal(t, []correction{{one.id, 1.5, "W"}}, seen.list)
		}
	}
}

// TestGroupWhoIsGone: an update of all that a player sees ends the prediction of the others. One that comes late ends nobody's who has come since, and doesn't bring back who has
// left.
func TestGroupWhoIsGone(t *testing.T) {
	r, _, client, g := still(t, 4, beadConfig{})
	own, one, two, three := g.members[0], g.members[1], g.members[2], g.members[3]
	a, b, c, d := as(own), as(one), as(two), as(three)
	actors := []*bead{one.actor.(*bead), two.actor.(*bead), three.actor.(*bead)}
	predicted := func() (list [3]bool) {
		for i, m := range actors {
			list[i] = client.Predicting(m)
		}
		return list
	}
	a.how = yours
	tick := g.newest
	require.NoError(t, tell(client, tick-4, true, a, b, c, d))
	require.Equal(t, [3]bool{true, true, true}, predicted())
	require.NoError(t, tell(client, tick-3, true, a, b, c))
	require.Equal(t, [3]bool{true, true, false}, predicted(), "it isn't among those that are seen")
	require.NoError(t, tell(client, tick-2, false, a, b))
	require.Equal(t, [3]bool{true, true, false}, predicted(), "these aren't all")
	require.NoError(t, tell(client, tick-3, false, d))
	require.NoError(t, tell(client, tick-4, false, d))
	require.NoError(t, g.Tick(r.Now))
	require.Equal(t, [3]bool{true, true, false}, predicted(), "late word of who has left")
	require.NoError(t, tell(client, tick-2, false, d))
	require.NoError(t, g.Tick(r.Now))
	require.Equal(t, [3]bool{true, true, true}, predicted(), "it is back")
	require.NoError(t, tell(client, tick-5, true, a, b))
	require.Equal(t, [3]bool{true, true, true}, predicted(), "late word of who was there")
}

// TestGroupWhoIsSilent: a member of which a client hears nothing for more than a second, while it hears of others, counts as gone.
func TestGroupWhoIsSilent(t *testing.T) {
	r, _, client, g := still(t, 3, beadConfig{})
	second := int64(time.Second / g.step)
	one, two := g.members[1], g.members[2]
	begin := one.heard
	require.Equal(t, begin, two.heard)
	for g.newest < begin+second+10 {
		g.playTicks(t, r, 5)
		a, b := as(g.members[0]), as(one)
		a.how = yours
		require.NoError(t, tell(client, min(g.newest, begin+second), false, a, b))
	}
	require.NoError(t, g.Tick(r.Now))
	require.True(t, client.Predicting(two.actor.(*bead)), "a second")
	actor := two.actor.(*bead)
	b := as(one)
	require.NoError(t, tell(client, begin+second+1, false, b))
	require.NoError(t, g.Tick(r.Now))
	require.False(t, client.Predicting(actor), "more than a second")
	require.True(t, client.Predicting(one.actor.(*bead)))
	require.Equal(t, 2, g.Len())
}

// TestGroupOldStates: states of ticks that are further back than MaxBack hold from the oldest tick that a client goes back to.
func TestGroupOldStates(t *testing.T) {
	r, _, client, g := still(t, 3, beadConfig{})
	for range 8 {
		g.playTicks(t, r, 10)
	}
	g.anew()
	oldest := g.newest - int64(g.cfg.MaxBack)
	o := omniscient{step: g.step, told: map[int64][]tale{}, asked: map[int64]uint8{}}
	for i, m := range g.members {
		s := tale{id: m.id, sum: uint32(i) + 1, n: uint8(i), how: driven, in: uint8(i) + 1}
		o.ids, o.told[oldest] = append(o.ids, m.id), append(o.told[oldest], s)
	}
	require.NoError(t, tell(client, oldest-9, false, o.told[oldest]...))
	g.rewind(r.Now)
	for id, k := range o.run(oldest, g.newest)[g.newest] {
		b := client.world.Find(id).(*bead)
		require.Equal(t, [2]uint32{k.sum, uint32(k.n)}, [2]uint32{b.Sum, uint32(b.N)})
	}
	require.EqualValues(t, 3, g.Counters.Old)
	require.EqualValues(t, g.cfg.MaxBack, g.Counters.Replayed)

	// What holds in the oldest tick is of that tick, and no older one.
	g.Counters = GroupCounters{}
	one := as(g.members[1])
	one.sum++
	require.NoError(t, tell(client, oldest, false, one))
	before := g.members[2].moment(oldest).state[0]
	g.rewind(r.Now)
	require.Zero(t, g.Counters.Old)
	require.Equal(t, before, g.members[2].moment(oldest).state[0])
}

// TestGroupOldStatesHoldOnce: a state that is further back than MaxBack sets its member back once. A rewind for others leaves it alone, as it does a member whose old state was as
// predicted. And the state of the tick from which it held is taken when it comes.
func TestGroupOldStatesHoldOnce(t *testing.T) {
	r, _, client, g := still(t, 4, beadConfig{})
	for range 8 {
		g.playTicks(t, r, 10)
	}
	g.Counters = GroupCounters{}
	one, two, good := g.members[1], g.members[2], g.members[3]
	other := func(m *member, n uint32) tale {
		s := as(m)
		s.sum += n
		return s
	}
	oldest := func() int64 { return g.newest - int64(g.cfg.MaxBack) }
	begin := oldest()
	at := begin - 9
	fine := as(good)
	fine.sum, fine.n = uint32(good.moment(at).state[0]), uint8(good.moment(at).state[1])
	fine.how = yours
	require.NoError(t, tell(client, at, false, other(one, 1000), fine))
	require.EqualValues(t, 1, g.Counters.Good)
	kept := good.moment(begin).state[0]
	g.rewind(r.Now)
	require.EqualValues(t, 1, g.Counters.Old)
	require.Equal(t, kept, good.moment(begin).state[0])
	g.playTicks(t, r, 3)

	kept = one.moment(oldest()).state[0]
	require.NoError(t, tell(client, at+1, false, other(two, 2000)))
	g.rewind(r.Now)
	require.EqualValues(t, 2, g.Counters.Old)
	require.Equal(t, kept, one.moment(oldest()).state[0], "set back again")

	require.NoError(t, tell(client, begin, false, other(one, 3000)))
	require.Equal(t, begin, one.heard, "it takes the place of the older one")
	g.rewind(r.Now)
	require.EqualValues(t, 3, g.Counters.Old)
	require.NoError(t, tell(client, begin, false, other(one, 4000)))
	require.Zero(t, g.dirty, "it is there already")

	fine = other(two, 0)
	fine.sum, fine.n, fine.how = uint32(two.moment(at + 5).state[0]), uint8(two.moment(at + 5).state[1]), yours
	require.NoError(t, tell(client, at+4, false, other(two, 5000)))
	require.NoError(t, tell(client, at+5, false, fine))
	require.EqualValues(t, 2, g.Counters.Good)
	g.rewind(r.Now)
	require.EqualValues(t, 3, g.Counters.Old, "a later state was as predicted")
}

// TestGroupPauses: after a pause of up to MaxBack ticks a client simulates them all, and asks its player for the last MaxCatchUp of them. After a longer one it skips the oldest. It counts
// those of more than MaxCatchUp.
func TestGroupPauses(t *testing.T) {
	for ticks, want := range map[int64]struct{ asked, simulated, hitches int }{
		11: {11, 11, 0}, 12: {12, 12, 0}, 13: {12, 13, 1}, 30: {12, 30, 1}, 31: {12, 12, 1}, 100: {12, 12, 1},
	} {
		asked := 0
		r, _, client, g := still(t, 3, beadConfig{input: func(*bead) pulse { asked++; return pulse{1} }})
		require.Equal(t, 12, g.cfg.MaxCatchUp)
		hitches, before, number := client.Counters().Hitches, g.Counters, client.Counters().Client.Moves
		asked = 0
		g.playTicks(t, r, ticks)
		require.Equal(t, want.asked, asked, "%d ticks", ticks)
		require.EqualValues(t, want.hitches, client.Counters().Hitches-hitches)
		n := g.Counters
		require.EqualValues(t, want.simulated, n.Ticks-before.Ticks-(n.Replayed-before.Replayed), "%d ticks", ticks)
		require.EqualValues(t, want.asked, client.Counters().Client.Moves-number, "what is asked is sent")
		for _, m := range g.members {
			require.True(t, m.alive, "%d ticks", ticks)
		}
		if want.simulated < int(ticks) { // the last that is known holds as long before as a client goes back
			require.EqualValues(t, g.cfg.MaxBack, n.Replayed-before.Replayed)
		}
	}
}

// TestGroupTimeGoesBack: a client whose time goes back by up to MaxBack ticks waits for it, and asks for no input twice. When it goes back further, the client predicts none but those
// of which it hears then, and asks for the inputs of the ticks that are due then.
func TestGroupTimeGoesBack(t *testing.T) {
	for _, back := range []int64{30, 31, 500} {
		r, server, client, g := still(t, 3, beadConfig{})
		for range 250 {
			beadsFrame(t, r, server, client)
		}
		newest, moves, due := g.newest, client.Counters().Client.Moves, g.newest-back
		g.clock.ahead += time.Duration(due)*g.step + g.step/2 - g.clock.target(g.clock.local)
		g.clock.restart()
		require.NoError(t, g.Tick(r.Now))
		if back == 30 {
			require.Equal(t, newest, g.newest)
			require.True(t, client.Predicting(g.members[1].actor.(*bead)))
			require.Equal(t, moves, client.Counters().Client.Moves)
			continue
		}
		require.Equal(t, due, g.newest, "the tick that is due")
		require.False(t, client.Predicting(g.members[1].actor.(*bead)))
		var tales []tale
		for _, m := range g.members {
			tales = append(tales, as(m))
		}
		tales[0].how = yours
		require.NoError(t, tell(client, due, false, tales...))
		moves = client.Counters().Client.Moves
		g.playTicks(t, r, 2)
		for _, m := range g.members {
			require.True(t, client.Predicting(m.actor.(*bead)))
		}
		require.Equal(t, moves+2, client.Counters().Client.Moves)
	}
}

// TestGroupBeginsInTime: from its first frame on, and in every frame, a client has simulated the ticks up to the shared time, and none beyond.
func TestGroupBeginsInTime(t *testing.T) {
	r, server, client := beads(t, 2, beadConfig{})
	g := client.group
	require.EqualValues(t, 1, g.Counters.Ticks-g.Counters.Replayed, "the first frame")
	for i := range 100 {
		require.Equal(t, int64(g.clock.follower.Value()/g.step), g.newest, "frame %d", i)
		beadsFrame(t, r, server, client)
	}
}

// TestGroupAnActorIsTaken: a player who loses one of several actors of a group isn't shown a prediction of it any more until the server's next word of it, and goes on with the others.
func TestGroupAnActorIsTaken(t *testing.T) {
	r, server, client, g := still(t, 4, beadConfig{players: 2})
	one, other := g.members[0].actor.(*bead), g.members[1].actor.(*bead)
	require.True(t, one.IsOwned() && other.IsOwned())
	for a := range server.world.All {
		if b := a.(*bead); b.GUID() == one.GUID() {
			server.Unpossess(b)
		}
	}
	r.Await("taken", r.Step, func() bool { return !one.IsOwned() })
	require.NoError(t, g.Tick(r.Now))
	require.False(t, client.Predicting(one))
	require.Len(t, client.pawns, 1, "its memory is let go")
	require.True(t, client.Predicting(other))
	require.Equal(t, 3, g.Len())
	r.Await("as of others' members", func() { beadsFrame(t, r, server, client) }, func() bool { return client.Predicting(one) })
}

// TestGroupAnotherActor: when a player gets another actor of a group, the prediction of the members goes on.
func TestGroupAnotherActor(t *testing.T) {
	r, server, client, g := still(t, 3, beadConfig{})
	for a := range server.world.All {
		if b := a.(*bead); b.Owner() == nil {
			require.NoError(t, server.Possess(b, r.Lines[0].Peer, r.Now))
			break
		}
	}
	newest := g.newest
	r.Await("it is his", func() {
		beadsFrame(t, r, server, client)
		require.Equal(t, 3, g.Len())
		for _, m := range g.members {
			require.True(t, m.alive)
		}
		require.Greater(t, g.newest, newest)
		newest = g.newest
	}, func() bool { return len(client.pawns) == 2 })
}

// TestGroupTakesTheServersRate: a client of another rate takes the server's ticks.
func TestGroupTakesTheServersRate(t *testing.T) {
	r, server, client := beads(t, 3, beadConfig{group: GroupConfig{Rate: 30}, theirs: GroupConfig{Rate: 120}})
	for range 120 {
		beadsFrame(t, r, server, client)
	}
	require.Equal(t, server.group.step, client.group.step)
	before := client.group.Counters
	for range 30 {
		beadsFrame(t, r, server, client)
	}
	n := client.group.Counters
	require.InDelta(t, 30, n.Ticks-n.Replayed-(before.Ticks-before.Replayed), 2)
	require.Equal(t, n.States-before.States, n.Good-before.Good, "all is as predicted")
}

// TestGroupFirstReplyIsCut: a client that can't read the state of a possession's first reply simulates nothing.
func TestGroupFirstReplyIsCut(t *testing.T) {
	r, server, client := beads(t, 2, beadConfig{})
	g := client.group
	g.clock, g.newest = clock{}, 0
	m := message[*bead, pulse]{number: client.pawns[0].number + 1}
	w := bitio.NewWriter(m.data[:])
	server.writeTiming(server.pawns[0], w)
	m.bits = w.Len()
	require.Error(t, client.receiveReply(actorrep.Call{Now: r.Now}, client.pawns[0].actor, m))
	ticks := g.Counters.Ticks
	require.NoError(t, g.Tick(r.Now))
	require.Equal(t, ticks, g.Counters.Ticks)
	require.Zero(t, g.newest)
}
