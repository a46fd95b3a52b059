package bunch

import (
	"errors"
	"fmt"
	"math"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

const (
	// MaxPayload is the largest payload in bytes that partial bunches may add up
	// to (Unreal's net.MaxConstructedPartialBunchSizeBytes).
	MaxPayload = 65536
	// MaxHeaderBits is the room a bunch header may take (Unreal's MAX_BUNCH_HEADER_BITS).
	MaxHeaderBits = 256
	// MaxPacketHeaderBits is the room a packet header may take: 32 bits of
	// sequences, 256 of history, 20 of packet info (Unreal 4.26 and later).
	MaxPacketHeaderBits = 308
	// maxName bounds the text of a channel name.
	maxName = 64
)

// CloseReason says why a channel was closed; below 15 on the wire.
type CloseReason uint8

// The close reasons of Unreal 4.27 and later.
const (
	Destroyed CloseReason = iota
	Dormancy
	LevelUnloaded
	Relevancy
	TearOff
	closeReasonMax = 15
)

// String is the reason's name.
func (r CloseReason) String() string {
	switch r {
	case Destroyed:
		return "Destroyed"
	case Dormancy:
		return "Dormancy"
	case LevelUnloaded:
		return "LevelUnloaded"
	case Relevancy:
		return "Relevancy"
	case TearOff:
		return "TearOff"
	}
	return fmt.Sprintf("CloseReason(%d)", uint8(r))
}

// Name is a channel's type: either an Index, a number that both ends know, or a Text of up to 64 characters, which may
// have a Number, as Unreal's FName has: its own names go as an Index. Names are comparable. A game may use any index but those of [Control], [Voice] and [Actor]. An index
// takes a byte or two of each reliable bunch, text all of its length.
type Name struct {
	Index  uint32
	Text   string
	Number int32
}

// Hardcoded names (Unreal's EName).
var (
	Actor   = Name{Index: 102}
	Control = Name{Index: 255}
	Voice   = Name{Index: 256}
)

// String is the text, with a ? for each character that isn't printable, or the number.
func (n Name) String() string {
	switch n {
	case Actor:
		return "Actor"
	case Control:
		return "Control"
	case Voice:
		return "Voice"
	}
	if n.Text == "" {
		return fmt.Sprintf("Name(%d)", n.Index)
	}
	return bitio.Printable(n.Text)
}

// Header is the header of a bunch.
type Header struct {
	ChIndex     uint32
	WireSeq     uint16 // low bits of the ChSequence; when Reliable
	CloseReason CloseReason

	Open              bool
	Close             bool
	ReplicationPaused bool
	Reliable          bool

	HasPackageMapExports bool
	HasMustBeMappedGUIDs bool

	Partial                   bool
	PartialInitial            bool
	PartialCustomExportsFinal bool
	PartialFinal              bool

	Name Name // when Reliable or Open
	Bits int  // payload bits
}

// Protocol is what differs between versions of the bunch format. The zero value is Unreal 5.1.
type Protocol struct {
	// CustomExportsFinal says that partial bunches have the bit PartialCustomExportsFinal. It came with network version 36: Unreal 5.1 doesn't
	// have it, 5.8 does.
	CustomExportsFinal bool
	// SequenceBits is the width of ChSequence, from 3 to 16; 0 means 10, Unreal's. A channel may have half as many
	// reliable bunches in flight as there are sequences. Both ends must agree.
	SequenceBits uint8
	// MaxPacket is the largest packet in bytes, 256 to 8192; 0 means 1024. Both ends must
	// agree, since the width of the payload length depends on it.
	MaxPacket int
	// HandlerBits is how many bits of each packet the packet handlers need, up to 1024: 7 with Unreal's stateless handshake of 5.1, 2 with
	// that of 4.27 and 5.0, 0 without handlers.
	HandlerBits int
}

// Sequences is the arithmetic of the ChSequences on the wire.
func (p *Protocol) Sequences() seqnum.Space {
	if p.SequenceBits == 0 {
		return seqnum.Channel
	}
	return seqnum.Space(p.SequenceBits)
}

// PacketBytes is MaxPacket, or its default.
func (p *Protocol) PacketBytes() int {
	if p.MaxPacket == 0 {
		return 1024
	}
	return p.MaxPacket
}

// PacketBits is the room in bits that the handlers leave in a packet, with the end mark.
func (p *Protocol) PacketBits() int { return p.PacketBytes()*8 - p.HandlerBits }

// MaxSingleBits is the largest payload in bits that isn't split (Unreal's MAX_SINGLE_BUNCH_SIZE_BITS): the size of a packet less that of
// the largest headers and the end mark.
func (p *Protocol) MaxSingleBits() int {
	return p.PacketBits() - MaxHeaderBits - MaxPacketHeaderBits - 1
}

// Errors of Read. All of them mean that the rest of the packet can't be read.
var (
	ErrHeader  = errors.New("bunch: header overflows the packet; both ends must have the same Protocol")
	ErrPayload = errors.New("bunch: payload overflows the packet; both ends must have the same Protocol, its MaxPacket too")
	ErrName    = errors.New("bunch: channel name out of bounds; both ends must have the same Protocol")
	ErrReason  = errors.New("bunch: close reason out of bounds")
)

// Write writes h and the first h.Bits bits of payload. A value that doesn't fit
// is w's sticky error.
func (p *Protocol) Write(w *bitio.Writer, h *Header, payload []byte) {
	p.WriteHeader(w, h)
	w.WriteBitsFrom(payload, 0, h.Bits)
}

// LengthBits is the width in bits of the header's last field, the payload length, for a payload of so many bits. It is 13 with a MaxPacket
// of 1024.
func (p *Protocol) LengthBits(bits int) int {
	return bitio.IntBits(uint32(bits), uint32(p.PacketBytes()*8))
}

// WriteHeader writes h alone.
func (p *Protocol) WriteHeader(w *bitio.Writer, h *Header) {
	if !p.writeFast(w, h) {
		p.writeSlow(w, h)
	}
}

// writeSlow writes any header, field by field.
func (p *Protocol) writeSlow(w *bitio.Writer, h *Header) {
	control := h.Open || h.Close
	w.WriteBool(control)
	if control {
		w.WriteBool(h.Open)
		w.WriteBool(h.Close)
		if h.Close {
			w.WriteInt(uint32(h.CloseReason), closeReasonMax)
		}
	}
	w.WriteBits(b2u(h.ReplicationPaused)|b2u(h.Reliable)<<1, 2)
	w.WriteIntPacked(h.ChIndex)
	w.WriteBits(b2u(h.HasPackageMapExports)|b2u(h.HasMustBeMappedGUIDs)<<1|b2u(h.Partial)<<2, 3)
	if h.Reliable {
		w.WriteBits(uint64(h.WireSeq), int(p.Sequences()))
	}
	if h.Partial {
		w.WriteBool(h.PartialInitial)
		if p.CustomExportsFinal {
			w.WriteBool(h.PartialCustomExportsFinal)
		}
		w.WriteBool(h.PartialFinal)
	}
	if h.Reliable || h.Open {
		writeName(w, h.Name)
	}
	w.WriteInt(uint32(h.Bits), uint32(p.PacketBytes()*8))
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func writeName(w *bitio.Writer, n Name) {
	hardcoded := n.Text == ""
	w.WriteBool(hardcoded)
	if hardcoded {
		w.WriteIntPacked(n.Index)
		return
	}
	w.WriteString(n.Text)
	w.WriteUint32(uint32(n.Number))
}

// Read reads a header into h, and sets payload to read the bunch's payload from the same buffer. It allocates nothing unless the name is
// text.
func (p *Protocol) Read(r *bitio.Reader, h *Header, payload *bitio.Reader) (err error) {
	*h = Header{}
	if p.readFast(r, h) {
		return h.payload(r, payload)
	}
	*h = Header{}
	if r.ReadBool() {
		h.Open = r.ReadBool()
		h.Close = r.ReadBool()
		if h.Close {
			h.CloseReason = CloseReason(r.ReadInt(closeReasonMax))
		}
	}
	v := r.ReadBits(2)
	h.ReplicationPaused, h.Reliable = v&1 != 0, v&2 != 0
	h.ChIndex = r.ReadIntPacked()
	v = r.ReadBits(3)
	h.HasPackageMapExports, h.HasMustBeMappedGUIDs, h.Partial = v&1 != 0, v&2 != 0, v&4 != 0
	if h.Reliable {
		h.WireSeq = uint16(r.ReadBits(int(p.Sequences())))
	}
	if h.Partial {
		h.PartialInitial = r.ReadBool()
		if p.CustomExportsFinal {
			h.PartialCustomExportsFinal = r.ReadBool()
		}
		h.PartialFinal = r.ReadBool()
	}
	if h.Reliable || h.Open {
		if h.Name, err = readName(r); err != nil {
			return err
		}
	}
	h.Bits = int(r.ReadInt(uint32(p.PacketBytes() * 8)))
	if r.Err() != nil {
		return fmt.Errorf("%w: %w", ErrHeader, r.Err())
	}
	return h.payload(r, payload)
}

func (h *Header) payload(r, payload *bitio.Reader) error {
	if h.Bits > r.Remaining() {
		return ErrPayload
	}
	r.SubTo(payload, h.Bits)
	return nil
}

func readName(r *bitio.Reader) (n Name, err error) {
	if r.ReadBool() {
		n.Index = r.ReadIntPacked()
		return n, nil
	}
	n.Text = r.ReadString(maxName)
	n.Number = int32(r.ReadUint32())
	if r.Err() == nil && n.Text == "" || errors.Is(r.Err(), bitio.ErrFormat) {
		return n, ErrName
	}
	return n, nil
}

// In is a received bunch.
type In struct {
	Header
	PacketID   int64 // the packet it came in; of a joined bunch, its first part's
	ChSequence int64 // the full channel sequence when Reliable
	// Data is the payload. It, and all it hands out, is valid until the callback
	// that got the In returns.
	Data bitio.Reader
}

// Out is a bunch to send. The zero value with Data and Bits set is an unreliable
// bunch.
type Out struct {
	Data     []byte // payload, not kept after the call
	Bits     int    // payload bits; 0 with a non-empty Data means all of Data
	Reliable bool
	// NoMerge keeps the bunch apart from the one before it and the one after it.
	NoMerge bool
	// StayUnreliable keeps a large unreliable bunch from being made reliable; see channel.Config.PartialReliableThreshold.
	StayUnreliable bool

	ReplicationPaused    bool
	HasPackageMapExports bool // never merged
	HasMustBeMappedGUIDs bool
}

// PayloadBits is the number of payload bits, with the default of Bits applied.
func (o *Out) PayloadBits() int {
	if o.Bits == 0 {
		return len(o.Data) * 8
	}
	return o.Bits
}

// Validate reports a Bits that Data doesn't hold, or a payload over MaxPayload.
func (o *Out) Validate() error {
	n := o.PayloadBits()
	switch {
	case n < 0 || n > len(o.Data)*8:
		return fmt.Errorf("%w: %d bits in %d bytes", ErrBits, n, len(o.Data))
	case n > MaxPayload*8:
		return fmt.Errorf("%w: %d bytes, and %d is the most", ErrTooLarge, (n+7)/8, MaxPayload)
	}
	return nil
}

// Errors of Out.Validate, returned before anything is queued or sent.
var (
	ErrBits     = errors.New("bunch: Bits must be at most 8*len(Data)")
	ErrTooLarge = errors.New("bunch: payload too large; send it as a block or in several bunches")
)

// NoPacket stands for "in no packet".
const NoPacket int64 = math.MinInt64
