package predict

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// puck is a member; Exact is told as it is in memory.
type puck struct {
	actorrep.Base
	X, V  float64 `predict:"0.001,smooth"`
	Exact float64 `predict:""`
	Tilt  float32 `predict:"1000000"`
}

func (p *puck) Simulate(in aim, dt time.Duration) {
	p.V += in.X * dt.Seconds()
	p.X += p.V * dt.Seconds()
	if p.X > 10 || p.X < -10 {
		p.V = -p.V
	}
	p.Exact = in.Look
}

// pucks is a server and a client with a group of n, the first of which is the client's player's.
func pucks(t testing.TB, n int, input func(*puck) aim) (r *rig.Rig, server, client *Class[*puck, aim]) {
	register := func(c **Class[*puck, aim]) func(w *actorrep.World) error {
		return func(w *actorrep.World) error {
			g, err := NewGroup(w, GroupConfig{Touch: func(members []actorrep.Actor, dt time.Duration) {
				for i, a := range members { // each with each
					a := a.(*puck)
					for _, b := range members[i+1:] {
						b := b.(*puck)
						if d := b.X - a.X; d < 0.01 && d > -0.01 && (b.V-a.V)*d < 0 {
							a.V, b.V = b.V, a.V
						}
					}
				}
			}})
			if err != nil {
				return err
			}
			*c, err = Register(w, "Puck", Config[*puck, aim]{Group: g, Input: input})
			return err
		}
	}
	r = rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, register(&server))
	l := r.JoinOther(register(&client))
	for i := range n {
		p := &puck{X: float64(i%20) - 10, V: float64(i%7) - 3}
		require.NoError(t, r.Server.Spawn(p))
		if i == 0 {
			require.NoError(t, server.Possess(p, l.Peer, r.Now))
		} else {
			require.NoError(t, server.Join(p))
		}
	}
	for range 600 {
		if client.group.Len() == n {
			return r, server, client
		}
		pucksFrame(t, r, server, client)
	}
	t.Fatal("they don't come")
	return r, server, client
}

func pucksFrame(t testing.TB, r *rig.Rig, server, client *Class[*puck, aim]) {
	if err := server.group.Tick(r.Now); err != nil {
		t.Fatal(err)
	}
	r.Step()
	if err := client.group.Tick(r.Now); err != nil {
		t.Fatal(err)
	}
}

// states is a message of states of a client's members.
func states(w *bitio.Writer, tick uint64, whole bool, members []*member, set func(m *member, s []uint64), how how, in aim) {
	w.WriteIntPacked64(tick)
	for _, m := range members {
		var s [maxNumbers]uint64
		m.kind.state.loadTo(m.at, s[:])
		set(m, s[:])
		part := bitio.NewWriter(make([]byte, 300))
		m.kind.state.writeNumbers(part, s[:])
		if how == driven {
			m.kind.writeInput(part, []uint64{math.Float64bits(in.X), math.Float64bits(in.Look)})
		}
		w.WriteBool(true)
		w.WriteIntPacked(uint32(m.id))
		w.WriteIntPacked(uint32(part.Len()))
		w.WriteBits(uint64(how), howBits)
		w.WriteBitsFrom(part.Bytes(), 0, part.Len())
	}
	w.WriteBool(false)
	w.WriteBool(whole)
}

