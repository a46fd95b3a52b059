package ice

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

const (
	relayHeadStart = 500 * time.Millisecond // of one relay before the next is tried too
	relayTime      = 8 * time.Second        // for an address from it
	relayAgain     = time.Second            // after a failure, or one that was lost before relayRarely; doubled up to that
	relayRarely    = 30 * time.Second
)

// relaySilent is how long nothing comes from the server, though something was sent, when it is asked whether it knows this end; relayAnswer is the time for its answer, and
// relayWrite that for one message to it by TCP.
var relaySilent, relayAnswer, relayWrite = 2 * time.Second, 5 * time.Second, 5 * time.Second

// relay is an allocation at a TURN server.
type relay struct {
	base
	n       *node
	server  netip.AddrPort
	local   netip.Addr     // of this end, to the server
	conn    net.PacketConn // to the server
	client  *turn.Client
	alloc   net.PacketConn
	out     mailbox.Outbox
	permits permits
	stream  bool // conn is over TCP
	ended   chan struct{}
	once    sync.Once

	heard, relayed, sent atomic.Int64 // when anything came from the server, when it relayed something, and when it was given something to relay; as node.now

	mu   sync.Mutex     // of alloc, until it is there, and seen
	seen netip.AddrPort // this end's address, as the server saw it when it gave one
}

// relays keeps an allocation as long as the node is open, if there is a server.
func (n *node) relays() {
	var servers []*stun.URI
	for _, u := range n.uris {
		if u.Scheme != stun.SchemeTypeSTUN {
			servers = append(servers, u)
		}
	}
	wait := relayAgain
	for len(servers) > 0 && n.ctx.Err() == nil {
		moved := n.whenMoved()
		r, since := n.allocate(servers), n.now()
		if r != nil && n.keep(r) || n.now()-since > relayRarely {
			wait = relayAgain
			continue
		}
		n.sleep(wait, moved) // also when a server gave an address and took it back
		wait = min(2*wait, relayRarely)
	}
}

// keep offers a relay's address until it is lost, or the node closes, and reports whether it was lost because this end is in another network: a relay
// knows its clients by their addresses.
func (n *node) keep(r *relay) (moved bool) {
	n.change(func() { n.bases = append(n.bases, &r.base) })
	outside := n.outsides()
	for lost := false; !lost && !moved && n.ctx.Err() == nil; {
		_, changed := n.own()
		select {
		case <-r.ended:
			lost = true
		case <-changed:
			now := n.outsides()
			moved = localTo(r.server) != r.local ||
				!slices.EqualFunc(outside, now, func(a, b netip.AddrPort) bool { return !a.IsValid() || a.Addr() == b.Addr() }) && r.elsewhere()
			outside = now
		case <-n.ctx.Done():
		}
	}
	if n.ctx.Err() == nil {
		n.n.relaysLost.Add(1)
		n.log("a relay is lost", slog.Any("relay", r.addr))
	}
	n.change(func() {
		for i, b := range n.bases {
			if b == &r.base {
				n.bases = append(n.bases[:i:i], n.bases[i+1:]...)
				break
			}
		}
	})
	r.close()
	return moved
}

// elsewhere reports whether the server sees this end at another address than when it gave one. STUN servers may say so, and lie.
func (r *relay) elsewhere() bool {
	answer := make(chan net.Addr, 1)
	r.permits.mu.Lock()
	if !isDone(r.ended) {
		r.permits.asking.Go(func() {
			if at, err := r.client.SendBindingRequestTo(r.client.TURNServerAddr()); err == nil {
				answer <- at
			}
		})
	}
	r.permits.mu.Unlock()
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	timer := time.NewTimer(relaySilent)
	defer timer.Stop()
	select {
	case at := <-answer:
		a, ok := at.(*net.UDPAddr)
		return ok && seen.IsValid() && addrOf(a) != seen
	case <-r.ended:
	case <-r.n.ctx.Done():
	case <-timer.C: // by UDP watch finds out whether the server still knows this end
		return r.stream
	}
	return false
}

// outsides returns this end's addresses outside of its router.
func (n *node) outsides() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.outside)
}

// localTo returns the address of this machine that datagrams to another one have. It is invalid where there is no route.
func localTo(to netip.AddrPort) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)) // sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// allocate tries the servers in turn, the next one a moment after the one before, until one has given an address.
func (n *node) allocate(servers []*stun.URI) *relay {
	ctx, cancel := context.WithTimeout(n.ctx, relayTime+time.Duration(len(servers))*relayHeadStart)
	defer cancel()
	type result struct {
		r   *relay
		err error
		u   *stun.URI
	}
	results := make(chan result)
	next, under := time.NewTimer(0), 0
	defer next.Stop()
	var got *relay
	for under > 0 || len(servers) > 0 {
		select {
		case <-next.C:
			if len(servers) == 0 {
				continue
			}
			u := servers[0]
			servers = servers[1:]
			under++
			go func() {
				r, err := n.open(ctx, u)
				results <- result{r, err, u}
			}()
			next.Reset(relayHeadStart)
		case r := <-results:
			under--
			switch {
			case r.err != nil:
				if got == nil && n.ctx.Err() == nil {
					n.n.relayErrors.Add(1)
					n.log("no relay", slog.String("url", r.u.String()), slog.Any("why", r.err))
				}
				next.Reset(0)
			case got != nil:
				r.r.close()
			default:
				got, servers = r.r, nil
				cancel()
			}
		}
	}
	return got
}

