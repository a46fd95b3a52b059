package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCloseWithinCallbacks: a game may close its driver when it hears that a connection has ended, whatever the driver is doing.
func TestCloseWithinCallbacks(t *testing.T) {
	link := Netcode{Key: netcode.Key{1}}
	var server *Driver
	ended := 0
	cfg := Config{Link: link, Timeout: 2 * time.Second, Closed: func(*Conn, netconn.CloseResult) {
		ended++
		_ = server.Close()
	}}
	w := newTown(t, 1, netsim.Settings{}, cfg)
	server = w.server
	for id := range uint64(3) {
		l := link
		l.Token = townToken(t, w, id+1, nil)
		w.dial(Config{Link: l})
	}
	w.until("joined", func() bool { return w.server.Len() == 3 && w.server.Counters.Joined == 3 })
	for range 300 { // the clients are silent
		w.now = w.now.Add(16 * time.Millisecond)
		w.server.TickDispatch(w.now)
		w.server.TickFlush(w.now)
	}
	require.Equal(t, 3, ended)
	require.Zero(t, w.server.Len())
}

// TestRefusedLoginGivesItsPlaceBack: clients whose login was refused don't count against their address, or against the server, once they are gone.
func TestRefusedLoginGivesItsPlaceBack(t *testing.T) {
	refuse := true
	w := newTown(t, 1, netsim.Settings{}, Config{Link: PlainUnreal53(), MaxPerAddr: 2, Server: control.ServerConfig{Authorize: func(*control.Login) error {
		if refuse {
			return ErrBanned
		}
		return nil
	}}})
	dial := func(port uint16) *townClient {
		w.nextAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, 0, 1}), port)
		return w.dial(Config{Link: PlainUnreal53()})
	}
	for i := range 6 {
		c := dial(uint16(1000 + i))
		w.until("refused", func() bool { return c.result != nil })
		require.ErrorIs(t, c.result.Err, ErrBanned, "client %d", i)
		for range 200 {
			w.step()
		}
		s := w.server.server.(*unrealServer)
		require.Zero(t, s.refused, "client %d", i)
		require.True(t, s.places.Room(netip.AddrFrom4([4]byte{10, 2, 0, 1})), "client %d", i)
	}
	refuse = false
	c := dial(2000)
	w.until("joined", func() bool { return c.joined || c.result != nil })
	require.Nil(t, c.result)
}

// TestMovedConnectionsHaveTheirShare: connections that move to another address count against that one's share.
func TestMovedConnectionsHaveTheirShare(t *testing.T) {
	w := newTown(t, 1, netsim.Settings{}, Config{Link: PlainUnreal53(), MaxPerAddr: 2})
	at := func(host byte, port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, 0, host}), port)
	}
	for _, addr := range []netip.AddrPort{at(1, 1), at(1, 2), at(2, 1)} {
		w.nextAddr = addr
		c := w.dial(Config{Link: PlainUnreal53()})
		w.until("joined", func() bool { return c.joined })
	}
	s := w.server.server.(*unrealServer)
	made := 1e6 // when the challenge was made
	move := func(from, to netip.AddrPort) bool { made++; return s.Restarted(to, s.byAddr[from].live.Cookie, made) }
	require.True(t, move(at(1, 1), at(1, 9)), "within its address")
	require.True(t, move(at(1, 9), at(2, 2)), "there is room")
	require.True(t, move(at(2, 2), at(2, 2)), "it says so again")
	require.False(t, move(at(1, 2), at(2, 3)), "there is none")
	require.Equal(t, at(1, 2), s.byAddr[at(1, 2)].conn.RemoteAddr())
	require.True(t, move(at(1, 2), at(2, 1)), "it takes the address, and with it the place, of another")
	require.Equal(t, 3, w.server.Len())
	require.False(t, s.places.Room(at(2, 1).Addr()))
	require.True(t, move(at(2, 2), at(3, 1)))
	require.True(t, s.places.Room(at(2, 1).Addr()))
}

// TestClosedInAccepted: a game may turn a connection away as soon as it hears of it, and hears nothing more of it than its end.
func TestClosedInAccepted(t *testing.T) {
	turnAway := []func(c *Conn){
		func(c *Conn) { c.CloseWithReason("not you") },
		func(c *Conn) { c.Abort(c.Now(), "not you") },
	}
	for i := range 4 {
		login := i&1 == 0
		for name, link := range links() {
			var heard []string
			cfg := Config{Link: link,
				Accepted: func(c *Conn) {
					heard = append(heard, "accepted")
					turnAway[i>>1](c)
				},
				Joined: func(*Conn) { heard = append(heard, "joined") },
				Closed: func(*Conn, netconn.CloseResult) { heard = append(heard, "closed") },
			}
			client := Config{Link: link}
			if !login {
				cfg.Channels = []channel.Type{{Name: bunch.Control, Static: true, ClientOpen: true, ServerOpen: true}}
				client.Channels = cfg.Channels
			}
			w := newTown(t, 1, netsim.Settings{}, cfg)
			c := w.dial(client)
			w.until("closed", func() bool { return len(heard) > 1 && w.server.Len() == 0 })
			require.Equal(t, []string{"accepted", "closed"}, heard[:2], "%s, %d", name, i)
			require.NotContains(t, heard, "joined", "%s, %d", name, i)
			w.until("the client hears", func() bool { return c.result != nil })
		}
	}
}

