package channel

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Type is a kind of channel. Both ends know it by its name.
type Type struct {
	// Name is required, and different for each type of a connection.
	Name bunch.Name
	// ClientOpen and ServerOpen say which end may open channels of the type. An open by the other end is ignored.
	ClientOpen, ServerOpen bool
	// Static gives the type the fixed index Index, below MaxChannels, so that at most one channel of the type is open. Control must have index
	// 0. With Control among the types, each end refuses the peer's bunches on other channels, which then aren't acked, until the control
	// channel is open. So leave Control out when neither end opens it.
	Static bool
	Index  uint32
	// Accept returns the handler of a channel that the peer opened. It is called before the first bunch is delivered.
	// When it is nil or returns nil, everything that arrives on the channel is ignored, and Counters.NoHandler counts the channel.
	// It is called, too, while this end's close of the connection hasn't reached the peer yet.
	Accept func(ch *Channel) Handler
}

// Config configures a Table. The zero value is Unreal 5.1 without channel types.
type Config struct {
	Protocol bunch.Protocol
	Types    []Type
	// ReliableBuffer bounds a channel's unacked reliable bunches, and the reliable bunches received before their turn.
	// Default 256 (Unreal up to 5.x; newer releases have 512). It must be a power of two, at most half the number of
	// sequences on the wire (see bunch.Protocol.SequenceBits; that is 512 with Unreal's), and at most 8192.
	ReliableBuffer int
	// MaxChannels bounds the channel index. A higher one ends the connection, so both ends need the same. Default and maximum 32767.
	MaxChannels int
	// MaxMemory bounds the bytes that the peer can make this end hold. Default 8 MiB, 256 KiB to 2147483647 bytes.
	//
	// One half is for what the peer sent: early bunches, parts of unfinished bunches, channels that it opened, and what
	// handlers count with Channel.Hold. A quarter of that half, and at least a payload of the largest size, is reserved
	// for parts of unfinished bunches. Early bunches leave a quarter of the rest to Hold and to channels that open, or, if they are few, as much as
	// they take themselves.
	//
	// The other half is for reliable bunches that the peer doesn't ack, and what handlers count with Channel.HoldSent. Its last 16 KiB are reserved for the control
	// channel. When a bunch doesn't fit, SendBunch returns ErrReliableFull.
	MaxMemory int
	// PeerMemory is the peer's MaxMemory, in the same range. Default 8 MiB. Split payloads begin, and further bunches of a channel are sent behind one
	// that was lost, as far as the peer has room for them: packets that it refuses look like losses, and slow the connection down.
	PeerMemory int
	// PartialReliableThreshold is the number of parts from which an unreliable bunch without StayUnreliable is made reliable; replication then
	// pauses until it is acked. One for which ReliableBuffer or MaxMemory has no room stays unreliable. Default 8; negative never.
	PartialReliableThreshold int
	// EvenParts splits payloads into parts of equal size instead of full parts and a rest, so that the system can send
	// their packets in one call.
	EvenParts bool
	// CloseOnOverflow ends the connection (Unreal's policy) when SendBunch returns ErrReliableFull because the channel's
	// buffer is full.
	CloseOnOverflow bool
	// NeverReuseIndex gives every channel that this end opens a new index, for peers that restart the sequence of a
	// reused one. An end remembers each index that its peer has used, in 32 bytes of its MaxMemory: less than 1.5 MiB have no room for all 16,383,
	// and once they are used up every further open is refused, however few channels are open.
	NeverReuseIndex bool
	// FirstFree opens channels at the lowest free index, as Unreal's server does. Then only one end may open channels besides those of
	// Static types: both would take the same index, which ends the connection. Default: a client takes odd indices
	// and a server even ones, so that both may open channels at the same time.
	FirstFree bool
	// StrictControl ends the connection when a bunch arrives before the control channel's open, which is Unreal's rule. A client then opens other
	// channels only when that open is acked: it may be lost, or overtaken.
	// Default: the bunch's packet is refused and so sent again, and a client may open channels before its first packet
	// is acked.
	StrictControl bool
	// RestartSequence restarts both sequences of an index when its channel is removed, for peers that do the same. A late bunch of a former
	// channel at the same index, as a copy of one whose packet was refused, then isn't recognized: it may open the channel once more, leave one that never
	// opens, or end the connection. Set NeverReuseIndex too, so that no index of this end's is used twice. Where one end alone has it, what is sent on an index
	// that is used again is acked and never delivered.
	RestartSequence bool
	// MaxQueuedControl bounds the bunches queued while the control channel is full, up to 1048576. Default 32768.
	MaxQueuedControl int
	// Pool lends buffers. Default: one of the table's own, which keeps unused at most an eighth of MaxMemory, at most 12
	// MiB, and nothing while the connection is idle.
	Pool *Pool
}

