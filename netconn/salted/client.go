package salted

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// State is a client's state. States below zero are failures.
type State int

// The states of a client.
const (
	ConnectionTimedOut State = -4 // nothing came from the server for ClientConfig.Timeout
	ResponseTimedOut   State = -3 // the server didn't accept the response within ConnectTimeout
	RequestTimedOut    State = -2 // the server didn't answer the request within ConnectTimeout
	Denied             State = -1 // the server refused; see Client.Reason
	Disconnected       State = 0  // either end disconnected, or Connect wasn't called yet
	SendingRequest     State = 1
	SendingResponse    State = 2
	Connected          State = 3
)

// String returns the state in words.
func (s State) String() string {
	switch s {
	case ConnectionTimedOut:
		return "connection timed out"
	case ResponseTimedOut:
		return "response timed out"
	case RequestTimedOut:
		return "request timed out"
	case Denied:
		return "denied"
	case Disconnected:
		return "disconnected"
	case SendingRequest:
		return "sending request"
	case SendingResponse:
		return "sending response"
	case Connected:
		return "connected"
	}
	return "unknown"
}

// Client connects to a server. It isn't safe for concurrent use.
type Client struct {
	// Counters counts what happened so far.
	Counters Counters

	cfg    ClientConfig
	frame  framer
	state  State
	reason Reason
	server netip.AddrPort
	salt   uint64
	prefix uint64
	slot   int
	slots  int
	heard  time.Duration // or since the state
	sent   time.Duration

	challenged time.Duration // when the last challenge came
	asked      bool          // the packet sent last was a request, though there is a challenge

	out [PaddedSize]byte
}

// NewClient returns a client that isn't connected, or an error that wraps ErrConfig.
func NewClient(cfg ClientConfig) (*Client, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, frame: newFramer(cfg.ProtocolID)}, nil
}

// State returns the client's state.
func (c *Client) State() State { return c.state }

// Reason returns why a connection or an attempt failed or ended; 0 if this end disconnected.
func (c *Client) Reason() Reason { return c.reason }

// Slot returns the client's slot on the server and the server's number of slots. Both are valid once connected.
func (c *Client) Slot() (slot, slots int) { return c.slot, c.slots }

// Connect begins to connect, with a new salt. It returns ErrBusy while the client is connected or connecting, and
// the error of Rand when that fails.
func (c *Client) Connect(now time.Duration, server netip.AddrPort) error {
	if c.state > Disconnected {
		return ErrBusy
	}
	var salt [8]byte
	if _, err := io.ReadFull(c.cfg.Rand, salt[:]); err != nil {
		return fmt.Errorf("salted: no salt from Rand: %w", err)
	}
	c.salt, c.prefix = binary.LittleEndian.Uint64(salt[:]), 0
	c.server, c.reason, c.heard = server, 0, now
	c.change(SendingRequest)
	c.say(now)
	return nil
}

// Disconnect ends the connection, or the attempt.
func (c *Client) Disconnect(time.Duration) {
	c.sayGoodbye()
	c.change(Disconnected)
}

// sayGoodbye tells the server that this client leaves, if it may have a slot or get one by a response that is under way.
func (c *Client) sayGoodbye() {
	if c.state < SendingResponse {
		return
	}
	p := c.out[:disconnectSize]
	putFirst(p, c.prefix)
	p[13] = byte(Closed)
	c.frame.close(p, typeDisconnect)
	for range disconnectCopies {
		c.send(p)
	}
}

// SendPayload sends p[Headroom:]. It overwrites p[:Headroom], so that nothing has to be copied. It returns
// ErrNotConnected, or ErrPayloadSize unless the payload has 1 to MaxPayload bytes.
func (c *Client) SendPayload(now time.Duration, p []byte) error {
	if c.state != Connected {
		return ErrNotConnected
	}
	if len(p) <= Headroom || len(p) > MaxPacket {
		return ErrPayloadSize
	}
	putFirst(p, c.prefix)
	c.sent = now
	c.send(c.frame.close(p, typePayload))
	return nil
}

// Tick ends what has timed out and sends what is due.
func (c *Client) Tick(now time.Duration) {
	switch {
	case c.state <= Disconnected:
	case now-c.heard >= c.timeout():
		c.Counters.TimedOut++
		c.reason = TimedOut
		c.change(c.state.timedOut())
	case now-c.sent >= c.cfg.Interval:
		c.say(now)
	}
}

func (s State) timedOut() State {
	switch s {
	case SendingRequest:
		return RequestTimedOut
	case SendingResponse:
		return ResponseTimedOut
	}
	return ConnectionTimedOut
}

// NextDeadline returns when Tick next has something to do. ok is false when there is nothing.
func (c *Client) NextDeadline() (at time.Duration, ok bool) {
	if c.state <= Disconnected {
		return never, false
	}
	at = c.sent + c.cfg.Interval
	if c.timeout() != never {
		at = min(at, c.heard+c.timeout())
	}
	return at, true
}

