package message

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Blocks carries large blocks of data, such as files and levels, several at once, over a channel of its own. It splits them
// into fragments that fit a packet. A fragment whose packet is lost is sent again at once; there are no timers, since the
// connection tells the fate of every packet. It uses the bandwidth that the connection has left; several Blocks share that.
//
//	bits    a fragment, an unreliable bunch
//	16      block id
//	32      bytes of the block
//	32      CRC-32C of the block
//	32      fragment
//	...     up to 896 bytes
//
//	bits    a note, a reliable bunch
//	8       0 bounds, 1 done, 2 damaged, 3 withdrawn, 4 refused
//	32      bounds: MaxBytes; otherwise the block id in 16 bits
//	32      bounds: MaxBlocks
//	64      bounds: MaxHeld
//
// Each end tells its bounds when the channel opens, and the sender keeps within those of the peer. For a block that is
// too large for the peer Send returns ErrBlockBig; Failed gets it when the bounds came after Send. Blocks beyond the
// peer's number or total size wait. Blocks being received count within the MaxMemory of the connection. So the bounds told
// are at most what 15/16 of channel.Channel.MaxHold have room for, and leave 3/16 of it or 48 KiB: 2.55 MB with the 8 MiB of a server, 20.5 MB with the
// 64 MiB of a client. When other data has used that memory, a block is refused: Failed and Broken get ErrRoom.
// The receiver keeps the fragments that came, at most 4096 ahead of the first that is missing, whatever size a
// block claims. The note that a block is done tells the sender that it has arrived whole.
type Blocks struct {
	cfg BlocksConfig

	ch     *channel.Channel
	ours   bounds // the configured ones, until they are told
	known  bool   // the peer's bounds
	bounds bounds
	notes  []note  // of bounds and of what is withdrawn, which wait for room
	arming *arming // of send, which is called in each of the connection's Ticks; nil when it isn't

	sending []*outBlock
	turn    int
	nextID  int64
	// withdrew is set while the peer may not know of blocks that were withdrawn: its window begins with them.
	withdrew bool
	flying   inFlight[fragmentSent]
	buf      [1024]byte

	receiving []*inBlock
	oldest    int64          // all blocks below are over, and the peer is told
	over      [idWindow]byte // of block id, at id%idWindow: 0 while it isn't over, the note to be sent, or told
	untold    int            // blocks that are over, whose note is to be sent
	from      int64          // none of them is before it
	held      int            // bytes

	// Counters is what happened.
	Counters BlockCounters
}

// BlocksConfig configures Blocks. The zero value is useful.
type BlocksConfig struct {
	// MaxBytes bounds a block in either direction, in bytes, up to 4294967295. Default 64 MiB. To receive blocks above 2.55 MB on a server, or 20.5
	// MB on a client, also raise netconn.Config.MaxMemory, to 3.3 times MaxHeld.
	MaxBytes int
	// MaxBlocks bounds the unfinished blocks in each direction. Default 4, at most 512.
	MaxBlocks int
	// MaxHeld bounds the total size of the blocks being received, in bytes, within the connection's MaxMemory. Default
	// MaxBytes, the least. Their memory is at most 8/7 of MaxHeld, and 1.5 KiB for each block.
	MaxHeld int
	// Received gets a complete block whose checksum is right. It may keep data. At an end without it the connection ends when a block comes.
	Received func(id int64, data []byte)
	// Progress is called on the receiving side for each fragment that arrived, with the bytes that have arrived and those of the block. May be nil.
	Progress func(id int64, have, total int)
	// Sent is called when the peer has confirmed a whole block. May be nil.
	Sent func(id int64)
	// Failed is called for a block that this end sent and that isn't known to have arrived: with ErrChecksum, with ErrBlockBig when the
	// peer's bounds arrived after Send, with ErrRoom, or with ErrNoChan when the channel closed. May be nil.
	Failed func(id int64, err error)
	// Broken is called on the receiving side for a block that began to arrive and won't be completed: with ErrChecksum,
	// ErrRoom or ErrNoChan. May be nil.
	Broken func(id int64, err error)
}

// BlockCounters counts fragments sent and resent, blocks received, and fragments that were duplicates or refused.
type BlockCounters struct {
	Fragments, Resent, Received, Duplicate, Refused uint64
}

const (
	// fragmentBytes is the payload of each fragment but the last.
	fragmentBytes = 896
	// ahead is how many fragments one may be before the first that is missing.
	ahead = 4096
	// idWindow is how many ids one block may be ahead of the oldest that is under way.
	idWindow  = 1024
	maxBlocks = idWindow / 2
)