// open asks one server for an address.
func (n *node) open(ctx context.Context, u *stun.URI) (*relay, error) {
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()
	server, err := n.resolve(u)
	if err != nil {
		return nil, err
	}
	r := &relay{n: n, server: server, local: localTo(server), stream: u.Proto == stun.ProtoTypeTCP, out: mailbox.NewOutbox(n.cfg.SendBuffer), ended: make(chan struct{})}
	r.permits.of, r.permits.ask = map[netip.Addr]*permit{}, r.askRelay
	var d net.Dialer
	switch {
	case u.Proto == stun.ProtoTypeUDP:
		network := "udp6"
		if server.Addr().Is4() {
			network = "udp4"
		}
		r.conn, err = net.ListenPacket(network, ":0")
	case u.Scheme == stun.SchemeTypeTURN:
		var c net.Conn
		if c, err = d.DialContext(ctx, "tcp", server.String()); err == nil {
			r.conn = turn.NewSTUNConn(&stream{Conn: c})
		}
	default:
		conf := n.cfg.TLS.Clone()
		if conf == nil {
			conf = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if conf.ServerName == "" {
			conf.ServerName = u.Host
		}
		var c net.Conn
		if c, err = (&tls.Dialer{NetDialer: &d, Config: conf}).DialContext(ctx, "tcp", server.String()); err == nil {
			r.conn = turn.NewSTUNConn(&stream{Conn: c})
		}
	}
	if err != nil {
		return nil, err
	}
	r.client, err = turn.NewClient(&turn.ClientConfig{TURNServerAddr: server.String(), Username: u.Username, Password: u.Password, Conn: r.conn, LoggerFactory: quietLoggers{},
		RequestedAddressFamily: turn.RequestedAddressFamilyIPv4})
	if err != nil {
		return nil, errors.Join(err, r.conn.Close())
	}
	n.wg.Go(r.receive)
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.alloc == nil {
			_ = r.conn.Close() // ends the attempt
		}
	})()
	alloc, err := r.client.AllocateWithContext(ctx)
	if err != nil {
		r.end()
		r.client.Close()
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	r.mu.Lock()
	r.alloc = alloc
	r.mu.Unlock()
	at, _ := netip.ParseAddrPort(alloc.LocalAddr().String())
	r.base = base{relay: true, addr: netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), write: r.write}
	n.wg.Go(r.read)
	n.wg.Go(r.send)
	n.wg.Go(r.watch)
	return r, nil
}

// stream is a connection to a relay by TCP. It ends when a message can't be written in time: a server that doesn't read keeps nobody waiting, not even who closes.
type stream struct {
	net.Conn
	writing sync.Mutex // so that each write has its time
}

// Write implements net.Conn.
func (s *stream) Write(p []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err = s.SetWriteDeadline(time.Now().Add(relayWrite)); err == nil {
		n, err = s.Conn.Write(p)
	}
	if err != nil {
		_ = s.Conn.Close() // err is the one to return
	}
	return n, err
}

// receive hands over what the server sends, until the connection to it ends. What others send to the same port isn't a relay's word.
func (r *relay) receive() {
	p := make([]byte, 64<<10)
	for {
		k, from, err := r.conn.ReadFrom(p)
		if err != nil || k == 0 && r.stream { // pion reads nothing from a message whose length is out of bounds, again and again
			r.end()
			return
		}
		if a, ok := from.(*net.UDPAddr); ok && addrOf(a) != r.server {
			r.n.n.strangers.Add(1)
			continue
		}
		if !r.granted(p[:k]) {
			r.n.log("a relay gives addresses for too short a time", slog.Any("relay", r.server))
			r.end()
			return
		}
		r.heard.Store(int64(r.n.now()))
		_, _ = r.client.HandleInbound(p[:k], from) // the answer to nothing is of no use
	}
}

// leastLife is how many seconds a relay's address must last: pion asks for it again after half of that, at once after none.
const leastLife = 10

// granted reports whether a server's message may be handed over: it is not an address for a shorter time. The address that the server sees this end at is noted.
func (r *relay) granted(p []byte) bool {
	m := stun.Message{Raw: p}
	if !stun.IsMessage(p) || binary.BigEndian.Uint16(p) != allocateSuccess || m.Decode() != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.alloc != nil {
		return true // nobody asked
	}
	var seen stun.XORMappedAddress
	if seen.GetFrom(&m) == nil {
		r.seen = addrOf(&net.UDPAddr{IP: seen.IP, Port: seen.Port})
	}
	life, err := m.Get(stun.AttrLifetime)
	return err != nil || len(life) != 4 || binary.BigEndian.Uint32(life) >= leastLife
}

