package message

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Message is what queues carry: usually a pointer to a struct.
type Message interface {
	// Serialize passes every field to s. The order must be the same for writing, reading and measuring.
	Serialize(s *Stream)
}

// Kind is a registered type of message. It keeps messages for reuse.
type Kind struct {
	// Slack is how long a message of the kind may wait behind later ones, in an Unordered queue. When not all fit a
	// packet, the one whose time of Send plus Slack is earliest goes first. So no message waits for ever, however many
	// urgent ones are sent. Default 0: older ones first.
	Slack time.Duration

	name string
	id   int
	make func() Message
	typ  reflect.Type // what make returns; nil until it was needed
	free []Message
	size int // bytes of the largest that was read or encoded
	reg  *Registry
}

// Name is the name under which the kind was registered.
func (k *Kind) Name() string { return k.name }

// New returns a message of the kind. It may be a used one, with its old field values.
func (k *Kind) New() Message {
	if n := len(k.free); n > 0 {
		m := k.free[n-1]
		k.forget()
		return m
	}
	return k.make()
}

// The messages that a kind, and the bytes that all kinds of a registry keep for reuse. Each message counts as the largest of its kind.
const (
	maxFree         = 1024
	maxFreeMessages = 4 << 20
)

// Free takes back a message that isn't used any more; of one that was given twice New returns the same twice. It panics when m is none of the kind, which New would return later.
func (k *Kind) Free(m Message) {
	if err := k.check(m); err != nil {
		panic(err)
	}
	if r := k.reg; len(k.free) < maxFree && r.freeMessages+messageCost+k.size <= maxFreeMessages {
		k.free = append(k.free, m)
		r.freeMessages += messageCost + k.size
	}
}

// check is an error when m isn't of the type that the kind's function makes: it would be read as one at the other end.
func (k *Kind) check(m Message) error {
	if k.typ == nil {
		k.typ = reflect.TypeOf(k.make())
	}
	if t := reflect.TypeOf(m); t != k.typ {
		return fmt.Errorf("%w: a %s is a %v, and not a %v", ErrKind, k.name, k.typ, t)
	}
	return nil
}

// forget takes the last unused message off the list.
func (k *Kind) forget() {
	n := len(k.free) - 1
	k.free[n] = nil
	k.free = k.free[:n]
	k.reg.freeMessages -= messageCost + k.size
}

// saw notes the size of a message that was read or encoded: its bits, and what its fields have room for beyond these.
func (k *Kind) saw(bits, spare int) {
	more := (bits+7)/8 + spare - k.size
	if more <= 0 {
		return
	}
	k.size += more
	k.reg.freeMessages += len(k.free) * more
	for k.reg.freeMessages > maxFreeMessages && len(k.free) > 0 {
		k.forget()
	}
}

// Registry holds the kinds of messages. Both ends must add the same kinds in the same order: a message has only the number of its kind. When they differ, Receive
// returns a message of another kind if its bits can be read as one, and the connection ends with ErrFormat if not. The zero Registry is empty and ready
// to use. It belongs to one goroutine, as do the queues that use it.
type Registry struct {
	kinds     []*Kind
	stream    Stream       // kept here, since what Serialize gets would otherwise be allocated
	w         bitio.Writer // the same
	free      []*Encoded
	freeBytes int

	freeMessages int // bytes of the unused messages of all kinds
}

// maxKinds bounds the kinds of a registry.
const maxKinds = 1024

// Add adds a kind. It panics above 1024 kinds, when the name is taken, or when make is nil.
func (r *Registry) Add(name string, make func() Message) *Kind {
	if make == nil {
		panic(fmt.Sprintf("message: kind %q has no function that makes one", name))
	}
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
