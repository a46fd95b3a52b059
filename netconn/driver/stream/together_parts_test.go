package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
)

// kind is what a part carries.
type kind int

const (
	ordered kind = iota // messages
	unordered
	sequenced
	blocks
	bunches // reliable ones
	streams
	temporary // channels of one bunch
	kinds
)

func (k kind) name() bunch.Name { return bunch.Name{Index: uint32(320 + k)} }

// pace is how many items, or bytes of a stream, an end sends in a second, times together.speed.
func (k kind) pace() float64 { return [kinds]float64{10, 10, 10, 1, 10, 5000, 10}[k] }

// flow is what one part sends: numbered items.
type flow struct {
	w          *together
	id         int
	kind       kind
	from       int
	sent, got  int
	unreceived int // told to the sender at its end
	seen       map[int]bool
}

func (w *together) newFlow(k kind, from int) *flow {
	f := &flow{w: w, id: len(w.flows), kind: k, from: from, seen: map[int]bool{}}
	w.flows = append(w.flows, f)
	return f
}

func pattern(id, n, i int) byte {
	return byte((uint64(id)*0x9e3779b97f4a7c15 + uint64(n)*0xbf58476d1ce4e5b9 + uint64(i)*0x94d049bb133111eb) >> 56)
}

func (f *flow) body(n, size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = pattern(f.id, n, i)
	}
	return p
}

// arrived checks an item that came to an end.
func (w *together) arrived(k kind, at, id, n int, body []byte) {
	if id >= len(w.flows) || w.flows[id].kind != k || w.flows[id].from == at || n >= w.flows[id].sent {
		w.failf("item %d of flow %d came to end %d", n, id, at)
		return
	}
	f := w.flows[id]
	for i, b := range body {
		if b != pattern(id, n, i) {
			w.failf("item %d of flow %d came damaged", n, id)
			return
		}
	}
	switch k {
	case ordered, bunches:
		if n != f.got {
			w.failf("item %d of flow %d came, and not %d", n, id, f.got)
		}
	case sequenced:
		if n < f.got {
			w.failf("item %d of flow %d came after %d", n, id, f.got)
		}
		f.got = n
	default:
		if f.seen[n] {
			w.failf("item %d of flow %d came twice", n, id)
		}
		f.seen[n] = true
	}
	f.got++
}

// due is how many items an end sends in a tick.
func (e *togetherEnd) due(k kind) int {
	n := k.pace() * float64(e.w.speed) * e.tick.Seconds()
	if e.w.calm || e.w.parting {
		return 0
	}
	return int(n + e.w.rng.Float64())
}

func (e *togetherEnd) accept(k kind) channel.Handler {
	switch k {
	case blocks:
		return e.newBlocks()
	case bunches:
		return e.newBunches()
	case temporary:
		return &temporaryPart{e: e}
	}
	return e.newQueue(k)
}

// open opens one more part of a kind.
func (e *togetherEnd) open(k kind) {
	if e.conn.Closed() || e.conn.Closing() || e.w.calm {
		return
	}
	var err error
	if k == temporary {
		e.parts = append(e.parts, &temporaryPart{e: e, out: e.w.newFlow(k, e.i)})
		return
	}
	if k == streams {
		var c *Conn
		if c, err = Open(e.conn, k.name(), e.w.streams); err == nil {
			e.newStream(c)
		}
	} else {
		n := len(e.parts)
		if _, err = e.conn.Open(k.name(), e.accept(k)); err != nil {
			e.parts = e.parts[:n]
		}
	}
	if err != nil && !errors.Is(err, channel.ErrReliableFull) {
		e.w.failf("open of kind %d: %v", k, err)
	}
}

// chanPart is a part whose channel is the game's.
type chanPart struct {
	e       *togetherEnd
	k       kind
	ch      *channel.Channel
	out     *flow
	gone    bool
	closing bool
}

func (p *chanPart) over() bool { return p.gone }

func (p *chanPart) close() {
	if p.ch != nil && p.ch.OpenedLocally() && !p.gone && !p.closing && p.ch.Close(bunch.Destroyed) == nil {
		p.closing = true
		p.e.open(p.k)
	}
}

// queuePart is one end of a message queue.
type queuePart struct {
	*message.Attached
	chanPart
	letters *message.Kind
}

