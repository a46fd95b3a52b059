package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/internal/refusals"
)

// Refusals calls yield with the reason code and the count of everything that the link refused, and
// of the packets that connections dropped, in a fixed order, zeros too. This is the table of all reasons; the inspector, the
// metrics and the Logger use the same codes.
//
// Of all links:
//
//	corrupt                  a wrong Config.Checksum, or a peer without it. When only the peer has it, the link counts its packets, as bad_size
//	packet                   a packet that its connection didn't take, as of a peer with Coding when this end has none, or that came from nobody's address
//	stale_packet             a packet that came twice, or later than those after it, or after its connection's end. Not a warning
//	unknown_type             a bunch of a channel whose type isn't in Config.Channels of this end. It is ignored, and the peer isn't
//	                         told: one of the two ends has forgotten the type
//	may_not_open             a bunch of a channel that the peer's end may not open: a forgotten ClientOpen or ServerOpen of
//	                         channel.Type. It is ignored too
//	no_handler               a channel that the peer opened and that has no handler: the Accept of its channel.Type is nil, or returned nil. What
//	                         arrives on it is ignored, and the peer isn't told
//	no_room                  PlainUnreal: MaxConns or MaxPerAddr
//	no_login                 LoginTimeout
//	flood                    a connection's datagram beyond MaxConnDatagrams of a tick, while the server can't keep up
//
// Of more than one link:
//
//	replayed                 a packet that came twice, or of a connection that has ended. Not a warning
//	unexpected               of no use in this state, as duplicates are. Not a warning
//	too_short                shorter than any packet
//	bad_size                 not the size of its type
//	bad_type                 no type of packet, as of a client with another Link
//	server_full              the link's Slots, or MaxConns
//
// Of Netcode:
//
//	bad_format               not a packet of netcode
//	bad_sequence             its sequence doesn't fit it, or a client has another Link
//	bad_version              a request of another version than netcode 1.02
//	bad_protocol             another ProtocolID
//	bad_token                a token of another key
//	token_expired            the token, or the clock of a machine
//	other_server             a token for another address: clients that come through a proxy or a NAT dial one that isn't among
//	                         Netcode.Addrs
//	token_used               one token for two dials, or from two addresses
//	id_connected             the client id is connected
//	addr_connected           the address is connected
//	no_mapping               from an address that isn't connected: packets that were under way when a connection ended, or of a client with
//	                         another link. Not a warning
//	no_mapping_room          more handshakes begun than the server holds, from all addresses, one address or one id
//	bad_challenge            a response with a challenge that isn't this server's
//	not_bound                a response from another address or id than the challenge is for
//	not_sealed               not encrypted with the connection's key
//	other_source             not from the server
//	not_admitted             Netcode.Admit refused the client
//	waited                   Netcode.Admit has yet to decide; the client asks again. Not a warning
//
// Of PlainSalted:
//
//	bad_checksum             damaged, or another ProtocolID or Link
//	bad_padding              something else than zeros
//	bad_salt                 a response without our challenge, or an answer to somebody else's request
//	bad_prefix               not the connection's
//	no_session               from an address that isn't connected
//	too_many_from_address    the address has as many slots as it may
//
// Of PlainUnreal, whose handshake drops what is
//
//	empty, zero_last_byte, wrong_magic, not_handshake, unknown_packet, contradictory
//	                         no handshake packet
//	wrong_type               what only the same end sends
//	wrong_version            no version in common
//	wrong_session            of another SessionID
//	wrong_client_id          for another connection of this address
//	cookie_expired           an answer to a challenge older than 40 s
//	wrong_secret             an answer to a challenge of a secret that wasn't in use then
//	bad_cookie               not this server's for this address
//	wrong_cookie             an Ack of another exchange
//	late_repeat              a Response that came again too late for another Ack
//	restart_asked            a packet from an address that no connection has, which was asked to shake hands again: of a client whose address
//	                         changed, or of one with another link or release. Not a warning
//	unknown_restart          a restart of a connection that isn't there
//	too_small                a packet that is shorter than its answer would be
//	restarts_limited         more than MaxRestarts
//	upgrades_limited         more than MaxUpgrades
//	restart_unlikely         a restart request that wasn't believed. Not a warning: the last packets of an ordinary end make the server send them
//	no_randomness            Config.Rand gave an error
func (d *Driver) Refusals(yield func(reason string, n uint64) bool) {
	n := d.droppedNow()
	more := refusals.Each(yield, []refusals.Count{
		refusals.Of("corrupt", d.Counters.Corrupt), refusals.Of("packet", d.Counters.Refused), refusals.Of("stale_packet", n.stale),
		refusals.Of("unknown_type", n.unknownType), refusals.Of("may_not_open", n.mayNotOpen), refusals.Of("no_handler", n.noHandler),
		refusals.Of("no_room", d.Counters.NoRoom), refusals.Of("no_login", d.Counters.NoLogin),
		refusals.Of("flood", d.Counters.Shed),
	})
	switch {
	case !more:
	case d.server != nil:
		d.server.refusals(yield)
	case d.client != nil:
		d.client.refusals(yield)
	}
}

