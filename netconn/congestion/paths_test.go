package congestion_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// TestAdaptiveOnEveryPath: the share of the link that is used, the queue, the time until the rate is found
// again after whatever has happened, and fairness. CI runs all round trip times with all ticks.
func TestAdaptiveOnEveryPath(t *testing.T) {
	for i, p := range paths.Table(os.Getenv("CI") != "") {
		if testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			f := p.Run(1, func() paths.Controller {
				c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
				require.NoError(t, err)
				return c
			})
			require.Empty(t, p.Missed(f), "%+v", f)
		})
	}
}
