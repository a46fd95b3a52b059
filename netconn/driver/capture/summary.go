package capture

import (
	"errors"
	"io"
	"math"
	"time"
)

// Summary says what a capture holds.
type Summary struct {
	Ticks, Calls     int
	Datagrams, Bytes int // received
	Took             time.Duration
	// Complete is whether the recorder was closed.
	Complete bool
	// Err is the last error that the program's Tick or Call returned.
	Err string
}

// Summarize reads a capture. It doesn't run the program.
func Summarize(file io.Reader) (Summary, error) {
	var s Summary
	r, err := open(file)
	if err != nil {
		return s, err
	}
	began := r.last
	for r.src.err == nil && !s.Complete {
		e := r.src.event()
		if r.src.err == nil {
			s.count(r, e)
		}
		s.Took = time.Duration(r.last - began)
	}
	if errors.Is(r.src.err, io.ErrUnexpectedEOF) {
		return s, nil
	}
	return s, r.src.err
}

func (s *Summary) count(r *replayer, e event) {
	switch e {
	case evClock:
		r.time()
	case evTick:
		s.Ticks++
		r.time()
	case evRand:
		r.src.bytes(maxBytes)
	case evCall:
		s.Calls++
		r.src.bytes(maxBytes)
	case evRead:
		for range r.src.uvarint(maxMessages) {
			r.src.addr()
			n := len(r.src.bytes(maxBytes))
			if r.src.err != nil {
				return
			}
			s.Datagrams++
			s.Bytes += n
		}
		r.src.byte()
	case evWrite:
		r.src.uvarint(math.MaxUint64)
		r.src.uvarint(maxMessages)
		r.src.byte()
	case evDone:
		r.src.uint64()
		if text := r.src.bytes(maxBytes); len(text) > 0 {
			s.Err = string(text)
		}
	case evState:
		r.src.uint64()
	case evEnd:
		s.Complete = true
	}
}
