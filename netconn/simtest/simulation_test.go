package simtest

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// pinger is a client that sends a number in each tick, or the server that sends it back.
type pinger struct {
	h       *Host
	s       *Socket
	to      netip.AddrPort
	n       uint32
	back    []uint32
	froms   map[netip.AddrPort]int
	times   []time.Time
	crashed int
}

func (p *pinger) Crashed() { p.crashed++ }

func (p *pinger) Tick(now time.Time) error {
	p.times = append(p.times, now)
	msgs := make([]udp.Message, 4)
	for i := range msgs {
		msgs[i].Buf = make([]byte, 100)
	}
	for {
		n, err := p.s.TryReadBatch(msgs)
		if err != nil || n == 0 {
			break
		}
		for _, m := range msgs[:n] {
			p.froms[m.Addr]++
			if p.h.IsServer() {
				if _, err := p.s.WriteBatch([]udp.Message{{Buf: m.Data(), Addr: m.Addr}}); err != nil {
					return err
				}
			} else {
				p.back = append(p.back, binary.LittleEndian.Uint32(m.Buf))
			}
		}
	}
	if p.h.IsServer() {
		return nil
	}
	p.n++
	_, err := p.s.WriteBatch([]udp.Message{{Buf: binary.LittleEndian.AppendUint32(nil, p.n), Addr: p.to}})
	return err
}

// pingWorld is a server and a client that ping.
func pingWorld(t *testing.T, seed uint64, net netsim.Settings) (w *Simulation, server, client *Host) {
	w = NewSimulation(seed, func(h *Host) (Program, error) {
		p := &pinger{h: h, froms: map[netip.AddrPort]int{}}
		if !h.IsServer() {
			p.s, p.to = h.Open(), netip.AddrPortFrom(h.Simulation().ServerOf(h).Addr(), 7)
			return p, nil
		}
		var err error
		p.s, err = h.Listen(7)
		return p, err
	})
	server, client = w.AddHost("server1", true), w.AddHost("client1", false)
	require.NoError(t, client.SetNet(net, net))
	return w, server, client
}

func of(h *Host) *pinger { return h.Program().(*pinger) }

func TestWorldPings(t *testing.T) {
	w, _, client := pingWorld(t, 1, netsim.Settings{Lag: 30 * time.Millisecond})
	w.RunUntil(2 * time.Second)
	require.Nil(t, w.Failure())
	require.Equal(t, 2*time.Second, w.Now())
	back := of(client).back
	require.InDelta(t, 120-5, len(back), 2)
	for i, n := range back {
		require.Equal(t, back[0]+uint32(i), n)
	}
	again, _, _ := pingWorld(t, 1, netsim.Settings{Lag: 30 * time.Millisecond})
	again.RunUntil(2 * time.Second)
	require.Equal(t, w.Hash(), again.Hash())
	require.Equal(t, w.Counters, again.Counters)
}

// TestHashIsTheSameEverywhere: of the network alone, which nothing but this package and netsim changes.
func TestHashIsTheSameEverywhere(t *testing.T) {
	w, _, client := pingWorld(t, 7, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 50 * time.Millisecond, Loss: 10, Dup: 5, Order: 5, Corrupt: 3, Bandwidth: 1e5})
	w.At(time.Second, client.Rebind)
	w.RunUntil(3 * time.Second)
	require.Equal(t, "0129ad8165335dd0", hex(w.Hash()))
}

func hex(v uint64) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 16)
	for i := range b {
		b[i] = digits[v>>(60-4*i)&15]
	}
	return string(b)
}

func TestCut(t *testing.T) {
	w, server, client := pingWorld(t, 1, netsim.Settings{})
	w.At(time.Second, func() { w.Cut(server, client) })
	w.At(2*time.Second, func() { w.Join(server, client) })
	w.RunUntil(999 * time.Millisecond)
	before := len(of(client).back)
	w.RunUntil(1999 * time.Millisecond)
	require.InDelta(t, before, len(of(client).back), 2, "what was under way may arrive")
	require.Greater(t, w.Counters.Cut, uint64(50))
	w.RunUntil(3 * time.Second)
	require.InDelta(t, before+60, len(of(client).back), 4)
}

