package udp

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Side is a socket whose peers don't come by UDP. [Join] joins it with other sockets.
type Side interface {
	Socket
	// Has reports whether datagrams to an address go by this side: it is that of a present or former peer. Two sides must not have the same
	// address. A side may have, for a while, an address of main's, as when a peer goes on by another way.
	Has(addr netip.AddrPort) bool
	// OnArrival sets a function that the side calls, on any goroutine, after a datagram has arrived that can be read. Join calls
	// OnArrival before the first read.
	OnArrival(f func())
}

// Join makes one socket of several, so that one driver serves them all. A read returns datagrams of any of them. A write goes to the socket that has
// the address; main has all addresses that no side has. Each read begins with a different socket, so that none can keep the others from being read.
// WriteBatch may reorder a batch, but keeps the order of each peer's datagrams. LocalAddr, BatchSize and the counters are main's. Close closes all.
// An error of any of them is an error of the joined socket.
func Join(main Socket, sides ...Side) Socket {
	j := &joined{Socket: main, sides: sides}
	for _, s := range sides {
		s.OnArrival(j.arrived)
	}
	return j
}

// WithLocal adds a peer in memory to a socket, so that the host of a game plays over a connection like everybody else, without the system's network.
// Give both to the server's driver and own to the host's client, which dials any address of the server. What both sends to local arrives at own. What
// own sends, to any address, arrives at both as from local. Everything else goes through s. local must be an address that no peer of s has, such
// as 127.0.0.1:1. Datagrams in memory arrive in order; one that finds 1024 unread is lost. Closing both closes s; closing own doesn't.
func WithLocal(s Socket, local netip.AddrPort) (both, own Socket) {
	here, there := pair(s.LocalAddr(), local)
	there.any = true
	return Join(s, here), there
}

// joined is a socket with sides.
type joined struct {
	Socket // the main one
	sides  []Side
	turn   int       // the side that the next read begins with; len(sides) is the main one
	mixed  []Message // room to put a batch in order

	mu       sync.Mutex
	deadline time.Time
	reading  bool // in ReadBatch, where the main one may have to be woken
	woken    bool // its deadline has passed because something came to a side
}

// SendsWhole is for the function of that name.
func (j *joined) SendsWhole() bool {
	for _, s := range j.sides {
		if !SendsWhole(s) {
			return false
		}
	}
	return SendsWhole(j.Socket)
}

// Counters returns those of the main socket.
func (j *joined) Counters() Counters {
	c, _ := CountersOf(j.Socket)
	return c
}

func (j *joined) Close() error {
	err := j.Socket.Close()
	for _, s := range j.sides {
		err = errors.Join(err, s.Close())
	}
	return err
}

// TryReadBatch reads the sockets in turn until msgs is full.
func (j *joined) TryReadBatch(msgs []Message) (n int, err error) {
	first, all := j.turn, len(j.sides)+1
	j.turn = (first + 1) % all
	for i := range msgs {
		msgs[i].lent = nil // another socket may copy what it has into the same message
	}
	for i := 0; i < all && n < len(msgs) && err == nil; i++ {
		more := 0
		if at := (first + i) % all; at < len(j.sides) {
			more, err = j.sides[at].TryReadBatch(msgs[n:])
		} else {
			more, err = j.Socket.TryReadBatch(msgs[n:])
		}
		n += more
	}
	return n, err
}

// ReadBatch waits for a datagram of any socket.
func (j *joined) ReadBatch(msgs []Message) (int, error) {
	for {
		j.mu.Lock()
		j.reading = true
		passed := !j.deadline.IsZero() && !time.Now().Before(j.deadline)
		j.mu.Unlock()
		if passed {
			if _, err := j.read(); err != nil {
				return 0, err
			}
			return 0, os.ErrDeadlineExceeded
		}
		n, err := j.TryReadBatch(msgs)
		if n == 0 && err == nil {
			n, err = j.Socket.ReadBatch(msgs)
		}
		again, failed := j.read()
		if n == 0 && again && errors.Is(err, os.ErrDeadlineExceeded) {
			if failed == nil {
				continue
			}
			err = failed
		}
		return n, err
	}
}

// read ends a read, and reports whether it was ended early for what came to a side.
func (j *joined) read() (again bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reading = false
	if !j.woken {
		return false, nil
	}
	j.woken = false
	return true, j.Socket.SetReadDeadline(j.deadline)
}

// SetReadDeadline bounds ReadBatch.
func (j *joined) SetReadDeadline(t time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.deadline = t
	if j.woken {
		return nil // read sets it
	}
	return j.Socket.SetReadDeadline(t)
}

// arrived ends a read that waits for the main socket.
func (j *joined) arrived() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.reading && !j.woken {
		j.woken = j.Socket.SetReadDeadline(time.Unix(1, 0)) == nil
	}
}

// WriteBatch sends each datagram by the socket that has its address.
func (j *joined) WriteBatch(msgs []Message) (sent int, err error) {
	j.sort(msgs)
	for sent < len(msgs) {
		to := j.of(msgs[sent].Addr)
		end := sent + 1
		for end < len(msgs) && j.of(msgs[end].Addr) == to {
			end++
		}
		n := 0
		if to < len(j.sides) {
			n, err = j.sides[to].WriteBatch(msgs[sent:end])
		} else {
			n, err = j.Socket.WriteBatch(msgs[sent:end])
		}
		if sent += n; sent < end {
			return sent, err
		}
	}
	return sent, nil
}

// of is the number of the side that has an address; len(sides) is the main socket.
func (j *joined) of(addr netip.AddrPort) int {
	for i, s := range j.sides {
		if s.Has(addr) {
			return i
		}
	}
	return len(j.sides)
}

// sort brings together what goes to the main socket, behind what goes to sides, so that it is one batch to the system.
func (j *joined) sort(msgs []Message) {
	n := 0 // to sides
	for i := range msgs {
		if j.of(msgs[i].Addr) < len(j.sides) {
			n++
		}
	}
	if n == 0 || n == len(msgs) {
		return
	}
	n = 0
	for i := range msgs {
		if j.of(msgs[i].Addr) == len(j.sides) {
			j.mixed = append(j.mixed, msgs[i])
			continue
		}
		msgs[n] = msgs[i]
		n++
	}
	copy(msgs[n:], j.mixed)
	clear(j.mixed)
	j.mixed = j.mixed[:0]
}
