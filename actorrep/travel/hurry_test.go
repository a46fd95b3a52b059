package travel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/travel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHurry: a server that names a new level in every tick makes a client load four, and then one a second; each skipped one is counted, the first told, and the
// newest is loaded within a second. One that changes it four times in a row has each loaded at once.
func TestHurry(t *testing.T) {
	var server *travel.Server
	var client *travel.Client
	var loads []string
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, func(w *actorrep.World) (err error) {
		server, err = travel.NewServer(w, travel.Config{})
		return err
	})
	l := r.JoinOther(func(w *actorrep.World) (err error) {
		client, err = travel.NewClient(w, func(m string) { loads = append(loads, m) })
		return err
	})
	step := func() {
		server.Step(r.Now)
		r.Step()
		client.Step()
	}
	last := ""
	next := func() {
		last = fmt.Sprint("level ", r.Now)
		require.NoError(t, server.To(last))
	}
	for range 30 {
		step()
	}
	for range 4 {
		next()
		for range 5 {
			step()
		}
		require.Equal(t, last, loads[len(loads)-1])
	}
	require.Zero(t, client.Delayed)
	for range 4 * 30 {
		step()
	}
	n, began := len(loads), r.Now
	for range 20 * 30 {
		next()
		step()
	}
	require.LessOrEqual(t, len(loads)-n, 4+int((r.Now-began)/time.Second)+1)
	require.GreaterOrEqual(t, len(loads)-n, 20)
	require.Greater(t, client.Delayed, uint64(500))
	require.Equal(t, []error{travel.ErrHurry}, l.Failed)
	for range 32 {
		step()
	}
	require.Equal(t, last, loads[len(loads)-1])
	client.Ready(last)
	for range 5 {
		step()
	}
	require.True(t, server.IsReady(l.Peer))
}

// TestForgottenStep: a game that never calls Step of one end is told so there, once, when there is a level; one that has no level isn't.
func TestForgottenStep(t *testing.T) {
	for _, forgets := range []string{"nobody", "server", "client", "both, without a level"} {
		var server *travel.Server
		var client *travel.Client
		var failed []error
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(w *actorrep.World) (err error) {
			server, err = travel.NewServer(w, travel.Config{})
			return err
		})
		l := r.JoinOther(func(w *actorrep.World) (err error) {
			client, err = travel.NewClient(w, func(string) {})
			return err
		})
		if forgets != "both, without a level" {
			require.NoError(t, server.To("forest"))
		}
		for range 300 {
			if forgets == "nobody" || forgets == "client" {
				server.Step(r.Now)
			}
			r.Step()
			if forgets == "nobody" || forgets == "server" {
				client.Step()
			}
		}
		for i, list := range [][]error{failed, l.Failed} {
			if forgets != []string{"server", "client"}[i] {
				require.Empty(t, list, "%s forgets", forgets)
				continue
			}
			require.Len(t, list, 1)
			require.ErrorContains(t, list[0], "never calls Step")
			require.ErrorIs(t, list[0], travel.ErrConfig)
		}
	}
}