const allocateSuccess = 0x0103 // RFC 8656

// read passes on what the relay got for this end. Others may send it longer datagrams than the game's, which would end the reads if they had no room.
func (r *relay) read() {
	p := make([]byte, 64<<10)
	for {
		k, from, err := r.alloc.ReadFrom(p)
		if err != nil {
			r.end()
			return
		}
		r.relayed.Store(int64(r.n.now()))
		if a, ok := from.(*net.UDPAddr); ok {
			r.n.receive(&r.base, p[:k], addrOf(a))
		}
	}
}

func addrOf(a *net.UDPAddr) netip.AddrPort {
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// addrBytes is the size of an address before a datagram that waits.
const addrBytes = 16 + 2

// write has a datagram sent by the relay, once that lets in what comes from there.
func (r *relay) write(p []byte, to netip.AddrPort) {
	if r.permitted(to, p) {
		r.push(p, to)
	}
}

// push has a datagram wait for send.
func (r *relay) push(p []byte, to netip.AddrPort) {
	var room [addrBytes + mailbox.MaxDatagram]byte
	ip := to.Addr().As16()
	b := binary.BigEndian.AppendUint16(append(room[:0], ip[:]...), to.Port())
	r.out.Push(append(b, p...))
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// send sends what waits. A connection by TCP may make it wait.
func (r *relay) send() {
	var room []byte
	m, kind := stun.New(), stun.NewType(stun.MethodSend, stun.ClassIndication)
	for {
		select {
		case <-r.out.Ready:
		case <-r.ended:
			return
		}
		for d := r.out.Pop(room); d != nil; d = r.out.Pop(room) {
			room = d
			ip := netip.AddrFrom16([16]byte(d)).Unmap()
			to := net.UDPAddr{IP: ip.AsSlice(), Port: int(binary.BigEndian.Uint16(d[16:]))}
			if m.Build(stun.TransactionID, kind, &indication{to, d[addrBytes:]}) == nil {
				r.sent.Store(int64(r.n.now()))
				_, _ = r.client.WriteTo(m.Raw, r.client.TURNServerAddr()) // lost, as on the network
			}
		}
	}
}

// watch asks the server from time to time whether it knows this end, so that the router between them does too, and soon when nothing comes though something was
// sent. A server that is started again, or for which this machine slept too long, has forgotten its addresses; pion goes on refreshing them for ever.
func (r *relay) watch() {
	ticker := time.NewTicker(relaySilent / 4)
	defer ticker.Stop()
	var asked time.Duration
	for {
		select {
		case <-ticker.C:
		case <-r.ended:
			return
		}
		now, heard := r.n.now(), time.Duration(r.heard.Load())
		silent := time.Duration(r.sent.Load()) > heard && now-max(heard, asked) >= relaySilent
		if !silent && now-asked < askAgain {
			continue
		}
		if asked = now; silent {
			r.permits.renew()
		}
		if !r.known(now) {
			r.end()
			return
		}
	}
}

// known asks the server for a permission that changes nothing, and reports false when it doesn't answer that and still answers what strangers may ask. Without
// an answer to either the network may be gone, after which a server that is asked by UDP may still know this end.
func (r *relay) known(now time.Duration) bool {
	answer, there := make(chan error, 1), make(chan error, 1)
	r.permits.mu.Lock()
	if !isDone(r.ended) {
		r.permits.asking.Go(func() { answer <- r.permits.ask(r.addr.Addr()) })
		r.permits.asking.Go(func() {
			_, err := r.client.SendBindingRequestTo(r.client.TURNServerAddr())
			there <- err
		})
	}
	r.permits.mu.Unlock()
	timer := time.NewTimer(relayAnswer)
	defer timer.Stop()
	select {
	case err := <-answer:
		if refused := (*stun.TurnError)(nil); err == nil || errors.As(err, &refused) {
			return true // askRelay ends the relay if it is lost
		}
	case <-r.ended:
		return true
	case <-timer.C:
	}
	if time.Duration(r.relayed.Load()) > now {
		return true
	}
	select {
	case err := <-there:
		return err != nil
	default:
		return !r.stream
	}
}

// end closes the connection to the server.
func (r *relay) end() {
	r.once.Do(func() {
		r.permits.mu.Lock() // nothing asks from now on, so that close can wait for what does
		close(r.ended)
		r.permits.mu.Unlock()
		_ = r.conn.Close()
	})
}

// close gives the address back, and waits for all that uses it.
func (r *relay) close() {
	if !isDone(r.ended) {
		_ = r.alloc.Close() // tells the server
	}
	r.end()
	_ = r.alloc.Close() // its timers; the error is that it was closed
	r.client.Close()
	r.permits.asking.Wait()
}
