package driver

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Counters counts a driver's datagrams and connections.
type Counters struct {
	DatagramsIn, BytesIn, DatagramsOut, BytesOut uint64
	SendErrors, ReadErrors                       uint64 // errors of single datagrams; the socket still works
	Refused                                      uint64 // packets that a connection dropped before its end
	Corrupt                                      uint64 // datagrams with a wrong checksum
	// Accepted counts finished handshakes, Joined finished logins, Closed ended connections. Connections made only to
	// tell a client that it is refused count as well.
	Accepted, Joined, Closed uint64
	// NoRoom counts clients refused because of MaxConns or MaxPerAddr with PlainUnreal; other links count theirs, see
	// Refusals. NoLogin counts logins that took longer than LoginTimeout.
	NoRoom, NoLogin uint64
	// ReadsBounded counts the ticks that read Config.MaxDatagrams datagrams and left the rest to the next tick.
	ReadsBounded uint64
	// Shed counts datagrams dropped because their connection had Config.MaxConnDatagrams in this tick already.
	Shed uint64
}

// Driver is a socket and its connections. All methods except Do and Done belong to the goroutine that ticks the driver,
// which is Run's while Run runs. Callbacks are called on it, and may call all methods except those that tick. To end Run
// from another goroutine, end its context.
type Driver struct {
	Counters Counters

	cfg       Config
	socket    udp.Socket
	epoch     time.Time
	latest    time.Duration // tick
	logged    bool          // a Logger was given
	simulated bool          // the clock isn't the machine's
	login     bool          // channels begins with the driver's own control channel
	server    serverLink    // nil on a client
	client    clientLink    // nil on a server
	pool      channel.Pool
	conns     []*Conn // in the order they came
	nextID    uint32
	err       error
	failed    bool          // err is the socket's; Rebind clears it
	ended     bool          // Close was called
	leaving   error         // argument of Shutdown
	done      chan struct{} // closed by Close
	parted    int           // ticks that still have to look for ended connections
	noLogin   error         // why a client's connection ended before it joined; its last packet is still sent

	ticking atomic.Bool // within TickDispatch, TickFlush or Run
	ticks   tickClock
	halves  [2]half // TickDispatch and TickFlush
	log     operatorLog
	dropped dropped // counters of ended connections

	in      []udp.Message
	near    []*Conn // the connections of the datagrams in in
	out     outgoing
	gather  gathering
	fetched int64 // sum of what fetch read, so that the compiler keeps the reads

	mu      sync.Mutex
	calls   calls // of Do
	waiting bool  // a read is in progress that Do may interrupt

	beforeFlush calls
	share       share
	sharing     []*Conn // connections whose bandwidth use is measured, because senders of SendSpare wait
}

// maxDatagram is the largest datagram read or written, in bytes.
const maxDatagram = 1500

// LocalAddr is the socket's address.
func (d *Driver) LocalAddr() netip.AddrPort { return d.socket.LocalAddr() }

// Format prints a description without keys.
func (d *Driver) Format(f fmt.State, _ rune) {
	kind := "client"
	if d.server != nil {
		kind = "server"
	}
	fmt.Fprintf(f, "driver.Driver(%s at %v, %d connections)", kind, d.LocalAddr(), d.Len())
}

// IsServer reports whether the driver listens.
func (d *Driver) IsServer() bool { return d.server != nil }

// Conns calls yield for each connection, in the order in which they were accepted. A server's connections to clients
// that are being refused aren't among them.
func (d *Driver) Conns(yield func(*Conn) bool) {
	for _, c := range d.conns {
		if !c.Closed() && !c.turnedAway() && !yield(c) {
			return
		}
	}
}

// LoginLimit is how long a server of the same Config waits for a client that is silent in its login: LoginTimeout, or Timeout, if that is shorter.
func (d *Driver) LoginLimit() time.Duration {
	if t := cmp.Or(d.cfg.Timeout, time.Minute); t > 0 {
		return min(d.cfg.LoginTimeout, t)
	}
	return d.cfg.LoginTimeout
}

// Len is the number of connections that Conns yields. After Shutdown it also counts clients that must still be told of
// it, and those to which the link hasn't said goodbye.
func (d *Driver) Len() int {
	n := 0
	if d.leaving != nil {
		n = d.parting()
	}
	for _, c := range d.conns {
		if !c.Closed() && (c.leaves || !c.turnedAway()) {
			n++
		}
	}
	return n
}

