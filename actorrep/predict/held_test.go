package predict

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type correction struct {
	actor netguid.GUID
	size  float64
	off   string
}

// corrections is a world's observer of corrections.
type corrections struct {
	bridge.Observer
	conn channel.Conn
	list []correction
}

func (c *corrections) Corrected(conn channel.Conn, actor netguid.GUID, size float64, off []string) {
	c.conn, c.list = conn, append(c.list, correction{actor, size, strings.Join(off, " ")})
}

func (*corrections) Waits(bridge.Wait) bool                                         { return false }
func (*corrections) Why(bridge.Wait, string)                                        {}
func (*corrections) Room() bool                                                     { return false }
func (*corrections) Waited(channel.Conn)                                            {}
func (*corrections) Stepping()                                                      {}
func (*corrections) Sent(channel.Conn, int64, []bridge.Sent)                        {}
func (*corrections) Called(bridge.Call)                                             {}
func (*corrections) Closing(channel.Conn, uint32, channel.CloseReason)              {}
func (*corrections) Set(channel.Conn, netguid.GUID, layout.Mask)                    {}
func (*corrections) Opening(channel.Conn, netguid.GUID, uint32, layout.Mask)        {}
func (*corrections) Carried(channel.Conn, uint32, int64, layout.Mask)               {}
func (*corrections) Unsaid(netguid.GUID, string, *layout.Layout, layout.Mask, bool) {}

func watched(w *actorrep.World) *corrections {
	c := &corrections{}
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(w, c)
	return c
}

func gunsFrame(t testing.TB, r *rig.Rig, server, client *Class[*gun, aim]) {
	require.NoError(t, server.Tick(r.Now))
	r.Step()
	require.NoError(t, client.Tick(r.Now))
}

// TestCorrectedIsObserved: both ends' observers hear once of what the game changes, with the names of the numbers and of no earlier ones; in the frame's Step the actor has the new value.
func TestCorrectedIsObserved(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{Look: 3} }})
	g.Look, mine.Look = 3, 3
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	at, there := watched(r.Server), watched(mine.World())
	for _, set := range []struct {
		name string
		set  func()
	}{{"X", func() { g.X += 3 }}, {"X", func() { g.X -= 2 }}} {
		at.list, there.list = nil, nil
		set.set()
		x := g.X
		for range 60 {
			require.NoError(t, server.Tick(r.Now))
			r.Step()
			if len(there.list) == 1 {
				require.Equal(t, x, mine.X, "before Tick")
			}
			require.NoError(t, client.Tick(r.Now))
		}
		require.Len(t, at.list, 1)
		require.Equal(t, g.GUID(), at.list[0].actor)
		require.Equal(t, set.name, at.list[0].off)
		require.Equal(t, r.Lines[0].S, at.conn)
		require.Len(t, there.list, 1)
		require.Equal(t, set.name, there.list[0].off)
		require.Equal(t, [3]float64{}, client.Offset(mine, r.Now), "none is marked smooth")
	}
}

// TestOnlyTickWrites: on the player's client the fields are those of the prediction when Input is asked, whatever the game wrote into them.
func TestOnlyTickWrites(t *testing.T) {
	seen := 0.0
	r, server, client, _, mine := guns(t, Config[*gun, aim]{Input: func(g *gun) aim { seen = g.X; return aim{} }})
	for range 30 {
		gunsFrame(t, r, server, client)
	}
	mine.X, seen = 4, 4
	gunsFrame(t, r, server, client)
	require.Zero(t, seen)
	require.Zero(t, mine.X)
	mine.X = 4
	require.NoError(t, client.Tick(r.Now), "no tick is due")
	require.Zero(t, mine.X)
}

// TestStrangeMessages: each message about an actor that its sender doesn't possess, or that can't be read, is counted once and changes nothing.
func TestStrangeMessages(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	p := client.pawns[0]
	require.NoError(t, server.receiveMoves(actorrep.Call{World: r.Server, Peer: g.Owner(), Now: r.Now}, g, message[*gun, aim]{number: p.number + 1}))
	require.NoError(t, server.receiveMoves(actorrep.Call{World: r.Server, Peer: r.Server.Local(), Now: r.Now}, g, message[*gun, aim]{number: p.number}))
	require.EqualValues(t, 2, server.Counters().Strange)

	foreign := &gun{}
	require.NoError(t, r.Server.Spawn(foreign))
	r.Await("it is here", r.Step, func() bool { return mine.World().Find(foreign.GUID()) != nil })
	strange := client.Counters().Strange
	reply := message[*gun, aim]{number: 9}
	w := bitio.NewWriter(reply.data[:])
	server.writeTiming(server.pawns[0], w)
	server.pawns[0].server.Correct()
	_, err := server.pawns[0].server.Reply(r.Now, w)
	require.NoError(t, err)
	reply.bits = w.Len()
	require.NoError(t, client.receiveReply(actorrep.Call{Now: r.Now}, mine.World().Find(foreign.GUID()).(*gun), reply))
	require.Equal(t, strange+1, client.Counters().Strange)
	require.Len(t, client.pawns, 1, "it isn't this player's")
	for _, step := range []time.Duration{time.Second/240 - 2*time.Microsecond, time.Second/10 + time.Microsecond} {
		bad := message[*gun, aim]{number: 9}
		w.Reset(bad.data[:])
		w.WriteIntPacked(uint32(step / time.Microsecond))
		w.WriteBool(false)
		bad.bits = w.Len()
		require.Error(t, client.receiveReply(actorrep.Call{Now: r.Now}, mine, bad))
	}
	require.Equal(t, strange+3, client.Counters().Strange)
	require.Equal(t, p, client.pawns[0])
	require.False(t, p.gone)
}

