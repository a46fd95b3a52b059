//go:build !js

package web

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/netip"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/webtransport-go"
)

// A connection moves to a session when its path dies. The session's client names it by its path id (probeMove). Once the client sends the connection's
// packets by the session, what comes by it seems to come from the connection's address, and what the driver sends to that address goes by it.

// moveTime is how long a connection waits for another session after its own has broken.
const moveTime = 5 * time.Second

// errNoPath ends a session that names no connection.
var errNoPath = errors.New("web: the server has no connection with this path id: it has ended, or its server isn't this one")

// errMoved ends a session whose connection has another one.
var errMoved = errors.New("web: the connection has moved to another session")

// mayMove reports whether the driver has the connection that a session names. Only the first one named counts, and none after other datagrams.
func (s *Server) mayMove(p *peer, ask []byte) bool {
	id := pathIn(ask)
	if p.asked {
		return id == p.path
	}
	p.asked, p.path = true, id
	s.mu.Lock()
	d := s.driver
	s.mu.Unlock()
	if d == nil {
		return false
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
	return p.to.IsValid()
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
// another session in time.
func (s *Server) gone(addr netip.AddrPort, waits bool, why error) {
	s.mu.Lock()
	d := s.driver
	s.mu.Unlock()
	switch {
	case d == nil:
	case !waits:
		tell(d, addr, why)
	default:
		time.AfterFunc(moveTime, func() {
			s.mu.Lock()
			back := s.peers[addr] != nil
			s.mu.Unlock()
			if !back {
				tell(d, addr, why)
			}
		})
	}
}

// broke reports whether a session ended without a word of either end.
func broke(why error) bool {
	var said *webtransport.SessionError
	switch {
	case errors.As(why, &said), websocket.CloseStatus(why) != -1, errors.Is(why, io.EOF), errors.Is(why, context.Canceled):
		return false
	}
	for _, own := range []error{errText, errLong, errUnanswered, errIdle, errCrowded, errClosing, errNoPath, errMoved} {
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
