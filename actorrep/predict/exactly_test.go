package predict_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSmallChangesOfTheGame: what the game changes on the server comes to the player also when it is within the tolerance of a claim.
func TestSmallChangesOfTheGame(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, config{Input: func(*runner) keys { return keys{} }})
	server, mine := s.spawn(s.join(), vec{3, -4})
	for range 60 {
		s.step()
	}
	before := s.class.Counters().Server.Corrections
	require.InDelta(t, 90, mine.Yaw, 1e-6)
	server.Yaw += 0.25
	for range 30 {
		s.step()
	}
	require.InDelta(t, 90.25, mine.Yaw, 1e-4)
	after := s.class.Counters().Server.Corrections
	require.Greater(t, after, before)
	require.LessOrEqual(t, after, before+2, "it goes again until it is answered")
	for range 60 {
		s.step()
	}
	require.Equal(t, after, s.class.Counters().Server.Corrections)
}

// TestDepartRefused: a server that can't give an actor away says so and simulates it on.
func TestDepartRefused(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, config{Input: func(*runner) keys { return keys{X: 1} }})
	server, _ := s.spawn(s.join(), vec{-15, 0})
	dst := []byte("before")
	got, err := s.class.Depart(server, dst)
	require.ErrorIs(t, err, actorrep.ErrShare)
	require.Equal(t, dst, got)
	at, moves := server.Pos.X, s.class.Counters().Server.Moves
	for range 30 {
		s.step()
	}
	require.Greater(t, server.Pos.X, at+3)
	require.Greater(t, s.class.Counters().Server.Moves, moves+40)
}

// TestDepartSaysHowEarly: a state has the tick that was simulated last, and how early inputs come.
func TestDepartSaysHowEarly(t *testing.T) {
	s := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
	a := s.begin()
	state, err := s.servers[0].Depart(a, nil)
	require.NoError(t, err)
	n, head := binary.Uvarint(state)
	r := bitio.NewReader(state[head:], 8*int(n))
	r.ReadUint32()
	at, early := time.Duration(r.ReadIntPacked64())*time.Microsecond, time.Duration(r.ReadIntPacked64())*time.Microsecond
	require.InDelta(t, s.rigs[0].Now, at, float64(50*time.Millisecond))
	require.Greater(t, early, time.Millisecond)
	require.Less(t, early, 200*time.Millisecond)
	require.NoError(t, r.Err())
}

// TestHitchesAreCounted: a pause of more than MaxCatchUp ticks is one hitch.
func TestHitchesAreCounted(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, config{Input: func(*runner) keys { return keys{} }})
	l := s.join()
	s.spawn(l, vec{})
	for range 60 {
		s.step()
	}
	client := s.clients[l.World]
	require.Zero(t, client.Counters().Hitches)
	for n := range uint64(3) {
		require.NoError(t, client.Tick(s.Now+time.Duration(n+1)*500*time.Millisecond))
		require.Equal(t, n+1, client.Counters().Hitches)
	}
}

// TestNobodysKeys: what isn't possessed has no keys and no offset, nor has a number out of range a key; a server's end has no offset.
func TestNobodysKeys(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, config{Input: func(*runner) keys { return keys{} }})
	server, mine := s.spawn(s.join(), vec{})
	none := &runner{}
	require.NoError(t, s.Server.Spawn(none))
	for _, c := range []struct {
		r *runner
		n int
	}{{none, 0}, {none, -1}, {server, -1}, {server, 16}, {server, 17}, {server, 1 << 30}} {
		k, again := s.class.Key(c.r, c.n)
		require.Zero(t, k)
		require.False(t, again)
	}
	keys := map[predict.Key]bool{}
	for n := range 16 {
		k, _ := s.class.Key(server, n)
		require.NotZero(t, k)
		keys[k] = true
	}
	require.Len(t, keys, 16)
	require.Zero(t, s.class.Offset(server, s.Now))
	require.Zero(t, s.class.Offset(none, s.Now))
	client := s.clients[s.Lines[0].World]
	require.Zero(t, client.Offset(mine, s.Now))

	var waiting predict.Spawns[int]
	require.NoError(t, waiting.Add(7, 1))
	require.NoError(t, waiting.Add(8, 2))
	for k, want := range map[predict.Key]int{7: 1, 8: 2} {
		got, ok := waiting.Take(k)
		require.True(t, ok)
		require.Equal(t, want, got)
		_, ok = waiting.Take(k)
		require.False(t, ok)
	}
}

// TestOwnerAgainIsNoPossession: a player who gets an actor back right after Unpossess owns it, and doesn't move it before Possess.
func TestOwnerAgainIsNoPossession(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, config{Input: func(*runner) keys { return keys{X: 1} }})
	l := s.join()
	server, _ := s.spawn(l, vec{-15, 0})
	s.class.Unpossess(server)
	server.SetOwner(l.Peer)
	at := server.Pos.X
	for range 60 {
		s.step()
	}
	require.Equal(t, at, server.Pos.X)
	require.NoError(t, s.class.Possess(server, l.Peer, s.Now))
	for range 60 {
		s.step()
	}
	require.Greater(t, server.Pos.X, at+3)
}

// TestPutElsewhereIsSmooth: a player's actor that the game puts elsewhere is drawn where it was, in each coordinate that is marked smooth.
func TestPutElsewhereIsSmooth(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, config{Input: func(*runner) keys { return keys{} }})
	l := s.join()
	server, mine := s.spawn(l, vec{3, -4})
	for range 30 {
		s.step()
	}
	server.Pos = vec{4, -6}
	s.until("corrected", func() bool { return mine.Pos == server.Pos })
	at := s.clients[l.World].Offset(mine, s.Now)
	require.InDelta(t, -1, at[0], 0.3)
	require.InDelta(t, 2, at[1], 0.6)
	require.Zero(t, at[2])
}
