package channel

import "slices"

// Finisher may be implemented by a Handler that queues data of its own. It sends the rest of it when the connection is closed in order.
type Finisher interface {
	// Finish is called when an orderly close begins, and again in each Tick and when packets arrive, until it returns true because everything
	// was sent. For packets it is called each 4 ms at most, so send as long as IsNetReady is true. Only in Finish does SendBunch on ch still work. Of several that want more than the
	// bandwidth each is first in turn, so that where LingerTimeout is too short for all more of them are sent in part. The connection waits for LingerTimeout at most.
	Finish(ch *Channel) (done bool)
}

// Answerer may be implemented by a Finisher that the peer needs answers of, as credit, to send what it has left.
type Answerer interface {
	Finisher
	// Answer is called after Finish has returned true, as often, while other channels have something left, or the peer, which closes as well, refuses the end.
	// SendBunch on ch works in it. Of a channel that the peer opens meanwhile Finish is called once, in which SendBunch returns ErrClosed, then Answer.
	Answer(ch *Channel)
}

// finishing is the handlers that have something left at an orderly end.
type finishing struct {
	left []*Channel
	done []*Channel // of Answerers that have nothing left
	now  *Channel   // its Finish is running
	// answers is the reliable bunches that Answerers have sent since nothing is left: while more aren't acked, some of what was to be sent isn't.
	answers int
}

// Shut makes every later SendBunch, Close and Open return ErrClosed. What was sent before continues, and so do Finishers:
// call Finish.
func (m *Machine) Shut() {
	t := m.table()
	t.closing = true
	for ch := range t.All {
		if _, is := ch.handler.(Finisher); !is || ch.Closing() {
			continue
		}
		f := t.finishers()
		f.left = append(f.left, ch)
	}
}

// finishers returns t.finishing, which most connections don't need.
func (t *Table) finishers() *finishing {
	if t.finishing == nil {
		t.finishing = new(finishing)
	}
	return t.finishing
}

// Finish calls the Finishers that have data left, after Shut. It reports whether all of them are done.
func (m *Machine) Finish() bool {
	t := m.table()
	f := t.finishing
	if f == nil {
		return true
	}
	ready := t.conn.IsNetReady()
	f.left = t.ask(f.left, t.finish)
	if ready && len(f.left) > 1 && !t.conn.IsNetReady() { // others may have got nothing: another is first the next time
		first := f.left[0]
		f.left = append(slices.Delete(f.left, 0, 1), first)
	}
	if len(f.left) > 0 {
		f.answers = 0
	}
	if len(f.left) > 0 || t.unacked > f.answers && !t.closeSent() || t.closeRefused() { // otherwise a peer that goes on would hold up the end
		before := t.unacked
		f.done = t.ask(f.done, func(ch *Channel) bool {
			ch.handler.(Answerer).Answer(ch)
			return false
		})
		f.answers += t.unacked - before
	}
	return len(f.left) == 0
}

// finish calls a channel's Finisher.
func (t *Table) finish(ch *Channel) (done bool) {
	done = ch.handler.(Finisher).Finish(ch)
	if _, answers := ch.handler.(Answerer); done && answers {
		t.finishing.done = append(t.finishing.done, ch)
	}
	return done
}

// openedLate has the Answerer of a channel that the peer opened after Shut asked like those that are done: what the peer sends on it may need answers. Its Finish hears of the end, but
// sends nothing, as a peer that goes on opening channels would hold up the end.
func (t *Table) openedLate(ch *Channel) {
	a, answers := ch.handler.(Answerer)
	if !answers || !t.closing {
		return
	}
	f := t.finishers()
	if len(f.left)+len(f.done) >= 2*t.open { // a peer may open and close channels again and again
		f.left, f.done = slices.DeleteFunc(f.left, (*Channel).Closing), slices.DeleteFunc(f.done, (*Channel).Closing)
	}
	a.Finish(ch)
	if !ch.Closing() {
		f.done = append(f.done, ch)
	}
}

// ask calls the handlers of channels, and has SendBunch work meanwhile. It returns those that aren't done, and aren't closing.
func (t *Table) ask(channels []*Channel, handler func(ch *Channel) (done bool)) []*Channel {
	f := t.finishing
	return slices.DeleteFunc(channels, func(ch *Channel) bool {
		if t.ended || ch.Closing() {
			return true
		}
		f.now = ch
		defer func() { f.now = nil }()
		return handler(ch)
	})
}

// closeRefused reports whether the peer seems to refuse our end, as it closes as well and has something left.
func (t *Table) closeRefused() bool {
	ch := t.Channel(0)
	if ch == nil || !ch.closing {
		return false
	}
	last := ch.out.at(ch.out.next - 1)
	return last != nil && last.lost > 1
}

// Drained reports whether nothing is left, and all that was sent is acked. What waits for OnlyControl doesn't count: at an orderly end it has waited in vain.
func (m *Machine) Drained() bool {
	t := m.table()
	if t.onlyControl {
		ch := t.Channel(0)
		return ch == nil || ch.unacked() == 0
	}
	return m.Finish() && t.unacked == 0
}

// hasLeft reports whether any handler has something left at an orderly end.
func (t *Table) hasLeft() bool { return t.finishing != nil && len(t.finishing.left) > 0 }

// hasLeft reports whether the channel's handler has something left at an orderly end.
func (ch *Channel) hasLeft() bool {
	f := ch.table.finishing
	return f != nil && slices.Contains(f.left, ch)
}

// shut reports whether nothing more may be sent on the channel.
func (ch *Channel) shut() bool {
	t := ch.table
	return ch.Closing() || t.closing && (t.ended || t.finishing == nil || t.finishing.now != ch)
}
