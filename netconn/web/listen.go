//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
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

// ListenConfig is the settings of Server.Listen.
type ListenConfig struct {
	// TLS has the certificate. Needed. Browsers take one that their system trusts, or, for WebTransport only, one of ECDSA for at most 14 days whose
	// hash the page names; see NewCertificate.
	TLS *tls.Config
	// Path is where sessions are made. Default /bunchnet.
	Path string
	// Handler gets all other requests: the page, the token service. Default 404.
	Handler http.Handler
}

const (
	headerTime  = 5 * time.Second // for a request, and for TLS and QUIC's handshake
	bodyTime    = 30 * time.Second
	answerTime  = 2 * time.Minute
	idleTime    = 15 * time.Second
	headerBytes = 16 << 10
	portTries   = 16
	// streamBytes and connBytes bound what a QUIC connection holds besides datagrams, maxStreams the streams that its peer may open.
	streamBytes, connBytes = 64 << 10, 128 << 10
	maxStreams             = 16
	// sendBytes is what the system holds for a TCP connection; what waits there is old already.
	sendBytes = 64 << 10
)

// Listen serves the door at an address like ":443": HTTPS on TCP, which WebSockets come by, and HTTP/3 on the UDP port of the same number, which
// WebTransport comes by. It returns the address; serving goes on until Close. Connections that have not asked for anything yet are bounded too:
// twice as many and some more than sessions, in all and from one address.
func (s *Server) Listen(addr string, cfg ListenConfig) (netip.AddrPort, error) {
	if cfg.TLS == nil {
		return netip.AddrPort{}, fmt.Errorf("%w: ListenConfig.TLS is needed; NewCertificate makes a certificate for local play", ErrConfig)
	}
	if cfg.Path == "" {
		cfg.Path = "/bunchnet"
	}
	mux := http.NewServeMux()
	if cfg.Handler != nil {
		mux.Handle("/", cfg.Handler)
	}
	mux.Handle(cfg.Path, s)
	tcp, pc, err := listenBoth(addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("web: %w", err)
	}
	at := tcp.Addr().(*net.TCPAddr).AddrPort()
	tlsTCP, tlsQUIC := cfg.TLS.Clone(), http3.ConfigureTLSConfig(cfg.TLS.Clone())
	tlsTCP.NextProtos = []string{"http/1.1"} // the one that WebSockets are of
	limit := &connLimit{max: 2*s.cfg.MaxConns + 64, places: addrgroup.NewLimit(perAddr(s.cfg.MaxPerAddr)), over: func() { s.n.tooManyConns.Add(1) }}
	quiet := log.New(io.Discard, "", 0)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: quiet} // a WebSocket has none of these
	quicConf := &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, HandshakeIdleTimeout: headerTime, MaxIdleTimeout: idleTime,
		InitialStreamReceiveWindow: streamBytes, MaxStreamReceiveWindow: streamBytes, InitialConnectionReceiveWindow: connBytes, MaxConnectionReceiveWindow: connBytes,
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: maxStreams}
	transport := &quic.Transport{Conn: pc, VerifySourceAddress: func(net.Addr) bool { return limit.busy() }}
	ln, err := transport.ListenEarly(tlsQUIC, quicConf)
	if err != nil {
		return netip.AddrPort{}, errors.Join(fmt.Errorf("web: %w", err), tcp.Close(), pc.Close())
	}
	h3 := &http3.Server{Handler: busy(mux), ConnContext: idling(s.idle), TLSConfig: tlsQUIC, QUICConfig: quicConf, MaxHeaderBytes: headerBytes, Logger: slog.New(slog.DiscardHandler)}
	webtransport.ConfigureHTTP3Server(h3)
	sessions := &webtransport.Server{H3: h3, CheckOrigin: func(*http.Request) bool { return true }} // looked at before
	s.mu.Lock()
	closed := s.done || s.sessions != nil
	if !closed {
		s.sessions = sessions
		s.stops = append(s.stops, func() {
			_ = sessions.Close() // its connections end by that
			_ = ln.Close()
			_ = transport.Close()
			_ = pc.Close()
			_ = web.Close()
		})
		s.wg.Add(2)
	}
	s.mu.Unlock()
	if closed {
		return netip.AddrPort{}, errors.Join(fmt.Errorf("web: the server is closed, or listens already: %w", net.ErrClosed), ln.Close(), transport.Close(), pc.Close(), tcp.Close())
	}
	go func() {
		defer s.wg.Done()
		_ = web.Serve(tls.NewListener(limited{tcp, limit}, tlsTCP)) // ends with Close
	}()
	go func() {
		defer s.wg.Done()
		serveQUIC(ln, sessions, limit)
	}()
	return at, nil
}

