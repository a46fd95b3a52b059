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
	move := func(from, to netip.AddrPort) bool { return s.Restarted(to, s.byAddr[from].live.Cookie) }
	require.True(t, move(at(1, 1), at(1, 9)), "within its address")
	require.True(t, move(at(1, 9), at(2, 2)), "there is room")
	require.True(t, move(at(2, 2), at(2, 2)), "it says so again")
	require.False(t, move(at(1, 2), at(2, 3)), "there is none")
	require.Equal(t, at(1, 2), s.byAddr[at(1, 2)].conn.RemoteAddr())
	require.True(t, move(at(1, 2), at(2, 1)), "it takes the address, and with it the place, of another")
	require.Equal(t, 2, w.server.Len())
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
