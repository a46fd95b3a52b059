package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Carrier is what carries datagrams instead of bare UDP. Each is a model of a socket of the modules netconn/web and netconn/ice, by which the same driver
// plays. It is laid over a [Socket], so that all faults of a script meet it.
type Carrier uint8

// The carriers.
const (
	// WebSocket carries datagrams in order, none of them lost, over a model of TCP: what a lost segment held keeps back all behind it. When a peer takes
	// too little, the oldest datagrams that wait are dropped. A client whose address changes is cut off, and so are all when their server crashes.
	WebSocket Carrier = iota + 1
	// WebTransport carries datagrams of at most 1215 bytes; larger ones are lost. A client keeps its address for the server when it changes on the way.
	WebTransport
	// ICE carries datagrams by a path that changes every few seconds: it fails and carries nothing for 2.5 s, then they go by a relay, which takes longer,
	// and then directly again, where they overtake those by the relay. One change in three is that of a client that goes to another network, where ICE is
	// restarted: that takes 3.5 s of silence and up to 3 s more, and what the relay held is lost. A client keeps its address for the server all the while.
	ICE
)

// Carriers lists all.
var Carriers = []Carrier{WebSocket, WebTransport, ICE}

// String returns the name, as in the zones of addresses.
func (c Carrier) String() string {
	switch c {
	case WebSocket:
		return "websocket"
	case WebTransport:
		return "webtransport"
	case ICE:
		return "ice"
	}
	return "Carrier(" + strconv.Itoa(int(c)) + ")"
}

const (
	largestByWebTransport = 1215
	carrierHeader         = 1 + 8 // the carrier, and the session's number
	largestCarried        = 1500  // that of the sockets which are modelled
	iceDark               = 2500 * time.Millisecond
	iceLeast, iceMost     = 2 * time.Second, 8 * time.Second // between two changes of the path
	relayLeast, relayMost = 10 * time.Millisecond, 80 * time.Millisecond
	iceSilence            = 3500 * time.Millisecond // of all paths, after which ICE is restarted
	findLeast, findMost   = 50 * time.Millisecond, 3 * time.Second
	iceMoves              = 3 // one change in so many is a restart
)

// carried is a socket of a carrier: a client's with one session, or a server's.
type carried struct {
	under    *Socket
	kind     Carrier
	server   bool
	to       netip.AddrPort // a client's server
	sessions []*carriedSession
	byID     map[uint64]*carriedSession
	byAddr   map[netip.AddrPort]*carriedSession
	in       []udp.Message
	ready    []udp.Message
}

// carriedSession is one client at both ends.
type carriedSession struct {
	id     uint64
	name   netip.AddrPort // of the peer, for the driver
	remote netip.AddrPort // where it is
	stream *byteStream    // of a WebSocket
	path   *wander        // of ICE, the client's end
	cut    bool           // a WebSocket that has ended
}

// ListenBy opens a server's socket of a carrier at a port. Join it with the server's own by udp.Join.
func (h *Host) ListenBy(c Carrier, port uint16) (udp.Side, error) {
	s, err := h.Listen(port)
	if err != nil {
		return nil, err
	}
	return newCarried(s, c, true), nil
}

// OpenBy opens a client's socket of a carrier, to a server's of ListenBy. What is sent to any address goes there; what arrives seems to come from the address
// that was sent to last.
func (h *Host) OpenBy(c Carrier, to netip.AddrPort) udp.Socket {
	s := newCarried(h.Open(), c, false)
	s.to = to
	r := h.world.Rand(fmt.Sprintf("carrier %v %v", c, s.under.local))
	x := s.add(r.Uint64(), to)
	if c == ICE {
		x.path = &wander{rng: r, move: s.under.host.Rebind}
	}
	return s
}

var errSessionEnded = errors.New("simtest: the session has ended")

func newCarried(s *Socket, c Carrier, server bool) *carried {
	k := &carried{under: s, kind: c, server: server, byID: map[uint64]*carriedSession{}, byAddr: map[netip.AddrPort]*carriedSession{}, in: make([]udp.Message, socketBatch)}
	for i := range k.in {
		k.in[i].Buf = make([]byte, 2*largestCarried)
	}
	return k
}

