package actorrep_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Procedures of travellers, by what they do when a queue is full.
var (
	latest = actorrep.ClientRPC(func(_ actorrep.Call, w *walker, n uint32) error {
		w.ran = append(w.ran, n)
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.Coalesce))
	youngest = actorrep.ClientRPC(func(_ actorrep.Call, w *walker, n uint32) error {
		w.ran = append(w.ran, n)
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
	wait = actorrep.ServerRPC(func(_ actorrep.Call, w *walker, n uint32) error {
		w.ran = append(w.ran, n)
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
)

func registerTraveller(w *actorrep.World) error {
	return w.Register("Walker", (*walker)(nil), actorrep.RPCs{"Ask": request, "Tell": inform, "Latest": latest, "Newest": youngest, "Wait": wait})
}

// route is three servers, and a client with a world for each.
type route struct {
	t     *testing.T
	rigs  [3]*rig.Rig
	lines [3]*rig.Line
}

func newRoute(t *testing.T) *route {
	s := &route{t: t}
	for i := range s.rigs {
		s.rigs[i] = rig.New(t, uint64(1+i), netsim.Settings{Lag: 30 * time.Millisecond}, actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 3}, Failed: func(error) {}}, registerTraveller)
		s.lines[i] = s.rigs[i].JoinOther(registerTraveller)
	}
	return s
}

func (s *route) step() {
	for _, r := range s.rigs {
		r.Step()
	}
}

// spawn adds a walker of the client's at a server, under an id; 0 is a new one.
func (s *route) spawn(i int, id netguid.GUID) *walker {
	a := &walker{}
	if id == 0 {
		require.NoError(s.t, s.rigs[i].Server.Spawn(a))
	} else {
		require.NoError(s.t, s.rigs[i].Server.SpawnAs(a, nil, id))
	}
	a.SetOwner(s.lines[i].Peer)
	return a
}

// at is the client's walker in a world.
func (s *route) at(i int) (a *walker) {
	s.rigs[i].Await("the walker", s.step, func() bool {
		for o := range s.lines[i].World.All {
			a = o.(*walker)
		}
		return a != nil
	})
	return a
}

// carriedState is what Depart appends, without calls.
func carriedState(stay, before, ran uint64) (b []byte) {
	for _, n := range []uint64{stay, before, ran, 0} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// TestTakenBack: the server that a player has left says, without having it back, that its calls go on there, when the player is sent to it again: calls go
// on in one world, whatever it says, and a call returns.
func TestTakenBack(t *testing.T) {
	for _, stay := range []uint64{0, 1, math.MaxUint32 - 1} {
		s := newRoute(t)
		a := s.spawn(0, 0)
		mine := s.at(0)
		b := s.spawn(1, a.GUID())
		s.lines[1].World.Follow(s.lines[0].World)
		other := s.at(1)
		require.NoError(t, request.Call(mine, 1))
		require.NoError(t, s.rigs[1].Server.Arrive(b, carriedState(0, 0, 0)))
		s.rigs[1].Await("the call", s.step, func() bool { return len(b.ran) > 0 })
		s.lines[0].World.Follow(s.lines[1].World)
		require.NoError(t, s.rigs[0].Server.Arrive(a, carriedState(stay, 0, 0)))
		for range 30 {
			s.step()
		}
		require.NoError(t, request.Call(mine, 2))
		require.NoError(t, request.Call(other, 3))
		for range 30 {
			s.step()
		}
		took := a.ran
		if len(b.ran) > 1 {
			took = b.ran
		}
		require.Equal(t, []uint32{2, 3}, took[len(took)-2:])
		require.True(t, len(a.ran) == 1 || len(b.ran) == 1, "%v %v", a.ran, b.ran)
	}
}

// TestCalledOffAndBack: a travel on is called off, and the player goes back to where it came from, while the world of the travel on is still there. Its actors are
// called, and nothing hangs.
func TestCalledOffAndBack(t *testing.T) {
	s := newRoute(t)
	a, b := s.spawn(0, 0), s.spawn(1, 0)
	w := [3]*actorrep.World{s.lines[0].World, s.lines[1].World, s.lines[2].World}
	at, there := s.at(0), s.at(1)
	require.NoError(t, request.Call(at, 1))
	require.NoError(t, request.Call(there, 1))
	for range 10 {
		s.step()
	}
	w[1].Follow(w[0])
	w[2].Follow(w[1])
	w[0].Follow(w[1])
	c := s.spawn(2, 0)
	require.NoError(t, request.Call(s.at(2), 1))
	s.rigs[2].Await("the call", s.step, func() bool { return len(c.ran) == 1 })
	require.Len(t, a.ran, 1)
	require.Len(t, b.ran, 1)
}

// TestArrivedKeepTheirNumbers: what a full queue does with calls that are made after Arrive leaves those alone that came with the actor, and what says how
// many there are: each that the client hadn't had runs once, and none that it had.
func TestArrivedKeepTheirNumbers(t *testing.T) {
	for name, rpc := range map[string]*actorrep.RPC[*walker, uint32]{"Coalesce": latest, "DropOldest": youngest} {
		t.Run(name, func(t *testing.T) {
			s := newRoute(t)
			a := s.spawn(0, 0)
			mine := s.at(0)
			for range 10 {
				s.step()
			}
			for n := range uint32(40) {
				require.NoError(t, rpc.Call(a, 1+n))
				s.rigs[0].Server.Step(s.rigs[0].Now)
			}
			carried, err := s.rigs[0].Server.Depart(a, nil) // the client hasn't acked them
			require.NoError(t, err)
			for range 20 {
				s.step()
			}
			require.Len(t, mine.ran, 40) // but has had them
			b := s.spawn(1, a.GUID())
			s.lines[1].World.Follow(s.lines[0].World)
			require.NoError(t, s.rigs[1].Server.Arrive(b, carried))
			var want []uint32
			for n := uint32(101); n <= 130; n++ { // more than a queue takes, with those
				require.NoError(t, rpc.Call(b, n))
				want = append(want, n)
			}
			other := s.at(1)
			for range 60 {
				s.step()
			}
			require.Equal(t, want, other.ran)
		})
	}
}

// TestDepartedStaysAwake: a dormant actor that is being given to another server sleeps when Stay has been called: calls of its client are held until then, and again by the next Depart.
func TestDepartedStaysAwake(t *testing.T) {
	s := newRoute(t)
	a := s.spawn(0, 0)
	mine := s.at(0)
	for range 10 {
		s.step()
	}
	w := s.rigs[0].Server
	for n := range uint32(3) {
		_, err := w.Depart(a, nil)
		require.NoError(t, err)
		require.NoError(t, a.SetDormant(true))
		for range 20 {
			s.step()
		}
		require.NoError(t, request.Call(mine, 1+n))
		for range 20 {
			s.step()
		}
		require.Len(t, a.ran, int(n))
		w.Stay(a)
		require.Len(t, a.ran, int(n)+1)
		require.NoError(t, a.SetDormant(false))
		for range 20 {
			s.step()
		}
	}
}

// TestStayOfAFormerOwner: an actor that has got another owner since Depart isn't given away to the former one for ever.
func TestStayOfAFormerOwner(t *testing.T) {
	s := newRoute(t)
	a := s.spawn(0, 0)
	a.SetAlwaysRelevant(true)
	s.at(0)
	w := s.rigs[0].Server
	_, err := w.Depart(a, nil)
	require.NoError(t, err)
	a.SetOwner(nil)
	w.Stay(a)
	a.SetOwner(s.lines[0].Peer)
	require.NoError(t, inform.Call(a, 1))
}

// TestArriveRefusesWrap: the number of servers that an actor has come to doesn't wrap.
func TestArriveRefusesWrap(t *testing.T) {
	s := newRoute(t)
	a := s.spawn(0, 0)
	s.at(0)
	for _, stay := range []uint64{math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
		require.Error(t, s.rigs[0].Server.Arrive(a, carriedState(stay, 0, 0)))
	}
	for range 20 {
		s.step()
	}
	require.Empty(t, s.lines[0].Failed)
}

// TestArrivedBeforeNewOnes: what the next server's game calls before Arrive comes behind what was under way.
func TestArrivedBeforeNewOnes(t *testing.T) {
	s := newRoute(t)
	a := s.spawn(0, 0)
	s.at(0)
	for n := range uint32(3) {
		require.NoError(t, inform.Call(a, 1+n))
	}
	carried, err := s.rigs[0].Server.Depart(a, nil)
	require.NoError(t, err)
	b := s.spawn(1, a.GUID())
	s.lines[1].World.Follow(s.lines[0].World)
	require.NoError(t, inform.Call(b, 4))
	require.NoError(t, s.rigs[1].Server.Arrive(b, carried))
	require.NoError(t, inform.Call(b, 5))
	for range 30 {
		s.rigs[1].Step() // and no packet of the first server comes any more
	}
	require.Equal(t, []uint32{1, 2, 3, 4, 5}, s.at(1).ran)
}

// TestCallsFollow: a client's calls that haven't left it, as its channel is full, and those that it makes in the next world before the server there has spoken of
// them, run at the next server, in order.
func TestCallsFollow(t *testing.T) {
	s := newRoute(t)
	r := s.rigs[0]
	r.ReliableBuffer = 4
	s.lines[0] = r.JoinOther(registerTraveller)
	a := s.spawn(0, 0)
	at := s.at(0)
	for range 10 {
		s.step()
	}
	b := s.spawn(1, a.GUID())
	next := s.at(1)
	s.lines[1].World.Follow(s.lines[0].World)
	var err error
	s.lines[0].Up, err = netsim.NewLink(netsim.Settings{Loss: 100}, 1)
	require.NoError(t, err)
	var want []uint32
	for n := range uint32(30) {
		require.NoError(t, wait.Call(at, n))
		r.Step() // each has a packet of its own
		want = append(want, n)
	}
	carried, err := r.Server.Depart(a, nil)
	require.NoError(t, err)
	for n := range uint32(10) {
		require.NoError(t, wait.Call(next, 30+n))
		want = append(want, 30+n)
	}
	for range 10 {
		s.step()
	}
	require.Empty(t, b.ran)
	require.NoError(t, s.rigs[1].Server.Arrive(b, carried))
	for range 60 {
		s.step()
	}
	require.Empty(t, a.ran)
	require.Equal(t, want, b.ran)
}
