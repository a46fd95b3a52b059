package actorrep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/budgettest"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func TestExplain(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{LagMin: 50 * time.Millisecond, LagMax: 50 * time.Millisecond}, actorrep.Config{}, registerHeroes)
	l := w.join()
	l.Peer.SetViewpoint(0, 0, 0)
	h := &hero{}
	says := func(reason actorrep.Reason, text string, field ...string) {
		t.Helper()
		e := w.Server.Explain(l.Peer, h, field...)
		require.Equal(t, reason, e.Reason, e.Text)
		require.Contains(t, e.Text, text)
	}
	says(actorrep.ReasonNotSpawned, "not spawned")
	require.NoError(t, w.Server.Spawn(h))
	says(actorrep.ReasonNoSchema, "classes")
	for range 8 {
		w.Step()
	}
	says(actorrep.ReasonOpening, "acked")
	for range 30 {
		w.Step()
	}
	says(actorrep.ReasonUpToDate, "up to date")
	says(actorrep.ReasonCondition, "condition", "Secret")
	says(actorrep.ReasonNone, "no replicated field", "Nonsense")
	elsewhere := &hero{Pos: vec3{1000, 0, 0}}
	require.NoError(t, w.Server.Spawn(elsewhere))
	h.Friend = elsewhere.GUID()
	for range 30 {
		w.Step()
	}
	says(actorrep.ReasonUnmapped, elsewhere.GUID().String(), "Friend")
	h.Friend = 0
	for range 30 {
		w.Step()
	}
	require.NoError(t, h.SetCondition("Switched", false))
	says(actorrep.ReasonInactive, "switched off", "Switched")
	h.Pos.Y = 3
	w.Step()
	says(actorrep.ReasonInFlight, "in flight")
	says(actorrep.ReasonInFlight, "Pos", "Pos")
	says(actorrep.ReasonUpToDate, "", "Title")
	require.NoError(t, h.SetDormant(true))
	for range 30 {
		w.Step()
	}
	says(actorrep.ReasonDormant, "dormant for")
	require.Less(t, w.Server.Explain(l.Peer, h).Dormant, time.Second)
	require.Greater(t, w.Server.Explain(l.Peer, h).Dormant, time.Second/2)
	require.NoError(t, h.SetDormant(false))
	h.Pos.X = 142
	for range 60 {
		w.Step()
	}
	says(actorrep.ReasonLeaving, "goes in")
	for range 300 {
		w.Step()
	}
	says(actorrep.ReasonIrrelevant, "out of range by 42")
	h.SetOnlyOwner(true)
	says(actorrep.ReasonIrrelevant, "only its owner")
	part := &part{}
	require.NoError(t, w.Server.SpawnIn(h, part))
	require.Contains(t, w.Server.Explain(l.Peer, part).Text, "parent")
	require.NoError(t, h.TearOff())
	says(actorrep.ReasonTornOff, "torn off")
}

// TestStarved: with too little bandwidth everyone gets a turn, the important more often, and Explain knows who waits.
func TestStarved(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, registerHeroes)
	w.Speed = 6000 // bytes a second
	l := w.join()
	var all []*hero
	for i := range 100 {
		h := &hero{}
		h.Title.Set(fmt.Sprint(i))
		require.NoError(t, w.Server.Spawn(h))
		all = append(all, h)
	}
	all[7].SetPriority(10)
	for range 200 {
		w.Step()
	}
	require.Equal(t, 100, l.World.Len())
	seen := make([]int, 100)
	last := make([]vec3, 100)
	starved := 0
	for i := range 600 {
		for j, h := range all {
			h.Pos = vec3{float32(i*(j%7+1)) * 1.37, float32(i*i%9973) + float32(j), float32(i % 13)} // no line to foresee
		}
		w.Step()
		if w.Server.Explain(l.Peer, all[50]).Reason == actorrep.ReasonStarved {
			starved++
		}
		for j, h := range all {
			if m := l.World.Find(h.GUID()).(*hero); m.Pos != last[j] {
				last[j] = m.Pos
				seen[j]++
			}
		}
	}
	low := 600
	for j, n := range seen {
		if j != 7 {
			low = min(low, n)
		}
	}
	require.Greater(t, low, 10, "nobody starves: %v", seen)
	require.Greater(t, seen[7], 3*low, "priority 10")
	require.Greater(t, starved, 100)
	require.NotZero(t, w.Server.Counters.Saturated)
}

