package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
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

// TestOneDialWhereAcksAreSlow: on a long path with few packets one dial is enough after an address has changed, as the ack of the Join comes after Silence there.
func TestOneDialWhereAcksAreSlow(t *testing.T) {
	for _, lag := range []time.Duration{160 * time.Millisecond, 300 * time.Millisecond} {
		r := newRig(t, 1, netsim.Settings{Lag: lag}, func(r *rig) { r.edit = func(c *driver.Config) { c.KeepAlive = 500 * time.Millisecond } })
		r.world.RunUntil(15 * time.Second)
		joins := len(r.joins["Ann"])
		r.world.Host("Ann").Rebind()
		r.world.RunUntil(25 * time.Second)
		require.Nil(t, r.world.Failure())
		require.Len(t, r.joins["Ann"], joins+1, "lag %v: %v", lag, r.joins["Ann"])
	}
}

// TestLeaveJustBeforeItChanges: no dial takes over once the game has closed its connection, also when the dial joins in the same tick.
func TestLeaveJustBeforeItChanges(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}} {
		for after := 400 * time.Millisecond; after < 500*time.Millisecond; after += 4 * time.Millisecond {
			closed := false
			r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) {
				if link != nil {
					r.link = func(string) driver.Link { return link }
					r.config.ID = func(c *driver.Conn) string { return c.Login().URL }
				}
			})
			r.world.RunUntil(3 * time.Second)
			r.clients["Ann"].Redial()
			r.joined = func(*driver.Conn) { require.False(t, closed, "%T, closed after %v", link, after) }
			r.world.RunUntil(r.world.Now() + after)
			if closed = len(r.joins["Ann"]) == 1; !closed {
				break
			}
			r.clients["Ann"].conn.CloseWithReason("enough")
			r.world.RunUntil(8 * time.Second)
			require.Nil(t, r.world.Failure())
			require.ErrorIs(t, r.clients["Ann"].Err(), session.ErrLeft)
		}
	}
}

// TestDarkDownlinkWhileItChanges: a path that has been dark for some seconds before, and whose downlink is dark for longer than the server's answer is waited for just as a
// dial takes over, loses no player.
func TestDarkDownlinkWhileItChanges(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}, driver.PlainUnreal53()} {
		for _, at := range []time.Duration{5900 * time.Millisecond, 6200 * time.Millisecond, 6500 * time.Millisecond} {
			const dark = 5500 * time.Millisecond
			r := newRig(t, 1, netsim.Settings{Lag: 33 * time.Millisecond}, func(r *rig) {
				if link != nil {
					r.link = func(string) driver.Link { return link }
					r.config.ID = func(c *driver.Conn) string { return c.Login().URL }
				}
			})
			r.world.RunUntil(3 * time.Second)
			ann, server := r.world.Host("Ann"), r.world.Host("server1")
			r.dark()
			r.world.RunUntil(5600 * time.Millisecond)
			r.light()
			r.world.RunUntil(at)
			r.joined = func(*driver.Conn) {
				r.joined = nil
				r.world.Cut(server, ann)
				r.world.At(r.world.Now()+dark, func() { r.world.Join(server, ann) })
			}
			r.clients["Ann"].Redial()
			r.world.RunUntil(25 * time.Second)
			require.Nil(t, r.world.Failure())
			require.NotContains(t, r.of("Ann"), "gone", "%T, %v: %v %v", link, at, r.told, r.at)
		}
	}
}
