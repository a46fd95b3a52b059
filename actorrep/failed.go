package actorrep

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// ActorError says what of an actor didn't get through, and why. Config.Failed is told of it where no call returns it.
type ActorError struct {
	Actor Actor
	// Class is the name of the actor's class, Name that of the field or procedure; "" for the actor as a whole.
	Class, Name string
	// Peer is the connection that it concerns, on a server; nil when that is all.
	Peer *Peer
	Err  error
}

// Error says it in words.
func (e *ActorError) Error() string {
	id := e.Actor.base().guid
	if e.Name == "" {
		return fmt.Sprintf("actorrep: %s %v: %v", e.Class, id, e.Err)
	}
	return fmt.Sprintf("actorrep: %s.%s of %v: %v", e.Class, e.Name, id, e.Err)
}

// Unwrap is the reason.
func (e *ActorError) Unwrap() error { return e.Err }

// MissedError says that a reliable multicast went to some who see its actor, and ran here, but not to all: the queues
// to these connections are full.
type MissedError struct {
	Peers []*Peer
	Err   error
}

// Error says it in words.
func (e *MissedError) Error() string {
	return fmt.Sprintf("actorrep: a multicast missed %d connections: %v", len(e.Peers), e.Err)
}

// Unwrap is the reason, as ErrFull.
func (e *MissedError) Unwrap() error { return e.Err }

// Why a reliable call that was taken never ran.
var (
	// ErrActorGone is a call whose actor went before the other end had room for the call, or before it knew the actor.
	ErrActorGone = errors.New("actorrep: the actor went before the call could be sent")
	// ErrOwnerGone is a call to an owner who had no room for it, or didn't know the actor, before it was another's.
	ErrOwnerGone = errors.New("actorrep: the actor got another owner before the call could be sent")
	// ErrUnacked is a client's call that was under way when the server closed the actor's channel, as it let the actor sleep or go: whether
	// it ran isn't known.
	ErrUnacked = errors.New("actorrep: the server closed the actor's channel before it acked the call, which may have run")
	// ErrTornEarly is an actor that was torn off before all of its opening could be sent to a client, which never sees it.
	ErrTornEarly = errors.New("actorrep: the actor was torn off before the client had all of it")
	// ErrClamped is a number from a server whose field is larger than the client's: it is the largest that fits there.
	ErrClamped = errors.New("actorrep: the server's number is too large for the field here")
	// ErrCallsPending is a client that doesn't call Step often enough for the calls that come.
	ErrCallsPending = fmt.Errorf("actorrep: over %d calls came between two Steps", maxPendingCalls)
)

// tell reports what concerns an actor.
func (w *World) tell(b *Base, name string, p *Peer, err error) {
	if w.cfg.Failed != nil {
		w.cfg.Failed(&ActorError{Actor: b.self, Class: b.class.name, Name: name, Peer: p, Err: err})
	}
}

// unfit is why the first of some units can't be sent as it is.
func (b *Base) unfit(m layout.Mask) error {
	i := bits.TrailingZeros64(m)
	if err := b.class.layout.Unfit(b.ptr, i); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnfit, b.class.layout.Units[i].Path, err)
	}
	return fmt.Errorf("%w: %s", ErrUnfit, b.class.layout.Units[i].Path) // it fits again since
}

// tellUnfit reports values that don't fit, once until they do.
func (w *World) tellUnfit(b *Base, m layout.Mask) {
	for ; m != 0; m &= m - 1 {
		w.Counters.Unfit++
		w.tell(b, b.class.layout.Units[bits.TrailingZeros64(m)].Path, nil, b.unfit(m))
	}
}

// dropCalls gives up the reliable calls that wait, and tells of each.
func (w *World) dropCalls(b *Base, p *Peer, calls []*call, err error) {
	for i, c := range calls {
		w.Counters.CallsDropped++
		w.tell(b, c.name, p, err)
		w.unheld.drop(c)
		calls[i] = nil
	}
}
