package predict_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// taken is the inputs that a server has simulated, by their numbers.
var taken []uint32

// courier counts its inputs. Each has a number of its own.
type courier struct {
	actorrep.Base
	X    float64 `net:"q=0.01,simulated" predict:"0.001,smooth"`
	Sum  uint32  `predict:""`
	Last uint32  `predict:""`
}

type step struct {
	N   uint32 `net:""`
	Dir int8   `net:""`
}

func (c *courier) Simulate(in step, dt time.Duration) {
	c.X += 5 * float64(in.Dir) * dt.Seconds()
	c.Sum += in.N
	c.Last = in.N
	if c.World().IsServer() && in.N > 0 {
		taken = append(taken, in.N)
	}
}

// town is two servers, each with its clock, and a client with a world for each.
type town struct {
	t       *testing.T
	rigs    [2]*rig.Rig
	servers [2]*predict.Class[*courier, step]
	clients [2]*predict.Class[*courier, step]
	lines   [2]*rig.Line
	frame   int
	input   step
	drawn   float64
}

func newTown(t *testing.T, seed uint64, set netsim.Settings, options ...actorrep.ClassOption) *town {
	s := &town{t: t}
	taken = nil
	for i := range s.rigs {
		var err error
		s.rigs[i] = rig.New(t, seed+uint64(i), set, actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}}, func(w *actorrep.World) error {
			s.servers[i], err = predict.Register(w, "Courier", predict.Config[*courier, step]{}, options...)
			return err
		})
		s.rigs[i].Now += time.Duration(i) * (77*time.Hour + 5*time.Millisecond) // another clock
		s.lines[i] = s.rigs[i].Join(func(w *actorrep.World) error {
			s.clients[i], err = predict.Register(w, "Courier", predict.Config[*courier, step]{Input: func(*courier) step {
				s.input.N++
				return s.input
			}}, options...)
			return err
		})
	}
	return s
}

func (s *town) step() {
	s.frame++
	s.input.Dir = int8(s.frame/25%3 - 1)
	for i, r := range s.rigs {
		require.NoError(s.t, s.servers[i].Tick(r.Now))
		r.Step()
		require.NoError(s.t, s.clients[i].Tick(r.Now))
	}
}

// shown is the player's own courier in the world where it is predicted, and where it is drawn.
func (s *town) shown() (world int, at float64) {
	for i := range s.rigs {
		for a := range s.lines[i].World.All {
			if c, ok := a.(*courier); ok && s.clients[i].Predicting(c) {
				world, at = i, c.X+s.clients[i].Offset(c, s.rigs[i].Now)[0]
			}
		}
	}
	return world, at
}

// look steps, and reports whether what the player sees of its own courier jumped by more than three ticks' way.
func (s *town) look() (world int, jumped bool) {
	s.step()
	world, x := s.shown()
	jumped = math.Abs(x-s.drawn) > 5*0.05+0.04
	if jumped {
		s.t.Logf("frame %d: from %v to %v", s.frame, s.drawn, x)
	}
	s.drawn = x
	return world, jumped
}

// begin has the player's courier at the first server, for a while.
func (s *town) begin() (a *courier) {
	a = &courier{X: 3}
	require.NoError(s.t, s.rigs[0].Server.Spawn(a))
	require.NoError(s.t, s.servers[0].Possess(a, s.lines[0].Peer, s.rigs[0].Now))
	for range 150 {
		s.step()
	}
	taken = taken[:0]
	_, s.drawn = s.shown()
	return a
}

// gaps is how often a server simulated another input than the one after the last.
func (s *town) gaps() (n int) {
	for i := 1; i < len(taken); i++ {
		if taken[i]-taken[i-1] != 1 {
			n++
		}
	}
	return n
}

