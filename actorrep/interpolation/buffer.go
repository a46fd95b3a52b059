package interpolation

import (
	"fmt"
	"time"
)

// State says how [Buffer.At] got its value.
type State uint8

// The states.
const (
	Empty        State = iota // no snapshot: the zero value
	Early                     // before the oldest snapshot: that one
	Interpolated              // between two snapshots, or exactly one
	Extrapolated              // after the newest
	Stale                     // after the newest by more than MaxExtrapolation: it stands still
)

// String names the state.
func (s State) String() string {
	names := [...]string{"empty", "early", "interpolated", "extrapolated", "stale"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// BufferConfig configures a [Buffer]. Only Lerp is required.
type BufferConfig[T any] struct {
	// Lerp interpolates: it returns the value at t between a (0) and b (1). t above 1 extrapolates beyond b.
	Lerp func(a, b T, t float64) T
	// Teleport reports whether the step from a to b is a jump that must not be interpolated. Default: never.
	Teleport func(a, b T) bool
	// MaxExtrapolation is how long after the newest snapshot At continues the line of the last two. Default 250 ms; -1
	// for not at all.
	MaxExtrapolation time.Duration
	// Capacity is the number of snapshots kept. Default 32; 2 to 1024. It should cover the timeline's MaxDelay.
	Capacity int
}

// firstCapacity is how many snapshots a new buffer has memory for: a thing that rests sends no more.
const firstCapacity = 2

// minSpacing is the least distance in time of two snapshots that are extrapolated.
const minSpacing = time.Millisecond

type snapshot[T any] struct {
	at    time.Duration
	value T
}

// Buffer keeps the last snapshots of one thing. Not safe for concurrent use.
//
// Invariant: snaps is sorted by at, without repeats.
type Buffer[T any] struct {
	cfg   BufferConfig[T]
	snaps []snapshot[T]
}

// NewBuffer returns an empty buffer. Its memory grows with the snapshots, up to Capacity of them.
func NewBuffer[T any](cfg BufferConfig[T]) (*Buffer[T], error) {
	switch cfg.MaxExtrapolation {
	case 0:
		cfg.MaxExtrapolation = 250 * time.Millisecond
	case -1:
		cfg.MaxExtrapolation = 0
	}
	if cfg.Capacity == 0 {
		cfg.Capacity = 32
	}
	switch {
	case cfg.Lerp == nil:
		return nil, fmt.Errorf("%w: there is no Lerp; give the function that goes from one snapshot to the next", ErrConfig)
	case cfg.MaxExtrapolation < 0:
		return nil, fmt.Errorf("%w: MaxExtrapolation is %v; give a duration, or -1 for none", ErrConfig, cfg.MaxExtrapolation)
	case cfg.Capacity < 2 || cfg.Capacity > 1024:
		return nil, fmt.Errorf("%w: Capacity is %d; give 2 to 1024", ErrConfig, cfg.Capacity)
	}
	return &Buffer[T]{cfg: cfg, snaps: make([]snapshot[T], 0, firstCapacity)}, nil
}

// Len is the number of snapshots held.
func (b *Buffer[T]) Len() int { return len(b.snaps) }

// Reset forgets all snapshots.
func (b *Buffer[T]) Reset() {
	clear(b.snaps)
	b.snaps = b.snaps[:0]
}

// Push adds the snapshot of a time. It returns false and changes nothing when there is one of that time, or when the
// buffer is full of newer ones.
func (b *Buffer[T]) Push(at time.Duration, v T) bool {
	i := b.after(at)
	if i > 0 && b.snaps[i-1].at == at {
		return false
	}
	if len(b.snaps) == b.cfg.Capacity {
		if i == 0 {
			return false
		}
		i--
		copy(b.snaps[:i], b.snaps[1:i+1])
	} else {
		if n := len(b.snaps); n == cap(b.snaps) {
			b.snaps = append(make([]snapshot[T], 0, min(2*n, b.cfg.Capacity)), b.snaps...)
		}
		b.snaps = b.snaps[:len(b.snaps)+1]
		copy(b.snaps[i+1:], b.snaps[i:])
	}
	b.snaps[i] = snapshot[T]{at: at, value: v}
	return true
}

// Replace changes the value of the newest snapshot. It returns false when there is none.
func (b *Buffer[T]) Replace(v T) bool {
	if len(b.snaps) == 0 {
		return false
	}
	b.snaps[len(b.snaps)-1].value = v
	return true
}

// after is the index of the first snapshot later than t, usually near the end.
func (b *Buffer[T]) after(t time.Duration) int {
	i := len(b.snaps)
	for i > 0 && b.snaps[i-1].at > t {
		i--
	}
	return i
}

// At is the value at a time, in the sender's clock: Timeline.Shown.
func (b *Buffer[T]) At(t time.Duration) (T, State) {
	i := b.after(t)
	switch {
	case len(b.snaps) == 0:
		var zero T
		return zero, Empty
	case i == 0:
		return b.snaps[0].value, Early
	case i == len(b.snaps):
		return b.beyond(t)
	}
	from, to := &b.snaps[i-1], &b.snaps[i]
	if t == from.at || b.cfg.Teleport != nil && b.cfg.Teleport(from.value, to.value) {
		return from.value, Interpolated
	}
	return b.cfg.Lerp(from.value, to.value, float64(t-from.at)/float64(to.at-from.at)), Interpolated
}

// beyond is the value at t, which is at or after the newest snapshot.
func (b *Buffer[T]) beyond(t time.Duration) (T, State) {
	last := &b.snaps[len(b.snaps)-1]
	ahead, state := t-last.at, Extrapolated
	switch {
	case ahead == 0:
		return last.value, Interpolated
	case ahead > b.cfg.MaxExtrapolation:
		ahead, state = b.cfg.MaxExtrapolation, Stale
	}
	if len(b.snaps) < 2 || ahead == 0 {
		return last.value, state
	}
	prev := &b.snaps[len(b.snaps)-2]
	step := last.at - prev.at
	if step < minSpacing || b.cfg.Teleport != nil && b.cfg.Teleport(prev.value, last.value) {
		return last.value, state
	}
	return b.cfg.Lerp(prev.value, last.value, 1+float64(ahead)/float64(step)), state
}
