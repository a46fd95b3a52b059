// Package udp reads and writes datagrams in batches. It holds the code that differs
// between operating systems; the rest of the module sees a [Socket].
//
// On Linux a batch is one call of recvmmsg or sendmmsg, and the kernel handles a run of
// datagrams of one size to one peer as one (see [Config].NoOffload). Elsewhere each datagram
// is a call. On js and wasip1 there are no UDP sockets: Listen returns ErrUnsupported. A
// [Pair] in memory works everywhere.
//
// The caller owns the buffers. What was read may be in memory of the Socket instead; see
// [Message.Data]. A Socket allocates nothing once it runs. One goroutine may read while another
// writes.
package udp

import (
	"errors"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// Message is a datagram with its peer's address.
type Message struct {
	// Buf is what a write sends: all len(Buf) bytes. For a read it is room for a datagram; Data returns what was read.
	Buf []byte
	// N is the number of bytes read. A datagram longer than Buf is cut.
	N    int
	Addr netip.AddrPort

	lent []byte // the datagram in the socket's own memory; nil: it is in Buf
}

// Data returns the datagram that was read. It is valid until the next read. It lies in Buf or, to save a copy, in the
// Socket's own memory.
func (m *Message) Data() []byte {
	if m.lent != nil {
		return m.lent
	}
	return m.Buf[:m.N]
}

// Lend makes Data return p and sets N to its length. It is for Sockets of other packages that read into memory of their own. The
// Socket must not change p until the next read.
func (m *Message) Lend(p []byte) { m.N, m.lent = len(p), p }

// Socket is a datagram socket.
type Socket interface {
	// ReadBatch reads datagrams into msgs and returns how many. It waits for the first until
	// the read deadline, then returns os.ErrDeadlineExceeded.
	ReadBatch(msgs []Message) (int, error)
	// TryReadBatch is ReadBatch without waiting. It returns 0 when there is nothing to read.
	TryReadBatch(msgs []Message) (int, error)
	// WriteBatch sends messages and returns how many went out. It stops at the first one that
	// the system refuses and returns its error; see IsTemporary. When the system's buffer is
	// full, the call returns such an error on Linux, and waits elsewhere.
	WriteBatch(msgs []Message) (int, error)
	// BatchSize returns how many messages a call handles at most.
	BatchSize() int
	LocalAddr() netip.AddrPort
	// SetReadDeadline sets the deadline of ReadBatch, also of a call that is waiting. Any goroutine may call it.
	SetReadDeadline(t time.Time) error
	Close() error
}

// Config has the settings of Listen. The zero value is useful.
type Config struct {
	// ReadBuffer and WriteBuffer are the socket's buffers in bytes, 2048 to 1 GiB. Default 4 MiB; the
	// system may grant less.
	ReadBuffer, WriteBuffer int
	// ReusePort lets several sockets share the port. The system deals out peers among them by the addresses of
	// both ends, so a peer stays with one socket as long as their number doesn't change. Linux only; elsewhere
	// Listen returns ErrReusePort.
	ReusePort bool
	// NoPoller keeps the socket out of Go's poller, which wakes a thread for every datagram. It is for programs
	// that read now and then by TryReadBatch. A ReadBatch that waits then occupies a thread. Linux only; ignored
	// elsewhere.
	NoPoller bool
	// NoOffload makes the system handle every datagram by itself. By default, on Linux, several
	// datagrams of one size go to a peer as one (GSO) and come in as one (GRO), which takes
	// a third to a quarter of the CPU. When a device or a path refuses that, datagrams to this
	// peer go one by one, and it is tried again later.
	NoOffload bool
	// Whole has the system send datagrams whole or not at all, whatever it knows of the path, instead of in fragments: for senders that find
	// out how large datagrams may be. Linux only; ignored elsewhere. See SendsWhole.
	Whole bool
}

// SendsWhole reports whether a socket never sends a datagram in fragments, nor lets the network do that. It is false where that isn't known.
func SendsWhole(s Socket) bool {
	w, ok := s.(interface{ SendsWhole() bool })
	return ok && w.SendsWhole()
}

// Counters counts what a socket did; see CountersOf.
type Counters struct {
	Sent, Received         uint64 // datagrams
	Writes, Reads          uint64 // system calls that sent, or received, at least one datagram
	GSOWrites, GSOSegments uint64 // groups of datagrams sent as one, and the datagrams in them
	GROReads, GROSegments  uint64 // the same, received
	GSORefused             uint64 // groups, each to one peer, that the system refused
}

// CountersOf returns a socket's counters. ok is false for kinds of sockets that don't count. Call it on the
// goroutine that reads and writes.
func CountersOf(s Socket) (c Counters, ok bool) {
	if j, is := s.(*joined); is {
		return CountersOf(j.Socket)
	}
	counter, ok := s.(interface{ Counters() Counters })
	if ok {
		c = counter.Counters()
	}
	return c, ok
}

const (
	defaultBuffer = 4 << 20
	minBuffer     = 2048
	maxBuffer     = 1 << 30
)

func (c Config) filled() (Config, error) {
	if c.ReadBuffer == 0 {
		c.ReadBuffer = defaultBuffer
	}
	if c.WriteBuffer == 0 {
		c.WriteBuffer = defaultBuffer
	}
	return c, setting.First(
		setting.Within(ErrConfig, "ReadBuffer", c.ReadBuffer, minBuffer, maxBuffer),
		setting.Within(ErrConfig, "WriteBuffer", c.WriteBuffer, minBuffer, maxBuffer))
}

// ErrConfig is wrapped by the errors of Listen for settings that can't work.
var ErrConfig = errors.New("udp: config")

// ErrUnsupported is returned by Listen on systems without UDP sockets: js and wasip1.
var ErrUnsupported = errors.New("udp: no sockets on this system")

// ErrReusePort is returned by Listen for Config.ReusePort on any system but Linux.
var ErrReusePort = errors.New("udp: several sockets can share a port on Linux only; open one without ReusePort")

// batchSize is how many datagrams a system call handles at most.
const batchSize = 64

// unmap gives IPv4 addresses one form, whatever socket they came by.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