// TestGroupHostileStates: a server's states that aren't finite, of ticks that can't be, of actors that aren't there, and of any bits, are refused whole or
// change what an honest server could: members stay finite, and no more than MaxMembers.
func TestGroupHostileStates(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	r, server, client := pucks(t, 5, func(*puck) aim { return aim{X: 1} })
	g, own := client.group, client.pawns[0]
	nan, inf := math.Float64bits(math.NaN()), math.Float64bits(math.Inf(-1))
	send := func(f func(w *bitio.Writer)) error {
		m := message[*puck, aim]{number: own.number}
		w := bitio.NewWriter(m.data[:])
		f(w)
		m.bits = w.Len()
		return client.receiveStates(actorrep.Call{}, own.actor, m)
	}
	same := func(*member, []uint64) {}
	tick := uint64(g.newest)
	require.Zero(t, g.dirty)
	for m := range g.members[1].past { // it's known with the zero input
		g.members[1].past[m].how = driven
	}
	require.NoError(t, send(func(w *bitio.Writer) { states(w, tick-1, false, nil, same, driven, aim{}) }))
	require.Zero(t, g.dirty, "nothing is told")
	require.NoError(t, send(func(w *bitio.Writer) { states(w, tick, false, g.members[1:2], same, driven, aim{X: 1e-9}) }))
	require.EqualValues(t, tick, g.dirty, "another input is news, whatever it has done yet")
	g.dirty = 0
	require.NoError(t, send(func(w *bitio.Writer) { states(w, tick, true, g.members, same, coasting, aim{}) }))
	for name, f := range map[string]func(w *bitio.Writer){
		"NaN": func(w *bitio.Writer) {
			states(w, tick, true, g.members, func(_ *member, s []uint64) { s[2] = nan }, coasting, aim{})
		},
		"infinite": func(w *bitio.Writer) {
			states(w, tick, true, g.members, func(_ *member, s []uint64) { s[2] = inf }, coasting, aim{})
		},
		"too large": func(w *bitio.Writer) {
			w.WriteIntPacked64(tick)
			w.WriteBool(true)
			w.WriteIntPacked(uint32(g.members[0].id))
			part := bitio.NewWriter(make([]byte, 100))
			part.WriteIntPacked64(0)
			part.WriteIntPacked64(0)
			part.WriteBits(0, 64)
			part.WriteIntPacked64(math.MaxUint64) // half a million times that isn't a float32
			w.WriteIntPacked(uint32(part.Len()))
			w.WriteBits(uint64(coasting), howBits)
			w.WriteBitsFrom(part.Bytes(), 0, part.Len())
			w.WriteBool(false)
			w.WriteBool(true)
		},
		"input":       func(w *bitio.Writer) { states(w, tick, true, g.members, same, driven, aim{X: math.NaN()}) },
		"how":         func(w *bitio.Writer) { states(w, tick, true, g.members, same, yours+1, aim{}) },
		"tick 0":      func(w *bitio.Writer) { states(w, 0, true, g.members, same, coasting, aim{}) },
		"tick of all": func(w *bitio.Writer) { states(w, math.MaxUint64, true, g.members, same, coasting, aim{}) },
		"cut": func(w *bitio.Writer) {
			states(w, tick, true, g.members, same, coasting, aim{})
			w.Truncate(w.Len() - 9)
		},
	} {
		counters, dirty, strange := g.Counters, g.dirty, client.Counters().Strange
		if name == "too large" {
			if err := send(f); err == nil { // it may be finite: 2^63 quarter millions are 1e24
				continue
			}
		} else {
			require.ErrorIs(t, send(f), ErrStates, name)
		}
		require.Equal(t, counters, g.Counters, name)
		require.Equal(t, dirty, g.dirty, name)
		require.Equal(t, strange+1, client.Counters().Strange, name)
		require.Equal(t, 5, g.Len())
	}
	require.NoError(t, send(func(w *bitio.Writer) { states(w, tick+1000, true, g.members, same, coasting, aim{}) }))
	require.EqualValues(t, 1, g.Counters.Strange)
	require.NoError(t, send(func(w *bitio.Writer) { // an actor that isn't there
		w.WriteIntPacked64(tick)
		w.WriteBool(true)
		w.WriteIntPacked(123456)
		w.WriteIntPacked(7)
		w.WriteBits(0, howBits+7)
		w.WriteBool(false)
		w.WriteBool(false)
	}))

	for i := range 5000 {
		_ = send(func(w *bitio.Writer) {
			if i%3 == 0 {
				for range 1 + rng.IntN(40) {
					w.WriteUint64(rng.Uint64())
				}
				return
			}
			states(w, uint64(int64(tick)+rng.Int64N(200)-100), rng.IntN(2) == 0, g.members[:rng.IntN(len(g.members)+1)], func(_ *member, s []uint64) {
				for j := range 4 {
					if rng.IntN(4) == 0 {
						s[j] = rng.Uint64()
					}
				}
				s[3] &= math.MaxUint32
			}, uint8(rng.IntN(4)), aim{X: rng.NormFloat64() * 1e300, Look: math.Float64frombits(rng.Uint64())})
		})
		if i%10 == 0 {
			pucksFrame(t, r, server, client)
			tick = uint64(g.newest)
		}
		require.LessOrEqual(t, g.Len(), 5)
		require.LessOrEqual(t, len(g.members), 5)
	}
	for a := range own.actor.World().All { // and it heals
		*a.(*puck) = puck{Base: a.(*puck).Base, X: a.(*puck).X}
	}
}

