package link

import "time"

// Tick calls Handler.Datagram for all that is due: new messages, messages not acked in time, an ack that no other datagram
// carried, a ping.
func (l *Link) Tick(now time.Duration) {
	now = l.clock.At(now)
	l.collect(now)
	for len(l.due) > 0 {
		l.sendMessages()
	}
	if l.ackWanted && now >= l.ackDue {
		number := l.answer
		l.answer = 0
		l.stats.AcksSent++
		l.sendBare(kindAck, number)
	}
	if l.cfg.PingInterval > 0 && now >= l.nextPing {
		l.ping(now)
	}
}

// collect lists the messages due and sets their next timers.
func (l *Link) collect(now time.Duration) {
	l.due = l.due[:0]
	if l.base == l.next || now < l.nextDue {
		return
	}
	rto := l.rtt.rto(&l.cfg)
	l.nextDue, l.blocked = now+l.cfg.MaxRTO, false
	flying := l.flying(now)
	for id := l.base; id < l.next; id++ {
		m := l.out.Lookup(id)
		if m.due <= now {
			n := int(m.size) + packedBytes
			if l.blocked = l.blocked || flying > 0 && flying+n > l.window.limit; l.blocked {
				continue // until an ack or a timer makes room: the oldest go first
			}
			flying += n
			l.due = append(l.due, id)
			l.arm(m, now, rto)
		}
		l.nextDue = min(l.nextDue, m.due)
	}
	l.lead(now, rto)
}

// lead has the message that all others wait for ride along, when it was sent twice in vain. Its timer and those of the others may
// have the same period, so that it would always find the path full.
func (l *Link) lead(now, rto time.Duration) {
	m := l.out.Lookup(l.base)
	if len(l.due) == 0 || l.due[0] == l.base || m.sends < 2 || now-m.sentAt < rto {
		return
	}
	l.arm(m, now, rto)
	l.due = append(l.due, 0)
	copy(l.due[1:], l.due)
	l.due[0] = l.base
}

// flying is the bytes of messages that were sent and aren't overdue.
func (l *Link) flying(now time.Duration) (n int) {
	for id := l.base; id < l.unsent; id++ {
		if m := l.out.Lookup(id); m.due > now {
			n += int(m.size) + packedBytes
		}
	}
	return n
}

func (l *Link) arm(m *outMessage, now, rto time.Duration) {
	if m.sends++; m.sends == 1 {
		m.rto = rto
		l.unsent++
	} else {
		m.rto = min(time.Duration(float64(m.rto)*l.cfg.Backoff), l.cfg.MaxRTO)
		l.window.lost()
		l.stats.MessagesResent++
	}
	m.sentAt, m.due = now, now+m.rto
}

// sendMessages fills one datagram: each due message that still fits, oldest first.
// The others remain due.
func (l *Link) sendMessages() {
	n, left := HeaderBytes-packedBytes, l.due[:0]
	for _, id := range l.due {
		m := l.out.Lookup(id)
		if n+packedBytes+int(m.size) > len(l.buf) {
			left = append(left, id)
			continue
		}
		putMessage(l.buf[n:], truncate(id), int(m.size))
		n += packedBytes + copy(l.buf[n+packedBytes:], m.data[:m.size])
	}
	l.due = left
	l.emit(kindReliable, n)
}

// sendBare sends a datagram without messages.
func (l *Link) sendBare(k kind, number uint16) {
	putMessage(l.buf[HeaderBytes-packedBytes:], number, 0)
	l.emit(k, HeaderBytes)
}

// emit puts n bytes out, which begin with room for the header's first fields. The ack
// wanted rides on any datagram; a ping's answer needs one of its own.
func (l *Link) emit(k kind, n int) {
	p := l.buf[:n]
	seal(p, l.crcInit, k, truncate(l.recvNext-1))
	l.ackWanted = l.ackWanted && l.answer != 0
	l.stats.DatagramsSent++
	l.stats.BytesSent += uint64(n)
	l.handler.Datagram(p)
}

// ping measures the round trip; until there is a sample it does so more often.
func (l *Link) ping(now time.Duration) {
	l.nextPing = now + l.cfg.PingInterval
	if !l.rtt.known {
		l.nextPing = now + min(l.cfg.PingInterval, l.cfg.InitialRTO)
	}
	l.stats.PingsSent++
	l.sendBare(kindPing, l.pings.start(now))
}
