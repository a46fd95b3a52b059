package driver

import (
	"log/slog"
	"net/netip"
	"time"
)

// What one client may take of the others: nothing is refused while the server keeps up with all of them.

// share says whether connections are held to Config.MaxConnDatagrams.
type share struct {
	streak int // datagrams read since the socket was empty
	held   bool
	until  time.Duration // held at least
	shed   uint64        // Counters.Shed at the last tick
}

const (
	// behind is the datagrams in a row, at least, that show that the server doesn't keep up; and a quarter of Config.MaxDatagrams.
	behind = 1024
	// holdFor is how long connections are held after one of them wanted more: a client may flood by turns.
	holdFor = 10 * time.Second
)

// hasRead notes that so many datagrams were read. When the socket hasn't been empty for long, it is about to lose datagrams, of all connections: from then on none has more than its share.
func (d *Driver) hasRead(at time.Duration, n int) {
	s := &d.share
	s.streak += n
	if n < len(d.in) {
		s.streak = 0
	}
	if s.streak >= max(behind, d.cfg.MaxDatagrams/4) && d.server != nil && d.cfg.MaxConnDatagrams > 0 {
		s.held, s.until = true, at+holdFor
	}
}

// excess reports whether a datagram is of a connection that has had its share of this tick, and counts it. It is dropped before anything is
// spent on it. A single connection takes nothing of others.
func (d *Driver) excess(from netip.AddrPort) bool {
	if !d.share.held || len(d.conns) < 2 {
		return false
	}
	c := d.server.conn(from)
	if c == nil || c.datagrams < d.cfg.MaxConnDatagrams {
		return false
	}
	d.Counters.Shed++
	if !c.floods {
		c.floods = true
		d.tell("connection floods", slog.Any("addr", c.addr), slog.Uint64("id", uint64(c.ID())))
	}
	return true
}

// endShare ends what a tick's connections had.
func (d *Driver) endShare(at time.Duration) {
	s := &d.share
	switch {
	case s.shed != d.Counters.Shed:
		s.shed, s.until = d.Counters.Shed, at+holdFor
	case at >= s.until:
		s.held = false
	}
}
