package main

import (
	"bytes"
	"errors"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/salted"
	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

func init() {
	register(
		attack{area: "rates", name: "after 64 kbit/s", promise: "Adaptive uses 90 % of 10 Mbit/s again after 30 s of 64 kbit/s, or a suspend or freeze of 10 s, within", bound: atMost(5, "s"), run: recoveries},
		attack{area: "rates", name: "random histories", promise: "and so after any history of rates, darkness and suspends", bound: atMost(5, "s"), run: histories},
		attack{area: "rates", name: "20 % loss", promise: "20 % random loss on a path that isn't full takes nothing of what the application asks", bound: atLeast(0.9, "of it"), run: heavyLoss},
		attack{area: "rates", name: "bursts at 20 % loss", promise: "nor does it hold up an application that sends little, with 21 kB more each second: its queue waits for at most", bound: atMost(0.6, "s"), run: burstsAtLoss},
		attack{area: "rates", name: "GoodBad without acks", promise: "GoodBad never turns good while no ack comes, and leaves good soon after the last: good for", bound: atMost(1.1, "s"), run: goodWithoutAcks},
		attack{area: "rates", name: "1,000 packets in one dispatch", promise: "packets that arrived all at once are all acked: taken for lost", bound: none("packets"), run: oneDispatch},
		attack{area: "rates", name: "a protocol without a name", promise: "its settings count: replaced", bound: none("settings"), run: namelessProtocol},
		attack{area: "rates", name: "one address, 64 ports", promise: "one address doesn't hold the salted link's slots; honest ones kept out", bound: none("kept out"), run: manyPorts},
	)
}

func newAdaptive() paths.Controller { return adaptive() }

const mbit = 1e6

// steps is a rate that changes at times.
func steps(first float64, at []time.Duration, bits []float64) func(time.Duration) float64 {
	return func(now time.Duration) float64 {
		r := first
		for i := range at {
			if now >= at[i] {
				r = bits[i]
			}
		}
		return r
	}
}

// recoveries is the longest time until the rate is found again.
func recoveries(e *env) figure {
	const sec = time.Second
	span := []paths.Span{{From: 10 * sec, To: 20 * sec}}
	link := func(l paths.Link) func() *paths.Link {
		return func() *paths.Link {
			l := l
			l.Delay, l.Buffer = 20*time.Millisecond, 200*time.Millisecond
			return &l
		}
	}
	trickle := steps(10*mbit, []time.Duration{10 * sec, 40 * sec}, []float64{64e3, 10 * mbit})
	list := []paths.Path{
		{Name: "64 kbit/s", Link: link(paths.Link{Rate: trickle, Bytes: 125_000}), Length: 60 * sec, Events: []time.Duration{40 * sec}},
		{Name: "64 kbit/s, short queue", Link: link(paths.Link{Rate: trickle}), Length: 60 * sec, Events: []time.Duration{40 * sec}},
		{Name: "suspended", Link: link(paths.Link{Rate: paths.Constant(10 * mbit)}), Length: 35 * sec, Events: []time.Duration{20 * sec}, Asleep: span},
		{Name: "frozen", Link: link(paths.Link{Rate: paths.Constant(10 * mbit), Held: span}), Length: 35 * sec, Events: []time.Duration{20 * sec}},
	}
	worst := time.Duration(0)
	for _, p := range list {
		for _, hz := range []int{30, 60} {
			p.RTT, p.Hz = 40*time.Millisecond, hz
			f := p.Run(e.seed, newAdaptive)
			e.notef("%s at %d Hz: %v", p.Name, hz, f.Recovery)
			worst = max(worst, f.Recovery)
		}
	}
	return figure{value: worst.Seconds()}
}

// histories is the same after random ones.
func histories(e *env) figure {
	const sec = time.Second
	worst := time.Duration(0)
	for run := range e.pick(8, 60) {
		rng := e.rng
		draw := func() float64 { return []float64{64e3, 256e3, mbit, 3 * mbit, 10 * mbit, 30 * mbit}[rng.IntN(6)] }
		first := draw()
		p := paths.Path{RTT: time.Duration(5+rng.IntN(140)) * time.Millisecond, Hz: 30 + 30*rng.IntN(2)}
		l := paths.Link{Delay: p.RTT / 2, Buffer: time.Duration(50+rng.IntN(400)) * time.Millisecond, Loss: float64(rng.IntN(3)) / 100}
		var at []time.Duration
		var bits []float64
		now := 5 * sec
		for range 1 + rng.IntN(6) {
			end := now + time.Duration(1+rng.IntN(10))*sec
			switch span := (paths.Span{From: now, To: end}); rng.IntN(6) {
			case 0:
				l.Held = append(l.Held, span)
			case 1:
				l.Dark = append(l.Dark, span)
			case 2:
				p.Asleep = append(p.Asleep, span)
			case 3:
				p.PeerAsleep = append(p.PeerAsleep, span)
			default:
				at, bits = append(at, now), append(bits, draw())
			}
			now = end
		}
		last := []float64{mbit, 10 * mbit, 30 * mbit}[rng.IntN(3)]
		at, bits = append(at, now), append(bits, last)
		l.Rate = steps(first, at, bits)
		p.Link = func() *paths.Link { l := l; return &l }
		p.Events, p.Length = []time.Duration{now}, now+15*sec
		f := p.Run(rng.Uint64(), newAdaptive)
		if f.Recovery > 5*sec {
			e.notef("run %d: %v: RTT %v, %d Hz, buffer %v, loss %v, rates %v %v %v, held %v, dark %v, asleep %v %v", run, f.Recovery, p.RTT, p.Hz, l.Buffer, l.Loss, first, at, bits, l.Held, l.Dark, p.Asleep, p.PeerAsleep)
		}
		worst = max(worst, f.Recovery)
	}
	return figure{value: worst.Seconds()}
}

func heavyLoss(e *env) figure {
	least := 1.0
	for _, rtt := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond} {
		p := paths.Path{RTT: rtt, Hz: 30, Length: time.Minute, Demand: 20_000,
			Link: func() *paths.Link {
				return &paths.Link{Rate: paths.Constant(10 * mbit), Delay: rtt / 2, Buffer: 200 * time.Millisecond, Loss: 0.2, AckLoss: 0.2}
			}}
		least = min(least, p.Run(e.seed, newAdaptive).Share)
	}
	return figure{value: least}
}

