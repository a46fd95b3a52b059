package addrgroup

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "64:ff9b::192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::9": "2001:db8:1:2::", "2001:db8:1:3::9": "2001:db8:1:3::", "fe80::1%eth0": "fe80::",
		"127.0.0.1": "", "127.3.4.5": "", "::1": "", "::ffff:127.0.0.1": "",
	} {
		g, ok := Of(netip.MustParseAddr(addr))
		require.Equal(t, want != "", ok, addr)
		if ok {
			require.Equal(t, want, g.String(), addr)
		}
	}
}

func TestLimit(t *testing.T) {
	a, same, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8:0:1::1")
	l := NewLimit(2)
	for range 2 {
		require.True(t, l.Room(a))
		l.Add(a)
	}
	require.False(t, l.Room(same))
	require.True(t, l.Room(other))
	l.Remove(same)
	require.True(t, l.Room(a))
	l.Remove(a)
	require.Empty(t, l.n, "nothing is kept of who has nothing")

	off := NewLimit(-1)
	off.Add(a)
	require.True(t, off.Room(a))
	require.Empty(t, off.n)
	off.Remove(a)

	local := netip.MustParseAddr("127.0.0.1")
	for range 5 {
		require.True(t, l.Room(local))
		l.Add(local)
	}
	l.Remove(local)
	require.Empty(t, l.n)
}
