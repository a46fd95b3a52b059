package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	for _, link := range []string{"plain", "netcode", "salted", "unreal"} {
		register(attack{area: "core", name: "blackout, " + link, promise: "whatever the darkness, below Timeout both ends come back two keep-alives, ten ticks, what the rate takes for all that is unacked, and so long after it",
			bound: atMost(5, "s"), run: func(e *env) figure { return blackouts(e, link) }})
	}
}

// blackout is a time in which packets get lost, in one direction or both, and how the ends are set.
type blackout struct {
	link            string
	dark            [2]bool // what the client sends, and the server
	length          time.Duration
	keepAlive, tick time.Duration
	busy            bool // both ends go on sending; or nothing is said but before and after
	protocol        netconn.Protocol
	never           bool // Timeout is never, not only above the length
	copies          int
	ackDelay        time.Duration
}

func (b *blackout) String() string {
	way := "both ways"
	if !b.dark[0] {
		way = "server to client"
	} else if !b.dark[1] {
		way = "client to server"
	}
	return fmt.Sprintf("%s, %v %s, KeepAlive %v, tick %v, busy %v, %s, Timeout %v, %d copies, AckDelay %v", b.link, b.length, way, b.keepAlive, b.tick, b.busy, b.protocol.Name, b.timeout(), b.copies, b.ackDelay)
}

func (b *blackout) timeout() time.Duration {
	if b.never {
		return -1
	}
	return b.length + 3*b.keepAlive + 30*time.Second
}

// blackouts plays every combination, or a sample of them when it has to be quick, and measures the slowest return less two keep-alives, ten ticks and what the
// rate takes for what is unacked at the end: what gathered in the dark is paced, and a tick gives credit for a thirtieth of a second at most.
func blackouts(e *env, link string) figure {
	var all []blackout
	for _, length := range []time.Duration{time.Second, 10 * time.Second, 45 * time.Second, 300 * time.Second, 640 * time.Second, 700 * time.Second, 3600 * time.Second} {
		for _, keepAlive := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second} {
			for _, tick := range []time.Duration{time.Millisecond, 10 * time.Millisecond, tick, 100 * time.Millisecond, time.Second} {
				if link != "plain" && length/tick > 400_000 {
					continue // of 640 s and more at ticks of 1 ms: three quarters of all ticks, in which a link does what it does in others
				}
				for way := range 3 {
					b := blackout{link: link, dark: [2]bool{way != 1, way != 2}, length: length, keepAlive: keepAlive, tick: tick, protocol: netconn.Bunchnet()}
					for _, b.busy = range []bool{false, true} {
						b.never, b.copies, b.ackDelay = e.rng.IntN(2) == 0, 2*e.rng.IntN(2), time.Duration(e.rng.IntN(2))*20*time.Millisecond
						if link == "plain" && e.rng.IntN(3) == 0 {
							b.protocol = netconn.Unreal53(true)
							b.protocol.FirstFree = false // both ends open channels here
						}
						all = append(all, b)
					}
				}
			}
		}
	}
	e.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	budget := 500_000 // ticks that a sample takes
	var worst time.Duration
	lost, played := 0, 0
	for i := range all {
		b := &all[i]
		if ticks := int(b.length / b.tick); e.quick && ticks > budget {
			continue
		} else if budget -= ticks; link != "plain" {
			budget -= 4 * ticks
		}
		played++
		took, queued, err := b.play(e)
		if err != nil {
			if lost++; lost <= 5 {
				e.notef("%v: %v", b, err)
			}
			continue
		}
		if late := took - 2*b.keepAlive - 10*b.tick - queued; late > worst {
			worst = late
			e.notef("%v: back after %v, of which what was unacked takes %v", b, took, queued)
		}
	}
	e.notef("%d of %d combinations played, %d lost", played, len(all), lost)
	if lost > 0 {
		return broken("%d of %d blackouts lost the connection; the worst other took %v", lost, played, worst)
	}
	return figure{value: worst.Seconds()}
}

// party is two ends that talk with each other in numbers.
type party struct {
	ends  [2]talker
	step  func()                 // a tick of both
	now   func() time.Duration   // of the network
	cut   func(i int, dark bool) // what end i sends is lost, or no longer
	ended func() error           // why a connection has ended, or nil
}

// talker is an end that sends a number reliably and one unreliably at each tick, and counts those of the other.
type talker struct {
	channel.Nop
	ch      *channel.Channel
	sent    uint64
	next    uint64 // expected
	wrong   int
	talking bool
}

// ReceivedBunch checks that reliable numbers come in order.
func (t *talker) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if !in.Reliable {
		return
	}
	if in.Data.ReadUint64() != t.next {
		t.wrong++
	}
	t.next++
}

// talk is what an end does at each of its ticks.
func (t *talker) talk() {
	if t.ch == nil || !t.talking {
		return
	}
	if t.ch.Room() > 1 && sendNumber(t.ch, t.sent, 40) == nil {
		t.sent++
	}
	if t.sent > 0 {
		_, _ = t.ch.SendBunch(&bunch.Out{Data: numbered(t.sent, 40)}) // refused while too much is in flight
	}
}

// numberBytes is a number and its bunch's header. The game sends unreliable numbers at each tick without asking whether there is room, which takes
// all of the rate of 100,000 bytes a second but the quarter that reliable bunches have at least.
const (
	numberBytes  = 48
	reliableRate = 25_000.0
)

