package main

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pion/turn/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/ice/rendezvous"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCheck: a host and two guests play, one of them by the relay.
func TestCheck(t *testing.T) {
	var out bytes.Buffer
	err := check(t.Context(), &out, options{seed: 1, seconds: 1})
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "\nPASS")
}

// TestOpenRefuses: what no player could reach is told, and nothing stays open.
func TestOpenRefuses(t *testing.T) {
	for _, o := range []options{{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "here"}, {serve: "127.0.0.1:0", relay: "nowhere", relayAddr: "127.0.0.1"},
		{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "127.0.0.1", relayTLS: "127.0.0.1:0"}, {serve: "nowhere", relay: "127.0.0.1:0", relayAddr: "127.0.0.1"},
		{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "127.0.0.1", cert: "missing"}} {
		_, err := open(o)
		require.Error(t, err)
	}
}

// TestRelay: the relay sends to the internet and to its own address, and not to what is behind its machine's firewall, except on one machine or in one network. Of the addresses that it
// gives away a room has some.
func TestRelay(t *testing.T) {
	for public, want := range map[string]string{
		"203.0.113.9": "203.0.113.9 198.51.100.7",
		"192.168.1.5": "203.0.113.9 198.51.100.7 192.168.1.5 192.168.1.7 10.0.0.1 100.64.0.1",
		"127.0.0.1":   "127.0.0.1 192.168.1.5 192.168.1.7 10.0.0.1",
	} {
		var all []string
		for _, to := range []string{"203.0.113.9", "198.51.100.7", "127.0.0.1", "192.168.1.5", "192.168.1.7", "10.0.0.1", "100.64.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255"} {
			if relays(netip.MustParseAddr(public), netip.MustParseAddr(to)) {
				all = append(all, to)
			}
		}
		require.ElementsMatch(t, strings.Fields(want), all, public)
	}

	s, err := open(options{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "203.0.113.9"})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	room, err := rendezvous.Open(t.Context(), rendezvous.RoomConfig{URL: s.url})
	require.NoError(t, err)
	defer room.Close()
	at := room.Servers[1]
	_, port, _ := strings.Cut(at.URL, "203.0.113.9:")
	port, _, _ = strings.Cut(port, "?")
	client := func() *turn.Client {
		pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
		require.NoError(t, err)
		c, err := turn.NewClient(&turn.ClientConfig{TURNServerAddr: net.JoinHostPort("127.0.0.1", port), Username: at.Username, Password: at.Password, Conn: pc, LoggerFactory: quiet{}})
		require.NoError(t, err)
		require.NoError(t, c.Listen())
		t.Cleanup(func() {
			c.Close()
			require.NoError(t, pc.Close())
		})
		return c
	}
	for i := range maxOfRoom + 1 {
		c := client()
		alloc, err := c.Allocate()
		if i == maxOfRoom {
			require.ErrorContains(t, err, "486")
			break
		}
		require.NoError(t, err, i)
		defer alloc.Close()
		if i == 0 {
			require.Error(t, c.CreatePermission(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
			require.NoError(t, c.CreatePermission(&net.UDPAddr{IP: net.IPv4(198, 51, 100, 7)}))
		}
	}
}
