package predict_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// here is a client's end of a courier.
func (s *town) here(world int, of *courier) *courier {
	c, _ := s.lines[world].World.Find(of.GUID()).(*courier)
	return c
}

// travel takes a courier from server 0 to server 1.
func (s *town) travel(a *courier) (b *courier) {
	s.clients[1].Follow(s.clients[0])
	state, err := s.servers[0].Depart(a, nil)
	require.NoError(s.t, err)
	b = &courier{}
	require.NoError(s.t, s.rigs[1].Server.SpawnAs(b, nil, a.GUID()))
	require.NoError(s.t, s.servers[1].Arrive(b, s.lines[1].Peer, state, s.rigs[1].Now))
	return b
}

// TestOneOfTwoTravels: of the actors of a player that which travels is played at the next server, and the other one is played on where it is.
func TestOneOfTwoTravels(t *testing.T) {
	for goes := range 2 {
		s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
		all := []*courier{s.begin(), {X: -9}}
		require.NoError(t, s.rigs[0].Server.Spawn(all[1]))
		require.NoError(t, s.servers[0].Possess(all[1], s.lines[0].Peer, s.rigs[0].Now))
		for range 60 {
			s.step()
		}
		a, stays := all[goes], all[1-goes]
		b := s.travel(a)
		for range 60 {
			s.step()
			require.True(t, s.clients[0].Predicting(s.here(0, stays)))
		}
		require.True(t, s.clients[1].Predicting(s.here(1, b)))
		require.False(t, s.clients[0].Predicting(s.here(0, a)))
		require.InDelta(t, b.X, s.here(1, b).X, 1.5, "a round trip behind")
		require.InDelta(t, stays.X, s.here(0, stays).X, 1.5)
		require.Greater(t, b.Sum, uint32(1000))
	}
}

// TestPossessedAnewAfterTravel: what the next server does after a travel counts alone, while the former one hasn't destroyed the actor yet.
func TestPossessedAnewAfterTravel(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
	b := s.travel(s.begin())
	for range 60 {
		s.step()
	}
	for n := range 3 {
		b.X = 100 * float64(n+1)
		require.NoError(t, s.servers[1].Possess(b, s.lines[1].Peer, s.rigs[1].Now))
		before, missed := s.clients[1].Counters().Hitches, s.servers[1].Counters().Server.Missed
		for i := range 60 {
			s.step()
			if i > 10 {
				require.True(t, s.clients[1].Predicting(s.here(1, b)))
				require.InDelta(t, b.X, s.here(1, b).X, 1.5, "a round trip behind")
			}
		}
		require.Equal(t, before, s.clients[1].Counters().Hitches)
		require.LessOrEqual(t, s.servers[1].Counters().Server.Missed, missed+6)
	}
}

// TestTravelsOnALongPath: a player whose path is so long that the next server hears of many ticks from before the travel sees no jump, and no input is lost.
func TestTravelsOnALongPath(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{Lag: 300 * time.Millisecond})
	a := s.begin()
	b := s.travel(a)
	for range 150 {
		_, jumped := s.look()
		require.False(t, jumped)
	}
	require.Zero(t, s.gaps())
	require.Greater(t, b.Sum, uint32(1000))
}

// TestFollowOfItself: a class that is to follow itself follows nobody.
func TestFollowOfItself(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{})
	for i := range s.clients {
		s.clients[i].Follow(s.clients[i])
	}
	a := s.begin()
	require.True(t, s.clients[0].Predicting(s.here(0, a)))
	require.InDelta(t, a.X, s.here(0, a).X, 1)
	require.NoError(t, s.servers[0].Possess(a, s.lines[0].Peer, s.rigs[0].Now))
	for range 60 {
		s.step()
	}
	require.True(t, s.clients[0].Predicting(s.here(0, a)))
}