// play is how long it takes after the blackout until all that was sent before its end, and something newer, has arrived
// at both ends, and how much of that the unacked bunches take at least.
func (b *blackout) play(e *env) (took, queued time.Duration, err error) {
	p, err := b.party(e)
	if err != nil {
		return 0, 0, err
	}
	all := func(n [2]uint64) bool { return p.ends[1].next >= n[0] && p.ends[0].next >= n[1] }
	sent := func(more uint64) [2]uint64 { return [2]uint64{p.ends[0].sent + more, p.ends[1].sent + more} }
	talk := func(on bool) { p.ends[0].talking, p.ends[1].talking = on, on }
	until := func(end time.Duration, is func() bool) bool {
		for p.now() < end {
			if p.step(); is() {
				return true
			}
		}
		return is()
	}
	talk(true)
	if !until(p.now()+max(20*time.Second, 20*b.tick), func() bool { return all([2]uint64{3, 3}) }) {
		return 0, 0, fmt.Errorf("never began: %v", p.ended())
	}
	talk(b.busy)
	for i, dark := range b.dark {
		p.cut(i, dark)
	}
	until(p.now()+b.length, func() bool { return false })
	if err := p.ended(); err != nil {
		return 0, 0, fmt.Errorf("ended in the dark: %w", err)
	}
	light := p.now()
	p.cut(0, false)
	p.cut(1, false)
	for i := range p.ends {
		queued = max(queued, time.Duration(float64(p.ends[i].ch.NumOutRec())*numberBytes/reliableRate*float64(time.Second)))
	}
	talk(true)
	want := sent(1)
	if !until(light+60*time.Second+4*b.keepAlive, func() bool { return all(want) }) {
		return 0, 0, fmt.Errorf("didn't come back: %d and %d wanted, %d and %d came; %v", want[0], want[1], p.ends[1].next, p.ends[0].next, p.ended())
	}
	took = p.now() - light
	if n := p.ends[0].wrong + p.ends[1].wrong; n > 0 {
		return took, queued, fmt.Errorf("%d numbers came twice or out of order", n)
	}
	return took, queued, nil
}

const blackoutLag = 30 * time.Millisecond

func (b *blackout) party(e *env) (*party, error) {
	if b.link == "plain" {
		return b.plain(e)
	}
	return b.overLink(e)
}

// plain is a party of two connections without a link.
func (b *blackout) plain(e *env) (*party, error) {
	p := &party{}
	r, err := newRig(e, netsim.Settings{Lag: blackoutLag}, func(i int, c *netconn.Config) {
		c.Protocol, c.KeepAlive, c.Timeout, c.AckDelay = b.protocol, b.keepAlive, b.timeout(), b.ackDelay
		c.Redundancy = netconn.Redundancy{Copies: b.copies, Adaptive: true}
		c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &p.ends[i] }
	})
	if err != nil {
		return nil, err
	}
	r.tick = b.tick
	if err = r.hello(); err != nil {
		return nil, err
	}
	for range 3 + 3*blackoutLag/b.tick {
		r.step(nil)
	}
	for i := range p.ends {
		if p.ends[i].ch, err = r.conns[i].Open(dataName, &p.ends[i]); err != nil {
			return nil, err
		}
	}
	p.step = func() {
		r.step(func() {
			p.ends[0].talk()
			p.ends[1].talk()
		})
	}
	p.now = func() time.Duration { return r.now }
	p.cut = func(i int, dark bool) { r.dark[i] = dark }
	p.ended = func() error {
		for i, res := range r.results {
			if res != nil {
				return fmt.Errorf("end %d: %v", i, res)
			}
		}
		return nil
	}
	return p, nil
}

// overLink is a party of a server and a client over a link.
func (b *blackout) overLink(e *env) (*party, error) {
	p := &party{}
	w := newWorld(e, links[b.link], func(m *member, c *driver.Config) {
		c.KeepAlive, c.Timeout, c.AckDelay = b.keepAlive, b.timeout(), b.ackDelay
		c.Redundancy = netconn.Redundancy{Copies: b.copies, Adaptive: true}
		i := 0
		if m.host.IsServer() {
			i = 1
		}
		c.Channels[0].Accept = func(*channel.Channel) channel.Handler { return &p.ends[i] }
		m.game = func(time.Duration) {
			if p.ends[i].ch == nil && m.conn != nil {
				p.ends[i].ch, _ = openData(m.conn.Conn, &p.ends[i]) // there is room for two
			}
			p.ends[i].talk()
		}
	})
	client := w.join(netsim.Settings{Lag: blackoutLag})
	w.server.host.SetTick(b.tick)
	client.host.SetTick(b.tick)
	hosts := [2]*member{client, w.server}
	cuts := [2]bool{}
	p.step = func() { _ = w.run(max(b.tick, tick)) } // the error is told by ended
	p.now = w.Now
	p.cut = func(i int, dark bool) {
		switch {
		case dark && !cuts[i]:
			w.Cut(hosts[i].host, hosts[1-i].host)
		case !dark && cuts[i]:
			w.Join(hosts[i].host, hosts[1-i].host)
		}
		cuts[i] = dark
	}
	p.ended = func() error {
		for _, m := range hosts {
			if m.result != nil {
				return fmt.Errorf("%s: %v", m.host.Name(), m.result)
			}
		}
		return w.err
	}
	return p, nil
}
