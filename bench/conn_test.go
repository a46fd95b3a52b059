package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
)

// counter is a handler that only counts.
type counter struct {
	channel.Nop
	bunches int
}

func (c *counter) ReceivedBunch(*channel.Channel, *bunch.In) { c.bunches++ }

// backToBack is two connections whose packets reach the other in the same call.
type backToBack struct {
	conns [2]*netconn.Conn
	chans [2]*channel.Channel
	got   counter
	now   time.Duration
}

func newBackToBack(b testing.TB) *backToBack {
	p := &backToBack{}
	types := []channel.Type{{Name: bunch.Control, ClientOpen: true, Static: true, Accept: func(ch *channel.Channel) channel.Handler {
		p.chans[1] = ch
		return &p.got
	}}}
	for i := range p.conns {
		peer := &p.conns[1-i]
		c, err := netconn.New(netconn.Config{Server: i == 1, Channels: types, LowLevelSend: func(d []byte) {
			if err := (*peer).ReceivedPacket(p.now, d); err != nil {
				b.Error(err)
			}
		}}, 0, 5, 5)
		if err != nil {
			b.Fatal(err)
		}
		p.conns[i] = c
	}
	ch, err := p.conns[0].Open(bunch.Control, &p.got)
	if err == nil {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	}
	if err != nil {
		b.Fatal(err)
	}
	p.chans[0] = ch
	for range 8 {
		p.tick()
	}
	return p
}

func (p *backToBack) tick() {
	p.now += time.Second / 60
	p.conns[0].Tick(p.now)
	p.conns[1].Tick(p.now)
}

// BenchmarkPacket sends one bunch each way a tick, so that every packet carries a bunch and an ack.
// An operation is one packet: sent, received, and acked by the next.
func BenchmarkPacket(b *testing.B) {
	for _, size := range []int{100, 950} {
		for _, reliable := range []bool{true, false} {
			b.Run(fmt.Sprintf("%dB/reliable=%v", size, reliable), func(b *testing.B) { packets(b, size, reliable) })
		}
	}
	b.Run("1000B in two parts/reliable=true", func(b *testing.B) { packets(b, 1000, true) })
}

func packets(b *testing.B, size int, reliable bool) {
	p := newBackToBack(b)
	out := bunch.Out{Data: make([]byte, size), Reliable: reliable}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += 2 {
		for _, ch := range p.chans {
			if _, err := ch.SendBunch(&out); err != nil {
				b.Fatal(err)
			}
		}
		p.tick()
	}
	b.StopTimer()
	if p.got.bunches < b.N {
		b.Fatalf("%d of %d bunches arrived", p.got.bunches, b.N)
	}
}

// BenchmarkBunchHeader writes and reads headers with 10 bytes: of a small bunch, and of a part of a large one in packets as netcode has them.
func BenchmarkBunchHeader(b *testing.B) {
	h := bunch.Header{ChIndex: 300, Reliable: true, WireSeq: 77, Name: bunch.Actor, Bits: 80}
	b.Run("small", func(b *testing.B) { headers(b, &bunch.Protocol{}, &h) })
	h.Partial, h.PartialInitial = true, true
	b.Run("part", func(b *testing.B) { headers(b, &bunch.Protocol{MaxPacket: 1200, SequenceBits: 14}, &h) })
}

func headers(b *testing.B, p *bunch.Protocol, h *bunch.Header) {
	data := make([]byte, 10)
	buf := make([]byte, 64)
	var w bitio.Writer
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			w.Reset(buf)
			p.Write(&w, h, data)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		var r, payload bitio.Reader
		var got bunch.Header
		for range b.N {
			r.Reset(buf, w.Len())
			if err := p.Read(&r, &got, &payload); err != nil {
				b.Fatal(err)
			}
		}
	})
}
