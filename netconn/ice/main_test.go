package ice

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/internal/drivertest"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take, on a machine that has much else to do.
const patience = time.Minute

// wire is a Signal in memory, which carries the wire form.
type wire struct {
	out, in chan []byte
	gone    chan struct{}
	once    *sync.Once
}

// wires returns the two ends of a signal.
func wires() (a, b *wire) {
	x, y, gone, once := make(chan []byte, 64), make(chan []byte, 64), make(chan struct{}), &sync.Once{}
	return &wire{x, y, gone, once}, &wire{y, x, gone, once}
}

func (w *wire) close() { w.once.Do(func() { close(w.gone) }) }

func (w *wire) Send(ctx context.Context, m Message) error {
	p, err := m.Append(nil)
	if err != nil {
		return err
	}
	select {
	case w.out <- p:
		return nil
	case <-w.gone:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *wire) Receive(ctx context.Context) (Message, error) {
	select {
	case p := <-w.in:
		return ParseMessage(p)
	default:
	}
	select {
	case p := <-w.in:
		return ParseMessage(p)
	case <-w.gone:
		return Message{}, net.ErrClosed
	case <-ctx.Done():
		return Message{}, ctx.Err()
	}
}

// local is the settings for players on the loopback.
func local() Config { return Config{Addr: "127.0.0.1:0", Loopback: true, ConnectTime: patience} }

// silent has a host's sessions be as if its driver had sent nothing to them for so long.
func silent(h *Host, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		s.written.Store(int64(h.now() - d))
	}
}

// newHost has sessions go on for long without the driver, unless the test is about that.
func newHost(t testing.TB, cfg HostConfig) *Host {
	cfg.HalfOpen, cfg.Idle = cmp.Or(cfg.HalfOpen, patience), cmp.Or(cfg.Idle, patience)
	h, err := Listen(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// join has a guest and a host find a path.
func join(t testing.TB, h *Host, cfg Config) *Client {
	a, b := wires()
	c, err := Dial(context.Background(), a, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, h.Join(context.Background(), b))
	require.NoError(t, c.Connected(context.Background()))
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

// at is a socket whose peers know it by another address.
type at struct {
	udp.Socket
	addr netip.AddrPort
}

func (a at) LocalAddr() netip.AddrPort { return a.addr }

// hello has a guest send something, and returns where it came from.
func hello(t testing.TB, h *Host, c *Client) netip.AddrPort {
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n := 0
	eventually(t, "hello", func() bool {
		_, err := c.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: HostAddr()}})
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		n, err = h.TryReadBatch(in)
		require.NoError(t, err)
		return n > 0
	})
	from := in[0].Addr
	for n > 0 { // what was sent again
		var err error
		n, err = h.TryReadBatch(in)
		require.NoError(t, err)
	}
	return from
}

// TestConformance runs the test of sockets over both ends, by themselves and joined with UDP.
func TestConformance(t *testing.T) {
	listen := func(t *testing.T) udp.Socket {
		s, err := udp.Listen("127.0.0.1:0", udp.Config{})
		require.NoError(t, err)
		return s
	}
	for name, open := range map[string]udptest.Open{
		"guest": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			return join(t, h, local()), h
		},
		"joined": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			b = udp.Join(listen(t), h)
			return join(t, h, local()), at{b, HostAddr()}
		},
		"from the host": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			c := join(t, h, local())
			return udp.Join(listen(t), h), at{c, hello(t, h, c)}
		},
		"udp beside it": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			join(t, h, local())
			return listen(t), udp.Join(listen(t), h)
		},
	} {
		t.Run(name, func(t *testing.T) { udptest.Run(t, open) })
	}
}

// TestDrivers runs the test of drivers over both ends, by themselves and joined with UDP.
func TestDrivers(t *testing.T) {
	for name, open := range map[string]udptest.Open{
		"guest": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			return join(t, h, local()), h
		},
		"joined": func(t *testing.T) (a, b udp.Socket) {
			h := newHost(t, HostConfig{Config: local()})
			s, err := udp.Listen("127.0.0.1:0", udp.Config{})
			require.NoError(t, err)
			return join(t, h, local()), at{udp.Join(s, h), HostAddr()}
		},
	} {
		t.Run(name, func(t *testing.T) { drivertest.Run(t, open) })
	}
}
