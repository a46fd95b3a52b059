package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// smallSocket is a client's socket of which a process has thousands: one file, connected, and no buffers. What reads
// it never waits, so that the runtime needn't know it.
type smallSocket struct {
	fd          int
	peer, local netip.AddrPort
}

func newSmallSocket(to netip.AddrPort) (udp.Socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &smallSocket{fd: fd, peer: to}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, nil
}

func (s *smallSocket) connect() error {
	if err := unix.Connect(s.fd, &unix.SockaddrInet4{Addr: s.peer.Addr().As4(), Port: int(s.peer.Port())}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	in4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return net.InvalidAddrError("not IPv4")
	}
	s.local = netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), uint16(in4.Port))
	return nil
}

// TryReadBatch reads as many as there is room for: what is left would make every later one wait for a tick more.
func (s *smallSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		b := msgs[i].Buf
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			msgs[i].N, msgs[i].Addr = int(n), s.peer
		case unix.EAGAIN:
			return i, nil
		default:
			return i, os.NewSyscallError("recvfrom", errno)
		}
	}
	return len(msgs), nil
}

func (s *smallSocket) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		b := msgs[i].Buf
		if _, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0); errno != 0 {
			return i, os.NewSyscallError("sendto", errno)
		}
	}
	return len(msgs), nil
}

// ReadBatch doesn't wait either: nobody asks for it.
func (s *smallSocket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }

func (s *smallSocket) SetReadDeadline(time.Time) error { return nil }

func (s *smallSocket) BatchSize() int            { return smallBatch }
func (s *smallSocket) LocalAddr() netip.AddrPort { return s.local }

func (s *smallSocket) Close() error { return os.NewSyscallError("close", unix.Close(s.fd)) }