// TestArriveElsewhere: the state of an actor that goes on with the server's own player is taken; a group takes none, nor does anybody one with a byte too many.
func TestArriveElsewhere(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{})
	a := s.begin()
	state, err := s.servers[0].Depart(a, nil)
	require.NoError(t, err)

	n, head := binary.Uvarint(state)
	longer := binary.AppendUvarint(nil, n+1)
	longer = append(append(longer, state[head:head+int(n)]...), 0)
	longer = append(longer, state[head+int(n):]...)
	b := &courier{}
	require.NoError(t, s.rigs[1].Server.Spawn(b))
	require.ErrorIs(t, s.servers[1].Arrive(b, s.lines[1].Peer, longer, s.rigs[1].Now), predict.ErrState)
	require.Nil(t, b.Owner())

	w := actorrep.NewServer(actorrep.Config{})
	var input step
	host, err := predict.Register(w, "Courier", predict.Config[*courier, step]{Input: func(*courier) step { input.N++; return input }})
	require.NoError(t, err)
	c := &courier{}
	require.NoError(t, w.Spawn(c))
	require.NoError(t, host.Arrive(c, w.Local(), state, time.Second))
	require.Equal(t, a.X, c.X)
	require.Equal(t, a.Sum, c.Sum)
	require.Equal(t, w.Local(), c.Owner())
	for i := range 30 {
		require.NoError(t, host.Tick(time.Second+time.Duration(i)*20*time.Millisecond))
	}
	require.Greater(t, c.Last, uint32(20))

	g, err := predict.NewGroup(w, predict.GroupConfig{})
	require.NoError(t, err)
	grouped, err := predict.Register(w, "Grouped", predict.Config[*skater, keys]{Group: g, Input: func(*skater) keys { return keys{} }})
	require.NoError(t, err)
	m := &skater{}
	require.NoError(t, w.Spawn(m))
	require.ErrorIs(t, grouped.Arrive(m, w.Local(), state, time.Second), predict.ErrGrouped)
	require.Nil(t, m.Owner())
	_, err = grouped.Depart(m, nil)
	require.ErrorIs(t, err, predict.ErrGrouped)
}

// runs is the errands that servers have run.
var runs []uint32

var errand = actorrep.ServerRPC(func(_ actorrep.Call, _ *courier, n uint32) error {
	runs = append(runs, n)
	return nil
}, actorrep.Reliable)

// TestErrandsWaitForStay: the reliable calls of an actor that was to depart wait, and run when it stays.
func TestErrandsWaitForStay(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{}, actorrep.RPCs{"Errand": errand})
	runs = nil
	a := s.begin()
	_, err := s.servers[0].Depart(a, nil)
	require.NoError(t, err)
	for n := range uint32(3) {
		require.NoError(t, errand.Call(s.here(0, a), n))
		s.step()
	}
	s.step()
	require.Empty(t, runs)
	s.servers[0].Stay(a)
	s.step()
	require.Equal(t, []uint32{0, 1, 2}, runs)
}

// TestErrandsTravel: a courier's reliable calls go along when its client's class follows, each runs once, and none waits when the class follows nobody any more.
func TestErrandsTravel(t *testing.T) {
	for _, follows := range []bool{true, false} {
		s := newTown(t, 1, netsim.Settings{Lag: 100 * time.Millisecond}, actorrep.RPCs{"Errand": errand})
		runs = nil
		a := s.begin()
		mine := s.here(0, a)
		if follows {
			for n := range uint32(5) { // they arrive at a server that doesn't run them any more
				require.NoError(t, errand.Call(mine, n))
			}
			b := s.travel(a)
			for range 100 {
				s.step()
			}
			require.Equal(t, []uint32{0, 1, 2, 3, 4}, runs)
			require.NoError(t, errand.Call(s.here(1, b), 5))
			for range 20 {
				s.step()
			}
			require.Equal(t, []uint32{0, 1, 2, 3, 4, 5}, runs)
			continue
		}
		s.clients[1].Follow(s.clients[0])
		s.clients[1].Follow(nil)
		b := &courier{}
		require.NoError(t, s.rigs[1].Server.SpawnAs(b, nil, a.GUID()))
		require.NoError(t, s.servers[1].Possess(b, s.lines[1].Peer, s.rigs[1].Now))
		for range 30 {
			s.step()
		}
		require.NoError(t, errand.Call(s.here(1, b), 7))
		for range 20 {
			s.step()
		}
		require.Equal(t, []uint32{7}, runs)
	}
}
