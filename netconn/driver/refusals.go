package driver

import (
	"context"
	"log/slog"
	"time"
)

// Refusals calls yield with the reason code and the count of everything that the link refused, and
// of the packets that connections dropped, in a fixed order, zeros too. A stale_packet came again, or later than
// those after it. An unknown_type is a bunch of a channel whose type isn't in Config.Channels of this end; may_not_open
// is one of a channel that the peer's end may not open, see channel.Type. These are ignored, so the
// peer isn't told: most often one of the two ends has forgotten a type, or ClientOpen or ServerOpen.
//
// Those of all links:
//
//	corrupt                  a wrong Config.Checksum, or one end without it
//	packet                   a packet that its connection didn't take, or that came from nobody's address
//	stale_packet             a packet that came twice, or later than those after it
//	unknown_type             see above
//	may_not_open             see above
//	no_room                  PlainUnreal: MaxConns or MaxPerAddr
//	no_login                 LoginTimeout
//
// Those of a server with Netcode that say what is wrong with its settings or its clients':
//
//	bad_version              the client's is no netcode 1.02, as with a client of another link
//	bad_protocol             another ProtocolID
//	bad_token                a token of another key
//	token_expired            the token, or the clock of a machine
//	other_server             a token for another address: clients that come through a proxy or a NAT dial one that isn't among
//	                         Netcode.Addrs
//	token_used               one token for two dials, or from two addresses
//	id_connected             the client id is connected
//	server_full              Netcode.Slots or MaxConns
//	no_mapping               from an address that isn't connected. A client that leaves says so ten times, and is a stranger from
//	                         the second on
//
// The others are in ServerCounters and ClientCounters of netconn/netcode and netconn/handshake and in Counters of
// netconn/salted, under the same names in other letters: bad_salt is BadSalt. With PlainSalted, no_session is what no_mapping
// is with Netcode, and bad_checksum also another ProtocolID.
func (d *Driver) Refusals(yield func(reason string, n uint64) bool) {
	n := d.droppedNow()
	if !yield("corrupt", d.Counters.Corrupt) || !yield("packet", d.Counters.Refused) ||
		!yield("stale_packet", n.stale) ||
		!yield("unknown_type", n.unknownType) || !yield("may_not_open", n.mayNotOpen) ||
		!yield("no_room", d.Counters.NoRoom) || !yield("no_login", d.Counters.NoLogin) {
		return
	}
	switch {
	case d.server != nil:
		d.server.refusals(yield)
	case d.client != nil:
		d.client.refusals(yield)
	}
}

// dropped is what connections dropped or ignored of their peers.
type dropped struct{ stale, unknownType, mayNotOpen uint64 }

func (n *dropped) add(c *Conn) {
	bunches := &c.Table().Counters
	n.stale += c.Counters.Stale
	n.unknownType += bunches.UnknownType
	n.mayNotOpen += bunches.MayNotOpen
}

// droppedNow is that of connections that are, and of those that were.
func (d *Driver) droppedNow() dropped {
	n := d.dropped
	for _, c := range d.conns {
		n.add(c)
	}
	return n
}

// operatorLog is what was said in this second, and what was left out.
type operatorLog struct {
	next  time.Duration
	last  map[string]uint64 // refusals told
	at    []slog.Attr
	lines int
	muted uint64

	bounded uint64 // Counters.ReadsBounded as told
}

const (
	logInterval = time.Second
	maxLines    = 20 // about single connections, in that time
)

// tell writes a line about a connection, unless the second had its lines: clients may come and go as fast as they like.
func (d *Driver) tell(msg string, attrs ...slog.Attr) {
	l := &d.log
	switch {
	case !d.logged:
	case l.lines == maxLines:
		l.muted++
	default:
		l.lines++
		d.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, msg, attrs...)
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
	if l.last == nil {
		l.last = map[string]uint64{}
	}
	l.at = l.at[:0]
	for reason, n := range d.Refusals {
		if more := n - l.last[reason]; more > 0 {
			l.last[reason] = n
			l.at = append(l.at, slog.Uint64(reason, more))
		}
	}
	if len(l.at) > 0 {
		d.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "refused", l.at...)
	}
}
