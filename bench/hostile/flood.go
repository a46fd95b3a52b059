package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// neverEmpty is a server's port behind which there is always one more datagram of a stranger.
type neverEmpty struct {
	*port
	junk  []byte
	reads int // batches in this tick
	most  int // in any tick
}

// junkBytes is what a datagram of a flood has: a request's size.
const junkBytes = 1078

// TryReadBatch implements udp.Socket: what peers sent, and behind it strangers' datagrams.
func (p *neverEmpty) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := p.port.TryReadBatch(msgs)
	for i := n; i < len(msgs) && err == nil; i++ {
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, p.junk), stranger(p.reads*len(msgs)+i)
	}
	if p.reads++; p.reads > endless {
		return 0, nil // the verdict is clear, and the program shall end
	}
	return len(msgs), err
}

// endless is so many batches in a tick that it is taken for one without end.
const endless = 1 << 16

// endlessFlood plays for a while on a server whose socket is never empty. The verdict is in ticks and datagrams, which are the
// same on every machine.
func endlessFlood(w *tabwriter.Writer, link string) (bool, error) {
	g, err := newGame(link, 64)
	if err != nil {
		return false, err
	}
	g.measure()
	for range 300 {
		g.step(nil)
	}
	base := g.measure()
	socket := &neverEmpty{port: g.port, junk: make([]byte, junkBytes)}
	if err := g.server.Rebind(socket); err != nil {
		return false, err
	}
	delete(g.ports, serverAddr) // Rebind has closed the old one
	g.ports[serverAddr] = g.port
	before, in, bounded := g.refusals(), g.server.Counters.DatagramsIn, g.server.Counters.ReadsBounded
	heap := heapBytes()
	const ticks = 300
	for i := 0; i < ticks && socket.most <= endless; i++ {
		progress("%s: a socket that is never empty, tick %d of %d", link, i, ticks)
		socket.reads = 0
		g.step(nil)
		socket.most = max(socket.most, socket.reads)
	}
	m := g.measure()
	grown := heapBytes() - heap
	var problems []string
	check := func(bad bool, text string) {
		if bad {
			problems = append(problems, text)
		}
	}
	check(socket.most > endless, "a tick without end")
	check(g.server.Counters.ReadsBounded == bounded, "the bound wasn't told")
	check(g.server.Len() != honest, "a player was lost")
	check(m.p99 > base.p99, "players wait")
	check(g.missing() > 0, "echoes missing")
	check(grown > 1<<20, "memory grew")
	a := attack{name: "a socket that is never empty", n: int(g.server.Counters.DatagramsIn - in)}
	g.in, g.answered = 0, 0
	row(w, a, m, g, grown, g.refusalsSince(before), problems)
	return len(problems) == 0, nil
}

// live is a server with one player over the loopback, and what they saw in a while of real time.
type live struct {
	ticks   int
	longest time.Duration // between two ticks
	echoes  []time.Duration
	sent    uint64 // datagrams of the flood
	read    uint64 // datagrams that the server read
	bounded uint64 // ticks that ended at the bound
	lost    bool
}

// pinger is the player: it sends its clock and measures what comes back.
type pinger struct {
	channel.Nop
	ch     *channel.Channel
	began  time.Time
	echoes []time.Duration
}

// ReceivedBunch is an echo.
func (p *pinger) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Bits == 64 {
		p.echoes = append(p.echoes, time.Since(p.began)-time.Duration(in.Data.ReadUint64()))
	}
}

func (p *pinger) step(time.Time) {
	if p.ch != nil && !p.ch.Closing() {
		// a full buffer means that echoes are late, and these show it
		_, _ = p.ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, uint64(time.Since(p.began))), Reliable: true, NoMerge: true})
	}
}