// TestAttribution: the rows add up to what the socket sent, and name what it went for.
func TestAttribution(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 10}, actorrep.Config{}, registerSoldier)
	l := w.join()
	s := &soldier{}
	s.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(s))
	for range 60 {
		w.Step()
	}
	mine := l.World.Find(s.GUID()).(*soldier)
	for range 3 {
		require.NoError(t, slow.Call(mine, struct{}{}))
	}
	for range 60 {
		w.Step()
	}
	s.SetOwner(nil) // of which the client doesn't know yet
	require.NoError(t, wave.Call(mine, 1))
	for range 60 {
		w.Step()
	}
	s.SetOwner(l.Peer)
	for i := range 300 {
		s.Aim = int32(i)
		if i%10 == 0 {
			_ = boom.Call(s, 1)
			_ = tell.Call(s, "some text")
		}
		w.Step()
	}
	total := l.S.Stats().Packets.BytesSent
	require.NotZero(t, total)
	sum, rows := uint64(0), map[string]uint64{}
	for _, c := range l.Peer.Attribution(total) {
		switch c.Name {
		case "Tell()":
			require.EqualValues(t, 30, c.Sent, "a reliable call is written once by us")
		case "Slow()":
			require.EqualValues(t, []uint64{0, 3, 0}, []uint64{c.Sent, c.Received, c.Refused})
		case "Wave()":
			require.EqualValues(t, []uint64{0, 1, 1}, []uint64{c.Sent, c.Received, c.Refused}, "the actor was its own no more")
		}
		sum += c.Bits
		rows[c.Class+"."+c.Name] += c.Bits
	}
	require.Equal(t, total*8, sum)
	require.Greater(t, rows["soldier.Aim"], uint64(300*8))
	require.Greater(t, rows["soldier.Tell()"], uint64(20*9*8))
	require.NotZero(t, rows["soldier.Boom()"])
	require.Zero(t, rows["soldier.Ammo"])
	require.NotZero(t, rows[".schema"])
	require.Less(t, rows[".schema"], total)
	require.NotZero(t, rows[".record heads"])

	var f fakeTB
	budgettest.Assert(&f, l.Peer, "soldier", "Ammo", 0)
	budgettest.Assert(&f, l.Peer, "soldier", "", 1<<30)
	require.Empty(t, f.errs)
	budgettest.Assert(&f, l.Peer, "soldier", "Aim", 100)
	budgettest.Assert(&f, l.Peer, "soldier", "Nothing", 1<<30)
	budgettest.Assert(&f, l.Peer, "Soldier", "", 1<<30)
	require.Len(t, f.errs, 3)
	require.Contains(t, f.errs[1], "but ")
	require.Contains(t, f.errs[1], "Aim, ")
	require.Contains(t, f.errs[2], "soldier")
}

type fakeTB struct{ errs []string }

func (*fakeTB) Helper() {}
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errs = append(f.errs, fmt.Sprintf(format, args...))
}

// Two builds of a game.
type oldTank struct {
	actorrep.Base
	Pos   [2]float32 `net:"q=0.01"`
	Fuel  uint16     `net:""`
	Crew  []string   `net:""`
	Armor uint8      `net:"max=100"`
}

type newTank struct {
	actorrep.Base
	Turret float32    `net:"rot=16"` // new
	Armor  uint8      `net:"max=100"`
	Pos    [2]float32 `net:"q=0.05"` // in other steps
	Name   string     `net:""`       // new
	// Fuel and Crew are gone
}

type retypedTank struct {
	actorrep.Base
	Pos   [2]float32 `net:"q=0.01"`
	Armor string     `net:""`
}

// builds connects a server and a client with different classes.
func builds(t *testing.T, server, client func(w *actorrep.World) error) (w *world, l *rig.Line, refused *string) {
	refused = new(string)
	w = newWorld(t, 1, netsim.Settings{}, actorrep.Config{SchemaRefused: func(_ *actorrep.Peer, reason string) { *refused = reason }},
		func(t testing.TB, world *actorrep.World) {
			f := client
			if world.IsServer() {
				f = server
			}
			require.NoError(t, f(world))
		})
	return w, w.JoinOther(w.register), refused
}

func registerAs(a actorrep.Actor) func(w *actorrep.World) error {
	return func(w *actorrep.World) error { return w.Register("tank", a) }
}

