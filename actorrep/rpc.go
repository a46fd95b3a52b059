package actorrep

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Call is what a procedure is told of its call.
type Call struct {
	World *World
	// Peer is the connection that called, on a server; nil on a client. World.Local for a call of the server's own.
	Peer *Peer
	// Frame is the server's Step in which it was called; on a server the newest.
	Frame uint32
	// Now is the time: on a server, where a client's calls run as they arrive, that of the TickDispatch; on a client
	// that of the Step.
	Now time.Duration
}

// Procedure is an RPC of any type, for RPCs.
type Procedure interface {
	definition() *definition
	register(name string, actor reflect.Type) error
	handled() bool
	run(c Call, a Actor, params unsafe.Pointer) error
	check(c Call, a Actor, params unsafe.Pointer) bool
	blank() unsafe.Pointer
	zero(params unsafe.Pointer)
	decode(r *bitio.Reader, params unsafe.Pointer)
	borrow(params unsafe.Pointer) *layout.Memory
}

type rpcKind uint8

const (
	serverRPC rpcKind = iota // a client calls, the server runs
	clientRPC                // the server calls, the owner's client runs
	multicast                // the server calls, it and everyone who sees the actor run
)

// Overflow is what becomes of a reliable call when as many bunches of its actor wait for acks as netconn.Protocol.ReliableBuffer says,
// 1024 by default.
type Overflow uint8

// The policies. Calls that wait are at most MaxWaitingCalls an actor.
const (
	// Refuse returns ErrFull to the caller.
	Refuse Overflow = iota
	// Coalesce lets it wait, behind all that waits; the oldest call of the same procedure that waits goes for it.
	Coalesce
	// DropOldest lets it wait; when too many do, the oldest of them goes.
	DropOldest
	// CloseConn ends the connection, Unreal's policy.
	CloseConn
)

// MaxWaitingCalls bounds the reliable calls of an actor that wait for room on a connection.
const MaxWaitingCalls = 64

// RPCOption is a setting of a procedure.
type RPCOption func(d *definition)

// Reliable makes calls arrive, in order with the other reliable calls of the actor. Others may be lost, and are
// refused at once, with ErrSaturated or ErrNotThere, when they can't go now: a caller who doesn't mind
// may ignore that.
var Reliable RPCOption = func(d *definition) { d.reliable = true }

// OnOverflow sets what happens to a reliable call that finds no room. Default Refuse.
func OnOverflow(o Overflow) RPCOption { return func(d *definition) { d.overflow = o } }

// RateLimit bounds the calls that a server takes from one connection: so many a second, and so many at once. More are
// refused, at the caller too. Calls that were made within the limit may come together after an outage; a connection that
// has more refused than a minute's worth and the burst, which only a cheat can, ends.
func RateLimit(perSecond float64, burst int) RPCOption {
	return func(d *definition) { d.rate, d.burst = perSecond, max(burst, 1) }
}

// AnyClient lets every client that has the actor call a server procedure, not its owner's alone: Call.Peer is who did. A call that
// arrives when its actor has left the caller is dropped. With it belongs a RateLimit.
var AnyClient RPCOption = func(d *definition) { d.anyClient = true }

// Borrowed lets a procedure have the strings and slices of its parameters without allocation: they lie in memory that is used again.
// They are good until the procedure returns, and zeros soon after: what it keeps, it copies (strings.Clone, slices.Clone). A
// validation has the same. Slices within slices, and what values with their own serializer allocate, are made anew each time.
var Borrowed RPCOption = func(d *definition) { d.borrowed = true }

// definition is what ends must agree on of a procedure, and its settings.
type definition struct {
	kind      rpcKind
	reliable  bool
	anyClient bool
	borrowed  bool
	overflow  Overflow
	rate      float64
	burst     int
	params    *layout.Layout
	err       error
}

// kindName is the kind in words.
func (d *definition) kindName() string {
	if d.anyClient {
		return "any client's server"
	}
	return d.kind.String()
}

