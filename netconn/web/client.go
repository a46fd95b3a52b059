package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// DialConfig has the settings of Dial. The zero value is useful.
type DialConfig struct {
	// Way is WebTransport or WebSocket. Default WebTransport. WebSocket also works where UDP is blocked.
	Way Way
	// CertificateHash is the SHA-256 of a certificate, such as NewCertificate's, that the client trusts without a certificate authority.
	// Default zero: the certificate must be one that the system trusts. Browsers support a hash for WebTransport only.
	CertificateHash [sha256.Size]byte
	// SendBuffer bounds the bytes that wait to be sent. At most 512 datagrams wait. When it is full the oldest are dropped. Default 64 KiB.
	SendBuffer int
	// ReceiveBuffer bounds the bytes that wait to be read. At most 1024 datagrams wait. When it is full the newest are dropped. Default 1 MiB.
	ReceiveBuffer int
}

const (
	inClient      = 1024
	sendBuffer    = 64 << 10
	receiveBuffer = 1 << 20
	// lingerTime is how long the end of a WebTransport session comes after the last datagram, which it would overtake.
	lingerTime = 20 * time.Millisecond
)

func (c DialConfig) filled() DialConfig {
	c.Way = cmp.Or(c.Way, WebTransport)
	c.SendBuffer, c.ReceiveBuffer = cmp.Or(c.SendBuffer, sendBuffer), cmp.Or(c.ReceiveBuffer, receiveBuffer)
	return c
}

// check reads the URL, and returns an error for settings that can't work.
func (c DialConfig) check(to string) (*url.URL, error) {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || c.Way != WebSocket):
		return nil, fmt.Errorf("%w: the URL %q isn't one like https://play.example.com/bunchnet", ErrConfig, to)
	case c.Way != WebTransport && c.Way != WebSocket:
		return nil, fmt.Errorf("%w: Way %v must be WebTransport or WebSocket", ErrConfig, c.Way)
	case c.SendBuffer < 0 || c.ReceiveBuffer < 0:
		return nil, fmt.Errorf("%w: SendBuffer %d and ReceiveBuffer %d must be positive, or 0 for the default", ErrConfig, c.SendBuffer, c.ReceiveBuffer)
	}
	return u, nil
}

// Errors, for errors.Is. Reads of a Client or Ladder return the last two, and so does Driver.Err.
var (
	// ErrConfig is returned by NewServer, Listen, Dial and DialBest for settings that can't work.
	ErrConfig = errors.New("web: settings")
	// ErrNoSession: no session with the server could be made. Show it to the player.
	ErrNoSession = errors.New("web: no session with the server")
	// ErrEnded: the session has ended. Show it to the player.
	ErrEnded = errors.New("web: the session with the server has ended")
)

// reader is the reading half of the sockets.
type reader = mailbox.Reader

// Client is a client's socket with one peer, the server. What is sent to any address goes to the server. What the server sends seems to come from the
// address that was sent to last. So a driver dials the address that is in the connect token, whatever the way.
type Client struct {
	reader
	in     *mailbox.Inbox
	way    Way
	n      counters
	server mailbox.Source
	out    mailbox.Outbox
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// settled is closed when there is a session, or will be none.
	settled chan struct{}
	settle  sync.Once
	page    // what it is in a browser
}

// Dial begins a session with a Server at a URL such as "https://play.example.com/bunchnet". It returns at once; until there is a session, what is sent
// waits in the SendBuffer. Reads return ErrNoSession when there is no session within 10 s, and ErrEnded when it has ended. The session ends when ctx is
// done.
func Dial(ctx context.Context, to string, cfg DialConfig) (*Client, error) {
	cfg = cfg.filled()
	u, err := cfg.check(to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in := mailbox.NewInbox(inClient, cfg.ReceiveBuffer)
	c := &Client{reader: in.Reader(), in: in, way: cfg.Way, server: mailbox.NewSource(netip.AddrPort{}, inClient), out: mailbox.NewOutbox(cfg.SendBuffer), cancel: cancel,
		settled: make(chan struct{})}
	c.dial(ctx, u, cfg)
	return c, nil
}

// Way returns DialConfig.Way.
func (c *Client) Way() Way { return c.way }

// Counters returns the counters so far. Any goroutine may call it.
func (c *Client) Counters() Counters { return c.n.get() }

// LocalAddr implements udp.Socket. It returns 0.0.0.0:0, since browsers don't tell the address.
func (c *Client) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), 0) }

// SendsWhole is for the function of that name: what doesn't fit a WebTransport session's path is lost, not cut.
func (c *Client) SendsWhole() bool { return true }

// WriteBatch implements udp.Socket. It never waits.
func (c *Client) WriteBatch(msgs []udp.Message) (int, error) {
	if err := c.in.Failed(); err != nil {
		return 0, err
	}
	for i := range msgs {
		c.in.Redirect(&c.server, msgs[i].Addr)
		c.n.unsent.Add(uint64(c.out.Push(msgs[i].Buf)))
	}
	c.wrote()
	return len(msgs), nil
}

// Close sends what waits and ends the session, within a second.
func (c *Client) Close() error {
	c.broken(net.ErrClosed)
	c.close()
	c.wg.Wait()
	return nil
}

// came keeps what the server sent.
func (c *Client) came(p []byte) {
	c.n.received.Add(1)
	if !c.in.Put(&c.server, p) {
		c.n.unread.Add(1)
	}
}

// broken has reads return why there is no session, or no longer, and reports whether that is the first error.
func (c *Client) broken(err error) (first bool) {
	if err != net.ErrClosed {
		err = printable{err}
	}
	first = c.in.Fail(err)
	c.settle.Do(func() { close(c.settled) })
	return first
}

// printable is an error that may have words of the server, which a terminal isn't to obey. It ends the socket, so none of the system's errors is found in it,
// which would be temporary for a socket.
type printable struct{ error }

// Error implements error.
func (p printable) Error() string { return bitio.Printable(p.error.Error()) }

// Is is for errors.Is.
func (p printable) Is(target error) bool {
	_, system := target.(syscall.Errno)
	return !system && errors.Is(p.error, target)
}

// begun counts what it came through by.
func (c *Client) begun() {
	defer c.settle.Do(func() { close(c.settled) })
	if c.way == WebTransport {
		c.n.webTransports.Add(1)
	} else {
		c.n.webSockets.Add(1)
	}
}

var _ udp.Socket = (*Client)(nil)
