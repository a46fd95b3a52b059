package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// serverOf is a server with a group of beads and nobody who plays.
func serverOf(t testing.TB, cfg GroupConfig) (*actorrep.World, *Class[*bead, pulse]) {
	w := actorrep.NewServer(actorrep.Config{})
	g, err := NewGroup(w, cfg)
	require.NoError(t, err)
	c, err := Register(w, "Bead", Config[*bead, pulse]{Group: g, Input: func(*bead) pulse { return pulse{5} }})
	require.NoError(t, err)
	return w, c
}

func spawned(t testing.TB, w *actorrep.World) *bead {
	b := &bead{}
	require.NoError(t, w.Spawn(b))
	return b
}

// TestGroupOrder: members are simulated and touched in the order of their ids, in whatever order they joined and whoever has left. Touch isn't called without any.
func TestGroupOrder(t *testing.T) {
	var order []netguid.GUID
	calls := 0
	w, c := serverOf(t, GroupConfig{Touch: func(members []actorrep.Actor, _ time.Duration) {
		order = order[:0]
		for _, m := range members {
			order = append(order, baseOf(m).GUID())
		}
		calls++
	}})
	now := time.Duration(0)
	tick := func() {
		now += c.step
		require.NoError(t, c.group.Tick(now))
	}
	tick()
	tick()
	require.Zero(t, calls)
	var all []*bead
	for range 5 {
		all = append(all, spawned(t, w))
	}
	for _, i := range []int{3, 1, 4} {
		require.NoError(t, c.Join(all[i]))
	}
	tick()
	require.Equal(t, []netguid.GUID{all[1].GUID(), all[3].GUID(), all[4].GUID()}, order)
	require.NoError(t, c.Join(all[0]))
	c.Leave(all[3])
	tick()
	require.Equal(t, []netguid.GUID{all[0].GUID(), all[1].GUID(), all[4].GUID()}, order)
	require.NoError(t, c.Join(all[2]))
	tick()
	require.Equal(t, []netguid.GUID{all[0].GUID(), all[1].GUID(), all[2].GUID(), all[4].GUID()}, order)
	n := all[3].Sum
	tick()
	require.Equal(t, n, all[3].Sum, "it has left")
	require.Equal(t, 4, calls)
}

// TestGroupLeaveAndJoin: Leave takes an actor from its player; an actor that leaves and joins before the next tick is a member still; members that come and go take no more memory.
func TestGroupLeaveAndJoin(t *testing.T) {
	w, c := serverOf(t, GroupConfig{})
	now := time.Duration(0)
	tick := func() {
		now += c.step
		if err := c.group.Tick(now); err != nil {
			t.Fatal(err)
		}
	}
	b := spawned(t, w)
	require.NoError(t, c.Possess(b, w.Local(), now))
	tick()
	require.Equal(t, w.Local(), b.Owner())
	c.Leave(b)
	require.Nil(t, b.Owner())
	require.Zero(t, c.group.Len())
	require.NoError(t, c.Join(b))
	require.Equal(t, 1, c.group.Len())
	tick()
	require.Equal(t, 1, c.group.Len())
	n := b.Sum
	tick()
	require.NotEqual(t, n, b.Sum)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		c.Leave(b)
		tick()
		if err := c.Join(b); err != nil {
			t.Fatal(err)
		}
		tick()
	}))
	require.Equal(t, 1, c.group.Len())

	alone, err := Register(w, "Gun", Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	require.NoError(t, err)
	g := &gun{}
	require.NoError(t, w.Spawn(g))
	require.NoError(t, alone.Possess(g, w.Local(), now))
	alone.Leave(g) // of no group
	require.Equal(t, w.Local(), g.Owner())
}

