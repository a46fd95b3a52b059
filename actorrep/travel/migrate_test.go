package travel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/actorrep/travel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTravelBehindMigration: a server whose world is that of a checkpoint (actorrep/migrate) plays the level of that, keeps what doesn't stay from who hasn't
// loaded it, and travels on: clients load the next level, not twice the same number.
func TestTravelBehindMigration(t *testing.T) {
	before := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, time.Minute)
	before.join(3)
	before.to("forest")
	before.all("5 trees of forest, 1 heroes")
	data, err := migrate.Checkpoint(nil, before.Server, nil)
	require.NoError(t, err)

	r := newTrip(t, 2, netsim.Settings{Lag: 30 * time.Millisecond}, time.Minute)
	_, err = migrate.Restore(r.Server, data, func(actorrep.Actor, []byte) error { return nil })
	require.NoError(t, err)
	r.step()
	require.Equal(t, "forest", r.server.Map())
	b := r.join(3)
	require.False(t, r.server.IsReady(b.Peer))
	r.all("5 trees of forest, 2 heroes")
	r.until("ready", func() bool { return r.server.IsReady(b.Peer) })
	r.to("desert")
	r.all("5 trees of desert, 2 heroes")
	r.until("arrived", func() bool { return !r.server.Traveling() })
	levels := 0
	for x := range r.Server.All {
		if _, ok := x.(*travel.Level); ok {
			levels++
		}
	}
	require.Equal(t, 1, levels)
	require.Equal(t, []string{"forest", "desert"}, b.loads)
}