// TestFirstReplyIsCut: a client that can't read the state of a possession's first reply simulates nothing.
func TestFirstReplyIsCut(t *testing.T) {
	asked := 0
	r, server, client, _, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { asked++; return aim{} }})
	client.clock = &clock{}
	m := message[*gun, aim]{number: 9}
	w := bitio.NewWriter(m.data[:])
	server.writeTiming(server.pawns[0], w)
	m.bits = w.Len()
	require.Error(t, client.receiveReply(actorrep.Call{Now: r.Now}, mine, m))
	asked = 0
	require.NoError(t, client.Tick(r.Now))
	require.Zero(t, asked)
	require.False(t, client.Predicting(mine))
}

// TestPredicting: an actor is predicted on a server while it is possessed, and on a client from its first tick on.
func TestPredicting(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	require.True(t, server.Predicting(g))
	for range 30 {
		gunsFrame(t, r, server, client)
	}
	require.True(t, client.Predicting(mine))
	client.pawns[0].done = 0
	require.False(t, client.Predicting(mine))
	server.Unpossess(g)
	require.NoError(t, server.Tick(r.Now))
	require.False(t, server.Predicting(g))
	require.Nil(t, g.Owner())
}

// TestSilentPlayer: a player of whom nothing comes for a second is sent the actor's state once more, until he answers.
func TestSilentPlayer(t *testing.T) {
	r, server, client, _, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	began, before := server.pawns[0].heard, uint64(0)
	for r.Now-began < 1500*time.Millisecond {
		require.NoError(t, server.Tick(r.Now))
		switch n := server.Counters().Server.Corrections; {
		case r.Now-began < silence/2: // its first missing inputs may be worth one
			before = n
		case r.Now-began < silence:
			require.Equal(t, before, n)
		}
		r.Step()
	}
	require.Greater(t, server.Counters().Server.Corrections, before)
}

// TestClientTakesTheServersRate: a client of another rate takes the server's ticks, and its prediction is the server's.
func TestClientTakesTheServersRate(t *testing.T) {
	var server, client *Class[*gun, aim]
	input := func(*gun) aim { return aim{X: 1} }
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, func(w *actorrep.World) (err error) {
		server, err = Register(w, "Gun", Config[*gun, aim]{Rate: 20})
		return err
	})
	l := r.Join(func(w *actorrep.World) (err error) {
		client, err = Register(w, "Gun", Config[*gun, aim]{Rate: 100, Input: input})
		return err
	})
	g := &gun{X: -5}
	require.NoError(t, r.Server.Spawn(g))
	require.NoError(t, server.Possess(g, l.Peer, r.Now))
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	require.Equal(t, 50*time.Millisecond, client.step)
	n, corrections := client.Counters().Client, server.Counters().Server.Corrections
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	require.InDelta(t, 40, client.Counters().Client.Moves-n.Moves, 2)
	require.Equal(t, corrections, server.Counters().Server.Corrections)
}

// classEnds is a class at the server and at a client, by itself or in a group of its own.
type classEnds[A Mover[In], In any] [2]*Class[A, In]

func (e *classEnds[A, In]) register(i int, name string, cfg Config[A, In], grouped bool) func(w *actorrep.World) error {
	return func(w *actorrep.World) (err error) {
		if grouped {
			if cfg.Group, err = NewGroup(w, GroupConfig{}); err != nil {
				return err
			}
		}
		e[i], err = Register(w, name, cfg)
		return err
	}
}

func (e *classEnds[A, In]) tick(i int, now time.Duration) error {
	if g := e[i].group; g != nil {
		return g.Tick(now)
	}
	return e[i].Tick(now)
}

