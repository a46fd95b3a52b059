package fleet

import (
	"encoding/binary"
	"errors"
)

// seats is the record of a server's seats: who may add to it must see that it doesn't overflow. Only the server takes away: a placer that no longer wants
// a placement revokes it, because its player may be there already.
//
//	version 2 | flags (1: closed) | capacity | held | number of placements | of each: its number (8 bytes), 2*seats, +1 when it is revoked
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
	id      uint64
	seats   int
	revoked bool // nobody shall come any more
}

// The lowest 8 bits of a placement's number count how often it was renewed: a seat that is renewed is kept for as long as a new one. The others are random.
const renewals = 0xff

// slot is a placement's number without its renewals.
func slot(id uint64) uint64 { return id &^ renewals }

// renewed is the number of a placement after another renewal.
func renewed(id uint64) uint64 { return slot(id) | (id+1)&renewals }

const (
	seatsVersion = 2
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
		v := uint64(p.seats) * 2
		if p.revoked {
			v++
		}
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func parseSeats(b []byte) (s seats, err error) {
	if len(b) < 2 || b[0] != seatsVersion || b[1] > 1 {
		return s, errSeats
	}
	s.closed, b = b[1] == 1, b[2:]
	number := func(most uint64) int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			err = errSeats
			return 0
		}
		b = b[n:]
		return int(v)
	}
	s.capacity, s.held = number(MaxCapacity), number(MaxCapacity)
	n := number(maxPlacements)
	if err != nil {
		return seats{}, errSeats
	}
	for range n {
		if len(b) < 8 {
			return seats{}, errSeats
		}
		p := placement{id: binary.LittleEndian.Uint64(b)}
		b = b[8:]
		v := number(2*MaxCapacity + 1)
		p.seats, p.revoked = v/2, v%2 == 1
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

// has reports whether a placement is there, as often renewed.
func (s *seats) has(id uint64) bool {
	p := s.find(id)
	return p != nil && p.id == id
}

// find returns the placement with a number, renewed or not; nil if there is none, or it is revoked.
func (s *seats) find(id uint64) *placement {
	for i := range s.placements {
		if p := &s.placements[i]; slot(p.id) == slot(id) && !p.revoked {
			return p
		}
	}
	return nil
}