func TestSchemaEvolves(t *testing.T) {
	w, l, refused := builds(t, registerAs((*oldTank)(nil)), registerAs((*newTank)(nil)))
	s := &oldTank{Fuel: 500, Crew: []string{"a", "b"}, Armor: 40}
	require.NoError(t, w.Server.Spawn(s))
	for i := range 60 {
		s.Pos = [2]float32{float32(i), 1}
		s.Fuel--
		s.Crew[0] = strings.Repeat("x", i)
		w.Step()
	}
	for range 20 {
		w.Step()
	}
	m := l.World.Find(s.GUID()).(*newTank)
	require.InDelta(t, 59, m.Pos[0], 0.01, "in the server's steps")
	require.EqualValues(t, 40, m.Armor)
	require.Zero(t, m.Turret)
	require.Empty(t, m.Name)
	require.Empty(t, *refused)
	require.Empty(t, l.Failed)
}

func TestSchemaRetyped(t *testing.T) {
	w, l, refused := builds(t, registerAs((*oldTank)(nil)), registerAs((*retypedTank)(nil)))
	require.NoError(t, w.Server.Spawn(&oldTank{Armor: 3}))
	for range 60 {
		w.Step()
	}
	require.Zero(t, l.World.Len(), "a class that doesn't fit isn't shown")
	require.Len(t, l.Failed, 1)
	for _, said := range []string{*refused, l.Failed[0].Error()} {
		require.Contains(t, said, "tank")
		require.Contains(t, said, "Armor")
		require.NotContains(t, said, "Pos ")
		require.NotContains(t, said, actorrep.ErrNoClass.Error(), "it is registered, and doesn't fit")
	}
	require.False(t, l.S.Closed())
}

// TestProceduresThatAClientLacks: a server is told, when the client joins, of the procedures that it would call there in vain; not of those that
// only the client calls, nor of those with other parameters twice. The client is told of one when it is called.
func TestProceduresThatAClientLacks(t *testing.T) {
	none := func(actorrep.Call, *oldTank, uint8) error { return nil }
	hurt, boom, odd := actorrep.ClientRPC(none, actorrep.Reliable), actorrep.MulticastRPC(none), actorrep.MulticastRPC(none)
	other := actorrep.MulticastRPC(func(actorrep.Call, *oldTank, string) error { return nil })
	server := func(w *actorrep.World) error {
		return w.Register("tank", (*oldTank)(nil), actorrep.RPCs{"Hurt": hurt, "Boom": boom, "Odd": odd,
			"Fire": actorrep.ServerRPC(none), "Look": actorrep.ServerRPC(none, actorrep.AnyClient)})
	}
	w, l, refused := builds(t, server, func(w *actorrep.World) error {
		return w.Register("tank", (*oldTank)(nil), actorrep.RPCs{"Odd": other})
	})
	a := &oldTank{}
	require.NoError(t, w.Server.Spawn(a))
	for range 20 {
		w.Step()
	}
	require.Contains(t, *refused, "class tank: the client has no procedure Hurt")
	require.Contains(t, *refused, "class tank: the client has no procedure Boom")
	require.Contains(t, *refused, "procedure Odd has another kind or other parameters")
	for _, name := range []string{"Fire", "Look", "no procedure Odd"} {
		require.NotContains(t, *refused, name)
	}
	require.Len(t, l.Failed, 1)
	require.ErrorIs(t, l.Failed[0], actorrep.ErrSchema)
	require.NoError(t, boom.Call(a, 1))
	for range 20 {
		w.Step()
	}
	require.Len(t, l.Failed, 2)
	require.ErrorIs(t, l.Failed[1], actorrep.ErrNoProcedure)
}

type wideTank struct {
	actorrep.Base
	Fuel uint32    `net:""`
	Seen int64     `net:""`
	Load [6]uint32 `net:""` // a group
}

type narrowTank struct {
	actorrep.Base
	Fuel uint16    `net:""`
	Seen int8      `net:""`
	Load [6]uint16 `net:""`
}

