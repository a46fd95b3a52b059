package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMeasure: all that is sent comes back by each way, no sooner than the network lets it, and the table and the curves say so.
func TestMeasure(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("namespaces need root")
	}
	var out bytes.Buffer
	o := options{seconds: 5, losses: []float64{2}, delay: 50 * time.Millisecond, seed: 1, csv: filepath.Join(t.TempDir(), "web.csv")}
	err := run(t.Context(), &out, o)
	if errors.Is(err, webtest.ErrNoChromium) {
		t.Skip(err)
	}
	require.NoError(t, err)
	for _, way := range []string{"udp", "webtransport", "websocket"} {
		require.Contains(t, out.String(), "2 %  "+way)
	}
	curves, err := os.ReadFile(o.csv)
	require.NoError(t, err)
	require.Equal(t, 1+3*31, bytes.Count(curves, []byte("\n")))
}

// TestResult: quantiles are of what is sorted.
func TestResult(t *testing.T) {
	r := result{took: []float64{1, 2, 3, 4, 5}}
	require.Equal(t, []float64{1, 3, 5}, []float64{r.at(0), r.at(0.5), r.at(1)})
}
