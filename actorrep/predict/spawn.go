package predict

import (
	"errors"
	"slices"
	"time"
)

// Key names something that appears in a step of the simulation, such as a shell in the step in which a player fires, by the same number at both
// ends: so the server's shell finds the one that the player's client has shown since. 0 is none.
type Key uint64

// A Key is
//
//	8   the possession
//	52  the step's timestamp in µs, of package prediction
//	4   which of the step's
const (
	keyIndexBits = 4
	keyStampBits = 52
)

// Key is for Simulate: it names the n-th thing, 0 to 15, that appears in the step which is being simulated. On a client again says that this step was
// simulated before, and is simulated once more after a correction: what appeared then is there. 0 when the actor isn't predicted.
func (c *Class[A, I]) Key(a A, n int) (k Key, again bool) {
	p := c.byActor[a]
	var at time.Duration
	switch {
	case p == nil || n < 0 || n >= 1<<keyIndexBits:
		return 0, false
	case c.group != nil && (p.client != nil || p.server != nil):
		at, again = c.group.Simulating()
	case p.client != nil:
		at, again = p.client.Simulating()
	case p.server != nil:
		at = p.server.Simulating()
	default:
		return 0, false // a player of this end has the thing itself
	}
	stamp := uint64(at/time.Microsecond) & (1<<keyStampBits - 1)
	return Key(uint64(p.number)<<(keyStampBits+keyIndexBits) | stamp<<keyIndexBits | uint64(n)), again
}

func (k Key) possession() uint8 { return uint8(k >> (keyStampBits + keyIndexBits)) }

func (k Key) at() time.Duration {
	return time.Duration(k>>keyIndexBits&(1<<keyStampBits-1)) * time.Microsecond
}

// answered reports whether the server has simulated the step of a key, or never will.
func (c *Class[A, I]) answered(k Key) bool {
	for _, p := range c.pawns {
		if p.client != nil && p.number == k.possession() && !p.gone {
			return p.client.Acked() >= k.at()
		}
	}
	return true
}

// Spawns is what a client shows of things that the server hasn't spawned yet: each until the server's takes its place, or it turns out that there
// is none. It holds values of the game's, F. Keys of another class need a Spawns of their own. It belongs to the world's goroutine.
//
//	in Simulate, on the client     if k, again := tanks.Key(t, 0); k != 0 && !again { spawns.Add(k, newShell(t)) }
//	in Simulate, on the server     world.Spawn(&Shell{Key: k, ...}), with the player as its owner and Key's tag net:"owner"
//	when an actor appears          if fake, ok := spawns.Take(shell.Key); ok { go on from where fake is }
//	each frame                     spawns.Tick(now)
type Spawns[F any] struct {
	answered func(Key) bool
	denied   func(Key, F)
	grace    time.Duration
	waiting  []waitingSpawn[F]
}

type waitingSpawn[F any] struct {
	key      Key
	fake     F
	answered time.Duration // when the server was known to have simulated its step; -1 not yet
}

// MaxSpawns bounds the things that wait for the server's.
const MaxSpawns = 1024

// ErrManySpawns is more of them.
var ErrManySpawns = errors.New("predict: too many things wait for the server's; call Spawns.Tick each frame")

// NewSpawns returns the predicted spawns of a class' actors. Denied is told what goes because the server doesn't have it: it simulated
// the step, and grace later nothing has come. Grace 0 is 1 s; what comes after that appears as what nobody predicted.
func NewSpawns[F any, A Mover[I], I any](c *Class[A, I], grace time.Duration, denied func(k Key, fake F)) *Spawns[F] {
	if grace <= 0 {
		grace = time.Second
	}
	return &Spawns[F]{answered: c.answered, denied: denied, grace: grace}
}

// Add shows something until the server's takes its place. A key that waits already is an error of the game's and does nothing.
func (s *Spawns[F]) Add(k Key, fake F) error {
	switch {
	case k == 0 || s.index(k) >= 0:
		return nil
	case len(s.waiting) == MaxSpawns:
		return ErrManySpawns
	}
	s.waiting = append(s.waiting, waitingSpawn[F]{k, fake, -1})
	return nil
}

func (s *Spawns[F]) index(k Key) int {
	return slices.IndexFunc(s.waiting, func(w waitingSpawn[F]) bool { return w.key == k })
}

// Take is the server's thing: it ends the wait for it and returns what was shown; false when nothing was.
func (s *Spawns[F]) Take(k Key) (fake F, ok bool) {
	i := s.index(k)
	if k == 0 || i < 0 {
		return fake, false
	}
	fake = s.waiting[i].fake
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return fake, true
}

// Tick ends the wait for what the server doesn't have.
func (s *Spawns[F]) Tick(now time.Duration) {
	kept := s.waiting[:0]
	var gone []waitingSpawn[F]
	for _, w := range s.waiting {
		if w.answered < 0 && s.answered(w.key) {
			w.answered = now
		}
		if w.answered >= 0 && now-w.answered >= s.grace {
			gone = append(gone, w)
			continue
		}
		kept = append(kept, w)
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
	for _, w := range gone {
		if s.denied != nil {
			s.denied(w.key, w.fake)
		}
	}
}

// All calls yield with what is shown and waits, oldest first. yield must not call Add, Take or Tick.
func (s *Spawns[F]) All(yield func(k Key, fake F) bool) {
	for _, w := range s.waiting {
		if !yield(w.key, w.fake) {
			return
		}
	}
}

// Len is how many there are.
func (s *Spawns[F]) Len() int { return len(s.waiting) }