// TestGroupUpdateRate: the players are told UpdateRate times a second, never twice of one tick, and not at once for all of a pause. A host isn't told.
func TestGroupUpdateRate(t *testing.T) {
	for _, c := range []struct {
		cfg  GroupConfig
		want int // in 4 s of 30 frames
	}{{GroupConfig{UpdateRate: 10}, 40}, {GroupConfig{UpdateRate: 240}, 120}, {GroupConfig{Rate: 10, UpdateRate: 240}, 40}, {GroupConfig{}, 120}} {
		r, server, client := beads(t, 3, beadConfig{group: c.cfg, players: 2})
		for a := range r.Server.All {
			if b := a.(*bead); b.Owner() == nil {
				require.NoError(t, server.Possess(b, r.Server.Local(), r.Now)) // a host isn't told
			}
		}
		for range 60 {
			beadsFrame(t, r, server, client)
		}
		require.LessOrEqual(t, len(server.group.told), 1)
		before := server.group.Counters.Updates
		for range 120 {
			beadsFrame(t, r, server, client)
		}
		require.InDelta(t, c.want, server.group.Counters.Updates-before, 2, "%+v", c.cfg)
		for range 90 { // a pause of the game, not of the network
			r.Step()
		}
		before = server.group.Counters.Updates
		for range 60 {
			beadsFrame(t, r, server, client)
		}
		require.InDelta(t, c.want/2, server.group.Counters.Updates-before, 2, "%+v: after a pause", c.cfg)
		r.Server.RemoveConn(r.Lines[0].Peer)
		for range 10 {
			require.NoError(t, server.group.Tick(r.Now))
			r.Now += rig.Tick
		}
		require.Empty(t, server.group.told, "who has gone isn't remembered")
	}
}

// TestGroupAllAreTold: of members that take several messages each is told in its turn: over the messages of a round each once, whatever their number.
func TestGroupAllAreTold(t *testing.T) {
	for _, n := range []int{2, 30, 37, 38, 39, 40, 41, 75, 76, 77, 78, 79, 80, 120} {
		r, server, client := beads(t, 2, beadConfig{})
		for range n - 2 {
			require.NoError(t, server.Join(spawned(t, r.Server)))
		}
		g := client.group
		r.Await("all are there", func() { beadsFrame(t, r, server, client) }, func() bool { return g.Len() == n })
		for range 30 {
			beadsFrame(t, r, server, client)
		}
		states, updates, heard := g.Counters.States, g.Counters.Updates, map[*member]int64{}
		own := g.byBase[client.pawns[0].base]
		news := map[*member]int{}
		for range 60 {
			beadsFrame(t, r, server, client)
			require.Equal(t, n, g.Len())
			for _, m := range g.members {
				require.True(t, m.alive)
				if m.heard != heard[m] {
					heard[m] = m.heard
					news[m]++
				}
			}
		}
		least, most, all := 60, 0, 0
		for _, m := range g.members {
			all += news[m]
			if m != own {
				least, most = min(least, news[m]), max(most, news[m])
			}
		}
		require.LessOrEqual(t, most-least, 2, "%d members: each in its turn", n)
		require.InDelta(t, all, g.Counters.States-states, float64(n), "none twice in an update")
		require.LessOrEqual(t, g.Counters.Updates-updates, uint64(2*60))
		require.Zero(t, g.Counters.Strange)

		// A member that leaves is gone at once where all fit in one message.
		if n == 2 {
			for a := range r.Server.All {
				if b := a.(*bead); b.Owner() == nil {
					server.Leave(b)
				}
			}
			for range 6 {
				beadsFrame(t, r, server, client)
			}
			require.Equal(t, 1, g.Len())
		}
	}
}

