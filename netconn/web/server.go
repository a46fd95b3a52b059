//go:build !js

package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/origins"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// ServerConfig has the settings of a Server. The zero value is useful.
type ServerConfig struct {
	// Origins lists the pages that may connect, such as "https://play.example.com". "*" is every page. A request without an Origin doesn't come from a
	// browser and is let through, since its sender could claim any Origin. Default: only pages of the request's own host.
	Origins []string
	// MaxConns bounds the sessions. Default 1024.
	MaxConns int
	// MaxPerAddr bounds the sessions of one IPv4 address or one IPv6 /64. Default a quarter of MaxConns, at least 4; negative: no bound.
	// Loopback addresses have none, unless ClientAddr returns another address.
	MaxPerAddr int
	// MaxHalfOpen bounds the sessions that the driver hasn't answered yet. One more ends the oldest. Default a quarter of MaxConns, at least 4.
	MaxHalfOpen int
	// HalfOpen ends a session that the driver hasn't answered for so long, since it has shown no connect token. Default 5 s.
	HalfOpen time.Duration
	// Idle ends a session to which the driver has sent nothing for so long, since its connection has ended. Time without a read by the driver counts as a second
	// at most: it stands still and has ended nothing. Default 15 s.
	Idle time.Duration
	// Rate bounds the session requests a second from one IPv4 address or IPv6 /64. Burst is how many may come at once. Wider networks have a multiple,
	// as in netcode/tokenserver. Default 2 and 20.
	Rate  float64
	Burst int
	// TotalRate bounds the session requests a second of all clients together. Default 500.
	TotalRate float64
	// SendBuffer bounds the bytes that wait to be sent to one peer. At most 512 datagrams wait. When it is full the oldest are dropped. Default 64 KiB.
	SendBuffer int
	// ReceiveBuffer bounds the bytes of all peers that wait to be read by the driver. At most 4096 datagrams wait, 256 of one peer, and 2048 of those that
	// the driver hasn't answered, an equal share of each of MaxHalfOpen. A peer with more than a few leaves as much room as it takes, and an eighth. Where there is no
	// room the newest are dropped. Default 4 MiB.
	ReceiveBuffer int
	// ClientAddr returns the address that a request comes from. Default: RemoteAddr. Behind a proxy that you trust, read the proxy's header here.
	ClientAddr func(r *http.Request) (netip.AddrPort, error)
	// Logger gets refusals, and the ends of sessions whose peers didn't leave by themselves; at most one line a second. Default none.
	Logger *slog.Logger
}

// halfOpenShare is the unread datagrams of a session that the driver hasn't answered: all of these together leave half of the room to players.
func halfOpenShare(sessions int) int { return min(inPerPeer, max(1, inDatagrams/2/sessions)) }

const (
	inDatagrams = 4096
	inPerPeer   = 256
	maxAddrs    = 65536 // that Rate remembers
	maxProbes   = 8     // whose answers wait for one peer
)