// timeout is how long nothing may be heard in the state at hand.
func (c *Client) timeout() time.Duration {
	if c.state == Connected {
		return c.cfg.Timeout
	}
	return c.cfg.ConnectTimeout
}

// Receive handles a datagram. The payload that the Handler gets lies within p.
func (c *Client) Receive(now time.Duration, from netip.AddrPort, p []byte) {
	c.Counters.Received++
	c.Counters.refuse(c.receive(now, from, p))
}

func (c *Client) receive(now time.Duration, from netip.AddrPort, p []byte) refusal {
	if c.state <= Disconnected || from.Port() != c.server.Port() || from.Addr().Unmap() != c.server.Addr().Unmap() {
		return noSession
	}
	t, why := c.frame.open(p)
	if why != accepted {
		return why
	}
	switch t {
	case typeChallenge:
		return c.challenge(now, p)
	case typeDenied:
		return c.denied(p)
	case typeKeepAlive, typePayload, typeDisconnect:
		return c.session(now, t, p)
	}
	return badType
}

func (c *Client) challenge(now time.Duration, p []byte) refusal {
	switch {
	case len(p) != challengeSize:
		return badSize
	case first(p) != c.salt:
		return badSalt
	case c.state != SendingRequest && !c.mayAsk(now):
		return unexpected
	}
	c.prefix = c.salt ^ second(p)
	c.challenged = now
	if c.state == SendingRequest {
		c.heard = now // and no later than ConnectTimeout after that a slot
	}
	c.change(SendingResponse)
	c.say(now)
	return accepted
}

func (c *Client) denied(p []byte) refusal {
	switch {
	case len(p) != deniedSize:
		return badSize
	case first(p) != c.salt:
		return badSalt
	case c.state == Connected:
		return unexpected
	}
	c.Counters.Denied++
	c.reason = Reason(p[13])
	c.sayGoodbye()
	c.change(Denied)
	return accepted
}

func (c *Client) session(now time.Duration, t packetType, p []byte) refusal {
	switch {
	case c.state == SendingRequest:
		return unexpected
	case first(p) != c.prefix:
		return badPrefix
	}
	switch t {
	case typeKeepAlive:
		return c.keepAlive(now, p)
	case typePayload:
		if len(p) == Overhead {
			return badSize
		}
		if c.state != Connected {
			return unexpected // its slot isn't known yet
		}
		c.heard = now
		c.Counters.Payloads++
		c.cfg.Handler.Payload(p[Headroom:])
	case typeDisconnect:
		if len(p) != disconnectSize {
			return badSize
		}
		c.reason = Reason(p[13])
		c.change(Disconnected)
	}
	return accepted
}

func (c *Client) keepAlive(now time.Duration, p []byte) refusal {
	if len(p) != serverKeepAliveSize {
		return badSize
	}
	slot, slots := int(binary.LittleEndian.Uint16(p[13:])), int(binary.LittleEndian.Uint16(p[15:]))
	if slot >= slots {
		return badSize
	}
	c.heard = now
	if c.state == SendingResponse {
		c.slot, c.slots = slot, slots
		c.Counters.Connected++
		c.change(Connected)
		if c.state == Connected {
			c.say(now) // confirms it
		}
	}
	return accepted
}

// askAgain is how long responses go unanswered before every other packet is a request again: the server forgets the secret of a challenge, and when
// it restarts.
const askAgain = 2 * time.Second

// mayAsk reports whether a challenge is old enough for another one.
func (c *Client) mayAsk(now time.Duration) bool {
	return c.state == SendingResponse && now-c.challenged >= askAgain
}

// say sends the state's packet.
func (c *Client) say(now time.Duration) {
	c.sent = now
	c.asked = c.mayAsk(now) && !c.asked
	switch {
	case c.state == SendingRequest || c.asked:
		p := c.out[:]
		clear(p)
		putFirst(p, c.salt)
		c.send(c.frame.close(p, typeRequest))
	case c.state == SendingResponse:
		p := c.out[:] // zeros behind the fields
		putFirst(p, c.prefix)
		putSecond(p, c.salt)
		c.send(c.frame.close(p, typeResponse))
	case c.state == Connected:
		p := c.out[:clientKeepAliveSize]
		putFirst(p, c.prefix)
		c.send(c.frame.close(p, typeKeepAlive))
	}
}

func (c *Client) send(p []byte) {
	c.Counters.Sent++
	c.cfg.Handler.Send(c.server, p)
}

func (c *Client) change(to State) {
	from := c.state
	if from == to {
		return
	}
	c.state = to
	c.cfg.Handler.StateChanged(from, to)
}