// TestGroupTellsInputs: what a player is told of other members' inputs is what moved them: a player's, a host's, none of what has no player, and none of one who is silent.
func TestGroupTellsInputs(t *testing.T) {
	var server, client, third *Class[*bead, pulse]
	register := func(c **Class[*bead, pulse], n uint8) func(w *actorrep.World) error {
		return func(w *actorrep.World) error {
			g, err := NewGroup(w, GroupConfig{})
			if err != nil {
				return err
			}
			*c, err = Register(w, "Bead", Config[*bead, pulse]{Group: g, Input: func(*bead) pulse { return pulse{n} }})
			return err
		}
	}
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register(&server, 9))
	l, m := r.Join(register(&client, 3)), r.Join(register(&third, 4))
	mine, theirs, host, nobodys := spawned(t, r.Server), spawned(t, r.Server), spawned(t, r.Server), spawned(t, r.Server)
	require.NoError(t, server.Possess(mine, l.Peer, r.Now))
	require.NoError(t, server.Possess(theirs, m.Peer, r.Now))
	require.NoError(t, server.Possess(host, r.Server.Local(), r.Now))
	require.NoError(t, server.Join(nobodys))
	told := func(b *bead) (how, uint8) {
		m := client.group.byBase[baseOf(client.world.Find(b.GUID()))]
		e := m.moment(m.heard)
		return e.toldHow, uint8(e.toldInput[0])
	}
	frames := func(n int, thirds bool) {
		for range n {
			beadsFrame(t, r, server, client)
			if thirds {
				require.NoError(t, third.group.Tick(r.Now))
			}
		}
	}
	expect := func(b *bead, how how, in uint8) {
		t.Helper()
		h, n := told(b)
		require.Equal(t, how, h)
		require.Equal(t, in, n)
	}
	frames(90, true)
	expect(mine, yours, 0)
	expect(theirs, driven, 4)
	expect(host, driven, 9)
	expect(nobodys, coasting, 0)
	require.InDelta(t, client.group.Counters.States, client.group.Counters.Good, 60, "nothing is news")
	frames(6, false)
	expect(theirs, driven, 4) // his last one
	frames(60, false)
	expect(theirs, coasting, 0)
	server.Unpossess(host)
	require.NoError(t, server.Possess(nobodys, r.Server.Local(), r.Now))
	frames(5, false)
	expect(host, coasting, 0)
	expect(nobodys, driven, 9)
	require.LessOrEqual(t, server.Counters().Server.Corrections, uint64(20), "members are simulated in place: that is no change of the game's")
}

// TestGroupPossessByAnotherClock: Possess of a member with a time that is far from that of Tick begins at Tick's.
func TestGroupPossessByAnotherClock(t *testing.T) {
	r, server, client := beads(t, 2, beadConfig{})
	for range 30 {
		beadsFrame(t, r, server, client)
	}
	b := spawned(t, r.Server)
	require.NoError(t, server.Possess(b, r.Lines[0].Peer, r.Now+50*time.Hour))
	for range 30 {
		beadsFrame(t, r, server, client)
	}
	require.NotZero(t, b.Sum, "it is simulated")
	require.Greater(t, server.byActor[b].server.Counters.Moves, uint64(20))
}

// TestGroupHidden: values of fields that are replicated come back when the prediction of a member ends: those before it began too, and for a player's own those that came since it was his.
func TestGroupHidden(t *testing.T) {
	var server, client *Class[*twin, aim]
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, twins(&server))
	l := r.Join(twins(&client))
	a, b := &twin{}, &twin{X: 7}
	for _, x := range []*twin{a, b} {
		require.NoError(t, r.Server.Spawn(x))
	}
	frame := func() {
		require.NoError(t, server.group.Tick(r.Now))
		r.Step()
		require.NoError(t, client.group.Tick(r.Now))
	}
	require.NoError(t, server.Possess(a, l.Peer, r.Now))
	for range 30 {
		frame()
	}
	seen := client.world.Find(b.GUID()).(*twin)
	require.Equal(t, 7.0, seen.X)
	tick := uint64(client.group.newest)
	m := message[*twin, aim]{number: client.pawns[0].number}
	w := bitio.NewWriter(m.data[:])
	w.WriteIntPacked64(tick)
	part := bitio.NewWriter(make([]byte, 100))
	client.state.writeNumbers(part, []uint64{0, 0})
	w.WriteBool(true)
	w.WriteIntPacked(uint32(b.GUID()))
	w.WriteIntPacked(uint32(part.Len()))
	w.WriteBits(uint64(coasting), howBits)
	w.WriteBitsFrom(part.Bytes(), 0, part.Len())
	w.WriteBool(false)
	w.WriteBool(false)
	m.bits = w.Len()
	require.NoError(t, client.receiveStates(actorrep.Call{}, client.pawns[0].actor, m))
	require.NoError(t, client.group.Tick(r.Now))
	require.Less(t, seen.X, 1.0, "it is predicted")
	client.group.end(client.group.byBase[&seen.Base])
	require.Equal(t, 7.0, seen.X)

	// It was others', and is this player's now: what came before is older than the prediction.
	require.NoError(t, server.Join(b))
	for range 30 {
		frame()
	}
	require.NoError(t, server.Possess(b, l.Peer, r.Now))
	r.Await("it is his", frame, func() bool { return len(client.pawns) == 2 && client.group.byBase[&seen.Base].own })
	for range 30 {
		frame()
	}
	shown := seen.X
	client.group.end(client.group.byBase[&seen.Base])
	require.Equal(t, shown, seen.X)
}