func TestRebind(t *testing.T) {
	w, server, client := pingWorld(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
	local := netip.AddrPort{}
	w.At(time.Second, func() { local = of(client).s.LocalAddr(); client.Rebind() })
	w.RunUntil(2 * time.Second)
	require.Len(t, of(server).froms, 2, "the server sees two addresses")
	require.Equal(t, local, of(client).s.LocalAddr(), "the client knows of nothing")
	require.NotEqual(t, local, of(client).s.PublicAddr())
	require.InDelta(t, 6, w.Counters.NoHost, 2, "what was under way to the old address is lost")
}

func TestCrashAndBoot(t *testing.T) {
	w, server, client := pingWorld(t, 1, netsim.Settings{})
	var old *pinger
	w.At(time.Second, func() { old = of(server); server.Crash(500 * time.Millisecond) })
	w.RunUntil(1400 * time.Millisecond)
	require.Nil(t, server.Program())
	require.Equal(t, 1, old.crashed)
	w.RunUntil(2 * time.Second)
	require.Equal(t, 2, server.Boots())
	require.InDelta(t, 90, len(of(client).back), 4)
	require.InDelta(t, 30, w.Counters.NoHost, 3)
}

func TestPauseAndSkew(t *testing.T) {
	w, server, client := pingWorld(t, 1, netsim.Settings{})
	w.At(0, func() { client.Skew(10_000) })
	w.At(time.Second, func() { server.Pause(time.Second) })
	w.RunUntil(1990 * time.Millisecond)
	require.InDelta(t, 60, len(of(client).back), 3)
	w.RunUntil(3 * time.Second)
	require.InDelta(t, 180, len(of(client).back), 4, "nothing is lost by a pause")
	times := of(client).times
	took := times[len(times)-1].Sub(times[0])
	require.InDelta(t, 1.01, took.Seconds()/(float64(len(times)-1)/60), 0.001)
	require.InDelta(t, 1, of(server).times[len(of(server).times)-1].Sub(Epoch).Seconds()/3, 0.01)
}

func TestActionsInOrder(t *testing.T) {
	w, _, _ := pingWorld(t, 1, netsim.Settings{})
	var got []int
	for i, at := range []time.Duration{3, 1, 2, 1, 3} {
		w.At(at*time.Millisecond, func() { got = append(got, i) })
	}
	w.RunUntil(time.Second)
	require.Equal(t, []int{1, 3, 2, 0, 4}, got)
}

func TestPanicIsAFailure(t *testing.T) {
	w, _, _ := pingWorld(t, 1, netsim.Settings{})
	w.At(time.Millisecond, func() { panic("oh") })
	w.RunUntil(time.Second)
	require.NotNil(t, w.Failure())
	require.Equal(t, "panic", w.Failure().Checker)
	require.Contains(t, w.Failure().Text, "oh")
}

func TestOnly(t *testing.T) {
	w := NewSimulation(1, nil)
	w.Only("bounds")
	w.Failf("order", "no")
	require.Nil(t, w.Failure())
	w.Failf("bounds", "yes")
	w.Failf("bounds", "later")
	require.Equal(t, "yes", w.Failure().Text)
}

// TestAllocs: the world itself costs its programs nothing once it runs.
func TestAllocs(t *testing.T) {
	var s *Socket
	var to netip.AddrPort
	msgs := []udp.Message{{Buf: make([]byte, 100)}}
	w := NewSimulation(1, func(h *Host) (Program, error) { return tick(func() { w := s; _, _ = w.TryReadBatch(msgs) }), nil })
	a, b := w.AddHost("server1", true), w.AddHost("client1", false)
	var err error
	s, err = a.Listen(7)
	require.NoError(t, err)
	to = s.LocalAddr()
	from := b.Open()
	now := time.Duration(0)
	out := []udp.Message{{Buf: make([]byte, 100), Addr: to}}
	step := func() {
		_, _ = from.WriteBatch(out)
		now += DefaultTick
		w.RunUntil(now)
	}
	for range 100 {
		step()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(200, step), 1.0)
	require.Nil(t, w.Failure())
}

type tick func()

func (f tick) Tick(time.Time) error { f(); return nil }
