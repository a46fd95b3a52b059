package handshake

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// State is the state of a Client's handshake.
type State uint8

// The states of a Client. Done is also where a client returns to when a restart of its
// connection times out.
const (
	Idle State = iota
	SendingInitial
	SendingResponse
	Done
	TimedOut
)

// String returns the state's name.
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

// ClientConfig configures a Client. Send is required.
type ClientConfig struct {
	// Protocol is the version of the wire. The zero value is version 0 (Unreal427).
	Protocol Protocol
	// Send sends a datagram to the server. p is valid until it returns. Required.
	Send func(p []byte)
	// ClientID distinguishes connections from one address, modulo 8 (version 3 and later).
	ClientID uint8
	// Rand is the randomness of the padding. Default crypto/rand. While it fails the padding is zeros.
	Rand io.Reader
	// Timeout ends the attempt: 10 ms to 100 years. Default 60 s (Unreal's InitialConnectTimeout). Negative: never.
	Timeout time.Duration
}

func (c ClientConfig) filled() ClientConfig {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Timeout == 0 {
		c.Timeout = 60 * time.Second
	}
	c.ClientID &= 1<<clientBits - 1
	return c
}

const (
	resendInterval = time.Second
	// challengeLife is how long a challenge is answered. It is no good once the address has changed. Where only the Acks are lost, another one
	// makes a second connection, which ends the first.
	challengeLife = 5 * time.Second
	// restartLife is the same for a restart, which makes no second connection.
	restartLife = 3 * time.Second
	minTimeout  = 10 * time.Millisecond
)

// Client is the client's side of the handshake. Not safe for concurrent use.
type Client struct {
	Counters ClientCounters

	cfg       ClientConfig
	state     State
	restart   bool // the exchange under way continues a connection
	began     time.Duration
	lastSent  time.Duration
	challenge Packet        // the last one
	heard     time.Duration // when it came
	result    Accept
	lastGame  time.Duration
	lastAsk   time.Duration // last restart request
	asked     bool          // lastAsk is set
	upgrade   Packet        // the last VersionUpgrade
	sentCount uint8
	buf       [maxPacket]byte
	pad       [maxPadding]byte
}

// NewClient returns a client, or an error that wraps ErrConfig. Start begins the handshake.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.Protocol.Validate(); err != nil {
		return nil, err
	}
	if cfg.Send == nil {
		return nil, fmt.Errorf("%w: no Send", ErrConfig)
	}
	cfg = cfg.filled()
	if cfg.Timeout >= 0 {
		if err := setting.Within(ErrConfig, "Timeout", cfg.Timeout, minTimeout, setting.Longest); err != nil {
			return nil, err
		}
	}
	return &Client{cfg: cfg}, nil
}

// Start begins the handshake. It ends an earlier one.
func (c *Client) Start(now time.Duration) {
	c.state, c.restart, c.began = SendingInitial, false, now
	c.upgrade = Packet{}
	c.send(now)
}

// State returns the state of the handshake.
func (c *Client) State() State { return c.state }

// Result returns the result of the handshake. It is valid once State was Done.
func (c *Client) Result() Accept { return c.result }

// UpgradeDemanded returns the network version and runtime features that a server of version 4 demanded instead of answering. The demand isn't
// authenticated, so the client goes on trying until its Timeout.
func (c *Client) UpgradeDemanded() (networkVersion uint32, features uint16, ok bool) {
	return c.upgrade.NetworkVersion, c.upgrade.Features, c.upgrade.Type == VersionUpgrade
}

func (c *Client) underWay() bool { return c.state == SendingInitial || c.state == SendingResponse }

// Tick sends again what wasn't answered for a second, and ends the handshake after its Timeout.
func (c *Client) Tick(now time.Duration) {
	at, ok := c.NextDeadline()
	if !ok || now < at {
		return
	}
	if c.cfg.Timeout >= 0 && now-c.began >= c.cfg.Timeout {
		c.timeout()
		return
	}
	life := challengeLife
	if c.restart {
		life = restartLife
	}
	if c.state == SendingResponse && now-c.heard >= life {
		c.state = SendingInitial // the challenge is too old
	}
	c.send(now)
}

// timeout gives up. A connection that couldn't be moved is where it was.
func (c *Client) timeout() {
	if c.restart {
		c.state, c.restart = Done, false
		c.Counters.RestartTimeouts++
		return
	}
	c.state = TimedOut
}

