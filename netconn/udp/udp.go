// Package udp reads and writes datagrams in batches. It is the only package with
// code for one operating system; the rest of the module sees a [Socket].
//
// On Linux a batch is one recvmmsg or sendmmsg, and runs of equal datagrams to one peer are one
// to the kernel (see [Config].NoOffload); elsewhere one datagram a call. On js and wasip1
// there are no sockets: Listen returns ErrUnsupported, but a [Pair] in memory works
// everywhere.
//
// Buffers belong to the caller, but what was read may be lent; see [Message.Data]. A Socket allocates nothing once it runs. One
// goroutine may read while another writes.
package udp

import (
	"errors"
	"net/netip"
	"time"
)

// Message is a datagram with its peer's address.
type Message struct {
	// Buf is room for a datagram to be read, all of its length, or what a write sends. What was read is Data.
	Buf []byte
	// N is the bytes read. A datagram longer than Buf is cut.
	N    int
	Addr netip.AddrPort

	lent []byte // the datagram in the socket's own memory; nil: it is in Buf
}

// Data is the datagram that was read, until the next read: in Buf, or where the system put it together with others, which
// saves a copy.
func (m *Message) Data() []byte {
	if m.lent != nil {
		return m.lent
	}
	return m.Buf[:m.N]
}

// Lend has Data return p, the memory of a Socket of another package, which keeps it as it is until the next read; N is its length.
func (m *Message) Lend(p []byte) { m.N, m.lent = len(p), p }

// Socket is a datagram socket.
type Socket interface {
	// ReadBatch fills messages and returns how many. It waits for the first until the read
	// deadline, then returns os.ErrDeadlineExceeded.
	ReadBatch(msgs []Message) (int, error)
	// TryReadBatch is ReadBatch that doesn't wait; 0 when there is nothing.
	TryReadBatch(msgs []Message) (int, error)
	// WriteBatch sends messages and returns how many went out. One that the system
	// refuses ends the batch with its error; see IsTemporary. A full buffer is such a refusal on Linux, where
	// nothing waits for room; elsewhere the call waits.
	WriteBatch(msgs []Message) (int, error)
	// BatchSize is how many messages a call handles at most.
	BatchSize() int
	LocalAddr() netip.AddrPort
	// SetReadDeadline bounds ReadBatch, one that is under way too. Any goroutine may call it.
	SetReadDeadline(t time.Time) error
	Close() error
}

// Config is the settings of Listen; the zero value is useful.
type Config struct {
	// ReadBuffer and WriteBuffer are the socket's buffers in bytes. Default 4 MiB; the
	// system may grant less.
	ReadBuffer, WriteBuffer int
	// ReusePort lets several sockets share the port, each with part of the peers: by the addresses of both ends,
	// so a peer stays with one as long as their number doesn't change. Linux only; elsewhere Listen
	// returns ErrReusePort.
	ReusePort bool
	// NoPoller keeps the socket out of Go's poller, which wakes a thread for every datagram though nobody reads
	// yet: for who reads now and then by TryReadBatch. A ReadBatch that waits then has a thread to itself.
	// Linux only; ignored elsewhere.
	NoPoller bool
	// NoOffload has the system handle every datagram by itself. By default, on Linux, several
	// of the same size to one peer go out as one (GSO), and come in as one (GRO), which costs
	// a third to a quarter; to peers where a device or a path refuses it, datagrams go one by one, and it is tried again later.
	NoOffload bool
}

// Counters is what a socket did; see CountersOf.
type Counters struct {
	Sent, Received         uint64 // datagrams
	Writes, Reads          uint64 // system calls with at least one of them
	GSOWrites, GSOSegments uint64 // several sent as one, and how many they were
	GROReads, GROSegments  uint64 // the same received
	GSORefused             uint64 // times that the system refused several as one, each to one peer
}

// CountersOf is a socket's counters; ok is false for kinds that don't count. It belongs to the goroutine
// that reads and writes.
func CountersOf(s Socket) (c Counters, ok bool) {
	counter, ok := s.(interface{ Counters() Counters })
	if ok {
		c = counter.Counters()
	}
	return c, ok
}

const defaultBuffer = 4 << 20

func (c Config) filled() Config {
	if c.ReadBuffer == 0 {
		c.ReadBuffer = defaultBuffer
	}
	if c.WriteBuffer == 0 {
		c.WriteBuffer = defaultBuffer
	}
	return c
}

// ErrUnsupported is Listen's on systems without UDP.
var ErrUnsupported = errors.New("udp: no sockets on this system")

// ErrReusePort is Listen's on systems that don't deal out datagrams among the sockets of a port.
var ErrReusePort = errors.New("udp: only Linux has several sockets share a port; open one without ReusePort")

// batchSize is how many datagrams a system call handles at most.
const batchSize = 64

// unmap gives IPv4 addresses one form, whatever socket they came by.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
