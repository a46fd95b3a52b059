package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLeaveJustBeforeItChanges: no dial takes over once the game has closed its connection, also when the dial joins in the same tick.
func TestLeaveJustBeforeItChanges(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}} {
		for after := 400 * time.Millisecond; after < 500*time.Millisecond; after += 4 * time.Millisecond {
			closed := false
			r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) { r.over(link) })
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
			r := newRig(t, 1, netsim.Settings{Lag: 33 * time.Millisecond}, func(r *rig) { r.over(link) })
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

// TestDarkAsItJoins: a path that goes dark for half a second just as a client's first connection joins, so that the server may hear of that after another dial has joined, has
// the player with the last connection.
func TestDarkAsItJoins(t *testing.T) {
	for _, link := range []driver.Link{driver.PlainSalted{}, driver.PlainUnreal53(), driver.PlainUnreal427()} {
		for i := range time.Duration(24) {
			dark := 200*time.Millisecond + i*20*time.Millisecond
			r := newRig(t, uint64(i)+1, netsim.Settings{Lag: 5 * time.Millisecond}, func(r *rig) {
				r.over(link)
				r.edit = func(c *driver.Config) { c.KeepAlive = 0 }
			})
			r.joined = func(*driver.Conn) {
				r.joined = nil
				r.dark()
				r.world.At(r.world.Now()+dark, r.light)
			}
			r.world.RunUntil(6 * time.Second)
			require.Nil(t, r.world.Failure())
			require.NoError(t, r.clients["Ann"].Err(), "%T, dark for %v: %v", link, dark, r.told)
			require.NotContains(t, r.of("Ann"), "gone", "%T, dark for %v", link, dark)
			here, away := r.players.Len()
			require.Equal(t, []int{2, 0}, []int{here, away}, "%T, dark for %v", link, dark)
		}
	}
}

// TestRefusedBesideAConnection: a machine whose connection is dead dials ever more seldom where the server refuses it, as it does when the former connection is one that it still has.
func TestRefusedBesideAConnection(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		token := r.link
		r.link = func(client string) driver.Link {
			if client == "" {
				return driver.Netcode{Key: netcode.Key{1}} // without TakeOver
			}
			return token(client)
		}
	})
	r.world.RunUntil(10 * time.Second)
	require.Equal(t, 1, r.dials)
	r.world.Host("Ann").Rebind()
	r.world.RunUntil(29 * time.Second) // the connection ends at 30 s
	require.Nil(t, r.world.Failure())
	require.Less(t, r.dials, 12, "250 ms, 500, 1000, 2000, 4000, 5000, ...")
	r.world.RunUntil(40 * time.Second)
	require.Equal(t, []string{"new", "away", "back"}, r.of("Ann"))
}

// TestManyMoves: a machine that has another address every second or two, ten times, is back as soon each time, and keeps no former connection.
func TestManyMoves(t *testing.T) {
	for _, apart := range []time.Duration{time.Second, 2 * time.Second} {
		r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
		r.world.RunUntil(10 * time.Second)
		const moves = 10
		for range moves {
			former := r.clients["Ann"].conn
			r.world.Host("Ann").Rebind()
			next := r.world.Now() + apart
			r.world.RunUntil(r.world.Now() + 600*time.Millisecond)
			require.True(t, r.clients["Ann"].conn.Joined() && r.clients["Ann"].conn.Silence() < 150*time.Millisecond, "%v apart, at %v", apart, r.world.Now())
			r.world.RunUntil(next)
			require.True(t, former.Closed())
		}
		require.Nil(t, r.world.Failure())
		require.Len(t, r.joins["Ann"], 1+moves)
	}
}

// TestRefusedAgain: a server that refuses a client beside its connection is dialed as soon as ever once the client has had a connection for MaxPause: what was before doesn't count.
func TestRefusedAgain(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.over(driver.PlainSalted{}) })
	refuses := false
	r.refuse = func(name string) error {
		if refuses && name == "Ann" {
			return errors.New("not now")
		}
		return nil
	}
	for _, at := range []time.Duration{10 * time.Second, 40 * time.Second} {
		r.world.RunUntil(at)
		before := r.dials
		r.world.Host("Ann").Rebind()
		refuses = true
		r.world.RunUntil(at + 3*time.Second)
		require.InDelta(t, 4, r.dials-before, 1, "250 ms, 500, 1000, 2000")
		r.world.RunUntil(at + 14*time.Second)
		require.InDelta(t, 6, r.dials-before, 1, "4000, 5000, ...")
		refuses = false
		r.world.RunUntil(at + 22*time.Second)
		require.True(t, r.clients["Ann"].conn.Joined() && !r.clients["Ann"].conn.Closed())
		require.Nil(t, r.world.Failure())
	}
}
