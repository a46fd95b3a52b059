package netcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/history/replay"
)

// State is a client's state. States below 0 are failures.
type State int

// The states, with netcode's numbers.
const (
	TokenExpired     State = -6
	InvalidToken     State = -5
	ConnTimedOut     State = -4
	ResponseTimedOut State = -3
	RequestTimedOut  State = -2
	Denied           State = -1
	Disconnected     State = 0
	SendingRequest   State = 1
	SendingResponse  State = 2
	Connected        State = 3
)

// String is the state in words.
func (s State) String() string {
	names := map[State]string{TokenExpired: "token expired", InvalidToken: "invalid token", ConnTimedOut: "timed out", ResponseTimedOut: "response timed out",
		RequestTimedOut: "request timed out", Denied: "denied", Disconnected: "disconnected", SendingRequest: "sending request", SendingResponse: "sending response", Connected: "connected"}
	if n, ok := names[s]; ok {
		return n
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// ClientHandler has the functions that a Client calls. Buffers are valid until the function returns.
type ClientHandler interface {
	Send(to netip.AddrPort, p []byte)
	StateChanged(from, to State)
	Payload(p []byte)
}

// Denial is why a server denied a client.
type Denial uint8

// The reasons. Servers of other makers have the first only.
const (
	Full             Denial = iota // all slots are taken
	AlreadyConnected               // a client with the token's id is connected
	OtherProtocol                  // the server has another ProtocolID than the token
)

// String is the reason in words.
func (d Denial) String() string {
	switch d {
	case Full:
		return "the server is full"
	case AlreadyConnected:
		return "a client with this id is connected"
	case OtherProtocol:
		return "the server has another protocol id"
	}
	return fmt.Sprintf("Denial(%d)", uint8(d))
}

// ClientConfig configures a Client.
type ClientConfig struct {
	// Handler sends packets and gets payloads. Required.
	Handler ClientHandler
	// ProtocolID distinguishes games and their versions. Connect refuses a token with another one.
	ProtocolID uint64
	// Timeout ends a connection from which nothing was received for that long: 200 ms to 100 years; negative never. Default 0: the token's
	// timeout. While connecting the token's timeout always applies.
	Timeout time.Duration
}

// ClientCounters counts the packets that a Client received, and why it refused some.
type ClientCounters struct {
	Payloads, KeepAlives                                    uint64
	OtherSource, BadFormat, Unexpected, Replayed, NotSealed uint64
}

// Client connects with a token to the first of its servers that lets it in. Not safe for concurrent use.
type Client struct {
	Counters ClientCounters

	cfg        ClientConfig
	state      State
	token      public
	used       [rememberedTokens][tokenNonceBytes]byte // nonces of the tokens used last: none is used twice
	nUsed      int
	send, recv *sealer
	server     int
	seq        uint64
	window     replay.Window
	began      time.Duration // the whole attempt
	heard      time.Duration
	sent       time.Duration
	failure    State // of the server tried last
	denial     Denial
	denied     bool // a server of the token has denied the client
	challenge  [8 + challengeBytes]byte
	challenged time.Duration // when it came
	asked      bool          // the packet sent last was a request, though there is a challenge
	slot, max  int
	buf        [Headroom + 8 + challengeBytes + Tailroom]byte
	req        []byte
}

// rememberedTokens is how many tokens a Client remembers.
const rememberedTokens = 16

// NewClient returns a client that isn't connected, or an error that wraps ErrConfig.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Handler == nil {
		return nil, fmt.Errorf("%w: ClientConfig needs a Handler", ErrConfig)
	}
	if err := validateTimeout("ClientConfig", cfg.Timeout); err != nil {
		return nil, err
	}
	return &Client{cfg: cfg}, nil
}

// State is the client's state.
func (c *Client) State() State { return c.state }

// Denial is the server's reason to refuse the client. It is valid when State is Denied.
func (c *Client) Denial() Denial { return c.denial }

// Denied is why a server of the token denied the client last, though another one may not have answered since. ok is false when none has, and once the client has connected.
func (c *Client) Denied() (why Denial, ok bool) { return c.denial, c.denied }

