package ice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Bounds on checks to addresses that haven't answered. Somebody may name a stranger's address as its own.
const (
	checkRate, checkBurst = 20, 60 // a second to one IPv4 address or IPv6 /64, and at once; wider networks a multiple, as in ratelimit
	checkTotal            = 1000   // a second to all
	checkNetworks         = 4096   // that are remembered
	maxUnanswered         = 30     // to one address in one session
)

// node is what both ends have: the sockets, the sessions over them, and the bounds on what strangers may cause.
type node struct {
	cfg    Config
	uris   []*stun.URI
	in     *mailbox.Inbox
	n      counters
	lines  ratelimit.Lines
	checks *ratelimit.Limiter
	direct *base
	socket udp.Socket
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
	began  time.Time

	writing sync.Mutex // of socket
	one     [1]udp.Message

	mu       sync.Mutex
	bases    []*base // direct, then a relay's
	sessions map[string]*session
	routes   map[route]*session
	asked    map[transaction]*check
	onHost   []netip.AddrPort
	outside  []netip.AddrPort // of the servers, in their order
	changed  chan struct{}    // closed when own addresses have
	moved    chan struct{}    // closed when those of the interfaces have
}

type transaction [stun.TransactionIDSize]byte

// base is a local address that datagrams are sent from.
type base struct {
	relay bool
	addr  netip.AddrPort // a relay's
	// write sends a datagram, or loses it. It doesn't wait.
	write func(p []byte, to netip.AddrPort)
}

// route is a way to a remote address.
type route struct {
	base *base
	addr netip.AddrPort
}

// check is a request whose answer is to come.
type check struct {
	session *session // nil for a STUN server's
	base    *base
	to      netip.AddrPort
	answer  chan netip.AddrPort // of a STUN server
}

// listen is udp.Listen; tests have another.
var listen = udp.Listen

// newNode opens the socket.
func newNode(cfg Config) (*node, error) {
	uris, err := cfg.check()
	if err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	s, err := listen(cfg.Addr, udp.Config{})
	if err != nil {
		return nil, fmt.Errorf("ice: %w", err)
	}
	n := &node{cfg: cfg, uris: uris, in: mailbox.NewInbox(inDatagrams, cfg.ReceiveBuffer), socket: s,
		checks:   ratelimit.New(time.Now, checkRate, checkBurst, checkNetworks, checkTotal),
		sessions: map[string]*session{}, routes: map[route]*session{}, asked: map[transaction]*check{},
		outside: make([]netip.AddrPort, len(uris)), changed: make(chan struct{}), moved: make(chan struct{}), began: time.Now()}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.direct = &base{write: n.writeDirect}
	if !cfg.RelayOnly {
		n.bases = []*base{n.direct}
		n.onHost = interfaces(s.LocalAddr(), cfg.Loopback)
		n.wg.Go(n.watchInterfaces)
	}
	n.wg.Go(n.read)
	n.wg.Go(n.relays)
	if !cfg.RelayOnly {
		for i, u := range uris {
			if u.Proto == stun.ProtoTypeUDP {
				n.wg.Go(func() { n.discover(i, u) })
			}
		}
	}
	return n, nil
}

// now is the time since the node's beginning, whatever the clock is set to.
func (n *node) now() time.Duration { return time.Since(n.began) }

// close ends all but the sessions.
func (n *node) close() error {
	n.stop()
	err := n.socket.Close()
	n.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil // closed before
	}
	return err
}

// read passes on what comes to the socket.
func (n *node) read() {
	msgs := make([]udp.Message, n.socket.BatchSize())
	for i := range msgs {
		msgs[i].Buf = make([]byte, mailbox.MaxDatagram)
	}
	for {
		k, err := n.socket.ReadBatch(msgs)
		for i := range msgs[:k] {
			n.receive(n.direct, msgs[i].Data(), msgs[i].Addr)
		}
		switch {
		case err == nil:
		case n.ctx.Err() != nil:
			return
		case !udp.IsTemporary(err):
			n.in.Fail(fmt.Errorf("ice: %w", err))
			return
		}
	}
}

// writeDirect sends a datagram by the socket.
func (n *node) writeDirect(p []byte, to netip.AddrPort) {
	n.writing.Lock()
	defer n.writing.Unlock()
	n.one[0] = udp.Message{Buf: p, Addr: to}
	_, _ = n.socket.WriteBatch(n.one[:]) // lost, as on the network
}

// writeBatch sends datagrams by the socket.
func (n *node) writeBatch(msgs []udp.Message) {
	n.writing.Lock()
	defer n.writing.Unlock()
	for len(msgs) > 0 {
		k, err := n.socket.WriteBatch(msgs)
		if err != nil || k == 0 {
			k++ // the one that the system refuses is lost
		}
		msgs = msgs[min(k, len(msgs)):]
	}
}

// receive passes on a datagram, which stays the caller's.
func (n *node) receive(b *base, p []byte, from netip.AddrPort) {
	if len(p) == 0 || len(p) > mailbox.MaxDatagram {
		return
	}
	if p[0] < 4 && stun.IsMessage(p) { // what netcode sends never begins so
		n.receiveCheck(b, p, from)
		return
	}
	n.mu.Lock()
	s := n.routes[route{b, from}]
	n.mu.Unlock()
	if s == nil {
		n.n.strangers.Add(1)
		return
	}
	d := n.in.Buffer()
	if n.n.received.Add(1); !n.in.Put(s.source, d[:copy(d, p)]) {
		n.n.unread.Add(1)
	}
}

