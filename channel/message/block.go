package message

import (
	"errors"
	"hash/crc32"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Blocks carries large blocks of data, files and levels, over a channel of its own in
// fragments of a packet each, several blocks at once. A fragment whose packet is lost is sent again at once;
// there are no timers, since the connection tells the fate of every packet. It takes what the
// connection's bandwidth leaves.
//
//	bits    a fragment, an unreliable bunch
//	16      block id
//	32      bytes of the block
//	32      CRC-32C of the block
//	32      fragment
//	...     up to 896 bytes
//
// Both ends must have the same channel type. The receiver takes blocks up to MaxBytes, MaxBlocks at a
// time, and makes room only as fragments come.
type Blocks struct {
	cfg BlocksConfig

	ch      *channel.Channel
	sending []*outBlock
	turn    int
	nextID  int64
	packets [blockWindow]fragmentsSent
	buf     [1024]byte

	receiving []*inBlock
	newest    int64     // highest block id seen
	over      [64]int64 // ids of blocks received, plus 1
	overAt    int

	// Counters is what happened.
	Counters BlockCounters
}

// BlocksConfig is the settings of Blocks; the zero value is useful.
type BlocksConfig struct {
	// MaxBytes bounds a block. Default 64 MiB.
	MaxBytes int
	// MaxBlocks bounds the blocks under way in each direction. Default 4.
	MaxBlocks int
	// Received gets a block that is complete and whose checksum is right. The data is the
	// callee's.
	Received func(id int64, data []byte)
	// Progress is told of each fragment that arrived, on the receiving side. May be nil.
	Progress func(id int64, have, total int)
	// Sent is told when a block has arrived whole, on the sending side. May be nil.
	Sent func(id int64)
	// Failed is told of a block whose checksum is wrong. May be nil.
	Failed func(id int64, err error)
}

// BlockCounters is what Blocks did.
type BlockCounters struct {
	Fragments, Resent, Received, Duplicate, Refused uint64
}

// blockWindow is how many packets are remembered until their fate is known: more than a
// connection has in flight.
const blockWindow = 4096

// fragmentBytes is the payload of each fragment but the last.
const fragmentBytes = 896

// Errors of blocks.
var (
	ErrBlocks   = errors.New("message: too many blocks under way; wait for one to arrive")
	ErrBlockBig = errors.New("message: block over MaxBytes")
	ErrEmpty    = errors.New("message: an empty block")
	ErrChecksum = errors.New("message: the block's checksum is wrong")
	ErrNoChan   = errors.New("message: blocks have no open channel")
)

type outBlock struct {
	id       int64
	data     []byte
	sum      uint32
	lost     []uint32 // fragments to send again
	next     uint32   // first fragment never sent
	count    uint32
	acked    bitmap
	ackedNum uint32
}

type inBlock struct {
	id    int64
	total int
	sum   uint32
	parts [][]byte // chunks of chunkBytes, made as fragments come
	have  bitmap
	bytes int
}

// fragmentsSent is what a packet carries: small fragments may share one.
type fragmentsSent struct {
	id    int64
	frags []fragmentSent
}

type fragmentSent struct {
	block int64
	frag  uint32
}

type bitmap []uint64

func newBitmap(n uint32) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) get(i uint32) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitmap) set(i uint32)      { b[i/64] |= 1 << (i % 64) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewBlocks returns an end without a channel; see Opened.
func NewBlocks(cfg BlocksConfig) *Blocks {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.MaxBlocks == 0 {
		cfg.MaxBlocks = 4
	}
	return &Blocks{cfg: cfg, newest: -1}
}

// Opened is the channel that blocks travel on; the end that opens it calls this at once.
func (b *Blocks) Opened(ch *channel.Channel) error {
	b.ch = ch
	if !ch.OpenedLocally() {
		return nil
	}
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{0}, Bits: 1, Reliable: true, NoMerge: true})
	return err
}

