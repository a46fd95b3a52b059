package prediction

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

var (
	// ErrConfig is wrapped by errors about a config.
	ErrConfig = errors.New("prediction: config")
	// ErrMessage is wrapped by errors about a peer's message.
	ErrMessage = errors.New("prediction: malformed message")
	// ErrRoom is wrapped when a message doesn't fit the writer. Nothing was written; give it more room.
	ErrRoom = errors.New("prediction: the message doesn't fit")
)

// Model is what both ends must have the same: how an input of type I changes a state of type S, and how states and inputs are sent. All
// functions are required except WriteClaim and ReadClaim. None may keep the pointers that it is given.
type Model[S, I any] struct {
	// Simulate advances the state by dt. Its result may depend only on its arguments, and on what is the same at both ends.
	Simulate func(s *S, in I, dt time.Duration)
	// Distance is how far apart two states are, in the game's unit, for MaxError and LargeError: 0 when a player can't tell them apart,
	// infinite or NaN when they differ in kind (walking, falling).
	Distance func(a, b *S) float64

	// WriteInput and ReadInput are the codec of inputs. ReadInput reads untrusted bytes: it must call r.Fail for an impossible input. When the
	// codec rounds, round an input before you give it to Move, so that both ends simulate the same one.
	WriteInput func(w *bitio.Writer, in *I)
	ReadInput  func(r *bitio.Reader, in *I)
	// WriteState and ReadState are the codec of states in corrections.
	WriteState func(w *bitio.Writer, s *S)
	ReadState  func(r *bitio.Reader, s *S)
	// WriteClaim and ReadClaim are the codec of the claim: the part of the state that a client sends for comparison. ReadClaim is given a zero
	// S. Default: the codec of the whole state.
	WriteClaim func(w *bitio.Writer, s *S)
	ReadClaim  func(r *bitio.Reader, s *S)

	// Interval is the length of a tick: see "In ticks". 1 to 125 ms, in whole microseconds. Default 0: no ticks; a move lasts from the
	// timestamp of the move before it to its own.
	Interval time.Duration
	// MaxDelta is the longest time that a move may last. Default 125 ms; 1 ms to 1 s.
	MaxDelta time.Duration
}

func (m *Model[S, I]) fill() error {
	m.MaxDelta = cmp.Or(m.MaxDelta, 125*time.Millisecond)
	if m.WriteClaim == nil && m.ReadClaim == nil {
		m.WriteClaim, m.ReadClaim = m.WriteState, m.ReadState
	}
	switch {
	case m.Simulate == nil || m.Distance == nil:
		return fmt.Errorf("%w: give the model Simulate and Distance", ErrConfig)
	case m.WriteInput == nil || m.ReadInput == nil || m.WriteState == nil || m.ReadState == nil:
		return fmt.Errorf("%w: give the model WriteInput, ReadInput, WriteState and ReadState", ErrConfig)
	case m.WriteClaim == nil || m.ReadClaim == nil:
		return fmt.Errorf("%w: give the model both WriteClaim and ReadClaim, or neither", ErrConfig)
	case m.Interval != 0 && (m.Interval < time.Millisecond || m.Interval > 125*time.Millisecond || m.Interval%time.Microsecond != 0):
		return fmt.Errorf("%w: Interval is %v; give whole microseconds, 1 to 125 ms", ErrConfig, m.Interval)
	case m.MaxDelta < time.Millisecond || m.MaxDelta > time.Second:
		return fmt.Errorf("%w: MaxDelta is %v; give 1 ms to 1 s", ErrConfig, m.MaxDelta)
	}
	return nil
}

// delta is how long the move at a timestamp lasts after the one before.
func (m *Model[S, I]) delta(before, at time.Duration) time.Duration {
	if m.Interval > 0 {
		return m.Interval
	}
	return min(at-before, m.MaxDelta)
}