// TestNarrowFields: a number that the client's smaller field can't have becomes the nearest one that it can, and the client is told, each time one comes; what fits is
// told to nobody.
func TestNarrowFields(t *testing.T) {
	w, l, _ := builds(t, registerAs((*wideTank)(nil)), registerAs((*narrowTank)(nil)))
	s := &wideTank{Fuel: 65535, Seen: -128}
	require.NoError(t, w.Server.Spawn(s))
	for range 30 {
		w.Step()
	}
	m := l.World.Find(s.GUID()).(*narrowTank)
	for i, c := range []struct {
		fuel uint32
		seen int64
		told int // in all
	}{{65536, -128, 1}, {65535, 127, 1}, {1 << 31, 127, 2}, {7, 128, 3}, {8, -129, 4}, {1 << 20, 1 << 40, 6}} {
		require.Equal(t, [2]int64{int64(min(s.Fuel, 65535)), min(max(s.Seen, -128), 127)}, [2]int64{int64(m.Fuel), int64(m.Seen)})
		s.Fuel, s.Seen = c.fuel, c.seen
		for range 10 {
			w.Step()
		}
		require.Equal(t, [2]int64{int64(min(c.fuel, 65535)), min(max(c.seen, -128), 127)}, [2]int64{int64(m.Fuel), int64(m.Seen)}, i)
		require.Len(t, l.Failed, c.told, i)
		require.EqualValues(t, c.told, l.World.Counters.Unfit, i)
	}
	s.Load = [6]uint32{1, 2, 1 << 16, 4, 5, 65535}
	for range 10 {
		w.Step()
	}
	require.Equal(t, [6]uint16{1, 2, 65535, 4, 5, 65535}, m.Load)
	require.Len(t, l.Failed, 7)
	require.ErrorIs(t, l.Failed[6], actorrep.ErrClamped)
	require.ErrorContains(t, l.Failed[6], "Load[2]")
	for i, field := range []string{"Fuel", "Fuel", "Seen"} {
		require.ErrorIs(t, l.Failed[i], actorrep.ErrClamped)
		require.Contains(t, l.Failed[i].Error(), field)
	}
}

// TestForgottenChannelTypes: a client whose connection doesn't know the channels of actors never becomes ready, and both ends
// are told what to do.
func TestForgottenChannelTypes(t *testing.T) {
	var told []error
	w := newWorld(t, 1, netsim.Settings{Loss: 10}, actorrep.Config{Failed: func(err error) { told = append(told, err) }})
	w.Forgetful = true
	l := w.JoinOther(w.register)
	a := &rock{Size: 1}
	require.NoError(t, w.Server.Spawn(a))
	for range 800 {
		w.Step()
		require.False(t, l.Peer.Ready())
	}
	require.Len(t, told, 1, "once")
	require.ErrorIs(t, told[0], actorrep.ErrNoAnswer)
	require.Len(t, l.Failed, 1, "once")
	require.ErrorIs(t, l.Failed[0], actorrep.ErrNoChannelTypes)
	e := w.Server.Explain(l.Peer, a)
	require.Equal(t, actorrep.ReasonNoSchema, e.Reason)
	require.Contains(t, e.Text, "ChannelTypes")
}

// TestSilenceIsNoAnswer: the time in which a client isn't heard doesn't count as time without its answer.
func TestSilenceIsNoAnswer(t *testing.T) {
	var told []error
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { told = append(told, err) }})
	w.Forgetful = true
	l := w.JoinOther(w.register)
	for range 7 * 30 {
		w.Step()
	}
	for range 5 * 30 {
		w.Step()
		for _, ok := l.Up.Pop(w.Now); ok; _, ok = l.Up.Pop(w.Now) {
		}
	}
	require.Empty(t, told)
	for range 5 * 30 {
		w.Step()
	}
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], actorrep.ErrNoAnswer)
}

// TestManyBadBunches: a server that sends nothing but what can't be decoded has its client told of a few, and how many more there were.
func TestManyBadBunches(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
	l := w.JoinOther(w.register)
	w.Await("an answer", w.Step, l.Peer.Ready)
	var ch *channel.Channel
	for c := range l.S.Table().All {
		if c.Name() == actorrep.ReplicationName {
			ch = c
		}
	}
	require.NotNil(t, ch)
	for range 30 * 3 {
		for range 10 {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte{255, 255, 255}, Bits: 24, NoMerge: true})
			require.NoError(t, err)
		}
		w.Step()
	}
	bad := l.World.Counters.Bad
	require.Greater(t, bad, uint64(600))
	require.LessOrEqual(t, len(l.Failed), 4*17)
	more := 0
	for _, err := range l.Failed {
		n := 0
		_, _ = fmt.Sscanf(err.Error(), "actorrep: %d more bunches", &n)
		more += n
	}
	require.Greater(t, more, int(bad)/2, "they are counted")
}

// TestAnswerInTheDark: a client whose acks are heard, and then nothing for a long time, so that its answer is lost, isn't told to have no
// channel types.
func TestAnswerInTheDark(t *testing.T) {
	for joined := range 5 {
		for lost := range 4 {
			w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { t.Error(err) }})
			l := w.join()
			for i, up := range []struct{ loss, steps int }{{0, joined}, {100, lost}, {0, 1}, {100, 14 * 30}, {0, 0}} {
				require.NoError(t, l.Up.Set(netsim.Settings{Loss: float64(up.loss)}), i)
				for range up.steps {
					w.Step()
				}
			}
			w.Await("an answer", w.Step, l.Peer.Ready)
		}
	}
}

