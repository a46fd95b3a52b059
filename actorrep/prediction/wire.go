package prediction

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	maxMessageMoves = 16
	maxAhead        = 4 * time.Second // of a reply's timestamp before the client's clock
	maxStep         = 1<<31 - 1       // µs between two moves, so that 32 bits tell old from new
)

func micros(d time.Duration) uint32 { return uint32(d / time.Microsecond) }

// expand is the timestamp with these low bits that is nearest to one known.
func expand(near time.Duration, low uint32) time.Duration {
	return near + time.Duration(int32(low-micros(near)))*time.Microsecond
}

// sentMove is a move as a message carries it.
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

func (m *moves[S, I]) write(model *Model[S, I], w *bitio.Writer) {
	w.WriteUint8(m.applied)
	w.WriteInt(uint32(m.n-1), maxMessageMoves)
	w.WriteUint32(micros(m.list[0].at))
	for i := range m.n {
		if i > 0 {
			w.WriteIntPacked(micros(m.list[i].at - m.list[i-1].at))
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
	at := expand(near, r.ReadUint32())
	for i := range m.n {
		if i > 0 {
			step := r.ReadIntPacked()
			if step == 0 || step > maxStep {
				r.Fail(bitio.ErrFormat)
			}
			at += time.Duration(step) * time.Microsecond
		}
		model.ReadInput(r, &m.list[i].input)
		if err := r.Err(); err != nil {
			return fmt.Errorf("%w: move %d of %d: %w", ErrMessage, i+1, m.n, err)
		}
		m.list[i].at = at
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

func (p *reply[S]) read(readState func(*bitio.Reader, *S), r *bitio.Reader, near time.Duration) error {
	var zero S
	p.correction = r.ReadBool()
	p.at = expand(near, r.ReadUint32())
	p.state = zero
	if p.correction {
		p.number = r.ReadUint8()
		readState(r, &p.state)
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: reply: %w", ErrMessage, err)
	}
	if p.at < 0 || p.at > near+maxAhead {
		return fmt.Errorf("%w: reply to a move at %v, the newest is of %v", ErrMessage, p.at, near)
	}
	return nil
}
