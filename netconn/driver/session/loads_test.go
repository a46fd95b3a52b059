package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRarePacketsUnderJitter: as TestRarePacketsAreNoSilence, on longer paths whose packets don't take equally long, so that who is replaced hears of that before the ack of its
// own dial's Join.
func TestRarePacketsUnderJitter(t *testing.T) {
	for seed := range uint64(30) {
		r := newRig(t, seed, netsim.Settings{LagMin: 50 * time.Millisecond, LagMax: 100 * time.Millisecond}, func(r *rig) {
			r.edit = func(c *driver.Config) { c.KeepAlive = 1400 * time.Millisecond }
		})
		r.world.Host("Ann").SetTick(4 * time.Millisecond)
		r.world.RunUntil(time.Minute)
		require.Nil(t, r.world.Failure())
		require.LessOrEqual(t, len(r.joins["Ann"]), 10, "seed %d", seed)
	}
}

// loading has Ann's game load a level for so long, without ticks, before a connection joins for which when is true. Others join at once.
func (r *rig) loading(load time.Duration, when func(*driver.Conn) bool) {
	r.edit = func(c *driver.Config) {
		var conn *driver.Conn
		c.Accepted = func(c *driver.Conn) { conn = c }
		c.Client.Welcomed = func(*control.Welcome) {
			if !when(conn) {
				_ = conn.Join()
				return
			}
			loaded, at := conn, r.world.Now()+load
			r.world.Host("Ann").Pause(load)
			r.world.At(at, func() { _ = loaded.Join() })
		}
	}
}

// TestLoadsBeforeItJoins: a client whose game loads a level between two ticks, for longer than a dial is trusted that nobody answers, and joins then, has its player.
func TestLoadsBeforeItJoins(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		for _, load := range []time.Duration{6 * time.Second, 12 * time.Second} {
			r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.over(link) })
			loads := 0
			r.loading(load, func(c *driver.Conn) bool {
				ann := r.clients["Ann"]
				if ann == nil || ann.Driver() != c.Driver() {
					return false
				}
				loads++
				return true
			})
			r.world.RunUntil(40 * time.Second)
			require.Nil(t, r.world.Failure())
			require.Equal(t, []string{"new"}, r.of("Ann"), "%T, %v", link, load)
			require.Equal(t, 1, loads, "%T, %v", link, load)
		}
	}
}

// givenUpInTheDark plays a dial beside a connection that joins just as the path goes dark, for so long that the server has given up its login when there is a path again. The
// player is kept.
func givenUpInTheDark(t *testing.T, link driver.Link, dark time.Duration, edit func(*driver.Config)) *rig {
	r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) { r.over(link) })
	r.edit = func(c *driver.Config) {
		c.Timeout = time.Minute
		edit(c)
	}
	r.world.RunUntil(3 * time.Second)
	r.joined = func(*driver.Conn) {
		r.joined = nil
		r.dark()
		r.world.At(r.world.Now()+dark, r.light)
	}
	r.clients["Ann"].Redial()
	r.world.RunUntil(5*time.Second + dark + 6*time.Second)
	require.Nil(t, r.world.Failure())
	require.NotContains(t, r.of("Ann"), "gone", "%T, dark for %v: %v", link, dark, r.told)
	return r
}

// TestGivenUpInTheDark: a dial beside a connection joins just as a path goes dark, for so long that the server has given up its login when there is a path again: the player is
// kept, and plays on within 6 s.
func TestGivenUpInTheDark(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53(), driver.PlainUnreal427()} {
		for dark := 14 * time.Second; dark < 21*time.Second; dark += 250 * time.Millisecond { // the server's LoginTimeout is 15 s, and it lingers for 2
			r := givenUpInTheDark(t, link, dark, func(*driver.Config) {})
			ann := r.clients["Ann"].Driver().Server()
			require.True(t, ann.Joined() && ann.Silence() < time.Second, "%T, dark for %v", link, dark)
		}
	}
}

// TestGivenUpWithWhatWaits: as TestGivenUpInTheDark, where the server's game has something to say from Accepted on, which waits for the login.
func TestGivenUpWithWhatWaits(t *testing.T) {
	chat := bunch.Name{Text: "Chat"}
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53(), driver.PlainUnreal427()} {
		for dark := 14 * time.Second; dark < 18*time.Second; dark += 250 * time.Millisecond {
			givenUpInTheDark(t, link, dark, func(c *driver.Config) {
				c.Channels = []channel.Type{{Name: chat, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}}
				c.Accepted = func(c *driver.Conn) {
					if c.IsServer() {
						ch, err := c.Open(chat, channel.Nop{})
						require.NoError(t, err)
						_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 300), Reliable: true})
						require.NoError(t, err)
					}
				}
			})
		}
	}
}

// TestKickedSoonAfterItIsBack: who moved, is back, and is kicked at once or a moment later, stays away.
func TestKickedSoonAfterItIsBack(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		for after := time.Duration(0); after < 800*time.Millisecond; after += 50 * time.Millisecond {
			r := newRig(t, 1, netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(r *rig) {
				r.over(link)
				r.config.Rejoin = func(c *driver.Conn, p *player) {
					r.tell("back", p)
					r.world.At(r.world.Now()+after, func() { c.CloseWithError(driver.ErrKicked) })
				}
			})
			r.world.RunUntil(8 * time.Second)
			r.world.Host("Ann").Rebind()
			r.world.RunUntil(15 * time.Second)
			require.Nil(t, r.world.Failure())
			require.ErrorIs(t, r.clients["Ann"].Err(), driver.ErrKicked, "%T, after %v", link, after)
		}
	}
}

// TestBriefConnectionsAfterAMove: a server that lets who moved in again, and ends each connection of his at once or soon, is dialed more and more rarely, though the client still has the
// connection of its former address.
func TestBriefConnectionsAfterAMove(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}} {
		for _, after := range []time.Duration{0, 100 * time.Millisecond, 350 * time.Millisecond} {
			brief := false
			r := newRig(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, func(r *rig) {
				r.over(link)
				end := func(c *driver.Conn, p *player) {
					if brief && p.name == "Ann" {
						r.world.At(r.world.Now()+after, func() { c.CloseWithReason("the match is over") })
					}
				}
				add := r.config.New
				r.config.New = func(c *driver.Conn) *player {
					p := add(c)
					end(c, p)
					return p
				}
				r.config.Rejoin = end
			})
			r.edit = func(c *driver.Config) { c.Timeout = time.Minute }
			r.world.RunUntil(8 * time.Second)
			brief = true
			r.world.Host("Ann").Rebind()
			r.world.RunUntil(68 * time.Second)
			require.Nil(t, r.world.Failure())
			require.Less(t, r.dials, 20, "%T, after %v", link, after)
		}
	}
}

// TestLoadsForLong: as TestLoadsBeforeItJoins, beside a connection, for longer than the default of LoginTimeout where that is longer.
func TestLoadsForLong(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		r := newRig(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, func(r *rig) { r.over(link) })
		const load = 20 * time.Second
		slow := false
		r.loading(load, func(*driver.Conn) bool { return slow })
		loading := r.edit
		r.edit = func(c *driver.Config) {
			c.Timeout, c.LoginTimeout = time.Minute, time.Minute
			loading(c)
		}
		r.world.RunUntil(3 * time.Second)
		slow = true
		r.clients["Ann"].Redial()
		r.world.RunUntil(50 * time.Second)
		require.Nil(t, r.world.Failure())
		require.NotContains(t, r.of("Ann"), "gone", "%T: %v", link, r.told)
		require.Equal(t, 2, r.dials, "%T", link)
	}
}