// Errors of blocks.
var (
	// ErrBlocks: MaxBlocks blocks are being sent.
	ErrBlocks = errors.New("message: too many blocks under way; wait for one to arrive")
	// ErrBlockBig: the block is over MaxBytes, or over the peer's bounds.
	ErrBlockBig = errors.New("message: the block is too large")
	// ErrRoom: the receiver's MaxMemory is used up.
	ErrRoom  = errors.New("message: the receiver has no room left within its MaxMemory; send the block again later")
	ErrEmpty = errors.New("message: an empty block")
	// ErrChecksum: the block arrived damaged, or data was changed while it was sent.
	ErrChecksum = errors.New("message: the block's checksum is wrong")
	// ErrNoChan: there is no open channel, or it closed.
	ErrNoChan = errors.New("message: blocks have no open channel")
)

// ErrBounds ends the connection: the peer sent more than the bounds it was told.
var ErrBounds = errors.New("message: the peer sent blocks beyond the bounds it was told")

// bounds is what an end takes.
type bounds struct{ bytes, blocks, held int64 }

// note is a reliable bunch.
type note struct {
	kind byte
	id   int64
}

const (
	noteBounds byte = iota
	noteDone
	noteDamaged
	noteWithdrawn
	noteRefused
	told // there is no note to be sent
)

type outBlock struct {
	id       int64
	data     []byte
	sum      uint32
	active   bool     // counts among what the peer holds
	lost     []uint32 // fragments to send again
	next     uint32   // first fragment never sent
	missing  uint32   // first fragment not acked
	count    uint32
	acked    bitmap
	ackedNum uint32
}

// fragmentSent is a fragment in a packet: small ones may share one.
type fragmentSent struct {
	block int64
	frag  uint32
}

type bitmap []uint64

func newBitmap(n uint32) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) get(i uint32) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitmap) set(i uint32)      { b[i/64] |= 1 << (i % 64) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewBlocks returns Blocks without a channel: give it to Table.Open, or return it from a Type's Accept. It panics when
// cfg's bounds are out of range.
func NewBlocks(cfg BlocksConfig) *Blocks {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.MaxBlocks == 0 {
		cfg.MaxBlocks = 4
	}
	if cfg.MaxHeld == 0 {
		cfg.MaxHeld = cfg.MaxBytes
	}
	switch {
	case cfg.MaxBytes < 0 || int64(cfg.MaxBytes) > math.MaxUint32:
		panic(fmt.Errorf("%w: MaxBytes %d must be from 1 to %d", ErrConfig, cfg.MaxBytes, uint32(math.MaxUint32)))
	case cfg.MaxBlocks < 0 || cfg.MaxBlocks > maxBlocks:
		panic(fmt.Errorf("%w: MaxBlocks %d must be from 1 to %d", ErrConfig, cfg.MaxBlocks, maxBlocks))
	case cfg.MaxHeld < cfg.MaxBytes:
		panic(fmt.Errorf("%w: MaxHeld %d must be at least MaxBytes, %d", ErrConfig, cfg.MaxHeld, cfg.MaxBytes))
	}
	return &Blocks{cfg: cfg, ours: cfg.bounds()}
}

func (c *BlocksConfig) bounds() bounds {
	return bounds{int64(c.MaxBytes), int64(c.MaxBlocks), int64(c.MaxHeld)}
}

// Opened implements channel.Opener: it takes the channel, and tells the peer the bounds.
func (b *Blocks) Opened(ch *channel.Channel) error {
	if b.ch != nil {
		return errBlocksInUse
	}
	b.ch = ch
	if ch.OpenedLocally() {
		b.settleBounds()
		return b.sendNote(note{kind: noteBounds})
	}
	if !b.hold(blocksCost) {
		return channel.ErrMemory
	}
	b.settleBounds()
	b.tell(note{kind: noteBounds})
	return nil
}

// settleBounds makes our bounds what the channel's memory has room for, before they are told.
func (b *Blocks) settleBounds() {
	hold := int64(b.ch.MaxHold())
	room := hold - max(hold/16, int64(spare(b.ch))*3/2)
	b.ours.blocks = min(b.ours.blocks, room/4/(blockCost+fragmentCost))
	room -= b.ours.blocks * (blockCost + fragmentCost) // and a fragment that isn't full
	b.ours.held = min(b.ours.held, room/fragmentCost*fragmentBytes)
	b.ours.bytes = min(b.ours.bytes, b.ours.held)
}

// Held is the number of bytes received of blocks that aren't complete.
func (b *Blocks) Held() int { return b.held }

// sendNote sends a note, or returns the channel's error.
func (b *Blocks) sendNote(n note) error {
	var w bitio.Writer
	var buf [24]byte
	w.Reset(buf[:])
	w.WriteUint8(n.kind)
	if n.kind == noteBounds {
		w.WriteUint32(uint32(b.ours.bytes))
		w.WriteUint32(uint32(b.ours.blocks))
		w.WriteUint64(uint64(b.ours.held))
	} else {
		w.WriteUint16(uint16(n.id))
	}
	_, err := b.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: true})
	return err
}

// tell sends a note, now or when the channel has room for it.
func (b *Blocks) tell(n note) {
	b.notes = append(b.notes, n)
	b.sendNotes()
}