// Slot is the client's slot and the server's number of slots, which is above it. Both are valid when State is Connected.
func (c *Client) Slot() (slot, slots int) { return c.slot, c.max }

// Errors of Connect and SendPayload.
var (
	ErrTokenReused  = errors.New("netcode: the token was used before; get a new one")
	ErrNotConnected = errors.New("netcode: not connected")
	ErrProtocol     = errors.New("netcode: the token is for another protocol id than the client's")
)

// Connect begins an attempt with a connect token, which is good for one attempt only. It ends the connection or attempt before it. Errors:
// ErrToken, ErrServers, ErrProtocol, ErrTokenReused. Whether the token has expired the server decides.
func (c *Client) Connect(now time.Duration, token []byte) error {
	c.Disconnect(now)
	var t public
	if err := t.read(token); err != nil {
		c.set(InvalidToken)
		return err
	}
	if t.protocolID != c.cfg.ProtocolID {
		c.set(InvalidToken)
		return fmt.Errorf("%w: it has %#x, the client %#x", ErrProtocol, t.protocolID, c.cfg.ProtocolID)
	}
	if slices.Contains(c.used[:min(c.nUsed, rememberedTokens)], t.nonce) {
		return ErrTokenReused
	}
	c.used[c.nUsed%rememberedTokens] = t.nonce
	c.nUsed++
	c.token = t
	c.send, c.recv = newSealer(&t.c2s, t.protocolID), newSealer(&t.s2c, t.protocolID)
	c.server, c.seq, c.began, c.failure, c.denied = 0, 0, now, RequestTimedOut, false
	c.try(now)
	return nil
}

// try begins with the server at hand.
func (c *Client) try(now time.Duration) {
	c.window = replay.Window{}
	c.heard = now
	c.set(SendingRequest)
	c.transmit(now)
}

func (c *Client) set(s State) {
	old := c.state
	c.state = s
	if old != s {
		c.cfg.Handler.StateChanged(old, s)
	}
}

func (c *Client) addr() netip.AddrPort { return c.token.servers[c.server] }

// askAgain is how long responses go unanswered before every other packet is a request again: the server forgets a challenge after
// answerTime, and when it restarts.
const askAgain = 2 * time.Second

// mayAsk reports whether a challenge is old enough for another one.
func (c *Client) mayAsk(now time.Duration) bool {
	return c.state == SendingResponse && now-c.challenged >= askAgain
}

// transmit sends the packet of the state.
func (c *Client) transmit(now time.Duration) {
	c.sent = now
	if c.state != SendingRequest {
		c.asked = c.mayAsk(now) && !c.asked
	}
	switch {
	case c.state == SendingRequest || c.asked:
		c.req = appendRequest(c.req[:0], &c.token)
		c.seq++ // requests count too
		c.cfg.Handler.Send(c.addr(), c.req)
	case c.state == SendingResponse:
		copy(c.buf[Headroom:], c.challenge[:])
		c.emit(typeResponse, c.buf[:Headroom+len(c.challenge)])
	case c.state == Connected:
		clear(c.buf[Headroom : Headroom+8])
		c.emit(typeKeepAlive, c.buf[:Headroom+8])
	}
}

func (c *Client) emit(t packetType, buf []byte) {
	c.cfg.Handler.Send(c.addr(), c.send.seal(t, c.seq, buf))
	c.seq++
}

// Receive handles a datagram. It decrypts p in place.
func (c *Client) Receive(now time.Duration, from netip.AddrPort, p []byte) {
	if c.state <= Disconnected {
		c.Counters.Unexpected++
		return
	}
	if unmap(from) != c.addr() {
		c.Counters.OtherSource++
		return
	}
	t, seq, body, err := header(p)
	if err != nil || t == typeResponse {
		c.Counters.BadFormat++
		return
	}
	sequenced := t >= typeKeepAlive
	if sequenced && !c.window.Check(seq) {
		c.Counters.Replayed++
		return
	}
	plain, err := c.recv.open(p[0], seq, body)
	if err != nil {
		c.Counters.NotSealed++
		return
	}
	if sequenced {
		c.window.Accept(seq)
	}
	c.process(now, t, plain)
}

