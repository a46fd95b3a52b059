package rollback

import (
	"encoding/binary"
	"math/rand/v2"
)

// Lie is a packet of a player's that is parsed, and may say anything.
func Lie(s *Session, from int, rng *rand.Rand) []byte {
	near := func() int64 { return max(0, s.frame+rng.Int64N(2*farthest)-farthest) }
	number := func() int64 {
		switch rng.IntN(6) {
		case 0:
			return rng.Int64N(maxFrame)
		case 1:
			return 0
		}
		return near()
	}
	b := binary.LittleEndian.AppendUint32([]byte{typePlay, byte(from)}, s.agreement)
	frame := near()
	b = binary.AppendUvarint(b, uint64(frame))
	lead := number()
	b = binary.AppendVarint(b, lead-number())
	dropping := byte(0)
	if rng.IntN(20) == 0 {
		dropping = byte(rng.UintN(1<<s.cfg.Players)) &^ (1 << s.cfg.Local)
	}
	b = append(b, dropping)
	for p := range s.cfg.Players {
		next := near()
		if p == s.cfg.Local {
			next = min(next, s.players[p].inputs.next)
		}
		b = binary.AppendVarint(b, next-frame)
	}
	check := number() / CheckEvery
	if b = binary.AppendUvarint(b, uint64(check)); check > 0 {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	for range rng.IntN(4) {
		of := from
		if dropping != 0 && rng.IntN(2) == 0 {
			of = rng.IntN(s.cfg.Players)
		}
		first := near()
		if rng.IntN(2) == 0 {
			first = s.players[of].inputs.next
		}
		n := 1 + rng.IntN(40)
		b = binary.AppendUvarint(append(b, byte(of)), uint64(first))
		b = append(b, byte(n))
		b = append(b, make([]byte, (n+7)/8)...)
		for range n * s.cfg.InputSize {
			b = append(b, byte(rng.Uint32()))
		}
	}
	return b
}
