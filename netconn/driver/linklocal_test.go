package driver

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/linklocal"
)

// TestLinkLocal: a client joins a server at a link-local IPv6 address, as in a LAN without a router, over every link.
func TestLinkLocal(t *testing.T) {
	to := linklocal.Addr(t)
	for name, l := range map[string]Link{"netcode": Netcode{}, "salted": PlainSalted{}, "unreal": PlainUnreal{}} {
		s, err := Listen("[::]:0", Config{Link: l, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err, name)
		c, err := Dial(netip.AddrPortFrom(to, s.LocalAddr().Port()).String(), Config{Link: l, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err, name)
		require.Eventually(t, func() bool {
			for _, d := range []*Driver{s, c} {
				d.TickDispatch(time.Now())
				d.TickFlush(time.Now())
			}
			return c.Server() != nil && c.Server().Joined()
		}, 5*time.Second, 5*time.Millisecond, name)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	}
}
