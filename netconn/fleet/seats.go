package fleet

import (
	"encoding/binary"
	"errors"
)

// seats is the record of a server's seats: who may add to it must see that it doesn't overflow. Only the server takes away.
//
//	version 1 | flags (1: closed) | capacity | held | number of placements | of each: its number (8 bytes), seats
//
// All but version, flags and the placements' numbers are uvarints.
type seats struct {
	closed     bool // nobody may be added
	capacity   int
	held       int // seats of players who are there, or are let in as they come
	placements []placement
}

// placement is seats that are kept for players who are on their way.
type placement struct {
	id    uint64
	seats int
}

const (
	seatsVersion = 1
	// maxPlacements bounds the placements of a record, so its bytes: 4096 * (8 + 3) + 12 = 45 KiB.
	maxPlacements = 4096
)

var errSeats = errors.New("fleet: not a record of seats")

func (s *seats) encode() []byte {
	b := make([]byte, 0, 16+10*len(s.placements))
	b = append(b, seatsVersion, 0)
	if s.closed {
		b[1] = 1
	}
	for _, n := range []int{s.capacity, s.held, len(s.placements)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, p := range s.placements {
		b = binary.LittleEndian.AppendUint64(b, p.id)
		b = binary.AppendUvarint(b, uint64(p.seats))
	}
	return b
}

func parseSeats(b []byte) (s seats, err error) {
	if len(b) < 2 || b[0] != seatsVersion || b[1] > 1 {
		return s, errSeats
	}
	s.closed, b = b[1] == 1, b[2:]
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > MaxCapacity {
			err = errSeats
			return 0
		}
		b = b[n:]
		return int(v)
	}
	s.capacity, s.held = number(), number()
	n := number()
	if err != nil || n > maxPlacements {
		return seats{}, errSeats
	}
	for range n {
		if len(b) < 8 {
			return seats{}, errSeats
		}
		p := placement{id: binary.LittleEndian.Uint64(b)}
		b = b[8:]
		p.seats = number()
		s.placements = append(s.placements, p)
	}
	if err != nil || len(b) > 0 {
		return seats{}, errSeats
	}
	return s, nil
}

// taken is the seats that nobody else may have.
func (s *seats) taken() int {
	n := s.held
	for _, p := range s.placements {
		n += p.seats
	}
	return n
}

// free is the seats that a placement may have.
func (s *seats) free() int {
	if s.closed || len(s.placements) >= maxPlacements {
		return 0
	}
	return max(0, s.capacity-s.taken())
}

func (s *seats) has(id uint64) bool {
	for _, p := range s.placements {
		if p.id == id {
			return true
		}
	}
	return false
}
