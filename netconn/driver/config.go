package driver

import (
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

// Config is the settings of a Driver. The zero value with Channels is useful; both ends must
// have the same Channels, Link and Protocol.
type Config struct {
	// Channels is the kinds of channels. A control channel with the login is added unless
	// bunch.Control is among them.
	Channels []channel.Type
	// Link is the handshake below connections, and what seals their packets. nil is Netcode{}: encrypted,
	// with the key in the environment variable named by KeyEnv. The links that encrypt nothing
	// say so by their names, PlainUnreal and PlainSalted.
	Link Link
	// Protocol is the wire of packets and bunches. Default netconn.Bunchnet(). One of Unreal's must be of the Link's release. Its
	// Bunch.MaxPacket may be 1200 bytes with Netcode and PlainSalted, and 1496 with PlainUnreal.
	Protocol netconn.Protocol

	// Joined is called when a connection is ready: on a server after the client's
	// login, on a client after the server's welcome, or when it called Conn.Join; without a login after the handshake. Server.Admitted and
	// Client.Entered are called right behind it.
	Joined func(c *Conn)
	// Closed is called once for each connection that has ended, joined or not; on a client
	// with a nil Conn when none came about.
	Closed func(c *Conn, r netconn.CloseResult)
	// Accepted is called when the handshake is done, before the login: the place to open a
	// control channel of one's own. May be nil.
	Accepted func(c *Conn)

	// Server and Client are what the login says and asks.
	Server control.ServerConfig
	Client control.ClientConfig

	// MaxConns bounds a server's connections, unless its Link has Slots. Default 256.
	MaxConns int
	// MaxPerAddr bounds the connections of one IPv4 address or one /64 of IPv6, for links that know nothing else of
	// their clients, PlainSalted and PlainUnreal. Default a quarter of all, and 4 at least; negative no bound. The loopback has none.
	MaxPerAddr int
	// LoginTimeout ends connections that don't complete their login. Default 15 s. A client that falls silent in its login keeps its place for
	// that long and LingerTimeout, 17 s; with Netcode the same client may take it over.
	LoginTimeout time.Duration
	// TickRate is Run's ticks a second. Default 60.
	TickRate int
	// MaxDatagrams bounds the datagrams that one TickDispatch reads, to whole batches of the socket. What it leaves is read
	// by the next one, so that a flood delays nobody's tick. Default 4096, about what a socket's buffer of 4 MiB holds,
	// or four for each of MaxConns if that is more. Counters.ReadsBounded counts the ticks that it ended. Run reads between
	// ticks as well, for as long as there is time.
	MaxDatagrams int
	// Prompt makes Run send what handlers and Do write at once, instead of at the next
	// tick: less latency for more, smaller packets, and a look at every connection each
	// time, so rather for hundreds than for thousands. It needs a socket whose read another
	// goroutine may end with SetReadDeadline, as that of Listen and Dial.
	Prompt bool

	// Timeout ends a connection of which nothing was received that long, on every link. Default 60 s; negative never.
	Timeout time.Duration
	// The rest is passed on to every connection; see netconn.Config.
	KeepAlive, LingerTimeout         time.Duration
	AckDelay                         time.Duration
	NoPacketInfo                     bool
	ReorderWindow                    time.Duration
	Redundancy                       netconn.Redundancy
	NeverReuseIndex, RestartSequence bool
	MaxChannels, MaxMemory           int
	// Controller makes the pace of a connection. nil is congestion.NewAdaptive, which finds the
	// bandwidth of the path; but Unreal's NetSpeed bucket when NetSpeed is set, or with a
	// protocol of Unreal's.
	Controller func() congestion.Controller
	// NetSpeed is that bucket's rate in bytes a second. Default 100000; the login changes it.
	NetSpeed int

	// Checksum puts a CRC-32C behind every datagram and drops those that it doesn't fit.
	// UDP's own checksum has 16 bits, and middleboxes rewrite it. Both ends must have
	// it; it isn't part of Unreal's wire.
	Checksum bool

	// Socket is used instead of opening one, and closed with the driver.
	Socket udp.Socket
	// UDP is the settings of the socket that is opened.
	UDP udp.Config
	// Rand is the source of secrets. Default crypto/rand.
	Rand io.Reader
	// Clock is the time of day. Default time.Now; a simulation gives its own, and the times of its ticks. As it may
	// be repeated, the process doesn't remember the tokens it dialed with.
	Clock func() time.Time
	// Logger gets what an operator should know: who joined and left, in 20 lines a second at most, and what
	// was refused or ignored, by reason, in one line a second at most; see Driver.Refusals. Default none, but for the warning that a key was
	// made for development, which then goes to slog.Default.
	Logger *slog.Logger
	// Trace gets what happens on every connection. Default none.
	Trace nettrace.Sink
	// Packets gets every connection's packets with their addresses, decrypted; see
	// netconn/nettrace/pcapng for a file of them. Default none.
	Packets nettrace.PacketSink

	maxPerAddr int // MaxPerAddr for links whose number of connections is MaxConns
}

const (
	minDatagrams   = 4096
	datagramsAConn = 4
	minPerAddr     = 4
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

// Link is the handshake and the framing below connections. Choose one by its constructor.
type Link interface {
	server(d *Driver) serverLink
	client(d *Driver) clientLink
	// maxPacket is the largest packet of a connection in bytes.
	maxPacket() int
}

// PlainUnreal is Unreal's stateless handshake with the given protocol. Nothing is
// encrypted and nobody authenticated: for trusted networks and Unreal's own wire. A peer of Unreal's own needs the
// Protocol of its release as well, which [Unreal427], [Unreal51] and [Unreal53] set together with the link.
type PlainUnreal struct {
	Handshake handshake.Protocol
	// SessionID is the server's travel count, modulo 4.
	SessionID uint8
	// LenientIDs accepts clients that carry id 0 until answered.
	LenientIDs bool

	release string // whose preset it is, by the name of its netconn.Protocol; "" by hand
}

// PlainUnreal51 is the handshake of Unreal 5.1, lenient to known peers.
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