func (b *Blocks) sendNotes() {
	if b.ch == nil || b.ch.Closing() {
		return
	}
	for len(b.notes) > 0 && b.ch.Room() > 0 && b.sendNote(b.notes[0]) == nil {
		b.notes = append(b.notes[:0], b.notes[1:]...)
	}
	if b.withdrew = b.withdrew && (len(b.notes) > 0 || b.ch.NumOutRec() > 0); b.withdrew {
		return // or some other note would never be acked, and the window would stand
	}
	for ; b.untold > 0; b.from++ {
		over := &b.over[b.from%idWindow]
		if *over == 0 || *over == told {
			continue
		}
		if b.ch.Room() == 0 || b.sendNote(note{*over, b.from}) != nil {
			break // and where memory stays full, the next look begins here
		}
		b.untold--
		*over = told
	}
	if len(b.notes) > 0 || b.untold > 0 {
		b.arm() // where others have filled the connection's memory, no ack of this channel needs to come
	}
	b.advance()
}

// advance moves the window of ids past the blocks that are over and told of.
func (b *Blocks) advance() {
	for b.over[b.oldest%idWindow] == told {
		b.over[b.oldest%idWindow] = 0
		b.oldest++
	}
}

// errNoReceived ends the connection of an end that nobody told where blocks go: the peer's Sent would be called for what nobody got.
var errNoReceived = errors.New("message: a block came, and BlocksConfig.Received is nil")

// ReceivedBunch implements channel.Handler: it handles a fragment or a note.
func (b *Blocks) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	var err error
	switch {
	case in.Reliable:
		err = b.receiveNote(&in.Data)
	case b.cfg.Received == nil && ch != nil:
		ch.Conn().Fail(errNoReceived, true)
	default:
		err = b.receiveFragment(&in.Data)
	}
	if err != nil && ch != nil {
		ch.Conn().Fail(err, false)
	}
}

func (b *Blocks) receiveNote(r *bitio.Reader) error {
	kind := r.ReadUint8()
	if kind == noteBounds {
		p := bounds{int64(r.ReadUint32()), int64(r.ReadUint32()), int64(r.ReadUint64() & math.MaxInt64)}
		if r.Err() != nil || b.known || p.bytes < 1 || p.blocks < 1 || p.held < p.bytes { // some block would wait for ever
			return fmt.Errorf("%w: bounds of blocks", ErrFormat)
		}
		b.bounds, b.known = p, true
		b.withdraw()
		return nil
	}
	wire := r.ReadUint16()
	if r.Err() != nil || kind > noteRefused {
		return fmt.Errorf("%w: note of a block", ErrFormat)
	}
	if kind == noteWithdrawn {
		id := expandID(wire, b.oldest)
		if slices.ContainsFunc(b.receiving, func(blk *inBlock) bool { return blk.id == id }) {
			return fmt.Errorf("%w: a block was withdrawn after it had begun", ErrFormat)
		}
		return b.finish(id, told)
	}
	for _, o := range b.sending {
		if uint16(o.id) == wire {
			b.forget(o)
			switch {
			case kind == noteDamaged:
				b.fail(o.id, ErrChecksum)
			case kind == noteRefused:
				b.fail(o.id, ErrRoom)
			case b.cfg.Sent != nil:
				b.cfg.Sent(o.id)
			}
			break
		}
	}
	return nil
}

// expandID is the block that the low 16 bits of its id stand for, near another.
func expandID(wire uint16, near int64) int64 { return near + int64(int16(wire-uint16(near))) }

func (b *Blocks) fail(id int64, err error) {
	if b.cfg.Failed != nil {
		b.cfg.Failed(id, err)
	}
}

func (b *Blocks) broken(id int64, err error) {
	if b.cfg.Broken != nil {
		b.cfg.Broken(id, err)
	}
}

// ReceivedAck implements channel.Handler.
func (b *Blocks) ReceivedAck(_ *channel.Channel, packetID int64) {
	b.settle(packetID, b.ackFragment)
	b.sendNotes()
}

// ReceivedNak implements channel.Handler.
func (b *Blocks) ReceivedNak(_ *channel.Channel, packetID int64) { b.settle(packetID, b.loseFragment) }

// Closed implements channel.Handler: blocks under way fail with ErrNoChan. Afterwards b may be the handler of another
// channel, on which ids begin at 0 again.
func (b *Blocks) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if ch != b.ch {
		return // Opened refused it
	}
	sending, receiving := b.sending, b.receiving
	if b.arming != nil {
		b.arming.b = nil
	}
	*b = Blocks{cfg: b.cfg, ours: b.cfg.bounds(), Counters: b.Counters}
	for _, o := range sending {
		b.fail(o.id, ErrNoChan)
	}
	for _, blk := range receiving {
		blk.failed = true
	}
	for _, blk := range receiving {
		b.broken(blk.id, ErrNoChan)
	}
}