// tellMember has a client hear that a member is at a place in a tick, at rest, without an input.
func tellMember(t *testing.T, client *Class[*puck, aim], of *member, tick int64, x float64) {
	own := client.pawns[0]
	msg := message[*puck, aim]{number: own.number}
	w := bitio.NewWriter(msg.data[:])
	states(w, uint64(tick), false, []*member{of}, func(_ *member, s []uint64) {
		s[0], s[1] = math.Float64bits(x), 0
	}, coasting, aim{})
	msg.bits = w.Len()
	require.NoError(t, client.receiveStates(actorrep.Call{}, own.actor, msg))
}

// TestGroupStatesOfSeveralTicks: of states of several ticks that come between two frames of a client each holds from its own tick on, in whatever order
// they come, and one rewind takes them all.
func TestGroupStatesOfSeveralTicks(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		r, server, client := pucks(t, 3, func(*puck) aim { return aim{} })
		for range 60 {
			pucksFrame(t, r, server, client)
		}
		g := client.group
		other := g.members[1]
		newest := g.newest
		require.Zero(t, g.dirty)
		told := []struct {
			tick int64
			x    float64
		}{{newest - 8, 2}, {newest - 5, 4}, {newest - 2, 6}}
		for _, i := range order {
			tellMember(t, client, other, told[i].tick, told[i].x)
		}
		rewinds := g.Counters.Rewinds
		g.rewind(r.Now)
		require.Equal(t, rewinds+1, g.Counters.Rewinds)
		require.Equal(t, 6.0, other.actor.(*puck).X, "order %v", order)
		for i, want := range map[int64]float64{8: 2, 7: 2, 6: 2, 5: 4, 4: 4, 3: 4, 2: 6, 1: 6, 0: 6} {
			e := other.moment(newest - i)
			require.Equal(t, newest-i, e.tick)
			require.Equal(t, want, math.Float64frombits(e.state[0]), "order %v: %d ticks ago", order, i)
		}
	}
}

// TestGroupStatesOfTicksToCome: a state of a tick that this end hasn't simulated yet, as its path has just become shorter, is taken in that tick, without a rewind.
func TestGroupStatesOfTicksToCome(t *testing.T) {
	r, server, client := pucks(t, 3, func(*puck) aim { return aim{} })
	for range 60 {
		pucksFrame(t, r, server, client)
	}
	g := client.group
	other := g.members[1]
	tick := g.newest + 3
	tellMember(t, client, other, tick, 6)
	require.Zero(t, g.dirty)
	before := g.Counters
	for g.newest < tick {
		require.NotEqual(t, 6.0, other.actor.(*puck).X)
		require.NoError(t, g.play(r.Now))
		r.Now += g.step / 2
	}
	require.Equal(t, 6.0, math.Float64frombits(other.moment(tick).state[0]))
	require.NoError(t, g.play(r.Now))
	require.Equal(t, before.Rewinds, g.Counters.Rewinds)
}

