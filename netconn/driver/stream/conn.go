package stream

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Addr is the address of one end of a stream: the IP address and port, and the index of the channel.
type Addr struct {
	AddrPort netip.AddrPort
	Channel  uint32
}

// Network returns "bunchnet".
func (Addr) Network() string { return "bunchnet" }

// String returns the address and the channel's index, such as 192.0.2.1:7777#5.
func (a Addr) String() string { return fmt.Sprintf("%v#%d", a.AddrPort, a.Channel) }

// Conn is a stream over a channel, as a net.Conn. Any goroutine may call its methods. Closed, Finish, ReceivedAck, ReceivedBunch and ReceivedNak
// are for the channel; a program doesn't call them.
type Conn struct {
	// Invariants: sent <= credit; received <= granted <= taken+Window.

	cfg           Config
	conn          *driver.Conn
	driver        *driver.Driver
	local, remote Addr
	writing       sync.Mutex // one Write at a time, so that they don't mix

	mu           sync.Mutex
	wake         *sync.Cond // on every change
	in, out      fifo
	readUntil    deadline
	writeUntil   deadline
	sent, credit uint64 // bytes since the beginning: sent, and allowed by the peer
	received     uint64
	taken        uint64 // by Read, or thrown away
	granted      uint64 // what the peer was allowed
	creditDue    bool   // it is to be allowed more
	closed       bool   // Close was called
	parting      bool   // the connection closes in order: nothing more is written
	fin, finSent bool   // to be sent; sent
	stop         bool
	stopSent     bool
	peerFin      bool
	peerStopped  bool
	refusal      Refusal // why the peer refused the stream; 0: it didn't
	ended        bool    // the channel is gone
	scheduled    bool    // run is on its way to the driver's goroutine
	offered      bool    // sendData is among the connection's senders

	listener *Listener // whose it is; nil for none
	slot     slot

	// The rest belongs to the driver's goroutine.
	ch      *channel.Channel
	runFn   func()
	tickFn  func()
	sendFn  func() int
	waiting bool // tick is on its way
	seg     [maxSegment]byte
}

func newConn(c *driver.Conn, ch *channel.Channel, cfg Config) *Conn {
	s := &Conn{cfg: cfg, conn: c, driver: c.Driver(), ch: ch, credit: InitialCredit, granted: InitialCredit, creditDue: true}
	s.local, s.remote = Addr{c.Driver().LocalAddr(), ch.Index()}, Addr{c.RemoteAddr(), ch.Index()}
	s.wake = sync.NewCond(&s.mu)
	s.in.limit, s.out.limit = cfg.Window, cfg.Buffer
	s.runFn, s.tickFn, s.sendFn = s.run, s.tick, s.sendData
	return s
}

// LocalAddr returns this end's Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's Addr as it was when the stream began.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Read waits for bytes. It returns io.EOF at the peer's end of data, a Refusal when the peer refused the stream, ErrLost when the connection has ended,
// os.ErrDeadlineExceeded after the deadline and net.ErrClosed after Close.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.readUntil.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case c.in.n > 0:
			n := c.in.read(p)
			c.take(n)
			return n, nil
		case c.refusal != 0:
			return 0, c.refusal
		case c.peerFin:
			return 0, io.EOF
		case c.ended:
			return 0, ErrLost
		}
		c.wake.Wait()
	}
}

// take notes that n received bytes are done with, and allows the peer more by and by.
func (c *Conn) take(n int) {
	c.taken += uint64(n)
	if c.taken+uint64(c.cfg.Window)-c.granted >= uint64(c.cfg.Window)/2 && !c.peerFin {
		c.creditDue = true
		c.schedule()
	}
}

// Write waits until the buffer has taken all of p, unless there is an error. The next ticks of the driver send
// what the buffer holds.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for {
		switch {
		case c.closed || c.fin && !c.peerStopped:
			return total, net.ErrClosed
		case c.writeUntil.passed:
			return total, os.ErrDeadlineExceeded
		case c.refusal != 0:
			return total, c.refusal
		case c.peerStopped:
			return total, ErrPeerClosed
		case c.ended || c.parting:
			return total, ErrLost
		}
		if n := c.out.write(p[total:]); n > 0 {
			total += n
			if !c.offered {
				c.schedule()
			}
		}
		if total == len(p) {
			return total, nil
		}
		c.wake.Wait()
	}
}

// CloseWrite ends this end's data. The peer reads what was written before, then io.EOF. This end may still read. When it is called after
// the connection began to close in order the peer reads ErrLost instead.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.endData()
	c.wake.Broadcast()
	c.schedule()
	return nil
}

// endData has the end of this end's data told, unless the connection closes in order already: a Write may have been cut short by that, which must not
// look whole to the peer.
func (c *Conn) endData() { c.fin = c.fin || !c.parting }

// Close ends both directions and doesn't wait. What was written before still goes out while the
// driver is ticked, also when the connection is closed in order meanwhile. When it is called after the connection began to close in order the peer
// reads ErrLost behind that, not io.EOF: a Write may have been cut short. What wasn't read is thrown away. The stream no
// longer counts against the Listener's MaxStreams.
func (c *Conn) Close() error {
	if c.listener != nil {
		c.listener.change(c, func(s *slot) { s.closed = true })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed, c.stop = true, true
	c.endData()
	c.taken += uint64(c.in.n)
	c.in.release()
	c.readUntil.stop()
	c.writeUntil.stop()
	c.wake.Broadcast()
	c.schedule()
	return nil
}

// SetDeadline sets both deadlines. The zero time means none.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.readUntil, &c.writeUntil) }

// SetReadDeadline sets when Read gives up, with os.ErrDeadlineExceeded. The zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.readUntil) }

// SetWriteDeadline sets when Write gives up, with os.ErrDeadlineExceeded. The zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writeUntil) }

func (c *Conn) setDeadlines(t time.Time, which ...*deadline) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	for _, d := range which {
		d.set(t, c.wake)
	}
	return nil
}

// schedule has run called by the driver, once for however many changes until then.
func (c *Conn) schedule() {
	if !c.scheduled && !c.ended {
		c.scheduled = true
		c.driver.Do(c.runFn)
	}
}

var _ net.Conn = (*Conn)(nil)
