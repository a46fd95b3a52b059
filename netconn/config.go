package netconn

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Protocol is the part of the wire format that differs between versions of Unreal. Take one from a preset; both ends
// must have the same. The handshake has presets of its own, in netconn/handshake.
type Protocol struct {
	// Name is the preset's name, for messages. A zero Protocol becomes Bunchnet's; any other is kept as it is, and without a Name
	// it is an error: a few fields alone are half a format.
	Name string
	// Unreal says that the peer may be a real Unreal end. Then Unreal's policies are kept.
	Unreal bool
	// Bunch is the format of the bunch header.
	Bunch bunch.Protocol
	// Notify configures acks. Newer releases have the wait-for-history-flush rule; 4.27 and 5.1 don't. AckRecords is 0 to 8191, and with
	// that rule 8191, which 0 stands for: what isn't remembered would have the peer's packets refused for ever.
	Notify packetnotify.Config
	// PacketWindow is the most packets with bunches in flight, 16 to 6144. Default 256, the length of the ack history:
	// then the fate of every packet is known exactly, and a full window sends further empty packets only when an ack is
	// overdue, after a second and two round trips, at most 3 s. With Notify.WaitForFlush the maximum is 256.
	//
	// With a larger window, packets that are further apart than the history between two received acks count as lost, and
	// their reliable bunches are sent twice. The window is at most 1024 while no ack arrives for that long, and at most
	// one packet for each KiB of Config.MaxMemory.
	PacketWindow int
	// ReliableBuffer is the most reliable bunches of a channel in flight: 256, 512 in newer releases, 8192 with
	// Bunchnet. See channel.Config.
	ReliableBuffer int
	// CloseOnOverflow ends the connection when that buffer is full, which is Unreal's policy.
	CloseOnOverflow bool
	// FirstFree opens channels at the lowest free index, as Unreal's server does. Then only one end may open channels besides
	// those of Static types: both would take the same index, which ends the connection.
	FirstFree bool
	// StrictControl ends the connection when a bunch arrives before the control channel's open, as Unreal does, whatever ReorderWindow is: a client
	// opens other channels only when that open is acked (channel.Channel.OpenAcked), as a driver's login does. Otherwise its packet is refused and so sent again.
	StrictControl bool
}

// Unreal51 is the wire format of Unreal 5.1, checked against recorded bytes.
func Unreal51() Protocol {
	return Protocol{Name: "Unreal 5.1", Unreal: true, ReliableBuffer: 256, CloseOnOverflow: true, FirstFree: true, StrictControl: true}
}

// Unreal427 is the wire format of Unreal 4.27 and 5.0. Packets and bunches are those of 5.1; the handshake differs.
func Unreal427() Protocol {
	p := Unreal51()
	p.Name = "Unreal 4.27"
	return p
}

// Unreal53 is the wire of Unreal 5.3 and later. customExportsFinal is for releases with network
// version 36 or above (5.8 has it, 5.1 hasn't; the first with it isn't known). Both ends need the same: otherwise all goes well until a payload is split. Then
// the end that gets it has PeerBroke, and the other one ClosedByPeer.
func Unreal53(customExportsFinal bool) Protocol {
	p := Unreal51()
	p.Name = "Unreal 5.3"
	p.Notify = packetnotify.Config{WaitForFlush: true, AckRecords: 8191}
	p.Bunch.CustomExportsFinal = customExportsFinal
	return p
}

// Bunchnet is the wire format of Unreal 5.1 with ChSequences of 14 bits, and with this module's own policies: a full
// reliable buffer is an error for the caller, both ends may open channels, and 6140 packets and 8190 reliable bunches
// of a channel may be in flight. That is for links with high bandwidth and delay: 147 MB/s of bunches of 1200 bytes at a
// round trip of 50 ms. Records of these grow with what is in flight, within Config.MaxMemory.
func Bunchnet() Protocol {
	return Protocol{Name: "bunchnet", Bunch: bunch.Protocol{SequenceBits: 14}, ReliableBuffer: 8192, PacketWindow: 6144,
		Notify: packetnotify.Config{AckRecords: 8191}}
}

