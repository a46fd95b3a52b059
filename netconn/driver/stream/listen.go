package stream

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Type is the channel type of streams, for an end that only opens them.
func Type(name bunch.Name) channel.Type {
	return channel.Type{Name: name, ClientOpen: true, ServerOpen: true}
}

// Open opens a stream on a connection. It belongs to the goroutine that ticks the driver.
func Open(c *driver.Conn, name bunch.Name, cfg Config) (*Conn, error) {
	h := new(opening)
	ch, err := c.Open(name, h)
	if err != nil {
		return nil, err
	}
	s := newConn(c, ch, cfg.filled())
	h.Conn = s
	s.pump() // the first segment opens it at the peer
	return s, nil
}

// opening is a channel's handler that gets its Conn when there is a channel to make it with.
type opening struct{ *Conn }

// ErrNoConnection: a client's connection has ended, or its driver has.
var ErrNoConnection = errors.New("stream: the client has no connection")

// Dial opens a stream on a client's connection, from any goroutine, once it has joined. It waits
// for that while the driver is ticked, until ctx is done.
func Dial(ctx context.Context, d *driver.Driver, name bunch.Name, cfg Config) (*Conn, error) {
	type result struct {
		c   *Conn
		err error
	}
	done := make(chan result, 1)
	var try func()
	try = func() {
		c := d.Server()
		switch {
		case ctx.Err() != nil:
			return
		case d.Err() != nil:
			done <- result{nil, errors.Join(ErrNoConnection, d.Err())}
		case c == nil || !c.Joined():
			d.Do(try)
		default:
			s, err := Open(c, name, cfg)
			done <- result{s, err}
		}
	}
	d.Do(try)
	select {
	case r := <-done:
		return r.c, r.err
	case <-ctx.Done():
	}
	d.Do(func() { // a stream that came about too late
		select {
		case r := <-done:
			if r.c != nil {
				_ = r.c.Close()
			}
		default:
		}
	})
	return nil, ctx.Err()
}

// Listener accepts the streams that peers open. It is a net.Listener.
type Listener struct {
	name bunch.Name
	cfg  Config

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*Conn
	open    int
	refused uint64
	addr    Addr
	closed  bool
}

// Listen returns a listener for streams of a channel name. Register its Type with a driver.
func Listen(name bunch.Name, cfg Config) *Listener {
	l := &Listener{name: name, cfg: cfg.filled()}
	l.wake = sync.NewCond(&l.mu)
	return l
}

// Type is the channel type to register.
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
	c := newConn(dc, ch, l.cfg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addr = Addr{AddrPort: dc.Driver().LocalAddr()}
	if l.closed || l.open >= l.cfg.MaxStreams || len(l.waiting) >= l.cfg.Backlog {
		l.refused++
		_ = c.Close() // never fails
		return c
	}
	l.open++
	c.gone = l.gone
	l.waiting = append(l.waiting, c)
	l.wake.Signal()
	return c
}

func (l *Listener) gone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

// Accept waits for the next stream.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.closed {
			return nil, net.ErrClosed
		}
		if len(l.waiting) > 0 {
			c := l.waiting[0]
			l.waiting = append(l.waiting[:0], l.waiting[1:]...)
			return c, nil
		}
		l.wake.Wait()
	}
}

// Refused is the number of streams closed at once, for want of room or because the Listener is closed.
func (l *Listener) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Addr is the address of the driver; without a port until the first stream came.
func (l *Listener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

// Close ends Accept and closes the streams that wait for it. Those accepted go on.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for _, c := range l.waiting {
		_ = c.Close() // never fails
	}
	l.waiting = nil
	l.wake.Broadcast()
	return nil
}

var _ net.Listener = (*Listener)(nil)
