package exercise

import (
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// queueModes is the queues of a connection, each on its channel, with what it promises.
var queueModes = [3]struct {
	mode     message.Mode
	delivery simtest.Delivery
	name     string
}{
	{message.Ordered, simtest.InOrder, "ordered messages"},
	{message.Unordered, simtest.AtMostOnce, "unordered messages"},
	{message.Sequenced, simtest.Newest, "newest messages"},
}

func queueName(i int) bunch.Name { return bunch.Name{Index: uint32(301 + i)} }

// letter is a message.
type letter struct {
	stream, n uint32
	body      []byte
}

const maxBody = 400

// Serialize is message.Message's.
func (l *letter) Serialize(s *message.Stream) {
	s.Uint32(&l.stream)
	s.Uint32(&l.n)
	s.Bytes(&l.body, maxBody)
}

// queue is one end of a message queue.
type queue struct {
	*message.Attached
	flow
	kind *message.Kind
}

func (e *end) startMessages() {
	for i := range queueModes {
		if !e.g.opt.messages || !e.opens() {
			return
		}
		e.open(queueName(i), e.newQueue(i))
	}
}

func (e *end) newQueue(i int) *queue {
	reg := &message.Registry{}
	q := &queue{flow: flow{e: e, out: e.newStream(queueModes[i].name, queueModes[i].delivery)}, kind: reg.Add("letter", func() message.Message { return &letter{} })}
	q.Attached = message.Attach(message.New(message.Config{Mode: queueModes[i].mode, Kinds: reg, Window: 256}))
	e.queues[i] = q
	e.works = append(e.works, q)
	return q
}

func (e *end) acceptQueue(i int) channel.Handler {
	if e.queues[i] != nil {
		e.g.w.Failf("order", "%v: a second channel of %s", e, queueModes[i].name)
	}
	return e.newQueue(i)
}

func (q *queue) tick(now time.Duration) {
	r := q.e.p.rng
	for n := r.IntN(4); n > 0 && !q.e.g.calm && !q.gone; n-- {
		if !q.send(r.IntN(maxBody)) {
			break
		}
	}
	q.Attached.Tick(now)
	for m, k := q.Receive(); m != nil; m, k = q.Receive() {
		l := m.(*letter)
		q.arrived("a message", l.stream, l.n, l.body, 0)
		k.Free(m)
	}
	if n := q.Pending(); n > 256 {
		q.e.g.w.Failf("bounds", "%v holds %d of 256 messages", q.out, n)
	}
}

func (q *queue) send(size int) bool {
	if q.Pending() >= 256 {
		return false
	}
	l := q.kind.New().(*letter)
	l.stream, l.n, l.body = uint32(q.out.id), q.out.Sent(), l.body[:0]
	for i := range size {
		l.body = append(l.body, byte(noise(l.stream, l.n, i)))
	}
	if err := q.Send(q.kind, l); err != nil && !errors.Is(err, message.ErrFull) {
		q.e.g.w.Failf("bounds", "%v: %v", q.out, err)
	}
	q.kind.Free(l)
	q.e.g.Counters.Messages++
	return true
}

// Closed is the channel's.
func (q *queue) Closed(ch *channel.Channel, r channel.CloseReason) {
	q.gone = true
	q.Attached.Closed(ch, r)
}
