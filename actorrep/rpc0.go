package actorrep

import (
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// RPC0 is a remote procedure without parameters; see RPC.
type RPC0[A Actor] struct{ rpc *RPC[A, struct{}] }

// ServerRPC0 is a ServerRPC without parameters.
//
//	var Push = actorrep.ServerRPC0(func(c actorrep.Call, d *Door) error { ... }, actorrep.Reliable)
//	...
//	err := Push.Call(door)
func ServerRPC0[A Actor](f func(c Call, a A) error, options ...RPCOption) *RPC0[A] {
	return newRPC0(serverRPC, f, options)
}

// ClientRPC0 is a ClientRPC without parameters.
func ClientRPC0[A Actor](f func(c Call, a A) error, options ...RPCOption) *RPC0[A] {
	return newRPC0(clientRPC, f, options)
}

// MulticastRPC0 is a MulticastRPC without parameters.
func MulticastRPC0[A Actor](f func(c Call, a A) error, options ...RPCOption) *RPC0[A] {
	return newRPC0(multicast, f, options)
}

func newRPC0[A Actor](kind rpcKind, f func(c Call, a A) error, options []RPCOption) *RPC0[A] {
	r := &RPC0[A]{newRPC[A, struct{}](kind, nil, options)}
	if f != nil {
		r.Handle(f)
	}
	return r
}

// Call calls, as RPC.Call does.
func (r *RPC0[A]) Call(a A) error { return r.rpc.call(r, a, struct{}{}) }

// Handle sets what the procedure does, as RPC.Handle does.
func (r *RPC0[A]) Handle(f func(c Call, a A) error) {
	r.rpc.Handle(func(c Call, a A, _ struct{}) error { return f(c, a) })
}

// Validated adds a check, as RPC.Validated does.
func (r *RPC0[A]) Validated(f func(c Call, a A) bool) *RPC0[A] {
	r.rpc.Validated(func(c Call, a A, _ struct{}) bool { return f(c, a) })
	return r
}

func (r *RPC0[A]) definition() *definition { return r.rpc.definition() }

func (r *RPC0[A]) register(name string, actor reflect.Type) error { return r.rpc.register(name, actor) }

func (r *RPC0[A]) handled() bool { return r.rpc.handled() }

func (r *RPC0[A]) run(c Call, a Actor, params unsafe.Pointer) error { return r.rpc.run(c, a, params) }

func (r *RPC0[A]) check(c Call, a Actor, params unsafe.Pointer) bool {
	return r.rpc.check(c, a, params)
}

func (r *RPC0[A]) blank() unsafe.Pointer { return r.rpc.blank() }

func (r *RPC0[A]) zero(params unsafe.Pointer) { r.rpc.zero(params) }

func (r *RPC0[A]) decode(br *bitio.Reader, params unsafe.Pointer) { r.rpc.decode(br, params) }

func (r *RPC0[A]) borrow(params unsafe.Pointer) *layout.Memory { return r.rpc.borrow(params) }