// Config configures a Conn. LowLevelSend is required; the zero value of all others is useful.
type Config struct {
	// Protocol is the wire format. Default Bunchnet().
	Protocol Protocol
	// Server says which end this is.
	Server bool
	// Channels is the types of channels, the same at both ends.
	Channels []channel.Type
	// MaxChannels bounds the index of channels, and so their number; each end opens channels at every second index. A peer that opens one
	// at a higher index ends the connection, so both ends need the same. Default and maximum 32767.
	MaxChannels int
	// MaxMemory bounds, in bytes, everything that the peer can make this end hold. Default 8 MiB on a server, 64 MiB on
	// a client; at least 256 KiB.
	//
	// One half is for what the peer sent: early bunches, parts of unfinished bunches, channels that it opened, and what
	// handlers count with channel.Channel.Hold, such as the fragments of large blocks (message.Blocks). What exceeds it
	// is refused and so sent again. The other half is for reliable bunches that the peer doesn't ack; above it SendBunch
	// returns channel.ErrReliableFull. An eighth of that half, at most 256 KiB, is for the records of packets in flight.
	//
	// 8 MiB have room for 1200 bunches of 1200 bytes behind a lost one, and for 1700 unacked ones. A server with more
	// than 30 MB/s from or to one client, at a round trip of 50 ms, needs up to 32 MiB. A client of package actorrep whose actors' openings take
	// several bunches needs 12 times the sum of 256 KiB and the largest opening: 4 MiB for 80 KiB. In addition a connection keeps at most
	// OrderCache packets, a word or two for each unreliable bunch in flight, and the windows of its streams: 16 of 256 KiB, by driver/stream's Config.
	MaxMemory int
	// PeerMemory is the peer's MaxMemory. Default the other end's default: 64 MiB on a server, 8 MiB on a client; the login of netconn/driver tells the peer of another one,
	// but with Unreal's protocols. Split payloads begin, and further bunches of a channel are sent behind one that was lost, as far as the peer has room for
	// them: what it refuses looks like loss, and slows the connection down.
	PeerMemory int
	// NeverReuseIndex and RestartSequence are for peers that restart the reliable sequence of a reused channel index, which bunchnet's don't;
	// see channel.Config.
	NeverReuseIndex, RestartSequence bool
	// Pool lends buffers to channels. Connections with one owner may share it. What it keeps unused, up to its MaxFree,
	// isn't part of MaxMemory. Default: one of the connection's own, which keeps at most an eighth of MaxMemory, at most
	// 12 MiB, and gives it up after 8 to 16 s in which nothing reliable was sent or received.
	Pool *channel.Pool

	// LowLevelSend sends a packet: p[Headroom:]. The Headroom bytes before it are free for a link to use. p is valid
	// until it returns. It must not call into the connection.
	LowLevelSend func(p []byte)
	// Headroom and Tailroom are the bytes left free before and behind a packet, up to 4096 each, for links that encrypt it in place. p
	// has a capacity of at least Tailroom bytes more than its length.
	Headroom, Tailroom int
	// Handlers wraps packets; nil for none.
	Handlers *handler.Chain
	// AllowOpen may refuse a channel that the peer opens, in addition to what the types say. The channel's packet is
	// refused and so sent again. To the peer's adaptive controller that looks like losses, so refuse for a short time only. nil allows all.
	AllowOpen func(in *bunch.In) error
	// Closed is called once when the connection has ended. May be nil.
	Closed func(CloseResult)

	// KeepAlive is the time without sending after which an empty packet is sent: 1 ms to 1 h, and at most half of Timeout.
	// Default 200 ms (Unreal's KeepAliveTime). With more than a third of the peer's Timeout, the peer may time out. These packets take an eighth
	// of the rate at most: at a low one a short KeepAlive is longer, up to 200 ms and a third of Timeout. While bunches wait for their
	// acks a longer one is a second.
	KeepAlive time.Duration
	// Timeout ends a connection from which nothing was received for that long: 10 ms to 100 years, and at least two
	// KeepAlives. Default 60 s (Unreal's ConnectionTimeout); negative never.
	Timeout time.Duration
	// LingerTimeout is how long Close waits for the peer's acks, up to 1 h; a peer that isn't heard for Timeout isn't waited for any longer. Default 2 s.
	LingerTimeout time.Duration
	// AckDelay is how long acks may wait for a packet to be sent in, up to 500 ms. Default 0: they are sent at the end of the tick. A loss is
	// reported without delay. With a peer of 60 ticks a second, 20 ms save one packet in each tick.
	AckDelay time.Duration
	// NoPacketInfo omits the jitter clock: 12 bits in the first packet of a tick.
	NoPacketInfo bool
	// OrderCache is the most packets held back for a late one: a power of two up to 256. A packet later than that is
	// stale. Default 32 (Unreal's), and 256 with a Protocol whose PacketWindow is above 256; negative none. Memory for
	// more than 32 is allocated only when needed.
	OrderCache int
	// ReorderWindow is how long packets are held back, up to 1 s. Default: the measured lateness of the peer's recent packets, at most 50 ms.
	// That is 0 on a path that keeps the order of packets, or that loses at least four packets for each late one. Without Coding, none is held
	// from one receive tick to the next where these are more than 150 ms apart, but for a single hitch. Negative: until the end of the receive
	// tick, as in Unreal. Reliable bunches of held packets are handed over at once, so only unreliable ones and the report of a
	// loss wait. So do the acks of packets behind a missing one: with the adaptive controller and loss, windows of 200 ms and more lower the rate.
	ReorderWindow time.Duration
	// Redundancy repeats small reliable bunches in later packets before they are acked. Default off.
	Redundancy Redundancy
	// Coding repairs lost packets, when both ends have it. Default off.
	Coding Coding

	// Controller is the rate controller. Default: congestion.NewAdaptive, which finds the path's bandwidth. When NetSpeed is set, or with a
	// protocol of Unreal's, the default is Unreal's NetSpeed bucket.
	Controller congestion.Controller
	// NetSpeed is the rate of that bucket in bytes a second, 1800 to 2147483647. Default 100000 with a protocol of Unreal's, which is its
	// ConfiguredInternetSpeed. The bucket doesn't adapt to the path: on one that carries much less, most of what is sent is lost or sent
	// twice, and little arrives. NetSpeed and SetNetSpeed have no effect with another controller.
	NetSpeed int
	// LargestPacket is the size in bytes up to which a connection that fills packets of Protocol.Bunch.MaxPacket tries larger ones, as in RFC
	// 8899. It is for paths that drop packets which are too large; a path that fragments them hides the limit. Bunches don't become larger; a
	// packet carries more of them. When all or a third of the packets above MaxPacket are lost while smaller ones arrive, the size is
	// MaxPacket again, and their reliable bunches are sent again. Stats.PacketSize is the current size. Every end accepts packets of 1500
	// bytes, and of its own LargestPacket. Range: MaxPacket, which tries no larger ones, to 8192. Default 0: no larger ones are tried, and
	// never with Coding or a protocol of Unreal's.
	LargestPacket int
	// PacketOverhead is the bytes that the network adds to a packet, up to 1024; they count for the bandwidth. Default 28
	// (IPv4 and UDP).
	PacketOverhead int

	// Trace gets the connection's events; nil for none.
	Trace nettrace.Sink
	// Packets gets the bytes of every packet, decrypted; nil for none.
	Packets nettrace.PacketSink
	// Secret, if not 0, makes the connection skip a packet sequence now and then, to detect a peer that acks packets it
	// didn't receive. The peer must not know it. It is ignored with a protocol of Unreal's.
	Secret uint64
	// ID names the connection in traces.
	ID uint32
	// Owner is returned by Conn.Owner: whoever made the connection.
	Owner any
}

