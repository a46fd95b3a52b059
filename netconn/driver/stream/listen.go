package stream

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"sync"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Type returns the channel type of streams, for an end that only opens them. It refuses streams that the peer opens.
func Type(name bunch.Name) channel.Type {
	return channel.Type{Name: name, ClientOpen: true, ServerOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		if dc := driver.ConnOf(ch); dc != nil {
			return refuse(dc, ch, NoListener)
		}
		return nil
	}}
}

// Open opens a stream on a connection. Call it on the goroutine that ticks the driver; Dial is for any other.
func Open(c *driver.Conn, name bunch.Name, cfg Config) (*Conn, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	h := new(opening)
	ch, err := c.Open(name, h)
	if err != nil {
		return nil, err
	}
	s := newConn(c, ch, cfg)
	h.Conn = s
	s.pump() // the first segment opens it at the peer
	return s, nil
}

// opening is a channel's handler that gets its Conn when there is a channel to make it with.
type opening struct{ *Conn }

// Dial opens a stream on a client's connection, from any goroutine. It waits until the connection has joined, so the driver must
// be ticked meanwhile. It returns ctx's error when ctx is done first, and ErrNoConnection when the connection has ended, is being
// closed or the driver was closed. On a server's driver it returns ErrServer at once.
//
// Dial doesn't wait for the peer. A peer that refuses the stream says why: the next Read or Write returns the Refusal. A peer
// without a channel type of this name ignores the stream (its Refusals count unknown_type), so set deadlines.
func Dial(ctx context.Context, d *driver.Driver, name bunch.Name, cfg Config) (*Conn, error) {
	if d.IsServer() {
		return nil, ErrServer
	}
	dial := &dialing{ctx: ctx, d: d, name: name, cfg: cfg, done: make(chan dialed, 1)}
	d.Do(dial.try)
	select {
	case r := <-dial.done:
		return r.c, r.err
	case <-d.Done():
		return nil, ErrNoConnection
	case <-ctx.Done():
	}
	d.Do(dial.abandon)
	return nil, ctx.Err()
}

// dialing is a Dial under way. Its methods belong to the driver's goroutine.
type dialing struct {
	ctx  context.Context
	d    *driver.Driver
	name bunch.Name
	cfg  Config
	done chan dialed
}

type dialed struct {
	c   *Conn
	err error
}

// try opens the stream once the connection has joined, and looks again in each tick until then.
func (g *dialing) try() {
	c := g.d.Server()
	switch {
	case g.ctx.Err() != nil:
	case g.d.Err() != nil:
		g.done <- dialed{nil, errors.Join(ErrNoConnection, g.d.Err())}
	case c != nil && (c.Closing() || c.Closed()):
		g.done <- dialed{nil, ErrNoConnection}
	case c != nil && c.Joined():
		s, err := Open(c, g.name, g.cfg)
		g.done <- dialed{s, err}
	case c == nil && g.d.Counters.Closed > 0:
		g.done <- dialed{nil, ErrNoConnection}
	default:
		g.d.BeforeFlush(g.try)
	}
}

// abandon closes a stream that came about too late.
func (g *dialing) abandon() {
	select {
	case r := <-g.done:
		if r.c != nil {
			_ = r.c.Close()
		}
	default:
	}
}

// Listener accepts the streams that peers open. It is a net.Listener; any goroutine may call its methods.
type Listener struct {
	name bunch.Name
	cfg  Config

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*Conn
	open    int            // streams that count against MaxStreams
	perConn map[connID]int // and against MaxPerConn
	refused uint64
	addr    Addr
	closed  bool
}

// connID is a connection, without keeping it: the program may close a stream long after the connection's end.
type connID struct {
	d  *driver.Driver
	id uint32
}

func idOf(dc *driver.Conn) connID { return connID{dc.Driver(), dc.ID()} }

// Listen returns a listener for streams of one channel name. List its Type in driver.Config.Channels. It panics when a field of cfg
// is out of range.
func Listen(name bunch.Name, cfg Config) *Listener {
	cfg, err := cfg.filled()
	if err != nil {
		panic(err)
	}
	l := &Listener{name: name, cfg: cfg, perConn: map[connID]int{}}
	l.wake = sync.NewCond(&l.mu)
	return l
}

// Type returns the channel type for driver.Config.Channels.
func (l *Listener) Type() channel.Type {
	t := Type(l.name)
	t.Accept = l.accept
	return t
}