const (
	defaultMaxMemory = 8 << 20
	minMaxMemory     = 256 << 10 // a payload of the largest size, each way
)

func (c Config) filled() Config {
	c.ReliableBuffer = cmp.Or(c.ReliableBuffer, 256)
	c.MaxChannels = cmp.Or(c.MaxChannels, 32767)
	c.MaxMemory = cmp.Or(c.MaxMemory, defaultMaxMemory)
	c.PeerMemory = cmp.Or(c.PeerMemory, defaultMaxMemory)
	c.PartialReliableThreshold = cmp.Or(c.PartialReliableThreshold, 8)
	c.MaxQueuedControl = cmp.Or(c.MaxQueuedControl, 32768)
	if c.PartialReliableThreshold < 0 {
		c.PartialReliableThreshold = 1 << 30
	}
	if c.Pool == nil {
		c.Pool = &Pool{MaxFree: min(maxFree, c.MaxMemory/8)}
	}
	return c
}

// ErrConfig is wrapped by what Validate says of settings that can't work.
var ErrConfig = errors.New("channel: config")

// maxPacket is the largest bunch.Protocol.MaxPacket, in bytes.
const maxPacket = 8192

// Validate returns an error, which wraps ErrConfig, for settings that can't work.
func (c *Config) Validate() error {
	f := c.filled()
	switch {
	case f.Protocol.MaxPacket != 0 && (f.Protocol.MaxPacket < 256 || f.Protocol.MaxPacket > maxPacket):
		return fmt.Errorf("%w: MaxPacket %d must be from 256 to %d", ErrConfig, f.Protocol.MaxPacket, maxPacket)
	case f.Protocol.HandlerBits < 0 || f.Protocol.HandlerBits > 1024:
		return fmt.Errorf("%w: HandlerBits %d must be from 0 to 1024", ErrConfig, f.Protocol.HandlerBits)
	case f.Protocol.SequenceBits != 0 && (f.Protocol.SequenceBits < 3 || f.Protocol.SequenceBits > 16):
		return fmt.Errorf("%w: SequenceBits %d must be from 3 to 16", ErrConfig, f.Protocol.SequenceBits)
	case f.ReliableBuffer < 2 || f.ReliableBuffer > f.maxReliableBuffer() || f.ReliableBuffer&(f.ReliableBuffer-1) != 0:
		return fmt.Errorf("%w: ReliableBuffer %d must be a power of two from 2 to %d", ErrConfig, f.ReliableBuffer, f.maxReliableBuffer())
	case f.MaxChannels < 1 || f.MaxChannels > 32767:
		return fmt.Errorf("%w: MaxChannels %d must be from 1 to 32767", ErrConfig, f.MaxChannels)
	case f.MaxMemory < minMaxMemory || f.MaxMemory > math.MaxInt32:
		return fmt.Errorf("%w: MaxMemory %d must be from %d to %d bytes", ErrConfig, f.MaxMemory, minMaxMemory, math.MaxInt32)
	case f.PeerMemory < minMaxMemory || f.PeerMemory > math.MaxInt32:
		return fmt.Errorf("%w: PeerMemory %d must be from %d to %d bytes", ErrConfig, f.PeerMemory, minMaxMemory, math.MaxInt32)
	case f.MaxQueuedControl < 1 || f.MaxQueuedControl > 1<<20:
		return fmt.Errorf("%w: MaxQueuedControl %d must be from 1 to %d", ErrConfig, f.MaxQueuedControl, 1<<20)
	}
	for i, t := range f.Types {
		if t.Name == (bunch.Name{}) {
			return fmt.Errorf("%w: type %d of %d has no Name", ErrConfig, i, len(f.Types))
		}
		if !t.Static && t.Index != 0 {
			return fmt.Errorf("%w: type %v has Index %d, which is for Static types", ErrConfig, t.Name, t.Index)
		}
		if t.Static && int(t.Index) >= f.MaxChannels {
			return fmt.Errorf("%w: type %v has index %d, but MaxChannels is %d", ErrConfig, t.Name, t.Index, f.MaxChannels)
		}
		if t.Static && (t.Index == 0) != (t.Name == bunch.Control) {
			return fmt.Errorf("%w: type %v has index %d: index 0 is the control channel's, and its only one", ErrConfig, t.Name, t.Index)
		}
		if _, err := f.headerBits(t.Name); err != nil {
			return fmt.Errorf("%w: the name of type %v can't be sent: %w", ErrConfig, t.Name, err)
		}
		for _, u := range f.Types[:i] {
			if u.Name == t.Name {
				return fmt.Errorf("%w: type %v is registered twice", ErrConfig, t.Name)
			}
			if u.Static && t.Static && u.Index == t.Index {
				return fmt.Errorf("%w: types %v and %v have the same index %d", ErrConfig, u.Name, t.Name, t.Index)
			}
		}
	}
	if n := f.singleBits(); n < minSingle {
		return fmt.Errorf("%w: packets of %d bytes with %d HandlerBits have no room for a bunch with the longest of the Types' names", ErrConfig, f.Protocol.PacketBytes(), f.Protocol.HandlerBits)
	}
	return nil
}