// TestCarried: a player's actor goes from server to server and back with its inputs under way. Each input is simulated once, in order, with loss too as well as without
// travels, and the player sees no jump.
func TestCarried(t *testing.T) {
	play := func(seed uint64, net netsim.Settings, travels bool) (gaps int) {
		s := newTown(t, seed, net)
		a, at := s.begin(), 0
		for round := range 6 {
			next := 1 - at
			var state []byte
			var err error
			if travels {
				s.clients[next].Follow(s.clients[at])
				state, err = s.servers[at].Depart(a, nil)
				require.NoError(t, err)
				require.Less(t, len(state), 64)
			}
			for range round { // the state is under way
				_, jumped := s.look()
				require.False(t, jumped)
			}
			b := &courier{}
			if travels {
				require.NoError(t, s.rigs[next].Server.SpawnAs(b, nil, a.GUID()))
				require.NoError(t, s.servers[next].Arrive(b, s.lines[next].Peer, state, s.rigs[next].Now))
			}
			for i := range 60 {
				world, jumped := s.look()
				require.False(t, jumped)
				if travels && i > 30 {
					require.Equal(t, next, world, "round %d", round)
				}
			}
			if travels {
				require.NoError(t, s.rigs[at].Server.Destroy(a))
				a, at = b, next
			}
		}
		require.True(t, slices.IsSorted(taken))
		require.Greater(t, len(taken), 600)
		return s.gaps()
	}
	for _, net := range []netsim.Settings{{}, {Lag: 100 * time.Millisecond}, {Lag: 50 * time.Millisecond, Loss: 2}} {
		travels, none := 0, 0
		for seed := range uint64(3) {
			travels += play(10*seed+1, net, true)
			if net.Loss > 0 {
				none += play(10*seed+1, net, false)
			}
		}
		t.Logf("lag %v, loss %v: %d gaps with 18 travels, %d without", net.Lag, net.Loss, travels, none)
		require.LessOrEqual(t, travels, none)
		if net.Loss == 0 {
			require.Zero(t, travels)
		}
	}
}

// TestStay: who doesn't go after all loses no input either.
func TestStay(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
	a := s.begin()
	for range 3 {
		_, err := s.servers[0].Depart(a, nil)
		require.NoError(t, err)
		at := a.X
		for range 8 {
			_, jumped := s.look()
			require.False(t, jumped)
			require.Equal(t, at, a.X, "nobody simulates it")
		}
		s.servers[0].Stay(a)
		for range 40 {
			_, jumped := s.look()
			require.False(t, jumped)
		}
	}
	require.Zero(t, s.gaps())
	require.Zero(t, s.servers[0].Counters().Server.Missed)
}

// TestCarriedInTheDark: a player whose path to the next server is dark when it arrives plays there when there is light.
func TestCarriedInTheDark(t *testing.T) {
	for _, dark := range []int{10, 40, 300} {
		s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
		a := s.begin()
		s.clients[1].Follow(s.clients[0])
		state, err := s.servers[0].Depart(a, nil)
		require.NoError(t, err)
		b := &courier{}
		require.NoError(t, s.rigs[1].Server.SpawnAs(b, nil, a.GUID()))
		require.NoError(t, s.servers[1].Arrive(b, s.lines[1].Peer, state, s.rigs[1].Now))
		up, down := s.lines[1].Up, s.lines[1].Down
		s.lines[1].Up, s.lines[1].Down = s.lost(), s.lost()
		for range dark {
			s.step()
		}
		s.lines[1].Up, s.lines[1].Down = up, down
		for range 200 {
			s.step()
		}
		world, _ := s.shown()
		require.Equal(t, 1, world)
		missed := s.servers[1].Counters().Server.Missed
		for range 100 {
			s.step()
		}
		require.Equal(t, missed, s.servers[1].Counters().Server.Missed, "dark for %d frames", dark)
		require.NoError(t, s.rigs[0].Server.Destroy(a))
	}
}

// lost is a link that loses everything.
func (s *town) lost() *netsim.Link {
	l, err := netsim.NewLink(netsim.Settings{Loss: 100}, 1)
	require.NoError(s.t, err)
	return l
}

// TestCarriedAnew: a server that gives the player the actor without the state of the other is believed, and the prediction in the other world ends.
func TestCarriedAnew(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
	a := s.begin()
	s.clients[1].Follow(s.clients[0])
	b := &courier{X: -50}
	require.NoError(t, s.rigs[1].Server.SpawnAs(b, nil, a.GUID()))
	require.NoError(t, s.servers[1].Possess(b, s.lines[1].Peer, s.rigs[1].Now))
	for range 100 {
		s.step()
	}
	world, at := s.shown()
	require.Equal(t, 1, world)
	require.InDelta(t, b.X, at, 2)
	for c := range s.lines[0].World.All {
		require.False(t, s.clients[0].Predicting(c.(*courier)))
	}
}

// TestDepartHasChanges: what the game has changed since the last tick goes with the actor.
func TestDepartHasChanges(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{})
	a := s.begin()
	a.X, a.Last = 40, 12345
	state, err := s.servers[0].Depart(a, nil)
	require.NoError(t, err)
	b := &courier{}
	require.NoError(t, s.rigs[1].Server.SpawnAs(b, nil, a.GUID()))
	require.NoError(t, s.servers[1].Arrive(b, s.lines[1].Peer, state, s.rigs[1].Now))
	require.Equal(t, 40.0, b.X)
	require.EqualValues(t, 12345, b.Last)
}

