package proxy

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Impaired is a client's socket behind a simulated bad network. It serves one peer, the one that was written to last, since the
// simulated links carry no addresses. What others send is dropped. Use it on one goroutine; only SetReadDeadline may be called on others.
type Impaired struct {
	udp.Socket
	up, down *netsim.Link
	epoch    time.Time
	peer     netip.AddrPort
	in, out  []udp.Message

	mu       sync.Mutex
	deadline time.Time // any goroutine sets it
}

// Impair puts simulated links around a socket: up for what it sends, down for what it receives. The seed
// determines their random decisions. Closing the result sends at once what is still on its way up, so that the peer hears of the end as it would on a
// real network, and closes the socket.
func Impair(s udp.Socket, up, down netsim.Settings, seed uint64) (*Impaired, error) {
	i := &Impaired{Socket: s, epoch: time.Now(), in: room(8), out: make([]udp.Message, 1)}
	var err1, err2 error
	i.up, err1 = netsim.NewLink(up, seed)
	i.down, err2 = netsim.NewLink(down, seed+1)
	return i, errors.Join(err1, err2)
}

// Set changes the links for datagrams from now on. If it returns an error, nothing changes.
func (i *Impaired) Set(up, down netsim.Settings) error {
	if err := validate(&up, &down); err != nil {
		return err
	}
	return errors.Join(i.up.Set(up), i.down.Set(down))
}

// Counters returns the counters of the two links.
func (i *Impaired) Counters() (up, down netsim.Counters) { return i.up.Counters, i.down.Counters }

// WriteBatch puts datagrams on the link to the peer.
func (i *Impaired) WriteBatch(msgs []udp.Message) (int, error) {
	at := time.Since(i.epoch)
	for j := range msgs {
		i.peer = msgs[j].Addr
		i.up.Push(at, msgs[j].Buf)
	}
	return len(msgs), i.carry(at)
}

// Close sends what is still on its way up, and closes the socket.
func (i *Impaired) Close() error {
	return errors.Join(i.send(math.MaxInt64), i.Socket.Close())
}

// send sends what is due on the way up.
func (i *Impaired) send(at time.Duration) error {
	for b, ok := i.up.Pop(at); ok; b, ok = i.up.Pop(at) {
		i.out[0] = udp.Message{Buf: b, Addr: i.peer}
		if _, err := i.Socket.WriteBatch(i.out); err != nil && !udp.IsTemporary(err) {
			return err
		}
	}
	return nil
}

// carry moves what is due, in both directions.
func (i *Impaired) carry(at time.Duration) error {
	if err := i.send(at); err != nil {
		return err
	}
	for range maxBatches {
		n, err := i.Socket.TryReadBatch(i.in)
		for j := range i.in[:n] {
			if sameHost(i.in[j].Addr, i.peer) {
				i.down.Push(at, i.in[j].Data())
			}
		}
		if err != nil && !udp.IsTemporary(err) {
			return err
		}
		if n < len(i.in) {
			break
		}
	}
	return nil
}

// sameHost reports whether two addresses are the same, whatever form they have and whatever the interface of a link-local one is called.
func sameHost(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().Unmap().WithZone("") == b.Addr().Unmap().WithZone("")
}

// TryReadBatch returns the peer's datagrams that are due on the link. It doesn't wait.
func (i *Impaired) TryReadBatch(msgs []udp.Message) (int, error) {
	at := time.Since(i.epoch)
	if err := i.carry(at); err != nil {
		return 0, err
	}
	for j := range msgs {
		b, ok := i.down.Pop(at)
		if !ok {
			return j, nil
		}
		msgs[j].N = copy(msgs[j].Buf, b)
		msgs[j].Addr = i.peer
	}
	return len(msgs), nil
}

// SetReadDeadline sets the deadline of ReadBatch, also of a call that is waiting. Any goroutine may call it.
func (i *Impaired) SetReadDeadline(t time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deadline = t
	return nil
}

func (i *Impaired) readUntil() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.deadline
}

// ReadBatch waits for the first datagram that is due, until the deadline.
func (i *Impaired) ReadBatch(msgs []udp.Message) (int, error) {
	for {
		n, err := i.TryReadBatch(msgs)
		if n > 0 || err != nil {
			return n, err
		}
		if until := i.readUntil(); !until.IsZero() && !time.Now().Before(until) {
			return 0, os.ErrDeadlineExceeded
		}
		time.Sleep(time.Millisecond)
	}
}
