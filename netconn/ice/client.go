package ice

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Client is a guest's socket with one peer, the host. What is sent to any address goes to the host. What the host sends seems to come from the address that
// was sent to last. So a driver dials HostAddr, which is in the connect token.
type Client struct {
	reader
	*node
	current atomic.Pointer[session]
	out     mailbox.Outbox // until there is a path
	batch   []udp.Message
	begun   chan struct{} // closed when there is a path, or will be none
	err     error
}

// Dial looks for a path to a host, which calls Host.Join at the other end of the signal. It returns at once; until there is a path, what is sent waits in the
// SendBuffer. A connect token's time goes on meanwhile, so wait with Connected before the driver dials. Reads return ErrNoWay when no path is found within
// ConnectTime, and ErrLost when all have failed. The session ends when ctx is done, or the Client is closed. The signal is used as long as it carries
// messages. With Config.Redial the session is restarted when no path answers any more.
func Dial(ctx context.Context, sig Signal, cfg Config) (*Client, error) {
	n, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	s, err := newSession(n, true)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	s.source = newSource(HostAddr(), inDatagrams)
	c := &Client{reader: n.in.Reader(), node: n, out: mailbox.NewOutbox(n.cfg.SendBuffer), begun: make(chan struct{})}
	c.current.Store(s)
	s.named = func(netip.AddrPort) {}
	s.done = func(why error) { c.ended(s, why) }
	n.wg.Go(func() {
		c.err = s.talk(ctx, sig)
		close(c.begun)
		c.keep(ctx)
	})
	return c, nil
}

// session is the one that has the path.
func (c *Client) session() *session { return c.current.Load() }

// ended has reads return why there is no session any more, unless there is another one.
func (c *Client) ended(s *session, why error) {
	c.n.count(why)
	if s == c.session() {
		c.in.Fail(why)
	}
}

// Connected waits until there is a path, or an error says that there is none.
func (c *Client) Connected(ctx context.Context) error {
	select {
	case <-c.begun:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Path returns how datagrams to the host go, and the address they go to now. Any goroutine may call it.
func (c *Client) Path() (Path, netip.AddrPort) { return c.session().where() }

// Candidates returns the addresses found so far by which the host may reach this end. Any goroutine may call it.
func (c *Client) Candidates() []Candidate {
	all, _ := c.own()
	return all
}

// Counters returns the counters so far. Any goroutine may call it.
func (c *Client) Counters() Counters { return c.n.get() }

// LocalAddr implements udp.Socket. It returns the address of the socket below.
func (c *Client) LocalAddr() netip.AddrPort { return c.socket.LocalAddr() }

// WriteBatch implements udp.Socket. It doesn't wait: what can't be sent is lost and counted.
func (c *Client) WriteBatch(msgs []udp.Message) (int, error) {
	if err := c.in.Failed(); err != nil {
		return 0, err
	}
	now := c.now()
	ready, s := isDone(c.begun), c.session()
	c.batch = c.batch[:0]
	for p := c.waiting(ready); p != nil; p = c.waiting(ready) {
		c.batch = s.send(c.batch, p, now)
	}
	for i := range msgs {
		c.in.Redirect(s.source, msgs[i].Addr)
		if !ready {
			c.out.Push(msgs[i].Buf)
			continue
		}
		c.batch = s.send(c.batch, msgs[i].Buf, now)
	}
	c.writeBatch(c.batch)
	return len(msgs), nil
}

// waiting returns what was written before there was a path.
func (c *Client) waiting(ready bool) []byte {
	if !ready {
		return nil
	}
	return c.out.Pop(nil)
}

// Close ends the session and closes the socket.
func (c *Client) Close() error {
	c.in.Fail(net.ErrClosed)
	c.stop() // so that no other one takes its place
	c.session().end(net.ErrClosed)
	return c.close()
}

var _ udp.Socket = (*Client)(nil)
