package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's limits on what goes out as one.
const (
	maxSegments = 64
	maxGSOBytes = 65_000 // below 64 KiB with all headers
	groBuffers  = 16
	groBytes    = 64 << 10
)

// control is room for one control message of up to 4 bytes, aligned as the kernel wants it: to the size of a pointer, and not a
// byte more, which a 64-bit kernel would read as a second message of a 32-bit program.
type control struct {
	hdr  unix.Cmsghdr
	data [unsafe.Sizeof(uintptr(0))]byte
}

const controlSpace = int(unsafe.Sizeof(control{}))

func (c *control) bytes() *[controlSpace]byte { return (*[controlSpace]byte)(unsafe.Pointer(c)) }

// setSegment asks for datagrams of n bytes.
func (c *control) setSegment(n int) {
	c.hdr.Level, c.hdr.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.hdr.SetLen(int(unsafe.Sizeof(c.hdr)) + 2)
	*(*uint16)(unsafe.Pointer(&c.data)) = uint16(n)
}

// segment is the size of the datagrams that came as one; ok is false for a single one.
func (c *control) segment(length int) (n int, ok bool) {
	if length < int(unsafe.Sizeof(c.hdr))+4 || c.hdr.Level != unix.SOL_UDP || c.hdr.Type != unix.UDP_GRO {
		return 0, false
	}
	return int(*(*int32)(unsafe.Pointer(&c.data))), true
}

// gro is where the kernel puts datagrams that it took in as one, and how far they were handed out.
type gro struct {
	bufs    []byte // groBuffers of groBytes; only the pages that are used take memory
	i, n    int    // the buffer that is being handed out, and how many there are
	off     int
	segment int
	from    netip.AddrPort // of the buffer
}

// startOffload has the system send and receive several datagrams as one where it can.
func (s *socket) startOffload() {
	err := s.handle.Control(func(fd uintptr) {
		_, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
		s.gso = err == nil
		if unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1) == nil {
			s.gro.bufs = make([]byte, groBuffers*groBytes)
			for i := range groBuffers {
				b := &s.in
				b.set(i, s.gro.bufs[i*groBytes:(i+1)*groBytes])
				b.hdrs[i].hdr.Control = &b.control[i].bytes()[0]
				b.hdrs[i].hdr.SetControllen(controlSpace)
			}
		}
	})
	if err != nil {
		s.gso = false // closed already: the first read or write says so
	}
}

// segments is how many of the messages from the first on may go out as one: to the same peer and of the
// same size, but for the last, which may be shorter.
func segments(msgs []Message) int {
	size, total := len(msgs[0].Buf), len(msgs[0].Buf)
	if size == 0 {
		return 1
	}
	n := 1
	for n < len(msgs) && n < maxSegments {
		next := len(msgs[n].Buf)
		if next == 0 || next > size || total+next > maxGSOBytes || msgs[n].Addr != msgs[0].Addr {
			break
		}
		n++
		if total += next; next < size {
			break
		}
	}
	return n
}

// readGRO hands out what was left, or reads anew.
func (s *socket) readGRO(msgs []Message, wait bool) (n int, err error) {
	for n < len(msgs) {
		if s.gro.i < s.gro.n {
			n += s.handOut(msgs[n:], false)
			continue
		}
		asked := min(len(msgs)-n, groBuffers)
		if err = s.fill(asked, wait && n == 0); err != nil || s.gro.n == 0 {
			break
		}
		if s.gro.n < asked {
			return n + s.handOut(msgs[n:], true), nil // there is no more
		}
	}
	return n, err
}

// fill reads into up to n of the buffers.
func (s *socket) fill(n int, wait bool) error {
	b := &s.in
	for i := range s.gro.n { // those that the system wrote
		b.hdrs[i].hdr.SetControllen(controlSpace)
	}
	got, err := s.receive(n, wait)
	s.gro.i, s.gro.n, s.gro.off = 0, got, 0
	return err
}

// handOut gives messages the datagrams in the buffers: lent where they are, if the buffers stay as they are until the next read, or copied.
func (s *socket) handOut(msgs []Message, lend bool) (n int) {
	b, g := &s.in, &s.gro
	for n < len(msgs) && g.i < g.n {
		h := &b.hdrs[g.i]
		total := int(h.n)
		if g.off == 0 {
			g.segment, g.from = total, b.address(g.i)
			if size, ok := b.control[g.i].segment(int(h.hdr.Controllen)); ok && size > 0 && size < total {
				g.segment = size
				b.stats.GROReads++
				b.stats.GROSegments += uint64((total + size - 1) / size)
			}
		}
		end := min(total, g.off+g.segment)
		m := &msgs[n]
		first := g.i * groBytes
		p := g.bufs[first+g.off : first+end : first+end]
		m.N, m.Addr, m.lent = min(len(p), len(m.Buf)), g.from, nil
		if lend {
			m.lent = p[:m.N]
		} else {
			copy(m.Buf, p)
		}
		n++
		if g.off = end; end == total {
			g.i++
			g.off = 0
		}
	}
	return n
}
