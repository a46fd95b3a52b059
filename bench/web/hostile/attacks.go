package main

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
)

// stranger is one goroutine of an attack, with an address of its own for each connection.
type stranger struct {
	rng  *rand.Rand
	at   netip.AddrPort
	n    int // things it did
	held []io.Closer
}

// from is another address of the loopback's.
func (s *stranger) from() net.IP {
	return net.IPv4(127, byte(1+s.rng.IntN(250)), byte(s.rng.IntN(250)), byte(1+s.rng.IntN(250)))
}

// hold keeps a connection open beside the last 500.
func (s *stranger) hold(c io.Closer) {
	if len(s.held) == 500 {
		_ = s.held[0].Close()
		s.held = append(s.held[:0], s.held[1:]...)
	}
	s.held = append(s.held, c)
}

func (s *stranger) close() {
	for _, c := range s.held {
		_ = c.Close()
	}
}

// dial opens a TCP connection from another address.
func (s *stranger) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: s.from()}, Timeout: time.Second}
	return d.DialContext(ctx, "tcp", s.at.String())
}

// client is an HTTP client whose connections come from other addresses.
func (s *stranger) client() *http.Client {
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) }}}
}

// socket opens a WebSocket from another address.
func (s *stranger) socket(ctx context.Context) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, "wss://"+s.at.String()+"/bunchnet", &websocket.DialOptions{HTTPClient: s.client()})
	return c, err
}

// packetConn is a UDP socket at another address.
func (s *stranger) packetConn() (net.PacketConn, error) {
	return net.ListenPacket("udp", net.JoinHostPort(s.from().String(), "0"))
}

type closeNow struct{ c *websocket.Conn }

func (c closeNow) Close() error { return c.c.CloseNow() }

type closers []func() error

func (c closers) Close() (err error) {
	for _, f := range c {
		err = f()
	}
	return err
}

// attack is what a stranger does again and again; an error is what the door wants.
type attack struct {
	name string
	do   func(ctx context.Context, s *stranger) error
}

var attacks = []attack{
	{"connections that say nothing", func(ctx context.Context, s *stranger) error {
		c, err := s.dial(ctx)
		if err == nil {
			s.hold(c)
		}
		return err
	}},
	{"garbage instead of TLS", func(ctx context.Context, s *stranger) error {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(s.garbage(1 + s.rng.IntN(4096)))
		return err
	}},
	{"half a request", func(ctx context.Context, s *stranger) error {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		s.hold(c)
		t := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		if err := t.HandshakeContext(ctx); err != nil {
			return err
		}
		_, err = io.WriteString(t, "GET /bunchnet HTTP/1.1\r\nHost: here\r\nX-Long: ")
		return err
	}},
	{"wrong origins and paths", func(ctx context.Context, s *stranger) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.at.String()+[]string{"/bunchnet", "/", "/../x"}[s.rng.IntN(3)], nil)
		if err != nil {
			return err
		}
		req.Header.Set("Origin", "https://evil.example")
		req.Header.Set("Upgrade", "websocket")
		resp, err := s.client().Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}},
	{"WebSockets with no token", func(ctx context.Context, s *stranger) error {
		c, err := s.socket(ctx)
		if err == nil {
			s.hold(closeNow{c})
		}
		return err
	}},
	{"WebSockets full of garbage", func(ctx context.Context, s *stranger) error {
		c, err := s.socket(ctx)
		if err != nil {
			return err
		}
		defer c.CloseNow()
		for range 1000 {
			if err := c.Write(ctx, websocket.MessageBinary, s.garbage(1+s.rng.IntN(1400))); err != nil {
				return err
			}
			s.n++
		}
		return nil
	}},
	{"names of others' connections", func(ctx context.Context, s *stranger) error {
		c, err := s.socket(ctx)
		if err != nil {
			return err
		}
		s.hold(closeNow{c})
		ask := make([]byte, 1078) // a probe, as netconn/web's doc has it
		copy(ask, "\xf7bunchnet")
		for range 20 { // the first one ends the session
			copy(ask[9:], s.garbage(32))
			if err := c.Write(ctx, websocket.MessageBinary, ask); err != nil {
				return err
			}
			s.n++
		}
		return c.Write(ctx, websocket.MessageBinary, s.garbage(1000))
	}},
	{"text and long messages", func(ctx context.Context, s *stranger) error {
		c, err := s.socket(ctx)
		if err != nil {
			return err
		}
		s.hold(closeNow{c})
		if s.rng.IntN(2) == 0 {
			return c.Write(ctx, websocket.MessageText, []byte("hello"))
		}
		return c.Write(ctx, websocket.MessageBinary, s.garbage(1<<20))
	}},
	{"answers that nobody reads", func(ctx context.Context, s *stranger) error {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		s.hold(c)
		t := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		if err := t.HandshakeContext(ctx); err != nil {
			return err
		}
		_, err = io.WriteString(t, "GET /page HTTP/1.1\r\nHost: here\r\n\r\n")
		return err
	}},
	{"WebTransports with no token", func(ctx context.Context, s *stranger) error {
		pc, err := s.packetConn()
		if err != nil {
			return err
		}
		t := &quic.Transport{Conn: pc}
		d := &webtransport.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, QUICConfig: &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true},
			DialAddr: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
				return t.DialEarly(ctx, net.UDPAddrFromAddrPort(s.at), tc, qc)
			}}
		all := closers{d.Close, t.Close, pc.Close}
		ctx, done := context.WithTimeout(ctx, 2*time.Second)
		defer done()
		_, session, err := d.Dial(ctx, "https://"+s.at.String()+"/bunchnet", nil)
		if err != nil {
			_ = all.Close()
			return err
		}
		_ = session.SendDatagram(s.garbage(1000))
		if len(s.held) > 30 { // each has goroutines here
			_ = s.held[0].Close()
			s.held = s.held[1:]
		}
		s.hold(all)
		return nil
	}},
	{"garbage instead of QUIC", func(ctx context.Context, s *stranger) error {
		pc, err := s.packetConn()
		if err != nil {
			return err
		}
		defer pc.Close()
		for range 200 {
			p := s.garbage(1 + s.rng.IntN(1400))
			if s.rng.IntN(2) == 0 && len(p) > 20 { // as QUIC's first packet looks
				copy(p, []byte{0xc0, 0, 0, 0, 1, 8})
			}
			if _, err := pc.WriteTo(p, net.UDPAddrFromAddrPort(s.at)); err != nil {
				return err
			}
			s.n++
		}
		select { // 30,000 a second of all strangers
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}},
}

// noise is what garbage is made of: making it anew would take more of the processor, which players share, than the door does.
var noise = func() []byte {
	b := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}()

func (s *stranger) garbage(n int) []byte {
	at := s.rng.IntN(len(noise) - n)
	return append([]byte(nil), noise[at:at+n]...)
}

// run has strangers attack until ctx is done; n is what they did, refused what the door didn't want.
func (a attack) run(ctx context.Context, at netip.AddrPort, strangers int, seed uint64) (n, refused int) {
	type sum struct{ n, refused int }
	sums := make(chan sum)
	for i := range strangers {
		go func() {
			s := &stranger{rng: rand.New(rand.NewPCG(seed, uint64(i))), at: at}
			defer s.close()
			var r sum
			for ctx.Err() == nil {
				s.n++
				if a.do(ctx, s) != nil && ctx.Err() == nil {
					r.refused++
				}
			}
			r.n = s.n
			sums <- r
		}()
	}
	for range strangers {
		r := <-sums
		n, refused = n+r.n, refused+r.refused
	}
	return n, refused
}
