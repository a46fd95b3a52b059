package predict

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestServerOfManyPossessions: replies of ever other possessions hold no more on a client than one does, also while its game doesn't call Tick.
func TestServerOfManyPossessions(t *testing.T) {
	r, _, client, _, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for i := range 2000 {
		m := reply(client, uint8(i), r.Now, 0)
		require.NoError(t, client.receiveReply(actorrep.Call{World: mine.World(), Now: r.Now}, mine, m))
	}
	require.LessOrEqual(t, len(client.pawns), 1)
	const more = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range more {
		require.NoError(t, client.receiveReply(actorrep.Call{World: mine.World(), Now: r.Now}, mine, reply(client, uint8(i), r.Now, 1)))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/more, uint64(20_000), "a client's saved moves take 40 KB")
}

// reply is a server's correction.
func reply(c *Class[*gun, aim], number uint8, at time.Duration, correction uint8) (m message[*gun, aim]) {
	m.number = number
	w := bitio.NewWriter(m.data[:])
	w.WriteIntPacked(uint32(c.step / time.Microsecond))
	w.WriteBool(false)
	w.WriteBool(true)
	w.WriteBits(uint64(at/time.Microsecond), 52)
	w.WriteUint8(correction)
	c.state.writeState(w, &snapshot{})
	m.bits = w.Len()
	return m
}

// TestServerOfManyActors: a server that gives a player ever more actors, of which some are destroyed again, makes its client hold no more than Possess allows.
func TestServerOfManyActors(t *testing.T) {
	r, server, client, first, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	player := first.Owner()
	var others []*gun
	for i := 1; i <= maxPossessed; i++ {
		g := &gun{}
		require.NoError(t, r.Server.Spawn(g))
		if err := server.Possess(g, player, r.Now); i < maxPossessed {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrManyPossessed)
			g.SetOwner(player)
			g.SetAutonomous(true)
		}
		others = append(others, g)
	}
	for range 300 {
		require.NoError(t, server.Tick(r.Now))
		r.Step()
	}
	world := client.pawns[0].base.World()
	mine := func(g *gun) *gun { return world.Find(g.GUID()).(*gun) }
	receive := func(g *gun) error {
		return client.receiveReply(actorrep.Call{World: world, Now: r.Now}, mine(g), reply(client, 200, r.Now, 1))
	}
	require.Len(t, client.pawns, maxPossessed)
	last, strange := others[len(others)-1], client.Counters().Strange
	require.ErrorIs(t, receive(last), ErrManyPossessed)
	require.Equal(t, strange+1, client.Counters().Strange)
	require.Len(t, client.pawns, maxPossessed)
	require.NoError(t, server.Possess(first, player, r.Now), "what it has it may get again")
	require.NoError(t, receive(others[0]))
	require.NoError(t, r.Server.Destroy(others[0]))
	for range 30 {
		r.Step()
	}
	require.NoError(t, receive(last))
	require.Len(t, client.pawns, maxPossessed)
}

// TestServerOfManyCorrections: what a client simulates again of corrections is bounded in each frame, however many come.
func TestServerOfManyCorrections(t *testing.T) {
	r, server, client, _, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for range 60 {
		require.NoError(t, server.Tick(r.Now))
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	for range 300 { // the server is away: moves wait
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	p := client.pawns[0]
	n := client.Counters().Client
	number := uint8(0)
	for i := range 1000 {
		number = uint8(n.Corrections) + uint8(i) + 1
		require.NoError(t, client.receiveReply(actorrep.Call{World: mine.World(), Now: r.Now}, mine, reply(client, p.number, p.client.Acked(), number)))
	}
	after := client.Counters().Client
	require.LessOrEqual(t, after.Replayed-n.Replayed, uint64(4*96))
	require.NotZero(t, after.Replayed-n.Replayed)
	require.NoError(t, client.Tick(r.Now))
	require.LessOrEqual(t, client.Counters().Client.Replayed-n.Replayed, uint64(5*96))
}

// TestManyActorsOfOnePlayer: a player moves as many actors of a class as Possess allows, and each of its inputs comes.
func TestManyActorsOfOnePlayer(t *testing.T) {
	r, server, client, g, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{X: 1} }})
	for range maxPossessed - 1 {
		other := &gun{}
		require.NoError(t, r.Server.Spawn(other))
		require.NoError(t, server.Possess(other, g.Owner(), r.Now))
	}
	frames := func(n int) {
		for range n {
			require.NoError(t, server.Tick(r.Now))
			r.Step()
			require.NoError(t, client.Tick(r.Now))
		}
	}
	frames(120)
	before := server.Counters().Server
	frames(1200)
	after := server.Counters().Server
	require.Zero(t, after.Missed-before.Missed)
	require.Greater(t, after.Moves-before.Moves, uint64(maxPossessed*1000))
}

// TestMalformedMovesAreToldOnce: a client that sends nothing but malformed moves is counted each time, and the server's game told once for each possession.
func TestMalformedMovesAreToldOnce(t *testing.T) {
	r, server, _, g, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for n := range uint64(3) {
		told := 0
		require.NoError(t, server.Possess(g, g.Owner(), r.Now))
		m := message[*gun, aim]{number: server.number, bits: 5}
		for range 100 {
			if server.receiveMoves(actorrep.Call{World: r.Server, Peer: g.Owner(), Now: r.Now}, g, m) != nil {
				told++
			}
		}
		require.Equal(t, 1, told)
		require.Equal(t, 100*(n+1), server.Counters().Server.Malformed)
	}
}

// TestMalformedRepliesAreToldOnce: a server that sends nothing but malformed replies has its client told once.
func TestMalformedRepliesAreToldOnce(t *testing.T) {
	r, server, client, g, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for range 300 {
		require.NoError(t, server.Tick(r.Now))
		_ = server.reply.Call(g, message[*gun, aim]{number: server.number, bits: 5})
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	require.Greater(t, client.Counters().Strange, uint64(100))
	require.Len(t, r.Lines[0].Failed, 1)
}

// TestPossessionsWrap: an actor that is possessed again when the numbers of possessions, 8 bits, have wrapped is predicted anew.
func TestPossessionsWrap(t *testing.T) {
	for _, more := range []int{1, 255, 256, 257, 512} {
		r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{X: 1} }})
		frames := func(n int) {
			for range n {
				require.NoError(t, server.Tick(r.Now))
				r.Step()
				require.NoError(t, client.Tick(r.Now))
			}
		}
		frames(60)
		for i := range 20 { // corrections
			g.X = float64(-i) / 10
			frames(20)
		}
		player := g.Owner()
		for range more {
			require.NoError(t, server.Possess(g, player, r.Now))
		}
		g.X = -5
		frames(60)
		require.InDelta(t, g.X, mine.X, 0.5, "%d", more)
	}
}