// TestTurnedAwayInAccepted: a client that is turned away before its login has begun learns why, and to neither end has the other broken
// the protocol, though the login's open and the close cross.
func TestTurnedAwayInAccepted(t *testing.T) {
	turnAway := map[string]func(c *Conn){
		"not you": func(c *Conn) { c.CloseWithReason("not you") },
		"":        func(c *Conn) { c.Close(c.Now(), "not you") }, // says nothing to the peer
	}
	for reason, f := range turnAway {
		for name, link := range links() {
			for _, lag := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
				var result *netconn.CloseResult
				w := newTown(t, 1, netsim.Settings{Lag: lag}, Config{Link: link, Accepted: f, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }})
				c := w.dial(Config{Link: link})
				w.until("both have ended", func() bool { return result != nil && c.result != nil })
				require.Equal(t, netconn.ClosedByUs, result.Code, "%s, %v: %v", name, lag, result)
				require.Contains(t, result.String(), "not you", name)
				require.Equal(t, netconn.ClosedByPeer, c.result.Code, "%s, %v: %v", name, lag, c.result)
				require.Equal(t, reason, c.result.Reason, "%s, %v: %v", name, lag, c.result)
				require.ErrorIs(t, c.result.Err, ErrDenied, name)
			}
		}
	}
}

// TestLoginsTimeOutTogether: both ends give up a login at the same time; neither says that the other broke the protocol.
func TestLoginsTimeOutTogether(t *testing.T) {
	for name, link := range links() {
		for start := time.Duration(0); start < 250*time.Millisecond; start += 16 * time.Millisecond {
			var results []netconn.CloseResult
			cfg := Config{Link: link, LoginTimeout: time.Second, Closed: func(_ *Conn, r netconn.CloseResult) { results = append(results, r) }}
			w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, cfg)
			c := w.dial(Config{Link: link, LoginTimeout: time.Second})
			wait := func(d time.Duration) {
				for end := w.now.Add(d); w.now.Before(end); {
					w.step()
				}
			}
			wait(start)
			w.dark(0, true, false)
			wait(1200 * time.Millisecond)
			w.dark(0, false, false)
			wait(8 * time.Second)
			if c.result != nil {
				results = append(results, *c.result)
			}
			for _, r := range results {
				require.NotEqual(t, netconn.PeerBroke, r.Code, "%s, dark after %v: %v", name, start, r)
			}
		}
	}
}

// TestCloseAfterAHitch: a tick that took long, or a machine that slept, doesn't put a close off: ticks make up for a second of it at
// most, and so do the times that the game gets from Time.
func TestCloseAfterAHitch(t *testing.T) {
	types := []channel.Type{{Name: chatName, ServerOpen: true}}
	for name, link := range links() {
		for _, gone := range []bool{false, true} {
			var took [2]time.Duration
			for i, hitch := range []time.Duration{0, time.Hour} {
				var result *netconn.CloseResult
				w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, Channels: types, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }})
				c := w.dial(Config{Link: link, Channels: types})
				w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
				if gone {
					w.dark(0, true, true)
				}
				w.now = w.now.Add(hitch)
				ch, err := w.server.conns[0].Open(chatName, nil)
				require.NoError(t, err)
				for range 300 {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				w.server.Shutdown("good night")
				at := w.now
				w.until("the server is empty", func() bool { return result != nil })
				require.Equal(t, gone, result.Unacked > 0, result)
				took[i] = w.now.Sub(at)
			}
			require.Less(t, took[1], took[0]+2*time.Second, name)
		}
	}
}

// TestClosedInLogin: a connection that is closed with a reason amid its login, at either end and in whichever callback, tells the other end
// why, and nobody of having broken the protocol.
func TestClosedInLogin(t *testing.T) {
	const words = "not today"
	for name, link := range links() {
		for _, where := range []string{"Authorize", "NetSpeed", "Joined", "Respond"} {
			var server *netconn.CloseResult
			var serverConn, clientConn *Conn
			closeIn := func(place string, c *Conn) {
				if place == where {
					c.CloseWithReason(words)
				}
			}
			cfg := Config{Link: link, Closed: func(_ *Conn, r netconn.CloseResult) { server = &r }}
			cfg.Accepted = func(c *Conn) { serverConn = c }
			cfg.Server.Authorize = func(*control.Login) error { closeIn("Authorize", serverConn); return nil }
			cfg.Server.NetSpeed = func(int) { closeIn("NetSpeed", serverConn) }
			cfg.Joined = func(c *Conn) { closeIn("Joined", c) }
			client := Config{Link: link, Accepted: func(c *Conn) { clientConn = c }}
			client.Client.Respond = func(string) string { closeIn("Respond", clientConn); return "" }
			w := newTown(t, 1, netsim.Settings{LagMin: 10 * time.Millisecond, LagMax: 12 * time.Millisecond}, cfg)
			c := w.dial(client)
			w.until("closed", func() bool { return server != nil && c.result != nil })
			closed, heard := server, c.result
			if where == "Respond" {
				closed, heard = heard, closed
			}
			require.Equal(t, netconn.ClosedByUs, closed.Code, "%s, %s: %v", name, where, closed)
			require.Equal(t, netconn.ClosedByPeer, heard.Code, "%s, %s: %v", name, where, heard)
			require.Equal(t, words, heard.Reason, "%s, %s", name, where)
		}
	}
}