func (c ServerConfig) filled() ServerConfig {
	c.MaxConns = cmp.Or(c.MaxConns, 1024)
	c.MaxPerAddr = cmp.Or(c.MaxPerAddr, max(4, c.MaxConns/4))
	c.MaxHalfOpen = cmp.Or(c.MaxHalfOpen, max(4, c.MaxConns/4))
	c.HalfOpen = cmp.Or(c.HalfOpen, 5*time.Second)
	c.Idle = cmp.Or(c.Idle, 15*time.Second)
	c.Rate, c.Burst, c.TotalRate = cmp.Or(c.Rate, 2), cmp.Or(c.Burst, 20), cmp.Or(c.TotalRate, 500)
	c.SendBuffer, c.ReceiveBuffer = cmp.Or(c.SendBuffer, 64<<10), cmp.Or(c.ReceiveBuffer, 4<<20)
	if c.ClientAddr == nil {
		c.ClientAddr = func(r *http.Request) (netip.AddrPort, error) { return netip.ParseAddrPort(r.RemoteAddr) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Server lets in clients that come by WebTransport and WebSocket. It is an http.Handler that makes sessions from requests, and a udp.Side whose peers are
// these sessions. Close ends all sessions; a driver closes its socket and so the Server. A Server is safe for concurrent use, except that reads and writes
// belong to one goroutine.
type Server struct {
	reader
	in       *mailbox.Inbox
	cfg      ServerConfig
	n        counters
	rate     *ratelimit.Limiter
	lines    ratelimit.Lines
	sessions *webtransport.Server
	began    time.Time
	closing  chan struct{}
	wg       sync.WaitGroup
	read     time.Duration // when the driver last read
	driven   atomic.Int64  // its time, see ticked

	mu     sync.Mutex
	done   bool
	peers  map[netip.AddrPort]*peer
	places addrgroup.Limit
	open   int     // places taken: peers, and requests under way
	half   int     // of them those that the driver hasn't answered
	shown  []*peer // those of half that are peers, oldest first, and some that aren't any more
	nextID int
	idle   time.Duration  // of connections
	body   time.Duration  // of a request
	answer time.Duration  // to it
	wait   time.Duration  // for another session of a connection
	driver *driver.Driver // of Tell
	stops  []func()       // what Listen has begun

	waits map[netip.AddrPort]*time.Timer // of connections whose session broke, until they are told

	away atomic.Pointer[map[netip.AddrPort]bool] // the addresses of UDP peers that sessions have; a map never changes
}

// peer is one session.
type peer struct {
	mailbox.Source
	remote   netip.Addr
	way      Way
	addr     netip.AddrPort // that the driver knows it by; guarded by Server.mu
	moved    bool           // a connection has moved to it; guarded by Server.mu
	last     time.Duration  // when that was seen to have ended, as Server.now; guarded by Server.mu
	link     link
	out      mailbox.Outbox
	answered atomic.Bool  // half counts it no more
	written  atomic.Int64 // when the driver wrote to it last, as Server.now
	why      atomic.Pointer[error]
	done     func()
	heard    chan struct{} // closed when nothing is received any more
	ended    chan struct{}
	once     sync.Once

	// These are of the goroutine that receives.
	asked bool           // it has named a connection
	path  netcode.PathID // by this
	to    netip.AddrPort // the address of that; zero if the driver has none
}

// NewServer returns a Server without sessions, or an error that wraps ErrConfig.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.MaxConns < 0 || cfg.MaxHalfOpen < 0 || cfg.HalfOpen < 0 || cfg.Idle < 0 || !(cfg.Rate >= 0) || cfg.Burst < 0 || !(cfg.TotalRate >= 0) ||
		cfg.SendBuffer < 0 || cfg.ReceiveBuffer < 0 {
		return nil, fmt.Errorf("%w: only MaxPerAddr may be negative", ErrConfig)
	}
	if err := origins.List(cfg.Origins).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	cfg = cfg.filled()
	in := mailbox.NewInbox(inDatagrams, cfg.ReceiveBuffer)
	s := &Server{reader: in.Reader(), in: in, cfg: cfg, rate: ratelimit.New(time.Now, cfg.Rate, cfg.Burst, maxAddrs, cfg.TotalRate),
		began: time.Now(), closing: make(chan struct{}), idle: idleTime, body: bodyTime, answer: answerTime, wait: moveTime, peers: map[netip.AddrPort]*peer{}, waits: map[netip.AddrPort]*time.Timer{}, places: addrgroup.NewLimit(cfg.MaxPerAddr)}
	s.away.Store(&map[netip.AddrPort]bool{})
	return s, nil
}

// now is the time since the server's beginning, whatever the clock is set to.
func (s *Server) now() time.Duration { return time.Since(s.began) }

// ticked counts the driver's time, by which sessions are idle: between two of its reads a second passes at most, as between its ticks.
func (s *Server) ticked() {
	now := s.now()
	s.driven.Add(int64(min(now-s.read, time.Second)))
	s.read = now
}

// TryReadBatch implements udp.Socket.
func (s *Server) TryReadBatch(msgs []udp.Message) (int, error) {
	s.ticked()
	return s.reader.TryReadBatch(msgs)
}

// ReadBatch implements udp.Socket.
func (s *Server) ReadBatch(msgs []udp.Message) (int, error) {
	s.ticked()
	return s.reader.ReadBatch(msgs)
}

// Counters returns the counters so far. Any goroutine may call it.
func (s *Server) Counters() Counters { return s.n.get() }

// Len returns the number of sessions. Any goroutine may call it.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers)
}

// LocalAddr implements udp.Socket. It returns 0.0.0.0:0, which no connect token names. A driver whose only socket is the Server therefore needs
// driver.Netcode.Addrs, with the addresses in the connect tokens.
func (s *Server) LocalAddr() netip.AddrPort {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
}

// Has implements udp.Side.
func (s *Server) Has(addr netip.AddrPort) bool {
	return WayOf(addr) != UDP || (*s.away.Load())[addr]
}

// OnArrival implements udp.Side.
func (s *Server) OnArrival(f func()) {
	s.in.OnArrival(f)
}

// Tell connects the Server with the driver that it is a socket of. Call it after driver.Listen. Then a connection ends at once when its session was closed, as
// by a player who closes the page, and 5 s after its session ended without a word: that is a time-out, so that package session keeps the player. Meanwhile, and whenever its path dies, it can move to another session: see
// LadderConfig.Token. Without Tell connections don't move, and a player who has gone stays until driver.Config.Timeout.
func (s *Server) Tell(d *driver.Driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driver = d
}

// SendsWhole is for the function of that name: what doesn't fit a WebTransport session's path is lost, not cut.
func (s *Server) SendsWhole() bool { return true }

// WriteBatch implements udp.Socket. It never waits: when a peer reads too slowly, its oldest datagrams are dropped.
func (s *Server) WriteBatch(msgs []udp.Message) (int, error) {
	if err := s.in.Failed(); err != nil {
		return 0, err
	}
	now := s.driven.Load()
	for i := range msgs {
		s.mu.Lock()
		p := s.peers[msgs[i].Addr]
		first := p != nil && !p.answered.Swap(true)
		if first {
			s.half--
		}
		parts := p != nil && s.parts(p, time.Duration(now))
		s.mu.Unlock()
		if parts {
			s.end(p, errIdle)
			p = nil
		}
		if p == nil {
			s.n.noPeer.Add(1)
			continue
		}
		if first {
			s.in.Allow(&p.Source, inPerPeer)
		}
		p.written.Store(now)
		s.n.unsent.Add(uint64(p.out.Push(msgs[i].Buf)))
	}
	return len(msgs), nil
}

// Close sends what waits, ends all sessions within a second, and stops listening.
func (s *Server) Close() error {
	if !s.in.Fail(net.ErrClosed) {
		s.wg.Wait()
		return nil
	}
	s.mu.Lock()
	s.done = true
	peers := make([]*peer, 0, len(s.peers))
	for _, p := range s.peers {
		peers = append(peers, p)
	}
	stops := s.stops
	for addr := range s.waits {
		s.waitNoMore(addr)
	}
	s.mu.Unlock()
	close(s.closing)
	left := make(chan struct{})
	go func() { // the sessions first, over listeners that are open yet
		defer close(left)
		for _, p := range peers {
			<-p.ended
		}
	}()
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-left:
	case <-late.C:
		var cut sync.WaitGroup
		for _, p := range peers { // all at once: each may take closeTime
			cut.Go(func() { p.link.close(errClosing) })
		}
		cut.Wait()
		<-left
	}
	for _, stop := range stops {
		stop()
	}
	s.wg.Wait()
	return nil
}

