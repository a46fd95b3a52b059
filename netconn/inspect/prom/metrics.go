package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bunchnet/bunchnet/netconn/inspect"
)

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// driverMetrics is the figures of a driver. Rates and queues are sums over the connections of the moment.
var driverMetrics = []struct {
	name, help string
	kind       prometheus.ValueType
	value      func(*inspect.Snapshot) float64
}{
	{"datagrams_received_total", "Datagrams received.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.DatagramsIn) }},
	{"datagrams_sent_total", "Datagrams sent.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.DatagramsOut) }},
	{"received_bytes_total", "Bytes of the datagrams received.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.BytesIn) }},
	{"sent_bytes_total", "Bytes of the datagrams sent.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.BytesOut) }},
	{"send_errors_total", "Datagrams that the system didn't send.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.SendErrors) }},
	{"read_errors_total", "Reads that failed; the socket went on.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.ReadErrors) }},
	{"packets_refused_total", "Packets that their connection dropped.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.Refused) }},
	{"datagrams_corrupt_total", "Datagrams with a wrong checksum.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.Corrupt) }},
	{"connections_accepted_total", "Handshakes done.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.Accepted) }},
	{"connections_joined_total", "Logins done.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.Joined) }},
	{"connections_closed_total", "Connections that have ended.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.Closed) }},
	{"connections_no_room_total", "Connections refused because the server was full.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.NoRoom) }},
	{"connections_no_login_total", "Connections ended because their login took too long.", counter, func(s *inspect.Snapshot) float64 { return float64(s.Counters.NoLogin) }},
	{"connections", "Connections there are.", gauge, func(s *inspect.Snapshot) float64 { return float64(len(s.Conns)) }},
	{"channels", "Channels on all connections.", gauge, sum(func(c *inspect.Conn) float64 { return float64(c.Stats.Channels) })},
	{"packets_in_flight", "Packets that are neither acked nor lost yet.", gauge, sum(func(c *inspect.Conn) float64 { return float64(c.Stats.PacketsInFlight) })},
	{"reliable_bunches_unacked", "Reliable bunches that aren't acked.", gauge, sum(func(c *inspect.Conn) float64 { return float64(c.Stats.QueuedReliable) })},
	{"reliable_bunches_waiting", "Reliable bunches that wait for the packet window.", gauge, sum(func(c *inspect.Conn) float64 { return float64(c.Stats.Waiting) })},
	{"receive_rate_bytes", "Bytes a second received by all connections.", gauge, sum(func(c *inspect.Conn) float64 { return c.Stats.Rates.InBytes })},
	{"send_rate_bytes", "Bytes a second sent by all connections.", gauge, sum(func(c *inspect.Conn) float64 { return c.Stats.Rates.OutBytes })},
}

func sum(f func(*inspect.Conn) float64) func(*inspect.Snapshot) float64 {
	return func(s *inspect.Snapshot) (total float64) {
		for i := range s.Conns {
			total += f(&s.Conns[i])
		}
		return total
	}
}

var (
	seconds = []float64{0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1}
	shares  = []float64{0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5}
	sizes   = []float64{0, 1, 4, 16, 64, 128, 255}
	packets = []float64{1024, 1100, 1200, 1250, 1300, 1350, 1400, 1452}
	rates   = []float64{1e3, 5e3, 10e3, 25e3, 50e3, 100e3, 250e3, 1e6}
)

// connSpreads is the figures that connections have each, told as histograms of the joined ones.
var connSpreads = []struct {
	name, help string
	buckets    []float64
	value      func(*inspect.Conn) float64
}{
	{"connection_rtt_seconds", "Connections by smoothed round trip time.", seconds, func(c *inspect.Conn) float64 { return c.Stats.RTT.Seconds() }},
	{"connection_jitter_seconds", "Connections by jitter of what they receive.", seconds, func(c *inspect.Conn) float64 { return c.Stats.Jitter.Seconds() }},
	{"connection_loss_sent_ratio", "Connections by lost share of the packets sent in the last second.", shares, func(c *inspect.Conn) float64 { return c.Stats.Rates.OutLoss }},
	{"connection_loss_received_ratio", "Connections by missing share of the peer's packets in the last second.", shares, func(c *inspect.Conn) float64 { return c.Stats.Rates.InLoss }},
	{"connection_reliable_unacked", "Connections by reliable bunches that aren't acked.", sizes, func(c *inspect.Conn) float64 { return float64(c.Stats.QueuedReliable) }},
	{"connection_packet_bytes", "Connections by the largest packet that is sent to them, as it was found.", packets, func(c *inspect.Conn) float64 { return float64(c.Stats.PacketSize) }},
	{"connection_send_rate_bytes", "Connections by bytes a second sent to them.", rates, func(c *inspect.Conn) float64 { return c.Stats.Rates.OutBytes }},
}
