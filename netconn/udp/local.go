package udp

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"
)

// WithLocal adds a peer in memory to a socket: both sends to own what goes to local, and reads what own sends, whatever address that is
// sent to, as from local; everything else goes through s. It lets the host of a game play over a connection like everybody's, without the
// system in between: both is the socket of the server, own that of the host's client, which dials any address of the server. Name a local that no peer
// of s has, such as 127.0.0.1:1. Datagrams in memory arrive in order; one that finds 1024 unread is lost. Closing both closes s; closing own doesn't.
func WithLocal(s Socket, local netip.AddrPort) (both, own Socket) {
	here, there := pair(s.LocalAddr(), local)
	w := &withLocal{Socket: s, memory: here}
	here.woken, there.any = w.arrived, true
	return w, there
}

// withLocal is a socket with a peer in memory.
type withLocal struct {
	Socket
	memory *memory

	mu       sync.Mutex
	deadline time.Time
	reading  bool // in ReadBatch, where s may have to be woken
	woken    bool // the deadline of s has passed because something came in memory
}

// Counters is those of the socket that has the other peers.
func (w *withLocal) Counters() Counters {
	c, _ := CountersOf(w.Socket)
	return c
}

func (w *withLocal) Close() error { return errors.Join(w.memory.Close(), w.Socket.Close()) }

// TryReadBatch reads what came in memory first: others can't keep it from being read.
func (w *withLocal) TryReadBatch(msgs []Message) (int, error) {
	n, err := w.memory.TryReadBatch(msgs)
	if err != nil || n == len(msgs) {
		return n, err
	}
	more, err := w.Socket.TryReadBatch(msgs[n:])
	return n + more, err
}

// ReadBatch waits for both.
func (w *withLocal) ReadBatch(msgs []Message) (int, error) {
	for {
		w.mu.Lock()
		w.reading = true
		passed := !w.deadline.IsZero() && !time.Now().Before(w.deadline)
		w.mu.Unlock()
		if passed {
			if _, err := w.read(); err != nil {
				return 0, err
			}
			return 0, os.ErrDeadlineExceeded
		}
		n, err := w.memory.TryReadBatch(msgs)
		if n == 0 && err == nil {
			n, err = w.Socket.ReadBatch(msgs)
		}
		again, failed := w.read()
		if n == 0 && again && errors.Is(err, os.ErrDeadlineExceeded) {
			if failed == nil {
				continue
			}
			err = failed
		}
		return n, err
	}
}

// read ends a read, and reports whether it was ended early for what came in memory.
func (w *withLocal) read() (again bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = false
	if !w.woken {
		return false, nil
	}
	w.woken = false
	return true, w.Socket.SetReadDeadline(w.deadline)
}

// SetReadDeadline bounds ReadBatch.
func (w *withLocal) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	if w.woken {
		return nil // read sets it
	}
	return w.Socket.SetReadDeadline(t)
}

// arrived ends a read that waits for the others.
func (w *withLocal) arrived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading && !w.woken {
		w.woken = w.Socket.SetReadDeadline(time.Unix(1, 0)) == nil
	}
}

// WriteBatch sends each to its peer.
func (w *withLocal) WriteBatch(msgs []Message) (int, error) {
	for i := 0; i < len(msgs); {
		if msgs[i].Addr == w.memory.peer.addr {
			if _, err := w.memory.WriteBatch(msgs[i : i+1]); err != nil {
				return i, err
			}
			i++
			continue
		}
		end := i + 1
		for end < len(msgs) && msgs[end].Addr != w.memory.peer.addr {
			end++
		}
		n, err := w.Socket.WriteBatch(msgs[i:end])
		if i += n; i < end {
			return i, err
		}
	}
	return len(msgs), nil
}
