package udp

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/linklocal"
)

// TestZones: the interface of a link-local address goes to the system and comes back, without allocating once it is known; other addresses
// have none.
func TestZones(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	b := &batch{}
	for _, i := range all {
		a := netip.AddrPortFrom(netip.MustParseAddr("fe80::1").WithZone(i.Name), 7777)
		b.setAddress(0, a, true)
		require.EqualValues(t, i.Index, b.names[0].Scope_id)
		require.Equal(t, a, b.address(0))
		require.Zero(t, testing.AllocsPerRun(100, func() { b.setAddress(0, a, true); b.address(0) }))
		b.setAddress(0, netip.MustParseAddrPort("[2001:db8::1]:7777"), true)
		require.Zero(t, b.names[0].Scope_id)
		require.Equal(t, "[2001:db8::1]:7777", b.address(0).String())
	}
	b.setAddress(0, netip.MustParseAddrPort("[fe80::1%nosuch]:7777"), true)
	require.Zero(t, b.names[0].Scope_id)
	b.setAddress(0, netip.MustParseAddrPort("[fe80::1%70000]:7777"), true)
	require.EqualValues(t, 70000, b.names[0].Scope_id)
	require.Equal(t, "[fe80::1%70000]:7777", b.address(0).String(), "an interface that has gone")
	for n := range 10 * maxZones {
		b.setAddress(0, netip.MustParseAddrPort(fmt.Sprintf("[fe80::1%%none%d]:7777", n)), true)
		b.names[0].Scope_id = uint32(80_000 + n)
		b.address(0)
	}
	require.LessOrEqual(t, len(b.zones.names), maxZones)
	require.LessOrEqual(t, len(b.zones.numbers), maxZones)
}

// TestLinkLocal: who writes to a link-local address is answered from that address.
func TestLinkLocal(t *testing.T) {
	to := linklocal.Addr(t)
	server, err := Listen("[::]:0", Config{})
	require.NoError(t, err)
	defer server.Close()
	client, err := Listen("[::]:0", Config{})
	require.NoError(t, err)
	defer client.Close()
	dialed := netip.AddrPortFrom(to, server.LocalAddr().Port())
	in := []Message{{Buf: make([]byte, 100)}}
	_, err = client.WriteBatch([]Message{{Buf: []byte("hello"), Addr: dialed}})
	require.NoError(t, err)
	for _, s := range []Socket{server, client} {
		require.NoError(t, s.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err = s.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, to, in[0].Addr.Addr())
		if s == server {
			_, err = server.WriteBatch([]Message{{Buf: []byte("hello"), Addr: in[0].Addr}})
			require.NoError(t, err)
		}
	}
	require.Equal(t, dialed, in[0].Addr)
}