// burstsAtLoss is the longest wait of what an application offers, once it has run for 10 s.
func burstsAtLoss(e *env) figure {
	const hz, from = 20, 10 * time.Second
	longest := time.Duration(0)
	for seed := e.seed; seed < e.seed+10; seed++ {
		for _, loss := range []float64{0.1, 0.2} {
			for _, rate := range []int{2000, 20_000, 60_000} {
				ticks := 0
				f := &paths.Flow{Controller: adaptive(), Tick: time.Second / hz, AckEvery: time.Second / hz, Jitter: time.Millisecond, Resend: true}
				f.Offer = func(time.Duration) int {
					if ticks++; ticks%hz == 0 {
						return rate/hz + 21_000
					}
					return rate / hz
				}
				paths.New(seed, &paths.Link{Rate: paths.Constant(10 * mbit), Delay: 25 * time.Millisecond, Buffer: 200 * time.Millisecond, Loss: loss, AckLoss: loss}, f).Run(40 * time.Second)
				for _, o := range f.Offers() {
					if o.At >= from {
						longest = max(longest, o.Wait)
					}
				}
			}
		}
	}
	return figure{value: longest.Seconds()}
}

// goodWithoutAcks is the longest time in good mode without an ack, before the first one and after many.
func goodWithoutAcks(e *env) figure {
	worst, good := time.Duration(0), time.Duration(0)
	for _, acks := range []time.Duration{0, 20 * time.Second} {
		g := congestion.NewGoodBad(1200)
		for now, id := time.Duration(0), int64(0); now < 2*time.Minute; now += tick {
			if g.Budget(now) > 0 {
				g.OnSent(now, id, 1000)
				if now < acks {
					g.OnAck(now, id, 1000, 40*time.Millisecond)
				} else if e.rng.IntN(2) == 0 {
					g.OnLost(now, id, 1000)
				}
				id++
			}
			g.Tick(now)
			if good += tick; !g.Good() || now < acks {
				good = 0
			}
			worst = max(worst, good)
		}
	}
	return figure{value: worst.Seconds()}
}

