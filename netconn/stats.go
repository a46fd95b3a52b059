package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/channel"
)

// Stats is a connection's figures at one moment.
type Stats struct {
	RTT, RTTVariance, MinRTT, LastRTT time.Duration
	// Jitter is that of the peer's packets (Unreal's average jitter); 0 without packet info.
	Jitter   time.Duration
	Rates    Rates
	LossRate float64 // share of this end's packets that were lost, of those whose fate is known, 0 to 1; a moving average
	// QueuedReliable is the number of unacked reliable bunches of all channels. Waiting is how many of these wait for
	// the packet window or the rate controller.
	QueuedReliable, Waiting int
	PacketsInFlight         int // those left out on purpose (Config.Secret) included
	// SendRate is the Controller's rate in bytes a second.
	SendRate float64
	// PacketSize is the largest packet that this end sends now, in bytes; see Config.LargestPacket.
	PacketSize int
	Channels   int
	// Held is the bytes that count against Config.MaxMemory.
	Held    int
	Packets Counters
	Bunches channel.Counters
}

// Stats returns the connection's figures.
func (c *Conn) Stats() Stats {
	t := c.Table()
	return Stats{
		RTT: c.rtt.smoothed, RTTVariance: c.rtt.variance, MinRTT: c.rtt.min, LastRTT: c.rtt.last, Jitter: c.rtt.jitter,
		Rates: c.rates.figures, LossRate: c.rates.lossRate,
		QueuedReliable: t.Unacked(), Waiting: t.Waiting(), PacketsInFlight: c.notify.Outstanding(), SendRate: c.cfg.Controller.Rate(), PacketSize: c.packetBytes(),
		Channels: t.Len(), Held: t.Held(), Packets: c.Counters, Bunches: t.Counters,
	}
}

// Silence is the time since something was last received, at the time of the last call.
func (c *Conn) Silence() time.Duration { return c.now - c.flow.lastReceive }

// RTT is the smoothed round-trip time; 0 until the first ack.
func (c *Conn) RTT() time.Duration { return c.rtt.smoothed }

// InPackets is how many of the peer's packets were received, and how many were missed: lost, or so late that they count
// as lost.
func (c *Conn) InPackets() (received, missed uint64) {
	return c.Counters.PacketsReceived, c.Counters.PacketsMissed
}

// SetNetSpeed changes the rate of Unreal's bucket, in bytes a second, where that is the controller because NetSpeed was set or the protocol is
// Unreal's. It has no effect on other controllers.
func (c *Conn) SetNetSpeed(bytesPerSecond int) {
	if c.netSpeed != nil {
		c.netSpeed.SetRate(bytesPerSecond)
	}
}

// SetPeerMemory replaces Config.PeerMemory, as the peer has told its MaxMemory, in bytes. Less than any may have counts as the least, 256 KiB.
func (c *Conn) SetPeerMemory(bytes uint32) { c.channels.SetPeerMemory(bytes) }

// OnlyControl has reliable bunches of all channels but the control channel wait until it is called with false. Package netconn/driver calls it while the login isn't done, as the peer
// refuses channels until then.
func (c *Conn) OnlyControl(only bool) { c.channels.OnlyControl(only) }
