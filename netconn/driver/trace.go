package driver

import (
	"context"
	"runtime/trace"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// AddTrace sends the events of all connections to s from now on, in addition to the sinks set before.
func (d *Driver) AddTrace(s nettrace.Sink) {
	var sink nettrace.Sink = s
	switch t := d.cfg.Trace.(type) {
	case nil:
	case nettrace.Tee:
		sink = append(t[:len(t):len(t)], s)
	default:
		sink = nettrace.Tee{t, s}
	}
	d.cfg.Trace = sink
	for _, c := range d.conns {
		c.SetTrace(sink)
	}
}

// packetTap is a Conn that adds its addresses to its packets.
type packetTap Conn

// TracePacket is nettrace.PacketSink's.
func (t *packetTap) TracePacket(p *nettrace.Packet) {
	c := (*Conn)(t)
	p.Local, p.Remote = c.driver.LocalAddr(), c.addr
	c.driver.cfg.Packets.TracePacket(p)
}

// Regions of the execution trace (runtime/trace): what a tick's time goes to. They cost a load while
// no trace is being taken.
const (
	regionDispatch = "bunchnet.TickDispatch"
	regionStep     = "bunchnet.Step" // Run's step
	regionFlush    = "bunchnet.TickFlush"
)

func region(name string) *trace.Region { return trace.StartRegion(context.Background(), name) }
