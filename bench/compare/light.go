package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Light clients leave the cores to W3's server. A real client joins and has one message echoed. From then on its packets are one template, whose sequence, acks and
// time are filled in, and of the server's packets only the header and the time are read. To the server they are clients like
// any: it is told of each packet that came, and of no other. They share one socket, and each has a loopback address of its own.

// lightLink is the link of bunchnet-0, and lightPrefix the bits that it has before a packet's header.
var (
	lightLink   = driver.PlainUnreal51()
	lightPrefix = (&handshake.Component{Protocol: lightLink.Handshake}).ReservedBits()
)

// lightHeader is the bits of a header with one word of history, which light clients always have: 32 packets, more than a second of them.
const lightHeader = 64

// light is a client, before and after it has left its driver.
type light struct {
	packet   []byte // the template, at bits: prefix, header, bunch
	out      uint16 // sequence of the next packet
	newest   uint16 // of the server's
	history  uint32 // of those up to newest
	received bool   // one has been
	d        *driver.Driver
	failed   error
	channel  uint32
	echoes   int // that its driver had
}

const lightSequences = 1<<14 - 1

// sent notes a packet that the driver sends. It is the prefix of all further ones.
func (l *light) sent(p []byte) {
	var r bitio.Reader
	var h packetnotify.Header
	if lightOpen(&r, p) && h.Read(&r) == nil {
		l.out = (h.Seq + 1) & lightSequences
		l.packet = append(l.packet[:0], p[0])
	}
}

// lightOpen has r read a packet from its header on. It is false for what is no packet.
func lightOpen(r *bitio.Reader, p []byte) bool {
	if lightLink.Handshake.IsHandshake(p) || handler.Open(r, p) != nil {
		return false
	}
	r.Skip(lightPrefix)
	r.StripTerminator() // the packet's own, before the handlers'
	return r.Err() == nil
}

// took notes a packet of the server's, and has r read what follows its header. It is false for what is no packet, or an old one.
func (l *light) took(r *bitio.Reader, p []byte) bool {
	var h packetnotify.Header
	if !lightOpen(r, p) || h.Read(r) != nil {
		return false
	}
	d := (h.Seq - l.newest) & lightSequences
	if l.received && (d == 0 || d > lightSequences/2) {
		return false
	}
	if !l.received || d > 31 {
		d, l.history = 0, 0
	}
	l.received, l.newest, l.history = true, h.Seq, l.history<<d|1
	return true
}

// leave makes the template, and forgets the driver.
func (l *light) leave(proto *bunch.Protocol) (timeAt int) {
	buf := make([]byte, w3Size+32)
	w := bitio.NewWriter(buf)
	w.WriteBits(uint64(l.packet[0]), lightPrefix)
	w.WriteBits(0, lightHeader)
	w.WriteBool(false) // no packet info
	proto.WriteHeader(w, &bunch.Header{ChIndex: l.channel, Bits: 8 * w3Size})
	timeAt = w.Len()
	w.WriteBytes(make([]byte, w3Size))
	handler.WriteTerminator(w) // the packet's
	handler.WriteTerminator(w) // the handlers'
	l.packet, l.d = w.Bytes(), nil
	return timeAt
}

// putBits replaces 64 bits of p at a bit.
func putBits(p []byte, at int, v uint64) {
	p, shift := p[at/8:], at%8
	low := binary.LittleEndian.Uint64(p)
	binary.LittleEndian.PutUint64(p, low&(1<<shift-1)|v<<shift)
	if shift > 0 {
		p[8] = p[8]&^(1<<shift-1) | byte(v>>(64-shift))
	}
}

// next is the client's next packet.
func (l *light) next(timeAt int, now uint64) []byte {
	h := uint64(l.newest)<<4 | uint64(l.out)<<18 | uint64(l.history)<<32 // one word: 0
	putBits(l.packet, lightPrefix, h)
	putBits(l.packet, timeAt, now)
	l.out = (l.out + 1) & lightSequences
	return l.packet
}

// lightDriverSocket is the socket of a client's driver.
type lightDriverSocket struct {
	l     *light
	all   *lightSocket
	n     int // of the client
	queue [][]byte
}

func (s *lightDriverSocket) TryReadBatch(msgs []udp.Message) (n int, err error) {
	for ; n < len(msgs) && n < len(s.queue); n++ {
		msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, s.queue[n]), s.all.to
	}
	s.queue = s.queue[n:]
	return n, nil
}

func (s *lightDriverSocket) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		s.l.sent(msgs[i].Buf)
		if err := s.all.write(s.n, msgs[i].Buf); err != nil {
			return i, err
		}
		if err := s.all.flush(); err != nil { // the driver's buffer is its own again
			return i, err
		}
	}
	return len(msgs), nil
}

func (s *lightDriverSocket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }
func (s *lightDriverSocket) BatchSize() int                            { return smallBatch }
func (s *lightDriverSocket) LocalAddr() netip.AddrPort                 { return s.all.addr(s.n) }
func (s *lightDriverSocket) SetReadDeadline(time.Time) error           { return nil }
func (s *lightDriverSocket) Close() error                              { return nil }

// lightCrowd is W3's clients as light ones.
type lightCrowd struct {
	socket          *lightSocket
	clients         []light
	drivers         []*lightDriverSocket // of those that still have one
	proto           bunch.Protocol
	rate            int
	timeAt          int
	now             time.Duration
	sent, got, late int64
}

