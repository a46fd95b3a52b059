// Package protomsg sends protobuf messages through package message, next to messages with
// a Serialize of their own. It is a module of its own, since google.golang.org/protobuf is a dependency.
//
//	kinds := new(message.Registry)
//	scores := protomsg.Add[*pb.Score](kinds, 0) // in the same order at both ends
//	err := protomsg.Send(q, scores, &pb.Score{Points: 7})
//	...
//	for m, _ := q.Receive(); m != nil; m, _ = q.Receive() {
//		switch m := m.(type) {
//		case *protomsg.Message[*pb.Score]:
//			fmt.Println(m.Proto.Points)
//			m.Free()
//		}
//	}
//
// On the wire a message is its length, a number from 0 to the kind's limit in as few bits as that needs, and its
// protobuf encoding. The message's kind says which type it is, so there is no envelope.
//
// # When to choose it
//
// When the messages exist in protobuf already, or other programs read them. A message with a Serialize of its own
// takes fewer bits and no allocation.
//
// # Bounds
//
// A message's encoding is bounded by the limit given to Add, default 700 bytes: beyond it Send returns
// [ErrTooLong]. It is also bounded by message.Config.MaxBits: beyond it Send returns message.ErrTooLarge.
package protomsg

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/bunchnet/bunchnet/channel/message"
)

// DefaultLimit is the limit of a kind, in bytes, when Add's limit is 0.
const DefaultLimit = 700

// Errors of messages; queues wrap them.
var (
	// ErrTooLong: the encoding exceeds the kind's limit. Send less, or as a block.
	ErrTooLong = errors.New("protomsg: encoding exceeds the limit of its kind")
	// ErrDecode: the peer sent bytes that aren't a protobuf message of the kind.
	ErrDecode = errors.New("protomsg: malformed protobuf")
)

// Kind is a registered type of protobuf message.
type Kind[T proto.Message] struct {
	*message.Kind
	limit int
}

// Message is a protobuf message in a queue.
type Message[T proto.Message] struct {
	Proto T

	kind *Kind[T]
	buf  []byte
	made bool // buf is Proto's encoding
}

// Add adds a protobuf message type to a registry, under its full protobuf name. limit bounds its encoding, in bytes; 0 is
// DefaultLimit. Both ends need the same limit.
func Add[T proto.Message](r *message.Registry, limit int) *Kind[T] {
	if limit <= 0 {
		limit = DefaultLimit
	}
	var zero T
	typ := zero.ProtoReflect().Type()
	k := &Kind[T]{limit: limit}
	k.Kind = r.Add(string(typ.Descriptor().FullName()), func() message.Message {
		return &Message[T]{kind: k, Proto: typ.New().Interface().(T)}
	})
	return k
}

// Send queues m. It encodes m at once, so the caller may change it afterwards. Errors: ErrTooLong, Queue.Send's, or
// protobuf's.
func Send[T proto.Message](q *message.Queue, k *Kind[T], m T) error {
	w := k.New().(*Message[T])
	var err error
	w.buf, err = proto.MarshalOptions{}.MarshalAppend(w.buf[:0], m)
	w.made = true
	switch {
	case err != nil:
		err = fmt.Errorf("protomsg: %w", err)
	case len(w.buf) > k.limit:
		err = fmt.Errorf("%w: %d bytes of %s, at most %d", ErrTooLong, len(w.buf), k.Name(), k.limit)
	default:
		err = q.Send(k.Kind, w)
	}
	w.Free()
	return err
}

// Free gives a received message back to its kind, for reuse.
func (m *Message[T]) Free() { m.kind.Free(m) }

// Serialize implements message.Message.
func (m *Message[T]) Serialize(s *message.Stream) {
	if !s.Reading() {
		if !m.made {
			s.Fail(errors.New("protomsg: queue messages with protomsg.Send"))
		}
		s.Bytes(&m.buf, m.kind.limit)
		return
	}
	m.made = false
	s.Bytes(&m.buf, m.kind.limit)
	if s.Err() != nil {
		return
	}
	if err := proto.Unmarshal(m.buf, m.Proto); err != nil {
		s.Fail(fmt.Errorf("%w: %w", ErrDecode, err))
	}
}
