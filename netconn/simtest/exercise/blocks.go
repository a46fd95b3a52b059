package exercise

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

var blocksName = bunch.Name{Index: 304}

// blocks is one end of a channel of large blocks.
type blocks struct {
	*message.Blocks
	flow
}

func (e *end) startBlocks() {
	if !e.g.opt.blocks || !e.opens() {
		return
	}
	e.open(blocksName, e.newBlocks())
}

func (e *end) newBlocks() *blocks {
	b := &blocks{flow: flow{e: e, out: e.newStream("blocks", simtest.ExactlyOnce)}}
	failed := func(id int64, err error) {
		if errors.Is(err, message.ErrNoChan) {
			return // the connection ended amid it
		}
		e.g.w.Failf("order", "%v: block %d: %v", e, id, err)
	}
	b.Blocks = message.NewBlocks(message.BlocksConfig{MaxBytes: 1 << 20, Received: b.received, Failed: failed, Broken: failed})
	e.blocks = b
	e.works = append(e.works, b)
	return b
}

func (e *end) acceptBlocks() channel.Handler {
	if e.blocks != nil {
		e.g.w.Failf("order", "%v: a second channel of blocks", e)
	}
	return e.newBlocks()
}

func (b *blocks) tick(time.Duration) {
	if !b.e.g.calm && !b.gone && b.e.perSecond(200) {
		b.send()
	}
}

func (b *blocks) send() {
	size := 8 + b.e.p.rng.IntN(20_000)
	data := make([]byte, size)
	n := b.out.Sent()
	binary.LittleEndian.PutUint32(data, uint32(b.out.id))
	binary.LittleEndian.PutUint32(data[4:], n)
	for i := 8; i < size; i++ {
		data[i] = byte(noise(uint32(b.out.id), n, i))
	}
	_, err := b.Send(data)
	switch {
	case errors.Is(err, message.ErrBlocks), errors.Is(err, message.ErrNoChan):
		b.out.Unsent()
	case err != nil:
		b.e.g.w.Failf("bounds", "%v: %v", b.out, err)
	default:
		b.e.g.Counters.Blocks++
	}
}

func (b *blocks) received(_ int64, data []byte) {
	if len(data) < 8 {
		b.e.g.w.Failf("order", "%v: a block of %d bytes", b.e, len(data))
		return
	}
	b.arrived("a block", binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), data, 8)
}

// Closed is the channel's.
func (b *blocks) Closed(ch *channel.Channel, r channel.CloseReason) {
	b.gone = true
	b.Blocks.Closed(ch, r)
}