// playLive runs the two for a while; flood has a sender send junk as fast as it can.
func playLive(link driver.Link, lasting time.Duration, flood bool) (live, error) {
	var l live
	p := &pinger{began: time.Now()}
	var gone atomic.Bool
	channels := func(h channel.Handler) []channel.Type {
		return []channel.Type{{Name: pingName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return h }}}
	}
	server, err := driver.Listen("127.0.0.1:0", driver.Config{Link: link, Channels: channels(echo{})})
	if err != nil {
		return l, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	joined := make(chan struct{})
	client, err := driver.Dial(server.LocalAddr().String(), driver.Config{Link: link, Channels: channels(p), Prompt: true,
		Joined: func(c *driver.Conn) { p.ch, _ = c.Open(pingName, p); close(joined) },
		Closed: func(*driver.Conn, netconn.CloseResult) { gone.Store(true) }})
	if err != nil {
		return l, err
	}
	done := make(chan error, 2)
	var counting atomic.Bool
	var last time.Time
	go func() {
		done <- server.Run(ctx, func(now time.Time) {
			if counting.Load() {
				if l.ticks++; !last.IsZero() {
					l.longest = max(l.longest, now.Sub(last))
				}
				last = now
			}
		})
	}()
	go func() { done <- client.Run(ctx, p.step) }()
	select {
	case <-joined:
	case <-time.After(30 * time.Second):
		stop()
		return l, fmt.Errorf("the player couldn't join before the flood: %v", client.Err())
	}
	counting.Store(true)
	end := time.Now().Add(lasting)
	if flood {
		l.sent, err = sendJunk(server.LocalAddr(), end)
	} else {
		time.Sleep(time.Until(end))
	}
	counting.Store(false)
	l.lost = gone.Load()
	stop()
	first, second := <-done, <-done
	for _, e := range []error{err, first, second} {
		if e != nil {
			return l, e
		}
	}
	l.echoes = p.echoes
	l.read, l.bounded = server.Counters.DatagramsIn, server.Counters.ReadsBounded
	slices.Sort(l.echoes)
	return l, nil
}

// sendJunk sends as fast as it can until the end, and says how many the system took.
func sendJunk(to netip.AddrPort, end time.Time) (sent uint64, err error) {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{NoPoller: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	msgs := make([]udp.Message, s.BatchSize())
	for i := range msgs {
		msgs[i] = udp.Message{Buf: make([]byte, junkBytes), Addr: to}
	}
	for time.Now().Before(end) {
		n, _ := s.WriteBatch(msgs) // what finds no room is lost, and the next batch tries again
		sent += uint64(n)
	}
	return sent, nil
}

func (l *live) p99() time.Duration {
	if len(l.echoes) == 0 {
		return 0
	}
	return l.echoes[len(l.echoes)*99/100]
}

// liveFlood plays over the loopback, first in peace, then while a sender floods the server as fast as a core can. It prints what
// it saw; the verdict needs only what doesn't depend on the machine: the player stays and hears echoes, and the server ticks.
func liveFlood(link driver.Link, name string, lasting time.Duration) (bool, error) {
	progress("%s: a flood over the loopback", name)
	peace, err := playLive(link, lasting, false)
	if err != nil {
		return false, err
	}
	war, err := playLive(link, lasting, true)
	if err != nil {
		return false, err
	}
	seconds := lasting.Seconds()
	for _, x := range []struct {
		what string
		l    *live
	}{{"in peace", &peace}, {"flooded", &war}} {
		fmt.Printf("%s, %s: %.1f ticks a second, longest pause %v, %d echoes, p99 %v; %.2f M datagrams a second sent, %.2f M read, %d ticks at the bound\n",
			name, x.what, float64(x.l.ticks)/seconds, x.l.longest.Round(time.Millisecond), len(x.l.echoes), x.l.p99().Round(time.Millisecond),
			float64(x.l.sent)/seconds/1e6, float64(x.l.read)/seconds/1e6, x.l.bounded)
	}
	switch {
	case war.lost:
		fmt.Println("FAIL: the player was lost")
	case len(war.echoes) == 0:
		fmt.Println("FAIL: the player heard nothing")
	case war.ticks*2 < peace.ticks:
		fmt.Println("FAIL: less than half the ticks of peace")
	default:
		return true, nil
	}
	return false, nil
}
