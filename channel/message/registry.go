package message

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Message is what queues carry.
type Message interface {
	// Serialize hands every field to s, in the same order whatever s does.
	Serialize(s *Stream)
}

// Kind is a registered type of message. It keeps messages for reuse.
type Kind struct {
	// Slack is how long a message of the kind may wait behind those sent after it, in a queue that is Unordered: of those that
	// don't all fit a packet, the one whose time of sending and Slack end first goes first. So nothing waits
	// for ever, however much of what is more urgent is sent. Default 0: older first.
	Slack time.Duration

	name string
	id   int
	make func() Message
	free []Message
	reg  *Registry
}

// Name is what the kind was registered under.
func (k *Kind) Name() string { return k.name }

// New is a message of the kind, maybe one used before: its fields hold what they held.
func (k *Kind) New() Message {
	if n := len(k.free); n > 0 {
		m := k.free[n-1]
		k.free = k.free[:n-1]
		return m
	}
	return k.make()
}

// maxFree bounds the messages kept for reuse.
const maxFree = 1024

// Free takes a message back that nobody uses any more.
func (k *Kind) Free(m Message) {
	if len(k.free) < maxFree {
		k.free = append(k.free, m)
	}
}

// Registry is the kinds of messages that two ends know, in the same order at both. The zero Registry
// is empty and ready. It belongs to one goroutine, as do the queues that use it.
type Registry struct {
	kinds     []*Kind
	stream    Stream       // kept here, since what Serialize gets would otherwise be allocated
	w         bitio.Writer // the same
	free      []*Encoded
	freeBytes int
}

// maxKinds bounds the kinds of a registry.
const maxKinds = 1024

// Add makes a kind known. It panics when there are more than 1024, or one of that name.
func (r *Registry) Add(name string, make func() Message) *Kind {
	if len(r.kinds) == maxKinds {
		panic("message: more than 1024 kinds")
	}
	for _, k := range r.kinds {
		if k.name == name {
			panic(fmt.Sprintf("message: kind %q is registered twice", name))
		}
	}
	k := &Kind{name: name, id: len(r.kinds), make: make, reg: r}
	r.kinds = append(r.kinds, k)
	return k
}