// minSingle is the bits of a payload that one bunch has room for at least.
const minSingle = 128

// maxReliableBuffer is the largest buffer for which the wire's sequences are unambiguous.
func (c *Config) maxReliableBuffer() int { return min(largestRing, c.Protocol.Sequences().Size()/2) }

// headerBits is the largest bunch header of a channel with a name.
func (c *Config) headerBits(name bunch.Name) (int, error) {
	h := bunch.Header{ChIndex: uint32(c.MaxChannels), Open: true, Close: true, Reliable: true, Partial: true, Name: name}
	var w bitio.Writer
	w.Reset(make([]byte, 512))
	c.Protocol.WriteHeader(&w, &h)
	if w.Err() != nil {
		return 0, w.Err()
	}
	bits := w.Len()
	var r, payload bitio.Reader // the peer bounds a name's text, and so does reading it back
	r.Reset(w.Bytes(), bits)
	if err := c.Protocol.Read(&r, &h, &payload); err != nil {
		return 0, err
	}
	if h.Name != name {
		return 0, fmt.Errorf("a Name has either an Index or a Text, and a Number only with Text; the peer would get %+v", h.Name)
	}
	return bits, nil
}

// maxOut is how many reliable bunches a channel may have in flight besides its close. The wire distinguishes sequences
// that differ by less than half of their number: less than 512 with Unreal's 10 bits.
func (c *Config) maxOut() int {
	return min(c.ReliableBuffer-1, c.Protocol.Sequences().Size()/2-2)
}

// singleBits is the largest payload of one bunch: the protocol's, less what the longest name takes beyond the space
// reserved for a header.
func (c *Config) singleBits() int {
	longest := bunch.MaxHeaderBits
	for i := range c.Types {
		bits, _ := c.headerBits(c.Types[i].Name) // validated
		longest = max(longest, bits)
	}
	return c.Protocol.MaxSingleBits() - (longest - bunch.MaxHeaderBits)
}
