package actorrep

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Call says where a procedure's call came from, and when.
type Call struct {
	World *World
	// Peer is the calling connection, on a server; World.Local for a call made by the server itself. It is nil on a
	// client.
	Peer *Peer
	// Frame is, on a client, the server's frame in which the call was made; on a server, the newest frame.
	Frame uint32
	// Now is the current time: on a server that of the TickDispatch in which the call arrived, on a client that of the
	// Step.
	Now time.Duration
}

// Procedure is an RPC of any type, as a value of RPCs.
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
	multicast                // the server calls; it runs on the server and on every client that sees the actor
)

// Overflow says what happens to a reliable call when the actor's channel is full. It is full when as many of its bunches
// are unacked as netconn.Protocol.ReliableBuffer allows, 1024 by default. A server's calls wait for its Step besides: of an actor MaxWaitingCalls are taken
// for a connection between two Steps, then Call returns ErrFull, unless Coalesce or DropOldest make room.
type Overflow uint8

// The policies. At most MaxWaitingCalls calls of an actor wait.
const (
	// Refuse returns ErrFull to the caller.
	Refuse Overflow = iota
	// Coalesce queues the call behind all that wait, in place of the oldest waiting call of the same procedure.
	Coalesce
	// DropOldest queues the call. When too many wait, the oldest of those with DropOldest is dropped; with none of them it returns ErrFull.
	DropOldest
	// CloseConn ends the connection. This is Unreal's policy.
	CloseConn
)

// MaxWaitingCalls bounds the reliable calls of an actor that wait for room in its channel, for each connection.
const MaxWaitingCalls = 64

// RPCOption configures a procedure.
type RPCOption func(d *definition)

// Reliable makes calls arrive, in order with the other reliable calls of the actor. A server's wakes a dormant actor for as
// long as it takes. Calls without it may be lost. They return ErrSaturated or ErrNotThere when they can't be sent at once;
// a caller may ignore that. A server's client procedure returns channel.ErrTooLarge when no packet has room for it; for a multicast, Counters.CallsDropped counts it.
var Reliable RPCOption = func(d *definition) { d.reliable = true }

// OnOverflow sets what happens to a reliable call when the channel is full. Default Refuse.
func OnOverflow(o Overflow) RPCOption { return func(d *definition) { d.overflow = o } }

// RateLimit limits the calls that a server accepts from one connection: perSecond on average, and burst at once. Calls
// above it are refused, on the client already; of reliable ones that the server refuses the client is told (RefusedError). After an outage, calls that were made within the limit may arrive
// together. A connection is ended when more calls are refused than a minute's worth plus the burst; only a cheating
// client does that.
func RateLimit(perSecond float64, burst int) RPCOption {
	return func(d *definition) { d.rate, d.burst = perSecond, max(burst, 1) }
}

// AnyClient lets every client that has the actor call a server procedure, not only the owner's. Call.Peer is the caller.
// A call is refused when its actor is no longer replicated to the caller on arrival. A dormant actor takes none: let the
// procedure be one of the player's own actor, with a Ref as its parameter. Combine it with a RateLimit.
var AnyClient RPCOption = func(d *definition) { d.anyClient = true }

// Borrowed passes a procedure the strings and slices of its parameters in reused memory, without allocation. They are
// valid until the procedure returns; what it keeps it must copy (strings.Clone, slices.Clone). The same holds for
// Validated's function. Slices within slices, and what values with their own serializer allocate, are still allocated
// for each call.
var Borrowed RPCOption = func(d *definition) { d.borrowed = true }

// definition is what both ends must agree on about a procedure, and its settings.
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

// runsAt reports whether the other end can have the procedure run at a server, or at a client.
func (d *definition) runsAt(server bool) bool {
	return d.kind == multicast || (d.kind == serverRPC) == server
}

// anyServerRPC is the wire's kind for a server procedure with AnyClient.
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

// RPC is a remote procedure of actors of type A, a pointer to a struct. P is the type of its parameters: any type that
// can be replicated; of a struct, all exported fields and embedded structs, with or without tags, and of structs in these all fields; its own unexported fields are zero when it runs at another end. Make it once, as a
// package-level variable. It gets its name when its class is registered.
type RPC[A Actor, P any] struct {
	def   definition
	f     func(c Call, a A, p P) error
	valid func(c Call, a A, p P) bool
}

// ServerRPC makes a procedure that the owner's client calls and the server runs.
//
//	var Fire = actorrep.ServerRPC(func(c actorrep.Call, s *Soldier, d Dir) error { ... }, actorrep.Reliable)
//	...
//	err := Fire.Call(soldier, dir)
//
// A call that was under way when the actor got another owner or went is refused on arrival. If the procedure is Reliable,
// its client is told: Config.Failed gets a RefusedError.
//
// f may be nil, here and for the other kinds: set it with Handle, or leave it out at the end that doesn't run it. When f calls the
// procedure that it is the function of, also by way of other functions, the compiler reports an "initialization cycle": use Handle.
func ServerRPC[A Actor, P any](f func(c Call, a A, p P) error, options ...RPCOption) *RPC[A, P] {
	return newRPC(serverRPC, f, options)
}

