package flight

import (
	"encoding/binary"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// The kinds of what the log has.
const (
	kindSent      = iota // packet, bytes
	kindAcked            // packet
	kindLost             // packet
	kindRecord           // packet, actor, units, why they waited; at a client that it set them, with packet 0
	kindNote             // actor, text
	kindOpening          // channel, actor, units
	kindBunch            // packet, channel, four times its number in the channel, and 1 if it opens it, 2 if it closes it; a reliable one
	kindCall             // packet, actor, name and flags, why it doesn't run
	kindCorrected        // 0, actor, size, names of the numbers that were off
	kindReceived         // packet; at a client
	kindLook             // 0; a client's Look
	kindAppears          // 0, actor, class; at a client, as the next two
	kindGone             // 0, actor
	kindValue            // part, actor, its value in JSON
	kindCarried          // channel, number of a reliable bunch in it, units whose values it has
	kindClosing          // channel, 0, reason
	kindUnsaid           // 0, actor, all units that the game has set and nobody is told of
	kindView             // 0 none, 1 a place, 2 an actor's, from which a connection looks: actor, place in JSON
	kindBegan            // 0; a connection, as the next
	kindEnded            // code, µs since it was last heard, and 1; 0 when that isn't known
	kindWaits            // twice the µs since it was found and 1, or 0 when it is over, and 1 besides for a reason of some units: actor, units, why a connection lacks these; connection 0 is all
	kindMore             // a record of the packet of the record before: actor, units, why they waited
	kindRun              // how many more records like the kindNext before, each of an actor whose number is higher by as much
	kindNext             // as kindMore, with the same units and without a wait: kindNext + what the actor's number is higher by
)

// maxText bounds a text in the log.
const maxText = 200

// maxEntry is more than the bytes of any entry: a value's characters may take six bytes in JSON.
const maxEntry = 6*maxShown + 128

// log is what happened, in pages that are dropped from the front. An entry is its kind, µs since the entry before, the connection, and
// what the kind says; all numbers are uvarints, a text has its length before it. kindMore, kindRun and kindNext have neither time nor
// connection: most of a log is records of hundreds of actors, of which most take a byte or less. A page begins with an entry that has a time, which is the
// page's first: each can be read alone.
type log struct {
	dropped func(pages []page) // called before pages are dropped; may be nil
	before  entry              // the last entry, when it is a record
	pool    *pool
	max     int // pages
	keep    time.Duration
	pages   []page
	began   bool // before the first of these
	last    time.Duration
}

// begin begins an entry.
func (l *log) begin(kind byte, at time.Duration, conn uint32) *log {
	at = max(at.Truncate(time.Microsecond), l.last) // a Step and the packets around it have clocks of their own
	l.before.kind = kindNote
	if l.full() {
		l.drop(at)
		l.pages = append(l.pages, page{data: l.pool.get(), first: at})
		l.last = at
	}
	p := &l.pages[len(l.pages)-1]
	p.data = append(p.data, kind)
	p.data = binary.AppendUvarint(p.data, uint64((at-l.last)/time.Microsecond))
	l.last, p.last = at, at
	return l.uint(uint64(conn))
}

// full reports whether the last page has no room for another entry.
func (l *log) full() bool {
	n := len(l.pages)
	return n == 0 || len(l.pages[n-1].data) > pageBytes-maxEntry
}

// records adds a packet's records of changed values.
func (l *log) records(at time.Duration, conn uint32, packet int64, records []bridge.Sent) {
	for i := 0; i < len(records); i++ {
		r, b := &records[i], &l.before
		switch more := b.kind == kindRecord && b.conn == conn && b.packet == packet && !l.full(); {
		case more && follows(r, b.a, b.b) && uint64(r.Actor)-b.a <= 255-kindNext:
			step, first := uint64(r.Actor)-b.a, i
			for i+1 < len(records) && follows(&records[i+1], uint64(records[i].Actor), b.b) && uint64(records[i+1].Actor-records[i].Actor) == step {
				i++
			}
			p := &l.pages[len(l.pages)-1]
			p.data = append(p.data, kindNext+byte(step))
			if i > first {
				p.data = append(p.data, kindRun)
				l.uint(uint64(i - first))
			}
		case more:
			p := &l.pages[len(l.pages)-1]
			p.data = append(p.data, kindMore)
			l.uint(uint64(r.Actor)).uint(r.Units).text(r.Waited)
		default:
			l.begin(kindRecord, at, conn).uint(uint64(packet)).uint(uint64(r.Actor)).uint(r.Units).text(r.Waited)
		}
		l.before = entry{kind: kindRecord, conn: conn, packet: packet, a: uint64(records[i].Actor), b: r.Units}
	}
}

// follows reports whether a record is like the one before it, of a higher actor.
func follows(r *bridge.Sent, id, units uint64) bool {
	return r.Units == units && r.Waited == "" && uint64(r.Actor) > id
}

func (l *log) uint(v uint64) *log {
	p := &l.pages[len(l.pages)-1]
	p.data = binary.AppendUvarint(p.data, v)
	return l
}

func (l *log) bytes(b []byte) *log {
	l.uint(uint64(len(b)))
	p := &l.pages[len(l.pages)-1]
	p.data = append(p.data, b...)
	return l
}

func (l *log) text(s string) *log {
	l.uint(uint64(len(s)))
	p := &l.pages[len(l.pages)-1]
	p.data = append(p.data, s...)
	return l
}

// drop makes room for a page: it forgets those that are too old, and the oldest when there are as many as may be.
func (l *log) drop(now time.Duration) {
	n := 0
	for n < len(l.pages) && (len(l.pages)-n >= l.max || l.pages[n].last < now-l.keep) {
		n++
	}
	if n > 0 && l.dropped != nil {
		l.dropped(l.pages[:n])
	}
	l.began = l.began || n > 0
	l.pages = l.pool.drop(l.pages, n)
}

// entry is one of the log.
type entry struct {
	kind   byte
	at     time.Duration
	conn   uint32
	packet int64 // or channel
	a, b   uint64
	text   []byte // of the page
}

// entries calls f for all of some pages.
func entries(pages []page, f func(e *entry)) {
	for _, p := range pages {
		at, data := p.first, p.data
		uint := func() uint64 {
			v, n := binary.Uvarint(data)
			data = data[n:]
			return v
		}
		text := func() []byte {
			n := uint()
			s := data[:n]
			data = data[n:]
			return s
		}
		var e entry
		var step uint64
		for len(data) > 0 {
			kind := data[0]
			data = data[1:]
			switch {
			case kind > kindNext:
				step = uint64(kind - kindNext)
				e.a, e.text = e.a+step, nil
				f(&e)
				continue
			case kind == kindRun:
				for range uint() {
					e.a += step
					f(&e)
				}
				continue
			case kind == kindMore:
				e.a, e.b, e.text = uint(), uint(), text()
				f(&e)
				continue
			}
			e = entry{kind: kind}
			at += time.Duration(uint()) * time.Microsecond
			e.at, e.conn = at, uint32(uint())
			if e.kind == kindNote {
				e.a, e.text = uint(), text()
			} else {
				e.packet = int64(uint())
			}
			switch e.kind {
			case kindBunch, kindOpening:
				e.a, e.b = uint(), uint()
			case kindSent, kindGone, kindEnded:
				e.a = uint()
			case kindAppears, kindCarried, kindClosing, kindUnsaid:
				e.a, e.b = uint(), uint()
			case kindRecord, kindCall, kindView, kindCorrected, kindWaits:
				e.a, e.b, e.text = uint(), uint(), text()
			case kindValue:
				e.a, e.text = uint(), text()
			}
			f(&e)
		}
	}
}