// idleConn ends a QUIC connection on which nothing is asked for and no session is: its peer could keep it for ever otherwise.
type idleConn struct {
	after time.Duration
	mu    sync.Mutex
	uses  int
	timer *time.Timer
}

type idleKey struct{}

// idling has each connection's context hold its idleConn.
func idling(after time.Duration) func(context.Context, *quic.Conn) context.Context {
	return func(ctx context.Context, c *quic.Conn) context.Context {
		i := &idleConn{after: after}
		i.timer = time.AfterFunc(after, func() { _ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "nothing was asked for") })
		context.AfterFunc(c.Context(), func() { i.use(1) }) // its timer isn't needed any more
		return context.WithValue(ctx, idleKey{}, i)
	}
}

// use begins or ends n uses of the connection.
func (i *idleConn) use(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.uses += n; i.uses == 0 {
		i.timer.Reset(i.after)
	} else {
		i.timer.Stop()
	}
}

// useOf begins a use of a request's connection, if that is QUIC's, until done.
func useOf(r *http.Request) (done func()) {
	i, ok := r.Context().Value(idleKey{}).(*idleConn)
	if !ok {
		return func() {}
	}
	i.use(1)
	return func() { i.use(-1) }
}

// busy is a handler whose requests use their connections.
func busy(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer useOf(r)()
		h.ServeHTTP(w, r)
	})
}

func perAddr(sessions int) int {
	if sessions < 0 {
		return sessions
	}
	return 2*sessions + 16
}

// listenBoth opens a TCP and a UDP port of one number.
func listenBoth(addr string) (tcp net.Listener, pc net.PacketConn, err error) {
	for range portTries {
		if tcp, err = net.Listen("tcp", addr); err != nil {
			return nil, nil, err
		}
		host, _, _ := net.SplitHostPort(addr)
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		if pc, err = net.ListenPacket("udp", net.JoinHostPort(host, port)); err == nil {
			return tcp, pc, nil
		}
		_ = tcp.Close()
		if _, asked, _ := net.SplitHostPort(addr); asked != "0" {
			break
		}
	}
	return nil, nil, err
}

// serveQUIC serves connections until the listener closes.
func serveQUIC(ln *quic.EarlyListener, sessions *webtransport.Server, limit *connLimit) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := ln.Accept(context.Background())
		if err != nil {
			return
		}
		a := addrPort(c.RemoteAddr()).Addr()
		if !limit.take(a) {
			_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "too many connections from this address")
			continue
		}
		context.AfterFunc(c.Context(), func() { limit.give(a) })
		wg.Go(func() { _ = sessions.ServeQUICConn(c) })
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}

// connLimit bounds connections, whatever is or isn't asked for on them.
type connLimit struct {
	max  int
	over func()

	mu     sync.Mutex
	n      int
	places addrgroup.Limit
}

func (l *connLimit) take(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == l.max || !l.places.Room(a) {
		l.over()
		return false
	}
	l.n++
	l.places.Add(a)
	return true
}

func (l *connLimit) give(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
	l.places.Remove(a)
}

// busy reports whether half of the places are taken: from then on who begins a QUIC handshake has to show that it is where it says.
func (l *connLimit) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n >= l.max/2
}

// limited is a listener whose connections are bounded.
type limited struct {
	net.Listener
	limit *connLimit
}

// Accept is net.Listener's. A connection over the bound is closed at once.
func (l limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		a := addrPort(c.RemoteAddr()).Addr()
		if !l.limit.take(a) {
			_ = c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBytes) // the system's default serves too
		}
		return &limitedConn{Conn: c, give: func() { l.limit.give(a) }}, nil
	}
}

type limitedConn struct {
	net.Conn
	once sync.Once
	give func()
}

func (c *limitedConn) Close() error {
	c.once.Do(c.give)
	return c.Conn.Close()
}
