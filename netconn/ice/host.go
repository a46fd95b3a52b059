package ice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/linkend"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// HostConfig has the settings of a Host. The zero value is useful.
type HostConfig struct {
	Config
	// MaxGuests bounds the guests that have a path or look for one. Default 64.
	MaxGuests int
	// MaxConnecting bounds those that look for one. Default 16.
	MaxConnecting int
	// HalfOpen ends a session that the driver hasn't answered for so long, since it has shown no connect token. Default 10 s.
	HalfOpen time.Duration
	// Idle ends a session to which the driver has sent nothing for so long, since its connection has ended. Default 15 s.
	Idle time.Duration
}

// Host is the socket of a player who hosts a game. Its peers are the guests that Join let in. It is a udp.Side too. It is safe for concurrent use, except
// that reads and writes belong to one goroutine. A driver closes its socket and so the Host.
type Host struct {
	reader
	*node
	cfg HostConfig

	batch []udp.Message // of the writer

	// Guarded by node.mu.
	peers      map[netip.AddrPort]*session
	all        map[*session]bool
	connecting int // calls of Join that look for a path
	starting   int // of these, those whose session isn't in all yet
	nextID     int
	closed     bool
	driver     *driver.Driver
}

// reader is the reading half of the sockets.
type reader = mailbox.Reader

// Listen opens a host's socket, and begins to look for its addresses.
func Listen(cfg HostConfig) (*Host, error) {
	if cfg.MaxGuests < 0 || cfg.MaxConnecting < 0 || cfg.HalfOpen < 0 || cfg.Idle < 0 {
		return nil, fmt.Errorf("%w: MaxGuests, MaxConnecting, HalfOpen and Idle must be positive, or 0 for the default", ErrConfig)
	}
	cfg.MaxGuests, cfg.MaxConnecting = cmp.Or(cfg.MaxGuests, 64), cmp.Or(cfg.MaxConnecting, 16)
	cfg.HalfOpen, cfg.Idle = cmp.Or(cfg.HalfOpen, 10*time.Second), cmp.Or(cfg.Idle, 15*time.Second)
	n, err := newNode(cfg.Config)
	if err != nil {
		return nil, err
	}
	h := &Host{reader: n.in.Reader(), node: n, cfg: cfg, peers: map[netip.AddrPort]*session{}, all: map[*session]bool{}}
	n.wg.Go(h.sweep)
	return h, nil
}

// Join looks for a path to a guest, which calls Dial at the other end of the signal. It returns when there is one, or with an error: ErrFull, net.ErrClosed
// when the host is closed, or one that wraps ErrNoWay. After that, and until ctx is done, the signal is still used for addresses that are found later; its
// end doesn't end the session.
func (h *Host) Join(ctx context.Context, sig Signal) error { return h.join(ctx, sig, nil) }

// join is Join, or Rejoin of a guest that has an old session.
func (h *Host) join(ctx context.Context, sig Signal, old *session) error {
	h.mu.Lock()
	switch {
	case h.closed:
		h.mu.Unlock()
		return net.ErrClosed
	case old == nil && h.guests() >= h.cfg.MaxGuests || h.connecting >= h.cfg.MaxConnecting:
		h.mu.Unlock()
		h.n.full.Add(1)
		return ErrFull
	}
	h.connecting++
	if old == nil {
		h.starting++
	}
	h.wg.Add(1) // Close waits
	h.mu.Unlock()
	defer h.wg.Done()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.connecting--
	}()
	s, err := newSession(h.node, false)
	if err == nil {
		if old != nil {
			s.connectTime = restartTime
			s.heir(old, func() bool { return h.takeOver(s, old) })
		} else {
			s.source = newSource(netip.AddrPort{}, inPerPeer)
			s.named = func(from netip.AddrPort) { h.name(s, from) }
		}
		s.done = func(why error) { h.ended(s, why) }
		s.written.Store(int64(h.now()))
	}
	h.mu.Lock()
	if old == nil {
		h.starting--
	}
	closed := h.closed
	var before *session // which its guest has given up, or is one of many that it began
	if err == nil && !closed {
		h.all[s] = true
		if old != nil {
			before, old.follower = old.follower, s
		}
	}
	h.mu.Unlock()
	if before != nil {
		before.end(errReplaced)
	}
	if err != nil {
		return err
	}
	if closed {
		s.wg.Done()
		s.end(net.ErrClosed)
		return net.ErrClosed
	}
	return s.talk(ctx, sig)
}

// name gives a guest its address: the remote one of its first path in the form of IPv6, with a number in its zone. It stays when the path changes.
// h.mu is held.
func (h *Host) name(s *session, from netip.AddrPort) {
	h.nextID++
	at := netip.AddrPortFrom(netip.AddrFrom16(from.Addr().As16()).WithZone(zone+strconv.Itoa(h.nextID)), from.Port())
	h.in.Redirect(s.source, at)
	h.peers[at] = s
	s.written.Store(int64(h.now()))
}

const zone = "ice."

// Has implements udp.Side.
func (h *Host) Has(addr netip.AddrPort) bool { return strings.HasPrefix(addr.Addr().Zone(), zone) }

