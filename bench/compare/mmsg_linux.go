package main

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// kernelWays is the system calls alone, on headers that were made once: the floor of netconn/udp.
var kernelWays = []rawWay{
	{"sendmmsg, recvmmsg alone", bareCalls},
	{"the same with GSO, GRO", bareOffload},
}

func bareCalls(size int) (func() error, func(), error) {
	out, in, to, stop, err := twoNumbers()
	if err != nil {
		return nil, nil, err
	}
	var sent, got [w4Batch]mmsghdr
	var from [w4Batch]unix.RawSockaddrInet4
	for i := range sent {
		sent[i].hdr = header(make([]byte, size), to)
		got[i].hdr = header(make([]byte, 2048), &from[i])
	}
	return func() error {
		if err := transfer(unix.SYS_SENDMMSG, out, sent[:]); err != nil {
			return err
		}
		return transfer(unix.SYS_RECVMMSG, in, got[:])
	}, stop, nil
}

// transfer makes one call after another until all headers are done.
func transfer(call uintptr, fd int, all []mmsghdr) error {
	for len(all) > 0 {
		n, err := batchCall(call, fd, all)
		if err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// batchCall is one call for up to all headers.
func batchCall(call uintptr, fd int, all []mmsghdr) (n int, err error) {
	r, _, errno := unix.Syscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&all[0])), uintptr(len(all)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// bareBuffers is how many runs a read has room for, as netconn/udp's: who doesn't know what comes has to ask for more than one.
const bareBuffers = 16

// bareOffload sends the batch as one, and receives whatever came as one.
func bareOffload(size int) (func() error, func(), error) {
	out, in, to, stop, err := twoNumbers()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetsockoptInt(in, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
		stop()
		return nil, nil, err
	}
	control := &struct {
		hdr  unix.Cmsghdr
		size uint16
		_    [unsafe.Sizeof(uintptr(0)) - 2]byte
	}{size: uint16(size)}
	control.hdr.Level, control.hdr.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	control.hdr.SetLen(unix.SizeofCmsghdr + 2)
	sent, got := make([]mmsghdr, 1), make([]mmsghdr, bareBuffers)
	var from [bareBuffers]unix.RawSockaddrInet4
	sent[0].hdr = header(make([]byte, size), to)
	iovs := make([]unix.Iovec, w4Batch) // datagrams of their own places, as a game's are
	for i := range iovs {
		iovs[i].Base = &make([]byte, size)[0]
		iovs[i].SetLen(size)
	}
	sent[0].hdr.Iov = &iovs[0]
	sent[0].hdr.SetIovlen(w4Batch)
	sent[0].hdr.Control = (*byte)(unsafe.Pointer(control))
	sent[0].hdr.SetControllen(int(unsafe.Sizeof(*control)))
	for i := range got {
		got[i].hdr = header(make([]byte, 1<<16), &from[i])
	}
	return func() error {
		if err := transfer(unix.SYS_SENDMMSG, out, sent); err != nil {
			return err
		}
		for bytes := 0; bytes < size*w4Batch; {
			n, err := batchCall(unix.SYS_RECVMMSG, in, got)
			if err != nil {
				return err
			}
			for _, h := range got[:n] {
				bytes += int(h.n)
			}
		}
		return nil
	}, stop, nil
}

func header(p []byte, addr *unix.RawSockaddrInet4) (h unix.Msghdr) {
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(addr)), uint32(unsafe.Sizeof(*addr))
	iov := &unix.Iovec{Base: &p[0]}
	iov.SetLen(len(p))
	h.Iov = iov
	h.SetIovlen(1)
	return h
}

// twoNumbers is two sockets by their numbers, out of the runtime's poller, and the address of the one to receive.
func twoNumbers() (out, in int, to *unix.RawSockaddrInet4, stop func(), err error) {
	a, b, addr, closeBoth, err := twoConns()
	if err != nil {
		return 0, 0, nil, nil, err
	}
	defer closeBoth()
	out, err1 := number(a)
	in, err2 := number(b)
	return out, in, sockaddr(addr), func() { _, _ = unix.Close(out), unix.Close(in) }, errors.Join(err1, err2)
}

func number(c *net.UDPConn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(old uintptr) { fd, err = syscall.Dup(int(old)) })
	return fd, errors.Join(err, cerr)
}

func sockaddr(a netip.AddrPort) *unix.RawSockaddrInet4 {
	port := a.Port()<<8 | a.Port()>>8
	return &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.Addr().Unmap().As4()}
}
