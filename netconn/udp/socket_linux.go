package udp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoKey is what a WireGuard interface says of an address that none of its peers has.
const errNoKey = unix.ENOKEY

// Listen opens a socket at an address like ":7777", "127.0.0.1:0" (any free port) or "[::1]:7777".
func Listen(addr string, cfg Config) (Socket, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{}
	if cfg.ReusePort {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			cerr := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			})
			if cerr != nil {
				return cerr
			}
			return err
		}
	}
	pc, err := lc.ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return nil, err
	}
	conn := pc.(*net.UDPConn)
	_ = conn.SetReadBuffer(cfg.ReadBuffer) // the system's default serves too
	_ = conn.SetWriteBuffer(cfg.WriteBuffer)
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{handle: shared{raw, conn}, local: unmap(conn.LocalAddr().(*net.UDPAddr).AddrPort())}
	s.v6 = conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is6()
	if cfg.NoPoller {
		if s.handle, err = newOwn(conn, raw); err != nil {
			_ = conn.Close() // once more does no harm
			return nil, err
		}
	}
	s.in.init()
	s.out.init()
	s.in.call, s.out.call = s.readCall, s.writeCall
	s.in.try = func(fd uintptr) { s.readCall(fd) }
	if !cfg.NoOffload {
		s.startOffload()
	}
	if cfg.Whole {
		s.sendWhole()
	}
	return s, nil
}

// socket is recvmmsg and sendmmsg.
type socket struct {
	handle  handle
	local   netip.AddrPort
	v6      bool
	in, out batch
	whole   bool // datagrams aren't sent in fragments
	gso     bool // the system can send several datagrams to one peer as one
	refused refusals
	gro     gro
}

// batch is the kernel's view of the messages of one direction.
type batch struct {
	hdrs    [batchSize]mmsghdr
	iovs    [batchSize]unix.Iovec
	names   [batchSize]unix.RawSockaddrInet6 // large enough for both families
	control [batchSize]control
	counts  [batchSize]int // messages in a header
	n       int
	done    int
	errno   syscall.Errno
	wait    bool
	zones   zones
	call    func(fd uintptr) bool // kept, so that calls don't allocate a closure
	try     func(fd uintptr)
	stats   Counters // of the direction
}

// mmsghdr is struct mmsghdr of recvmmsg(2). Go pads it as C does, to the alignment of a pointer: by 4 bytes where that is 8, and
// not at all where it is 4.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

func (b *batch) init() {
	for i := range b.hdrs {
		b.hdrs[i].hdr.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		b.hdrs[i].hdr.Iov = &b.iovs[i]
		b.hdrs[i].hdr.SetIovlen(1)
	}
}

func (b *batch) set(i int, p []byte) {
	if len(p) == 0 {
		b.iovs[i].Base = nil
	} else {
		b.iovs[i].Base = &p[0]
	}
	b.iovs[i].SetLen(len(p))
}

// sendWhole sets the bit in IPv4's headers that forbids fragments, and keeps the system from making them itself.
func (s *socket) sendWhole() {
	_ = s.handle.Control(func(fd uintptr) { // closed already: the first read or write says so
		s.whole = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE) == nil
		if s.v6 {
			v6 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE) == nil
			s.whole = s.whole && v6
		}
	})
}

// SendsWhole is for the function of that name.
func (s *socket) SendsWhole() bool { return s.whole }

func (s *socket) LocalAddr() netip.AddrPort         { return s.local }
func (s *socket) BatchSize() int                    { return batchSize }
func (s *socket) Close() error                      { return s.handle.Close() }
func (s *socket) SetReadDeadline(t time.Time) error { return s.handle.SetReadDeadline(t) }

// Counters adds up both directions. Call it on the goroutine that reads and writes.
func (s *socket) Counters() Counters {
	c := s.out.stats
	c.Received, c.Reads, c.GROReads, c.GROSegments = s.in.stats.Received, s.in.stats.Reads, s.in.stats.GROReads, s.in.stats.GROSegments
	return c
}

func (s *socket) ReadBatch(msgs []Message) (int, error)    { return s.read(msgs, true) }
func (s *socket) TryReadBatch(msgs []Message) (int, error) { return s.read(msgs, false) }

func (s *socket) read(msgs []Message, wait bool) (n int, err error) {
	if s.gro.bufs == nil {
		n, err = s.readPlain(msgs, wait)
	} else {
		n, err = s.readGRO(msgs, wait)
	}
	s.in.stats.Received += uint64(n)
	return n, err
}

// readPlain reads into the messages themselves.
func (s *socket) readPlain(msgs []Message, wait bool) (int, error) {
	b := &s.in
	n := min(len(msgs), batchSize)
	for i := range n {
		b.set(i, msgs[i].Buf)
	}
	n, err := s.receive(n, wait)
	for i := range n {
		msgs[i].N, msgs[i].Addr, msgs[i].lent = int(b.hdrs[i].n), b.address(i), nil
	}
	return n, err
}

