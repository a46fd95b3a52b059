package prom

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// running is a server with a client, run by goroutines until the test ends.
func running(t *testing.T) *driver.Driver {
	joined := make(chan bool, 2)
	cfg := driver.Config{Joined: func(*driver.Conn) { joined <- true }, TickRate: 200}
	server, err := driver.Listen("127.0.0.1:0", cfg)
	require.NoError(t, err)
	client, err := driver.Dial(server.LocalAddr().String(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- server.Run(ctx, nil) }()
	go func() { done <- client.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
	<-joined
	<-joined
	return server
}

func TestCollect(t *testing.T) {
	c := New(running(t), prometheus.Labels{"game": "arena"})
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(c))
	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		require.Equal(t, "arena", m.GetLabel()[0].GetValue())
		switch {
		case m.GetCounter() != nil:
			got[f.GetName()] = m.GetCounter().GetValue()
		case m.GetGauge() != nil:
			got[f.GetName()] = m.GetGauge().GetValue()
		default:
			got[f.GetName()] = float64(m.GetHistogram().GetSampleCount())
		}
	}
	require.Len(t, got, 1+len(driverMetrics)+len(connSpreads))
	require.EqualValues(t, 1, got["bunchnet_up"])
	require.EqualValues(t, 1, got["bunchnet_connections"])
	require.EqualValues(t, 1, got["bunchnet_connections_joined_total"])
	require.EqualValues(t, 1, got["bunchnet_connection_rtt_seconds"])
	require.Greater(t, got["bunchnet_datagrams_received_total"], 2.0)
	require.Greater(t, got["bunchnet_sent_bytes_total"], 50.0)

	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems, "%v", promlintText(problems))
}

func promlintText(list []promlint.Problem) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.Metric+": "+p.Text)
	}
	return texts
}

// TestSpread compares a histogram with counting by hand.
func TestSpread(t *testing.T) {
	s := spread{desc: prometheus.NewDesc("x", "x", nil, nil), buckets: []float64{0.1, 0.2}, value: func(c *inspect.Conn) float64 { return c.Stats.RTT.Seconds() }}
	conn := func(rtt time.Duration, joined bool) inspect.Conn {
		return inspect.Conn{Joined: joined, Stats: netconn.Stats{RTT: rtt}}
	}
	c := histogramOf{s, []inspect.Conn{conn(50*time.Millisecond, true), conn(150*time.Millisecond, true), conn(time.Second, true), conn(time.Millisecond, false)}}
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP x x
# TYPE x histogram
x_bucket{le="0.1"} 1
x_bucket{le="0.2"} 2
x_bucket{le="+Inf"} 3
x_sum 1.2
x_count 3
`)))
}

type histogramOf struct {
	s     spread
	conns []inspect.Conn
}

func (h histogramOf) Describe(ch chan<- *prometheus.Desc) { ch <- h.s.desc }
func (h histogramOf) Collect(ch chan<- prometheus.Metric) { ch <- h.s.histogram(h.conns) }

// TestDown: a driver that isn't ticked.
func TestDown(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, testutil.CollectAndCompare(New(d, nil), strings.NewReader("# HELP bunchnet_up 1 while the driver is ticked.\n# TYPE bunchnet_up gauge\nbunchnet_up 0\n")))
}

// TestDashboard: it parses, asks only for metrics that there are, and shows each of them.
func TestDashboard(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(Dashboard, &board))
	require.Greater(t, len(board.Panels), 10)
	known := map[string]bool{"up": true}
	for _, m := range driverMetrics {
		known[m.name] = true
	}
	for _, s := range connSpreads {
		known[s.name+"_bucket"] = true
	}
	shown := map[string]bool{}
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			names := regexp.MustCompile(`bunchnet_(\w+)`).FindAllStringSubmatch(target.Expr, -1)
			require.NotEmpty(t, names, target.Expr)
			for _, n := range names {
				require.True(t, known[n[1]], "%s asks for bunchnet_%s", p.Title, n[1])
				shown[n[1]] = true
			}
		}
	}
	for name := range known {
		require.True(t, shown[name], "no panel shows bunchnet_%s", name)
	}
}
