package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestBrokenLogins: a server whose Protocol isn't the client's is dialed as rarely as one that refuses it, whichever end notices that.
func TestBrokenLogins(t *testing.T) {
	for _, newer := range []bool{false, true} { // the client is
		server := true
		r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
			r.edit = func(c *driver.Config) {
				if server != newer {
					c.Protocol = netconn.Unreal427()
				}
				server = false
			}
		})
		r.world.RunUntil(time.Minute)
		require.Nil(t, r.world.Failure())
		require.Less(t, r.dials, 20, "in a minute")
		require.Empty(t, r.of("Ann"))
	}
}

// TestBreaksItsLogin: so is a server by a client of which each connection breaks a bound of the client's own before it joins.
func TestBreaksItsLogin(t *testing.T) {
	dials := 0
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		r.dialsBy(func(h *simtest.Host) (*driver.Driver, error) {
			dials++
			var conn *driver.Conn
			return driver.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: h.Open(), Link: r.link("Ann"), Accepted: func(c *driver.Conn) { conn = c },
				Client: control.ClientConfig{Welcomed: func(*control.Welcome) { conn.Fail(errors.New("too much"), true) }}})
		})
	})
	r.world.RunUntil(time.Minute)
	require.Nil(t, r.world.Failure())
	require.NoError(t, r.clients["Ann"].Err())
	require.Greater(t, dials, 10, "in a minute")
	require.Less(t, dials, 20)
	require.Empty(t, r.of("Ann"))
}
