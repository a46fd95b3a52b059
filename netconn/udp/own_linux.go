package udp

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handle is how a socket's system calls reach it, and wait. A call says whether it is done, or is to be made again when
// there is something to read.
type handle interface {
	Read(call func(fd uintptr) bool) error
	Write(call func(fd uintptr) bool) error
	Control(call func(fd uintptr)) error
	SetReadDeadline(t time.Time) error
	Close() error
}

// shared is a handle in the runtime's poller.
type shared struct {
	syscall.RawConn
	conn *net.UDPConn
}

func (s shared) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }
func (s shared) Close() error                      { return s.conn.Close() }

// own is a handle that the runtime's poller doesn't know, so that datagrams wake nobody but who reads; a read that
// waits has a thread wait. wake ends it.
type own struct {
	mu       sync.Mutex
	fd       int
	wake     int // eventfd
	users    int
	closed   bool
	waiting  bool
	deadline time.Time

	fds     [2]unix.PollFd // these two are the one reader's
	timeout unix.Timespec
}

// newOwn takes a socket over from the runtime.
func newOwn(conn *net.UDPConn, raw syscall.RawConn) (*own, error) {
	o := &own{}
	var err error
	if cerr := raw.Control(func(fd uintptr) { o.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if o.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(o.fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	return o, conn.Close() // its number, not the socket
}

// enter keeps the socket open until leave.
func (o *own) enter() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return net.ErrClosed
	}
	o.users++
	return nil
}

func (o *own) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users--
	o.release()
}

// release gives the numbers back once nobody uses them.
func (o *own) release() {
	if o.closed && o.users == 0 {
		_ = unix.Close(o.fd) // there is nobody to tell
		_ = unix.Close(o.wake)
	}
}

func (o *own) Control(call func(fd uintptr)) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	call(uintptr(o.fd))
	return nil
}

// Write makes a call that doesn't wait.
func (o *own) Write(call func(fd uintptr) bool) error {
	return o.Control(func(fd uintptr) { call(fd) })
}

func (o *own) Read(call func(fd uintptr) bool) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	for {
		left, err := o.begin()
		if err != nil {
			return err
		}
		done := call(uintptr(o.fd))
		if !done {
			err = o.poll(left)
		}
		o.end()
		if done || err != nil {
			return err
		}
	}
}

// begin notes that a read is under way and says how long it may wait; negative is for ever.
func (o *own) begin() (left time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, net.ErrClosed
	}
	if left = -1; !o.deadline.IsZero() {
		if left = time.Until(o.deadline); left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
	}
	o.waiting = true
	return left, nil
}

// end takes back what wake was told meanwhile.
func (o *own) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.waiting {
		var b [8]byte
		_, _ = unix.Read(o.wake, b[:])
	}
	o.waiting = false
}

// poll waits until there is something to read, or to wake for.
func (o *own) poll(left time.Duration) error {
	o.fds = [2]unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}, {Fd: int32(o.wake), Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if left >= 0 {
		o.timeout = unix.NsecToTimespec(int64(left))
		timeout = &o.timeout
	}
	_, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&o.fds[0])), uintptr(len(o.fds)), uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return os.NewSyscallError("ppoll", errno)
	}
	return nil
}

// interrupt has a read that waits look at what has changed.
func (o *own) interrupt() {
	if o.waiting {
		o.waiting = false
		one := [8]byte{1, 0, 0, 0, 0, 0, 0, 1} // not zero in either order of bytes
		_, _ = unix.Write(o.wake, one[:])
	}
}

func (o *own) SetReadDeadline(t time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return net.ErrClosed
	}
	o.deadline = t
	o.interrupt()
	return nil
}

func (o *own) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return net.ErrClosed
	}
	o.closed = true
	o.interrupt()
	o.release()
	return nil
}
