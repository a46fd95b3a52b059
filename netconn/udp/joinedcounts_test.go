package udp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJoinedCounts: a joined socket has the counters of its main one, and none where that has none.
func TestJoinedCounts(t *testing.T) {
	a, b := Pair(netip.MustParseAddrPort("127.0.0.1:1000"), netip.MustParseAddrPort("127.0.0.1:1001"))
	_, ok := CountersOf(a)
	require.False(t, ok)
	both, own := WithLocal(a, netip.MustParseAddrPort("127.0.0.1:1"))
	defer b.Close()
	defer own.Close()
	defer both.Close()
	_, err := both.WriteBatch([]Message{{Buf: []byte{1}, Addr: netip.MustParseAddrPort("127.0.0.1:1001")}})
	require.NoError(t, err)
	c, ok := CountersOf(both)
	require.False(t, ok, "%+v", c)
}
