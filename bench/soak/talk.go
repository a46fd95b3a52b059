package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
)

// The channels, all opened by clients.
var (
	numbersName = bunch.Name{Index: 300}
	messageName = [3]bunch.Name{{Index: 301}, {Index: 302}, {Index: 303}} // by mode
	blocksName  = bunch.Name{Index: 304}
	turnsName   = bunch.Name{Index: 305}
	streamName  = bunch.Name{Index: 306}
)

// totals is what arrived and was found right.
type totals struct{ numbers, messages, blocks, streams, calls, turns, bytes uint64 }

func (t *totals) add(o *totals) {
	t.numbers += o.numbers
	t.messages += o.messages
	t.blocks += o.blocks
	t.streams += o.streams
	t.calls += o.calls
	t.turns += o.turns
	t.bytes += o.bytes
}

// talk is one end of a client's bunches, messages and blocks; both ends send, and check what comes.
type talk struct {
	channel.Nop
	totals
	key     uint64 // of what this end sends
	peerKey uint64
	rng     *rand.Rand
	problem func(format string, args ...any)

	numbers  *channel.Channel
	sent     uint64 // numbered bunches
	got      uint64
	messages [3]*message.Attached
	kinds    [3]*message.Kind
	said     [3]uint32 // messages
	heard    [3]uint32 // in order: how many; newest wins: the newest and 1
	once     map[uint32]bool
	blocks   *message.Blocks
	gave     uint64 // blocks
	took     uint64
	buf      []byte
}

// item is a message.
type item struct {
	N    uint32
	Data []byte
}

const maxItem = 60

// Serialize implements message.Message.
func (m *item) Serialize(s *message.Stream) {
	s.Uint32(&m.N)
	s.Bytes(&m.Data, maxItem)
}

func newTalk(key, peerKey uint64, rng *rand.Rand, problem func(string, ...any)) *talk {
	t := &talk{key: key, peerKey: peerKey, rng: rng, problem: problem, once: map[uint32]bool{}}
	for mode := range t.messages {
		var reg message.Registry
		t.kinds[mode] = reg.Add("item", func() message.Message { return new(item) })
		t.messages[mode] = message.Attach(message.New(message.Config{Mode: message.Mode(mode), Kinds: &reg}))
		t.messages[mode].Failed = func(err error) { problem("messages of mode %d: %v", mode, err) }
	}
	failed := func(id int64, err error) {
		if !errors.Is(err, message.ErrNoChan) { // the client has left
			problem("block %d: %v", id, err)
		}
	}
	t.blocks = message.NewBlocks(message.BlocksConfig{MaxBytes: 1 << 20, MaxBlocks: 2, Received: t.tookBlock, Failed: failed, Broken: failed})
	return t
}

// fill writes the bytes that thing n of an end has.
func fill(b []byte, key, n uint64) {
	s := key ^ n*0x9e3779b97f4a7c15
	for i := range b {
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		b[i] = byte(s)
	}
}

// open opens the channels, on a client.
func (t *talk) open(open func(bunch.Name, channel.Handler) (*channel.Channel, error)) (err error) {
	if t.numbers, err = open(numbersName, t); err != nil {
		return err
	}
	for mode, m := range t.messages {
		if _, err := open(messageName[mode], m); err != nil {
			return err
		}
	}
	_, err = open(blocksName, t.blocks)
	return err
}

// step says something now and then, unless it is quiet, and takes what came.
func (t *talk) step(quiet bool, tick func(m *message.Attached)) {
	if !quiet {
		if t.numbers != nil && t.rng.IntN(3) == 0 {
			t.sendNumber()
		}
		for mode := range t.messages {
			if t.rng.IntN(3) == 0 {
				t.sendMessage(mode)
			}
		}
		if t.rng.IntN(100) == 0 && t.gave == t.blocksArrived() {
			t.sendBlock()
		}
	}
	for mode, m := range t.messages {
		tick(m)
		for msg, k := m.Receive(); msg != nil; msg, k = m.Receive() {
			t.receiveMessage(mode, msg.(*item))
			k.Free(msg)
		}
	}
}

func (t *talk) blocksArrived() uint64 { return t.gave - uint64(t.underWay()) }

// underWay is 1 while a block is.
func (t *talk) underWay() int {
	if t.gave == 0 {
		return 0
	}
	if _, total := t.blocks.Progress(int64(t.gave - 1)); total > 0 {
		return 1
	}
	return 0
}

