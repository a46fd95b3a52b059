package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func init() {
	register(
		attack{area: "core", name: "a socket that is never empty", promise: "a dispatch reads a bounded number of datagrams, and the next tick comes", bound: atMost(64, "batches"), run: endlessSocket},
		attack{area: "core", name: "a flood, real sockets", promise: "a client plays on while garbage comes as fast as a core sends it: its p99", bound: atMost(2000, "ms"), run: flood, alone: true},
	)
}

// endless is a socket that always has a batch of garbage to read, up to a limit that only a dispatch without an end reaches.
type endless struct {
	addr  netip.AddrPort
	reads int
	limit int
}

func (s *endless) TryReadBatch(msgs []udp.Message) (int, error) {
	if s.reads++; s.reads > s.limit {
		return 0, nil
	}
	for i := range msgs {
		m := &msgs[i]
		m.N = min(1078, len(m.Buf))
		for j := range 32 {
			m.Buf[j] = byte(s.reads*7 + i + j)
		}
		m.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(s.reads), byte(i)}), 999)
	}
	return len(msgs), nil
}

func (s *endless) ReadBatch(msgs []udp.Message) (int, error)  { return s.TryReadBatch(msgs) }
func (s *endless) WriteBatch(msgs []udp.Message) (int, error) { return len(msgs), nil }
func (s *endless) BatchSize() int                             { return 64 }
func (s *endless) LocalAddr() netip.AddrPort                  { return s.addr }
func (s *endless) SetReadDeadline(time.Time) error            { return nil }
func (s *endless) Close() error                               { return nil }

// endlessSocket is the most batches that one dispatch reads.
func endlessSocket(e *env) figure {
	most := 0
	for name, link := range links {
		s := &endless{addr: netip.MustParseAddrPort("10.0.0.1:7777"), limit: 4096}
		d, err := driver.Listen("", driver.Config{Socket: s, Link: link()})
		if err != nil {
			return broken("%v", err)
		}
		now := time.Now()
		for range 3 {
			before := s.reads
			now = now.Add(tick)
			d.TickDispatch(now)
			d.TickFlush(now)
			most = max(most, s.reads-before)
		}
		e.notef("%s: up to %d", name, most)
		if err := d.Close(); err != nil {
			return broken("%v", err)
		}
	}
	return figure{value: float64(most)}
}

// flood sends garbage to a real server as fast as a goroutine can while a client of it plays. The figure is the client's
// 99th percentile of round trips, in real time, so its bound is generous.
func flood(e *env) figure {
	s := driver.Netcode{ProtocolID: 42, Key: gameKey}
	server, err := driver.Listen("127.0.0.1:0", driver.Config{Link: s, Timeout: 10 * time.Second, Channels: []channel.Type{{Name: dataName, ClientOpen: true,
		Accept: func(*channel.Channel) channel.Handler { return answerer{} }}}})
	if err != nil {
		return broken("%v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var ticks atomic.Int64
	running.Go(func() { _ = server.Run(ctx, func(time.Time) { ticks.Add(1) }) })
	p := &pinger{}
	client, err := driver.Dial(server.LocalAddr().String(), driver.Config{Link: s, Timeout: 10 * time.Second, Channels: []channel.Type{{Name: dataName, ClientOpen: true}},
		Joined: func(c *driver.Conn) { p.ch, _ = openData(c.Conn, p) }, // there is room
		Closed: func(_ *driver.Conn, r netconn.CloseResult) { p.end.Store(&r) }})
	if err != nil {
		return broken("%v", err)
	}
	running.Go(func() { _ = client.Run(ctx, p.step) })
	wait := func(d time.Duration, is func() bool) bool {
		for end := time.Now().Add(d); time.Now().Before(end) && !is(); {
			time.Sleep(5 * time.Millisecond)
		}
		return is()
	}
	if !wait(20*time.Second, func() bool { return p.count.Load() > 30 }) {
		return broken("the client couldn't play: %v", p.end.Load())
	}
	var sent atomic.Int64
	flooding, calm := context.WithCancel(ctx)
	defer calm()
	if err := garbage(flooding, &running, server.LocalAddr(), &sent); err != nil {
		return broken("%v", err)
	}
	before, began := ticks.Load(), time.Now()
	p.begin.Store(true)
	wait(time.Duration(e.pick(3, 20))*time.Second, func() bool { return p.end.Load() != nil })
	took := time.Since(began)
	n, served := sent.Load(), ticks.Load()-before
	calm()
	if end := p.end.Load(); end != nil {
		return broken("the client was lost: %v", end)
	}
	if !wait(20*time.Second, func() bool { return p.count.Load() > 60 }) {
		return broken("no echo came during the flood")
	}
	stop()
	running.Wait()
	slices.Sort(p.took)
	if len(p.took) == 0 {
		return broken("no round trips")
	}
	e.notef("%.0f datagrams a second, %.1f ticks a second, %d round trips, the longest %v", float64(n)/took.Seconds(), float64(served)/took.Seconds(), len(p.took), p.took[len(p.took)-1])
	return figure{value: float64(p.took[len(p.took)*99/100]) / float64(time.Millisecond)}
}

// garbage sends to an address as fast as it can until ctx is done.
func garbage(ctx context.Context, running *sync.WaitGroup, to netip.AddrPort, sent *atomic.Int64) error {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return fmt.Errorf("the attacker's socket: %w", err)
	}
	running.Go(func() {
		defer func() { _ = c.Close() }()
		var p [1078]byte
		for ctx.Err() == nil {
			for i := range 64 {
				p[0] = byte(i)
				if _, err := c.Write(p[:]); err == nil {
					sent.Add(1)
				}
			}
		}
	})
	return nil
}

// answerer echoes.
type answerer struct{ channel.Nop }

// ReceivedBunch echoes the number in a bunch.
func (answerer) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	_ = sendNumber(ch, in.Data.ReadUint64(), 8) // a full buffer is the client's own doing
}

// pinger sends a number each tick and measures when its echo comes.
type pinger struct {
	channel.Nop
	ch    *channel.Channel
	sent  []time.Time
	took  []time.Duration
	count atomic.Int64
	begin atomic.Bool
	end   atomic.Pointer[netconn.CloseResult]
}

func (p *pinger) step(now time.Time) {
	if p.ch != nil && sendNumber(p.ch, uint64(len(p.sent)), 8) == nil {
		p.sent = append(p.sent, now)
	}
}

// ReceivedBunch measures.
func (p *pinger) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	n := in.Data.ReadUint64()
	if n < uint64(len(p.sent)) && p.begin.Load() {
		p.took = append(p.took, time.Since(p.sent[n]))
	}
	p.count.Add(1)
}
