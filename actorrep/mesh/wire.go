package mesh

import (
	"encoding/binary"
	"errors"
)

// kind is what a packet between servers says.
type kind uint8

const (
	expect kind = iota + 1 // from the old server: may the player come?
	come                   // from the next: yes; and where that stands
	no                     // from the next: no
	give                   // from the old: this is the player; don't play it yet
	done                   // from the old: it's yours
	have                   // from the next: so it is
	cancel                 // from the old: no such travel, or no more
)

// Flags of come.
const (
	flagHere = 1 << iota // the client is connected
	flagGot              // the player has been given
)

// Flags of a packet to a client.
const (
	flagPlays    = 1 << iota // the server plays the player
	flagArriving             // it expects the player
	flagGo                   // the client shall connect to the next server
	flagGoes                 // it knows that, and it still holds
)

// Bounds.
const (
	// MaxState is the most bytes of a player's state.
	MaxState = 64 << 10
	// MaxTicket is the most bytes of a ticket: a connect token has 2048.
	MaxTicket = 4 << 10
	// MaxMessage is the most bytes of a message.
	MaxMessage = 1024
	// MaxWaiting is the most messages, and MaxWaitingBytes the most bytes of them, that wait for their acknowledgement in one direction.
	MaxWaiting      = 256
	MaxWaitingBytes = 32 << 10

	// MaxServerPacket is the most bytes of a packet between servers.
	MaxServerPacket = MaxState + MaxWaitingBytes + 2048

	maxID       = 128
	maxAttempt  = 1 << 62                                         // a client says twice as much, and 1
	packBytes   = 1100                                            // of messages in a packet, but for the first
	maxClient   = 20 + 20 + packBytes + MaxMessage + 8            // bytes of a client's packet
	maxToClient = 64 + maxID + MaxTicket + packBytes + MaxMessage // and to it
	maxFree     = 32
)

// errPacket is a packet that can't be.
var errPacket = errors.New("mesh: malformed packet")

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// reader reads a packet. After an error it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, n = true, 0
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (r *reader) fixed() uint64 {
	if v := r.take(8); len(v) == 8 {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(most int) []byte {
	n := r.number()
	if n > uint64(most) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

// end reports whether the packet was whole, and nothing is left.
func (r *reader) end() bool { return !r.bad && len(r.b) == 0 }

// messages reads what a stream's append wrote. The messages are parts of the packet.
func (r *reader) messages(into [][]byte, most limits) (first uint64, m [][]byte) {
	first, m = r.number(), into
	for {
		n := r.number()
		if n == 0 || r.bad {
			return first, m
		}
		if n > uint64(most.message)+1 || len(m) >= most.count {
			r.bad = true
			return first, m
		}
		m = append(m, r.take(int(n)-1))
	}
}
