package exercise

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// callArgs numbers a call. Mark is what was set of its thing before, by the server.
type callArgs struct {
	Stream, N, Mark uint32
}

// ask is called by a thing's owner and run by the server; tell is called by the server and run by the owner's
// client; shout is run by all who see the thing. All are reliable: in order, and those of the server behind the values that were set before.
var (
	ask = actorrep.ServerRPC(func(c actorrep.Call, t *thing, a callArgs) error {
		e := c.Peer.User.(*end)
		if e.liar {
			e.g.Counters.LiesTaken++
			return nil
		}
		return called(e, a)
	}, actorrep.Reliable)
	tell = actorrep.ClientRPC(func(_ actorrep.Call, t *thing, a callArgs) error {
		if !t.expects("a call") {
			return nil
		}
		t.ran(a.Mark, true)
		return called(t.end, a)
	}, actorrep.Reliable)
	shout = actorrep.MulticastRPC(func(c actorrep.Call, t *thing, a callArgs) error {
		if c.World.IsServer() || !t.expects("a shout") {
			return nil
		}
		t.ran(a.Mark, false)
		t.end.heard(t, a.N)
		return nil
	}, actorrep.Reliable)
)

// expects checks that a call of the server finds its thing told of.
func (t *thing) expects(what string) bool {
	p, _ := t.World().User.(*program)
	if p == nil {
		return false // a liar's
	}
	if t.end == nil {
		p.g.w.Failf("calls", "%s: %s runs before its thing is told of", p.h.Name(), what)
	}
	return t.end != nil
}

// called checks a call that has arrived at an end.
func called(e *end, a callArgs) error {
	s := e.streamOf(a.Stream)
	if s == nil {
		return fmt.Errorf("exercise: no stream %d", a.Stream)
	}
	if s.from.peer != e {
		e.g.w.Failf("order", "%v: a call of %v, which is connected with another", e, s)
	}
	s.Received(a.N)
	e.g.Counters.Calls++
	return nil
}

// call calls the server on a thing of one's own.
func (e *end) call(t *thing) {
	if t.calls == nil || t.granted != t.Secret {
		t.calls, t.granted = e.newStream("calls of a client", simtest.Newest), t.Secret
		e.asks = append(e.asks, &asked{stream: t.calls, guid: t.GUID(), secret: t.Secret})
	}
	if ask.Call(t, callArgs{uint32(t.calls.id), t.calls.Sent(), 0}) != nil {
		t.calls.Unsent() // no room, or not ours any more
	}
}

// asked is what a client calls on a thing while it has one secret, which says that it is the client's.
type asked struct {
	*stream
	guid   netguid.GUID
	secret uint32
	told   int // that they haven't run, or may not have
}

// toldAsk notes that calls of a client's may not have run.
func (e *end) toldAsk(t *thing, n int) {
	for _, s := range e.asks {
		if s.stream == t.calls {
			s.told += n
		}
	}
}

// tell calls the owner of a thing.
func (e *end) tell(t *thing) {
	t.note()
	if tell.Call(t, callArgs{uint32(t.calls.id), t.calls.Sent(), t.known.values.Mark()}) != nil {
		t.calls.Unsent()
	}
}

// shout calls all who see a thing. Those who do already hear of it, or the server is told who doesn't.
func (p *program) shout(t *thing) {
	t.note()
	k := t.known
	k.shouts++
	err := shout.Call(t, callArgs{N: k.shouts, Mark: k.values.Mark()})
	var missed *actorrep.MissedError
	if err != nil && !errors.As(err, &missed) {
		return // nobody hears it
	}
	for _, e := range p.ends {
		if e.actors != nil && e.alive() && !e.liar && e.actors.peer.Has(t) && (missed == nil || !slices.Contains(missed.Peers, e.actors.peer)) {
			e.due[t.GUID()] = append(e.due[t.GUID()], k.shouts)
		}
	}
}

// heard checks a shout that a client hears: in order, and those that are due at its server's end are.
func (e *end) heard(t *thing, n uint32) {
	if n <= t.shouted {
		e.g.w.Failf("order", "%v: shout %d of %v after %d", e, n, t.GUID(), t.shouted)
	}
	t.shouted = n
	e.g.Counters.Calls++
	if due := e.peer.due[t.GUID()]; len(due) > 0 {
		if i := slices.Index(due, n); i >= 0 {
			e.peer.due[t.GUID()] = slices.Delete(due, i, i+1)
		}
	}
}

// callsPending is a call that a client or its server still waits for.
func (e *end) callsPending() string {
	server := e.peer
	for _, s := range server.tells {
		if n := s.Missing(); n > 0 {
			return fmt.Sprintf("%d missing of %v", n, s)
		}
	}
	for _, t := range server.p.things.all {
		if due := server.due[t.GUID()]; len(due) > server.toldOf[t.GUID()] {
			return fmt.Sprintf("%d shouts of %v missing, %d told", len(due), t.GUID(), server.toldOf[t.GUID()])
		}
		for _, s := range e.asks { // not those of an owner who didn't know its secret yet: whose they were can't be told
			if s.secret != 0 && s.guid == t.GUID() && s.secret == t.Secret && s.Left() > s.told {
				return fmt.Sprintf("%d missing of %v, %d told", s.Left(), s, s.told)
			}
		}
	}
	return ""
}

// voidCalls says that calls which haven't arrived needn't any more.
func (e *end) voidCalls() {
	for _, s := range e.tells {
		s.Void()
	}
	for _, s := range e.asks {
		s.Void()
	}
	clear(e.due)
}
