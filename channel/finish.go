package channel

import "slices"

// Finisher may be implemented by a Handler that queues data of its own. It sends the rest of it when the connection is closed in order.
type Finisher interface {
	// Finish is called when an orderly close begins, and again in each Tick and when packets arrive, until it returns true because everything
	// was sent. Only in Finish does SendBunch on ch still work. The connection waits for LingerTimeout at most.
	Finish(ch *Channel) (done bool)
}

// finishing is the handlers that have something left at an orderly end.
type finishing struct {
	left []*Channel
	now  *Channel // its Finish is running
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
		if t.finishing == nil {
			t.finishing = new(finishing)
		}
		t.finishing.left = append(t.finishing.left, ch)
	}
}

// Finish calls the Finishers that have data left, after Shut. It reports whether all of them are done.
func (m *Machine) Finish() bool {
	t := m.table()
	f := t.finishing
	if f == nil {
		return true
	}
	f.left = slices.DeleteFunc(f.left, func(ch *Channel) bool {
		if t.ended || ch.Closing() {
			return true
		}
		f.now = ch
		defer func() { f.now = nil }()
		return ch.handler.(Finisher).Finish(ch)
	})
	return len(f.left) == 0
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
