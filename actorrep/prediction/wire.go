package prediction

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	maxMessageMoves = 16
	maxAhead        = 4 * time.Second // of a reply's timestamp before the client's clock
	stampBits       = 52              // of a whole timestamp, µs: 142 years
	shortBits       = 31              // of one that is near another which the server is known to have reached
	// nearStamp is how far from that one. The server may be ahead of it, as far as the client's moves are and a forced one
	// more, and finds this one within half of what shortBits count.
	nearStamp = time.Microsecond << (shortBits - 2)
)

func micros(d time.Duration) uint64 { return uint64(d / time.Microsecond) }

// writeStamp writes a timestamp, by its low bits when it is near one that the server has reached.
func writeStamp(w *bitio.Writer, at, reached time.Duration) {
	near := at-reached < nearStamp
	w.WriteBool(!near)
	if near {
		w.WriteBits(micros(at), shortBits)
	} else {
		w.WriteBits(micros(at), stampBits)
	}
}

// readStamp reads one; near is the newest that is known here.
func readStamp(r *bitio.Reader, near time.Duration) time.Duration {
	if r.ReadBool() {
		return time.Duration(r.ReadBits(stampBits)) * time.Microsecond
	}
	const shift = 64 - shortBits
	ahead := int64(r.ReadBits(shortBits)-micros(near)) << shift >> shift
	return near.Truncate(time.Microsecond) + time.Duration(ahead)*time.Microsecond
}

// sentMove is a move in a message.
type sentMove[I any] struct {
	at    time.Duration
	input I
}

// moves is a message of moves, oldest first.
type moves[S, I any] struct {
	applied uint8 // number of the last correction
	list    [maxMessageMoves]sentMove[I]
	n       int
	claim   S
}

func (m *moves[S, I]) write(model *Model[S, I], w *bitio.Writer, reached time.Duration) {
	w.WriteUint8(m.applied)
	w.WriteInt(uint32(m.n-1), maxMessageMoves)
	writeStamp(w, m.list[0].at, reached)
	for i := range m.n {
		if i > 0 {
			w.WriteIntPacked64(micros(m.list[i].at - m.list[i-1].at))
		}
		model.WriteInput(w, &m.list[i].input)
	}
	model.WriteClaim(w, &m.claim)
}

// read takes a message whose timestamps are near the one given.
func (m *moves[S, I]) read(model *Model[S, I], r *bitio.Reader, near time.Duration) error {
	var zero S
	m.applied, m.claim = r.ReadUint8(), zero
	m.n = int(r.ReadInt(maxMessageMoves)) + 1
	at := readStamp(r, near)
	for i := range m.n {
		if i > 0 {
			step := r.ReadIntPacked64()
			if step == 0 || step >= 1<<stampBits {
				r.Fail(bitio.ErrFormat)
			}
			at += time.Duration(step) * time.Microsecond
		}
		model.ReadInput(r, &m.list[i].input)
		if err := r.Err(); err != nil {
			return fmt.Errorf("%w: move %d of %d: %w", ErrMessage, i+1, m.n, err)
		}
		m.list[i].at = at
		if at >= time.Microsecond<<stampBits {
			return fmt.Errorf("%w: a move at %v", ErrMessage, at)
		}
	}
	model.ReadClaim(r, &m.claim)
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: claim: %w", ErrMessage, err)
	}
	return nil
}

// reply is the server's message.
type reply[S any] struct {
	correction bool
	at         time.Duration
	number     uint8 // of the correction
	state      S
}

func (p *reply[S]) read(readState func(*bitio.Reader, *S), r *bitio.Reader, most time.Duration) error {
	var zero S
	p.correction = r.ReadBool()
	p.at = time.Duration(r.ReadBits(stampBits)) * time.Microsecond
	p.state = zero
	if p.correction {
		p.number = r.ReadUint8()
		readState(r, &p.state)
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: reply: %w", ErrMessage, err)
	}
	if p.at > most {
		return fmt.Errorf("%w: reply to a move at %v, the latest that can be is %v", ErrMessage, p.at, most)
	}
	return nil
}