// dropped is what connections dropped or ignored of their peers.
type dropped struct{ stale, unknownType, mayNotOpen, noHandler uint64 }

func (n *dropped) add(c *Conn) {
	bunches := &c.Table().Counters
	n.stale += c.Counters.Stale
	n.unknownType += bunches.UnknownType
	n.mayNotOpen += bunches.MayNotOpen
	n.noHandler += bunches.NoHandler
}

// droppedNow is that of connections that are, and of those that were.
func (d *Driver) droppedNow() dropped {
	n := d.dropped
	for _, c := range d.conns {
		n.add(c)
	}
	return n
}

// receivedPacket passes a packet to a connection, which may be nil, and counts one that isn't taken. What arrives after a connection's end is stale.
func (d *Driver) receivedPacket(c *Conn, at time.Duration, p []byte) (taken bool) {
	if c == nil {
		d.Counters.Refused++
		return false
	}
	switch err := c.ReceivedPacket(at, p); {
	case err == nil:
		return true
	case errors.Is(err, netconn.ErrClosed):
		d.dropped.stale++
	default:
		d.Counters.Refused++
	}
	return false
}

// operatorLog is what was said in this second, and what was left out.
type operatorLog struct {
	next  time.Duration
	last  map[string]uint64 // refusals told
	at    []slog.Attr
	lines int
	muted uint64

	bounded uint64 // Counters.ReadsBounded as told

	looked bool // whether the game forgets to open channels; see unopened
}

const (
	logInterval = time.Second
	maxLines    = 20  // about single connections, in that time
	maxWords    = 300 // bytes of why a connection ended, in a line: the peer may have said 4096 characters
)

// why is why a connection ended, for a line of the log.
func why(r netconn.CloseResult) slog.Attr {
	s := r.String()
	if n := len(s); n > maxWords {
		s = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:maxWords], ""), n)
	}
	return slog.String("why", s)
}

// tell writes a line about the connection: its address, its number in traces and the inspector, and the client id of its token.
func (c *Conn) tell(level slog.Level, msg string, attrs ...slog.Attr) {
	if !c.driver.logged {
		return
	}
	about := []slog.Attr{slog.Any("addr", c.addr), slog.Uint64("conn", uint64(c.ID()))}
	if c.clientID != 0 {
		about = append(about, slog.Uint64("client", c.clientID))
	}
	c.driver.tell(level, msg, append(about, attrs...)...)
}

// tell writes a line about a connection, unless the second had its lines: clients may come and go as fast as they like.
func (d *Driver) tell(level slog.Level, msg string, attrs ...slog.Attr) {
	l := &d.log
	switch {
	case !d.logged:
	case l.lines == maxLines:
		l.muted++
	default:
		l.lines++
		d.cfg.Logger.LogAttrs(context.Background(), level, msg, attrs...)
	}
}

// strays is the reasons that are no warning: those for which each link refuses what is still on its way when a connection ends, and those of
// packets that others have overtaken, and of answers to what was sent again.
var strays = map[string]bool{"replayed": true, "no_mapping": true, "no_session": true, "too_small": true, "stale_packet": true, "unexpected": true, "waited": true, "restart_unlikely": true, "restart_asked": true}