// FuzzStates: a client's reader of states meets any message.
func FuzzStates(f *testing.F) {
	r, server, client := pucks(f, 3, func(*puck) aim { return aim{X: 1} })
	m := message[*puck, aim]{}
	w := bitio.NewWriter(m.data[:])
	states(w, uint64(client.group.newest), true, client.group.members, func(*member, []uint64) {}, driven, aim{X: 1})
	f.Add(w.Bytes(), uint16(w.Len()))
	f.Add(make([]byte, 40), uint16(320))
	f.Fuzz(func(t *testing.T, data []byte, bits uint16) {
		own := client.pawns[0]
		m := message[*puck, aim]{number: own.number, bits: min(int(bits), 8*len(data), 8*maxMessage)}
		copy(m.data[:], data)
		_ = client.receiveStates(actorrep.Call{}, own.actor, m)
		pucksFrame(t, r, server, client)
		require.LessOrEqual(t, client.group.Len(), 3)
	})
}

// TestGroupAllocs: frames with rewinds and states of all members allocate nothing at either end.
func TestGroupAllocs(t *testing.T) {
	n := 0.0
	r, server, client := pucks(t, 20, func(*puck) aim { n++; return aim{math.Sin(n), math.Floor(n / 30)} })
	frame := func() {
		for i := range client.group.members[3].past { // it was predicted otherwise than the next states say
			client.group.members[3].past[i].state[0] = math.Float64bits(99)
		}
		pucksFrame(t, r, server, client)
	}
	for range 300 {
		frame()
	}
	before := client.group.Counters
	require.Zero(t, testing.AllocsPerRun(200, frame))
	after := client.group.Counters
	require.Greater(t, after.Rewinds, before.Rewinds+100)
	require.Greater(t, after.States, before.States+2000)
}

// BenchmarkGroupRewind is a rewind of 100 members by 12 ticks, each of which compares each member with each.
func BenchmarkGroupRewind(b *testing.B) {
	_, _, client := pucks(b, 100, func(*puck) aim { return aim{X: 1} })
	g := client.group
	for range 20 {
		g.newest++
		g.gather()
		g.advance(g.newest, false, 0, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.dirty = g.newest - 12
		g.rewind(0)
	}
	b.ReportMetric(float64(g.Counters.Replayed)/float64(g.Counters.Rewinds), "ticks/op")
}

// twin is a member whose place others get replicated.
type twin struct {
	actorrep.Base
	X float64 `net:"simulated" predict:"0.001"`
	V float64 `predict:"0.001"`
}

func (w *twin) Simulate(in aim, dt time.Duration) { w.X += dt.Seconds() }

// twins registers the class in a group of its own.
func twins(c **Class[*twin, aim]) func(w *actorrep.World) error {
	return func(w *actorrep.World) error {
		g, err := NewGroup(w, GroupConfig{})
		if err != nil {
			return err
		}
		*c, err = Register(w, "Twin", Config[*twin, aim]{Group: g, Input: func(*twin) aim { return aim{} }})
		return err
	}
}

// TestGroupValuesBeforeTheRole: values that a player gets since an actor is his no more may come before the word of that: then they are shown when that comes, and
// until then the prediction is.
func TestGroupValuesBeforeTheRole(t *testing.T) {
	var server, client *Class[*twin, aim]
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, twins(&server))
	l := r.Join(twins(&client))
	a := &twin{}
	require.NoError(t, r.Server.Spawn(a))
	require.NoError(t, server.Possess(a, l.Peer, r.Now))
	for range 60 {
		require.NoError(t, server.group.Tick(r.Now))
		r.Step()
		require.NoError(t, client.group.Tick(r.Now))
	}
	m := client.group.members[0]
	mine := m.actor.(*twin)
	require.True(t, m.own && m.alive)
	shown := mine.X
	require.Greater(t, shown, 1.0)
	client.group.beforeValues(mine)
	require.NotEqual(t, shown, mine.X)
	mine.X = 77 // a record
	client.group.values(mine)
	require.Equal(t, shown, mine.X)
	v := mine.V
	client.group.end(m)
	require.Equal(t, 77.0, mine.X)
	require.Equal(t, v, mine.V, "what isn't replicated stays")
	require.True(t, m.gone())
}