// Send begins to send data, which must stay as it is until Sent. It returns the block's id.
func (b *Blocks) Send(data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, ErrEmpty
	case len(data) > b.cfg.MaxBytes:
		return 0, ErrBlockBig
	case len(b.sending) >= b.cfg.MaxBlocks:
		return 0, ErrBlocks
	}
	n := uint32((len(data) + fragmentBytes - 1) / fragmentBytes)
	o := &outBlock{id: b.nextID, data: data, sum: crc32.Checksum(data, castagnoli), count: n, acked: newBitmap(n)}
	b.nextID++
	b.sending = append(b.sending, o)
	return o.id, nil
}

// Progress is how many fragments of a block that is being sent have arrived, and of how many.
func (b *Blocks) Progress(id int64) (arrived, total int) {
	for _, o := range b.sending {
		if o.id == id {
			return int(o.ackedNum), int(o.count)
		}
	}
	return 0, 0
}

// Tick sends fragments, the blocks taking turns, until the connection's bandwidth or its packet window
// is used up. Call it once a tick, before TickFlush.
func (b *Blocks) Tick() {
	if b.ch == nil || b.ch.Closing() || !b.ch.OpenAcked() {
		return
	}
	for idle := 0; idle < len(b.sending) && b.ch.Conn().IsNetReady(); {
		b.turn = (b.turn + 1) % len(b.sending)
		o := b.sending[b.turn]
		f, ok := o.due()
		if !ok {
			idle++
			continue
		}
		idle = 0
		if !b.sendFragment(o, f) {
			o.lost = append(o.lost, f)
			return
		}
	}
}

// due is the next fragment to send: lost ones first.
func (o *outBlock) due() (uint32, bool) {
	for n := len(o.lost); n > 0; n = len(o.lost) {
		f := o.lost[n-1]
		o.lost = o.lost[:n-1]
		if !o.acked.get(f) {
			return f, true
		}
	}
	if o.next < o.count {
		o.next++
		return o.next - 1, true
	}
	return 0, false
}

func (b *Blocks) sendFragment(o *outBlock, f uint32) bool {
	var w bitio.Writer
	w.Reset(b.buf[:])
	w.WriteUint16(seqnum.U16.Truncate(o.id))
	w.WriteUint32(uint32(len(o.data)))
	w.WriteUint32(o.sum)
	w.WriteUint32(f)
	start := int(f) * fragmentBytes
	w.WriteBytes(o.data[start:min(start+fragmentBytes, len(o.data))])
	r, err := b.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), NoMerge: true})
	if err != nil {
		return false
	}
	b.Counters.Fragments++
	slot := &b.packets[r.Last&(blockWindow-1)]
	if slot.id != r.Last {
		slot.id, slot.frags = r.Last, slot.frags[:0]
	}
	slot.frags = append(slot.frags, fragmentSent{o.id, f})
	return true
}

// settle calls f for each fragment that a packet carried of a block still under way.
func (b *Blocks) settle(packetID int64, f func(o *outBlock, frag uint32)) {
	slot := &b.packets[packetID&(blockWindow-1)]
	if slot.id != packetID {
		return
	}
	for _, s := range slot.frags {
		for _, o := range b.sending {
			if o.id == s.block {
				f(o, s.frag)
				break
			}
		}
	}
	slot.frags = slot.frags[:0]
}

// ReceivedAck is the channel's.
func (b *Blocks) ReceivedAck(_ *channel.Channel, packetID int64) { b.settle(packetID, b.ackFragment) }

// ReceivedNak is the channel's.
func (b *Blocks) ReceivedNak(_ *channel.Channel, packetID int64) { b.settle(packetID, b.loseFragment) }

func (b *Blocks) ackFragment(o *outBlock, f uint32) {
	if o.acked.get(f) {
		return
	}
	o.acked.set(f)
	if o.ackedNum++; o.ackedNum < o.count {
		return
	}
	for i, other := range b.sending {
		if other == o {
			b.sending = append(b.sending[:i], b.sending[i+1:]...)
			break
		}
	}
	b.turn = 0
	if b.cfg.Sent != nil {
		b.cfg.Sent(o.id)
	}
}

