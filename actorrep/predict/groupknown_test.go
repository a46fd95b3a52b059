package predict

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// bead is a member of which all is told exactly. What a tick makes of it depends on all that goes into the tick, and on the order.
type bead struct {
	actorrep.Base
	Sum uint32 `predict:""`
	N   uint8  `predict:""`
	W   int16  `predict:"2"` // which stays as it is
}

type pulse struct{ N uint8 }

func (b *bead) Simulate(in pulse, dt time.Duration) {
	b.Sum = b.Sum*2654435761 + uint32(in.N) + uint32(dt/time.Microsecond)
	b.N += in.N
}

// rub is what happens between beads.
func rub(a, b *bead) { a.Sum, b.Sum = a.Sum+b.Sum>>5+1, b.Sum^a.Sum<<3 }

// fade is what a bead's input becomes when it is repeated.
func fade(last pulse) pulse { return pulse{last.N + 100} }

// beadConfig is for a class of beads; the zero value is fine.
type beadConfig struct {
	group, theirs GroupConfig // theirs is the client's
	input         func(*bead) pulse
	players       int              // actors of the client's player
	touched       func(again bool) // on the client
}

// beads is a server and a client with a group of n.
func beads(t testing.TB, n int, cfg beadConfig) (r *rig.Rig, server, client *Class[*bead, pulse]) {
	if cfg.input == nil {
		cfg.input = func(*bead) pulse { return pulse{} }
	}
	register := func(c **Class[*bead, pulse], group GroupConfig) func(w *actorrep.World) error {
		return func(w *actorrep.World) error {
			var g *Group
			group.Touch = func(members []actorrep.Actor, dt time.Duration) {
				for i, a := range members[1:] {
					rub(members[i].(*bead), a.(*bead))
				}
				if at, again := g.Simulating(); cfg.touched != nil && !w.IsServer() {
					require.Zero(t, at%dt)
					cfg.touched(again)
				}
			}
			var err error
			if g, err = NewGroup(w, group); err != nil {
				return err
			}
			if _, err = Register(w, "Gun", Config[*gun, aim]{}); err != nil { // of no group
				return err
			}
			*c, err = Register(w, "Bead", Config[*bead, pulse]{Group: g, Input: cfg.input, ForceInput: fade})
			return err
		}
	}
	r = rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, register(&server, cfg.group))
	l := r.JoinOther(register(&client, cfg.theirs))
	for i := range n {
		b := &bead{}
		require.NoError(t, r.Server.Spawn(b))
		if i < max(cfg.players, 1) {
			require.NoError(t, server.Possess(b, l.Peer, r.Now))
		} else {
			require.NoError(t, server.Join(b))
		}
	}
	r.Await("all play", func() { beadsFrame(t, r, server, client) }, func() bool {
		return client.group.Len() == n && client.group.newest != 0
	})
	return r, server, client
}

func beadsFrame(t testing.TB, r *rig.Rig, server, client *Class[*bead, pulse]) {
	require.NoError(t, server.group.Tick(r.Now))
	r.Step()
	require.NoError(t, client.group.Tick(r.Now))
}

// tale is what a server says of a bead in a tick.
type tale struct {
	id  netguid.GUID
	sum uint32
	n   uint8
	how how
	in  uint8
	w   int16
}

// write writes it as one of a message of states.
func (s tale) write(k *kind, w *bitio.Writer) {
	part := bitio.NewWriter(make([]byte, 100))
	k.state.writeNumbers(part, []uint64{uint64(s.sum), uint64(s.n), uint64(uint16(s.w))})
	if s.how == driven {
		k.writeInput(part, []uint64{uint64(s.in)})
	}
	w.WriteBool(true)
	w.WriteIntPacked(uint32(s.id))
	w.WriteIntPacked(uint32(part.Len()))
	w.WriteBits(uint64(s.how), howBits)
	w.WriteBitsFrom(part.Bytes(), 0, part.Len())
}

// tell has a client receive states of a tick.
func tell(c *Class[*bead, pulse], tick int64, whole bool, tales ...tale) error {
	p := c.pawns[0]
	m := message[*bead, pulse]{number: p.number}
	w := bitio.NewWriter(m.data[:])
	w.WriteIntPacked64(uint64(tick))
	for _, s := range tales {
		s.write(c.kind, w)
	}
	w.WriteBool(false)
	w.WriteBool(whole)
	if m.bits = w.Len(); w.Err() != nil {
		return w.Err()
	}
	return c.receiveStates(actorrep.Call{}, p.actor, m)
}

// anew has a client's group forget what it has heard of the members and has counted.
func (g *Group) anew() {
	for _, m := range g.members {
		m.restart()
	}
	g.dirty, g.whole, g.Counters = 0, 0, GroupCounters{}
}

// omniscient is a client of beads that is told all states before it begins: it goes through all ticks once, and never back.
type omniscient struct {
	step  time.Duration
	ids   []netguid.GUID
	own   netguid.GUID
	told  map[int64][]tale
	asked map[int64]uint8
}

// knows is what it has of a bead in a tick.
type knows struct {
	tale
	alive bool
}

