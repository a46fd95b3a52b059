// Package actorrep is what the analysers know of the real one.
package actorrep

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

type Actor interface{ base() *Base }

type Base struct {
	owner *Peer
	world *World
}

func (b *Base) base() *Base         { return b }
func (b *Base) GUID() netguid.GUID  { return 0 }
func (b *Base) SetOwner(p *Peer)    { b.owner = p }
func (b *Base) SetPriority(float32) {}
func (b *Base) IsOwned() bool       { return b.owner != nil }
func (b *Base) Role() Role          { return 0 }

type Role uint8

const (
	SimulatedProxy Role = iota
	Authority
)

type Peer struct{}

type Var[T any] struct {
	v    T
	base *Base
}

func (x *Var[T]) Get() T  { return x.v }
func (x *Var[T]) Set(v T) { x.v = v }

type World struct{}

type Config struct{}

func NewServer(cfg Config) *World                  { return &World{} }
func (w *World) Spawn(a Actor) error               { return nil }
func (w *World) SpawnIn(parent, child Actor) error { return nil }
func (w *World) Step(now time.Duration)            {}
func (w *World) All(yield func(Actor) bool)        {}

type Call struct {
	World *World
	Peer  *Peer
	Frame uint32
}

type definition struct{ reliable bool }

type RPCOption func(d *definition)

type Overflow uint8

const Coalesce Overflow = 1

func Reliable(d *definition)                           { d.reliable = true }
func OnOverflow(o Overflow) RPCOption                  { return func(*definition) {} }
func RateLimit(perSecond float64, burst int) RPCOption { return func(*definition) {} }

type RPC[A Actor, P any] struct{ def definition }

func ServerRPC[A Actor, P any](f func(Call, A, P) error, options ...RPCOption) *RPC[A, P] { return nil }
func ClientRPC[A Actor, P any](f func(Call, A, P) error, options ...RPCOption) *RPC[A, P] { return nil }
func MulticastRPC[A Actor, P any](f func(Call, A, P) error, options ...RPCOption) *RPC[A, P] {
	return nil
}

type RPC0[A Actor] struct{ rpc *RPC[A, struct{}] }

func ServerRPC0[A Actor](f func(Call, A) error, options ...RPCOption) *RPC0[A]    { return nil }
func ClientRPC0[A Actor](f func(Call, A) error, options ...RPCOption) *RPC0[A]    { return nil }
func MulticastRPC0[A Actor](f func(Call, A) error, options ...RPCOption) *RPC0[A] { return nil }

func (r *RPC0[A]) Call(a A) error                                 { return nil }
func (r *RPC0[A]) Handle(f func(Call, A) error)                   {}
func (r *RPC0[A]) Validated(f func(Call, A) bool) *RPC0[A]        { return r }
func (r *RPC[A, P]) Handle(f func(Call, A, P) error)              {}
func (r *RPC[A, P]) Call(a A, p P) error                          { return nil }
func (r *RPC[A, P]) Validated(f func(Call, A, P) bool) *RPC[A, P] { return r }
