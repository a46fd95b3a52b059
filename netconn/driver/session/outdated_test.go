package session_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestOutdatedAndTheNextServerDead: a client of another version, which the first server of its token tells so, gives up, also where nobody answers at the second.
func TestOutdatedAndTheNextServerDead(t *testing.T) {
	for _, dead := range []int{0, 1} {
		r := newRig(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		r.link = func(client string) driver.Link {
			if client == "" {
				return driver.Netcode{Key: netcode.Key{1}, TakeOver: true, ProtocolID: 2}
			}
			now := uint64(simtest.Epoch.Add(r.world.Now()).Unix())
			servers := append([]netip.AddrPort{netip.MustParseAddrPort(serverAddr)}, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:7777")}[:dead]...)
			token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 1, ClientID: uint64(len(client)), Create: now, Expire: now + 60, Timeout: 5, Servers: servers, PrivateKey: netcode.Key{1}})
			require.NoError(t, err)
			return driver.Netcode{Token: token, ProtocolID: 1}
		}
		r.world.RunUntil(60 * time.Second)
		require.Equal(t, 1, r.dials, "%d of its servers are dead", dead)
	}
}