// String is the kind's name.
func (k rpcKind) String() string { return [...]string{"server", "client", "multicast"}[k] }

// runsAt reports whether others have it run at a server, or at a client.
func (d *definition) runsAt(server bool) bool {
	return d.kind == multicast || (d.kind == serverRPC) == server
}

// anyServerRPC is the kind of a server procedure of any client, on the wire.
const anyServerRPC = multicast + 1

func (d *definition) wireKind() uint8 {
	k := uint8(d.kind) << 1
	if d.anyClient {
		k = uint8(anyServerRPC) << 1
	}
	if d.reliable {
		k |= 1
	}
	return k
}

// RPC is a remote procedure of actors of type A, a pointer to a struct, with parameters P: any value that can be replicated;
// of a struct all exported fields, with or without tags. It is made once, as a package's variable, and named when its
// class is registered.
type RPC[A Actor, P any] struct {
	def   definition
	f     func(c Call, a A, p P) error
	valid func(c Call, a A, p P) bool
}

// ServerRPC is a procedure that the owner's client calls and the server runs.
//
//	var Fire = actorrep.ServerRPC(func(c actorrep.Call, s *Soldier, d Dir) error { ... }, actorrep.Reliable)
//	...
//	err := Fire.Call(soldier, dir)
//
// f may be nil, here and in the others: then Handle sets it, or it runs at the other end only.
func ServerRPC[A Actor, P any](f func(c Call, a A, p P) error, options ...RPCOption) *RPC[A, P] {
	return newRPC(serverRPC, f, options)
}

// ClientRPC is a procedure that the server calls and the owner's client runs.
func ClientRPC[A Actor, P any](f func(c Call, a A, p P) error, options ...RPCOption) *RPC[A, P] {
	return newRPC(clientRPC, f, options)
}

// MulticastRPC is a procedure that the server calls, and that it and all who see the actor run. Unreliable ones
// travel with the actor's values.
func MulticastRPC[A Actor, P any](f func(c Call, a A, p P) error, options ...RPCOption) *RPC[A, P] {
	return newRPC(multicast, f, options)
}

func newRPC[A Actor, P any](kind rpcKind, f func(Call, A, P) error, options []RPCOption) *RPC[A, P] {
	r := &RPC[A, P]{def: definition{kind: kind}, f: f}
	for _, o := range options {
		o(&r.def)
	}
	r.def.params, r.def.err = layout.BuildValue(reflect.TypeFor[P]())
	if r.def.anyClient && kind != serverRPC {
		r.def.err = errors.Join(r.def.err, errors.New("actorrep: AnyClient is for server procedures"))
	}
	return r
}

// Handle sets what the procedure does, when it was made without: in an init function, so that a function that leads back to the
// procedure itself doesn't make the variable's initialization a cycle, or in a package that only the server has. It panics when
// there is one already.
//
//	var Fire = actorrep.ServerRPC[*Soldier, Dir](nil, actorrep.Reliable)
//
//	func init() { Fire.Handle(func(c actorrep.Call, s *Soldier, d Dir) error { ... Fire.Call(s, d) ... }) }
func (r *RPC[A, P]) Handle(f func(c Call, a A, p P) error) {
	if r.f != nil {
		panic("actorrep: the procedure has a handler")
	}
	r.f = f
}

// Validated adds a check that runs on a server before the procedure: false ends the connection, for what only a
// cheat would send.
func (r *RPC[A, P]) Validated(f func(c Call, a A, p P) bool) *RPC[A, P] {
	r.valid = f
	return r
}

func (r *RPC[A, P]) definition() *definition { return &r.def }

func (r *RPC[A, P]) register(name string, actor reflect.Type) error {
	switch {
	case r.def.err != nil:
		return fmt.Errorf("procedure %s: %w", name, r.def.err)
	case reflect.TypeFor[A]() != reflect.PointerTo(actor):
		return fmt.Errorf("actorrep: procedure %s is for %v, not for %v", name, reflect.TypeFor[A](), actor)
	}
	return nil
}