// receive fills up to n headers, whose buffers are set.
func (s *socket) receive(n int, wait bool) (int, error) {
	b := &s.in
	if b.n, b.wait = n, wait; n == 0 {
		return 0, nil
	}
	for i := range n {
		b.hdrs[i].hdr.Namelen = uint32(unsafe.Sizeof(b.names[i]))
	}
	var err error
	if wait { // within the handle, which minds the deadline
		err = s.handle.Read(b.call)
	} else {
		err = s.handle.Control(b.try)
	}
	if err != nil {
		return 0, err
	}
	if b.errno == unix.EAGAIN {
		return 0, nil
	}
	if b.errno != 0 {
		return 0, os.NewSyscallError("recvmmsg", b.errno)
	}
	b.stats.Reads++
	return b.done, nil
}

func (s *socket) readCall(fd uintptr) bool {
	b := &s.in
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), uintptr(b.n), unix.MSG_DONTWAIT, 0, 0)
	b.done, b.errno = int(n), errno
	return errno != unix.EAGAIN || !b.wait
}

func (s *socket) WriteBatch(msgs []Message) (sent int, err error) {
	b := &s.out
	for sent < len(msgs) {
		if s.prepare(msgs[sent:min(len(msgs), sent+batchSize)]); b.n == 0 {
			return sent, os.NewSyscallError("sendmmsg", unix.EAFNOSUPPORT)
		}
		if err := s.handle.Write(b.call); err != nil {
			return sent, err
		}
		if b.errno != 0 {
			if b.counts[0] > 1 && concerns(b.errno) {
				b.stats.GSORefused++
				s.refused.add(msgs[sent].Addr)
				continue
			}
			if len(b.zones.numbers) > 0 {
				b.zones.forget()
			}
			return sent, os.NewSyscallError("sendmmsg", b.errno)
		}
		sent += s.wrote(msgs[sent:])
	}
	return sent, nil
}

// reachable reports whether the socket's family can send to an address.
func (s *socket) reachable(a netip.Addr) bool { return s.v6 || a.Is4() || a.Is4In6() }

// prepare makes headers of messages, up to one that can't be sent: one for each, or one for several of the same size to the
// same peer.
func (s *socket) prepare(msgs []Message) {
	b := &s.out
	b.n = 0
	for i := 0; i < len(msgs) && s.reachable(msgs[i].Addr.Addr()); {
		n := 1
		if s.gso {
			if n = segments(msgs[i:]); n > 1 && s.refused.wait(msgs[i].Addr) {
				n = 1
			}
		}
		h := &b.hdrs[b.n].hdr
		for j := range n {
			b.set(i+j, msgs[i+j].Buf)
		}
		h.Iov = &b.iovs[i]
		h.SetIovlen(n)
		h.Namelen = b.setAddress(b.n, msgs[i].Addr, s.v6)
		h.Control = nil
		h.SetControllen(0)
		if n > 1 {
			b.control[b.n].setSegment(len(msgs[i].Buf))
			h.Control = &b.control[b.n].bytes()[0]
			h.SetControllen(controlSpace)
		}
		b.counts[b.n] = n
		b.n++
		i += n
	}
}

// wrote is how many of the messages the headers that went out held.
func (s *socket) wrote(msgs []Message) (messages int) {
	b := &s.out
	if b.counts[0] == 1 {
		s.refused.tookOne(msgs[0].Addr)
	}
	for _, n := range b.counts[:b.done] {
		if messages += n; n > 1 {
			s.refused.taken(msgs[messages-1].Addr)
			b.stats.GSOWrites++
			b.stats.GSOSegments += uint64(n)
		}
	}
	b.stats.Writes++
	b.stats.Sent += uint64(messages)
	return messages
}

func (s *socket) writeCall(fd uintptr) bool {
	b := &s.out
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), uintptr(b.n), unix.MSG_DONTWAIT, 0, 0)
	b.done, b.errno = int(n), errno
	return true // a full buffer is told, not waited for: a game's tick goes on, and the datagram counts as lost
}

// address is who sent the i-th message.
func (b *batch) address(i int) netip.AddrPort {
	name := &b.names[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:])
	if name.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port)
	}
	a := netip.AddrFrom16(name.Addr).Unmap()
	if name.Scope_id != 0 {
		a = a.WithZone(b.zones.name(name.Scope_id))
	}
	return netip.AddrPortFrom(a, port)
}

// setAddress sets whom the i-th header goes to, and returns the length of the name.
func (b *batch) setAddress(i int, a netip.AddrPort, v6 bool) uint32 {
	name := &b.names[i]
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], a.Port())
	if !v6 {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		v4.Family, v4.Addr = unix.AF_INET, a.Addr().Unmap().As4()
		return uint32(unsafe.Sizeof(*v4))
	}
	name.Family, name.Addr, name.Scope_id = unix.AF_INET6, a.Addr().As16(), 0
	if zone := a.Addr().Zone(); zone != "" {
		name.Scope_id = b.zones.number(zone)
	}
	return uint32(unsafe.Sizeof(*name))
}