// TestInputsThatDontFit: inputs that make a message of over 384 bytes are an error of Tick at the client, and others' actors go on.
func TestInputsThatDontFit(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		var ends classEnds[*crate, load]
		cfg := Config[*crate, load]{Input: func(*crate) (l load) {
			for j := range l.All {
				l.All[j] = float64(j) + 0.1
			}
			return l
		}}
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, ends.register(0, "Crate", cfg, grouped))
		l := r.JoinOther(ends.register(1, "Crate", cfg, grouped))
		mine, host := &crate{}, &crate{}
		for _, c := range []*crate{mine, host} {
			require.NoError(t, r.Server.Spawn(c))
		}
		require.NoError(t, ends[0].Possess(mine, l.Peer, r.Now))
		require.NoError(t, ends[0].Possess(host, r.Server.Local(), r.Now))
		var at, there error
		for range 60 {
			if err := ends.tick(0, r.Now); err != nil {
				at = err
			}
			r.Step()
			if err := ends.tick(1, r.Now); err != nil {
				there = err
			}
		}
		require.Error(t, there, "grouped %v", grouped)
		require.Greater(t, host.All[0], 50.0, "the others go on")
		if grouped { // a server's player's state and input are too large for a message of states
			require.ErrorIs(t, at, ErrGroup)
			require.ErrorContains(t, at, host.GUID().String())
			require.NotContains(t, at.Error(), mine.GUID().String()+" ")
			require.NotZero(t, ends[1].group.Counters.States, "of the other one")
		}
	}
}

// crate has as large a state and as large inputs as there may be.
type crate struct {
	actorrep.Base
	All [32]float64 `predict:""`
}

type load struct{ All [32]float64 }

func (c *crate) Simulate(in load, dt time.Duration) { c.All[0]++ }

// TestRegisterRefuses: what can't be predicted is refused by Register, and says why.
func TestRegisterRefuses(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	refused := func(err, is error, text string) {
		t.Helper()
		require.ErrorIs(t, err, is)
		require.ErrorContains(t, err, text)
	}
	_, err := Register(w, "Any", Config[Mover[aim], aim]{})
	refused(err, ErrClass, "no pointer to a struct")
	_, err = Register(w, "Plain", Config[*plainActor, aim]{})
	refused(err, ErrClass, "no field with a predict tag")
	_, err = Register(w, "Bad", Config[*badTag, aim]{})
	refused(err, ErrClass, "")
	_, err = Register(w, "Many", Config[*manyNumbers, aim]{})
	refused(err, ErrClass, "over 32 numbers")
	_, err = Register(w, "Input", Config[*heavy[badInput], badInput]{})
	refused(err, ErrClass, "input predict.badInput")
	_, err = Register(w, "Gun", Config[*gun, aim]{MaxForced: 3*time.Second + 1})
	refused(err, ErrConfig, "MaxForced")
	_, err = Register(w, "Gun", Config[*gun, aim]{MaxForced: -1})
	refused(err, ErrConfig, "MaxForced")
	_, err = Register(w, "Gun", Config[*gun, aim]{Smoothing: prediction.SmootherConfig{Time: -1}})
	refused(err, ErrConfig, "")
	_, err = Register(w, "Gun", Config[*gun, aim]{MaxForced: 3 * time.Second})
	require.NoError(t, err)
	_, err = Register(w, "Gun", Config[*gun, aim]{})
	require.Error(t, err, "it is registered")
	c, err := Register(w, "Four", Config[*fourSmooth, aim]{})
	require.NoError(t, err)
	require.Equal(t, [3]int{0, 1, 2}, c.smooth, "the first three")
}

type plainActor struct {
	actorrep.Base
	X float64
}

func (*plainActor) Simulate(aim, time.Duration) {}

type badTag struct {
	actorrep.Base
	X float64 `predict:"0"`
	Y float64 `net:"q=nothing"`
}

func (*badTag) Simulate(aim, time.Duration) {}

type badInput struct {
	X float64 `net:"q=nothing"`
}

type manyNumbers struct {
	actorrep.Base
	A [20]int8 `predict:""`
	B [13]int8 `predict:""`
}

func (*manyNumbers) Simulate(aim, time.Duration) {}

type fourSmooth struct {
	actorrep.Base
	At [4]float64 `predict:"0,smooth"`
}

func (*fourSmooth) Simulate(aim, time.Duration) {}

