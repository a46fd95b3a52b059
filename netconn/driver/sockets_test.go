package driver_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/drivertest"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// TestSockets runs the test of drivers over every kind of socket of this module. Modules with others run it over theirs.
func TestSockets(t *testing.T) {
	local := netip.MustParseAddrPort("127.0.0.1:1")
	listen := func(t *testing.T) udp.Socket {
		s, err := udp.Listen("127.0.0.1:0", udp.Config{})
		require.NoError(t, err)
		return s
	}
	for name, open := range map[string]udptest.Open{
		"memory": func(*testing.T) (a, b udp.Socket) {
			return udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
		},
		"udp":          func(t *testing.T) (a, b udp.Socket) { return listen(t), listen(t) },
		"a local peer": func(t *testing.T) (a, b udp.Socket) { b, a = udp.WithLocal(listen(t), local); return a, b },
	} {
		t.Run(name, func(t *testing.T) { drivertest.Run(t, open) })
	}
}
