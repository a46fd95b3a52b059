package session_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestAnotherNetworkAfterADarkness: a darkness doesn't make packets rare: who has another address soon after it is back as soon as at other times.
func TestAnotherNetworkAfterADarkness(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}} {
		for _, dark := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 7 * time.Second} {
			for _, light := range []time.Duration{700 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 4 * time.Second, 6 * time.Second} {
				r := newRig(t, uint64(dark+light), netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.over(link) })
				r.world.RunUntil(10*time.Second + light)
				if dark > 0 {
					r.dark()
					r.world.RunUntil(r.world.Now() + dark)
					r.light()
				}
				r.world.RunUntil(r.world.Now() + light)
				at, n := r.world.Now(), len(r.joins["Ann"])
				r.world.Host("Ann").Rebind()
				for len(r.joins["Ann"]) == n && r.world.Now() < at+time.Second {
					r.world.RunUntil(r.world.Now() + 10*time.Millisecond)
				}
				require.Nil(t, r.world.Failure())
				require.Less(t, r.world.Now()-at, time.Second, "%T, dark for %v, then light for %v", link, dark, light)
			}
		}
	}
}

// TestBackAfterAnything: whatever darkness, changes of address and pauses come, one after the other, a player is back soon after the last of them, and is never gone.
func TestBackAfterAnything(t *testing.T) {
	seeds := uint64(60)
	if os.Getenv("CI") != "" {
		seeds = 150
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		link := []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()}[seed%3]
		path := netsim.Settings{LagMin: 10 * time.Millisecond, LagMax: time.Duration(20+rng.IntN(80)) * time.Millisecond, Loss: float64(rng.IntN(6))}
		r := newRig(t, seed, path, func(r *rig) {
			r.over(link)
			r.edit = func(cfg *driver.Config) { cfg.LoginTimeout, cfg.Timeout = 5*time.Second, time.Minute }
		})
		r.world.RunUntil(3 * time.Second)
		ann, server := r.world.Host("Ann"), r.world.Host("server1")
		for r.world.Now() < 40*time.Second {
			d := time.Duration(100+rng.IntN(4000)) * time.Millisecond
			until := r.world.Now() + d
			switch rng.IntN(7) {
			case 0:
				r.dark()
				r.world.RunUntil(until)
				r.light()
			case 1:
				r.world.Cut(ann, server)
				r.world.RunUntil(until)
				r.world.Join(ann, server)
			case 2:
				r.world.Cut(server, ann)
				r.world.RunUntil(until)
				r.world.Join(server, ann)
			case 3:
				ann.Rebind()
			case 4:
				ann.Rebind()
				r.world.RunUntil(r.world.Now() + d/4)
				ann.Rebind()
			case 5:
				[]interface{ Pause(time.Duration) }{ann, server}[rng.IntN(2)].Pause(d)
				r.world.RunUntil(until)
			case 6:
				r.dark()
				ann.Rebind()
				r.world.RunUntil(until)
				r.light()
			}
			r.world.RunUntil(r.world.Now() + time.Duration(rng.IntN(3000))*time.Millisecond)
		}
		at := r.world.Now()
		plays := func() bool {
			d := r.clients["Ann"].Driver()
			return d != nil && d.Server() != nil && d.Server().Joined() && d.Server().Silence() < 250*time.Millisecond
		}
		for r.world.RunUntil(at + 200*time.Millisecond); !plays(); r.world.RunUntil(r.world.Now() + 50*time.Millisecond) {
			require.Less(t, r.world.Now()-at, 10*time.Second, "seed %d, %T: isn't back", seed, link)
		}
		require.Nil(t, r.world.Failure())
		require.NotContains(t, r.of("Ann"), "gone", "seed %d, %T", seed, link)
	}
}

// dialsBy has dial make the drivers of Ann's Redialer.
func (r *rig) dialsBy(dial func(h *simtest.Host) (*driver.Driver, error)) {
	r.world = simtest.NewSimulation(7, func(h *simtest.Host) (simtest.Program, error) {
		if h.Name() != "Ann" {
			return r.boot(h)
		}
		g := &clientGame{}
		var err error
		g.Redialer, err = session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) { return dial(h) }})
		r.clients["Ann"] = g
		return g, err
	})
}

