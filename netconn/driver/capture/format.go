package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

const magic = "bunchnet capture 1\n"

// event is the kind of a record in the file.
type event byte

const (
	evClock event = 1 + iota
	evRand
	evRead
	evWrite
	evTick
	evCall
	evDone
	evState
	evEnd
)

var eventNames = [...]string{"nothing", "the clock", "random bytes", "a read", "a failed write", "a tick", "a call", "the end of a tick or call", "a state", "the end"}

func (e event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event %d", byte(e))
}

// Bounds of a file's fields.
const (
	maxBytes    = 64 << 10 // a datagram, a call, a read of random bytes, an error's text
	maxAddr     = 64
	maxMessages = 1 << 12 // of a batch
	sendsWhole  = 1 << 13 // added to the batch size of a socket that sends datagrams whole
)

// failure is the kind of a socket's error. A driver tells only these apart, and of a write only whether the socket is closed.
type failure byte

const (
	none failure = iota
	temporary
	deadline
	closed
)

func failureOf(err error) failure {
	switch {
	case err == nil:
		return none
	case errors.Is(err, os.ErrDeadlineExceeded):
		return deadline
	case udp.IsTemporary(err):
		return temporary
	}
	return closed
}

// failureOfWrite is the kind of a write's error: whatever else a system says of one datagram, the driver goes on.
func failureOfWrite(err error) failure {
	switch {
	case err == nil:
		return none
	case errors.Is(err, net.ErrClosed):
		return closed
	}
	return temporary
}

var errTemporary = fmt.Errorf("capture: recorded: %w", syscall.ECONNREFUSED)

func (f failure) err() error {
	switch f {
	case none:
		return nil
	case temporary:
		return errTemporary
	case deadline:
		return os.ErrDeadlineExceeded
	}
	return net.ErrClosed
}

// fnv is FNV-1a of 64 bits, as an io.Writer.
type fnv uint64

const fnvBasis fnv = 0xcbf29ce484222325

func (h *fnv) Write(p []byte) (int, error) {
	v := uint64(*h)
	for _, c := range p {
		v = (v ^ uint64(c)) * 0x100000001b3
	}
	*h = fnv(v)
	return len(p), nil
}

// sent hashes datagrams, with their lengths and addresses.
func (h *fnv) sent(msgs []udp.Message) {
	var b [32]byte
	for i := range msgs {
		a := msgs[i].Addr.Addr().As16()
		copy(b[:], a[:])
		binary.LittleEndian.PutUint16(b[16:], msgs[i].Addr.Port())
		binary.LittleEndian.PutUint64(b[18:], uint64(len(msgs[i].Buf)))
		_, _ = h.Write(b[:])
		_, _ = h.Write([]byte(msgs[i].Addr.Addr().Zone()))
		_, _ = h.Write(msgs[i].Buf)
	}
}

// source reads a file. It keeps the first error; later reads return zero values.
type source struct {
	r   *bufio.Reader
	buf []byte
	err error
}

func (s *source) fail(err error) {
	if s.err == nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		s.err = err
	}
}

func (s *source) byte() byte {
	if s.err != nil {
		return 0
	}
	b, err := s.r.ReadByte()
	if err != nil {
		s.fail(err)
	}
	return b
}

// ReadByte implements io.ByteReader.
func (s *source) ReadByte() (byte, error) {
	b := s.byte()
	return b, s.err
}

func (s *source) uvarint(limit uint64) uint64 {
	v, err := binary.ReadUvarint(s)
	s.overflows(err)
	if s.err == nil && v > limit {
		s.fail(fmt.Errorf("%w: %d where %d is the most", ErrFormat, v, limit))
	}
	if s.err != nil {
		return 0
	}
	return v
}

func (s *source) varint() int64 {
	v, err := binary.ReadVarint(s)
	s.overflows(err)
	if s.err != nil {
		return 0
	}
	return v
}

// overflows takes an error of a number whose bytes could be read: it has more than 64 bits.
func (s *source) overflows(err error) {
	if err != nil {
		s.fail(fmt.Errorf("%w: %w", ErrFormat, err)) // the first error stays
	}
}

func (s *source) uint64() (v uint64) {
	for i := range 8 {
		v |= uint64(s.byte()) << (8 * i)
	}
	return v
}

// bytes returns a slice that is valid until the next call.
func (s *source) bytes(limit int) []byte {
	n := int(s.uvarint(uint64(limit)))
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	p := s.buf[:n]
	if s.err == nil && n > 0 {
		if _, err := io.ReadFull(s.r, p); err != nil {
			s.fail(err)
		}
	}
	if s.err != nil {
		return nil
	}
	return p
}

func (s *source) addr() netip.AddrPort {
	var a netip.AddrPort
	p := s.bytes(maxAddr)
	if s.err == nil {
		if err := a.UnmarshalBinary(p); err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrFormat, err))
		}
	}
	return a
}

// event reads the kind of the next event.
func (s *source) event() event {
	e := event(s.byte())
	if s.err == nil && (e < evClock || e > evEnd) {
		s.fail(fmt.Errorf("%w: no event is %d", ErrFormat, byte(e)))
	}
	return e
}
