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
	"sync"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

const (
	relayHeadStart = 500 * time.Millisecond // of one relay before the next is tried too
	relayTime      = 8 * time.Second        // for an address from it
	relayAgain     = time.Second            // after a failure; doubled up to relayRarely
	relayRarely    = 30 * time.Second
	maxPermits     = 1024 // IP addresses that one allocation lets in
	maxPermitting  = 16   // that are being asked for
)

// relay is an allocation at a TURN server.
type relay struct {
	base
	n      *node
	conn   net.PacketConn // to the server
	client *turn.Client
	alloc  net.PacketConn
	out    mailbox.Outbox
	ended  chan struct{}
	once   sync.Once

	mu         sync.Mutex
	permits    map[netip.Addr]bool // false while it is asked for, true once the server lets it in
	permitting sync.WaitGroup
	underway   int
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
		r := n.allocate(servers)
		if r == nil {
			n.sleep(wait)
			wait = min(2*wait, relayRarely)
			continue
		}
		wait = relayAgain
		n.change(func() { n.bases = append(n.bases, &r.base) })
		select {
		case <-r.ended:
			n.n.relaysLost.Add(1)
			n.log("a relay is lost", slog.Any("relay", r.addr))
		case <-n.ctx.Done():
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
	}
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
	r := &relay{n: n, out: mailbox.NewOutbox(n.cfg.SendBuffer), ended: make(chan struct{}), permits: map[netip.Addr]bool{}}
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
			r.conn = turn.NewSTUNConn(c)
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
			r.conn = turn.NewSTUNConn(c)
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
	return r, nil
}

// receive hands over what the server sends, until the connection to it ends.
func (r *relay) receive() {
	p := make([]byte, 64<<10)
	for {
		k, from, err := r.conn.ReadFrom(p)
		if err != nil {
			r.end()
			return
		}
		_, _ = r.client.HandleInbound(p[:k], from) // the answer to nothing is of no use
	}
}

// read passes on what the relay got for this end.
func (r *relay) read() {
	p := make([]byte, mailbox.MaxDatagram+1)
	for {
		k, from, err := r.alloc.ReadFrom(p)
		if err != nil {
			r.end()
			return
		}
		if a, ok := from.(*net.UDPAddr); ok {
			at := a.AddrPort()
			r.n.receive(&r.base, p[:k], netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
		}
	}
}

// addrBytes is the size of an address before a datagram that waits.
const addrBytes = 16 + 2

// write has a datagram sent by the relay, once that lets in what comes from there.
func (r *relay) write(p []byte, to netip.AddrPort) {
	if !r.permitted(to, p) {
		return
	}
	var room [addrBytes + mailbox.MaxDatagram]byte
	ip := to.Addr().As16()
	b := binary.BigEndian.AppendUint16(append(room[:0], ip[:]...), to.Port())
	r.out.Push(append(b, p...))
}

// permitted reports whether the relay lets in what comes from an address. If not it is asked to, and the datagram goes behind that. When
// that fails, the next datagram asks again.
func (r *relay) permitted(to netip.AddrPort, p []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, asked := r.permits[to.Addr()]
	if ok || asked || len(r.permits) == maxPermits || r.underway == maxPermitting || isDone(r.ended) {
		return ok
	}
	r.permits[to.Addr()] = false
	r.underway++
	p = append([]byte(nil), p...)
	r.permitting.Go(func() {
		_, err := r.alloc.WriteTo(p, net.UDPAddrFromAddrPort(to)) // waits for the permission
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.underway--; err != nil {
			delete(r.permits, to.Addr()) // it is asked for again
			return
		}
		r.permits[to.Addr()] = true
	})
	return false
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
	for {
		select {
		case <-r.out.Ready:
		case <-r.ended:
			return
		}
		for d := r.out.Pop(room); d != nil; d = r.out.Pop(room) {
			room = d
			ip := netip.AddrFrom16([16]byte(d)).Unmap()
			to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, binary.BigEndian.Uint16(d[16:])))
			_, _ = r.alloc.WriteTo(d[addrBytes:], to) // lost, as on the network
		}
	}
}

// end closes the connection to the server.
func (r *relay) end() {
	r.once.Do(func() {
		close(r.ended)
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
	r.permitting.Wait()
}
