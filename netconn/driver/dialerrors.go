package driver

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Reasons why a dial failed. Use errors.Is with the CloseResult.Err that a client's Config.Closed gets, with Driver.Err, or with what Run
// returns. The CloseResult's Reason is the text of the server's game, if it gave one.
//
// When a server's Authorize (Config.Server) returns ErrFull, ErrBanned or ErrAlreadyConnected, or an error that wraps one of them, the client
// gets the same one. For all other errors it gets ErrDenied.
var (
	// ErrDenied: the server refused the client. An error that is ErrFull, ErrBanned, ErrAlreadyConnected or ErrShuttingDown is ErrDenied as well,
	// so ask errors.Is for these four first. ErrVersion, ErrExpired and ErrNoAnswer aren't ErrDenied.
	ErrDenied = control.ErrRefused
	// ErrFull: the server has no room.
	ErrFull = control.ErrFull
	// ErrBanned: the server's game rejects this player.
	ErrBanned = control.ErrBanned
	// ErrAlreadyConnected: a client with the same id is connected. A client that crashed counts as connected until
	// Config.Timeout.
	ErrAlreadyConnected = control.ErrAlreadyConnected
	// ErrShuttingDown: the server's Shutdown was called.
	ErrShuttingDown = control.ErrShuttingDown
	// ErrVersion: the ends have different versions: of the ProtocolID, of control's NetworkVersion, or of the handshake.
	// PlainUnreal and PlainSalted don't answer a client with another ProtocolID: for it the error is ErrNoAnswer.
	ErrVersion = control.ErrVersion
	// ErrExpired: the token was expired, by this machine's clock, and no server accepted it.
	ErrExpired = netcode.ErrExpired
	// ErrNoAnswer: no server answered. Nobody listens there, a firewall drops the datagrams, or the server drops them because it
	// can't trust them: the token is of another key, or for an address that the server doesn't know as its own (see Netcode.Addrs).
	// The server's Config.Logger and Refusals say which.
	ErrNoAnswer = errors.New("driver: nobody answered: nothing listens at that address, or the log of the server says why it refused")
)

// Reasons why a joined connection ended, for errors.Is with the CloseResult.Err of both ends; ErrShuttingDown is another. A server's
// game passes one of these, or any error, to CloseWithError.
var (
	// ErrKicked: the server's game removed this player.
	ErrKicked = control.ErrKicked
	// ErrReplaced: the same client has connected again, or, at a server, another one from its address. See Netcode.TakeOver and package session.
	ErrReplaced = control.ErrReplaced
)

// denied wraps a refusal by the link, before there is a connection.
func denied(why error) error { return fmt.Errorf("%w: %w", ErrDenied, why) }

// dialFailed notes why no connection was made, and tells the game.
func (d *Driver) dialFailed(why error) {
	d.err = why
	r := netconn.CloseResult{Code: netconn.ClosedByPeer, Err: why}
	if errors.Is(why, ErrNoAnswer) || errors.Is(why, ErrExpired) {
		r.Code = netconn.TimedOut
	}
	d.noAnswer(r)
}

// refusedLogin handles the login's refusal of a client, at either end. The server has sent the reason on the control
// channel, and it must arrive. So the connection closes in order, and its link after it. The client waits for that
// close.
func (c *Conn) refusedLogin(why error) {
	c.refusal = why
	if c.server != nil {
		c.Close(c.Now(), "") // the refusal says why
		return
	}
	if reason := c.client.PeerReason(); reason != "" {
		c.PeerReason(reason)
	} else {
		c.PeerReason(why.Error())
	}
}

// linkEnded takes the link's word that the peer has gone. What the peer had said itself tells more.
func (c *Conn) linkEnded(at time.Duration, why string) {
	if said := c.saidReason(); said != "" {
		why = said
	}
	c.LinkClosed(at, why)
}

// saidReason is why the peer said on the control channel that it closes.
func (c *Conn) saidReason() string {
	switch {
	case c.server != nil:
		return c.server.PeerReason()
	case c.client != nil && c.client.PeerReason() != "":
		return c.client.PeerReason()
	case c.client != nil && c.refusal != nil:
		return c.refusal.Error()
	}
	return ""
}

// turnedAwayTimeout is how long a client has that is only to be told that it is refused: others wait for the same.
const turnedAwayTimeout = 5 * time.Second

// turnedAway reports whether a server's connection is there only to tell the client that its login is refused.
func (c *Conn) turnedAway() bool { return c.driver.server != nil && c.refusal != nil }

// Result is netconn's, and says why a login was refused.
func (c *Conn) Result() netconn.CloseResult { return c.withRefusal(c.Conn.Result()) }

// noReason is what a client is told that the server's link let in, and then dropped: most often the server can't read it.
const (
	notJoined    = ": the server's welcome came, and Conn.Join wasn't called within LoginTimeout"
	noReason     = "the server gave no reason; its Logger may; " + sameProtocol
	sameProtocol = "both ends must have the same Protocol, and the same settings of the login"
)

// withRefusal adds to a result why the login was refused, for a client that never joined why its dial failed, and the reason of a server that
// CloseWithError was given.
func (c *Conn) withRefusal(r netconn.CloseResult) netconn.CloseResult {
	switch {
	case r.Code == netconn.Running || r.Code == netconn.PeerBroke || r.Code == netconn.WeBroke || r.Code == netconn.PathNarrow:
	case c.refusal != nil:
		r.Err = c.refusal
	case c.client == nil || c.joined:
	case c.client.Welcome() != nil && (c.loginLate || r.Code == netconn.ClosedByPeer && c.saidReason() == errLoginLate.Error()):
		r.Err = control.Refused(errLoginLate.Error() + notJoined)
	case r.Code == netconn.TimedOut || c.loginLate:
		r.Err = fmt.Errorf("%w: the login wasn't completed; "+sameProtocol, ErrNoAnswer)
	case r.Code == netconn.ClosedByPeer:
		r.Err = control.Refused(cmp.Or(c.saidReason(), noReason))
	}
	switch {
	case r.Err != nil:
	case c.displaced && r.Code == netconn.ClosedByPeer && c.saidReason() == "":
		r.Err = ErrReplaced
	case (r.Code == netconn.ClosedByUs) == (c.driver.server != nil): // the server's words, at either end
		r.Err = control.Ended(r.Reason)
	}
	return r
}