type letter struct {
	flow, n uint32
	body    []byte
}

func (l *letter) Serialize(s *message.Stream) {
	s.Uint32(&l.flow)
	s.Uint32(&l.n)
	s.Bytes(&l.body, 500)
}

func (e *togetherEnd) newQueue(k kind) *queuePart {
	var reg message.Registry
	q := &queuePart{chanPart: chanPart{e: e, k: k, out: e.w.newFlow(k, e.i)}, letters: reg.Add("letter", func() message.Message { return &letter{} })}
	q.Attached = message.Attach(message.New(message.Config{Mode: message.Mode(k), Kinds: &reg, Window: e.w.window}))
	q.Ended = func(unacked int) { q.out.unreceived = unacked }
	e.parts = append(e.parts, q)
	return q
}

func (q *queuePart) Opened(ch *channel.Channel) error {
	q.ch = ch
	return q.Attached.Opened(ch)
}

func (q *queuePart) Closed(ch *channel.Channel, r channel.CloseReason) {
	q.gone = true
	q.Attached.Closed(ch, r)
}

func (q *queuePart) tick(now time.Duration) {
	for n := q.e.due(q.k); n > 0 && !q.closing; n-- {
		size := q.e.w.rng.IntN(60)
		if q.e.w.rng.IntN(10) == 0 {
			size = q.e.w.rng.IntN(500)
		}
		err := q.Send(q.letters, &letter{uint32(q.out.id), uint32(q.out.sent), q.out.body(q.out.sent, size)})
		if err == nil {
			q.out.sent++
		} else if !noRoom(err) {
			q.e.w.failf("%v", err)
		}
	}
	q.Tick(now)
}

func (q *queuePart) receive() {
	for m, k := q.Receive(); m != nil; m, k = q.Receive() {
		l := m.(*letter)
		q.e.w.arrived(q.k, q.e.i, int(l.flow), int(l.n), l.body)
		k.Free(m)
	}
}

func (q *queuePart) pending() string {
	if q.Pending() > 0 || q.k == ordered && q.out.got < q.out.sent {
		return fmt.Sprintf("messages of flow %d: %d of %d came, %d queued", q.out.id, q.out.got, q.out.sent, q.Pending())
	}
	return ""
}

// blocksPart is one end of blocks.
type blocksPart struct {
	*message.Blocks
	chanPart
	under map[int64]int // what is under way, by id
}

func (e *togetherEnd) newBlocks() *blocksPart {
	b := &blocksPart{chanPart: chanPart{e: e, k: blocks, out: e.w.newFlow(blocks, e.i)}, under: map[int64]int{}}
	broken := func(id int64, err error) {
		if !errors.Is(err, message.ErrNoChan) && !errors.Is(err, message.ErrRoom) && !errors.Is(err, message.ErrBlockBig) {
			e.w.failf("block %d: %v", id, err)
		}
	}
	told := func(id int64) int {
		n, ok := b.under[id]
		if delete(b.under, id); !ok {
			e.w.failf("told of block %d, which isn't under way", id)
		}
		return n
	}
	b.Blocks = message.NewBlocks(message.BlocksConfig{MaxBytes: e.w.largest, MaxBlocks: 16, Broken: broken,
		Received: func(_ int64, p []byte) {
			if len(p) < 8 {
				e.w.failf("a block of %d bytes", len(p))
				return
			}
			e.w.arrived(blocks, e.i, int(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint32(p[4:])), p[8:])
		},
		Sent: func(id int64) {
			if n := told(id); !b.out.seen[n] {
				e.w.failf("block %d hasn't come", n)
			}
		},
		Failed: func(id int64, err error) {
			told(id)
			broken(id, err)
		},
	})
	e.parts = append(e.parts, b)
	return b
}

func (b *blocksPart) Opened(ch *channel.Channel) error {
	b.ch = ch
	return b.Blocks.Opened(ch)
}

func (b *blocksPart) Closed(ch *channel.Channel, r channel.CloseReason) {
	b.gone = true
	if b.Blocks.Closed(ch, r); len(b.under) > 0 {
		b.e.w.failf("nothing was told of %d blocks", len(b.under))
	}
}