// parting is how many connections have ended, and keep the link's goodbye back.
func (d *Driver) parting() int {
	if d.server != nil {
		return d.server.parting()
	}
	return d.client.parting()
}

// Server is a client's connection; nil until the handshake is done.
func (d *Driver) Server() *Conn {
	for c := range d.Conns {
		return c
	}
	return nil
}

// Err is the error of the driver's socket, or nil. Connections then wait until they time out; Rebind gives them a new
// socket. On a client it may also be why the dial failed; see ErrDenied and the errors beside it.
// It is nil when a connection that had joined has ended, as by a kick: why is in the CloseResult that Config.Closed gets.
func (d *Driver) Err() error {
	if d.err != nil {
		return d.err
	}
	return d.noLogin
}

// Time converts a time to connections' time, which begins at the driver's start and is monotonic. A tick that comes
// more than a second after the last counts as one second later: nothing could be received in such a hitch, so it must
// not count as silence. A tick before the last one, by a clock that was set back, counts as the same time. Times with a
// monotonic reading, such as those of time.Now, don't depend on a clock that is set. A time after the last tick is at
// most a second after it, like the next tick's.
func (d *Driver) Time(now time.Time) time.Duration {
	return min(now.Sub(d.epoch), d.latest+longestTick)
}

// Now is connections' time as of the last tick, or of what Run has read or called since.
func (d *Driver) Now() time.Duration { return d.latest }

// at is Time for a tick: a late tick counts as 1 s at most, and time never goes back.
func (d *Driver) at(now time.Time) time.Duration {
	at := now.Sub(d.epoch)
	tick := min(max(at, d.latest), d.latest+longestTick)
	if at != tick {
		d.epoch = now.Add(-tick) // Sub doesn't go beyond 292 years, so epoch can't be moved by the difference
	}
	d.latest = tick
	return tick
}

// longestTick is shorter than every link's timeout.
const longestTick = time.Second

// TickDispatch reads and handles the datagrams that have arrived, at most Config.MaxDatagrams. The next TickDispatch
// reads the rest. It panics within a callback or while another goroutine ticks the driver. now may be of any clock of the
// game's, real or simulated; the time of day, by which tokens expire, is Config.Clock's.
func (d *Driver) TickDispatch(now time.Time) {
	d.beginTicking()
	defer d.ticking.Store(false)
	d.tickDispatch(now)
	d.forgotten(&d.halves[0], &d.halves[1], now, "TickDispatch is called without TickFlush: nothing is sent")
}

func (d *Driver) tickDispatch(now time.Time) {
	defer region(regionDispatch).End()
	d.ticks.begin()
	defer d.ticks.dispatchDone()
	at := d.at(now)
	d.runCalls()
	d.readAll(at)
	d.serveBetween()
	d.postDispatch(at)
	d.beginShares()
}

// readAll reads until the socket is empty or the tick's bound is reached. So a sender faster than this end can't keep a
// tick from ending.
func (d *Driver) readAll(at time.Duration) {
	for read, errs := 0, 0; d.err == nil && errs < maxReadErrors; {
		if read >= d.cfg.MaxDatagrams {
			d.Counters.ReadsBounded++
			return
		}
		n, err := d.socket.TryReadBatch(d.in)
		read += n
		d.dispatch(at, n, err)
		if err != nil && d.readError(err) {
			errs++ // the datagrams behind it aren't left for the next tick
		} else if n < len(d.in) {
			return
		}
	}
}

// maxReadErrors bounds the errors of single datagrams that one tick skips.
const maxReadErrors = 1024

// readError counts an error of one datagram, and reports whether to continue reading.
func (d *Driver) readError(err error) bool {
	if udp.IsTemporary(err) {
		d.Counters.ReadErrors++
		return true
	}
	d.socketFailed(err)
	return false
}

// fetchFrom: above this many, connections no longer fit the cache.
const fetchFrom = 64

// fetch prefetches the memory of the connections of the first n datagrams.
func (d *Driver) fetch(n int) {
	if n < 2 || len(d.conns) < fetchFrom {
		return
	}
	near := d.near[:n]
	for i := range near {
		near[i] = d.server.conn(d.in[i].Addr)
	}
	for _, c := range near {
		if c != nil && c.Conn != nil {
			d.fetched += c.Prefetch()
		}
	}
	clear(near) // ended connections aren't kept alive
}