// OnArrival implements udp.Side.
func (h *Host) OnArrival(f func()) { h.in.OnArrival(f) }

// LocalAddr implements udp.Socket. It returns HostAddr, which a driver then takes for its address in connect tokens.
func (h *Host) LocalAddr() netip.AddrPort { return HostAddr() }

// Addr returns the address of the socket below.
func (h *Host) Addr() netip.AddrPort { return h.socket.LocalAddr() }

// Candidates returns the addresses found so far by which guests may reach the host. Any goroutine may call it.
func (h *Host) Candidates() []Candidate {
	all, _ := h.own()
	return all
}

// Counters returns the counters so far. Any goroutine may call it.
func (h *Host) Counters() Counters { return h.n.get() }

// Path returns how datagrams to a guest go, and the address they go to now. Any goroutine may call it.
func (h *Host) Path(guest netip.AddrPort) (Path, netip.AddrPort) {
	h.mu.Lock()
	s := h.peers[guest]
	h.mu.Unlock()
	if s == nil {
		return NoPath, netip.AddrPort{}
	}
	return s.where()
}

// guests returns the number of guests that take a place. h.mu is held.
func (h *Host) guests() int {
	n := h.starting
	for s := range h.all {
		if s.old == nil || isDone(s.old.ended) { // until then old has it
			n++
		}
	}
	return n
}

// Moved returns a channel that is closed when the addresses of the machine change next, so that connections which the game has besides may be made anew.
func (h *Host) Moved() <-chan struct{} { return h.whenMoved() }

// Len returns the number of guests that have a path or look for one. Any goroutine may call it.
func (h *Host) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// Tell makes a driver's connections end at once when their sessions end: of ErrLost as by a time-out, so that package session keeps the player. Without it they wait
// until driver.Config.Timeout. Call it after driver.Listen.
func (h *Host) Tell(d *driver.Driver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.driver = d
}

// WriteBatch implements udp.Socket. It doesn't wait: what can't be sent is lost and counted.
func (h *Host) WriteBatch(msgs []udp.Message) (int, error) {
	if err := h.in.Failed(); err != nil {
		return 0, err
	}
	now := h.now()
	h.batch = h.batch[:0]
	for i := range msgs {
		h.mu.Lock()
		s := h.peers[msgs[i].Addr]
		h.mu.Unlock()
		if s == nil {
			h.n.noPath.Add(1)
			continue
		}
		s.written.Store(int64(now))
		s.answered.Store(true)
		h.batch = s.send(h.batch, msgs[i].Buf, now)
	}
	h.writeBatch(h.batch)
	return len(msgs), nil
}

// send sends a datagram by a relay, or adds it to a batch for the socket.
func (s *session) send(batch []udp.Message, p []byte, now time.Duration) []udp.Message {
	u := s.way(now)
	switch {
	case u == nil:
		s.n.n.noPath.Add(1)
		return batch
	case u.relayed && !sealed(p):
		s.n.n.unsealed.Add(1)
		return batch
	}
	s.n.n.sent.Add(1)
	if u.base.relay {
		u.base.write(p, u.addr)
		return batch
	}
	return append(batch, udp.Message{Buf: p, Addr: u.addr})
}

// sweep ends sessions that the driver has no use for.
func (h *Host) sweep() {
	ticker := time.NewTicker(max(10*time.Millisecond, min(time.Second, h.cfg.HalfOpen/4, h.cfg.Idle/4)))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return
		}
		now := h.now()
		h.mu.Lock()
		var old []*session
		for _, s := range h.peers {
			limit := h.cfg.HalfOpen
			if s.answered.Load() {
				limit = h.cfg.Idle
			}
			if now-time.Duration(s.written.Load()) > limit {
				old = append(old, s)
			}
		}
		h.mu.Unlock()
		for _, s := range old {
			if s.answered.Load() {
				s.end(errIdle)
			} else {
				s.end(errUnanswered)
			}
		}
	}
}

var (
	errUnanswered = errors.New("ice: the game didn't answer this guest: it showed no connect token for this match, or an old one")
	errIdle       = errors.New("ice: the connection has ended")
)

// ended forgets a guest.
func (h *Host) ended(s *session, why error) {
	h.n.count(why)
	h.mu.Lock()
	delete(h.all, s)
	var addr netip.AddrPort
	for a, of := range h.peers {
		if of == s {
			addr = a
			delete(h.peers, a)
		}
	}
	d := h.driver
	h.mu.Unlock()
	if d == nil || !addr.IsValid() {
		return
	}
	d.Do(func() { linkend.Tell(d, addr, why, errors.Is(why, ErrLost)) })
}

// Close ends all sessions, waits for calls of Join, and closes the socket.
func (h *Host) Close() error {
	h.in.Fail(net.ErrClosed)
	h.mu.Lock()
	h.closed = true
	var all []*session
	for s := range h.all {
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range all {
		s.end(net.ErrClosed)
	}
	return h.close()
}

var _ udp.Side = (*Host)(nil)