func (b *blocksPart) tick(time.Duration) {
	for n := b.e.due(blocks); n > 0 && !b.closing; n-- {
		size := b.e.w.rng.IntN(2000)
		if b.e.w.rng.IntN(5) == 0 {
			size = b.e.w.rng.IntN(b.e.w.largest - 8)
		}
		p := binary.LittleEndian.AppendUint32(nil, uint32(b.out.id))
		p = binary.LittleEndian.AppendUint32(p, uint32(b.out.sent))
		id, err := b.Send(append(p, b.out.body(b.out.sent, size)...))
		if err == nil {
			b.under[id] = b.out.sent
			b.out.sent++
		} else if !noRoom(err) {
			b.e.w.failf("%v", err)
		}
	}
}

func (b *blocksPart) receive() {}

func (b *blocksPart) pending() string {
	if len(b.under) > 0 {
		return fmt.Sprintf("%d blocks", len(b.under))
	}
	return ""
}

// bunchesPart is one end of a channel of reliable bunches.
type bunchesPart struct {
	channel.Nop
	chanPart
	index uint32
	atEnd bool // the end of the connection ended it
}

func (e *togetherEnd) newBunches() *bunchesPart {
	p := &bunchesPart{chanPart: chanPart{e: e, k: bunches, out: e.w.newFlow(bunches, e.i)}}
	e.parts = append(e.parts, p)
	return p
}

func (p *bunchesPart) Opened(ch *channel.Channel) error {
	p.index = ch.Index()
	if p.ch = ch; ch.OpenedLocally() {
		p.send(10)
	}
	return nil
}

func (p *bunchesPart) Closed(*channel.Channel, channel.CloseReason) {
	p.gone, p.atEnd = true, p.e.conn.Closed()
}

func (p *bunchesPart) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	for r := &in.Data; r.Remaining() > 0; {
		id, n, size := r.ReadUint32(), r.ReadUint32(), r.ReadUint32()
		body := make([]byte, min(int(size), r.Remaining()/8))
		r.ReadBytes(body)
		p.e.w.arrived(bunches, p.e.i, int(id), int(n), body)
	}
}

func (p *bunchesPart) send(size int) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.out.id))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.out.sent))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(b, p.out.body(p.out.sent, size)...)
	if parts := len(b)*8/p.ch.Conn().Table().SingleBits() + 2; p.ch.Room() < parts {
		return
	}
	_, err := p.ch.SendBunch(&bunch.Out{Data: b, Reliable: true})
	if err == nil {
		p.out.sent++
	} else if !noRoom(err) {
		p.e.w.failf("%v", err)
	}
}

func (p *bunchesPart) tick(time.Duration) {
	for n := p.e.due(bunches); n > 0 && !p.closing; n-- {
		size := p.e.w.rng.IntN(100)
		if p.e.w.rng.IntN(20) == 0 {
			size = p.e.w.rng.IntN(20_000)
		}
		p.send(size)
	}
}

func (p *bunchesPart) receive() {}

func (p *bunchesPart) pending() string {
	if p.out.got < p.out.sent {
		return fmt.Sprintf("bunches of flow %d: %d of %d came", p.out.id, p.out.got, p.out.sent)
	}
	return ""
}

// streamPart is one end of a stream.
type streamPart struct {
	e           *togetherEnd
	c           *Conn
	peer        *streamPart // once it is accepted
	wrote, got  int
	fin, closed bool
	ended       bool // Read has returned an error
}

func (e *togetherEnd) newStream(c *Conn) *streamPart {
	s := &streamPart{e: e, c: c}
	e.parts = append(e.parts, s)
	return s
}

// acceptStreams takes the streams that the peer has opened.
func (e *togetherEnd) acceptStreams() {
	for e.listener.count() > 0 {
		c, err := e.listener.Accept()
		if err != nil {
			e.w.failf("%v", err)
			return
		}
		s := e.newStream(c.(*Conn))
		for _, p := range e.w.ends[1-e.i].parts {
			if p, is := p.(*streamPart); is && p.peer == nil && p.c.local.Channel == s.c.local.Channel {
				s.peer, p.peer = p, s
				break
			}
		}
	}
}

// state is what the stream's calls wouldn't wait for.
func (s *streamPart) state() (writable int, readable, gone bool) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !c.fin && !c.ended && !c.parting && !c.peerStopped && c.refusal == 0 {
		writable = c.out.free()
	}
	return writable, c.in.n > 0 || c.peerFin || c.ended || c.refusal != 0, c.ended
}