var errClosing = errors.New("web: the server closes")

// ServeHTTP makes a session from a request for a WebSocket, or for WebTransport if the request came through Listen. It returns once the session has begun.
// Refusals are 400 when ClientAddr gives no address, 403 for a page that isn't among Origins, 426 for any other kind of request, 429 beyond Rate or
// TotalRate, and 503 when a bound on sessions is reached.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way := WebSocket
	switch {
	case r.Method == http.MethodConnect && strings.HasPrefix(r.Proto, "webtransport"):
		way = WebTransport
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		w.Header().Set("Upgrade", "websocket")
		s.refuse(w, r, &s.n.badRequest, http.StatusUpgradeRequired, "this is a game server: connect by WebTransport or WebSocket")
		return
	}
	remote, err := s.cfg.ClientAddr(r)
	switch {
	case err != nil || !remote.IsValid():
		s.refuse(w, r, &s.n.badAddr, http.StatusBadRequest, "no address of the client; see ServerConfig.ClientAddr")
		return
	case !s.allowed(r): // before Rate, which is the player's, whatever page it has open
		s.refuse(w, r, &s.n.badOrigin, http.StatusForbidden, "this page's origin isn't among the server's ServerConfig.Origins")
		return
	case !s.rate.Allow(remote.Addr()):
		w.Header().Set("Retry-After", "1")
		s.refuse(w, r, &s.n.limited, http.StatusTooManyRequests, "too many requests from this address; try again later")
		return
	case !s.rate.AllowTotal():
		w.Header().Set("Retry-After", "1")
		s.refuse(w, r, &s.n.limited, http.StatusTooManyRequests, "too many requests; try again later")
		return
	}
	if way == WebTransport && !s.settled(w, r) {
		s.refuse(w, r, &s.n.badUpgrade, http.StatusBadRequest, "no SETTINGS came on this connection")
		return
	}
	n, why, crowded := s.take(remote.Addr())
	if crowded != nil {
		s.end(crowded, errCrowded)
	}
	if n != nil {
		s.refuse(w, r, n, http.StatusServiceUnavailable, why)
		return
	}
	l, err := s.upgrade(way, w, r)
	if err != nil {
		s.give(remote.Addr())
		s.n.badUpgrade.Add(1)
		s.log("no session", remote, err)
		return
	}
	s.begin(way, remote, l, useOf(r, 0, 1))
}

