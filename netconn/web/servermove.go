//go:build !js

package web

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/linkend"
)

// A connection moves to a session when its path dies. The session's client names it by its path id (probeMove). Once the client sends the connection's
// packets by the session, what comes by it seems to come from the connection's address, and what the driver sends to that address goes by it.

// errNoPath ends a session that names no connection.
var errNoPath = errors.New("web: the server has no connection with this path id: it has ended, or its server isn't this one")

// errUntold ends one that a Server can't ask about.
var errUntold = errors.New("web: connections don't move to this server: it wasn't told of its driver, see Server.Tell")

// errMoved ends a session whose connection has another one.
var errMoved = errors.New("web: the connection has moved to another session")

// mayMove returns nil if the driver has the connection that a session names. Only the first one named counts, and none after other datagrams.
func (s *Server) mayMove(p *peer, ask []byte) error {
	id := pathIn(ask)
	if p.asked {
		if id != p.path || !p.to.IsValid() {
			return errNoPath
		}
		return nil
	}
	p.asked, p.path = true, id
	s.mu.Lock()
	d := s.driver
	s.mu.Unlock()
	if d == nil {
		return errUntold
	}
	found := make(chan netip.AddrPort, 1)
	d.Do(func() {
		addr, _ := d.AddrOfPath(id)
		found <- addr
	})
	select {
	case p.to = <-found:
	case <-d.Done():
	case <-s.closing:
	case <-p.ended:
	}
	if !p.to.IsValid() {
		return errNoPath
	}
	return nil
}

// move gives a session the address of the connection that it has named, and ends the session that had it.
func (s *Server) move(p *peer) {
	s.mu.Lock()
	if s.peers[p.addr] != p {
		s.mu.Unlock()
		return // it has ended
	}
	former := s.peers[p.to]
	delete(s.peers, p.addr)
	p.addr, p.moved = p.to, true
	s.peers[p.addr] = p
	s.in.Redirect(&p.Source, p.addr)
	s.setAway(p.addr, true)
	s.waitNoMore(p.addr)
	s.mu.Unlock()
	s.n.moved.Add(1)
	if former != nil {
		s.end(former, errMoved)
	}
}

// setAway notes whether a session has the address of a UDP peer; mu is held.
func (s *Server) setAway(addr netip.AddrPort, is bool) {
	old := s.away.Load()
	if WayOf(addr) != UDP || (*old)[addr] == is {
		return
	}
	all := maps.Clone(*old)
	if all[addr] = is; !is {
		delete(all, addr)
	}
	s.away.Store(&all)
}

// gone is called when a peer has no session any more, and tells the driver: at once when the peer has left, and otherwise when its connection hasn't moved to
// another session in time. mu is held.
func (s *Server) gone(addr netip.AddrPort, p *peer, waits bool, why error) {
	d := s.driver
	switch {
	case d == nil:
	case !waits:
		p.tell(d, addr, why)
	case !s.done:
		var own *time.Timer
		own = time.AfterFunc(s.wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.waits[addr] == own {
				delete(s.waits, addr)
				p.tell(d, addr, why)
			}
		})
		s.waits[addr] = own
	}
}

// waitNoMore ends the wait for another session of a connection, if there is one; mu is held.
func (s *Server) waitNoMore(addr netip.AddrPort) {
	if timer := s.waits[addr]; timer != nil {
		timer.Stop()
		delete(s.waits, addr)
	}
}

// tell ends the connection of a peer that has gone, and not one that another player has at the address since.
func (p *peer) tell(d *driver.Driver, addr netip.AddrPort, why error) {
	d.Do(func() {
		if p.moved && !p.carries(d, addr) {
			return
		}
		linkend.Tell(d, addr, why, broke(why))
	})
}

// carries reports whether the driver still has the connection that a session was moved for. It is for the driver's goroutine.
func (p *peer) carries(d *driver.Driver, addr netip.AddrPort) bool {
	at, ok := d.AddrOfPath(p.path)
	return ok && at == addr
}

// partTime is how long a session carries the last words of a connection that it was moved for.
const partTime = 200 * time.Millisecond

// parts reports whether a session's connection has ended, and its last words have gone: its address may be another player's then. It is for the driver's goroutine;
// mu is held.
func (s *Server) parts(p *peer, now time.Duration) bool {
	switch {
	case !p.moved || s.driver == nil || p.carries(s.driver, p.addr):
	case p.last == 0:
		p.last = now
	default:
		return now-p.last >= partTime
	}
	return false
}

// broke reports whether a session ended without a word of either end. A WebSocket that ends without a close frame did: a proxy that restarts ends one so, and
// the reader of one that was reset finds its end when the writer has heard of the reset.
func broke(why error) bool {
	var said *webtransport.SessionError
	var over *http3.Error // the connection's, which often comes before the session's
	switch {
	case errors.As(why, &said), errors.As(why, &over) && over.Remote, websocket.CloseStatus(why) != -1, errors.Is(why, context.Canceled):
		return false
	}
	for _, own := range []error{errText, errLong, errUnanswered, errIdle, errCrowded, errClosing, errNoPath, errUntold, errMoved} {
		if errors.Is(why, own) {
			return false
		}
	}
	return true
}

// Way returns the way by which the peer with an address is reached now. It differs from WayOf once the peer's connection has moved. Any goroutine may call it.
func (s *Server) Way(addr netip.AddrPort) Way {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[addr]; p != nil {
		return p.way
	}
	return WayOf(addr)
}