// TestArriveMalformed: what isn't a state of the class is an error, and nobody possesses the actor then.
func TestArriveMalformed(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{})
	a := s.begin()
	_, err := s.servers[1].Depart(&courier{}, nil)
	require.ErrorIs(t, err, predict.ErrNoPlayer)
	state, err := s.servers[0].Depart(a, []byte("what the game has"))
	require.NoError(t, err)
	require.Equal(t, "what the game has", string(state[:17]))
	state = state[17:]
	b := &courier{}
	require.NoError(t, s.rigs[1].Server.Spawn(b))
	arrive := func(state []byte) error { return s.servers[1].Arrive(b, s.lines[1].Peer, state, s.rigs[1].Now) }
	for n := range state {
		require.ErrorIs(t, arrive(state[:n]), predict.ErrState, "%d bytes", n)
	}
	require.ErrorIs(t, arrive(append(slices.Clone(state), 0)), predict.ErrState)
	for i := range 4 { // the class
		other := slices.Clone(state)
		other[i] ^= 1
		require.ErrorIs(t, arrive(other), predict.ErrState)
	}
	require.Nil(t, b.Owner())
	require.ErrorIs(t, s.servers[1].Arrive(b, nil, state, s.rigs[1].Now), predict.ErrNoPlayer)
	rand := s.rigs[0].Rand
	for range 200 { // times; of the state any number can be
		other := slices.Clone(state)
		other[4+rand.IntN(8)] ^= 1 << rand.IntN(8)
		if arrive(other) == nil {
			s.step()
		}
	}
	require.NoError(t, arrive(state))
}

// TestFollowKeepsNoOldClass: a client that travels on and on keeps the worlds of the last servers, and not those before.
func TestFollowKeepsNoOldClass(t *testing.T) {
	var last *predict.Class[*courier, step]
	for range 50 {
		c, err := predict.Register(actorrep.NewClient(actorrep.Config{}), "Courier", predict.Config[*courier, step]{})
		require.NoError(t, err)
		c.Follow(last)
		last = c
	}
	require.LessOrEqual(t, last.Followed(), 2)
}

// filler is a courier's reliable call.
var filler = actorrep.ClientRPC(func(actorrep.Call, *courier, uint32) error { return nil }, actorrep.Reliable)

// TestPossessedWhileFull: the first state of a possession waits until there is room among the actor's reliable calls, and Tick returns no error meanwhile.
func TestPossessedWhileFull(t *testing.T) {
	var server, client *predict.Class[*courier, step]
	r := rig.New(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, actorrep.Config{}, func(w *actorrep.World) (err error) {
		server, err = predict.Register(w, "Courier", predict.Config[*courier, step]{}, actorrep.RPCs{"Fill": filler})
		return err
	})
	l := r.Join(func(w *actorrep.World) (err error) {
		client, err = predict.Register(w, "Courier", predict.Config[*courier, step]{Input: func(*courier) step { return step{N: 1} }}, actorrep.RPCs{"Fill": filler})
		return err
	})
	a := &courier{}
	require.NoError(t, r.Server.Spawn(a))
	a.SetOwner(l.Peer)
	for n := uint32(0); ; n++ {
		if err := filler.Call(a, n); err != nil {
			require.ErrorIs(t, err, actorrep.ErrFull)
			break
		}
	}
	require.NoError(t, server.Possess(a, l.Peer, r.Now))
	for range 100 {
		require.NoError(t, server.Tick(r.Now))
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	for c := range l.World.All {
		require.True(t, client.Predicting(c.(*courier)))
	}
}

// TestDepartAndStay: an actor whose player doesn't go after all is simulated on, with each of the inputs that came meanwhile that isn't too late.
func TestDepartAndStay(t *testing.T) {
	s := newTown(t, 3, netsim.Settings{Lag: 30 * time.Millisecond})
	a := s.begin()
	_, err := s.servers[0].Depart(a, nil)
	require.NoError(t, err)
	s.step()
	s.step()
	before := len(taken)
	require.Zero(t, before)
	s.servers[0].Stay(a)
	s.servers[0].Stay(&courier{}) // nobody's
	for range 30 {
		s.step()
	}
	require.Greater(t, len(taken), 50)
	for i := 1; i < len(taken); i++ {
		require.LessOrEqual(t, taken[i], taken[i-1]+1)
	}
	require.NotContains(t, s.servers[0].Explain(a), "Depart was called")
	_, err = s.servers[0].Depart(a, nil)
	require.NoError(t, err, "another time")
}