// NextDeadline returns the time at which Tick must be called next. ok is false if there is none.
func (c *Client) NextDeadline() (at time.Duration, ok bool) {
	if !c.underWay() {
		return 0, false
	}
	at = c.lastSent + resendInterval
	if c.cfg.Timeout >= 0 {
		at = min(at, c.began+c.cfg.Timeout)
	}
	return at, true
}

// GamePacket tells the client that a game packet of the connection arrived. It ends a restart, because the server knows the client's address.
// A restart request soon after a game packet is ignored.
func (c *Client) GamePacket(now time.Duration) {
	c.lastGame = now
	if c.restart {
		c.state, c.restart = Done, false
		c.Counters.RestartsNeedless++
	}
}

// Receive handles a handshake packet from the server.
func (c *Client) Receive(now time.Duration, p []byte) {
	pk, err := c.cfg.Protocol.Read(p, true)
	if err != nil {
		c.Counters.Malformed.count(err)
		return
	}
	switch {
	case c.hasSession(&pk) && pk.ClientID != c.cfg.ClientID:
		c.Counters.WrongClientID++
	case pk.Type == VersionUpgrade:
		c.receiveUpgrade(&pk)
	case !pk.original && !c.cfg.Protocol.fits(&pk):
		c.Counters.WrongVersion++
	case pk.Type == Challenge:
		c.receiveChallenge(now, &pk)
	case pk.Type == Ack:
		c.receiveAck(&pk)
	case pk.Type == RestartHandshake:
		c.receiveRestart(now, &pk)
	default:
		c.Counters.WrongType++
	}
}

// hasSession reports whether a packet has the ids.
func (c *Client) hasSession(pk *Packet) bool { return c.cfg.Protocol.hasIDs() && !pk.original }

func (c *Client) receiveUpgrade(pk *Packet) {
	if !c.underWay() {
		c.Counters.Unexpected++
		return
	}
	c.Counters.Upgrades++
	c.upgrade = *pk
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

// receiveAck ends an exchange. That of a restart holds the cookie of the challenge or, as from Unreal,
// the connection's first one; a server that has the connection at this address may answer the restart's Initial with that at once.
func (c *Client) receiveAck(pk *Packet) {
	own := c.restart && pk.Cookie == c.result.Cookie
	switch {
	case own && c.hasSession(pk) && pk.SessionID != c.result.SessionID:
		c.Counters.WrongSession++
		return
	case own:
	case c.state != SendingResponse:
		c.Counters.Unexpected++
		return
	case c.hasSession(pk) && pk.SessionID != c.challenge.SessionID:
		c.Counters.WrongSession++
		return
	case pk.Cookie != c.challenge.Cookie:
		c.Counters.WrongCookie++
		return
	}
	c.Counters.Acks++
	c.state = Done
	if c.restart {
		c.restart = false
		c.Counters.Restarts++
		return
	}
	server, client := pk.Cookie.Sequences()
	c.result = Accept{Cookie: pk.Cookie, ServerSeq: server, ClientSeq: client, SessionID: c.challenge.SessionID,
		ClientID: c.cfg.ClientID, NetworkVersion: c.challenge.NetworkVersion, Timestamp: c.challenge.Timestamp}
}

// send sends the packet of the state.
func (c *Client) send(now time.Duration) {
	pr := &c.cfg.Protocol
	pk := Packet{Type: Initial, Restart: c.restart, ClientID: c.cfg.ClientID, MinVersion: pr.MinVersion, CurVersion: pr.Version,
		SentCount: c.sentCount, NetworkVersion: pr.NetworkVersion, Features: pr.RuntimeFeatures}
	if c.state == SendingResponse {
		ch := &c.challenge
		pk.Type, pk.SessionID = Response, ch.SessionID
		pk.CurVersion = min(pr.Version, ch.CurVersion)
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

// padding is 8 to 16 bytes, and random unless the source fails. The server answers with no more than it got.
func (c *Client) padding() []byte {
	if c.cfg.Protocol.Version == Original {
		return nil
	}
	if _, err := io.ReadFull(c.cfg.Rand, c.pad[:]); err != nil {
		clear(c.pad[:])
	}
	return c.pad[:minPadding+int(c.pad[0])%(maxPadding-minPadding+1)]
}
