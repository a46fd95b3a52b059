package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// maxMessage is the longest message of any workload.
const maxMessage = 64 << 10

// gatherBytes is how much a peer with messages of its own gathers of what waits, as streams gather it too.
const gatherBytes = 16 << 10

// appendFrame appends a message behind its length.
func appendFrame(b, msg []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(msg))), msg...)
}

// cutFrame returns the first of framed messages, and the others; false when it isn't whole.
func cutFrame(q []byte) (msg, rest []byte, ok bool) {
	n, k := binary.Uvarint(q)
	if k <= 0 || n > uint64(len(q)-k) {
		return nil, nil, false
	}
	return q[k : k+int(n)], q[k+int(n):], true
}

// gathered is the bytes of the first framed messages: one, or as many as fit into gatherBytes.
func gathered(q []byte) int {
	end := 0
	for _, rest, ok := cutFrame(q); ok; _, rest, ok = cutFrame(rest) {
		if end > 0 && len(q)-len(rest) > gatherBytes {
			break
		}
		end = len(q) - len(rest)
	}
	return end
}

// stream carries messages on a byte stream: each behind its length.
type stream struct {
	rw io.ReadWriteCloser
	mu sync.Mutex
	w  *bufio.Writer
	// together has Flush wait, while messages are handled, until all that was read has been.
	together bool
}

func newStream(rw io.ReadWriteCloser) *stream {
	return &stream{rw: rw, w: bufio.NewWriterSize(rw, gatherBytes)}
}

// newServerStream is a server's.
func newServerStream(rw io.ReadWriteCloser, o Options) *stream {
	s := newStream(rw)
	s.together = o.Batch || o.Together
	return s
}

func (s *stream) Send(msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b [binary.MaxVarintLen64]byte
	if _, err := s.w.Write(b[:binary.PutUvarint(b[:], uint64(len(msg)))]); err != nil {
		return err
	}
	_, err := s.w.Write(msg)
	return err
}

func (s *stream) Flush() error {
	if s.together {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Flush()
}

func (s *stream) Close() error { return s.rw.Close() }

var errTooLong = errors.New("a message is longer than any that is sent")

// read hands messages to h until the stream ends.
func (s *stream) read(h Handler) {
	r := bufio.NewReaderSize(s.rw, 64<<10)
	buf := make([]byte, maxMessage)
	for {
		n, err := binary.ReadUvarint(r)
		if err == nil && n > maxMessage {
			err = errTooLong
		}
		if err == nil {
			_, err = io.ReadFull(r, buf[:n])
		}
		if err != nil {
			_ = s.rw.Close() // whoever ended it
			return
		}
		h(s, buf[:n])
		if s.together && r.Buffered() == 0 && s.flush() != nil {
			return
		}
	}
}

// listener is a server of any kind that is closed by a function.
type listener struct {
	addr  string
	close func() error
}

func (l listener) Addr() string { return l.addr }
func (l listener) Close() error { return l.close() }