// sendNumber sends the next numbered bunch: number 64 | bytes 32 | the bytes.
func (t *talk) sendNumber() {
	size := t.rng.IntN(150)
	switch t.rng.IntN(300) {
	case 0:
		size = 20_000
	case 1, 2, 3:
		size = 3000
	}
	b := binary.LittleEndian.AppendUint64(t.buf[:0], t.sent)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(b, make([]byte, size)...)
	fill(b[12:], t.key, t.sent)
	t.buf = b
	_, err := t.numbers.SendBunch(&bunch.Out{Data: b, Reliable: true, NoMerge: t.rng.IntN(2) == 0})
	switch {
	case err == nil:
		t.sent++
	case !errors.Is(err, channel.ErrReliableFull) && !errors.Is(err, channel.ErrClosed):
		t.problem("a numbered bunch: %v", err)
	}
}

// ReceivedBunch takes numbered bunches, maybe several merged.
func (t *talk) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	t.numbers = ch
	for in.Data.Remaining() > 0 {
		n, size := in.Data.ReadUint64(), in.Data.ReadUint32()
		if in.Data.Err() != nil || int(size) > in.Data.Remaining()/8 {
			t.problem("bunch %d is cut: %d of %d bytes", t.got, in.Data.Remaining()/8, size)
			return
		}
		got, want := make([]byte, size), make([]byte, size)
		in.Data.ReadBytes(got)
		fill(want, t.peerKey, n)
		switch {
		case n != t.got:
			t.problem("bunch %d came instead of %d", n, t.got)
		case !bytes.Equal(got, want):
			t.problem("bunch %d of %d bytes isn't what was sent", n, size)
		}
		t.got = n + 1
		t.totals.numbers++
		t.bytes += uint64(size)
	}
}

// ReceivedAck implements channel.Handler.

// ReceivedNak implements channel.Handler.

// Closed implements channel.Handler.

func (t *talk) sendMessage(mode int) {
	m := t.kinds[mode].New().(*item)
	m.N = t.said[mode]
	m.Data = append(m.Data[:0], make([]byte, t.rng.IntN(maxItem))...)
	fill(m.Data, t.key, uint64(m.N))
	err := t.messages[mode].Send(t.kinds[mode], m)
	t.kinds[mode].Free(m)
	switch {
	case err == nil:
		t.said[mode]++
	case !errors.Is(err, message.ErrFull) && !errors.Is(err, message.ErrClosed):
		t.problem("a message of mode %d: %v", mode, err)
	}
}

func (t *talk) receiveMessage(mode int, m *item) {
	want := make([]byte, len(m.Data))
	fill(want, t.peerKey, uint64(m.N))
	if !bytes.Equal(m.Data, want) {
		t.problem("message %d of mode %d isn't what was sent", m.N, mode)
	}
	switch message.Mode(mode) {
	case message.Ordered:
		if m.N != t.heard[mode] {
			t.problem("message %d came instead of %d", m.N, t.heard[mode])
		}
	case message.Unordered:
		if t.once[m.N] {
			t.problem("unreliable message %d came twice", m.N)
		}
		t.once[m.N] = true
	case message.Sequenced:
		if m.N < t.heard[mode] {
			t.problem("message %d came after %d, though newest wins", m.N, t.heard[mode]-1)
		}
	}
	t.heard[mode] = m.N + 1
	t.totals.messages++
	t.bytes += uint64(len(m.Data))
}

func (t *talk) sendBlock() {
	b := make([]byte, 1+t.rng.IntN(40_000))
	fill(b, t.key, t.gave)
	if _, err := t.blocks.Send(b); errors.Is(err, message.ErrNoChan) {
		return
	} else if err != nil {
		t.problem("block %d: %v", t.gave, err)
		return
	}
	t.gave++
}

func (t *talk) tookBlock(id int64, data []byte) {
	want := make([]byte, len(data))
	fill(want, t.peerKey, uint64(id))
	switch {
	case uint64(id) != t.took: // one at a time
		t.problem("block %d came instead of %d", id, t.took)
	case !bytes.Equal(data, want):
		t.problem("block %d of %d bytes isn't what was sent", id, len(data))
	}
	t.took = uint64(id) + 1
	t.totals.blocks++
	t.bytes += uint64(len(data))
}

// missing is what one end sent and the other hasn't got, or "".
func (t *talk) missing(to *talk) string {
	switch {
	case to.got != t.sent:
		return "bunches"
	case to.heard[message.Ordered] != t.said[message.Ordered]:
		return "messages"
	case to.took != t.gave:
		return "blocks"
	}
	return ""
}