// TestTolerances: numbers are compared exactly without a tolerance, else in tolerances, angles the short way round however often they went round; those beyond have their names told.
func TestTolerances(t *testing.T) {
	p, err := stateOf(reflect.TypeFor[struct {
		Exact float64 `predict:""`
		Near  float64 `predict:"0.5"`
		Yaw   float64 `net:"rot=16,skipowner" predict:"2"`
	}]())
	require.NoError(t, err)
	zero := math.Copysign(0, -1)
	for _, c := range []struct {
		a, b [3]float64
		most float64
		off  string
	}{
		{[3]float64{}, [3]float64{}, 0, ""},
		{[3]float64{}, [3]float64{0, zero, zero}, 0, ""},
		{[3]float64{}, [3]float64{zero, 0, 0}, math.Inf(1), "Exact"},
		{[3]float64{}, [3]float64{1e-300, 0, 0}, math.Inf(1), "Exact"},
		{[3]float64{}, [3]float64{0, 0.5, 2}, 1, ""},
		{[3]float64{}, [3]float64{0, 1, 0}, 2, "Near"},
		{[3]float64{}, [3]float64{0, 0, 356}, 2, "Yaw"},
		{[3]float64{}, [3]float64{0, 0, 722}, 1, ""},
		{[3]float64{0, 0, -361}, [3]float64{0, 0.25, 361}, 1, ""},
		{[3]float64{}, [3]float64{0, 1, 180}, 90, "Near Yaw"},
		{[3]float64{}, [3]float64{0, math.NaN(), 0}, math.Inf(1), "Near"},
	} {
		var a, b snapshot
		for i := range c.a {
			a[i], b[i] = math.Float64bits(c.a[i]), math.Float64bits(c.b[i])
		}
		require.Equal(t, c.most, p.distance(&a, &b), "%v %v", c.a, c.b)
		require.Equal(t, c.most, p.distance(&b, &a), "%v %v", c.b, c.a)
		require.Equal(t, c.off, strings.Join(p.off(nil, a[:], b[:], 1), " "))
	}
	require.Equal(t, []string{"Near"}, p.off(nil, []uint64{0, math.Float64bits(0.01), 0}, make([]uint64, 3), 0), "any difference")

	// A state that isn't finite is refused, and a claim that a tolerance can't count is far from the honest ones.
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		s := snapshot{0, math.Float64bits(bad)}
		w := bitio.NewWriter(make([]byte, 100))
		p.writeState(w, &s)
		r := bitio.NewReader(w.Bytes(), w.Len())
		p.readState(r, &s)
		require.ErrorIs(t, r.Err(), bitio.ErrFormat)
	}
	for _, large := range []float64{math.NaN(), math.Inf(1), 1e300, -1e300} {
		s := snapshot{0, math.Float64bits(large)}
		w := bitio.NewWriter(make([]byte, 100))
		p.writeClaim(w, &s)
		p.readClaim(bitio.NewReader(w.Bytes(), w.Len()), &s)
		require.Equal(t, float64(mostSteps)/4, math.Float64frombits(s[1]))
	}
}

// TestKeys: a key has its possession and its tick, and is answered when the server has simulated that tick, or when its possession isn't there any more.
func TestKeys(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	p := client.pawns[0]
	for _, c := range []struct {
		class *Class[*gun, aim]
		actor *gun
		at    time.Duration
	}{{client, mine, first(p.client.Simulating())}, {server, g, server.pawns[0].server.Simulating()}} {
		for n := range 16 {
			k, _ := c.class.Key(c.actor, n)
			require.Equal(t, p.number, k.possession())
			require.Equal(t, c.at, k.at())
			require.EqualValues(t, n, k&15)
		}
		k, _ := c.class.Key(c.actor, 16)
		require.Zero(t, k)
	}
	key := func(number uint8, at time.Duration) Key {
		return Key(uint64(number)<<56 | uint64(at/time.Microsecond)<<4)
	}
	acked := p.client.Acked()
	require.Positive(t, acked)
	require.True(t, client.answered(key(p.number, acked)))
	require.True(t, client.answered(key(p.number, acked-p.step)))
	require.False(t, client.answered(key(p.number, acked+p.step)))
	require.True(t, client.answered(key(p.number+1, acked+p.step)), "of another possession")
	p.gone = true
	require.True(t, client.answered(key(p.number, acked+p.step)), "it has ended")
	require.True(t, server.answered(key(p.number, acked+p.step)), "a server answers nobody")
}

func first(at time.Duration, _ bool) time.Duration { return at }

// TestSpawnsLetGo: what a Spawns doesn't hold any more isn't kept from the garbage collector.
func TestSpawnsLetGo(t *testing.T) {
	_, _, client, _, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	var denied []int
	s := NewSpawns(client, time.Second, func(_ Key, fake *int) { denied = append(denied, *fake) })
	for i := range 3 {
		require.NoError(t, s.Add(Key(i+1)<<56|1, &i))
	}
	s.Tick(0)
	s.Tick(time.Second)
	require.Equal(t, []int{0, 1, 2}, denied)
	require.Equal(t, make([]waitingSpawn[*int], 3), s.waiting[:3])
}
