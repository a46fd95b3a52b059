// Package prom offers a driver's figures as Prometheus metrics. It has a Grafana dashboard, dashboard.json. It is a
// module of its own, because it needs the Prometheus client.
//
//	prometheus.MustRegister(prom.New(srv, prometheus.Labels{"game": "arena"}))
//	http.Handle("/metrics", promhttp.Handler())
//
// A scrape waits for the driver's next TickDispatch. Between scrapes the game does no work for them. Scrapes within 100 ms of each other share one
// reading. Metrics are sums over all connections; a label for each connection would make the number of series grow without
// bound. Round trip times, losses and queues are histograms over the connections that exist at the scrape. While the driver isn't
// ticked, bunchnet_up is 0 and the other metrics are missing.
//
// To see one connection closely, use netconn/inspect.
package prom

import (
	"context"
	_ "embed"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// Dashboard is dashboard.json, for Grafana's import.
//
//go:embed dashboard.json
var Dashboard []byte

// scrapeTimeout is how long a scrape waits for the driver.
const scrapeTimeout = 2 * time.Second

// Collector is a prometheus.Collector of a driver.
type Collector struct {
	source  *inspect.Source
	up      *prometheus.Desc
	metrics []metric
	spreads []spread
}

// metric is a figure of the driver.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*inspect.Snapshot) float64
}

// spread is a figure of each connection.
type spread struct {
	desc    *prometheus.Desc
	buckets []float64
	value   func(*inspect.Conn) float64
}

// New returns a collector of a driver's figures. labels go on all of them; nil for none.
func New(d *driver.Driver, labels prometheus.Labels) *Collector {
	c := &Collector{source: inspect.NewSource(d)}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("bunchnet_"+name, help, nil, labels)
	}
	c.up = desc("up", "1 while the driver is ticked.")
	for _, m := range driverMetrics {
		c.metrics = append(c.metrics, metric{desc(m.name, m.help), m.kind, m.value})
	}
	for _, s := range connSpreads {
		c.spreads = append(c.spreads, spread{desc(s.name, s.help), s.buckets, s.value})
	}
	return c
}

// Describe is prometheus.Collector's.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.up
	for _, m := range c.metrics {
		ch <- m.desc
	}
	for _, s := range c.spreads {
		ch <- s.desc
	}
}

// Collect is prometheus.Collector's.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	snap, err := c.source.Snapshot(ctx)
	if err != nil {
		ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 1)
	for _, m := range c.metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&snap))
	}
	for _, s := range c.spreads {
		ch <- s.histogram(snap.Conns)
	}
}

// histogram is how the connections' values spread over the buckets.
func (s *spread) histogram(conns []inspect.Conn) prometheus.Metric {
	count, sum, buckets := uint64(0), 0.0, map[float64]uint64{}
	for _, b := range s.buckets {
		buckets[b] = 0
	}
	for i := range conns {
		if !conns[i].Joined {
			continue
		}
		v := s.value(&conns[i])
		count++
		sum += v
		for _, b := range s.buckets {
			if v <= b {
				buckets[b]++
			}
		}
	}
	return prometheus.MustNewConstHistogram(s.desc, count, sum, buckets)
}