// settled waits for the SETTINGS of a request's QUIC connection, and reports whether they came. Upgrade would wait as well, with a place that nobody could make room
// of: strangers who never say them would keep everybody out.
func (s *Server) settled(w http.ResponseWriter, r *http.Request) bool {
	c, ok := w.(http3.Settingser)
	if !ok {
		return true // there is no session by what isn't from Listen; upgrade says so
	}
	late := time.NewTimer(headerTime)
	defer late.Stop()
	select {
	case <-c.ReceivedSettings():
		return true
	case <-s.closing:
		return true // there is no place any more
	case <-late.C:
	case <-r.Context().Done():
	}
	return false
}

// allowed reports whether a request's page may connect.
func (s *Server) allowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	if len(s.cfg.Origins) > 0 {
		return origins.List(s.cfg.Origins).Allows(origin)
	}
	return origins.Own(origin, r.Host)
}

// refuse answers a request that there is no session for.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, n *atomic.Uint64, status int, why string) {
	n.Add(1)
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why, status)
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	s.log("refused", from, errors.New(why))
}

// log writes a line, unless one was written within the second.
func (s *Server) log(what string, from netip.AddrPort, why error) {
	if _, ok := s.lines.Next(time.Now()); ok {
		s.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "web: "+what, slog.Any("addr", from), slog.Any("why", why))
	}
}

