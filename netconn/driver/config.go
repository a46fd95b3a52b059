package driver

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"io"
	"log/slog"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Config configures a Driver. The zero value with Channels is useful. Both ends must have the same Channels, Link and
// Protocol.
type Config struct {
	// Channels is the types of channels. A control channel with the login is added, unless bunch.Control is among them.
	Channels []channel.Type
	// Link is the handshake below connections and the encryption of their packets. Default Netcode{}: encrypted, with
	// the key in the environment variable named by KeyEnv. PlainUnreal and PlainSalted don't encrypt.
	Link Link
	// Protocol is the wire format of packets and bunches. Default netconn.Bunchnet(). For Unreal's own format call Unreal427, Unreal51 or
	// Unreal53, which set Link and Protocol together: a Protocol of Unreal's with a Link of another release, or without a Link, is ErrPreset.
	// Protocol.Bunch.MaxPacket is at most 1200 bytes with Netcode, 1439 with PlainSalted, and 1496 with PlainUnreal.
	Protocol netconn.Protocol
	// MaxDatagram is the size in bytes of the largest datagram that connections try when they fill packets of
	// Protocol.Bunch.MaxPacket, without the headers of IP and UDP; see netconn.Config.LargestPacket. At least a datagram of MaxPacket, at most 1500. Default
	// 1452, which is Ethernet's 1500 with IPv6. With Netcode packets are at most 1225, by its standard. Negative, with
	// Coding, with a protocol of Unreal's, and with a Socket that may send fragments (udp.SendsWhole): none are tried. Sockets
	// that the driver opens send no fragments on Linux.
	MaxDatagram int

	// Joined is called when a connection is ready. On a server that is after the client's login. On a client it is after
	// the server's welcome, or after its own call of Conn.Join. Without a login it is after the handshake.
	// Server.Admitted and Client.Entered are called right after it. Who closes c in it refuses the peer: what that sends on channels that it opens until it hears of the
	// close is acked and ignored, and no Accept of Channels is called. Better refuse it in Authorize, or in Accepted: in Joined a client has joined at its own end.
	Joined func(c *Conn)
	// Closed is called once for each connection that has ended, joined or not. On a client whose dial failed before
	// there was a connection, c is nil. When Close ends a dial before there was one, nothing is called; see Done.
	Closed func(c *Conn, r netconn.CloseResult)
	// Accepted is called after the handshake, before the login. Open a control channel of your own here. May be nil.
	Accepted func(c *Conn)

	// Server and Client configure the login at the two ends; they are of package channel/control.
	Server control.ServerConfig
	Client control.ClientConfig

	// MaxConns is the most connections of a server, unless its Link has Slots: up to 1048576 with PlainUnreal, 16384 with
	// Netcode, and 1024 with PlainSalted. Default 256.
	MaxConns int
	// MaxPerAddr is the most connections of one IPv4 address or one IPv6 /64, for links that don't identify clients:
	// PlainSalted and PlainUnreal. Default a quarter of all, at least 4; negative no bound. Loopback addresses have
	// none. With PlainUnreal as many begin in a second, 64 at least, and of wider networks a multiple: 4 times of an
	// IPv6 /56, 16 of a /48, 32 of an IPv4 /24. Who has another one begin at its port ends the former.
	MaxPerAddr int
	// LoginTimeout ends connections that don't complete their login in time, 10 ms to 24 h. Default 15 s. The server then tells the client, and
	// waits up to LingerTimeout for its ack. So a client that falls silent in its login takes one of MaxConns for LoginTimeout plus LingerTimeout,
	// 17 s by default. With Netcode the same client may connect again before that.
	LoginTimeout time.Duration
	// TickRate is the number of Run's ticks a second, up to 10000. Default 60.
	TickRate int
	// Parallel is how many cores encrypt a tick's packets: Cores(n), 1 to 256. What is sent, and in which order, is the
	// same. It is for servers with Netcode and hundreds of clients, on machines with cores to spare; see "Several cores". From two cores on up to 1024 datagrams are collected before they are
	// sent, or until the end of the tick, instead of the socket's 64; they take 1.5 MB. Default one core.
	Parallel Cores
	// MaxDatagrams bounds the datagrams that one TickDispatch reads, up to 16777216, rounded up to whole batches of the socket. The next
	// one reads the rest, so that a flood doesn't delay a tick. Default 4096, about what a socket's buffer of 4 MiB
	// holds, or four for each of MaxConns if that is more. Counters.ReadsBounded counts the ticks that reached it. Run
	// also reads between ticks, while there is time.
	MaxDatagrams int
	// MaxConnDatagrams bounds what a server handles of one connection while it can't keep up: from when its socket hasn't been empty for 4 ms, or a quarter of a
	// tick of TickRate if that is less, until it is empty. After more than 16 ms without a read, as between the ticks of a slower loop, it is a quarter of that time. Of each tick it drops the rest of that connection's datagrams, as if the network had lost them, at
	// little cost, and what the others sent is handled soon. While it takes twice as long until the socket is empty, because many connections send
	// too much or theirs costs more, the bound is half as much with each tick, but 16 at least. A server with one connection has no
	// bound. Up to 16777216, default 128; negative no bound. Counters.Shed and the reason flood of Refusals count what is dropped, and the Logger names
	// a connection that has lost 1024. It can't help against datagrams that come faster than the machine reads them, some hundred thousand a second: the
	// system drops those, whoever they are from.
	MaxConnDatagrams int
	// Prompt makes Run send at once what handlers and Do write, instead of at the next tick. That lowers latency, but
	// sends more and smaller packets and checks every connection each time: use it for hundreds of connections rather
	// than thousands. It needs a socket whose read SetReadDeadline interrupts from another goroutine, such as those of
	// Listen and Dial.
	Prompt bool

	// Timeout ends a connection from which nothing was received for that long, on every link: 10 ms to 100 years, and at
	// least two KeepAlives. Default 60 s; negative never. A dial that nobody answers ends after 60 s or less, also with a longer one; with Netcode
	// after the token's timeout for each server that the token names, never when that is negative and the token doesn't expire.
	Timeout time.Duration
	// The following are passed on to every connection; see netconn.Config, also for their ranges.
	KeepAlive, LingerTimeout         time.Duration
	AckDelay                         time.Duration
	NoPacketInfo                     bool
	ReorderWindow                    time.Duration
	Redundancy                       netconn.Redundancy
	Coding                           netconn.Coding // of links other than PlainUnreal
	NeverReuseIndex, RestartSequence bool
	MaxChannels                      int
	MaxMemory, PeerMemory            int
	// Controller makes the rate controller of a connection. Default: congestion.NewAdaptive, which finds the path's
	// bandwidth. When NetSpeed is set, or with a protocol of Unreal's, the default is Unreal's NetSpeed bucket.
	Controller func() congestion.Controller
	// NetSpeed is that bucket's rate in bytes a second, 1800 to 2147483647. Default 100000. The login changes a server's to what the client asks
	// for (Client.NetSpeed), at most Server.MaxNetSpeed. NetSpeed is the default of these two as well, so set it at both ends.
	NetSpeed int

	// Checksum appends a CRC-32C to every datagram, and drops received ones with a wrong one. UDP's own checksum has
	// only 16 bits, and middleboxes rewrite it. Both ends must set it. It isn't part of Unreal's wire format.
	Checksum bool

	// Socket is used instead of opening one. The driver closes it, and is the only one that reads it.
	Socket udp.Socket
	// UDP configures the socket that the driver opens.
	UDP udp.Config
	// Rand is the source of secret random numbers. Default crypto/rand.
	Rand io.Reader
	// Clock is the time of day. Default time.Now. A simulation passes its own, which agrees with the times of its ticks.
	// The process then doesn't remember the tokens it dialed with, because such a time may repeat.
	Clock func() time.Time
	// Logger gets what an operator should know: who joined and left, in at most 20 lines a second, and what was refused
	// or ignored, by reason, in at most one line a second; see Driver.Refusals. Of what a peer said as it left a line has
	// 300 bytes. Default none, except that slog.Default gets the warning about a key made for development.
	Logger *slog.Logger
	// Trace gets the events of every connection. Default none.
	Trace nettrace.Sink
	// Packets gets the decrypted packets of every connection, with their addresses. netconn/nettrace/pcapng writes them
	// to a file. Default none.
	Packets nettrace.PacketSink

	maxPerAddr int // MaxPerAddr, for links that use MaxConns
}