// Redundancy repeats reliable bunches before their loss is known: in the unused room of the next packets, or in packets of their own. They
// take half of what the game leaves of the rate, and more where it leaves more than it uses; when it uses all, they get one byte of 16. What
// blocks, streams and SendSpare send isn't the game's in this. The peer drops duplicates, so it needs no such setting. The zero value
// repeats nothing.
type Redundancy struct {
	// Copies is the most repeats of a bunch, 0 to 16. Default 0: then nothing is repeated, whatever the other fields are, and a driver's Logger says so.
	Copies int
	// Adaptive computes the number of repeats from the measured loss, from none on a path without loss up to Copies.
	Adaptive bool
	// MaxBits is the largest payload, in bits, that is repeated, up to 65536. Default 8192: what wasn't split. Parts
	// of split payloads never are. Small bunches aren't merged beyond it while there are repeats.
	MaxBits int
}

const (
	defaultNetSpeed = 100_000
	// maxWindow leaves most of the sequences that can be told apart to a long silence; see darkness.
	maxWindow = 6144
	// maxOrderCache is the ack history: what is further ahead is lost anyway.
	maxOrderCache = 256
	maxAckRecords = 8191
	largestPacket = 8192
	maxOverhead   = 1024
	maxRoom       = 4096

	minTimeout   = 10 * time.Millisecond
	maxKeepAlive = time.Hour
	maxLinger    = time.Hour
	// maxAckDelay is well below the second after which the peer takes an ack for overdue.
	maxAckDelay      = 500 * time.Millisecond
	maxReorderWindow = time.Second
)

