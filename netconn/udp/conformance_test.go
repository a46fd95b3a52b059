//go:build !wasm

package udp_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// TestConformance runs the test of sockets over every kind of socket there is.
func TestConformance(t *testing.T) {
	local := netip.MustParseAddrPort("127.0.0.1:1")
	t.Run("memory", func(t *testing.T) {
		udptest.Run(t, func(*testing.T) (a, b udp.Socket) {
			return udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
		})
	})
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		if s, err := udp.Listen(host, udp.Config{}); err != nil && host[0] == '[' {
			t.Logf("no IPv6 here: %v", err)
			continue
		} else {
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		for name, try := range map[string]func() (udp.Socket, error){
			"udp":                func() (udp.Socket, error) { return udp.Listen(host, udp.Config{}) },
			"udp without poller": func() (udp.Socket, error) { return udp.Listen(host, udp.Config{NoPoller: true}) },
			"udp on other systems": func() (udp.Socket, error) {
				conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(host)))
				return udp.Plain(conn), err
			},
		} {
			listen := func(t *testing.T) udp.Socket {
				s, err := try()
				require.NoError(t, err)
				return s
			}
			for kind, open := range map[string]udptest.Open{
				"":                   func(t *testing.T) (a, b udp.Socket) { return listen(t), listen(t) },
				" with a local peer": func(t *testing.T) (a, b udp.Socket) { b, a = udp.WithLocal(listen(t), local); return a, b },
				" to its local peer": func(t *testing.T) (a, b udp.Socket) { a, b = udp.WithLocal(listen(t), local); return a, b },
				" beside a local peer": func(t *testing.T) (a, b udp.Socket) {
					b, own := udp.WithLocal(listen(t), local)
					t.Cleanup(func() { require.NoError(t, own.Close()) })
					return listen(t), b
				},
			} {
				t.Run(name+kind+" "+host, func(t *testing.T) { udptest.Run(t, open) })
			}
		}
	}
}
