package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Conn is a connection with its address and its login. It belongs to the goroutine that ticks the driver.
type Conn struct {
	*netconn.Conn
	// User holds whatever the game puts there.
	User any

	datagrams int // handled since the last tick
	shed      int // dropped by excess

	driver   *Driver
	addr     netip.AddrPort
	began    time.Duration
	server   *control.Server // on a server with the login
	client   *control.Client // on a client with the login
	joined   bool
	joinedAt time.Duration
	// refusal is why the login was refused, at either end. On a server it may be set from the beginning.
	refusal error
	// refusedInJoined: the game closed it in Joined, so that its Accepts aren't called.
	refusedInJoined bool
	loginLate       bool // the login took longer than LoginTimeout
	leaves          bool // it existed when the driver was shut down
	displaced       bool // another client, or the same anew, has connected from its address: it hasn't left by itself
	parted          bool // it had ended in a tick, at partedAt; see parts
	partedAt        time.Duration

	spare spare

	settle   func() // takes the place of the same client's former connection; nil afterwards
	clientID uint64
	userData [netcode.UserDataBytes]byte
}

// ConnOf returns the connection that a channel is on; nil when it isn't a driver's.
func ConnOf(ch *channel.Channel) *Conn {
	if nc, ok := ch.Conn().(*netconn.Conn); ok {
		c, _ := nc.Owner().(*Conn)
		return c
	}
	return nil
}

// RemoteAddr is the peer's current address; it may change.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.addr }

// Driver is the connection's driver.
func (c *Conn) Driver() *Driver { return c.driver }

// Joined reports whether the login is done.
func (c *Conn) Joined() bool { return c.joined }

// Join tells the server that a client's game is ready. Only clients that set Config.Client's Welcomed call it, after
// that; others join automatically.
func (c *Conn) Join() error {
	if c.client == nil {
		return control.ErrNotWelcome
	}
	return c.client.Join()
}

// Login is what the client sent in its login; nil on a client, or without the login.
func (c *Conn) Login() *control.Login {
	if c.server == nil {
		return nil
	}
	return c.server.Login()
}

// Welcome is what the server sent when it accepted the login; nil on a server, without the login, and before it arrives.
func (c *Conn) Welcome() *control.Welcome {
	if c.client == nil {
		return nil
	}
	return c.client.Welcome()
}

// ClientID is the id in the client's token, on a server with the Netcode link; 0 otherwise.
func (c *Conn) ClientID() uint64 { return c.clientID }

// UserData is what the back end put into the client's token, on a server with the Netcode link; zeros otherwise.
func (c *Conn) UserData() *[netcode.UserDataBytes]byte { return &c.userData }

// CloseWithReason closes the connection in order, and tells the peer why. What was sent before, and what was written to
// streams, is delivered first. The peer's CloseResult has the Reason, or as PeerReason when it closes as well. The connection ends when the peer has acked everything, or after
// Config.LingerTimeout, counted from the last tick, so continue to tick until Config.Closed is called: after a hitch up to a second of it is over. The reason isn't told by Close, a method of
// the embedded netconn.Conn, nor by a client before its login has begun, in Accepted. Above 4096 characters the peer gets a shorter text instead, and the Logger
// says so. A zero byte in it becomes U+FFFD.
func (c *Conn) CloseWithReason(reason string) { c.CloseWithError(errors.New(reason)) }

// CloseWithError is CloseWithReason with the text of an error. When the error is or wraps ErrKicked or another of the
// server's reasons, the Err of both ends' CloseResult is that one; the peer's isn't where the peer closes as well before it has learned of it. nil gives no reason.
func (c *Conn) CloseWithError(why error) {
	if why == nil {
		why = errors.New("")
	}
	if c.driver.server != nil && c.driver.login && c.Channel(0) == nil && !c.Closed() && !c.Closing() {
		if c.refusal == nil {
			c.refusal = why
		}
		return // its login hasn't begun, and is refused when it does
	}
	c.sayAndClose(c.driver.latest, why) // and not Clock's: the game may tick by another, and what is ahead of its ticks stands still until they are there
}

func (c *Conn) sayAndClose(at time.Duration, why error) {
	c.say(why)
	c.Close(at, control.Text(why))
}

// say tells the peer on the control channel why the connection is about to end.
func (c *Conn) say(why error) {
	if c.server == nil && c.client == nil || c.sendControl(&control.CloseReason{Reason: control.Text(why)}) == nil {
		return
	}
	_ = c.sendControl(&control.CloseReason{Reason: control.Short(why)}) // on failure the peer just lacks the reason
}

// replaced ends the connection at once, because its client has another one.
func (c *Conn) replaced(at time.Duration) {
	c.say(ErrReplaced)
	c.Abort(at, ErrReplaced.Error())
}

// errLoginLate ends a connection whose login takes too long.
var errLoginLate = errors.New("login timed out")

