package mesh

import "encoding/binary"

// limits bound a stream: the bytes of a message, and the messages and bytes that wait.
type limits struct{ message, count, bytes int }

var (
	ofPlayer  = limits{MaxMessage, MaxWaiting, MaxWaitingBytes}
	ofServers = limits{maxZoneMessage, maxZoneWaiting, maxZoneWaitingBytes}
)

// stream is what is sent in one direction: messages that wait for their acknowledgement.
type stream struct {
	servers bool // between two servers, not with a player

	first   uint64 // number of waiting[0]
	waiting [][]byte
	bytes   int
	free    [][]byte // memory of messages that were acknowledged
}

func (s *stream) limits() limits {
	if s.servers {
		return ofServers
	}
	return ofPlayer
}

// push adds a copy of a message.
func (s *stream) push(m []byte) error {
	l := s.limits()
	if len(m) > l.message {
		return ErrTooLong
	}
	if len(s.waiting) >= l.count || s.bytes+len(m) > l.bytes {
		return ErrFull
	}
	var b []byte
	if n := len(s.free); n > 0 {
		b, s.free = s.free[n-1][:0], s.free[:n-1]
	}
	s.waiting = append(s.waiting, append(b, m...))
	s.bytes += len(m)
	return nil
}

// ack takes the number that the other end expects next. It reports whether that can be.
func (s *stream) ack(next uint64) bool {
	if next > s.first+uint64(len(s.waiting)) {
		return false
	}
	if next <= s.first {
		return true
	}
	n := int(next - s.first)
	for _, m := range s.waiting[:n] {
		s.bytes -= len(m)
		if len(s.free) < maxFree {
			s.free = append(s.free, m)
		}
	}
	left := copy(s.waiting, s.waiting[n:])
	clear(s.waiting[left:])
	s.waiting, s.first = s.waiting[:left], next
	return true
}

// append writes the first messages, most bytes of them and one at least.
func (s *stream) append(b []byte, most int) []byte {
	b = binary.AppendUvarint(b, s.first)
	n := 0
	for _, m := range s.waiting {
		if n += len(m) + 2; n > most && n > len(m)+2 {
			break
		}
		b = append(binary.AppendUvarint(b, uint64(len(m))+1), m...)
	}
	return append(b, 0)
}