func (r *RPC[A, P]) handled() bool { return r.f != nil }

func (r *RPC[A, P]) run(c Call, a Actor, params unsafe.Pointer) error {
	return r.f(c, a.(A), *(*P)(params))
}

func (r *RPC[A, P]) check(c Call, a Actor, params unsafe.Pointer) bool {
	return r.valid == nil || r.valid(c, a.(A), *(*P)(params))
}

// lent is parameters that a Borrowed procedure has for the time of a call, with the memory of their strings. A pointer to it is one to p.
type lent[P any] struct {
	p   P
	mem layout.Memory
}

func (r *RPC[A, P]) blank() unsafe.Pointer {
	if r.def.borrowed {
		return unsafe.Pointer(new(lent[P]))
	}
	return unsafe.Pointer(new(P))
}

func (r *RPC[A, P]) borrow(params unsafe.Pointer) *layout.Memory {
	if r.def.borrowed {
		return &(*lent[P])(params).mem
	}
	return nil
}

func (r *RPC[A, P]) zero(params unsafe.Pointer) {
	var zero P
	*(*P)(params) = zero
}

func (r *RPC[A, P]) decode(br *bitio.Reader, params unsafe.Pointer) {
	r.def.params.ReadValue(br, params, r.borrow(params))
}

// Errors of calls.
var (
	ErrNotOwner    = errors.New("actorrep: only the owner's client may call this")
	ErrAuthority   = errors.New("actorrep: only the server may call this")
	ErrNoOwner     = errors.New("actorrep: the actor has no owner to call")
	ErrNoProcedure = errors.New("actorrep: the procedure isn't registered with the actor's class, here or at the other end")
	ErrNoHandler   = errors.New("actorrep: the procedure runs at this end and has no handler; give it one with Handle")
	ErrNotThere    = errors.New("actorrep: the other end doesn't have the actor yet")
	ErrSaturated   = errors.New("actorrep: no bandwidth for an unreliable call now")
	ErrFull        = errors.New("actorrep: too many reliable calls wait for acks")
	ErrUnfit       = errors.New("actorrep: a value that doesn't fit its field or parameter")
	ErrTooLarge    = errors.New("actorrep: parameters over 32 KiB")
	ErrRateLimited = errors.New("actorrep: called more often than its RateLimit")
	ErrInvalid     = errors.New("actorrep: parameters that the procedure's validation refuses")
)

const maxParams = 32 << 10

// Call calls. Where it runs is the procedure's kind. An error says that it runs nowhere, but for a MissedError of a
// reliable multicast. A reliable call without an error runs, unless its connection ends or Config.Failed is told. A client's
// doesn't run either, and nobody is told, when the actor has gone at the server by the time it comes there, or is another's.
func (r *RPC[A, P]) Call(a A, p P) error { return r.call(r, a, p) }

// call calls the procedure that is registered as one.
func (r *RPC[A, P]) call(as Procedure, a A, p P) error {
	b := a.base()
	if b.world == nil {
		return ErrNotSpawned
	}
	id := b.class.rpc(as)
	if id < 0 {
		return ErrNoProcedure
	}
	w := b.world
	here := Call{World: w, Peer: w.local, Frame: w.Frame(), Now: w.now}
	switch {
	case !w.server && r.def.kind != serverRPC:
		return ErrAuthority
	case w.server && r.def.kind == serverRPC:
		if r.valid != nil && !r.valid(here, a, p) {
			return ErrInvalid
		}
		return r.f(here, a, p)
	case r.def.kind == clientRPC && b.Owner() == nil:
		return ErrNoOwner
	case r.def.kind == clientRPC && b.Owner().local && r.f == nil:
		return ErrNoHandler
	case r.def.kind == clientRPC && b.Owner().local:
		return r.f(here, a, p)
	}
	proc := &b.class.rpcs[id]
	params := proc.take() // as p itself would escape
	*(*P)(params) = p
	err := w.call(b, proc, id, params)
	proc.give(params)
	if r.def.kind != multicast {
		return err
	}
	if _, some := err.(*MissedError); err != nil && !some {
		return err
	}
	if own := r.f(here, a, p); own != nil {
		return errors.Join(own, err)
	}
	return err
}

