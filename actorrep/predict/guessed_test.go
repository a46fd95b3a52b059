package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestGuessedPossession: moves of a client that guesses a possession's number, before the server's first Tick of it, are of the game's time, whatever clock the game has.
func TestGuessedPossession(t *testing.T) {
	for _, apart := range []time.Duration{50 * time.Hour, 0, -50 * time.Hour} {
		var server, client *Class[*twin, aim]
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, twins(&server))
		r.Now = 60 * time.Hour
		l := r.Join(twins(&client))
		for range 10 {
			r.Step()
		}
		a := &twin{}
		require.NoError(t, r.Server.Spawn(a))
		game := r.Now + apart
		require.NoError(t, server.Possess(a, l.Peer, game))
		p := server.byActor[a]
		_ = server.receiveMoves(actorrep.Call{Peer: l.Peer, Now: l.S.Now()}, a, message[*twin, aim]{number: p.number})
		require.LessOrEqual(t, p.heard, game)
		require.Greater(t, p.heard, game-time.Second)
	}
}