// ClientRPC makes a procedure that the server calls and the owner's client runs.
func ClientRPC[A Actor, P any](f func(c Call, a A, p P) error, options ...RPCOption) *RPC[A, P] {
	return newRPC(clientRPC, f, options)
}

// MulticastRPC makes a procedure that the server calls. It runs on the server and on every client that sees the actor.
// Unreliable calls are sent with the actor's values. They don't reach clients that haven't got the actor yet, nor any while it is dormant;
// Counters.CallsDropped counts these.
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
	if limited := r.def.burst > 0; limited && kind != serverRPC {
		r.def.err = errors.Join(r.def.err, errors.New("actorrep: RateLimit is for server procedures"))
	} else if limited && !(r.def.rate > 0 && r.def.rate <= math.MaxFloat32) {
		r.def.err = errors.Join(r.def.err, fmt.Errorf("actorrep: RateLimit %v must be a number above 0, of calls a second", r.def.rate))
	}
	return r
}

// Handle sets the function of a procedure that was made with nil. Call it in an init function when the function calls
// its own procedure, which would otherwise be a Go initialization cycle, or in a package that only the server has. It
// panics when the procedure has a function already.
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

// Validated adds a check that a server runs before the procedure. When f returns false the connection ends: use it for
// parameters that only a cheating client would send.
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

// lent is the parameters of a Borrowed procedure, with the memory of their strings and slices. A pointer to a lent is
// also a pointer to p.
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
	ErrNoProcedure = errors.New("actorrep: the procedure isn't registered with the actor's class, here or at the other end; give it to Register, in RPCs, at both ends")
	ErrNoHandler   = errors.New("actorrep: the procedure runs at this end and has no handler; give it one with Handle")
	ErrNotThere    = errors.New("actorrep: the other end has no channel for the actor; it doesn't have it yet, or any more")
	ErrSaturated   = errors.New("actorrep: no bandwidth for an unreliable call now")
	ErrFull        = errors.New("actorrep: too many reliable calls wait for acks")
	ErrUnfit       = errors.New("actorrep: a value that doesn't fit its field or parameter")
	ErrTooLarge    = errors.New("actorrep: parameters over 32 KiB")
	ErrRateLimited = errors.New("actorrep: called more often than its RateLimit")
	ErrInvalid     = errors.New("actorrep: parameters that the procedure's validation refuses")
)

// What ErrNotThere means for an actor that sleeps or was torn off.
var (
	errAsleep  = fmt.Errorf("%w: it is dormant; call an actor that is awake, such as the player's own, and name this one in a Ref", ErrNotThere)
	errTornOff = fmt.Errorf("%w: it was torn off, and is this client's own now", ErrNotThere)
	errUnwoken = fmt.Errorf("%w: it is dormant, and only a reliable call wakes it", ErrNotThere)
)

const maxParams = 32 << 10

// Call calls the procedure. Where it runs depends on its kind. After an error it runs nowhere, except for a MissedError
// of a reliable multicast. A reliable call without an error runs, unless the connection ends or Config.Failed gets an
// error; when the server refuses a client's, because the actor is gone on its arrival or has another owner, that is a
// RefusedError at the client.
func (r *RPC[A, P]) Call(a A, p P) error { return r.call(r, a, p) }

// call calls the procedure that is registered as the given one.
func (r *RPC[A, P]) call(as Procedure, a A, p P) error {
	if any(a) == any(*new(A)) { // nil
		return ErrNotSpawned
	}
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

// call sends a call to the end that runs it.
func (w *World) call(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	switch {
	case !w.server:
		return w.client.call(b, proc, id, params)
	case proc.definition().kind == clientRPC:
		return b.Owner().call(b, proc, id, params)
	}
	return w.callAll(b, proc, id, params)
}

// encodeCall encodes a call. The caller owns one reference to it.
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

// size is the number of bits that write writes.
func (c *call) size() int {
	return bitio.PackedBits(uint64(c.rpc)) + bitio.PackedBits(uint64(c.bits)) + c.bits
}

// readCall reads a call's head, and returns a reader of its parameters. That reader belongs to the World, because one
// made here would escape. It is no longer needed when the call runs, which may lead to other calls.
func (w *World) readCall(r *bitio.Reader) (id int, params *bitio.Reader, err error) {
	proc, n := r.ReadIntPacked(), r.ReadIntPacked()
	if r.Err() != nil || proc > holeCall || n > maxParams*8 || int(n) > r.Remaining() {
		return 0, nil, fmt.Errorf("%w: a call", errFormat)
	}
	r.SubTo(&w.in, int(n))
	return int(proc), &w.in, nil
}

// rateLimit is a token bucket for calls.
type rateLimit struct {
	class, rpc int
	tokens     float64
	patience   float64 // how many more refusals until the connection ends
	last       time.Duration
}

// patientFor: so much time's worth of calls may arrive at once without ending the connection.
const patientFor = time.Minute

// take reports whether a call is within its rate (ok), and whether so many weren't that the connection is to end
// (flood).
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
