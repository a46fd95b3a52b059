package actorrep

import (
	"sort"
	"time"
)

// departures is the views that are no longer relevant and wait for Config.RelevantTimeout, in the order in which it
// expires. The timeout is the same for all, so that is the order in which they became irrelevant, and pop looks at the
// first only. A view that became irrelevant several times has several entries; pop skips the outdated ones.
type departures struct {
	list []departure
	head int
}

type departure struct {
	v  *view
	at time.Duration
}

func (d *departures) push(v *view) {
	if d.head > 0 && len(d.list) == cap(d.list) {
		n := copy(d.list, d.list[d.head:])
		clear(d.list[n:])
		d.list, d.head = d.list[:n], 0
	}
	d.list = append(d.list, departure{v, v.leaveAt})
}

// due reports whether the first entry's time has come.
func (d *departures) due(now time.Duration) bool {
	return d.head < len(d.list) && d.list[d.head].at <= now
}

// overdue is how many entries' time has come.
func (d *departures) overdue(now time.Duration) int {
	if !d.due(now) {
		return 0
	}
	list := d.list[d.head:]
	return sort.Search(len(list), func(i int) bool { return list[i].at > now })
}

// pop removes and returns the next view whose timeout has expired, or nil.
func (d *departures) pop(now time.Duration) *view {
	for d.due(now) {
		e := d.list[d.head]
		d.list[d.head] = departure{}
		if d.head++; d.head == len(d.list) {
			d.list, d.head = d.list[:0], 0
		}
		if e.v.state != ended && !e.v.relevant && e.v.leaveAt == e.at {
			return e.v
		}
	}
	return nil
}
