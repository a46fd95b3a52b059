package actorrep

import "time"

// departures is views that aren't relevant any more, in the order in which they will go. As the timeout is the same for all,
// that is the order in which they became irrelevant, so that nobody looks at the others. There is an entry for each time.
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

// pop is the next view whose time has come, or nil.
func (d *departures) pop(now time.Duration) *view {
	for d.head < len(d.list) && d.list[d.head].at <= now {
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