func (c Config) filled() Config {
	if c.Protocol == (Protocol{}) {
		c.Protocol = Bunchnet()
	}
	c.KeepAlive = cmp.Or(c.KeepAlive, 200*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 60*time.Second)
	c.LingerTimeout = cmp.Or(c.LingerTimeout, 2*time.Second)
	if c.Controller == nil && c.NetSpeed == 0 && !c.Protocol.Unreal {
		c.Controller, _ = congestion.NewAdaptive(congestion.AdaptiveConfig{}) // the defaults are no error
	}
	c.NetSpeed = cmp.Or(c.NetSpeed, defaultNetSpeed)
	c.PacketOverhead = cmp.Or(c.PacketOverhead, 28)
	c.Redundancy.MaxBits = cmp.Or(c.Redundancy.MaxBits, 8192)
	c.Protocol.PacketWindow = cmp.Or(c.Protocol.PacketWindow, history.Bits)
	if c.OrderCache == 0 {
		c.OrderCache = smallOrderCache
		if c.Protocol.PacketWindow > history.Bits {
			c.OrderCache = maxOrderCache
		}
	}
	if n := &c.Protocol.Notify; n.AckRecords == 0 && (n.WaitForFlush || c.Protocol.PacketWindow > history.Bits) {
		n.AckRecords = maxAckRecords // so that no record is ever missing
	}
	c.MaxMemory = cmp.Or(c.MaxMemory, defaultMaxMemory(c.Server))
	c.PeerMemory = cmp.Or(c.PeerMemory, defaultMaxMemory(!c.Server))
	if c.Protocol.Unreal {
		c.Secret = 0
	}
	if c.Handlers != nil {
		c.Protocol.Bunch.HandlerBits = c.Handlers.ReservedBits()
	} else if c.Coding.on() {
		c.Protocol.Bunch.HandlerBits = 8 * codingBytes
	}
	if c.Coding.on() || c.Protocol.Unreal || c.LargestPacket == c.Protocol.Bunch.PacketBytes() {
		c.LargestPacket = 0
	}
	return c
}

// defaultMaxMemory trusts the server more: it is one, and what it sends is a world.
func defaultMaxMemory(server bool) int {
	if server {
		return 8 << 20
	}
	return 64 << 20
}

// ErrConfig is wrapped by what New says of settings that can't work.
var ErrConfig = errors.New("netconn: config")

// validate checks the settings after their defaults; a driver's names are the same.
func (c *Config) validate() error {
	if c.LowLevelSend == nil {
		return fmt.Errorf("%w: LowLevelSend is nil; give the function that sends a packet", ErrConfig)
	}
	return setting.First(c.validateProtocol(), c.validateTimes(), c.validateSizes(), c.Redundancy.validate(), c.validateCoding())
}