// call sends a call to where it runs.
func (w *World) call(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	switch {
	case !w.server:
		return w.client.call(b, proc, id, params)
	case proc.definition().kind == clientRPC:
		return b.Owner().call(b, proc, id, params)
	}
	return w.callAll(b, proc, id, params)
}

// encodeCall makes a call's message, which the caller holds.
func (w *World) encodeCall(proc *procedure, id int, frame uint32, params unsafe.Pointer) (*call, error) {
	d := proc.definition()
	if err := d.params.Check(params, d.params.All()); err != nil {
		w.Counters.Unfit++
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	m := w.message()
	m.SetLimit(maxParams * 8)
	d.params.WriteValue(m, params)
	if m.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, m.Err())
	}
	c := w.unheld.take()
	c.rpc, c.name, c.def, c.frame = id, proc.name, d, frame
	c.data, c.bits = append(c.data, m.Bytes()...), m.Len()
	return c, nil
}

// A call is
//
//	IntPacked  procedure    IntPacked  bits of the parameters    ...  parameters
//
// from a server with 32 bits of frame before it.
func (c *call) write(w *bitio.Writer) {
	w.WriteIntPacked(uint32(c.rpc))
	w.WriteIntPacked(uint32(c.bits))
	w.WriteBitsFrom(c.data, 0, c.bits)
}

// size is the bits that write takes.
func (c *call) size() int {
	return bitio.PackedBits(uint64(c.rpc)) + bitio.PackedBits(uint64(c.bits)) + c.bits
}

// readCall reads a call's head and its parameters as a reader of their own. That is the World's, as one made here would
// escape: it is done with before the call runs, which may lead to others.
func (w *World) readCall(r *bitio.Reader) (id int, params *bitio.Reader, err error) {
	proc, n := r.ReadIntPacked(), r.ReadIntPacked()
	if r.Err() != nil || proc >= maxProcedures || n > maxParams*8 || int(n) > r.Remaining() {
		return 0, nil, fmt.Errorf("%w: a call", errFormat)
	}
	r.SubTo(&w.in, int(n))
	return int(proc), &w.in, nil
}

// rateLimit is a bucket of calls.
type rateLimit struct {
	class, rpc int
	tokens     float64
	patience   float64 // refusals until the connection ends
	last       time.Duration
}

// patientFor is for how long's worth of calls at once a connection isn't ended.
const patientFor = time.Minute

// take reports whether a call is within its rate, and whether so many weren't that the caller keeps no rate at all.
func take(list *[]rateLimit, d *definition, class, rpc int, now time.Duration) (ok, flood bool) {
	if d.rate <= 0 {
		return true, false
	}
	patience := float64(d.burst) + d.rate*patientFor.Seconds()
	var l *rateLimit
	for i := range *list {
		if (*list)[i].class == class && (*list)[i].rpc == rpc {
			l = &(*list)[i]
		}
	}
	if l == nil {
		*list = append(*list, rateLimit{class: class, rpc: rpc, tokens: float64(d.burst), patience: patience, last: now})
		l = &(*list)[len(*list)-1]
	}
	grown := max(now-l.last, 0).Seconds() * d.rate
	l.tokens, l.patience = min(float64(d.burst), l.tokens+grown), min(patience, l.patience+grown)
	l.last = now
	if l.tokens >= 1 {
		l.tokens--
		return true, false
	}
	l.patience--
	return false, l.patience < 0
}
