package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMovesAgainWhileItChanges: a machine that has another address again just as a dial takes over has its player soon, and nothing but the last connection is left.
func TestMovesAgainWhileItChanges(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		for _, hurry := range []bool{false, true} {
			for _, after := range []time.Duration{0, 30 * time.Millisecond, 90 * time.Millisecond, 200 * time.Millisecond} {
				r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) {
					if link != nil {
						r.link = func(string) driver.Link { return link }
						r.config.ID = func(c *driver.Conn) string { return c.Login().URL }
					}
				})
				r.world.RunUntil(3 * time.Second)
				move := func() {
					r.world.Host("Ann").Rebind()
					if hurry {
						r.clients["Ann"].Redial()
					}
				}
				r.joined = func(*driver.Conn) {
					r.joined = nil
					r.world.At(r.world.Now()+after, move)
				}
				move()
				r.world.RunUntil(7 * time.Second)
				require.Nil(t, r.world.Failure())
				require.Len(t, r.joins["Ann"], 3, "%T, hurry %v, after %v", link, hurry, after)
				require.NotContains(t, r.of("Ann"), "gone")
				r.world.RunUntil(15 * time.Second)
				require.Len(t, r.joins["Ann"], 3, "%T, hurry %v, after %v", link, hurry, after)
				require.Equal(t, 2, r.server.Len(), "%T, hurry %v, after %v", link, hurry, after)
				here, away := r.players.Len()
				require.Equal(t, []int{2, 0}, []int{here, away})
			}
		}
	}
}
