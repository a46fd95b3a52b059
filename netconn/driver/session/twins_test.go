package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTwoOfOneIdentity: two machines that dial with the same identity don't take each other's place for ever: who was replaced hears why, also where packets get lost and overtake
// each other, and gives up.
func TestTwoOfOneIdentity(t *testing.T) {
	for _, loss := range []float64{0, 10, 40} {
		for seed := range uint64(10) {
			r := newRig(t, seed, netsim.Settings{Loss: loss, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, func(r *rig) { r.ids = map[string]uint64{"Bob": 1} })
			r.world.RunUntil(60 * time.Second)
			require.Nil(t, r.world.Failure())
			here, away := r.players.Len()
			require.Equal(t, []int{1, 0}, []int{here, away})
			one, other := r.clients["Ann"].Err(), r.clients["Bob"].Err()
			require.True(t, (one == nil) != (other == nil), "loss %v, seed %d: %v, %v", loss, seed, one, other)
			require.ErrorIs(t, errors.Join(one, other), driver.ErrReplaced)
			require.LessOrEqual(t, len(r.told), 7, "loss %v, seed %d: %v", loss, seed, r.told)
		}
	}
}

// TestLateJoin: a connection that joins after a later one of the same player, as its Join was late, is closed, and the player keeps the later one.
func TestLateJoin(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	r.world.RunUntil(3 * time.Second)
	var conns []*driver.Conn
	for _, c := range r.players.All {
		conns = append(conns, c)
	}
	require.Len(t, conns, 2)
	early, late := conns[0], conns[1]
	if late.ID() < early.ID() {
		early, late = late, early
	}
	players, err := session.NewPlayers(session.Config[*player]{ID: func(*driver.Conn) string { return "one" }, New: func(*driver.Conn) *player { return &player{} }})
	require.NoError(t, err)
	players.Joined(late)
	players.Joined(early)
	_, ok := players.Of(early)
	require.False(t, ok)
	_, ok = players.Of(late)
	require.True(t, ok)
	require.True(t, early.Closing())
	require.False(t, late.Closing())
	r.world.RunUntil(10 * time.Second)
	require.Nil(t, r.world.Failure())
	one, other := r.clients["Ann"].Err(), r.clients["Bob"].Err()
	require.ErrorIs(t, errors.Join(one, other), driver.ErrReplaced)
	require.True(t, one == nil || other == nil)
}

// TestPlayersWithoutIdentity: players that can't come back are among all, in the order in which they came.
func TestPlayersWithoutIdentity(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.config.ID = func(*driver.Conn) string { return "" } })
	r.world.RunUntil(3 * time.Second)
	require.Len(t, r.told, 2)
	for range 20 { // a map has another order each time
		var all []string
		for p, c := range r.players.All {
			require.NotNil(t, c)
			all = append(all, "new "+p.name)
		}
		require.Equal(t, r.told, all)
	}
	require.NoError(t, r.clients["Ann"].Close())
	r.world.RunUntil(5 * time.Second)
	require.Equal(t, []string{"new", "gone"}, r.of("Ann"))
}
