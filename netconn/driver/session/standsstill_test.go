package session_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestStandsStillWhileItChanges: a machine that stands still just as another connection takes the place of its own, whether or not the server has heard of that, has its
// player afterwards, and a driver.
func TestStandsStillWhileItChanges(t *testing.T) {
	for _, dark := range []time.Duration{0, time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second} {
		for _, asleep := range []time.Duration{2 * time.Second, 6 * time.Second, 12 * time.Second} {
			r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
			r.world.RunUntil(3 * time.Second)
			ann := r.clients["Ann"]
			r.joined = func(*driver.Conn) {
				r.joined, ann.every = nil, math.MaxInt64
				r.world.At(r.world.Now()+asleep, func() { ann.every = 0 })
				if dark > 0 {
					r.dark()
					r.world.At(r.world.Now()+dark, r.light)
				}
			}
			ann.Redial()
			r.world.RunUntil(40 * time.Second)
			require.Nil(t, r.world.Failure())
			assert.NotContains(t, r.of("Ann"), "gone", "dark for %v, asleep for %v: %v %v", dark, asleep, r.told, r.at)
			if assert.NotNil(t, ann.Driver(), "dark for %v, asleep for %v: %v %v", dark, asleep, r.told, r.at) {
				require.True(t, ann.Driver().Server().Joined())
			}
		}
	}
}