// errText is a text of the game's that its message has no room for, so that the login can't go on.
var errText = errors.New("driver: a text of the login can't be sent")

// errNotJoined refuses channels before the login is done.
var errNotJoined = errors.New("driver: a channel was opened before the login was done")

// newConn makes a connection. The caller calls start once everything that the game may look at is set.
func (d *Driver) newConn(at time.Duration, addr netip.AddrPort, in, out uint16, handlers *handler.Chain, headroom, tailroom int, send func(c *Conn, p []byte)) (*Conn, error) {
	return d.newConnOr(nil, at, addr, in, out, handlers, headroom, tailroom, send)
}

// connConfig is the part of the settings that connections get.
func (d *Driver) connConfig(c *Conn, server bool) netconn.Config {
	return netconn.Config{
		Protocol: d.cfg.Protocol, Server: server, Channels: d.connChannels(c), MaxChannels: d.cfg.MaxChannels, MaxMemory: d.cfg.MaxMemory, PeerMemory: d.cfg.PeerMemory,
		NeverReuseIndex: d.cfg.NeverReuseIndex, RestartSequence: d.cfg.RestartSequence, Pool: &d.pool,
		KeepAlive: d.cfg.KeepAlive, Timeout: d.cfg.Timeout, LingerTimeout: d.cfg.LingerTimeout, AckDelay: d.cfg.AckDelay, NoPacketInfo: d.cfg.NoPacketInfo,
		ReorderWindow: d.cfg.ReorderWindow, Redundancy: d.cfg.Redundancy, Coding: d.cfg.Coding, NetSpeed: d.cfg.NetSpeed,
		LargestPacket: d.largestPacket(),
		Trace:         d.cfg.Trace, Owner: c, Closed: func(r netconn.CloseResult) { d.closed(c, r) },
	}
}

// newConnOr is newConn, but with a refusal the connection only tells the client that it is refused.
func (d *Driver) newConnOr(refusal error, at time.Duration, addr netip.AddrPort, in, out uint16, handlers *handler.Chain, headroom, tailroom int, send func(c *Conn, p []byte)) (*Conn, error) {
	var secret [8]byte
	if _, err := io.ReadFull(d.cfg.Rand, secret[:]); err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	d.nextID++
	if refusal == nil && d.server != nil {
		refusal = d.leaving
	}
	c := &Conn{driver: d, addr: addr, began: at, refusal: refusal}
	cfg := d.connConfig(c, d.server != nil)
	cfg.LowLevelSend, cfg.Headroom, cfg.Tailroom, cfg.Handlers = func(p []byte) { send(c, p) }, headroom, tailroom, handlers
	cfg.Secret, cfg.ID = binary.LittleEndian.Uint64(secret[:]), d.nextID
	if d.cfg.Packets != nil {
		cfg.Packets = (*packetTap)(c)
	}
	if d.cfg.Controller != nil {
		cfg.Controller = d.cfg.Controller()
	}
	if d.login {
		cfg.AllowOpen = func(in *bunch.In) error {
			if in.Name != bunch.Control && !c.joined {
				return errNotJoined
			}
			return nil
		}
	}
	nc, err := netconn.New(cfg, at, in, out)
	if err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	c.Conn = nc
	c.OnlyControl(d.login)
	d.conns = append(d.conns, c)
	return c, nil
}

// start tells the game of the connection and begins the login.
func (c *Conn) start() {
	d := c.driver
	d.Counters.Accepted++
	if c.refusal != nil && !d.login { // without a login there is nowhere to tell it
		c.Close(c.Now(), c.refusal.Error())
		return
	}
	if d.server == nil && d.leaving != nil { // it was shut down while it dialed
		c.Close(c.Now(), control.Text(d.leaving))
		return
	}
	begun := false
	defer func() {
		if !begun {
			c.Fail(errBeginPanicked, true) // nothing else would begin its login
		}
	}()
	if c.refusal == nil && d.cfg.Accepted != nil {
		d.cfg.Accepted(c)
	}
	if !c.Closed() && !c.Closing() { // Accepted may have closed it
		c.begin()
	}
	begun = true
}

var errBeginPanicked = errors.New("driver: Accepted panicked, or Joined without a login")

// begin starts the login, or joins at once without one.
func (c *Conn) begin() {
	d := c.driver
	switch {
	case !d.login:
		c.join()
	case d.server != nil:
		cfg := d.cfg.Server
		admitted, userSpeed := cfg.Admitted, cfg.NetSpeed
		cfg.NetSpeed = func(n int) {
			c.SetNetSpeed(n)
			if userSpeed != nil {
				userSpeed(n)
			}
		}
		authorize := cfg.Authorize
		cfg.Authorize = func(l *control.Login) error {
			if c.refusal != nil || authorize == nil {
				return c.refusal
			}
			return authorize(l)
		}
		cfg.Admitted = func() {
			if c.join() && admitted != nil {
				admitted()
			}
		}
		c.server = control.NewServer(cfg, c.sendControl)
		c.exchangeMemory(c.server)
	default:
		cfg := d.cfg.Client
		entered := cfg.Entered
		cfg.Entered = func(w *control.Welcome) {
			if c.join() && entered != nil {
				entered(w)
			}
		}
		c.client = control.NewClient(cfg, c.sendControl)
		c.exchangeMemory(c.client)
		if _, err := c.Open(bunch.Control, (*controlHandler)(c)); err == nil {
			err = c.client.Start()
			if err != nil {
				c.Fail(err, true)
			}
		}
	}
}

