package web

import (
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// A sieve reads a socket of which some datagrams aren't for the driver. A driver takes less than a full batch for all that waits, so that what waits has the places of
// those that are taken out.
type sieve struct {
	out int // taken out since less than a full batch was returned
}

// maxSifted bounds them: whatever strangers send, a driver's read of all that waits ends.
const maxSifted = 64 * mailbox.BatchSize

// A sifter reads a socket once, and takes out what isn't for the driver. It returns how many datagrams it has read, and how many of them are left at the front.
type sifter interface {
	sift(s udp.Socket, msgs []udp.Message, wait bool) (read, left int, err error)
}

// tryRead reads what waits.
func (v *sieve) tryRead(by sifter, s udp.Socket, msgs []udp.Message) (n int, err error) {
	for {
		room := msgs[n:]
		read, left, err := by.sift(s, room, false)
		v.out += read - left
		if n += left; n == len(msgs) {
			return n, err
		}
		if read < len(room) || err != nil || v.out >= maxSifted {
			v.out = 0
			return n, err
		}
		own(msgs[:n])
	}
}

// read waits for a datagram, and reads what waits behind it.
func (v *sieve) read(by sifter, s udp.Socket, msgs []udp.Message) (n int, err error) {
	for {
		read, left, err := by.sift(s, msgs, true)
		if left > 0 && left < read && read == len(msgs) && err == nil {
			own(msgs[:left])
			n, err = v.tryRead(by, s, msgs[left:])
			return left + n, err
		}
		if left > 0 || read == 0 || err != nil {
			return left, err
		}
	}
}

// readOnce reads a socket once.
func readOnce(s udp.Socket, msgs []udp.Message, wait bool) (int, error) {
	if wait {
		return s.ReadBatch(msgs)
	}
	return s.TryReadBatch(msgs)
}

// keep moves the messages that f wants to the front, in their order, and the others behind them. It returns the number of those that it wants.
func keep(msgs []udp.Message, f func(p []byte) bool) (left int) {
	for i := range msgs {
		if !f(msgs[i].Data()) {
			continue
		}
		if left < i {
			msgs[left], msgs[i] = msgs[i], msgs[left]
		}
		left++
	}
	return left
}

// own copies what was read into the messages' own memory, for another read.
func own(msgs []udp.Message) {
	for i := range msgs {
		m := &msgs[i]
		if p := m.Data(); len(p) > 0 && &p[0] != &m.Buf[0] {
			m.Lend(m.Buf[:copy(m.Buf, p)])
		}
	}
}
