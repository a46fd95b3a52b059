package session_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBackgroundTab: a client that ticks once a second, as a page in the background does at first, stays. One that ticks once a minute, as that page does after five
// minutes, is away after a while. Within a second of its being seen again it is back.
func TestBackgroundTab(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("CI") != "" {
		seeds = 5
	}
	for seed := range seeds {
		r := newRig(t, 1+seed, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
		r.world.RunUntil(3 * time.Second)
		ann := r.clients["Ann"]
		ann.every = time.Second
		r.world.RunUntil(time.Minute)
		require.Equal(t, []string{"new"}, r.of("Ann"), "seed %d", 1+seed)
		require.Equal(t, 1, r.dials, "seed %d", 1+seed)
		for i := range time.Duration(30) {
			ann.every = time.Minute
			r.world.RunUntil(r.world.Now() + (63+7*i)*time.Second) // so that a dial of the minute's tick is more or less old
			dials := r.dials
			ann.every = 0
			r.world.RunUntil(r.world.Now() + time.Second)
			require.Nil(t, r.world.Failure())
			require.NoError(t, ann.Err(), "seed %d", 1+seed)
			here, _ := r.players.Len()
			require.Equal(t, 2, here, "seed %d, at %v: %v", 1+seed, r.world.Now(), r.told)
			require.True(t, ann.conn.Joined() && !ann.conn.Closed(), "seed %d, at %v", 1+seed, r.world.Now())
			require.LessOrEqual(t, r.dials-dials, 2, "seed %d", 1+seed)
		}
		require.Contains(t, r.of("Ann"), "back", "seed %d", 1+seed)
	}
}

// TestSleepingLaptop: a machine that stands still for seconds or hours, whether or not its clock goes on meanwhile, and wakes up with another address, is back within
// a second.
func TestSleepingLaptop(t *testing.T) {
	sleeps := []time.Duration{2 * time.Second, 7 * time.Second, 25 * time.Second}
	if os.Getenv("CI") != "" {
		sleeps = append(sleeps, 4*time.Second, time.Hour)
	}
	for _, asleep := range sleeps {
		for _, stands := range []bool{false, true} {
			for _, moved := range []bool{false, true} {
				r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) { r.config.Keep = 24 * time.Hour })
				r.world.RunUntil(3 * time.Second)
				ann := r.clients["Ann"]
				ann.every = math.MaxInt64
				r.dark() // it hears nothing meanwhile
				r.world.RunUntil(r.world.Now() + asleep)
				r.light()
				if stands {
					ann.back = asleep
				}
				if moved {
					r.world.Host("Ann").Rebind()
				}
				ann.every = 0
				r.world.RunUntil(r.world.Now() + time.Second)
				require.Nil(t, r.world.Failure())
				require.NoError(t, ann.Err())
				here, _ := r.players.Len()
				require.Equal(t, 2, here, "asleep for %v, stands %v, moved %v: %v", asleep, stands, moved, r.told)
				require.True(t, ann.conn.Joined() && !ann.conn.Closed())
				require.NotEqual(t, netconn.TimedOut, ann.conn.Result().Code)
			}
		}
	}
}

// TestSleepAmidLogin: a machine that stands still amid a login that the server has begun to answer is back within a second, and within 5.5 s when its clock stood too.
func TestSleepAmidLogin(t *testing.T) {
	sleeps := []time.Duration{time.Second, 25 * time.Second}
	if os.Getenv("CI") != "" {
		sleeps = append(sleeps, 3*time.Second, 6*time.Second, 12*time.Second, 10*time.Minute)
	}
	for _, asleep := range sleeps {
		for _, stands := range []bool{false, true} {
			for amid := range time.Duration(12) {
				r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
				r.world.RunUntil(50 * time.Millisecond)
				ann := r.clients["Ann"]
				for ann.Driver() == nil || ann.Driver().Counters.DatagramsIn == 0 {
					r.world.RunUntil(r.world.Now() + time.Millisecond)
				}
				r.world.RunUntil(r.world.Now() + amid*25*time.Millisecond)
				require.Nil(t, ann.conn, "amid the login")
				ann.every = math.MaxInt64
				r.dark()
				r.world.RunUntil(r.world.Now() + asleep)
				r.light()
				limit := time.Second
				if stands {
					ann.back, limit = asleep, 5500*time.Millisecond
				}
				ann.every = 0
				r.world.RunUntil(r.world.Now() + limit)
				require.Nil(t, r.world.Failure())
				require.NoError(t, ann.Err())
				require.True(t, ann.conn != nil && ann.conn.Joined() && !ann.conn.Closed() && ann.conn.Silence() < 300*time.Millisecond,
					"asleep for %v, stands %v, %v after the first answer", asleep, stands, amid*25*time.Millisecond)
				require.LessOrEqual(t, r.dials, 2)
			}
		}
	}
}

// TestSleepAmidRedial: a machine that stands still while a dial beside its connection is under way, which the server may have let take the connection's place, is back.
func TestSleepAmidRedial(t *testing.T) {
	for _, asleep := range []time.Duration{time.Second, 6 * time.Second, 25 * time.Second} {
		for amid := range time.Duration(30) {
			r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) { r.config.Keep = time.Hour })
			r.world.RunUntil(3 * time.Second)
			ann := r.clients["Ann"]
			ann.Redial()
			r.world.RunUntil(r.world.Now() + amid*25*time.Millisecond)
			ann.every = math.MaxInt64
			r.world.RunUntil(r.world.Now() + asleep) // what is sent to it waits, as in a page that is frozen
			ann.every = 0
			r.world.RunUntil(r.world.Now() + 2*time.Second)
			require.NoError(t, ann.Err(), "asleep for %v, %v after Redial", asleep, amid*25*time.Millisecond)
			require.True(t, ann.conn.Joined() && !ann.conn.Closed() && ann.conn.Silence() < 300*time.Millisecond, "asleep for %v, %v after Redial", asleep, amid*25*time.Millisecond)
		}
	}
}