var errLight = errors.New("light clients are those of bunchnet-0 alone")

// lightAtOnce is how many clients join at a time.
const lightAtOnce = 250

func (c *lightCrowd) dial(peer *Peer, addr string, n int) error {
	if peer.Name != "bunchnet-0" {
		return errLight
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	if c.socket, err = newLightSocket(to); err != nil {
		return err
	}
	s := setting{}
	o := Options{Unreliable: true, Rate: c.rate, Many: true}
	c.clients, c.drivers = make([]light, n), make([]*lightDriverSocket, n)
	c.proto = s.config(o).Protocol.Bunch
	c.proto.HandlerBits = lightPrefix + 1
	for first := 0; first < n; first += lightAtOnce {
		if err := c.join(s, o, addr, first, min(n, first+lightAtOnce)); err != nil {
			return fmt.Errorf("after %d clients: %w", first, err)
		}
	}
	return nil
}

// join has some clients join, and leave their drivers.
func (c *lightCrowd) join(s setting, o Options, addr string, first, end int) error {
	for i := first; i < end; i++ {
		if err := c.begin(s, o, addr, i); err != nil {
			return err
		}
	}
	all := c.clients[first:end]
	last := time.Now().Add(dialTimeout)
	for left := 1; left > 0; time.Sleep(2 * time.Millisecond) {
		now := time.Now()
		left = 0
		for i := range all {
			l := &all[i]
			l.d.TickDispatch(now)
			l.d.TickFlush(now)
			if err := errors.Join(l.failed, l.d.Err()); err != nil {
				return err
			}
			if l.echoes == 0 {
				left++
			}
		}
		if now.After(last) {
			return errDial
		}
		if err := c.read(); err != nil {
			return err
		}
	}
	for i := first; i < end; i++ {
		c.timeAt = c.clients[i].leave(&c.proto)
		c.drivers[i] = nil
	}
	return nil
}

// begin dials with a driver.
func (c *lightCrowd) begin(s setting, o Options, addr string, i int) error {
	l := &c.clients[i]
	oc := &ourConn{unreliable: true, single: true, msg: make([]byte, w3Size)}
	oc.h = func(Conn, []byte) { l.echoes++ }
	cfg, err := s.clientConfig(addr, o, oc, func(err error) {
		if l.failed = err; err == nil {
			l.channel = oc.ch.Index()
			l.failed = oc.Send(make([]byte, w3Size))
		}
	})
	if err != nil {
		return err
	}
	c.drivers[i] = &lightDriverSocket{l: l, all: c.socket, n: i}
	cfg.Socket = c.drivers[i]
	l.d, err = driver.Dial(addr, cfg)
	return err
}

// received is a datagram for a client.
func (c *lightCrowd) received(n int, p []byte) {
	if n >= len(c.clients) {
		return
	}
	l := &c.clients[n]
	var r bitio.Reader
	fresh := l.took(&r, p)
	if d := c.drivers[n]; d != nil {
		d.queue = append(d.queue, append([]byte(nil), p...))
		return
	}
	if !fresh {
		return
	}
	r.ReadBool() // packet info: none
	for r.Remaining() > 0 {
		var h bunch.Header
		var payload bitio.Reader
		if c.proto.Read(&r, &h, &payload) != nil {
			return
		}
		if h.Reliable || h.Bits != 8*w3Size {
			continue
		}
		c.got++
		if c.now-time.Duration(payload.ReadBits(64)) > w3Late {
			c.late++
		}
	}
}

// read takes in what has come.
func (c *lightCrowd) read() error {
	for {
		c.now = time.Since(w1Epoch)
		n, err := c.socket.read(c.received)
		if n == 0 || err != nil {
			return err
		}
	}
}

// lightTurn is how many packets are sent before those that came are read.
const lightTurn = 4 * lightBatchSize

// load has every client send at the rate, one after another, evenly spread.
func (c *lightCrowd) load(length time.Duration) error {
	n := len(c.clients)
	perSecond := n * c.rate
	total := int(length * time.Duration(perSecond) / time.Second)
	begin := time.Now()
	for i := 0; i < total; {
		c.now = time.Since(w1Epoch)
		due := min(total, i+lightTurn, int(time.Since(begin)*time.Duration(perSecond)/time.Second)+1)
		stamp, sent := uint64(c.now), due-i
		for ; i < due; i++ {
			if i%n == 0 { // a client's packets are made in one buffer
				if err := c.socket.flush(); err != nil {
					return err
				}
			}
			if err := c.socket.write(i%n, c.clients[i%n].next(c.timeAt, stamp)); err != nil {
				return err
			}
			c.sent++
		}
		if err := c.socket.flush(); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
		if sent < lightTurn { // there is time
			nap()
		}
	}
	return nil
}

// idle reads until done: clients that send nothing are no work.
func (c *lightCrowd) idle(done <-chan time.Time) {
	for {
		select {
		case <-done:
			return
		default:
			_ = c.read() // what load can't read it says
			nap()
		}
	}
}

func (c *lightCrowd) counts() (sent, got, late int64) { return c.sent, c.got, c.late }

func (c *lightCrowd) close() {
	if c.socket != nil {
		c.socket.close()
	}
}
