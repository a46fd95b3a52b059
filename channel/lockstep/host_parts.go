package lockstep

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// Hash combines the hashes of a state's Parts into one, which replays and events have: the first 8 bytes of their
// SHA-256, so that nobody finds other parts with the same hash. Without Parts it is the one hash given. Error: ErrParts.
func (c *Config) Hash(sums ...uint64) (uint64, error) {
	switch {
	case len(sums) != max(len(c.Parts), 1) || len(sums) > maxParts:
		return 0, ErrParts
	case len(c.Parts) == 0:
		return sums[0], nil
	}
	var buf [8 * maxParts]byte
	b := buf[:0]
	for _, s := range sums {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:]), nil
}

// partReport collects the hashes of the parts of one turn, the last whose difference was told. Peers see that in
// the turn's events and send theirs by themselves.
type partReport struct {
	turn  int64 // -1 for none
	count int
	sums  []uint64 // of player p at p*count
	sent  uint64
	told  uint64   // players
	want  []uint64 // by Host.Judge; empty before
}

func (r *partReport) init(c *Config) {
	r.turn, r.count = -1, len(c.Parts)
	r.sums, r.want = make([]uint64, r.count*c.Players), make([]uint64, 0, r.count)
}

func (r *partReport) begin(turn int64) {
	if r.turn != turn {
		r.turn, r.sent, r.told, r.want = turn, 0, 0, r.want[:0]
	}
}

func (r *partReport) judged(turn int64, sums []uint64) {
	r.begin(turn)
	if r.count > 0 {
		r.want = append(r.want[:0], sums...)
	}
	r.told = 0
}

func (r *partReport) of(player int) []uint64 { return r.sums[player*r.count:][:r.count] }

// takeParts keeps a player's parts of the turn that is being looked into, and says that they have come. They must make up
// the hash that the player gave of the turn.
func (h *Host) takeParts(now time.Duration, player int, r *wire.Reader) error {
	turn := r.Count()
	if len(r.P) != 8*h.parts.count || r.Bad {
		return ErrMalformed
	}
	c := &h.clients[player]
	h.send(now, c, binary.AppendUvarint(h.open(typeParts, player, c.session), uint64(turn)))
	b := h.judge.ballot(turn)
	if turn != h.parts.turn || b == nil || player >= h.cfg.Players || b.sent>>player&1 == 0 || h.parts.count == 0 {
		return nil
	}
	sums := h.parts.of(player)
	for i := range sums {
		sums[i] = r.Uint64()
	}
	if hash, err := h.cfg.Hash(sums...); err == nil && hash == h.judge.row(turn)[player] {
		h.parts.sent |= 1 << player
		h.compareParts()
	}
	return nil
}

// compareParts tells what differs, of those who sent it.
func (h *Host) compareParts() {
	r := &h.parts
	b := h.judge.ballot(r.turn)
	if b == nil || b.state == undecided || r.count == 0 {
		return
	}
	want, right := r.want, uint64(0)
	if len(want) == 0 {
		if right = h.judge.same(b, b.want); b.state == divided {
			if b.sent&b.voters == 0 {
				return
			}
			right = h.judge.same(b, h.judge.row(b.turn)[bits.TrailingZeros64(b.sent&b.voters)])
		}
		if right&r.sent == 0 {
			return // nobody who is right has sent its parts yet
		}
		want = r.of(bits.TrailingZeros64(right & r.sent))
	}
	for m := r.sent &^ r.told &^ right; m != 0; m &= m - 1 {
		p, which := bits.TrailingZeros64(m), uint64(0)
		for i, s := range r.of(p) {
			if s != want[i] {
				which |= 1 << i
			}
		}
		if which != 0 {
			r.told |= 1 << p
			h.push(Event{Kind: Differs, Player: p, Value: r.turn, Who: which})
		}
	}
}
