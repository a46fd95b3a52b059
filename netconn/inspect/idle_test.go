package inspect

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestIdleLoad: what is shown of the ticks is the present load, also of a driver that has had no connection.
func TestIdleLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		d, err := driver.Listen("", driver.Config{Socket: a, TickRate: 1})
		require.NoError(t, err)
		i := New(d, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx, nil) }()
		for range 3 {
			time.Sleep(time.Minute)
			v, err := i.View(t.Context(), Query{})
			require.NoError(t, err)
			require.NotEmpty(t, v.Load)
			last := v.Load[len(v.Load)-1]
			require.Less(t, v.At-last.At, 2*time.Second)
			require.NotZero(t, last.Ticks)
		}
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, b.Close())
	})
}

// TestClosedDriverSaysSo: who asks a driver that is closed is told so, however many ask.
func TestClosedDriverSaysSo(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	d, err := driver.Listen("", driver.Config{Socket: a})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, b.Close())
	s := NewSource(d)
	for range 3 * maxAsking {
		_, err := s.Snapshot(t.Context())
		require.ErrorIs(t, err, ErrNotTicked)
	}
}
