package session_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// A player's score outlives its connection: the client loses its network, dials again with a fresh token, and goes on.
func Example() {
	type score struct{ points int }
	players, err := session.NewPlayers(session.Config[*score]{
		New:    func(*driver.Conn) *score { fmt.Println("welcome"); return new(score) },
		Rejoin: func(_ *driver.Conn, s *score) { fmt.Println("back with", s.points) },
		Away:   func(_ *score, r netconn.CloseResult) { fmt.Println("away:", r.Err) },
		Gone:   func(*score, netconn.CloseResult) { fmt.Println("gone") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := netcode.Key{1} // that of the token service
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.Netcode{Key: key, TakeOver: true}, Joined: players.Joined, Closed: players.Closed})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	client, err := session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		now := uint64(time.Now().Unix())
		token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: 7, Create: now, Expire: now + 30, Timeout: 5,
			Servers: []netip.AddrPort{srv.LocalAddr()}, PrivateKey: key})
		if err != nil {
			return nil, err
		}
		return driver.Dial("", driver.Config{Link: driver.Netcode{Token: token}})
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close() // it leaves: its player is gone

	scored, back := false, false
	for !back {
		now := time.Now()
		srv.TickDispatch(now)
		client.TickDispatch(now)
		players.Tick(srv.Time(now))
		for s, c := range players.All {
			switch {
			case !scored:
				s.points, scored = 100, true
				client.Redial() // the machine has changed networks
			case c != nil && srv.Counters.Joined == 2:
				back = true
			}
		}
		srv.TickFlush(now)
		client.TickFlush(now)
		time.Sleep(time.Millisecond)
	}
	// Output:
	// welcome
	// away: replaced by a new connection
	// back with 100
	// gone
}
