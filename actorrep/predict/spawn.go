package predict

import (
	"errors"
	"slices"
	"time"
)

// Key identifies something that appears in a tick of the simulation, such as a shell in the tick in which a player
// fires. It is the same number at both ends, so the server's shell finds the one that the player's client already shows.
// 0 is none.
type Key uint64

// A Key is
//
//	8   the possession
//	52  the tick's timestamp in µs, of package prediction
//	4   which of the tick's things
const (
	keyIndexBits = 4
	keyStampBits = 52
)

// Key is called in Simulate. It identifies the n-th thing, 0 to 15, that appears in the tick being simulated. again
// reports, on a client, that the tick is being replayed after a correction: what appeared in it is there already. k is 0
// when the actor isn't predicted.
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
		return 0, false // World.Local's player has the thing itself
	}
	stamp := uint64(at/time.Microsecond) & (1<<keyStampBits - 1)
	return Key(uint64(p.number)<<(keyStampBits+keyIndexBits) | stamp<<keyIndexBits | uint64(n)), again
}

func (k Key) possession() uint8 { return uint8(k >> (keyStampBits + keyIndexBits)) }

func (k Key) at() time.Duration {
	return time.Duration(k>>keyIndexBits&(1<<keyStampBits-1)) * time.Microsecond
}

// answered reports whether the server has simulated the tick of a key, or never will.
func (c *Class[A, I]) answered(k Key) bool {
	for _, p := range c.pawns {
		if p.client != nil && p.number == k.possession() && !p.gone {
			return p.client.Acked() >= k.at()
		}
	}
	return true
}

// Spawns holds what a client shows before the server has spawned it. Each entry stays until the server's actor replaces
// it, or until it is certain that there is none. F is the game's type for such a thing. Each class needs a Spawns of its
// own. It belongs to the world's goroutine.
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

// MaxSpawns is the most things that a Spawns holds.
const MaxSpawns = 1024

// ErrManySpawns is returned by Add above MaxSpawns.
var ErrManySpawns = errors.New("predict: too many things wait for the server's; call Spawns.Tick each frame")

// NewSpawns returns a Spawns for a class's actors. denied is called when the server turns out not to have a thing: it
// has simulated the tick, and for another grace nothing has appeared. If the server's actor appears later still, Take
// doesn't find it. grace 0 is 1 s.
func NewSpawns[F any, A Mover[I], I any](c *Class[A, I], grace time.Duration, denied func(k Key, fake F)) *Spawns[F] {
	if grace <= 0 {
		grace = time.Second
	}
	return &Spawns[F]{answered: c.answered, denied: denied, grace: grace}
}

// Add holds something until the server's actor replaces it. It does nothing for Key 0 or a key that is held already.
// Above MaxSpawns it returns ErrManySpawns.
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

// Take is called when the server's actor has appeared. It removes and returns what was shown in its place; ok is false
// when nothing was.
func (s *Spawns[F]) Take(k Key) (fake F, ok bool) {
	i := s.index(k)
	if k == 0 || i < 0 {
		return fake, false
	}
	fake = s.waiting[i].fake
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return fake, true
}

// Tick removes what the server turned out not to have, and calls denied for each.
func (s *Spawns[F]) Tick(now time.Duration) {
	kept := s.waiting[:0]
	var gone []waitingSpawn[F]
	for _, w := range s.waiting {
		if w.answered < 0 && s.answered(w.key) {
			w.answered = now
		}
		if w.answered = min(w.answered, now); w.answered >= 0 && now-w.answered >= s.grace { // a clock that went back begins it anew
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

// All calls yield for each thing that is held, oldest first. yield must not call Add, Take or Tick.
func (s *Spawns[F]) All(yield func(k Key, fake F) bool) {
	for _, w := range s.waiting {
		if !yield(w.key, w.fake) {
			return
		}
	}
}

// Len is the number of things held.
func (s *Spawns[F]) Len() int { return len(s.waiting) }