// dispatch handles the datagrams that a read has returned.
func (d *Driver) dispatch(at time.Duration, n int, err error) {
	d.hasRead(err == nil && n < len(d.in))
	d.fetch(n)
	in := d.in[:n] // a callback may call Rebind, which replaces d.in
	for i := range in {
		if d.ended {
			return // a callback has closed the driver
		}
		m := &in[i]
		d.Counters.DatagramsIn++
		d.Counters.BytesIn += uint64(m.N)
		if d.excess(m.Addr) {
			continue
		}
		p, ok := d.checked(m.Data())
		switch {
		case !ok:
			d.Counters.Corrupt++
		case d.server != nil:
			d.server.receive(at, m.Addr, p)
		default:
			d.client.receive(at, m.Addr, p)
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumBytes = 4

// checked removes a datagram's checksum, if the config has one, and reports whether it is right.
func (d *Driver) checked(p []byte) ([]byte, bool) {
	if !d.cfg.Checksum {
		return p, true
	}
	n := len(p) - checksumBytes
	if n < 0 || crc32.Checksum(p[:n], castagnoli) != binary.LittleEndian.Uint32(p[n:]) {
		return nil, false
	}
	return p[:n], true
}

func (d *Driver) postDispatch(at time.Duration) {
	d.endShare()
	for _, c := range d.conns {
		c.datagrams = 0
		c.PostTickDispatch(at)
	}
}

// TickFlush lets connections send what was written since the last one. It panics as TickDispatch does.
func (d *Driver) TickFlush(now time.Time) {
	d.beginTicking()
	defer d.ticking.Store(false)
	d.tickFlush(now)
	d.forgotten(&d.halves[1], &d.halves[0], now, "TickFlush is called without TickDispatch: nothing is received")
}

func (d *Driver) tickFlush(now time.Time) {
	defer region(regionFlush).End()
	defer d.ticks.flush(time.Now())
	at := d.at(now)
	d.runBeforeFlush()
	d.serveLeft()
	for _, c := range d.conns {
		c.Tick(at)
		c.checkLogin(at)
	}
	d.tickLink(at)
	d.flush()
	d.sweep()
	d.logSecond(at)
}

func (d *Driver) tickLink(at time.Duration) {
	if d.server != nil {
		d.server.tick(at)
	} else {
		d.client.tick(at)
	}
}

// sweep removes connections that have ended.
func (d *Driver) sweep() {
	if d.parted == 0 {
		return
	}
	d.parted--
	kept := d.conns[:0]
	for _, c := range d.conns {
		if !c.Closed() {
			kept = append(kept, c)
			continue
		}
		d.dropped.add(c)
	}
	clear(d.conns[len(kept):])
	d.conns = kept
}

// forgetAll removes all connections at the end. A callback that closed the driver may be inside a loop over them.
func (d *Driver) forgetAll() {
	for _, c := range d.conns {
		d.dropped.add(c)
	}
	d.conns = nil
}

// Close ends all connections at once and closes the socket. Each peer gets one last packet that says so, or several
// where the link has them. For an orderly end call Shutdown first, and tick until Len is 0.
func (d *Driver) Close() error {
	if !d.ended {
		d.ended = true
		close(d.done)
	}
	at := d.Time(d.cfg.Clock())
	for _, c := range d.conns {
		c.Abort(at, "driver closed")
	}
	d.tickLink(at)
	d.flush()
	d.forgetAll()
	if err := d.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// noAnswer tells the game that no connection was made.
func (d *Driver) noAnswer(r netconn.CloseResult) {
	d.tell(slog.LevelInfo, "no connection", why(r))
	if d.cfg.Closed != nil {
		d.cfg.Closed(nil, r)
	}
}

func (d *Driver) closed(c *Conn, r netconn.CloseResult) {
	d.Counters.Closed++
	r = c.withRefusal(r)
	if c.client != nil && !c.joined {
		d.noLogin = r.Err
	}
	d.parted = 3 // this tick, the next, and one more in case the link was checked already
	c.tell(slog.LevelInfo, "connection closed", why(r))
	if d.cfg.Closed != nil {
		d.cfg.Closed(c, r)
	}
}
