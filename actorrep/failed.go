package actorrep

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// ActorError says which part of an actor couldn't be sent or received, and why. Config.Failed gets it when no call could
// return it.
type ActorError struct {
	Actor Actor
	// Class is the name of the actor's class. Name is that of the field or procedure, "" for the actor as a whole.
	Class, Name string
	// Peer is the connection concerned, on a server; nil when it concerns all.
	Peer *Peer
	Err  error
}

// Error is the text.
func (e *ActorError) Error() string {
	id := e.Actor.base().guid
	if e.Name == "" {
		return fmt.Sprintf("actorrep: %s %v: %v", e.Class, id, e.Err)
	}
	return fmt.Sprintf("actorrep: %s.%s of %v: %v", e.Class, e.Name, id, e.Err)
}

// Unwrap returns Err, the reason.
func (e *ActorError) Unwrap() error { return e.Err }

// MissedError says that a reliable multicast ran here and was queued for some of the connections that see the actor, but
// not for Peers, whose queues are full.
type MissedError struct {
	Peers []*Peer
	Err   error
}

// Error is the text.
func (e *MissedError) Error() string {
	return fmt.Sprintf("actorrep: a multicast missed %d connections: %v", len(e.Peers), e.Err)
}

// Unwrap returns Err, the reason, such as ErrFull.
func (e *MissedError) Unwrap() error { return e.Err }

// RefusedError says that reliable calls of a client reached the server and didn't run there. The client's Config.Failed gets
// it, in an ActorError if the client has the actor.
type RefusedError struct {
	Calls int
	// Err is the reason: ErrNotOwner, ErrRateLimited or ErrActorGone; nil when they were calls of many actors.
	Err error
}

// Error is the text.
func (e *RefusedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("actorrep: the server refused %d calls of several actors", e.Calls)
	}
	return fmt.Sprintf("actorrep: the server refused %d calls: %v", e.Calls, e.Err)
}

// Unwrap returns Err, the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// Errors that Config.Failed gets when something accepted earlier is lost.
var (
	// ErrActorGone: the actor was gone before a waiting call could be sent, for lack of room or because the other end
	// didn't have the actor yet; or, in a RefusedError, before the call arrived.
	ErrActorGone = errors.New("actorrep: the actor went before the call could run")
	// ErrOwnerGone: the actor got another owner before a call to the old one could be sent.
	ErrOwnerGone = errors.New("actorrep: the actor got another owner before the call could be sent")
	// ErrUnacked: a client's call was in flight when the server closed the actor's channel, because the actor became
	// dormant or disappeared. Whether the call ran isn't known.
	ErrUnacked = errors.New("actorrep: the server closed the actor's channel before it acked the call, which may have run")
	// ErrTornEarly: the actor was torn off before all of its values could be sent to a client, for lack of room. The client keeps what it has; it
	// never sees the actor if that is only a part of its opening.
	ErrTornEarly = errors.New("actorrep: the actor was torn off before the client had all of it")
	// ErrClamped: a number doesn't fit the client's field, which is smaller than the server's. The field has the largest
	// number that fits.
	ErrClamped = errors.New("actorrep: the server's number is too large for the field here")
	// ErrUnread: a value or a call's parameters can't be taken here: a text, slice or value with a serializer of its own that is over the cap
	// here, that its ReadNet or UnmarshalText refuses, or of which its ReadNet reads less than came. The field keeps what it had, or of a slice, a fast array or such a value a part of
	// what came; the call doesn't run.
	ErrUnread = errors.New("actorrep: what the server sent can't be read here")
	// ErrCallsPending: calls were dropped because the client doesn't call Step often enough.
	ErrCallsPending = fmt.Errorf("actorrep: over %d calls came between two Steps", maxPendingCalls)
)

// tell reports an error about an actor to Config.Failed.
func (w *World) tell(b *Base, name string, p *Peer, err error) {
	if w.cfg.Failed != nil {
		w.report(b.failed(name, p, err))
	}
}