func (b *Blocks) loseFragment(o *outBlock, f uint32) {
	b.Counters.Resent++
	o.lost = append(o.lost, f)
}

// Closed is the channel's.
func (b *Blocks) Closed(*channel.Channel, channel.CloseReason) { b.ch = nil }

// ReceivedBunch is the channel's: a fragment.
func (b *Blocks) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b.ch = ch
	if in.Reliable {
		return // the opening bunch
	}
	r := &in.Data
	wire, total, sum, f := r.ReadUint16(), r.ReadUint32(), r.ReadUint32(), r.ReadUint32()
	n := (int64(total) + fragmentBytes - 1) / fragmentBytes
	if r.Err() != nil || total == 0 || int64(total) > int64(b.cfg.MaxBytes) || int64(f) >= n {
		b.Counters.Refused++
		return
	}
	size := min(fragmentBytes, int(total)-int(f)*fragmentBytes)
	if r.Remaining() != size*8 {
		b.Counters.Refused++
		return
	}
	blk := b.find(seqnum.U16.Expand(wire, max(0, b.newest)), int(total), sum, uint32(n))
	if blk == nil {
		return
	}
	b.store(blk, f, size, r)
}

// find is the block that a fragment belongs to, begun when it is new.
func (b *Blocks) find(id int64, total int, sum, n uint32) *inBlock {
	for _, blk := range b.receiving {
		if blk.id == id {
			if blk.total != total || blk.sum != sum {
				b.Counters.Refused++
				return nil
			}
			return blk
		}
	}
	if id < 0 || id <= b.newest-int64(len(b.over)) || b.finished(id) {
		b.Counters.Duplicate++
		return nil
	}
	if len(b.receiving) >= b.cfg.MaxBlocks {
		b.Counters.Refused++
		return nil
	}
	b.newest = max(b.newest, id)
	blk := &inBlock{id: id, total: total, sum: sum, have: newBitmap(n), parts: make([][]byte, (total+chunkBytes-1)/chunkBytes)}
	b.receiving = append(b.receiving, blk)
	return blk
}

// finished reports whether a block has been received whole, among the last 64.
func (b *Blocks) finished(id int64) bool {
	for _, f := range b.over {
		if f == id+1 {
			return true
		}
	}
	return false
}

// chunkBytes is how much room a block makes at a time.
const chunkBytes = 64 * fragmentBytes

func (b *Blocks) store(blk *inBlock, f uint32, size int, r *bitio.Reader) {
	if blk.have.get(f) {
		b.Counters.Duplicate++
		return
	}
	start := int(f) * fragmentBytes
	chunk := start / chunkBytes
	if blk.parts[chunk] == nil {
		blk.parts[chunk] = make([]byte, min(chunkBytes, blk.total-chunk*chunkBytes))
	}
	at := start - chunk*chunkBytes
	r.ReadBytes(blk.parts[chunk][at : at+size])
	blk.have.set(f)
	blk.bytes += size
	if b.cfg.Progress != nil {
		b.cfg.Progress(blk.id, blk.bytes, blk.total)
	}
	if blk.bytes == blk.total {
		b.complete(blk)
	}
}

func (b *Blocks) complete(blk *inBlock) {
	for i, other := range b.receiving {
		if other == blk {
			b.receiving = append(b.receiving[:i], b.receiving[i+1:]...)
			break
		}
	}
	b.over[b.overAt%len(b.over)] = blk.id + 1
	b.overAt++
	data := make([]byte, 0, blk.total)
	for _, p := range blk.parts {
		data = append(data, p...)
	}
	if crc32.Checksum(data, castagnoli) != blk.sum {
		if b.cfg.Failed != nil {
			b.cfg.Failed(blk.id, ErrChecksum)
		}
		return
	}
	b.Counters.Received++
	if b.cfg.Received != nil {
		b.cfg.Received(blk.id, data)
	}
}
