package netcode

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestConfigIsRefused: what a config or a token can't have is told where it is given.
func TestConfigIsRefused(t *testing.T) {
	handler := serverSide{newRig(t, 1, netsim.Settings{}, 1)}
	for _, addr := range []netip.AddrPort{{}, netip.AddrPortFrom(serverAddr.Addr(), 0)} {
		_, err := NewServer(ServerConfig{PrivateKey: Key{1}, Handler: handler, Addrs: []netip.AddrPort{serverAddr, addr}})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, "ServerConfig.Addrs")
	}
	_, err := NewClient(ClientConfig{Handler: clientSide{}, Timeout: time.Nanosecond})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "ClientConfig.Timeout")
	for name, cfg := range map[string]TokenConfig{
		"Servers has 33":  {Servers: make([]netip.AddrPort, MaxServers+1)},
		"Servers has 0":   {},
		"Internal has 33": {Servers: []netip.AddrPort{serverAddr}, Internal: make([]netip.AddrPort, MaxServers+1)},
	} {
		cfg.PrivateKey, cfg.Timeout = Key{1}, 5
		_, err := GenerateConnectToken(cfg)
		require.ErrorContains(t, err, name)
	}
}

// TestLoopbackIsNotBounded: clients of this machine may have all places of half-open handshakes, and no group is left when their time is over.
func TestLoopbackIsNotBounded(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 8)
	from := func(addr string, n int) {
		for i := range n {
			r.server.Receive(r.now, netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(1+i)),
				requestOf(t, token(t, uint64(i), func(c *TokenConfig) { c.ClientID = uint64(r.server.Counters.Requests) })))
		}
	}
	from("127.0.0.1", minMappings/groupShare+20)
	require.Len(t, r.server.mappings.heap, minMappings/groupShare+20)
	require.Empty(t, r.server.mappings.groups)
	from("192.0.2.1", 3)
	from("192.0.2.2", 1)
	require.Len(t, r.server.mappings.groups, 2)
	r.now += answerTime
	require.Empty(t, r.server.mappings.at(r.now, clientAddr))
	require.Empty(t, r.server.mappings.heap)
	require.Empty(t, r.server.mappings.groups)
}

// TestLongResponseAllocatesNothing: what a stranger sends behind the size of a response is never copied.
func TestLongResponseAllocatesNothing(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	r.server.Receive(r.now, clientAddr, requestOf(t, token(t, 1, nil)))
	require.Len(t, r.server.mappings.at(r.now, clientAddr), 1)
	long := make([]byte, 60_000)
	long[0] = byte(typeResponse) | 8<<4
	for range 10 {
		require.Zero(t, testing.AllocsPerRun(10, func() { r.server.Receive(r.now, clientAddr, long) }))
	}
	require.NotZero(t, r.server.Counters.NotSealed)
}
