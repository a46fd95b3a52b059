//go:build !js

package web

import (
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// TestPacketSize: larger packets than the base size are found by every way and in both directions, in one world of one driver, with netcode up to its 1200
// bytes, and else what the way and its path carry.
func TestPacketSize(t *testing.T) {
	for name, link := range map[string]driver.Link{"netcode": driver.Netcode{Key: gameKey}, "salted": driver.PlainSalted{}} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "netcode" {
				t.Skip("it searches for 5 s")
			}
			testPacketSize(t, link)
		})
	}
}

func testPacketSize(t *testing.T, link driver.Link) {
	g := newGame(t, driver.Config{Link: link}, ServerConfig{})
	cfg := func(name string) driver.Config {
		return driver.Config{Link: link, Client: control.ClientConfig{URL: name}}
	}
	u, err := url.Parse(g.door.url)
	require.NoError(t, err)
	narrow := netsim.Settings{MTU: 1280} // what QUIC begins with
	p, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: u.Host, Up: narrow, Down: narrow})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	g.also = func(now time.Time) { require.NoError(t, p.Step(now)) }
	l, err := DialBest(t.Context(), LadderConfig{UDP: g.srv.LocalAddr()})
	require.NoError(t, err)
	clients := map[string]*player{"udp": g.dialOver(l, cfg("udp")), "webtransport": g.dial(WebTransport, cfg("webtransport")), "websocket": g.dial(WebSocket, cfg("websocket"))}
	wide := g.door.url
	g.door.url = "https://" + p.LocalAddr().String() + "/bunchnet"
	clients["narrow webtransport"] = g.dial(WebTransport, cfg("narrow webtransport"))
	g.door.url = wide
	g.until("joined", func() bool { return len(g.lamps) == len(clients) })
	if runtime.GOOS != "linux" {
		delete(clients, "udp")
	}
	text := []string{string(make([]byte, 20_000))}
	server := func(name string) (conn *driver.Conn) {
		for s := range g.srv.Conns {
			if s.Login().URL == name {
				conn = s
			}
		}
		return conn
	}
	for name, c := range clients {
		least, most := 1200-16, 1200
		if link == (driver.PlainSalted{}) {
			least, most = 1439-16, 1439
			switch name {
			case "webtransport":
				least = 1350
			case "narrow webtransport":
				least, most = 1150, 1280
			}
		}
		sent := false
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %+v, at the server %+v", name, c.conn.Stats(), server(name).Stats())
				t.Logf("%s: %+v, at the server %+v", name, c.conn.Counters, server(name).Counters)
			}
		})
		g.until("it is found by "+name, func() bool {
			if !sent || len(c.sink.Got) == len(text) { // again and again: how many packets it fills depends on when its acks come
				require.NoError(t, c.sink.Send(c.conn, text))
				sent = true
			}
			return c.conn.Stats().PacketSize >= least && server(name).Stats().PacketSize >= least
		})
		for _, conn := range []*driver.Conn{c.conn, server(name)} {
			require.LessOrEqual(t, conn.Stats().PacketSize, most, name)
		}
	}
}