// The kinds of checks (RFC 8489).
const (
	bindingRequest    = 0x0001
	bindingIndication = 0x0011
	bindingSuccess    = 0x0101
	bindingError      = 0x0111
)

// receiveCheck passes a check or an answer on to its session's agent, if it is one's.
func (n *node) receiveCheck(b *base, p []byte, from netip.AddrPort) {
	switch binary.BigEndian.Uint16(p) {
	case bindingRequest:
		n.receiveRequest(b, p, from)
	case bindingSuccess, bindingError:
		n.receiveAnswer(b, p, from)
	case bindingIndication: // of the other's open
	default:
		n.n.strangers.Add(1)
	}
}

func (n *node) receiveRequest(b *base, p []byte, from netip.AddrPort) {
	m := stun.Message{Raw: p}
	var name stun.Username
	if m.Decode() != nil || name.GetFrom(&m) != nil {
		n.n.strangers.Add(1)
		return
	}
	own, _, _ := strings.Cut(string(name), ":")
	n.mu.Lock()
	s := n.sessions[own]
	n.mu.Unlock()
	if s == nil {
		n.n.strangers.Add(1)
		return
	}
	s.receiveRequest(route{b, from}, p, &m)
}

func (n *node) receiveAnswer(b *base, p []byte, from netip.AddrPort) {
	var id transaction
	copy(id[:], p[8:])
	n.mu.Lock()
	c := n.asked[id]
	n.mu.Unlock()
	if c == nil {
		n.n.strangers.Add(1)
		return
	}
	m := stun.Message{Raw: p}
	var mapped stun.XORMappedAddress
	if c.base != b || c.to != from || m.Decode() != nil {
		n.n.forged.Add(1)
		return
	}
	var seen netip.AddrPort
	if mapped.GetFrom(&m) == nil {
		if ip, ok := netip.AddrFromSlice(mapped.IP); ok {
			seen = netip.AddrPortFrom(ip.Unmap(), uint16(mapped.Port))
		}
	}
	if c.session != nil {
		c.session.receiveAnswer(route{b, from}, id, p, &m, seen)
		return
	}
	if seen.IsValid() {
		select {
		case c.answer <- seen:
		default:
		}
	}
}

// own returns the addresses that others may reach this end by.
func (n *node) own() (all []Candidate, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.onHost {
		all = append(all, Candidate{OnHost, a})
	}
	for i, a := range n.outside {
		if a.IsValid() && !slices.Contains(n.outside[:i], a) && !slices.Contains(n.onHost, a) {
			all = append(all, Candidate{Reflexive, a})
		}
	}
	for _, b := range n.bases {
		if b.relay {
			all = append(all, Candidate{Relayed, b.addr})
		}
	}
	return all, n.changed
}

// change changes own addresses by f, and has all sessions look again.
func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

// whenMoved returns a channel that is closed when the addresses of the interfaces change.
func (n *node) whenMoved() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.moved
}

// log writes a line, unless one was written within the second.
func (n *node) log(what string, args ...slog.Attr) {
	if _, ok := n.lines.Next(time.Now()); ok {
		n.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "ice: "+what, args...)
	}
}

// interfacesEvery is how often the machine's addresses are looked at.
var interfacesEvery = time.Second

// watchInterfaces tells sessions of another network.
func (n *node) watchInterfaces() {
	for n.ctx.Err() == nil {
		n.sleep(interfacesEvery, nil)
		if now := interfaces(n.socket.LocalAddr(), n.cfg.Loopback); now != nil && !slices.Equal(now, n.onHost) { // only this goroutine writes onHost
			n.change(func() {
				n.onHost = now
				close(n.moved)
				n.moved = make(chan struct{})
			})
		}
	}
}

// interfaceAddrs is net.InterfaceAddrs; tests have another.
var interfaceAddrs = net.InterfaceAddrs

// networks returns the networks that this machine is in, with its address in each; none when the system doesn't say.
func networks() (all []netip.Prefix) {
	list, _ := interfaceAddrs() // other addresses will do
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// interfaces returns the addresses of this machine with the socket's port: at most 8, IPv4 first, or the socket's own.
func interfaces(bound netip.AddrPort, loopback bool) (all []netip.AddrPort) {
	if !bound.Addr().IsUnspecified() {
		return []netip.AddrPort{bound}
	}
	list := networks()
	for _, four := range []bool{true, false} {
		for _, prefix := range list {
			at := netip.AddrPortFrom(prefix.Addr().Unmap(), bound.Port())
			if at.Addr().Is4() == four && (bound.Addr().Is6() || four) && acceptable(at, loopback) && len(all) < maxInterfaces {
				all = append(all, at)
			}
		}
	}
	return all
}

const maxInterfaces = 8

// quietLoggers has pion say nothing: what matters is counted.
type quietLoggers struct{}

func (quietLoggers) NewLogger(string) logging.LeveledLogger { return &logging.DefaultLeveledLogger{} }
