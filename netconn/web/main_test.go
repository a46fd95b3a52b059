//go:build !js

package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/internal/drivertest"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take, on a machine that has much else to do.
const patience = time.Minute

// door is a Server that listens on the loopback.
type door struct {
	*Server
	t    testing.TB
	url  string
	hash [sha256.Size]byte
}

func newDoor(t testing.TB, cfg ServerConfig) *door {
	s, err := NewServer(cfg)
	require.NoError(t, err)
	return s.door(t, nil)
}

// door listens on the loopback, with a handler for other paths.
func (s *Server) door(t testing.TB, pages http.Handler) *door {
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	addr, err := s.Listen("127.0.0.1:0", ListenConfig{TLS: tlsOf(cert), Handler: pages})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &door{s, t, "https://" + addr.String() + "/bunchnet", hash}
}

func tlsOf(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

func (d *door) dial(way Way) *Client {
	c, err := Dial(context.Background(), d.url, DialConfig{Way: way, CertificateHash: d.hash})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, c.Close()) })
	return c
}

// eventually waits until f.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

var ways = []Way{WebTransport, WebSocket}

// at is a socket whose peers know it by another address.
type at struct {
	udp.Socket
	addr netip.AddrPort
}

func (a at) LocalAddr() netip.AddrPort { return a.addr }

// TestConformance runs the test of sockets over both ends of both ways, by themselves and joined with UDP.
func TestConformance(t *testing.T) {
	listen := func(t *testing.T) udp.Socket {
		s, err := udp.Listen("127.0.0.1:0", udp.Config{})
		require.NoError(t, err)
		return s
	}
	for _, way := range ways {
		t.Run(way.String(), func(t *testing.T) {
			udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				return d.dial(way), d.Server
			})
		})
		t.Run(way.String()+" joined", func(t *testing.T) {
			udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				return d.dial(way), udp.Join(listen(t), d.Server)
			})
		})
		t.Run(way.String()+" from the server", func(t *testing.T) {
			udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				c := d.dial(way)
				return udp.Join(listen(t), d.Server), at{c, hello(t, d, c)}
			})
		})
	}
	t.Run("udp beside them", func(t *testing.T) {
		udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
			return listen(t), udp.Join(listen(t), newDoor(t, ServerConfig{}).Server)
		})
	})
}

// hello has a client send something, and returns where it came from.
func hello(t testing.TB, d *door, c *Client) netip.AddrPort {
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	n := 0
	eventually(t, "hello", func() bool {
		_, err := c.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: netip.MustParseAddrPort("192.0.2.1:7")}})
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		n, err = d.TryReadBatch(in)
		require.NoError(t, err)
		return n > 0
	})
	from := in[0].Addr
	for n > 0 { // what was sent again
		var err error
		n, err = d.TryReadBatch(in)
		require.NoError(t, err)
	}
	return from
}

// TestDrivers runs the test of drivers over both ways, by themselves and joined with UDP.
func TestDrivers(t *testing.T) {
	for _, way := range ways {
		t.Run(way.String(), func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				return d.dial(way), at{d.Server, netip.MustParseAddrPort("10.0.0.1:7777")} // a client's socket has one peer, whatever it is called
			})
		})
		t.Run(way.String()+" joined", func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				s, err := udp.Listen("127.0.0.1:0", udp.Config{})
				require.NoError(t, err)
				return d.dial(way), udp.Join(s, d.Server)
			})
		})
	}
}