// exchangeMemory has the login tell the peer of a MaxMemory that isn't the default. Unreal's protocols have no message for that.
func (c *Conn) exchangeMemory(login interface {
	ExchangeMemory(own int, peer func(bytes uint32))
}) {
	if !c.driver.cfg.Protocol.Unreal {
		login.ExchangeMemory(c.driver.cfg.MaxMemory, c.SetPeerMemory)
	}
}

// join tells the game that the connection is ready. It returns false when the connection was closed by a callback
// meanwhile.
func (c *Conn) join() bool {
	if c.Closed() || c.Closing() {
		return false // closed by a callback of the login
	}
	if c.settle != nil {
		c.settle()
		c.settle = nil
		if c.Closed() || c.Closing() || c.driver.ended {
			return false // closed by the Closed of the former connection
		}
	}
	c.joined, c.joinedAt = true, c.Now()
	c.OnlyControl(false)
	c.driver.Counters.Joined++
	c.tell(slog.LevelInfo, "connection joined")
	if c.driver.cfg.Joined != nil {
		c.driver.cfg.Joined(c)
		c.refusedInJoined = c.Closing()
	}
	return !c.Closed()
}

// checkLogin ends a connection whose login takes too long. A client that would be refused learns why.
func (c *Conn) checkLogin(at time.Duration) {
	limit, why := c.driver.cfg.LoginTimeout, errLoginLate
	if c.turnedAway() {
		limit, why = min(limit, turnedAwayTimeout), c.refusal
	}
	if !c.joined && !c.Closed() && !c.Closing() && at-c.began > limit {
		c.driver.Counters.NoLogin++
		c.loginLate = true
		c.sayAndClose(at, why)
	}
}

func (c *Conn) features() bool {
	if c.driver.server != nil {
		return c.driver.cfg.Server.Features
	}
	return c.driver.cfg.Client.Features
}

func (c *Conn) sendControl(m control.Message) error {
	ch := c.Channel(0)
	if ch == nil {
		return channel.ErrClosed
	}
	b, err := control.Encode(m, c.features())
	if err != nil {
		msg := "a text can't be sent"
		switch m.(type) {
		case *control.CloseReason, *control.Failure:
			msg = "a text was too long for the peer, which gets a shorter one"
		default: // of Level or Respond
			err = fmt.Errorf("%w: %w", errText, err)
		}
		c.tell(slog.LevelWarn, msg, slog.String("why", err.Error()))
		return err
	}
	_, err = ch.SendBunch(&bunch.Out{Data: b, Reliable: true})
	return err
}

// connChannels is the driver's channel types for one connection: the login's control channel leads to that connection.
func (d *Driver) connChannels(c *Conn) []channel.Type {
	if !d.login {
		return d.cfg.Channels
	}
	types := append([]channel.Type(nil), d.cfg.Channels...)
	types[0].Accept = func(*channel.Channel) channel.Handler { return (*controlHandler)(c) }
	return types
}

// controlHandler is a Conn as the handler of its channel 0.
type controlHandler Conn

func (h *controlHandler) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	c := (*Conn)(h)
	if c.Closing() { // a refused client may have sent more meanwhile
		c.hearWhy(&in.Data)
		return
	}
	var err error
	if c.server != nil {
		err = c.server.Receive(&in.Data)
		c.PeerReason(c.server.PeerReason())
	} else {
		err = c.client.Receive(&in.Data)
		c.PeerReason(c.client.PeerReason())
	}
	switch {
	case err == nil || c.Closing(): // Authorize or Respond may have closed it, and then no answer can be sent
	case errors.Is(err, control.ErrRefused) || errors.Is(err, control.ErrVersion):
		c.refusedLogin(err)
	default:
		c.Fail(err, errors.Is(err, errText))
	}
}

// hearWhy takes the peer's reason, and nothing else, from what comes while this end closes.
func (c *Conn) hearWhy(r *bitio.Reader) {
	for r.Remaining() > 0 {
		m, err := control.Read(r, c.features())
		if err != nil {
			return
		}
		if why, is := m.(*control.CloseReason); is {
			c.PeerReason(why.Reason)
		}
	}
}

func (*controlHandler) ReceivedAck(*channel.Channel, int64)          {}
func (*controlHandler) ReceivedNak(*channel.Channel, int64)          {}
func (*controlHandler) Closed(*channel.Channel, channel.CloseReason) {}
