package netconn

import (
	"testing"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

type nullHandler struct{ n int }

func (h *nullHandler) ReceivedBunch(_ *channel.Channel, in *bunch.In) { h.n++ }
func (h *nullHandler) ReceivedAck(*channel.Channel, int64)            {}
func (h *nullHandler) ReceivedNak(*channel.Channel, int64)            {}
func (h *nullHandler) Closed(*channel.Channel, channel.CloseReason)   {}

func BenchmarkPacket100Reliable(b *testing.B) {
	var conns [2]*Conn
	var h nullHandler
	for i := range conns {
		peer := &conns[1-i]
		c, err := New(Config{Server: i == 1, NoPacketInfo: true, LazyAcks: false, Channels: testTypes(func(*channel.Channel) channel.Handler { return &h }),
			LowLevelSend: func(p []byte) { (*peer).ReceivedPacket((*peer).now, p) }}, 0, 1, 1)
		if err != nil {
			b.Fatal(err)
		}
		conns[i] = c
	}
	ctl, _ := conns[0].Open(bunch.Control, &h)
	out := bunch.Out{Data: make([]byte, 100), Reliable: true}
	ctl.SendBunch(&out)
	conns[0].Tick(1)
	conns[1].Tick(1)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now := testTick * 2 * 0
		_ = i
		if _, err := ctl.SendBunch(&out); err != nil {
			b.Fatal(err)
		}
		conns[0].Tick(now)
		conns[1].Tick(now)
	}
}
