//go:build !js

package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

// ListenConfig has the settings of Server.Listen. TLS is needed.
type ListenConfig struct {
	// TLS has the certificate. Browsers accept one that their system trusts. For WebTransport only, they also accept an ECDSA certificate that is valid for
	// at most 14 days and whose hash the page names; see NewCertificate.
	TLS *tls.Config
	// Path is the URL path for sessions. Default /bunchnet.
	Path string
	// Handler gets requests for all other paths: the page, the token service. Default: they get a 404.
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

// Listen serves at an address like ":443": HTTPS on TCP for WebSockets, and HTTP/3 on the UDP port of the same number for WebTransport. It returns
// the address and serves until Close. Connections are bounded too: 2*MaxConns+64 in all, 2*MaxPerAddr+16 from one address. One more in all ends
// the connection that has been without a request for longest or, when more have a request than have none, the one without a session whose request is oldest.
// One more from one address is closed at once.
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
	tlsTCP.NextProtos = protocols(tlsTCP.NextProtos)
	limit := newConnLimit(2*s.cfg.MaxConns+64, perAddr(s.cfg.MaxPerAddr), s.idle, func() { s.n.tooManyConns.Add(1) })
	quiet := log.New(io.Discard, "", 0)
	web := &http.Server{Handler: s.timed(mux), ConnContext: ofTCP, ReadHeaderTimeout: headerTime, ReadTimeout: s.body, WriteTimeout: s.answer, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: quiet} // a WebSocket has none of these
	quicConf := quicConfig()
	transport := &quic.Transport{Conn: pc, VerifySourceAddress: func(net.Addr) bool { return limit.busy() }}
	ln, err := transport.ListenEarly(tlsQUIC, quicConf)
	if err != nil {
		return netip.AddrPort{}, errors.Join(fmt.Errorf("web: %w", err), tcp.Close(), pc.Close())
	}
	h3 := &http3.Server{Handler: s.timed(mux), ConnContext: limit.ofQUIC, TLSConfig: tlsQUIC, QUICConfig: quicConf, MaxHeaderBytes: headerBytes, Logger: slog.New(slog.DiscardHandler)}
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

// quicConfig is that of both ends, which send datagrams.
func quicConfig() *quic.Config {
	return &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, HandshakeIdleTimeout: headerTime, MaxIdleTimeout: idleTime,
		InitialStreamReceiveWindow: streamBytes, MaxStreamReceiveWindow: streamBytes, InitialConnectionReceiveWindow: connBytes, MaxConnectionReceiveWindow: connBytes,
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: maxStreams}
}

// protocols returns those of a TLS config that go over TCP: WebSockets are of HTTP/1.1, and what isn't HTTP stays, such as ACME's challenge.
func protocols(all []string) []string {
	others := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == "http/1.1" || p == "h2" || p == http3.NextProtoH3 })
	return append([]string{"http/1.1"}, others...)
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