func (c *carried) add(id uint64, remote netip.AddrPort) *carriedSession {
	s := &carriedSession{id: id, remote: remote, name: remote}
	if c.server {
		s.name = netip.AddrPortFrom(netip.AddrFrom16(remote.Addr().As16()).WithZone(c.kind.String()+"."+strconv.Itoa(len(c.sessions)+1)), remote.Port())
	}
	if c.kind == WebSocket {
		s.stream = newByteStream()
	}
	c.sessions = append(c.sessions, s)
	c.byID[id], c.byAddr[s.name] = s, s
	return s
}

// now is the world's time: a carrier measures times, and no host's clock goes so wrong in a second that it matters.
func (c *carried) now() time.Duration { return c.under.host.world.now }

// Has implements udp.Side.
func (c *carried) Has(addr netip.AddrPort) bool { return c.byAddr[addr] != nil }

// OnArrival implements udp.Side. Nothing arrives during a tick.
func (c *carried) OnArrival(func()) {}

// TryReadBatch implements udp.Socket.
func (c *carried) TryReadBatch(msgs []udp.Message) (int, error) {
	for {
		n, err := c.under.TryReadBatch(c.in)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		for i := range c.in[:n] {
			c.receive(c.in[i].Data(), c.in[i].Addr)
		}
	}
	c.work()
	n := min(len(msgs), len(c.ready))
	for i := range n {
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, c.ready[i].Buf), c.ready[i].Addr
	}
	c.ready = c.ready[n:]
	if n == 0 && !c.server && c.sessions[0].cut {
		return 0, errSessionEnded
	}
	return n, nil
}

// ReadBatch implements udp.Socket. It never blocks.
func (c *carried) ReadBatch(msgs []udp.Message) (int, error) { return c.TryReadBatch(msgs) }

// WriteBatch implements udp.Socket.
func (c *carried) WriteBatch(msgs []udp.Message) (int, error) {
	if c.under.closed {
		return 0, errSocketClosed
	}
	for i := range msgs {
		s := c.byAddr[msgs[i].Addr]
		if !c.server {
			s = c.sessions[0]
			delete(c.byAddr, s.name)
			s.name = msgs[i].Addr
			c.byAddr[s.name] = s
		}
		if s != nil && !s.cut {
			c.write(s, msgs[i].Buf)
		}
	}
	c.work()
	return len(msgs), nil
}

func (c *carried) write(s *carriedSession, p []byte) {
	n := &c.under.host.world.Counters
	switch {
	case len(p) > largestCarried || c.kind == WebTransport && len(p) > largestByWebTransport:
		n.TooBig++
	case s.stream != nil:
		n.QueueFull += uint64(s.stream.push(p))
	case s.path != nil:
		s.path.pass(c.now(), p, true)
	default:
		c.send(s, p)
	}
}

// send sends a datagram of a session to the network.
func (c *carried) send(s *carriedSession, p []byte) {
	b := binary.LittleEndian.AppendUint64([]byte{byte(c.kind)}, s.id)
	c.under.host.world.net.send(c.under, s.remote, append(b, p...))
}

// receive takes what came from the network.
func (c *carried) receive(p []byte, from netip.AddrPort) {
	if len(p) <= carrierHeader || p[0] != byte(c.kind) {
		return
	}
	id, p := binary.LittleEndian.Uint64(p[1:]), p[carrierHeader:]
	s := c.byID[id]
	if c.kind == WebSocket {
		if p = checked(p); p == nil { // TCP drops it
			return
		}
		switch {
		case p[0] == segmentReset:
			if s != nil && !c.server {
				s.cut = true
			}
			return
		case c.server && (s == nil && !isFirst(p) || s != nil && s.remote != from):
			c.send(&carriedSession{id: id, remote: from}, summed([]byte{segmentReset}))
			return
		}
	}
	if s == nil {
		if !c.server {
			return
		}
		s = c.add(id, from)
	}
	switch {
	case s.cut:
	case s.stream != nil:
		s.stream.receive(c.now(), p)
	case s.path != nil:
		s.path.pass(c.now(), p, false)
	default:
		if c.server {
			s.remote = from
		}
		c.arrived(s, p)
	}
}

