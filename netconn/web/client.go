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

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// DialConfig is the settings of Dial; the zero value is useful.
type DialConfig struct {
	// Way is the one to come by. Default WebTransport; WebSocket gets through where UDP doesn't.
	Way Way
	// CertificateHash is the SHA-256 of a certificate that is trusted without an authority's word, as NewCertificate makes it. Default zero: the
	// certificate must be one that the system trusts. Browsers know it for WebTransport only.
	CertificateHash [sha256.Size]byte
	// SendBuffer is the bytes that may wait to be sent; the oldest make room for the newest. At most 512 datagrams wait. Default 64 KiB.
	SendBuffer int
	// ReceiveBuffer is the bytes that may wait to be read. At most 1024 datagrams wait; more are lost. Default 1 MiB.
	ReceiveBuffer int
}

const (
	inClient      = 1024
	sendBuffer    = 64 << 10
	receiveBuffer = 1 << 20
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
		return nil, fmt.Errorf("%w: Dial doesn't come by %v", ErrConfig, c.Way)
	case c.SendBuffer < 0 || c.ReceiveBuffer < 0:
		return nil, fmt.Errorf("%w: SendBuffer %d and ReceiveBuffer %d must be positive, or 0 for the default", ErrConfig, c.SendBuffer, c.ReceiveBuffer)
	}
	return u, nil
}

// Errors, for errors.Is. Reads of a Client return the last two, and so does Driver.Err.
var (
	// ErrConfig is returned by NewServer, Listen and Dial for settings that can't work.
	ErrConfig = errors.New("web: settings")
	// ErrNoSession is for the player: no session came about.
	ErrNoSession = errors.New("web: no session with the server")
	// ErrEnded is for the player: the session broke off.
	ErrEnded = errors.New("web: the session with the server has ended")
)

// Client is a client's socket: everything that is sent to any address goes to the server, and what the server sends comes from the address that was sent
// to last. So a driver dials the address that is in the connect token, and needn't know by what way it comes there.
type Client struct {
	*inbox
	way    Way
	n      counters
	server source
	out    outbox
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// settled is closed when there is a session, or will be none.
	settled chan struct{}
	settle  sync.Once
	page    // what it is in a browser
}

// Dial begins a session with a Server at a URL such as "https://play.example.com/bunchnet". It returns at once: what is sent before there is a session
// waits as in any SendBuffer. When there is none within 10 s, or it ends, reads return ErrNoSession or ErrEnded. A session that ctx is done for ends.
func Dial(ctx context.Context, to string, cfg DialConfig) (*Client, error) {
	cfg = cfg.filled()
	u, err := cfg.check(to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Client{inbox: newInbox(inClient, cfg.ReceiveBuffer), way: cfg.Way, server: source{most: inClient}, out: newOutbox(cfg.SendBuffer), cancel: cancel,
		settled: make(chan struct{})}
	c.dial(ctx, u, cfg)
	return c, nil
}

// Way is what it comes by.
func (c *Client) Way() Way { return c.way }

// Counters is a snapshot of what it did. Any goroutine may call it.
func (c *Client) Counters() Counters { return c.n.get() }

// LocalAddr is udp.Socket's: the browser doesn't tell, so it is the same for all.
func (c *Client) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), 0) }

// WriteBatch is udp.Socket's. It never waits.
func (c *Client) WriteBatch(msgs []udp.Message) (int, error) {
	if err := c.failed(); err != nil {
		return 0, err
	}
	for i := range msgs {
		c.inbox.mu.Lock()
		c.server.addr = msgs[i].Addr
		c.inbox.mu.Unlock()
		c.n.unsent.Add(uint64(c.out.push(msgs[i].Buf)))
	}
	c.wrote()
	return len(msgs), nil
}

// Close ends the session, after what was written last, within a second.
func (c *Client) Close() error {
	c.broken(net.ErrClosed)
	c.close()
	c.wg.Wait()
	return nil
}

// came keeps what the server sent.
func (c *Client) came(p []byte) {
	c.n.received.Add(1)
	if !c.put(&c.server, p) {
		c.n.unread.Add(1)
	}
}

// broken has reads return why there is no session, or no longer, and reports whether that is the first error.
func (c *Client) broken(err error) (first bool) {
	first = c.fail(err)
	c.settle.Do(func() { close(c.settled) })
	return first
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
