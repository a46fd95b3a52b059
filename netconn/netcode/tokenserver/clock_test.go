package tokenserver

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestSlowLoginsRaiseNoLimit: logins that take long, beside quick ones, don't make TotalRate larger than it is.
func TestSlowLoginsRaiseNoLimit(t *testing.T) {
	asked, finish := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(c *Config) {
		c.Rate, c.Burst, c.TotalRate = 1e6, 1e6, 10
		c.Authenticate = func(req *http.Request) (Player, error) {
			if req.Header.Get("Authorization") == "slow" {
				asked <- struct{}{}
				<-finish
			}
			return Player{ID: 42}, nil
		}
	})
	const slow = 20
	codes := make(chan int, slow)
	for range slow {
		go func() { codes <- r.ask("POST", "192.0.2.1:1", "slow").Code }()
		<-asked
	}
	r.now = r.now.Add(time.Minute)
	issued := 0
	for range slow {
		for range 20 {
			if r.ask("POST", "192.0.2.2:1", "ann").Code == http.StatusOK {
				issued++
			}
		}
		finish <- struct{}{}
		if <-codes == http.StatusOK {
			issued++
		}
	}
	require.Equal(t, 10, issued, "of 420 in one moment, at 10 a second")
}

// TestTokenLivesFromItsMaking: a login that took long takes nothing of the token's life.
func TestTokenLivesFromItsMaking(t *testing.T) {
	var r *rig
	r = newRig(t, func(c *Config) {
		c.Life = 30 * time.Second
		c.Authenticate = func(*http.Request) (Player, error) {
			r.now = r.now.Add(time.Minute)
			return Player{ID: 42}, nil
		}
	})
	w := r.ask("POST", "192.0.2.1:1", "ann")
	require.Equal(t, http.StatusOK, w.Code)
	token := netcode.Token(w.Body.Bytes())
	require.False(t, token.Expired(uint64(r.now.Unix())+29))
	require.True(t, token.Expired(uint64(r.now.Unix())+30))
}

// TestClockBefore1970: a clock that was never set gives no tokens, rather than ones that never expire.
func TestClockBefore1970(t *testing.T) {
	r := newRig(t, nil)
	for _, now := range []time.Time{{}, time.Unix(-1, 0)} {
		r.now = now
		require.Equal(t, http.StatusInternalServerError, r.ask("POST", "192.0.2.1:1", "ann").Code, "%v", now)
	}
	require.EqualValues(t, 2, r.Counters().Failed)
	r.now = time.Unix(0, 0)
	w := r.ask("POST", "192.0.2.1:1", "ann")
	require.Equal(t, http.StatusOK, w.Code)
}

// TestClockThatIsSet: after a clock was set back, or forth, each network has its rate at once again, and a burst more at most.
func TestClockThatIsSet(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, -100 * 365 * 24 * time.Hour, time.Hour, 50 * 365 * 24 * time.Hour} {
		for _, from := range []string{"192.0.2.1:1", "[2001:db8::1]:1"} {
			r := newRig(t, nil)
			r.now = time.Unix(4_000_000_000, 0)
			ok := func(n int) (good int) {
				for range n {
					if r.ask("POST", from, "somebody").Code == http.StatusOK {
						good++
					}
				}
				return good
			}
			require.Equal(t, 5, ok(50))
			r.now = r.now.Add(jump)
			require.LessOrEqual(t, ok(50), 5)
			for range 100 {
				r.now = r.now.Add(time.Second)
				require.Equal(t, 1, ok(50))
			}
		}
	}
}

// TestTotalRateWhenTheClockIsSet: all requests with a login together have TotalRate at once again after the clock was set, and a second's worth
// more at most, also when they were at their limit before; and a clock that is set back gives nothing at all.
func TestTotalRateWhenTheClockIsSet(t *testing.T) {
	for _, jump := range []time.Duration{-time.Second, -time.Hour, -100 * 365 * 24 * time.Hour, time.Hour, 50 * 365 * 24 * time.Hour} {
		for _, used := range []int{0, 4, 10} {
			t.Run(fmt.Sprintf("%v with %d used", jump, used), func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Rate, c.Burst, c.TotalRate = 1e6, 1e6, 10 })
				r.now = time.Unix(4_000_000_000, 0)
				ok := func(n int) (good int) {
					for range n {
						if r.ask("POST", "192.0.2.1:1", "ann").Code == http.StatusOK {
							good++
						}
					}
					return good
				}
				require.Equal(t, used, ok(used))
				r.now = r.now.Add(jump)
				if jump < 0 {
					require.Equal(t, 10-used, ok(50))
				} else {
					require.Equal(t, 10, ok(50))
				}
				for range 20 {
					r.now = r.now.Add(time.Second)
					require.Equal(t, 10, ok(50))
				}
			})
		}
	}
}
