// Package kv defines the operations and events between a key-value store and a state machine that uses it, such as those of netconn/fleet. It does no I/O itself.
// Package kv/kvsim is a simulated store; netconn/fleet/natskv is NATS JetStream.
//
//	machine                          store
//	  | Op: Get, Put or Delete  -->   |
//	  |   <-- Event Result, with the Op's ID, at most once, or never
//	  |   <-- Event Begin, Changed ..., Current: all keys that the machine watches
//	  |   <-- Event Changed or Deleted: each later change, in the order of revisions
//	  |   <-- Event Begin ...: the watch was broken, and starts again
//
// A key has a value and a revision. Each write of any key gets a revision higher than all before it. Op.Expect compares and sets: the
// write happens only if the key still has that revision.
//
// An Op may be lost, and so may its Result. An Op may also happen long after the machine gave up waiting for it. So without a Result, and with a
// Result of status Unknown, the machine doesn't know whether it happened, and must read the key. Of two writes that expect the same revision at most one happens.
// That holds for revision 0 as well: a Put that must find no key, and was begun before the key was deleted, doesn't make it again.
//
// When a store is lost and created again, its revisions begin with 1 again. Event.Store of the next Begin shows that.
//
// A watch may be late by any time, and may leave out values that were replaced meanwhile. It is never out of order.
package kv

import (
	"math"
	"time"
)

// Kind is the kind of an Op.
type Kind uint8

// The kinds of an Op.
const (
	Get Kind = iota
	Put
	Delete
)

// Any as Op.Expect writes whatever revision the key has.
const Any = math.MaxUint64

// MaxValue is the most bytes of a value.
const MaxValue = 64 << 10

// Op is a request to the store.
type Op struct {
	// ID is the machine's own number for it, which its Result has.
	ID   uint64
	Kind Kind
	Key  string
	// Value is what Put writes. The store may keep it: don't change it.
	Value []byte
	// Expect is the revision that the key must have for Put and Delete. 0: the key must not exist. Any: no matter.
	Expect uint64
	// TTL is how long the store keeps the value unless it is written again, rounded up to seconds. 0: for ever.
	TTL time.Duration
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of an Event.
const (
	Result  EventKind = iota // of the Op with the Event's ID
	Begin                    // of a watch: all keys follow, then Current. What doesn't follow no longer exists. Store says of which store
	Changed                  // a watched key was written
	Deleted                  // a watched key was deleted, or its TTL was over
	Current                  // of a watch: all keys have been told
)

// Status is the outcome of an Op.
type Status uint8

// The outcomes.
const (
	OK       Status = iota
	Conflict        // the key didn't have the revision expected; nothing was written
	Missing         // Get: there is no such key
	Unknown         // perhaps it happened, perhaps it didn't, perhaps it will
)

// Event is what a machine hears from the store.
type Event struct {
	Kind   EventKind
	ID     uint64 // Result
	Status Status // Result
	// Key, Value and Revision are the key's, for Changed, Deleted (without a Value) and the Result of a Get. The Result of a Put has
	// the new Revision.
	Key      string
	Value    []byte
	Revision uint64
	// Store is the store's number, of Begin. It is never 0. Another one than before means that the store was lost and made anew: all keys are
	// gone, revisions start again, and Results of Ops from before mean nothing.
	Store uint64
}

// Store is the store as one machine sees it. No method blocks. A Store belongs to the goroutine that owns the machine.
type Store interface {
	// Do begins an Op.
	Do(op Op)
	// Events returns what has come since the last call. It is valid until the next one.
	Events() []Event
}

// Machine is a part of a fleet's protocol: events go in, ops come out, and time is an argument.
type Machine interface {
	// Watches returns the keys that the machine's Store must watch. One that ends in "." stands for all keys that begin with it.
	Watches() []string
	// Step takes what came from the store, does what is due, and returns what the store shall do, which is valid until the next
	// call. now is any clock that never goes back.
	Step(now time.Duration, in []Event) []Op
}

// Tick steps a machine with its store.
func Tick(m Machine, s Store, now time.Duration) {
	for _, op := range m.Step(now, s.Events()) {
		s.Do(op)
	}
}

// Matches reports whether one of a machine's Watches stands for a key.
func Matches(watches []string, key string) bool {
	for _, w := range watches {
		if w == key || len(w) > 0 && w[len(w)-1] == '.' && len(key) > len(w) && key[:len(w)] == w {
			return true
		}
	}
	return false
}