// run returns what it has in each tick from first to last.
func (o *omniscient) run(first, last int64) map[int64]map[netguid.GUID]knows {
	all := map[int64]map[netguid.GUID]knows{}
	now := map[netguid.GUID]knows{}
	for tick := first; tick <= last; tick++ {
		var live []*bead
		var of []netguid.GUID
		for _, id := range o.ids {
			k := now[id]
			if !k.alive {
				continue
			}
			in := pulse{k.in}
			switch n, asked := o.asked[tick]; {
			case id == o.own && asked:
				in.N, k.how, k.in = n, driven, n
			case k.how == driven:
				in = fade(in)
			}
			b := &bead{Sum: k.sum, N: k.n}
			b.Simulate(in, o.step)
			live, of, now[id] = append(live, b), append(of, id), k
		}
		for i := 1; i < len(live); i++ {
			rub(live[i-1], live[i])
		}
		for i, b := range live {
			k := now[of[i]]
			k.sum, k.n = b.Sum, b.N
			now[of[i]] = k
		}
		for _, s := range o.told[tick] {
			k := now[s.id]
			k.alive, k.id, k.sum, k.n = true, s.id, s.sum, s.n
			if n, asked := o.asked[tick]; s.how != yours {
				k.how, k.in = s.how, s.in
			} else if k.how, k.in = driven, n; !asked {
				k.how = coasting
			}
			now[s.id] = k
		}
		all[tick] = map[netguid.GUID]knows{}
		for id, k := range now {
			all[tick][id] = k
		}
	}
	return all
}

// TestGroupIsAsIfAllHadBeenKnown: whatever states of whatever ticks come late, early, twice, in any order or never, as soon as they are here a client has what one has that
// knew them before: each in its own tick, the inputs after it, its own player's input in the tick in which it was asked for, and Touch in between. It goes back once a frame at most, to the oldest
// tick that was wrong, and for nothing else.
func TestGroupIsAsIfAllHadBeenKnown(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			o := omniscient{told: map[int64][]tale{}, asked: map[int64]uint8{}}
			var g *Group
			watched, replayed, touched := false, uint64(0), uint64(0)
			r, server, client := beads(t, 4, beadConfig{input: func(*bead) pulse {
				n := uint8(rng.Uint32())
				if watched {
					at, again := g.Simulating()
					tick := int64(at / g.step)
					require.False(t, again)
					require.NotContains(t, o.asked, tick, "once for each tick")
					o.asked[tick] = n
				}
				return pulse{n}
			}, touched: func(again bool) {
				if again {
					replayed++
				}
				touched++
			}})
			for range 60 {
				beadsFrame(t, r, server, client)
			}
			g, watched = client.group, true
			g.anew()
			replayed, touched = 0, 0
			o.step, o.own = g.step, client.pawns[0].base.GUID()
			for _, m := range g.members {
				o.ids = append(o.ids, m.id)
			}
			began, oldest, heard := g.newest, g.newest, map[netguid.GUID]int64{}
			before := o.run(began, g.newest)
			for frame := range 60 {
				was, newest, dirty := g.Counters, g.newest, int64(0)
				var states, good uint64
				for range rng.IntN(4) {
					tick := newest - 30 + rng.Int64N(51)
					var tales []tale
					for _, id := range o.ids {
						if rng.IntN(2) == 0 && (tick > newest || heard[id] > newest-20) { // else a client forgets those of which it hears nothing
							continue
						}
						s := tale{id: id, sum: rng.Uint32(), n: uint8(rng.Uint32()), how: coasting}
						predicted := before[tick][id]
						switch rng.IntN(3) {
						case 0:
							s = predicted.tale
							s.id = id
						case 1:
							s.how, s.in = driven, uint8(rng.Uint32())
						}
						if id == o.own {
							s.how, s.in = yours, 0
						}
						tales = append(tales, s)
						states++
						twice := false
						for _, known := range o.told[tick] {
							twice = twice || known.id == id
						}
						if twice {
							continue
						}
						o.told[tick] = append(o.told[tick], s)
						heard[id] = max(heard[id], tick)
						switch same := s.how == yours || s.how == predicted.how && s.in == predicted.in; {
						case tick <= newest && predicted.alive && s.sum == predicted.sum && s.n == predicted.n && same:
							good++
						case tick <= newest && (dirty == 0 || tick < dirty):
							dirty = tick
						}
						oldest = min(oldest, tick)
					}
					require.NoError(t, tell(client, tick, false, tales...))
				}
				r.Now += time.Duration(rng.Int64N(13)) * g.step
				require.NoError(t, g.Tick(r.Now))
				after := o.run(oldest, g.newest)
				for _, m := range g.members {
					want := after[g.newest][m.id]
					require.Equal(t, want.alive, client.Predicting(m.actor.(*bead)))
					if want.alive {
						require.Equal(t, [2]uint32{want.sum, uint32(want.n)}, [2]uint32{m.actor.(*bead).Sum, uint32(m.actor.(*bead).N)}, "frame %d: member %v", frame, m.id)
					}
				}
				require.Equal(t, was.States+states, g.Counters.States)
				require.Equal(t, was.Good+good, g.Counters.Good)
				if dirty == 0 {
					require.Equal(t, was.Rewinds, g.Counters.Rewinds)
				} else {
					var corrected uint64
					for id, k := range after[newest] {
						if b := before[newest][id]; k.alive && b.alive && (k.sum != b.sum || k.n != b.n) {
							corrected++
						}
					}
					require.Equal(t, was.Rewinds+1, g.Counters.Rewinds)
					require.Equal(t, was.Replayed+uint64(newest-dirty), g.Counters.Replayed)
					require.Equal(t, was.Corrected+corrected, g.Counters.Corrected)
				}
				require.Zero(t, g.Counters.Old+g.Counters.Strange+g.Counters.Unknown)
				before = after
			}
			require.Equal(t, g.Counters.Replayed, replayed, "Touch hears that it is again")
			require.LessOrEqual(t, touched, g.Counters.Ticks)
			require.NotZero(t, g.Counters.Good)
			require.Greater(t, g.Counters.Rewinds, uint64(20))
		})
	}
}
