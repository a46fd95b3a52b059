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

// TestOwnClock: what is shown has the times of the driver, whatever its clock counts from, and however that is set.
func TestOwnClock(t *testing.T) {
	for _, from := range []time.Duration{0, -30 * 365 * 24 * time.Hour, -time.Hour, time.Hour, 100 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
			clock := func() time.Time { return time.Now().Round(0).Add(from) }
			d, err := driver.Listen("", driver.Config{Socket: a, TickRate: 20, Clock: clock})
			require.NoError(t, err)
			i := New(d, Config{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- d.Run(ctx, nil) }()
			began := time.Now()
			for range 3 {
				time.Sleep(time.Minute)
				v, err := i.View(t.Context(), Query{})
				require.NoError(t, err)
				require.InDelta(t, time.Since(began).Seconds(), v.At.Seconds(), 1, "%v", from)
				require.NotEmpty(t, v.Load, "%v", from)
				last := v.Load[len(v.Load)-1]
				require.InDelta(t, v.At.Seconds(), last.At.Seconds(), 0.5, "%v", from)
				require.NotZero(t, last.Ticks, "%v", from)
			}
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, b.Close())
		})
	}
}