// take takes a place for a session, or says why there is none. When too many are being opened, the peer that the driver has left unanswered for longest
// makes room, for the caller to end: who has a connect token shows it at once, and strangers who show none would keep everybody out otherwise.
func (s *Server) take(a netip.Addr) (n *atomic.Uint64, why string, crowded *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done || s.open == s.cfg.MaxConns:
		return &s.n.full, "the server is full; try again later", nil
	case !s.places.Room(a):
		return &s.n.tooManyFromAddress, "too many sessions from this address; close another one", nil
	case s.half == s.cfg.MaxHalfOpen:
		if s.settle(); len(s.shown) == 0 {
			return &s.n.tooManyHalfOpen, "too many sessions are being opened; try again later", nil
		}
		crowded = s.shown[0]
		crowded.answered.Store(true)
		s.half--
	}
	s.places.Add(a)
	s.open++
	s.half++
	return nil, "", crowded
}

// settle drops from shown what was answered or has ended.
func (s *Server) settle() {
	s.shown = slices.DeleteFunc(s.shown, func(p *peer) bool { return p.answered.Load() })
}

// give gives back the place of a session that the driver hasn't answered.
func (s *Server) give(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.Remove(a)
	s.open--
	s.half--
}

func (s *Server) upgrade(way Way, w http.ResponseWriter, r *http.Request) (link, error) {
	if way == WebSocket {
		// The origin was looked at.
		b := &below{}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(upgradeTime)) // an answer for which the peer has left no room would take a place for long
		c, err := websocket.Accept(b.writer(w), r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return nil, err
		}
		return socketLink{c, b}, nil
	}
	s.mu.Lock()
	sessions := s.sessions
	s.mu.Unlock()
	if sessions == nil {
		http.Error(w, "WebTransport comes through Listen only", http.StatusNotImplemented)
		return nil, errors.New("web: WebTransport comes through Listen only")
	}
	rc := http.NewResponseController(w)
	_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}) // a session has none
	session, err := sessions.Upgrade(w, r)
	if err != nil {
		http.Error(w, "no WebTransport session", http.StatusBadRequest)
		return nil, err
	}
	return sessionLink{session}, nil
}

// begin makes a peer of a session. done is called at its end.
func (s *Server) begin(way Way, remote netip.AddrPort, l link, done func()) {
	p := &peer{done: done, remote: remote.Addr(), way: way, link: l, out: mailbox.NewOutbox(s.cfg.SendBuffer), heard: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		s.give(remote.Addr())
		l.close(errClosing)
		done()
		return
	}
	s.nextID++
	p.addr = addrOf(way, remote, s.nextID)
	p.Source = mailbox.NewSource(p.addr, halfOpenShare(s.cfg.MaxHalfOpen))
	p.written.Store(s.driven.Load())
	s.peers[p.addr] = p
	if len(s.shown) >= 2*s.cfg.MaxHalfOpen { // at most MaxHalfOpen stay
		s.settle()
	}
	s.shown = append(s.shown, p)
	s.wg.Add(2)
	s.mu.Unlock()
	if way == WebTransport {
		s.n.webTransports.Add(1)
	} else {
		s.n.webSockets.Add(1)
	}
	go s.receive(p)
	go s.send(p)
}

// receive passes on what a peer sends.
func (s *Server) receive(p *peer) {
	defer s.wg.Done()
	defer close(p.heard)
	moved := false
	for {
		d, err := p.link.receive(s.in)
		if err != nil {
			s.end(p, err)
			return
		}
		if len(d) == 0 {
			continue
		}
		s.n.received.Add(1)
		names := isProbe(d, probeMove)
		if names {
			if err := s.mayMove(p, d); err != nil {
				s.end(p, err)
				return
			}
		}
		if names || isProbe(d, probeAsk) { // the driver doesn't know of it, so the session is no more answered than before
			if waiting, _ := p.out.Size(); waiting > maxProbes*probeBytes { // who has shown no token gets little room
				s.n.unsent.Add(1)
				continue
			}
			s.n.unsent.Add(uint64(p.out.Push(answerTo(nil, d))))
			continue
		}
		if p.to.IsValid() && !moved {
			s.move(p)
			moved = true
		}
		p.asked = true // it is too late to name one
		if !s.in.Put(&p.Source, d) {
			s.n.unread.Add(1)
		}
	}
}