func (s *streamPart) over() bool {
	_, _, gone := s.state()
	return gone
}

// which tells the directions of a stream apart, by the end that writes.
func (s *streamPart) which(writer int) int { return 2*int(s.c.local.Channel) + writer }

func (s *streamPart) tick(time.Duration) {
	room, _, _ := s.state()
	if n := min(room, s.e.due(streams)); n > 0 {
		p := make([]byte, n)
		for i := range p {
			p[i] = pattern(s.which(s.e.i), 0, s.wrote+i)
		}
		n, err := s.c.Write(p)
		if s.wrote += n; err != nil {
			s.e.w.failf("%v", err)
		}
	}
	switch r := s.e.w.rng; {
	case s.closed:
	case s.fin && s.ended:
		s.end()
	case !s.fin && (s.e.w.calm || s.wrote > 0 && r.IntN(1000) == 0):
		if s.fin = true; !s.e.w.calm && r.IntN(2) == 0 {
			s.end()
		} else if err := s.c.CloseWrite(); err != nil {
			s.e.w.failf("%v", err)
		}
	}
}

func (s *streamPart) end() {
	s.fin, s.closed = true, true
	if err := s.c.Close(); err != nil {
		s.e.w.failf("%v", err)
	}
}

func (s *streamPart) close() {
	if !s.closed {
		s.end()
	}
	s.e.open(streams)
}

func (s *streamPart) receive() {
	for buf := [4096]byte{}; !s.closed && !s.ended; {
		if _, readable, _ := s.state(); !readable {
			return
		}
		n, err := s.c.Read(buf[:])
		for i, b := range buf[:n] {
			if b != pattern(s.which(1-s.e.i), 0, s.got+i) {
				s.e.w.failf("byte %d of stream %v", s.got+i, s.c.local)
				return
			}
		}
		s.got += n
		if s.ended = err != nil; err == io.EOF && s.peer != nil && s.got != s.peer.wrote && !s.peer.cut() {
			s.e.w.failf("stream %v ends after %d bytes of %d", s.c.local, s.got, s.peer.wrote)
		}
	}
}

// cut reports whether the stream threw away what it had written, as its reader has stopped.
func (s *streamPart) cut() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.peerStopped
}

func (s *streamPart) pending() string {
	return fmt.Sprintf("the end of stream %v, %d bytes written, %d read", s.c.local, s.wrote, s.got)
}

// temporaryPart opens channels of one bunch, and gets what comes on those of the peer.
type temporaryPart struct {
	channel.Nop
	e     *togetherEnd
	out   *flow
	ended bool
}

func (p *temporaryPart) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	r := &in.Data
	id, n := r.ReadUint32(), r.ReadUint32()
	body := make([]byte, r.Remaining()/8)
	r.ReadBytes(body)
	p.e.w.arrived(temporary, p.e.i, int(id), int(n), body)
}

func (p *temporaryPart) tick(time.Duration) {
	for n := p.e.due(temporary); n > 0 && !p.over(); n-- {
		ch, err := p.e.conn.Open(temporary.name(), channel.Nop{})
		if errors.Is(err, channel.ErrNoIndex) || noRoom(err) {
			return
		} else if err != nil {
			p.e.w.failf("%v", err)
			return
		}
		size := p.e.w.rng.IntN(100)
		if p.e.w.rng.IntN(5) == 0 {
			size = p.e.w.rng.IntN(4000)
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(p.out.id))
		b = binary.LittleEndian.AppendUint32(b, uint32(p.out.sent))
		_, err = ch.SendTemporary(&bunch.Out{Data: append(b, p.out.body(p.out.sent, size)...)})
		p.out.sent++
		if err != nil {
			if !noRoom(err) && !errors.Is(err, channel.ErrNotSent) {
				p.e.w.failf("%v", err)
			}
			if err := ch.Close(bunch.Destroyed); err != nil {
				p.e.w.failf("%v", err)
			}
		}
	}
}

func (p *temporaryPart) receive()        {}
func (p *temporaryPart) over() bool      { return p.ended || p.e.conn.Closed() || p.e.conn.Closing() }
func (p *temporaryPart) pending() string { return "" }
func (p *temporaryPart) close()          { p.ended = p.e.w.calm }
