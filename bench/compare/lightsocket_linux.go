package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lightSocket is one socket with an address for each client: 127.1.0.0 and up, of one port.
type lightSocket struct {
	to      netip.AddrPort
	port    uint16
	fd      int
	server  *unix.RawSockaddrInet4
	out, in lightBatch
	queued  int
}

const (
	lightFirst     = 127<<24 | 1<<16 // client 0's address
	lightBatchSize = 64
	lightLargest   = 2048
)

// lightControl is IP_PKTINFO: of what is sent the address that it is from, and of what is read the one that it is for.
type lightControl struct {
	hdr  unix.Cmsghdr
	info unix.Inet4Pktinfo
	_    [4]byte
}

type lightBatch struct {
	hdrs    [lightBatchSize]mmsghdr
	control [lightBatchSize]lightControl
	bufs    [lightBatchSize][]byte // what is read
}

func newLightSocket(to netip.AddrPort) (*lightSocket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &lightSocket{to: to, fd: fd, server: sockaddr(to)}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	for i := range lightBatchSize {
		s.out.hdrs[i].hdr = header(make([]byte, 1), s.server)
		c := &s.out.control[i]
		c.hdr.Level, c.hdr.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		c.hdr.SetLen(unix.SizeofCmsghdr + unix.SizeofInet4Pktinfo)
		s.in.bufs[i] = make([]byte, lightLargest)
		s.in.hdrs[i].hdr = header(s.in.bufs[i], s.server)
		s.in.hdrs[i].hdr.Name, s.in.hdrs[i].hdr.Namelen = nil, 0
		for _, b := range []*lightBatch{&s.out, &s.in} {
			b.hdrs[i].hdr.Control = (*byte)(unsafe.Pointer(&b.control[i]))
			b.hdrs[i].hdr.SetControllen(int(unsafe.Sizeof(b.control[i])))
		}
	}
	return s, nil
}

func (s *lightSocket) open() error {
	const buffer = 64 << 20
	for _, o := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF, unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o, buffer) // the last two are root's, who may have more than the system allows others
	}
	for _, o := range [][2]int{{unix.IP_PKTINFO, 1}, {unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO}} { // the latter saves the kernel an id for each datagram
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, o[0], o[1]); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if err := unix.Bind(s.fd, &unix.SockaddrInet4{}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	in4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return net.InvalidAddrError("not IPv4")
	}
	s.port = uint16(in4.Port)
	return nil
}

// addr is a client's address.
func (s *lightSocket) addr(client int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(lightIP(client)), s.port)
}

func lightIP(client int) [4]byte {
	a := lightFirst + client
	return [4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}
}

// write sends a client's datagram with the next flush; until then it stays as it is.
func (s *lightSocket) write(client int, p []byte) error {
	i := s.queued
	h := &s.out.hdrs[i].hdr
	h.Iov.Base = &p[0]
	h.Iov.SetLen(len(p))
	s.out.control[i].info.Spec_dst = lightIP(client)
	if s.queued++; s.queued == lightBatchSize {
		return s.flush()
	}
	return nil
}

func (s *lightSocket) flush() error {
	all := s.out.hdrs[:s.queued]
	s.queued = 0
	if err := transfer(unix.SYS_SENDMMSG, s.fd, all); err != nil {
		return os.NewSyscallError("sendmmsg", err)
	}
	return nil
}

// read has f take datagrams, with the numbers of the clients that they are for.
func (s *lightSocket) read(f func(client int, p []byte)) (int, error) {
	for i := range s.in.hdrs {
		s.in.hdrs[i].hdr.SetControllen(int(unsafe.Sizeof(s.in.control[i])))
	}
	n, err := batchCall(unix.SYS_RECVMMSG, s.fd, s.in.hdrs[:])
	if err == unix.EAGAIN {
		return 0, nil
	}
	if err != nil {
		return 0, os.NewSyscallError("recvmmsg", err)
	}
	for i := range n {
		a := s.in.control[i].info.Addr
		if client := int(a[0])<<24 + int(a[1])<<16 + int(a[2])<<8 + int(a[3]) - lightFirst; client >= 0 {
			f(client, s.in.bufs[i][:s.in.hdrs[i].n])
		}
	}
	return n, nil
}

func (s *lightSocket) close() { _ = unix.Close(s.fd) }
