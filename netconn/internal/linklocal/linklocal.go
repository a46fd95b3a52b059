// Package linklocal finds an address for tests of IPv6's link-local addresses.
package linklocal

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Addr is an address of this machine's with its interface, or skips the test.
func Addr(t *testing.T) netip.Addr {
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range all {
		addrs, err := i.Addrs()
		require.NoError(t, err)
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() && i.Flags&net.FlagUp != 0 {
				return p.Addr().WithZone(i.Name)
			}
		}
	}
	t.Skip("no interface here has a link-local IPv6 address")
	return netip.Addr{}
}
