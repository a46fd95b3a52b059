package exercise

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// end is one end of a connection.
type end struct {
	g        *Game
	p        *program
	id       int
	conn     *driver.Conn
	fates    *simtest.Fates
	peer     *end
	joined   bool
	crashed  bool
	result   *netconn.CloseResult
	said     string // what it gave as the reason when it closed
	aborted  bool
	answered uint64 // packets received before more were in flight than the window has
	pipes    []*pipe
	queues   [3]*queue
	blocks   *blocks
	turns    *turns
	actors   *actors
	works    []work

	liar   bool                      // its client lies
	tells  []*stream                 // calls to its client
	asks   []*asked                  // calls to its server
	due    map[netguid.GUID][]uint32 // shouts that its client is to hear
	toldOf map[netguid.GUID]int      // of those, that it won't
}

// work is something an end does with its connection, besides pipes.
type work interface {
	// tick is called in each tick while the connection lives.
	tick(now time.Duration)
	// pending is what must still come about after the calm, or "".
	pending() string
	// over says that the connection has ended.
	over()
}

func (e *end) String() string { return fmt.Sprintf("%s's end %d", e.p.h.Name(), e.id) }

func (e *end) alive() bool { return e.result == nil && !e.crashed && !e.conn.Closed() }

// opens reports whether this end opens the channels that only one of both opens.
func (e *end) opens() bool { return e.p.server == e.g.opt.serverOpens() }

// pair ties a server's end to the client's that has just logged in.
func (e *end) pair(login string) {
	n, err := strconv.Atoi(login)
	if err != nil || n < 0 || n >= len(e.g.dials) || e.g.dials[n] == nil || e.g.dials[n].peer != nil {
		e.g.w.Failf("ends", "%v: a login as %q", e, login)
		return
	}
	e.peer, e.g.dials[n].peer = e.g.dials[n], e
}

// start begins what the end does, when it has joined.
func (e *end) start() {
	if e.liar {
		e.startActors()
		return
	}
	if e.opens() || !e.g.opt.serverOpens() {
		for range e.g.opt.bunches {
			e.openPipe()
		}
	}
	e.startMessages()
	e.startBlocks()
	e.startLockstep()
	e.startActors()
}

// open opens the channel of a work, if this end is to. The others come by accept.
func (e *end) open(name bunch.Name, h channel.Handler) *channel.Channel {
	if !e.opens() {
		return nil
	}
	ch, err := e.conn.Open(name, h)
	if err != nil {
		e.g.w.Failf("bounds", "%v: open %v: %v", e, name, err)
	}
	return ch
}

func (e *end) tick(now time.Duration) {
	if !e.joined || e.conn.Closing() || e.liar {
		return
	}
	if !e.g.calm {
		e.maybeLeave()
	}
	if !e.alive() || e.conn.Closing() {
		return
	}
	for _, p := range e.pipes {
		p.tick()
	}
	for _, w := range e.works {
		w.tick(now)
	}
	e.churn()
}

// maybeLeave closes the connection now and then, from either end.
func (e *end) maybeLeave() {
	if e.g.opt.leave == 0 || !e.perSecond(e.g.opt.leave) {
		return
	}
	if e.p.rng.IntN(4) == 0 {
		e.abort("enough")
		return
	}
	e.leave(fmt.Sprintf("end %d has better things to do", e.id))
}

// perSecond is true so many percent of the seconds, on average.
func (e *end) perSecond(percent int) bool {
	tick := e.g.opt.tick
	if e.p.server {
		tick = e.g.opt.serverTick
	}
	return e.p.rng.Float64() < float64(percent)/100*tick.Seconds()
}

func (e *end) leave(reason string) {
	e.said = reason
	e.conn.CloseWithReason(reason)
}

func (e *end) abort(reason string) {
	e.said, e.aborted = reason, true
	e.conn.Abort(e.p.d.Time(e.p.h.Time()), reason)
}

// ended is told how the connection ended.
func (e *end) ended(r netconn.CloseResult) {
	if e.result != nil {
		e.g.w.Failf("close", "%v ended twice: %v, then %v", e, e.result, r)
		return
	}
	e.result = &r
	e.g.Counters.Closed++
	if r.Code == netconn.TimedOut {
		e.g.Counters.TimedOut++
	}
	if !e.liar {
		e.checkResult()
	}
	e.account()
	e.void()
}

// crash is the end of an end that can say nothing any more.
func (e *end) crash() {
	e.crashed = true
	e.account()
	e.void()
}

// account adds up what the end did.
func (e *end) account() {
	s, c := e.conn.Stats(), &e.g.Counters
	c.PacketsSent += s.Packets.PacketsSent
	c.PacketsAcked += s.Packets.PacketsAcked
	c.PacketsLost += s.Packets.PacketsLost
	c.Repairs += s.Packets.Repairs
	c.PacketsRepaired += s.Packets.Repaired
	c.RepairedLate += s.Packets.RepairedLate
	c.Bunches += s.Bunches.Sent
	c.ReliableBunches += s.Bunches.SentReliable
	c.Channels += s.Bunches.ChannelsOpened
	c.Resent += s.Bunches.Resent
}

// void says that what is under way on the connection may never arrive, both ways.
func (e *end) void() {
	for _, one := range []*end{e, e.peer} {
		if one == nil {
			continue
		}
		for _, p := range one.pipes {
			p.void()
		}
		one.voidCalls()
	}
	for _, w := range e.works {
		w.over()
	}
}

// pending is what the end still waits for.
func (e *end) pending() string {
	for _, p := range e.pipes {
		if what := p.pending(); what != "" {
			return what
		}
	}
	for _, w := range e.works {
		if what := w.pending(); what != "" {
			return what
		}
	}
	if n := e.conn.Table().Unacked(); n > 0 {
		return fmt.Sprintf("%d reliable bunches aren't acked", n)
	}
	return ""
}

func serverAddrs(h *simtest.Host) []netip.AddrPort {
	return []netip.AddrPort{netip.AddrPortFrom(h.Addr(), port)}
}
