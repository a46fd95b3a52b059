package handshake

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// State is where a Client is in the exchange.
type State uint8

// The states of a Client.
const (
	Idle State = iota
	SendingInitial
	SendingResponse
	Done
	TimedOut
)

// String is the state's name.
func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case SendingInitial:
		return "sending initial packets"
	case SendingResponse:
		return "sending responses"
	case Done:
		return "done"
	case TimedOut:
		return "timed out"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ClientConfig is the settings of a Client.
type ClientConfig struct {
	Protocol Protocol
	// Send sends a datagram to the server; p is valid until it returns.
	Send func(p []byte)
	// ClientID tells connections of one address apart, modulo 8 (version 3 and later).
	ClientID uint8
	// Rand is the source of the padding. Default crypto/rand.
	Rand io.Reader
	// Timeout ends the attempt. Default 60 s (Unreal's InitialConnectTimeout); negative never.
	Timeout time.Duration
}

// ClientCounters is what became of the packets a Client got.
type ClientCounters struct {
	Sent, Challenges, Acks, RestartRequests, Restarts, Upgrades uint64
	Malformed, WrongType, Unexpected                            uint64 // refused
}

const (
	resendInterval  = time.Second
	challengeLife   = 15 * time.Second
	restartSilence  = 10 * time.Second        // since our own last handshake packet
	restartInterval = 1100 * time.Millisecond // between two restart requests
	restartQuiet    = time.Second             // since the last game packet
)

// Client is the client's side. Not safe for concurrent use.
type Client struct {
	Counters ClientCounters

	cfg       ClientConfig
	state     State
	restart   bool // the exchange under way continues a connection
	began     time.Duration
	lastSent  time.Duration
	challenge Packet
	heard     time.Duration // when the challenge came
	result    Accept
	connected bool // result is set
	lastGame  time.Duration
	lastAsk   time.Duration // last restart request
	asked     bool
	sentCount uint8
	buf       [128]byte
	pad       [maxPadding]byte
}

// NewClient returns a client.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	cfg.ClientID &= 1<<clientBits - 1
	return &Client{cfg: cfg}
}

// Start begins the exchange.
func (c *Client) Start(now time.Duration) {
	c.state, c.restart, c.began = SendingInitial, false, now
	c.connected = false
	c.send(now)
}

// State is where the exchange stands.
func (c *Client) State() State { return c.state }

// Result is what was agreed on; valid once State was Done.
func (c *Client) Result() Accept { return c.result }

// Tick sends again what wasn't answered.
func (c *Client) Tick(now time.Duration) {
	at, ok := c.NextDeadline()
	if !ok || now < at {
		return
	}
	if c.cfg.Timeout >= 0 && now-c.began >= c.cfg.Timeout {
		c.state = TimedOut
		return
	}
	if c.state == SendingResponse && now-c.heard >= challengeLife {
		c.state = SendingInitial // the challenge is too old
	}
	c.send(now)
}

// NextDeadline is when Tick has something to do.
func (c *Client) NextDeadline() (at time.Duration, ok bool) {
	if c.state != SendingInitial && c.state != SendingResponse {
		return 0, false
	}
	at = c.lastSent + resendInterval
	if c.cfg.Timeout >= 0 {
		at = min(at, c.began+c.cfg.Timeout)
	}
	return at, true
}

// GamePacket tells that a game packet of the connection came; a restart request right
// after one is not believed.
func (c *Client) GamePacket(now time.Duration) { c.lastGame = now }

// Receive takes a handshake packet from the server.
func (c *Client) Receive(now time.Duration, p []byte) {
	pk, err := c.cfg.Protocol.Read(p, true)
	if err != nil {
		c.Counters.Malformed++
		return
	}
	if pk.Type == Challenge && pk.Restart && c.state == Done && c.cfg.Protocol.Version >= 1 {
		c.Counters.Unexpected++
		return
	}
	switch pk.Type {
	case Challenge:
		c.receiveChallenge(now, &pk)
	case Ack:
		c.receiveAck(&pk)
	case RestartHandshake:
		c.receiveRestart(now)
	case VersionUpgrade:
		c.Counters.Upgrades++
	default:
		c.Counters.WrongType++
	}
}

func (c *Client) receiveChallenge(now time.Duration, pk *Packet) {
	if c.state != SendingInitial {
		c.Counters.Unexpected++
		return
	}
	c.Counters.Challenges++
	c.challenge, c.heard, c.state = *pk, now, SendingResponse
	c.send(now)
}

func (c *Client) receiveAck(pk *Packet) {
	// Some servers put the first cookie into the Ack of a restart.
	mine := pk.Cookie == c.challenge.Cookie || c.restart && pk.Cookie == c.result.Cookie
	if c.state != SendingResponse || !mine {
		c.Counters.Unexpected++
		return
	}
	c.Counters.Acks++
	c.state = Done
	if c.restart {
		c.Counters.Restarts++
		return
	}
	server, client := pk.Cookie.Sequences()
	c.result = Accept{Cookie: pk.Cookie, ServerSeq: server, ClientSeq: client, SessionID: c.challenge.SessionID, ClientID: c.cfg.ClientID, NetworkVersion: pk.NetworkVersion}
	c.connected = true
}

// receiveRestart begins the exchange again when it is plausible that the server
// lost us: we have a cookie, our last handshake packet is 10 s old, and either no request came in
// the last 1.1 s or no game packet for a second.
func (c *Client) receiveRestart(now time.Duration) {
	recent := c.asked && now-c.lastAsk < restartInterval
	plausible := c.connected && c.state == Done && now-c.lastSent > restartSilence && (!recent || now-c.lastGame >= restartQuiet)
	c.lastAsk, c.asked = now, true
	if !plausible {
		c.Counters.Unexpected++
		return
	}
	c.Counters.RestartRequests++
	c.state, c.restart, c.began = SendingInitial, true, now
	c.send(now)
}

// send sends the packet of the state.
func (c *Client) send(now time.Duration) {
	pr := &c.cfg.Protocol
	pk := Packet{Type: Initial, Restart: c.restart, ClientID: c.cfg.ClientID, MinVersion: pr.MinVersion, CurVersion: pr.Version,
		SentCount: c.sentCount, NetworkVersion: pr.NetworkVersion, Features: pr.RuntimeFeatures}
	if c.state == SendingResponse {
		ch := &c.challenge
		pk.Type, pk.SessionID = Response, ch.SessionID
		pk.SecretID, pk.Timestamp, pk.Cookie = ch.SecretID, ch.Timestamp, ch.Cookie
		if c.restart {
			pk.Type, pk.FirstCookie = RestartResponse, c.result.Cookie
		}
	}
	c.sentCount++
	c.lastSent = now
	var w bitio.Writer
	w.Reset(c.buf[:])
	pr.Write(&w, &pk, c.padding())
	c.Counters.Sent++
	c.cfg.Send(w.Bytes())
}

// padding is 8 to 16 random bytes. The server answers with no more than it got.
func (c *Client) padding() []byte {
	if c.cfg.Protocol.Version == 0 {
		return nil
	}
	if _, err := io.ReadFull(c.cfg.Rand, c.pad[:]); err != nil {
		return c.pad[:minPadding]
	}
	return c.pad[:minPadding+int(c.pad[0])%(maxPadding-minPadding+1)]
}