// TestAnotherNetworkAfterNoTokens: neither does one in which the service of the tokens couldn't be asked.
func TestAnotherNetworkAfterNoTokens(t *testing.T) {
	for _, dark := range []time.Duration{time.Second, 4 * time.Second, 7 * time.Second} {
		for _, light := range []time.Duration{700 * time.Millisecond, 2500 * time.Millisecond, 4 * time.Second} {
			isDark, joins := false, 0
			r := newRig(t, uint64(dark+light), netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
				r.dialsBy(func(h *simtest.Host) (*driver.Driver, error) {
					if isDark {
						return nil, errors.New("no answer")
					}
					return driver.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Timeout: 20 * time.Second, KeepAlive: 50 * time.Millisecond,
						Socket: h.Open(), Link: r.link("Ann"), Joined: func(*driver.Conn) { joins++ }})
				})
			})
			r.world.RunUntil(10*time.Second + light)
			r.dark()
			isDark = true
			r.world.RunUntil(r.world.Now() + dark)
			r.light()
			isDark = false
			r.world.RunUntil(r.world.Now() + light)
			at, n := r.world.Now(), joins
			r.world.Host("Ann").Rebind()
			for joins == n && r.world.Now() < at+time.Second {
				r.world.RunUntil(r.world.Now() + 10*time.Millisecond)
			}
			require.Less(t, r.world.Now()-at, time.Second, "dark for %v, then light for %v", dark, light)
		}
	}
}

// TestRarePacketsAndTokens: packets are rare, and the service of the tokens answers once a second at most: that doesn't have the connection replaced again and again.
func TestRarePacketsAndTokens(t *testing.T) {
	for _, every := range []time.Duration{700 * time.Millisecond, time.Second, 2 * time.Second} {
		joins, last := 0, -time.Minute
		r := newRig(t, 9, netsim.Settings{Lag: 10 * time.Millisecond}, func(r *rig) {
			r.edit = func(c *driver.Config) { c.KeepAlive = every }
			r.dialsBy(func(h *simtest.Host) (*driver.Driver, error) {
				if r.world.Now()-last < time.Second {
					return nil, errors.New("too many requests")
				}
				last = r.world.Now()
				return driver.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Timeout: 20 * time.Second, KeepAlive: every,
					Socket: h.Open(), Link: r.link("Ann"), Joined: func(*driver.Conn) { joins++ }})
			})
		})
		r.world.RunUntil(2 * time.Minute)
		require.Nil(t, r.world.Failure())
		require.LessOrEqual(t, joins, 6, "a packet each %v", every)
	}
}

// TestStandsStillOften: a server that stands still every few seconds isn't dialed each time.
func TestStandsStillOften(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		for _, d := range []time.Duration{450 * time.Millisecond, 600 * time.Millisecond, time.Second} {
			r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.over(link) })
			for r.world.RunUntil(3 * time.Second); r.world.Now() < 2*time.Minute; r.world.RunUntil(r.world.Now() + d + 2*time.Second) {
				r.world.Host("server1").Pause(d)
			}
			require.Nil(t, r.world.Failure())
			require.LessOrEqual(t, r.dials, 6, "%T, for %v", link, d)
			require.Equal(t, []string{"new"}, r.of("Ann"))
		}
	}
}

// parks has a connection of Ann's be replaced in the dark, so that it is parked at 12 s. It returns those of which the game wasn't told that they have ended.
func parks(t *testing.T, link driver.Link) (*rig, map[*driver.Conn]bool) {
	live := map[*driver.Conn]bool{}
	r := newRig(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, func(r *rig) {
		r.over(link)
		r.edit = func(c *driver.Config) {
			c.LoginTimeout = 5 * time.Second
			c.Closed = func(c *driver.Conn, _ netconn.CloseResult) { delete(live, c) } // of Ann; the server's are the rig's
		}
		r.joined = func(c *driver.Conn) {
			if live[c] = true; len(live) == 2 {
				r.dark()
			}
		}
	})
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Ann").Rebind()
	r.clients["Ann"].Redial()
	r.world.RunUntil(12 * time.Second)
	require.Len(t, live, 2, "%T", link)
	return r, live
}

// TestParkedEndWithTheConnection: the game is told of the end of a connection that was replaced in the dark no later than of the one that replaced it, though the server is gone for good.
func TestParkedEndWithTheConnection(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		r, live := parks(t, link)
		r.world.RunUntil(40 * time.Second)
		require.Empty(t, live, "%T", link)
	}
}

// TestParkedEndWithTheGame: so it is when the game closes the connection in the dark, or the Redialer.
func TestParkedEndWithTheGame(t *testing.T) {
	for _, all := range []bool{false, true} {
		r, live := parks(t, nil)
		ann := r.clients["Ann"]
		if all {
			require.NoError(t, ann.Close())
		} else {
			ann.conn.CloseWithReason("enough")
			r.world.RunUntil(30 * time.Second)
		}
		require.ErrorIs(t, ann.Err(), session.ErrLeft)
		require.Empty(t, live)
	}
}

// TestParkedEndInTheLight: once there is a path again, and the server knows the connection that has replaced one in the dark, the former one is closed, and the player isn't gone.
func TestParkedEndInTheLight(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		r, live := parks(t, link)
		r.light()
		r.world.RunUntil(14 * time.Second)
		require.Nil(t, r.world.Failure())
		require.Equal(t, map[*driver.Conn]bool{r.clients["Ann"].conn: true}, live, "%T", link)
		require.NotContains(t, r.of("Ann"), "gone", "%T", link)
	}
}
