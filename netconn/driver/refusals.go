package driver

import (
	"context"
	"log/slog"
	"time"
)

// Refusals calls yield with the reason code and the count of everything that a server's link refused, and
// of the packets that connections dropped, in a fixed order, zeros too.
func (d *Driver) Refusals(yield func(reason string, n uint64) bool) {
	if !yield("corrupt", d.Counters.Corrupt) || !yield("packet", d.Counters.Refused) ||
		!yield("no_room", d.Counters.NoRoom) || !yield("no_login", d.Counters.NoLogin) {
		return
	}
	if d.server != nil {
		d.server.refusals(yield)
	}
}

// refusalLog writes what was refused, in one line for all reasons, once a second at most.
type refusalLog struct {
	next time.Duration
	last map[string]uint64
	at   []slog.Attr
}

const refusalInterval = time.Second

func (d *Driver) logRefusals(now time.Duration) {
	l := &d.refused
	if !d.logged || now < l.next {
		return
	}
	l.next = now + refusalInterval
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