func (c *carried) arrived(s *carriedSession, p []byte) {
	c.ready = append(c.ready, udp.Message{Buf: append([]byte(nil), p...), Addr: s.name})
}

// work does what is due.
func (c *carried) work() {
	now := c.now()
	for _, s := range c.sessions {
		switch {
		case s.cut:
		case s.stream != nil:
			s.stream.work(now, func(p []byte) { c.send(s, summed(p)) })
			for p := s.stream.pop(); p != nil; p = s.stream.pop() {
				c.arrived(s, p)
			}
		case s.path != nil:
			s.path.work(now, func(p []byte) { c.send(s, p) }, func(p []byte) { c.arrived(s, p) })
		}
	}
}

// BatchSize implements udp.Socket.
func (c *carried) BatchSize() int { return socketBatch }

// LocalAddr implements udp.Socket.
func (c *carried) LocalAddr() netip.AddrPort { return c.under.LocalAddr() }

// SetReadDeadline implements udp.Socket. It does nothing, because nothing blocks.
func (c *carried) SetReadDeadline(time.Time) error { return nil }

// Close implements udp.Socket.
func (c *carried) Close() error { return c.under.Close() }

var _ udp.Side = (*carried)(nil)

// wander is the path of ICE, at the client's end.
type wander struct {
	rng    Rand
	move   func()        // to another network
	next   time.Duration // when it changes
	dark   time.Duration // until when it carries nothing
	relay  time.Duration // what the relay takes longer, 0 without one
	begun  bool
	held   []heldDatagram // by the relay, in the order they are due
	passed []heldDatagram
}

type heldDatagram struct {
	due time.Duration
	out bool
	p   []byte
}

// pass puts a datagram on the path.
func (w *wander) pass(now time.Duration, p []byte, out bool) {
	w.change(now)
	switch d := (heldDatagram{now + w.relay, out, append([]byte(nil), p...)}); {
	case now < w.dark:
	case w.relay > 0:
		w.held = append(w.held, d)
	default:
		w.passed = append(w.passed, d)
	}
}

// change changes the path when it is time.
func (w *wander) change(now time.Duration) {
	draw := func(least, most time.Duration) time.Duration {
		return least + time.Duration(w.rng.Int64N(int64(most-least)))
	}
	switch {
	case !w.begun:
		w.begun, w.next = true, now+draw(iceLeast, iceMost)
	case now < w.next:
	case w.rng.IntN(iceMoves) == 0:
		w.dark, w.relay, w.held, w.passed = now+iceSilence+draw(findLeast, findMost), 0, nil, nil
		if w.rng.IntN(2) == 0 {
			w.relay = draw(relayLeast, relayMost)
		}
		w.next = w.dark + draw(iceLeast, iceMost)
		w.move()
	case w.relay == 0:
		w.dark, w.relay, w.next = now+iceDark, draw(relayLeast, relayMost), now+iceDark+draw(iceLeast, iceMost)
	default:
		w.relay, w.next = 0, now+draw(iceLeast, iceMost)
	}
}

// work hands on what is due.
func (w *wander) work(now time.Duration, send, arrived func(p []byte)) {
	w.change(now)
	n := 0
	for n < len(w.held) && w.held[n].due <= now {
		n++
	}
	due := append(w.passed, w.held[:n]...) // those by the relay are overtaken
	w.held, w.passed = append([]heldDatagram(nil), w.held[n:]...), nil
	for _, d := range due {
		if d.out {
			send(d.p)
		} else {
			arrived(d.p)
		}
	}
}

// summed is a segment with its sum, checked one without, or nil.
func summed(p []byte) []byte { return binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(p)) }

func checked(p []byte) []byte {
	n := len(p) - 4
	if n < 1 || crc32.ChecksumIEEE(p[:n]) != binary.LittleEndian.Uint32(p[n:]) {
		return nil
	}
	return p[:n]
}