// errUnanswered and errIdle end sessions that the driver has no use for.
var (
	errUnanswered = errors.New("web: the server didn't answer this session: it showed no connect token for this server, or an old one")
	errIdle       = errors.New("web: the connection has ended")
	errCrowded    = errors.New("web: too many sessions are being opened, and the server hadn't answered this one yet")
)

// upgradeTime is how long the answer to a request for a WebSocket may take, which is shorter than any buffer.
const upgradeTime = time.Second

// idlePoll is how soon it is looked again whether a session is idle, at the earliest.
const idlePoll = 10 * time.Millisecond

// send sends what was written to a peer, and ends its session when nothing is.
func (s *Server) send(p *peer) {
	defer s.wg.Done()
	defer close(p.ended)
	defer p.done()
	defer func() { p.link.close(*p.why.Load()) }()
	idle := time.NewTimer(s.cfg.HalfOpen)
	defer idle.Stop()
	var room []byte
	for {
		select {
		case <-p.out.Ready:
		case <-s.closing:
			s.sendAll(p, room)
			s.end(p, errClosing)
			return
		case <-idle.C:
			if p.why.Load() == nil && !p.answered.Load() {
				s.end(p, errUnanswered)
			}
			left := s.cfg.Idle - time.Duration(s.driven.Load()-p.written.Load())
			if p.why.Load() == nil && left <= 0 {
				s.end(p, errIdle)
			}
			idle.Reset(max(left, idlePoll))
		}
		if p.why.Load() != nil {
			return
		}
		room = s.sendAll(p, room)
	}
}

// sendAll sends what waits.
func (s *Server) sendAll(p *peer, room []byte) []byte {
	for d := p.out.Pop(room); d != nil; d = p.out.Pop(room) {
		room = d
		err := p.link.send(d)
		if errors.Is(err, errLarge) {
			s.n.tooLarge.Add(1)
			continue
		}
		if err != nil {
			if err != errSlow {
				hearOut(p.heard)
			}
			s.end(p, err)
			return room
		}
		s.n.sent.Add(1)
	}
	return room
}

// end takes a peer out. Its send goroutine closes the session.
func (s *Server) end(p *peer, why error) {
	p.once.Do(func() {
		s.mu.Lock()
		addr, moved := p.addr, p.moved
		gone := s.peers[addr] == p // its connection hasn't moved on
		if gone {
			delete(s.peers, addr)
			s.setAway(addr, false)
		}
		s.places.Remove(p.remote)
		s.open--
		answered := p.answered.Swap(true)
		if !answered {
			s.half--
		}
		if gone && (answered || moved) { // a stranger has no connection
			s.gone(addr, p, moved || broke(why), why)
		}
		s.mu.Unlock()
		n := &s.n.left
		switch {
		case errors.Is(why, errText):
			n = &s.n.text
		case errors.Is(why, errLong):
			n = &s.n.long
		case errors.Is(why, errUnanswered):
			n = &s.n.unanswered
		case errors.Is(why, errCrowded):
			n = &s.n.crowded
		case errors.Is(why, errIdle):
			n = &s.n.idle
		case errors.Is(why, errSlow):
			n = &s.n.slow
		case errors.Is(why, errNoPath), errors.Is(why, errUntold):
			n = &s.n.noPath
		case errors.Is(why, errMoved):
			n = nil
		}
		if n != nil {
			n.Add(1)
		}
		if n != nil && n != &s.n.left {
			s.log("session ended", addr, why)
		}
		p.why.Store(&why)
	})
	p.out.Signal()
}

// addrOf is the address of the n-th peer, from 1, with one remote address and way: the remote one in the form of IPv6, with the way in its zone. So it
// is no UDP peer's, and what limits peers by their addresses sees the remote one.
func addrOf(w Way, remote netip.AddrPort, n int) netip.AddrPort {
	zone := w.String()
	if n > 1 {
		zone += "." + strconv.Itoa(n)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(remote.Addr().As16()).WithZone(zone), remote.Port())
}

var _ udp.Side = (*Server)(nil)