// oneDispatch has a server take 1,000 packets at once, with and without a gap.
func oneDispatch(e *env) figure {
	lost := uint64(0)
	for _, n := range []int{255, 256, 257, 513, 1000} {
		r, err := newRig(e, netsim.Settings{}, func(_ int, c *netconn.Config) {
			c.Protocol = netconn.Bunchnet()
			c.NetSpeed = 100 << 20
		})
		if err != nil {
			return broken("%v", err)
		}
		ch, err := r.conns[0].Open(bunch.Control, channel.Nop{})
		if err != nil {
			return broken("%v", err)
		}
		if _, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true}); err != nil {
			return broken("%v", err)
		}
		for range 60 {
			r.step(nil)
		}
		before := r.conns[0].Counters
		big := make([]byte, 900)
		for range n {
			if _, err := ch.SendBunch(&bunch.Out{Data: big, NoMerge: true}); err != nil {
				return broken("%d packets don't leave: %v", n, err)
			}
		}
		for range 60 {
			r.step(nil)
		}
		after := r.conns[0].Counters
		e.notef("%d: %d acked, %d lost", n, after.PacketsAcked-before.PacketsAcked, after.PacketsLost-before.PacketsLost)
		lost += after.PacketsLost - before.PacketsLost
		if got := after.PacketsAcked - before.PacketsAcked; got < uint64(n) {
			lost += uint64(n) - got
		}
	}
	return figure{value: float64(lost)}
}

// namelessProtocol gives protocols without a name a setting each that can't be.
func namelessProtocol(*env) figure {
	replaced := 0
	for _, p := range []netconn.Protocol{{PacketWindow: 3}, {Bunch: bunch.Protocol{MaxPacket: 3}}, {Unreal: true, PacketWindow: 1 << 20}, {ReliableBuffer: 8, PacketWindow: 3}} {
		_, err := netconn.New(netconn.Config{Protocol: p, LowLevelSend: func([]byte) {}}, 0, 1, 1)
		if !errors.Is(err, netconn.ErrConfig) {
			replaced++
		}
	}
	return figure{value: float64(replaced)}
}

// slotServer is a salted server in virtual time whose packets arrive at once.
type slotServer struct {
	server  *salted.Server
	clients map[netip.AddrPort]*slotClient
}

type slotClient struct {
	addr   netip.AddrPort
	client *salted.Client
	in     [][]byte
	out    [][]byte
}

func (w *slotServer) Send(to netip.AddrPort, p []byte) {
	if c := w.clients[to]; c != nil {
		c.in = append(c.in, bytes.Clone(p))
	}
}
func (w *slotServer) Connected(int, salted.ClientInfo) {}
func (w *slotServer) Payload(int, []byte)              {}
func (w *slotServer) Disconnected(int, salted.Reason)  {}

func (c *slotClient) Send(_ netip.AddrPort, p []byte) { c.out = append(c.out, bytes.Clone(p)) }
func (c *slotClient) StateChanged(_, _ salted.State)  {}
func (c *slotClient) Payload([]byte)                  {}

// manyPorts has one IPv4 address and one /64 take what slots they get, with thousands of ports; then 8 honest ones come.
func manyPorts(e *env) figure {
	w := &slotServer{clients: map[netip.AddrPort]*slotClient{}}
	var err error
	if w.server, err = salted.NewServer(salted.ServerConfig{ProtocolID: 42, Slots: 64, Handler: w}); err != nil {
		return broken("%v", err)
	}
	var honest, all []*slotClient
	add := func(addr netip.AddrPort) (*slotClient, error) {
		c := &slotClient{addr: addr}
		var err error
		if c.client, err = salted.NewClient(salted.ClientConfig{ProtocolID: 42, Handler: c}); err != nil {
			return nil, err
		}
		w.clients[addr] = c
		all = append(all, c)
		return c, c.client.Connect(0, gameAddr)
	}
	for i := range uint16(64) {
		six := netip.MustParseAddr("2001:db8:0:1::").As16()
		six[15], six[8] = byte(i), byte(e.rng.Uint32())
		for _, a := range []netip.Addr{attackerAddr(0).Addr(), netip.AddrFrom16(six), netip.AddrFrom16(attackerAddr(0).Addr().As16())} {
			if _, err := add(netip.AddrPortFrom(a, 5000+i)); err != nil {
				return broken("%v", err)
			}
		}
	}
	now := time.Duration(0)
	run := func(d time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			for _, c := range all {
				c.client.Tick(now)
				for _, p := range c.out {
					w.server.Receive(now, c.addr, p)
				}
				in := c.in
				c.in, c.out = nil, nil
				for _, p := range in {
					c.client.Receive(now, gameAddr, p)
				}
			}
			w.server.Tick(now)
		}
	}
	run(3 * time.Second)
	e.notef("%d of 64 slots are taken", w.server.Clients())
	for i := range 8 {
		c, err := add(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 7, 0, byte(i)}), 4000))
		if err != nil {
			return broken("%v", err)
		}
		honest = append(honest, c)
	}
	run(3 * time.Second)
	out := 0
	for _, c := range honest {
		if c.client.State() != salted.Connected {
			out++
		}
	}
	return figure{value: float64(out)}
}
