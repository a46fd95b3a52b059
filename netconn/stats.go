package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
)

// Stats is a connection's figures at a moment.
type Stats struct {
	RTT, RTTVariance, MinRTT, LastRTT time.Duration
	// Jitter is the peer's packets' (Unreal's average jitter); 0 without packet info.
	Jitter   time.Duration
	Rates    Rates
	LossRate float64 // moving average of our packets' losses
	// QueuedReliable is the reliable bunches not acked on all channels, Waiting those of
	// them that wait for the packet window.
	QueuedReliable, Waiting int
	PacketsInFlight         int
	Channels                int
	Packets                 Counters
	Bunches                 channel.Counters
}

// Stats returns the connection's figures. It walks all channels.
func (c *Conn) Stats() Stats {
	return Stats{
		RTT: c.rtt.smoothed, RTTVariance: c.rtt.variance, MinRTT: c.rtt.min, LastRTT: c.rtt.last, Jitter: c.rtt.jitter,
		Rates: c.rates.figures, LossRate: c.rates.lossRate,
		QueuedReliable: c.table.Unacked(), Waiting: c.table.Waiting(), PacketsInFlight: c.notify.Outstanding(),
		Channels: c.table.Len(), Packets: c.Counters, Bunches: c.table.Counters,
	}
}

// RTT is the smoothed round trip time, 0 until the first ack.
func (c *Conn) RTT() time.Duration { return c.rtt.smoothed }

// IsNetReady reports whether the connection is below its bandwidth, the packet under
// construction included.
func (c *Conn) IsNetReady() bool { return c.Budget() > 0 }

// Budget is the number of bytes that may be sent now within the bandwidth.
func (c *Conn) Budget() int {
	return c.cfg.Controller.Budget(c.now) - (c.out.Len()+7)/8
}

// SetNetSpeed changes the bandwidth in bytes a second, when the controller is the default bucket.
func (c *Conn) SetNetSpeed(bytesPerSecond int) {
	if b, ok := c.cfg.Controller.(*congestion.TokenBucket); ok {
		b.SetRate(bytesPerSecond)
	}
}