const (
	minDatagrams   = 4096
	datagramsAConn = 4
	// defaultConnDatagrams is more than games send in a tick, and in a second that was a hitch.
	defaultConnDatagrams = 128
	minPerAddr           = 4

	maxMaxDatagrams = 1 << 24
	maxMaxConns     = 1 << 20
	maxTickRate     = 10_000
	maxCores        = 256
	minLoginTimeout = 10 * time.Millisecond
	maxLoginTimeout = 24 * time.Hour
)

func (c Config) filled() Config {
	if c.Link == nil {
		c.Link = Netcode{}
	}
	if c.MaxConns == 0 {
		c.MaxConns = 256
	}
	if c.LoginTimeout == 0 {
		c.LoginTimeout = 15 * time.Second
	}
	if c.TickRate == 0 {
		c.TickRate = 60
	}
	if c.MaxPerAddr == 0 {
		c.maxPerAddr = max(minPerAddr, c.MaxConns/4)
	} else {
		c.maxPerAddr = c.MaxPerAddr
	}
	if c.MaxDatagrams == 0 {
		c.MaxDatagrams = max(minDatagrams, datagramsAConn*c.MaxConns)
	}
	c.MaxConnDatagrams = cmp.Or(c.MaxConnDatagrams, defaultConnDatagrams)
	c.MaxDatagram = cmp.Or(c.MaxDatagram, 1452)
	c.Server.MaxNetSpeed = cmp.Or(c.Server.MaxNetSpeed, c.NetSpeed)
	c.Client.NetSpeed = cmp.Or(c.Client.NetSpeed, c.NetSpeed)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Link is the handshake and packet framing below connections: Netcode, PlainSalted or PlainUnreal.
type Link interface {
	server(d *Driver) serverLink
	client(d *Driver) clientLink
	// maxPacket is the largest packet of a connection in bytes, and overhead how much larger its datagram is.
	maxPacket() int
	overhead() int
	// slots is the Slots that a server was given, which checks them further; 0 for none.
	slots() int
}

// PlainUnreal is Unreal's stateless handshake with the given protocol. It encrypts nothing and authenticates nobody: use
// it on trusted networks, or for Unreal's own wire format. To talk to Unreal itself the Protocol of its release is
// needed as well; [Unreal427], [Unreal51] and [Unreal53] set both.
type PlainUnreal struct {
	Handshake handshake.Protocol
	// SessionID is the server's travel count, modulo 4.
	SessionID uint8
	// LenientIDs accepts clients that send id 0 until they are answered.
	LenientIDs bool

	release string // name of the preset's netconn.Protocol; "" when made by hand
}

// PlainUnreal51 is the handshake of Unreal 5.1, with LenientIDs.
func PlainUnreal51() PlainUnreal {
	return PlainUnreal{Handshake: handshake.Unreal51(), LenientIDs: true, release: netconn.Unreal51().Name}
}

// PlainUnreal427 is the handshake of Unreal 4.27 and 5.0.
func PlainUnreal427() PlainUnreal {
	return PlainUnreal{Handshake: handshake.Unreal427(), release: netconn.Unreal427().Name}
}

// PlainUnreal53 is the handshake of Unreal 5.3 and later.
func PlainUnreal53() PlainUnreal {
	return PlainUnreal{Handshake: handshake.Unreal53(), release: netconn.Unreal53(false).Name}
}

func (c *Config) clientID() uint8 {
	var b [2]byte
	if _, err := io.ReadFull(c.Rand, b[:]); err != nil {
		return 1
	}
	return uint8(1 + binary.LittleEndian.Uint16(b[:])%7) // not 0, which says "none yet"
}
