package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// sizedPair is a server and a client over loopback, ticked by one goroutine, and the client's channel.
type sizedPair struct {
	srv, cl *driver.Driver
	ch      *channel.Channel
	got     int
	now     time.Time
	payload []byte
	spent   time.Duration
	sent    uint64 // packets
	wire    uint64 // bytes
}

func newSizedPair(b *testing.B, link driver.Link, offload bool, maxDatagram, size int) *sizedPair {
	p := &sizedPair{now: time.Unix(1_700_000_000, 0), payload: make([]byte, size)}
	name := bunch.Name{Index: 100}
	cfg := driver.Config{Link: link, MaxDatagram: maxDatagram, MaxMemory: 32 << 20, Clock: func() time.Time { return p.now }, UDP: udp.Config{NoOffload: !offload},
		Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return &arrivals{n: &p.got} }}}}
	var err error
	p.srv, err = driver.Listen("127.0.0.1:0", cfg)
	require.NoError(b, err)
	p.cl, err = driver.Dial(p.srv.LocalAddr().String(), cfg)
	require.NoError(b, err)
	for p.cl.Server() == nil || !p.cl.Server().Joined() {
		p.tick()
	}
	p.ch, err = p.cl.Server().Open(name, channel.Nop{})
	require.NoError(b, err)
	for range 200 {
		p.round(b)
	}
	return p
}

// arrivals counts payloads.
type arrivals struct {
	channel.Nop
	n *int
}

func (a *arrivals) ReceivedBunch(*channel.Channel, *bunch.In) { *a.n++ }

func (p *sizedPair) tick() {
	p.now = p.now.Add(5 * time.Millisecond)
	p.srv.TickDispatch(p.now)
	p.cl.TickDispatch(p.now)
	p.srv.TickFlush(p.now)
	p.cl.TickFlush(p.now)
}

// round sends 64 KiB of payloads and waits for them.
func (p *sizedPair) round(b *testing.B) {
	start, c := time.Now(), p.cl.Server()
	n := max(1, 64<<10/len(p.payload))
	want, packets, wire := p.got+n, c.Counters.PacketsSent, c.Counters.BytesSent
	for range n {
		if _, err := p.ch.SendBunch(&bunch.Out{Data: p.payload, Reliable: true, NoMerge: true}); err != nil {
			b.Fatal(err)
		}
	}
	for p.got < want {
		p.tick()
	}
	p.spent += time.Since(start)
	p.sent += c.Counters.PacketsSent - packets
	p.wire += c.Counters.BytesSent - wire
}

// BenchmarkPacketSize is what a found packet size is worth over loopback: time, packets and bytes of 64 KiB, of both ends and the system, beside packets of
// 1024 bytes in the same run.
func BenchmarkPacketSize(b *testing.B) {
	for _, link := range []driver.Link{driver.PlainSalted{}, driver.Netcode{}} {
		for _, size := range []int{1200, 32 << 10} {
			for _, offload := range []bool{true, false} {
				b.Run(fmt.Sprintf("%T/%d/offload=%v", link, size, offload), func(b *testing.B) {
					base, found := newSizedPair(b, link, offload, -1, size), newSizedPair(b, link, offload, 0, size)
					base.spent, base.sent, base.wire, found.spent, found.sent, found.wire = 0, 0, 0, 0, 0, 0
					for b.Loop() {
						base.round(b)
						found.round(b)
					}
					b.ReportMetric(float64(found.spent)/float64(base.spent), "time/base")
					b.ReportMetric(float64(found.sent)/float64(base.sent), "packets/base")
					b.ReportMetric(float64(found.wire+28*found.sent)/float64(base.wire+28*base.sent), "bytes/base")
					b.ReportMetric(float64(found.cl.Server().Stats().PacketSize), "B/packet")
					for _, p := range []*sizedPair{base, found} {
						require.NoError(b, p.cl.Close())
						require.NoError(b, p.srv.Close())
					}
				})
			}
		}
	}
}
