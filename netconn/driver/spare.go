package driver

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/channel"
)

// BeforeFlush runs f once, in the next TickFlush, after the game's own work of the tick and before connections send.
// When f calls BeforeFlush, the new function runs in the next tick. Call BeforeFlush on the goroutine that ticks the driver; f runs there too.
// It panics when f is nil.
func (d *Driver) BeforeFlush(f func()) {
	if f == nil {
		panic("driver: BeforeFlush needs a function")
	}
	d.beforeFlush.add(f)
}

func (d *Driver) runBeforeFlush() {
	d.beforeFlush.begin()
	for f := d.beforeFlush.take(); f != nil; f = d.beforeFlush.take() {
		f()
	}
}

// spare is what a connection's game leaves of its bandwidth, and who takes it.
type spare struct {
	senders []func() int  // in turn
	listed  bool          // in Driver.sharing
	idle    int           // ticks without senders
	before  int           // the budget before the game's work of this tick
	reserve int           // bytes that the game may want in its next tick
	unacked int           // bytes that may wait for their acks
	taken   int           // bytes that senders took before the game's work: above the reserve, but bunches may be larger than that
	owed    float64       // bytes that senders may send although the game takes all
	at      time.Duration // of the last tick
}

const (
	owedPart     = 16             // senders get one byte of so many that the connection sends, when the game takes all
	leastSpare   = 1200           // bytes that the game has, and that are owed, before somebody sends
	maxIdle      = 100            // ticks without senders until the game isn't measured any more
	reserveDrop  = 16             // the part that the reserve falls by in a tick
	leastUnacked = 4 * leastSpare // bytes; more is what the rate brings in a second and two round trips
	spareMemory  = 2              // senders fill this part of the memory for what isn't acked
)

// SendSpare registers a function that sends data which must not delay the game, such as downloads. send sends some and
// returns its bytes, or 0 when it has nothing more; after that it isn't called again.
//
// send is called in TickFlush when the game has left bandwidth in a tick, and at other times when there is more than the
// game has used in its last ticks. It is called as often as there is bandwidth; the senders of a connection take turns.
// When the game uses all bandwidth they get one byte of 16. What a call sends beyond the bandwidth that is left is sent
// before the game's next data. The game's work is what it does from TickDispatch to TickFlush: what it sends at other times,
// as in Do, comes after what send sends. send isn't called while reliable bunches wait for the packet window, or while
// unacked ones are more than the rate brings in a second and two round trips, or half of the memory for unacked data
// (netconn.Config.MaxMemory). SendSpare and send belong to the goroutine that ticks the driver. SendSpare panics when send
// is nil.
func (c *Conn) SendSpare(send func() int) {
	if send == nil {
		panic("driver: SendSpare needs a function")
	}
	s, d := &c.spare, c.driver
	s.senders = append(s.senders, send)
	if !s.listed {
		s.listed, s.at, s.before, s.unacked = true, d.latest, 1, max(s.unacked, leastUnacked)
		d.sharing = append(d.sharing, c)
	}
}

// serve calls the connection's senders in turn while there is more than a limit.
func (c *Conn) serve(limit int) {
	s := &c.spare
	for most := c.Budget() - limit; len(s.senders) > 0 && !c.Closed(); {
		over := c.Budget() <= limit
		if !over && most <= 0 {
			return // they say that they sent all of it, and didn't
		}
		if over && s.owed < leastSpare || !over && c.Table().Waiting() > 0 {
			return
		}
		if used, most := c.Table().Unreleased(); used > min(most/spareMemory, s.unacked) {
			return // while acks stay away the game has room for what it says, and all that is sent again then goes before it
		}
		send := s.senders[0]
		n := copy(s.senders, s.senders[1:])
		s.senders[n] = nil
		s.senders = s.senders[:n]
		before := c.Budget()
		sent := send()
		(*channel.Machine)(c.Table()).Beside(max(sent, before-c.Budget()))
		if sent > 0 {
			s.senders = append(s.senders, send)
		} else {
			sent = leastSpare // of no use, or it would be called for ever when it calls SendSpare itself
		}
		if over {
			s.owed -= float64(sent)
		} else {
			most -= sent
			s.taken += sent
		}
	}
}

// serveBetween is between a tick's game and the next one's.
func (d *Driver) serveBetween() {
	for i := 0; i < len(d.sharing); i++ { // a sender may make one more
		c := d.sharing[i]
		c.serve(c.spare.reserve)
	}
}

// beginShares notes what there is before the game's work.
func (d *Driver) beginShares() {
	for _, c := range d.sharing {
		if !c.Closed() {
			c.spare.before = c.Budget()
		}
	}
}

// serveLeft learns from what the game's work has left, and shares it out.
func (d *Driver) serveLeft() {
	for _, c := range d.sharing {
		if (*channel.Machine)(c.Table()).RunLater(); !c.Closed() {
			c.spare.measure(c)
		}
	}
	for i := 0; i < len(d.sharing); i++ {
		d.sharing[i].serve(0)
		d.sharing[i].spare.taken = 0
	}
	kept := d.sharing[:0]
	for _, c := range d.sharing {
		s := &c.spare
		if s.idle++; len(s.senders) > 0 {
			s.idle = 0
		}
		if s.idle == maxIdle || c.Closed() {
			s.listed, s.senders, s.idle = false, nil, 0
			continue
		}
		kept = append(kept, c)
	}
	clear(d.sharing[len(kept):])
	d.sharing = kept
}

func (s *spare) measure(c *Conn) {
	left := c.Budget()
	used := s.before - left
	switch {
	case s.before <= 0: // the game had nothing to take
		s.reserve = max(s.reserve+s.taken, leastSpare)
	case left <= 0 && used > 0: // it may have wanted more, of what others took or a debt left too
		s.reserve = max(s.reserve, 2*used+s.taken, leastSpare)
	default:
		s.reserve = max(used, s.reserve-(s.reserve+reserveDrop-1)/reserveDrop)
	}
	stats := c.Stats()
	s.unacked = max(leastUnacked, int(min(stats.SendRate*(1+2*stats.RTT.Seconds()), math.MaxInt32)))
	if at := c.driver.latest; at > s.at {
		if left <= 0 {
			part := stats.Rates.OutBytes / owedPart * (at - s.at).Seconds()
			s.owed = min(s.owed+part, leastSpare+part)
		}
		s.at = at
	}
}