// accept is the channel type's, on the driver's goroutine.
func (l *Listener) accept(ch *channel.Channel) channel.Handler {
	dc := driver.ConnOf(ch)
	if dc == nil {
		return nil // not a driver's, so there is no goroutine to hand work to
	}
	c, why := l.take(dc, ch)
	if why != 0 {
		return refuse(dc, ch, why)
	}
	return c
}

// take makes room for a stream, or says why there is none.
func (l *Listener) take(dc *driver.Conn, ch *channel.Channel) (*Conn, Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addr = Addr{AddrPort: dc.Driver().LocalAddr()}
	if why := l.full(dc); why != 0 {
		l.refused++
		return nil, why
	}
	c := newConn(dc, ch, l.cfg)
	c.listener, c.slot = l, slot{conn: idOf(dc), waits: true, inAll: true, inConn: true}
	l.open++
	l.perConn[idOf(dc)]++
	l.waiting = append(l.waiting, c)
	l.wake.Signal()
	return c, 0
}

// full says why there is no room for one more stream of a connection; 0 when there is.
func (l *Listener) full(dc *driver.Conn) Refusal {
	switch {
	case l.closed:
		return NoListener
	case l.perConn[idOf(dc)] >= l.cfg.MaxPerConn:
		return TooManyOfConn
	case l.open >= l.cfg.MaxStreams:
		return TooManyStreams
	case len(l.waiting) >= l.cfg.Backlog:
		return BacklogFull
	}
	return 0
}

// refusal is the handler of a channel without a stream. It says why, and what a Conn that is closed at once would say; closing the channel
// is for the peer.
type refusal struct {
	channel.Nop
	ch    *channel.Channel
	d     *driver.Driver
	why   Refusal
	used  int // of the memory, when there was no room last
	sayFn func()
}

func refuse(dc *driver.Conn, ch *channel.Channel, why Refusal) *refusal {
	r := &refusal{ch: ch, d: dc.Driver(), why: why, used: math.MaxInt}
	r.sayFn = r.say
	r.say()
	return r
}

// enough is memory that has room for a refusal, whatever a bunch takes.
const enough = 4 << 10

// say is called again before the next TickFlush while other channels' bunches take all the memory there is for those that aren't acked. As
// thousands may wait, it costs little until they take less.
func (r *refusal) say() {
	used, most := r.ch.Conn().Table().Unreleased()
	if used < r.used || most-used > enough || r.ch.Closing() {
		_, err := r.ch.SendBunch(&bunch.Out{Data: []byte{segRefused, byte(r.why), segStop, segFin}, Reliable: true})
		if !errors.Is(err, channel.ErrReliableFull) {
			return
		}
		r.used = used
	}
	r.d.BeforeFlush(r.sayFn)
}

// slot is what a stream takes of its Listener's bounds. The Listener's lock guards it.
type slot struct {
	conn   connID
	waits  bool // for Accept
	closed bool // by the program
	gone   bool // the channel is
	lost   bool // the connection has ended
	inAll  bool // counted in open
	inConn bool // counted in perConn
}

// change notes something about a stream's slot, and frees what it no longer takes.
func (l *Listener) change(c *Conn, note func(*slot)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	note(&c.slot)
	l.settle(&c.slot)
}

func (l *Listener) settle(s *slot) {
	over := s.gone && !s.waits
	if s.inAll && (over || s.closed) {
		s.inAll = false
		l.open--
	}
	if s.inConn && over && (s.closed || s.lost) {
		s.inConn = false
		if l.perConn[s.conn]--; l.perConn[s.conn] == 0 {
			delete(l.perConn, s.conn)
		}
	}
}

// Accept waits for the next stream. It returns net.ErrClosed after Close. Several drivers may share a Listener's Type, so closing a driver doesn't end
// Accept: close the Listener as well.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.closed {
			return nil, net.ErrClosed
		}
		if len(l.waiting) > 0 {
			c := l.waiting[0]
			l.waiting = slices.Delete(l.waiting, 0, 1)
			c.slot.waits = false
			l.settle(&c.slot)
			return c, nil
		}
		l.wake.Wait()
	}
}

// Refused returns the number of streams that were refused, because a bound was reached or the Listener was closed.
func (l *Listener) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Addr returns the driver's address; the zero Addr before the first stream came.
func (l *Listener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// Close ends Accept and closes the streams that wait for it. Accepted streams go on.
func (l *Listener) Close() error {
	l.mu.Lock()
	waiting := l.waiting
	l.closed, l.waiting = true, nil
	l.wake.Broadcast()
	l.mu.Unlock()
	for _, c := range waiting {
		l.change(c, func(s *slot) { s.waits = false })
		_ = c.Close() // never fails
	}
	return nil
}

var _ net.Listener = (*Listener)(nil)
