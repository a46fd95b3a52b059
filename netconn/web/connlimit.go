//go:build !js

package web

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
)

// connLimit bounds the connections below requests and sessions. When all places are taken, a new connection takes that of one without a session: the one that
// has been without a request for longest, or, when more have a request than have none, the one whose request began first. Strangers who ask for nothing, or
// don't read the answer, would keep everybody out otherwise. Neither kind can leave the other less than half of the places: a newcomer is of the one while it
// shakes hands, and of the other while it is answered.
type connLimit struct {
	max  int
	idle time.Duration // that a QUIC connection may be of no use
	over func()        // a connection was refused, or ended for another

	mu      sync.Mutex
	n       int
	places  addrgroup.Limit
	useless list.List // of *place: those without a request or a session, for longest first
	asking  list.List // of *place: those with a request and no session, the first to begin first
	quics   map[*quic.Conn]*place
}

// place is one connection's.
type place struct {
	limit    *connLimit
	addr     netip.Addr
	close    func()
	requests int
	sessions int
	in       *list.List // useless, asking, or nil with a session and when it is given back
	elem     *list.Element
	given    bool
	timer    *time.Timer // of a QUIC connection: HTTP's server has deadlines for the others
}

func newConnLimit(most, perAddr int, idle time.Duration, over func()) *connLimit {
	return &connLimit{max: most, idle: idle, over: over, places: addrgroup.NewLimit(perAddr), quics: map[*quic.Conn]*place{}}
}

// take takes a place for a connection that end ends, or returns nil.
func (l *connLimit) take(a netip.Addr, end func()) *place {
	l.mu.Lock()
	room := l.places.Room(a)
	var old *place
	if room && l.n == l.max {
		from := &l.useless
		if l.asking.Len() > l.useless.Len() {
			from = &l.asking
		}
		first := from.Front()
		if first != nil {
			old = first.Value.(*place)
			l.give(old)
		}
	}
	if !room || l.n == l.max {
		l.mu.Unlock()
		l.over()
		return nil
	}
	p := &place{limit: l, addr: a, close: end}
	l.n++
	l.places.Add(a)
	p.move()
	l.mu.Unlock()
	if old != nil {
		l.over()
		old.close()
	}
	return p
}

// give takes a place back; l.mu is held.
func (l *connLimit) give(p *place) {
	if p.given {
		return
	}
	p.given = true
	l.n--
	l.places.Remove(p.addr)
	p.move()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// move puts the place in the list where it belongs; limit.mu is held.
func (p *place) move() {
	to := &p.limit.useless
	switch {
	case p.given || p.sessions > 0:
		to = nil
	case p.requests > 0:
		to = &p.limit.asking
	}
	if to == p.in {
		return
	}
	if p.in != nil {
		p.in.Remove(p.elem)
	}
	if p.in = to; to != nil {
		p.elem = to.PushBack(p)
	}
}

// give gives the place back: the connection has ended.
func (p *place) give() {
	p.limit.mu.Lock()
	defer p.limit.mu.Unlock()
	p.limit.give(p)
}

// use begins or ends requests and sessions on the connection.
func (p *place) use(requests, sessions int) {
	l := p.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	p.requests += requests
	p.sessions += sessions
	p.move()
	switch {
	case p.given || p.timer == nil:
	case p.in == &l.useless:
		p.timer.Reset(l.idle)
	default:
		p.timer.Stop()
	}
}

// busy reports whether half of the places are taken: from then on who begins a QUIC handshake has to show that it is where it says.
func (l *connLimit) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n >= l.max/2
}

type placeKey struct{}

// ofQUIC has a QUIC connection's context hold its place.
func (l *connLimit) ofQUIC(ctx context.Context, c *quic.Conn) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, l.quics[c])
}

// ofTCP has a connection's context hold its place.
func ofTCP(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if lc, ok := t.NetConn().(*limitedConn); ok {
			return context.WithValue(ctx, placeKey{}, lc.place)
		}
	}
	return ctx
}

// useOf begins requests and sessions on a request's connection, if it came through Listen, until done.
func useOf(r *http.Request, requests, sessions int) (done func()) {
	p, ok := r.Context().Value(placeKey{}).(*place)
	if !ok || p == nil {
		return func() {}
	}
	p.use(requests, sessions)
	return func() { p.use(-requests, -sessions) }
}

// timed is a handler whose requests are noted on their connections, and end in time: HTTP/3's server has no deadlines of its own.
func (s *Server) timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer useOf(r, 1, 0)()
		if r.ProtoMajor == 3 {
			now := time.Now()
			rc := http.NewResponseController(w)
			_, _ = rc.SetReadDeadline(now.Add(s.body)), rc.SetWriteDeadline(now.Add(s.answer)) // never fail
		}
		h.ServeHTTP(w, r)
	})
}

// serveQUIC serves connections until the listener closes. One on which nothing is asked for and no session is ends: its peer could keep it for ever.
func serveQUIC(ln *quic.EarlyListener, sessions *webtransport.Server, limit *connLimit) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := ln.Accept(context.Background())
		if err != nil {
			return
		}
		end := func(code http3.ErrCode, why string) { _ = c.CloseWithError(quic.ApplicationErrorCode(code), why) }
		p := limit.take(addrPort(c.RemoteAddr()).Addr(), func() { end(http3.ErrCodeExcessiveLoad, "too many connections, and this one asked for nothing") })
		if p == nil {
			end(http3.ErrCodeExcessiveLoad, "too many connections from this address")
			continue
		}
		limit.mu.Lock()
		limit.quics[c] = p
		if !p.given {
			p.timer = time.AfterFunc(limit.idle, func() { end(http3.ErrCodeNoError, "nothing was asked for") })
		}
		limit.mu.Unlock()
		context.AfterFunc(c.Context(), func() {
			limit.mu.Lock()
			defer limit.mu.Unlock()
			delete(limit.quics, c)
			limit.give(p)
		})
		wg.Go(func() { _ = sessions.ServeQUICConn(c) })
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}

// limited is a listener whose connections are bounded.
type limited struct {
	net.Listener
	limit *connLimit
}

// Accept implements net.Listener. It closes connections beyond the limit at once.
func (l limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := l.limit.take(addrPort(c.RemoteAddr()).Addr(), func() { _ = c.Close() })
		if p == nil {
			_ = c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBytes) // the system's default serves too
		}
		return &limitedConn{Conn: c, place: p}, nil
	}
}

type limitedConn struct {
	net.Conn
	place *place
}

func (c *limitedConn) Close() error {
	c.place.give()
	return c.Conn.Close()
}
