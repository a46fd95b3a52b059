package tunnel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Tunnel is a bad network for IP packets between two ends.
type Tunnel struct {
	ends  [2]*end
	links [2]*netsim.Link
	epoch time.Time
	mu    sync.Mutex // of the links
	done  chan struct{}
	wg    sync.WaitGroup
}

// end is a namespace: a locked thread in it, and its device.
type end struct {
	file *os.File
	jobs chan func()
}

// New makes the two ends.
func New(set netsim.Settings, seed uint64) (*Tunnel, error) {
	t := &Tunnel{epoch: time.Now(), done: make(chan struct{})}
	for i, addr := range []string{ClientAddr, ServerAddr} {
		l, err := netsim.NewLink(set, seed+uint64(i))
		if err != nil {
			return nil, err
		}
		t.links[i] = l
		if t.ends[i], err = newEnd(addr); err != nil {
			t.Close()
			return nil, fmt.Errorf("a tunnel needs root and /dev/net/tun: %w", err)
		}
	}
	for i := range t.ends {
		t.wg.Go(func() { t.read(i) })
	}
	t.wg.Go(t.carry)
	return t, nil
}

// newEnd makes a namespace on a thread that serves jobs until they end; the thread then dies with
// its goroutine, since it can't go back.
func newEnd(addr string) (*end, error) {
	e := &end{jobs: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := e.enter(addr)
		made <- err
		if err == nil {
			for job := range e.jobs {
				job()
			}
		}
	}()
	return e, <-made
}

// enter makes the namespace and its device, with addr and a route to the other.
func (e *end) enter(addr string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	for _, device := range []string{"all", "default"} { // addresses of IPv6 come a second later, and a browser then drops what it loads
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/disable_ipv6", []byte("1"), 0o644)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	req, err := unix.NewIfreq("tun0")
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	e.file = os.NewFile(uintptr(fd), "tun0")
	return configure(addr)
}

// configure gives tun0 an address in 10.99.0.0/24 and sets it up, and the loopback device.
func configure(addr string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	var ip [4]byte
	if _, err := fmt.Sscanf(addr, "%d.%d.%d.%d", &ip[0], &ip[1], &ip[2], &ip[3]); err != nil {
		return err
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	for _, step := range []struct {
		device  string
		request uint
		set     func(r *unix.Ifreq) error
	}{
		{"tun0", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip[:]) }},
		{"tun0", unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }},
		{"tun0", unix.SIOCSIFFLAGS, up}, {"lo", unix.SIOCSIFFLAGS, up},
	} {
		r, err := unix.NewIfreq(step.device)
		if err == nil {
			err = step.set(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, step.request, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do runs f in the namespace.
func (e *end) do(f func()) {
	done := make(chan struct{})
	e.jobs <- func() { f(); close(done) }
	<-done
}

// read puts the packets of an end on its link. Those of IPv6, which the system sends by itself, don't count.
func (t *Tunnel) read(i int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.ends[i].file.Read(buf)
		if err != nil {
			return
		}
		if n > 0 && buf[0]>>4 == 4 {
			t.mu.Lock()
			t.links[i].Push(time.Since(t.epoch), buf[:n])
			t.mu.Unlock()
		}
	}
}

// carry hands over what is due.
func (t *Tunnel) carry() {
	for {
		select {
		case <-t.done:
			return
		default:
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil) // time.Sleep rounds up to a millisecond
		}
		t.mu.Lock()
		for i, l := range t.links {
			for b, ok := l.Pop(time.Since(t.epoch)); ok; b, ok = l.Pop(time.Since(t.epoch)) {
				_, _ = t.ends[1-i].file.Write(b) // lost, as on a network
			}
		}
		t.mu.Unlock()
	}
}

// Client runs f in the client's namespace: sockets that it opens are there, and so are programs that it starts.
func (t *Tunnel) Client(f func()) { t.ends[0].do(f) }

// Server runs f in the server's namespace.
func (t *Tunnel) Server(f func()) { t.ends[1].do(f) }

// Bytes is what both ends have sent, with IP headers.
func (t *Tunnel) Bytes() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.links[0].Counters.BytesPushed + t.links[1].Counters.BytesPushed
}

// Close ends the network.
func (t *Tunnel) Close() {
	close(t.done)
	for _, e := range t.ends {
		if e != nil && e.file != nil {
			_ = e.file.Close() // ends its reader
			close(e.jobs)
		}
	}
	t.wg.Wait()
}
