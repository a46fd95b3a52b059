package salted

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllocs(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(300 * time.Millisecond)
	q := &quiet{}
	s := w.server.Server
	s.cfg.Handler, c.cfg.Handler = q, quietClient{q}
	p := make([]byte, Headroom+100)
	now := w.now
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now += 10 * time.Millisecond
		if s.SendPayload(now, 0, p) != nil || c.SendPayload(now, p) != nil {
			t.Fatal("not sent")
		}
		s.Receive(now, c.addr, p)
		_ = s.SendPayload(now, 0, p)
		c.Receive(now, serverAddr, p)
		s.Tick(now)
		c.Tick(now)
		s.NextDeadline()
	}), "a connection")
	r, r2 := request(5), response(5, 6)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		s.Receive(now, clientAddr(7), r)
		s.Receive(now, clientAddr(7), r2)
	}), "strangers")
	require.Positive(t, q.payloads)
}

type quiet struct{ payloads int }

func (*quiet) Send(netip.AddrPort, []byte) {}
func (*quiet) Connected(int, ClientInfo)   {}
func (q *quiet) Payload(int, []byte)       { q.payloads++ }
func (*quiet) Disconnected(int, Reason)    {}

type quietClient struct{ q *quiet }

func (quietClient) Send(netip.AddrPort, []byte) {}
func (quietClient) StateChanged(_, _ State)     {}
func (c quietClient) Payload([]byte)            { c.q.payloads++ }

func BenchmarkPayload(b *testing.B) {
	w := newWorld(b, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(b, c.Connect(w.now, serverAddr))
	w.run(300 * time.Millisecond)
	q := &quiet{}
	w.server.cfg.Handler, c.cfg.Handler = q, quietClient{q}
	p := make([]byte, Headroom+1000)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.SendPayload(w.now, p)
		w.server.Server.Receive(w.now, c.addr, p)
	}
}

func BenchmarkSpoofedRequest(b *testing.B) {
	w := newWorld(b, 1, ServerConfig{})
	w.server.cfg.Handler = &quiet{}
	r := request(5)
	b.ReportAllocs()
	for b.Loop() {
		w.server.Server.Receive(w.now, clientAddr(7), r)
	}
}