// sameLink is what to do about what is no packet of the link.
const sameLink = "give both ends the same Link"

// remedies is what to do about the reasons that a setting causes. The first line with such a reason says it.
var remedies = map[string]string{
	"corrupt":       "set Config.Checksum at both ends, or at neither",
	"unknown_type":  "list the channel type in Config.Channels at both ends",
	"may_not_open":  "set ClientOpen or ServerOpen of the channel.Type at both ends, and the same Static and Index",
	"no_handler":    "give the channel.Type an Accept that returns a handler",
	"bad_protocol":  "give both ends and the token the same ProtocolID",
	"bad_token":     "give both ends and the token service the same key",
	"token_expired": "get a token just before the dial, and compare the machines' clocks",
	"other_server":  "list the address that clients dial in Netcode.Addrs",
	"token_used":    "get a token for each dial",
	"packet":        "give both ends the same Protocol and Coding",
	"bad_type":      sameLink,
	"bad_sequence":  sameLink,
	"bad_size":      "give both ends the same Link and Checksum",
	"bad_checksum":  "give both ends the same Link and ProtocolID",
	"wrong_version": "give both ends the same release of Unreal",
	"wrong_session": "give both ends the same release of Unreal and SessionID",
	"id_connected":  "set Netcode.TakeOver if a client that dials again should replace its former connection",

	"zero_last_byte": sameLink, "wrong_magic": sameLink, "not_handshake": sameLink, "too_short": sameLink, "unknown_packet": sameLink, "contradictory": sameLink,
}

// openedWithin is how long after its login the server has opened a channel, where channels of some type are opened by the server alone.
const openedWithin = 10 * time.Second

// unopened says once that the first connection that has been there for so long has no channel of the server's. For actors AddConn is forgotten.
func (d *Driver) unopened(now time.Duration) {
	if d.log.looked || d.server == nil || !slices.ContainsFunc(d.cfg.Channels, func(t channel.Type) bool { return t.ServerOpen && !t.ClientOpen }) {
		return
	}
	for _, c := range d.conns {
		if !c.joined || now-c.joinedAt < openedWithin || c.Closed() || c.Closing() {
			continue
		}
		d.log.looked = true
		for ch := range c.Table().All {
			if ch.OpenedLocally() {
				return
			}
		}
		c.tell(slog.LevelInfo, "the server has opened no channel since the connection joined; for actors, call World.AddConn in Config.Joined",
			slog.Duration("ago", now-c.joinedAt))
		return
	}
}

// logSecond writes what was refused, in one line for all reasons, and how much wasn't told, once a second at most.
func (d *Driver) logSecond(now time.Duration) {
	l := &d.log
	if !d.logged || now < l.next {
		return
	}
	l.next = now + logInterval
	if l.muted > 0 {
		d.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "more connections came and went", slog.Uint64("lines", l.muted))
	}
	l.lines, l.muted = 0, 0
	if more := d.Counters.ReadsBounded - l.bounded; more > 0 {
		l.bounded += more
		d.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "ticks read MaxDatagrams and left the rest: a flood, or too few for the players",
			slog.Uint64("ticks", more))
	}
	d.unopened(now)
	if l.last == nil {
		l.last = map[string]uint64{}
	}
	l.at = l.at[:0]
	level, msg := slog.LevelInfo, "stray packets"
	var hints []string
	for reason, n := range d.Refusals {
		if more := n - l.last[reason]; more > 0 {
			if do := remedies[reason]; do != "" && l.last[reason] == 0 {
				hints = append(hints, reason+": "+do)
			}
			l.last[reason] = n
			l.at = append(l.at, slog.Uint64(reason, more))
			if !strays[reason] {
				level, msg = slog.LevelWarn, "refused"
			}
		}
	}
	if len(hints) > 0 {
		l.at = append(l.at, slog.String("hint", strings.Join(hints, "; ")))
	}
	if len(l.at) > 0 {
		d.cfg.Logger.LogAttrs(context.Background(), level, msg, l.at...)
	}
}
