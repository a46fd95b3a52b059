package exercise

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// callArgs numbers a call.
type callArgs struct {
	Stream, N uint32
}

// ask is called by a thing's owner and run by the server; tell is called by the server and run by the owner's
// client. Both are reliable: in order, while the owner stays the same.
var (
	ask = actorrep.ServerRPC(func(c actorrep.Call, t *thing, a callArgs) error {
		return called(c.Peer.User.(*end), a)
	}, actorrep.Reliable)
	tell = actorrep.ClientRPC(func(_ actorrep.Call, t *thing, a callArgs) error {
		if t.end == nil {
			return nil
		}
		return called(t.end, a)
	}, actorrep.Reliable)
)

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
	if t.calls == nil {
		t.calls = e.newStream("calls of a client", simtest.Newest)
	}
	if ask.Call(t, callArgs{uint32(t.calls.id), t.calls.Sent()}) != nil {
		t.calls.Unsent() // no room, or not ours any more
	}
}

// tell calls the owner of a thing.
func (e *end) tell(t *thing) {
	if tell.Call(t, callArgs{uint32(t.calls.id), t.calls.Sent()}) != nil {
		t.calls.Unsent()
	}
}
