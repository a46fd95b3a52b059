package lockstep

import (
	"encoding/binary"
	"errors"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// Setup is what a game begins with, in a form that suits many. A game may use its own: Host.SetSetup takes any bytes.
type Setup struct {
	Seed     uint64 // of the game's random numbers
	Map      string // up to 255 bytes
	MapHash  uint64 // of the map's content, to check that all have the same map
	Settings []byte // in the game's own form, up to 32 KiB
	Seats    []Seat // up to 255
}

// Seat is a place in the game: a player's, a computer's, or empty.
type Seat struct {
	Player int    // its number, 0 to 254; -1: no player's
	Name   string // up to 255 bytes
	Team   uint8
	Place  uint8 // start position on the map
	Kind   uint8 // the game's own: race, colour, strength of the computer
}

const maxSettings = 32 << 10

// ErrSetupForm is Append's error for a Setup over its limits, and ParseSetup's for bytes that aren't a Setup.
var ErrSetupForm = errors.New("lockstep: not a Setup, or over its limits")

// Append appends the Setup's bytes for Host.SetSetup: version 8 | seed 64 | map hash 64 | map | settings, each a size v
// and bytes | seats 8, each: player 8 | team 8 | place 8 | kind 8 | name. Player 255 is nobody.
func (s *Setup) Append(dst []byte) ([]byte, error) {
	if len(s.Map) > 255 || len(s.Settings) > maxSettings || len(s.Seats) > 255 {
		return dst, ErrSetupForm
	}
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(append(dst, 1), s.Seed)
	dst = binary.LittleEndian.AppendUint64(dst, s.MapHash)
	dst = append(binary.AppendUvarint(dst, uint64(len(s.Map))), s.Map...)
	dst = append(binary.AppendUvarint(dst, uint64(len(s.Settings))), s.Settings...)
	dst = append(dst, byte(len(s.Seats)))
	for _, seat := range s.Seats {
		if seat.Player < -1 || seat.Player > 254 || len(seat.Name) > 255 {
			return dst[:from], ErrSetupForm
		}
		dst = append(dst, byte(seat.Player), seat.Team, seat.Place, seat.Kind)
		dst = append(binary.AppendUvarint(dst, uint64(len(seat.Name))), seat.Name...)
	}
	if len(dst)-from > MaxSetup {
		return dst[:from], ErrSetupForm
	}
	return dst, nil
}

// ParseSetup reads what Append wrote. It copies what it needs of p.
func ParseSetup(p []byte) (s Setup, err error) {
	r := wire.Reader{P: p}
	if r.Uint8() != 1 {
		return s, ErrSetupForm
	}
	s.Seed, s.MapHash = r.Uint64(), r.Uint64()
	s.Map = string(r.Bytes(255))
	s.Settings = append([]byte(nil), r.Bytes(maxSettings)...)
	for n := r.Uint8(); n > 0 && !r.Bad; n-- {
		seat := Seat{Player: int(r.Uint8()), Team: r.Uint8(), Place: r.Uint8(), Kind: r.Uint8()}
		if seat.Player == 255 {
			seat.Player = -1
		}
		seat.Name = string(r.Bytes(255))
		s.Seats = append(s.Seats, seat)
	}
	if !r.Done() {
		return Setup{}, ErrSetupForm
	}
	return s, nil
}
