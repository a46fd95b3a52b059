package mailbox

import "sync"

// Outbox is datagrams to one peer that wait to be sent: a bounded queue, in which the newest take the place of the oldest. State that is old is
// of no use; what is reliable the connection sends again.
type Outbox struct {
	Ready chan struct{} // there may be something to send

	mu       sync.Mutex
	ring     [][]byte // buffers are used again
	first, n int
	bytes    int
	maxBytes int
}

const (
	firstOut = 8   // datagrams that a queue has room for at first
	maxOut   = 512 // and at most
)

// NewOutbox returns an empty one with room for so many bytes.
func NewOutbox(maxBytes int) Outbox { return Outbox{Ready: make(chan struct{}, 1), maxBytes: maxBytes} }

// Push copies a datagram to the end of the queue, and returns how many had to go.
func (o *Outbox) Push(p []byte) (dropped int) {
	o.mu.Lock()
	for o.n > 0 && (o.n == maxOut || o.bytes+len(p) > o.maxBytes) {
		o.bytes -= len(o.ring[o.first])
		o.first = (o.first + 1) % len(o.ring)
		o.n--
		dropped++
	}
	if o.n == len(o.ring) {
		grown := make([][]byte, max(firstOut, 2*len(o.ring)))
		k := copy(grown, o.ring[o.first:])
		copy(grown[k:], o.ring[:o.first])
		o.ring, o.first = grown, 0
	}
	at := &o.ring[(o.first+o.n)%len(o.ring)]
	*at = append((*at)[:0], p...)
	o.n++
	o.bytes += len(p)
	o.mu.Unlock()
	o.Signal()
	return dropped
}

// Pop returns the oldest, nil if there is none, and takes room for another in its place.
func (o *Outbox) Pop(room []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == 0 {
		return nil
	}
	p := o.ring[o.first]
	o.ring[o.first] = room
	o.first = (o.first + 1) % len(o.ring)
	o.n--
	o.bytes -= len(p)
	return p
}

// Size returns the bytes that wait, and those of the buffers.
func (o *Outbox) Size() (waiting, held int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.ring {
		held += cap(b)
	}
	return o.bytes, held
}

// Signal wakes who waits for Ready.
func (o *Outbox) Signal() {
	select {
	case o.Ready <- struct{}{}:
	default:
	}
}
