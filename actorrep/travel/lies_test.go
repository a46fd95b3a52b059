package travel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLies: a client that says it is ready for levels that were, will be or never are is ready for none, and one whose connection was removed
// changes nothing.
func TestLies(t *testing.T) {
	var server *Server
	arrived := 0
	r := rig.New(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, actorrep.Config{}, func(w *actorrep.World) (err error) {
		server, err = NewServer(w, Config{Timeout: time.Minute, Arrived: func(string) { arrived++ }})
		return err
	})
	var client *Client
	join := func() *rig.Line {
		l := r.Join(func(w *actorrep.World) (err error) {
			client, err = NewClient(w, func(string) {})
			return err
		})
		return l
	}
	liar := join()
	liars := client
	honest := join()
	step := func() {
		server.Step(r.Now)
		r.Step()
		liars.Step()
		client.Step()
	}
	require.NoError(t, server.To("forest"))
	require.NoError(t, server.To("desert"))
	for range 30 {
		step()
	}
	client.Ready("desert")
	for _, n := range []uint32{0, 1, 3, 1 << 31, 1<<32 - 1} {
		require.NoError(t, ready.Call(liars.level, n))
		for range 30 {
			step()
		}
	}
	require.True(t, server.IsReady(honest.Peer))
	require.False(t, server.IsReady(liar.Peer))
	require.True(t, server.Traveling())
	require.NoError(t, ready.Call(liars.level, 2))
	for range 30 {
		step()
	}
	require.Equal(t, 1, arrived)
	require.NoError(t, ready.Call(liars.level, 2), "again")
	r.Server.RemoveConn(liar.Peer) // its word is on the way
	for range 30 {
		step()
	}
	require.Equal(t, 1, arrived)
	require.False(t, server.IsReady(liar.Peer))
}
