package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Counters is what happened to a driver's datagrams.
type Counters struct {
	DatagramsIn, BytesIn, DatagramsOut, BytesOut uint64
	SendErrors, ReadErrors                       uint64 // of single datagrams; the socket goes on
	Refused                                      uint64 // packets a connection dropped
	Corrupt                                      uint64 // wrong checksum
	// Accepted counts connections whose handshake was done, Joined those whose login was. Closed counts all that ended, with those
	// that were there only to tell a client that it is refused.
	Accepted, Joined, Closed uint64
	// NoRoom counts clients refused because of MaxConns or MaxPerAddr with PlainUnreal; other links count theirs, see Refusals.
	// NoLogin counts logins that took longer than LoginTimeout.
	NoRoom, NoLogin uint64
	// ReadsBounded is the ticks that read Config.MaxDatagrams, and left to the next one what there was besides.
	ReadsBounded uint64
}

// Driver is a socket and the connections on it. All methods but Do and Close belong to one
// goroutine.
type Driver struct {
	Counters Counters

	cfg       Config
	socket    udp.Socket
	epoch     time.Time
	latest    time.Duration // tick
	now       time.Time     // as the link was told last
	logged    bool          // a Logger was given
	simulated bool          // the clock is another than the machine's
	login     bool          // the driver's own control channel leads channels
	server    serverLink    // nil on a client
	client    clientLink    // nil on a server
	pool      channel.Pool
	conns     []*Conn // in the order they came
	nextID    uint32
	err       error
	failed    bool          // err is the socket's, and another socket mends it
	ended     bool          // Close was called
	leaving   error         // what Shutdown was given
	done      chan struct{} // closed when it was
	parted    int           // ticks that have to look for connections that have ended
	noLogin   error         // why a client's connection ended before it joined; what is said last still goes over the socket

	ticks   tickClock
	log     operatorLog
	dropped dropped // of connections that have ended

	in, out []udp.Message
	nOut    int
	near    []*Conn // those of the datagrams in in
	fetched int64   // what fetch read, so that it has to be read

	mu      sync.Mutex
	calls   []func()
	running []func() // the calls of the last time, for their room
	waiting bool     // a read is under way that Do may end

	beforeFlush, flushRunning []func()
	sharing                   []*Conn // whose game's use of the bandwidth is measured, since others wait for what it leaves
}

// maxDatagram is the largest datagram that is read or written.
const maxDatagram = 1500

// LocalAddr is the socket's address.
func (d *Driver) LocalAddr() netip.AddrPort { return d.socket.LocalAddr() }

// Format shows what a driver is, and nothing of its keys.
func (d *Driver) Format(f fmt.State, _ rune) {
	kind := "client"
	if d.server != nil {
		kind = "server"
	}
	fmt.Fprintf(f, "driver.Driver(%s at %v, %d connections)", kind, d.LocalAddr(), d.Len())
}

// IsServer reports whether the driver listens.
func (d *Driver) IsServer() bool { return d.server != nil }

// Conns calls yield for each connection, in the order they came. Clients whose login is refused aren't among a server's.
func (d *Driver) Conns(yield func(*Conn) bool) {
	for _, c := range d.conns {
		if !c.Closed() && !c.turnedAway() && !yield(c) {
			return
		}
	}
}

// Len is the number of connections that Conns yields, and after Shutdown that of all that still have to be told.
func (d *Driver) Len() int {
	n := 0
	for _, c := range d.conns {
		if !c.Closed() && (c.leaves || !c.turnedAway()) {
			n++
		}
	}
	return n
}

// Server is a client's connection; nil until the handshake is done.
func (d *Driver) Server() *Conn {
	for c := range d.Conns {
		return c
	}
	return nil
}

// Err is what ended the driver's socket, or nil: its connections wait then, until they time out, and Rebind helps. Or it is why a
// client's dial failed; see ErrDenied and those beside it.
func (d *Driver) Err() error {
	if d.err != nil {
		return d.err
	}
	return d.noLogin
}

// Since is a time as connections see it: since the driver's start, but for what ticks left out. A tick that comes more than
// a second after the last one comes a second after it: nobody could be heard in a hitch, so it is no silence. A tick that comes
// before the last one, by a clock that was set back, comes at the same time. Times with a monotonic reading,
// such as time.Now's, don't mind a clock that is set. A time that no tick had yet is a second after the last one at most, as the
// next tick will be.
func (d *Driver) Since(now time.Time) time.Duration {
	return min(now.Sub(d.epoch), d.latest+longestTick)
}

// at is Since for a tick.
func (d *Driver) at(now time.Time) time.Duration {
	at := now.Sub(d.epoch)
	tick := min(max(at, d.latest), d.latest+longestTick)
	d.epoch = d.epoch.Add(at - tick)
	d.latest = tick
	return tick
}

// longestTick is below every link's timeout.
const longestTick = time.Second