func (c *Config) validateProtocol() error {
	p, window := &c.Protocol, maxWindow
	if p.Notify.WaitForFlush {
		window = history.Bits // more would be refused
	}
	if p.Name == "" {
		return fmt.Errorf("%w: Protocol has no Name: begin with a preset, such as netconn.Bunchnet(), and change that", ErrConfig)
	}
	if n := p.Notify.AckRecords; p.Notify.WaitForFlush && n >= 0 && n < maxAckRecords {
		return fmt.Errorf("%w: Protocol.Notify.AckRecords %d must be %d with WaitForFlush, or 0 for that", ErrConfig, n, maxAckRecords)
	}
	return setting.First(
		setting.Within(ErrConfig, "Protocol.PacketWindow", p.PacketWindow, 16, window),
		setting.Within(ErrConfig, "Protocol.Notify.AckRecords", p.Notify.AckRecords, 0, maxAckRecords))
}

func (c *Config) validateTimes() error {
	err := setting.First(
		setting.Within(ErrConfig, "KeepAlive", c.KeepAlive, time.Millisecond, maxKeepAlive),
		setting.Within(ErrConfig, "LingerTimeout", c.LingerTimeout, 0, maxLinger),
		setting.Within(ErrConfig, "AckDelay", c.AckDelay, 0, maxAckDelay),
		setting.Within(ErrConfig, "ReorderWindow", max(c.ReorderWindow, 0), 0, maxReorderWindow))
	if err != nil || c.Timeout < 0 {
		return err
	}
	if err := setting.Within(ErrConfig, "Timeout", c.Timeout, minTimeout, setting.Longest); err != nil {
		return err
	}
	if c.KeepAlive > c.Timeout/2 {
		return fmt.Errorf("%w: KeepAlive %v must be at most half of Timeout %v, so that a lost one doesn't end the connection", ErrConfig, c.KeepAlive, c.Timeout)
	}
	return nil
}

func (c *Config) validateSizes() error {
	if c.OrderCache > 0 && c.OrderCache&(c.OrderCache-1) != 0 {
		return fmt.Errorf("%w: OrderCache %d must be a power of two", ErrConfig, c.OrderCache)
	}
	if n := c.Protocol.Bunch.PacketBytes(); c.LargestPacket != 0 && c.LargestPacket < n {
		return fmt.Errorf("%w: LargestPacket %d must be at least Protocol.Bunch.MaxPacket %d, or 0 for none", ErrConfig, c.LargestPacket, n)
	}
	return setting.First(
		setting.Within(ErrConfig, "OrderCache", max(c.OrderCache, 0), 0, maxOrderCache),
		setting.Within(ErrConfig, "PacketOverhead", c.PacketOverhead, 0, maxOverhead),
		setting.Within(ErrConfig, "NetSpeed", c.NetSpeed, congestion.MinNetSpeed, math.MaxInt32),
		setting.Within(ErrConfig, "Headroom", c.Headroom, 0, maxRoom),
		setting.Within(ErrConfig, "Tailroom", c.Tailroom, 0, maxRoom),
		setting.Within(ErrConfig, "LargestPacket", c.LargestPacket, 0, largestPacket))
}

func (r *Redundancy) on() bool { return r.Copies > 0 }

func (r *Redundancy) validate() error {
	return setting.First(
		setting.Within(ErrConfig, "Redundancy.Copies", r.Copies, 0, 16),
		setting.Within(ErrConfig, "Redundancy.MaxBits", r.MaxBits, 0, 8*largestPacket))
}

func (c *Config) channelConfig() channel.Config {
	return channel.Config{
		Protocol: c.Protocol.Bunch, Types: c.Channels, ReliableBuffer: c.Protocol.ReliableBuffer,
		MaxChannels: c.MaxChannels, MaxMemory: c.MaxMemory, PeerMemory: c.PeerMemory, EvenParts: !c.Protocol.Unreal, CloseOnOverflow: c.Protocol.CloseOnOverflow, FirstFree: c.Protocol.FirstFree,
		StrictControl:   c.Protocol.StrictControl,
		NeverReuseIndex: c.NeverReuseIndex, RestartSequence: c.RestartSequence, Pool: c.Pool,
	}
}