func (c *Client) process(now time.Duration, t packetType, plain []byte) {
	switch {
	case t == typeDenied && (c.state == SendingRequest || c.state == SendingResponse):
		if c.failure, c.denial, c.denied = Denied, Full, true; len(plain) > 0 {
			c.denial = Denial(plain[0])
		}
		c.next(now)
	case t == typeChallenge && (c.state == SendingRequest || c.mayAsk(now)):
		copy(c.challenge[:], plain)
		if c.challenged = now; c.state == SendingRequest {
			c.heard = now // and no later than the timeout after that a slot
		}
		c.set(SendingResponse)
		c.transmit(now)
	case t == typeKeepAlive && c.state >= SendingResponse:
		slot, slots := binary.LittleEndian.Uint32(plain), binary.LittleEndian.Uint32(plain[4:])
		if c.state == SendingResponse && (slot >= slots || slots > math.MaxInt32) {
			c.Counters.BadFormat++
			return
		}
		c.heard = now
		c.Counters.KeepAlives++
		if c.state == SendingResponse {
			c.slot, c.max = int(slot), int(slots)
			c.denied = false
			c.set(Connected)
			c.transmit(now) // so that the server knows that we know
		}
	case t == typePayload && c.state == Connected:
		c.heard = now
		c.Counters.Payloads++
		c.cfg.Handler.Payload(plain)
	case t == typeDisconnect && c.state >= SendingResponse: // it may overtake the word of its slot
		c.set(Disconnected)
	default:
		c.Counters.Unexpected++
	}
}

// next tries the token's next server, or fails.
func (c *Client) next(now time.Duration) {
	c.sayGoodbye()
	if c.server+1 == len(c.token.servers) {
		c.set(c.failure)
		return
	}
	c.server++
	c.try(now)
}

// SendPayload encrypts the payload p[Headroom:] in place and sends it. p needs Tailroom bytes of capacity behind it. A payload has 1 to
// MaxPayload bytes. Errors: ErrNotConnected, ErrSize.
func (c *Client) SendPayload(now time.Duration, p []byte) error {
	switch {
	case c.state != Connected:
		return ErrNotConnected
	case len(p) <= Headroom || len(p) > Headroom+MaxPayload || cap(p) < len(p)+Tailroom:
		return ErrSize
	}
	c.sent = now
	c.emit(typePayload, p)
	return nil
}

// sayGoodbye tells the server that this client leaves, if it may have a slot or get one by a response that is under way.
func (c *Client) sayGoodbye() {
	if c.state >= SendingResponse {
		for range disconnectSent {
			c.emit(typeDisconnect, c.buf[:Headroom])
		}
	}
}

// Disconnect ends the connection or attempt. When the server may have given the client a slot, it sends ten disconnect packets.
func (c *Client) Disconnect(time.Duration) {
	c.sayGoodbye()
	if c.state > Disconnected {
		c.set(Disconnected)
	}
}

// life is how long the attempt may take in all.
func (c *Client) life() time.Duration {
	return time.Duration(min(c.token.expire-c.token.create, 1<<32)) * time.Second
}

// timeout is how long nothing may be heard in the state at hand; negative for ever.
func (c *Client) timeout() time.Duration {
	if c.state == Connected && c.cfg.Timeout != 0 {
		return c.cfg.Timeout
	}
	return time.Duration(c.token.timeout) * time.Second
}

// Tick sends what is due and ends what has taken too long.
func (c *Client) Tick(now time.Duration) {
	if c.state <= Disconnected {
		return
	}
	timeout := c.timeout()
	silent := timeout >= 0 && now-c.heard > timeout
	switch {
	case c.state < Connected && now-c.began >= c.life():
		c.set(TokenExpired)
		return
	case silent && c.state == Connected:
		c.set(ConnTimedOut)
		return
	case silent:
		c.failure = RequestTimedOut
		if c.state == SendingResponse {
			c.failure = ResponseTimedOut
		}
		c.next(now)
		return
	}
	if now-c.sent >= sendInterval {
		c.transmit(now)
	}
}

// NextDeadline is when Tick has something to do.
func (c *Client) NextDeadline() (at time.Duration, ok bool) {
	if c.state <= Disconnected {
		return 0, false
	}
	return c.sent + sendInterval, true
}