// TickDispatch takes in the datagrams that have come, Config.MaxDatagrams of them at most. The next one takes in the rest.
func (d *Driver) TickDispatch(now time.Time) {
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

// readAll reads until the socket is empty or the tick has its share: whoever sends faster than datagrams are read
// must not keep the tick from its end.
func (d *Driver) readAll(at time.Duration) {
	for read, errs := 0, 0; d.err == nil && errs < maxReadErrors; {
		if read >= d.cfg.MaxDatagrams {
			d.Counters.ReadsBounded++
			return
		}
		n, err := d.socket.TryReadBatch(d.in)
		read += n
		d.dispatch(at, n)
		if err != nil && d.readError(err) {
			errs++ // what came behind it isn't left for the next tick
		} else if n < len(d.in) {
			return
		}
	}
}

// maxReadErrors bounds the errors of single datagrams that one tick reads past.
const maxReadErrors = 1024

// readError counts an error of one datagram and reports whether reading goes on.
func (d *Driver) readError(err error) bool {
	if udp.IsTemporary(err) {
		d.Counters.ReadErrors++
		return true
	}
	d.socketFailed(err)
	return false
}

// fetchFrom is with how many connections they are no longer all in the caches.
const fetchFrom = 64

// fetch has the memory of the connections that the first n datagrams are for loaded all at once.
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
	clear(near) // so that those that end aren't held
}

func (d *Driver) dispatch(at time.Duration, n int) {
	d.fetch(n)
	for i := range d.in[:n] {
		if d.ended {
			return // a callback has closed the driver
		}
		m := &d.in[i]
		d.Counters.DatagramsIn++
		d.Counters.BytesIn += uint64(m.N)
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

// checked is a datagram without its checksum, if there is to be one, and whether that is right.
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
	for _, c := range d.conns {
		c.PostTickDispatch(at)
	}
}

// TickFlush lets connections send what was written since the last one.
func (d *Driver) TickFlush(now time.Time) {
	defer region(regionFlush).End()
	defer d.ticks.flush(time.Now())
	at := d.at(now)
	d.runBeforeFlush()
	d.serveLeft()
	for _, c := range d.conns {
		c.Tick(at)
		c.checkLogin(at)
	}
	d.tickLink(now)
	d.flush()
	d.sweep()
	d.logSecond(at)
}

func (d *Driver) tickLink(now time.Time) {
	d.now = now
	if d.server != nil {
		d.server.tick(d.Since(now))
	} else {
		d.client.tick(d.Since(now))
	}
}

// sweep drops connections that have ended.
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

// forgetAll drops all connections, at the end. Whoever closed the driver from a callback may have been called from
// a loop over them.
func (d *Driver) forgetAll() {
	for _, c := range d.conns {
		d.dropped.add(c)
	}
	d.conns = nil
}

// write queues a datagram for the end of the tick. It is sent earlier when the batch is full.
func (d *Driver) write(to netip.AddrPort, p []byte) {
	if len(p) > maxDatagram-checksumBytes {
		d.Counters.SendErrors++
		return
	}
	m := &d.out[d.nOut]
	m.Buf, m.Addr = append(m.Buf[:0], p...), to
	if d.cfg.Checksum {
		m.Buf = binary.LittleEndian.AppendUint32(m.Buf, crc32.Checksum(p, castagnoli))
	}
	d.Counters.DatagramsOut++
	d.Counters.BytesOut += uint64(len(p))
	if d.nOut++; d.nOut == len(d.out) {
		d.flush()
	}
}

// flush sends the batch. A datagram that the system refuses is lost, as on the network: strangers choose the
// addresses that they say they have.
func (d *Driver) flush() {
	for batch := d.out[:d.nOut]; len(batch) > 0 && d.err == nil; {
		n, err := d.socket.WriteBatch(batch)
		batch = batch[n:]
		if err == nil && n > 0 {
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			d.socketFailed(err)
			break
		}
		d.Counters.SendErrors++
		if len(batch) > 0 {
			batch = batch[1:]
		}
	}
	d.nOut = 0
}

// Close ends all connections at once, each with a last packet that says so, or several where the link has
// them, and closes the socket. To part in order, call Shutdown before and tick until Len is 0.
func (d *Driver) Close() error {
	if !d.ended {
		d.ended = true
		close(d.done)
	}
	at := d.Since(d.cfg.Clock())
	for _, c := range d.conns {
		c.Abort(at, "driver closed")
	}
	d.tickLink(d.cfg.Clock())
	d.flush()
	d.forgetAll()
	if err := d.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// noAnswer tells the game that no connection came about.
func (d *Driver) noAnswer(r netconn.CloseResult) {
	d.tell("no connection", slog.String("why", r.String()))
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
	d.parted = 2 // this one, and the next in case that the link has had its look
	d.tell("connection closed", slog.Any("addr", c.addr), slog.Uint64("id", uint64(c.ID())), slog.String("why", r.String()))
	if d.cfg.Closed != nil {
		d.cfg.Closed(c, r)
	}
}