func TestSchemaUnknownClass(t *testing.T) {
	w, l, refused := builds(t, func(w *actorrep.World) error {
		if err := w.Register("secret", (*newTank)(nil)); err != nil {
			return err
		}
		return w.Register("tank", (*oldTank)(nil))
	}, registerAs((*oldTank)(nil)))
	a, b := &newTank{Name: "?"}, &oldTank{Armor: 9}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, w.Server.Spawn(b))
	for i := range 60 {
		a.Pos[0], b.Pos[0] = float32(i), float32(i)
		w.Step()
	}
	for range 20 {
		w.Step()
	}
	require.Equal(t, 1, l.World.Len())
	require.InDelta(t, 59, l.World.Find(b.GUID()).(*oldTank).Pos[0], 0.01)
	require.Len(t, l.Failed, 1)
	require.ErrorIs(t, l.Failed[0], actorrep.ErrNoClass)
	for _, said := range []string{*refused, l.Failed[0].Error(), w.Server.Explain(l.Peer, a).Text} {
		require.Contains(t, said, "secret")
		require.Contains(t, said, "register")
		require.NotContains(t, said, "tank")
	}
	require.Equal(t, actorrep.ReasonNoClass, w.Server.Explain(l.Peer, a).Reason)
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, b).Reason)
}

// TestHostileClient: a client that sends values, or what isn't a message, is thrown out.
func TestHostileClient(t *testing.T) {
	for _, b := range [][]byte{{0}, {2}, {3}, {1, 200}, {0xff, 0xff, 0xff}} {
		w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, registerSoldier)
		l := w.join()
		require.NoError(t, w.Server.Spawn(&soldier{}))
		for range 60 {
			w.Step()
		}
		var ch *channel.Channel
		for c := range l.C.Table().All {
			if c.Name() != actorrep.ReplicationName {
				ch = c
			}
		}
		require.NotNil(t, ch)
		send(t, ch, b)
		for i := 0; !l.S.Closed() && i < 10; i++ {
			l.C.FlushNet()
			w.Now += tick
			for p, ok := l.Up.Pop(w.Now); ok; p, ok = l.Up.Pop(w.Now) {
				_ = l.S.ReceivedPacket(w.Now, p)
			}
		}
		require.True(t, l.S.Closed(), "%x", b)
		require.Equal(t, netconn.PeerBroke, l.S.Result().Code)
	}
}

func send(t *testing.T, ch *channel.Channel, b []byte) {
	t.Helper()
	_, err := ch.SendBunch(&bunch.Out{Data: b, Reliable: true})
	require.NoError(t, err)
}

// body is embedded, as a game with a hierarchy of classes does.
type body struct {
	actorrep.Base
	HP   actorrep.Var[uint8] `net:"max=100,notify=OnHP"`
	Mana uint16              `net:""`
	hurt int
}

func (b *body) OnHP(old uint8) { b.hurt += int(old) - int(b.HP.Get()) }

type orc struct {
	body
	Rage uint8 `net:""`
}

type twice struct {
	body
	Mana int32 `net:""`
}

// TestEmbedded: the fields of embedded structs are the actor's.
func TestEmbedded(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("orc", (*orc)(nil)))
	})
	l := w.join()
	o := &orc{Rage: 3}
	o.Mana = 70
	o.HP.Set(100)
	require.NoError(t, w.Server.Spawn(o))
	for range 20 {
		w.Step()
	}
	o.HP.Set(60)
	for range 20 {
		w.Step()
	}
	m := l.World.Find(o.GUID()).(*orc)
	require.EqualValues(t, 60, m.HP.Get())
	require.EqualValues(t, 70, m.Mana)
	require.EqualValues(t, 3, m.Rage)
	require.Equal(t, 40, m.hurt)
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("twice", (*twice)(nil)), "one name, two fields")
	require.Equal(t, l.S, l.Peer.Conn())
}

// TestOwnerOfSleeper: a new owner hears of it though the actor sleeps.
func TestOwnerOfSleeper(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, registerSoldier)
	l := w.join()
	s := &soldier{}
	require.NoError(t, w.Server.Spawn(s))
	require.NoError(t, s.SetDormant(true))
	for range 60 {
		w.Step()
	}
	require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, s).Reason)
	s.SetOwner(l.Peer)
	for range 60 {
		w.Step()
	}
	m := l.World.Find(s.GUID()).(*soldier)
	require.True(t, m.IsOwned())
}
