package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
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