// failed is an error about an actor.
func (b *Base) failed(name string, p *Peer, err error) *ActorError {
	return &ActorError{Actor: b.self, Class: b.class.name, Name: name, Peer: p, Err: err}
}

// report reports an error to Config.Failed, at once or when the World isn't busy any more.
func (w *World) report(err error) {
	if w.cfg.Failed == nil {
		return
	}
	w.untold = append(w.untold, err)
	if w.busy == 0 {
		w.enter()
		w.exit()
	}
}

// enter begins what Config.Failed must not interrupt: the game may change anything there.
func (w *World) enter() { w.busy++ }

// exit ends it. It forgets the views of connections that were removed, ends those that are to end, and reports the errors
// that came up; meanwhile there may come up more.
func (w *World) exit() {
	defer func() { w.busy-- }() // also when Config.Failed panics
	for w.busy == 1 && len(w.removed)+len(w.endings)+len(w.untold) > 0 {
		if n := len(w.removed); n > 0 {
			p := w.removed[n-1]
			w.removed[n-1] = nil
			w.removed = w.removed[:n-1]
			p.forget()
			continue
		}
		if len(w.endings) > 0 {
			e := w.endings[0]
			w.endings = slices.Delete(w.endings, 0, 1)
			if !e.peer.removed() {
				e.peer.out.fail(e.err)
			}
			continue
		}
		w.cfg.Failed(w.nextUntold())
	}
}

// nextUntold takes the oldest of the errors that Config.Failed wasn't told of. There may be 64 of each actor, when a client that has not been ready is gone.
func (w *World) nextUntold() error {
	err := w.untold[w.told]
	w.untold[w.told] = nil
	if w.told++; w.told == len(w.untold) {
		w.untold, w.told = lean(w.untold[:0], 0), 0
	}
	return err
}

// ending is a connection that is to end.
type ending struct {
	peer *Peer
	err  error
}

// unfit says why the first of the units of m can't be sent as it is.
func (b *Base) unfit(m layout.Mask) error {
	i := bits.TrailingZeros64(m)
	if err := b.class.layout.Unfit(b.ptr, i); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnfit, b.class.layout.Units[i].Path, err)
	}
	return fmt.Errorf("%w: %s", ErrUnfit, b.class.layout.Units[i].Path) // it has become valid again
}

// tellUnfit reports values that don't fit. Each is reported once, until it has fitted again.
func (w *World) tellUnfit(b *Base, m layout.Mask) {
	for ; m != 0; m &= m - 1 {
		w.Counters.Unfit++
		w.tell(b, b.class.layout.Units[bits.TrailingZeros64(m)].Path, nil, b.unfit(m))
	}
}

// dropCalls drops reliable calls that wait, and reports each.
func (w *World) dropCalls(b *Base, p *Peer, calls []*call, err error) {
	for i, c := range calls {
		w.Counters.CallsDropped++
		w.tell(b, c.name, p, err)
		w.unheld.drop(c)
		calls[i] = nil
	}
}

// How many errors of a kind a client's game is told of in a second, one by one.
const (
	mostBad     = 16  // bunches that can't be decoded
	mostUntaken = 16  // values and calls that can't be taken
	mostRefused = 256 // procedures of an actor that the server refused to run
)

// flood is errors that a peer can have come up as often as it has bandwidth for. Of those above most in a second the game is told how many there
// were, and the last.
type flood struct {
	most         int
	what         string
	until        time.Duration // the end of this second
	told, untold int           // in it
	last         error         // of those that weren't told
}

// add reports an error, or counts it.
func (f *flood) add(w *World, err error) {
	if f.told < f.most {
		f.told++
		w.report(err)
		return
	}
	f.untold++
	f.last = err
}

// tell reports, when the second is over, how many were only counted.
func (f *flood) tell(w *World) {
	if w.now < f.until {
		return
	}
	if f.untold > 0 {
		w.report(fmt.Errorf("actorrep: %d more %s, the last: %w", f.untold, f.what, f.last))
	}
	f.until, f.told, f.untold, f.last = w.now+time.Second, 0, 0, nil
}
