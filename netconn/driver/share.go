package driver

import (
	"log/slog"
	"net/netip"
	"time"
)

// What one client may take of the others: nothing is refused while the server keeps up with all of them.

// share says whether connections are held to what they have of each tick, and how much that is.
type share struct {
	since  time.Time     // first batch since the socket was empty; zero while it is
	read   time.Time     // when the socket was last read
	lag    time.Duration // how long it may take from since on until it is empty
	late   bool          // it hasn't been empty for so long that connections are held
	bound  int           // what a connection has of a tick then, at most Config.MaxConnDatagrams
	missed bool          // that was too much in this tick
	calm   int           // ticks in a row in which it wasn't
}

const (
	// longestLag is how long the socket of a server that keeps up isn't empty, at most; and a quarter of a tick. After a longer time without a read,
	// as between the ticks of a slow loop, it is a quarter of that.
	longestLag = 4 * time.Millisecond
	lagPart    = 4
	// leastShare is what a connection has of each tick, however many flood: more than a player sends.
	leastShare = 16
	// calmTicks is after how many ticks in time the bound is doubled.
	calmTicks = 300
	// floodTold is after how many dropped datagrams the log names a connection: one that sends much loses some in a hitch of the machine.
	floodTold = 1024
)

// lagAfter is how long the socket of this server isn't empty while it keeps up, after so long without a read.
func (d *Driver) lagAfter(unread time.Duration) time.Duration {
	return max(min(longestLag, d.interval()/lagPart), min(unread, longestTick)/lagPart)
}

// hasRead notes that the socket was read, and whether it is empty now. When it hasn't been for long, what all connections send waits, and is about to be lost: until it
// is empty again none has more than its share. When that takes as long again, their shares are too large.
func (d *Driver) hasRead(empty bool) {
	if d.server == nil || d.cfg.MaxConnDatagrams < 0 {
		return
	}
	s := &d.share
	now := d.cfg.Clock()
	unread := now.Sub(s.read)
	s.read = now
	if s.since.IsZero() {
		if empty {
			return
		}
		s.since, s.lag = now, d.lagAfter(unread)
	}
	waits := now.Sub(s.since)
	s.late = waits >= s.lag
	s.missed = s.missed || waits >= 2*s.lag
	if empty {
		s.since, s.late = time.Time{}, false
	}
}

// excess reports whether a datagram is of a connection that has had its share of this tick while the server is late, and counts it. It is dropped before anything
// is spent on it. A single connection takes nothing of others.
func (d *Driver) excess(from netip.AddrPort) bool {
	if !d.share.late || len(d.conns) < 2 {
		return false
	}
	c := d.server.conn(from)
	if c == nil || c.datagrams < d.share.bound {
		return false
	}
	d.Counters.Shed++
	if c.shed++; c.shed == floodTold {
		c.tell(slog.LevelInfo, "connection floods")
	}
	return true
}

// endShare ends what a tick's connections had.
func (d *Driver) endShare() {
	s := &d.share
	switch {
	case s.missed:
		s.bound, s.calm = max(s.bound/2, min(leastShare, d.cfg.MaxConnDatagrams)), 0
	case s.bound < d.cfg.MaxConnDatagrams:
		if s.calm++; s.calm >= calmTicks {
			s.bound, s.calm = min(2*s.bound, d.cfg.MaxConnDatagrams), 0
		}
	}
	s.missed = false
}
