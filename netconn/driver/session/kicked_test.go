package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestKickedInTheDark: a player that was kicked is gone, also when its client doesn't hear that and dials again meanwhile.
func TestKickedInTheDark(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) { r.over(link) })
		r.world.RunUntil(3 * time.Second)
		r.dark()
		r.world.Host("Ann").Rebind()
		for p, c := range r.players.All {
			if p.name == "Ann" {
				c.CloseWithError(driver.ErrKicked)
			}
		}
		r.world.RunUntil(4 * time.Second)
		r.light()
		r.world.RunUntil(10 * time.Second)
		require.Nil(t, r.world.Failure())
		require.Equal(t, []string{"new", "gone", "new"}, r.of("Ann"), "%T", link)
	}
}
