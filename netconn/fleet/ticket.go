package fleet

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Ticket is a placement in a connect token: which server has a seat for its player. It takes the last TicketBytes of the token's user
// data; the game has those before.
type Ticket struct {
	server    uint64 // hash of its ID
	placement uint64
	stamp     uint64 // of a revision of the server's seats that has the placement
	seats     int    // of the placement
}

// TicketBytes is the bytes of a Ticket in a token's user data.
const TicketBytes = 4 + 3*8

// ticketMark begins a ticket; its seats follow, in two bytes.
const ticketMark = "bt"

// Write writes the ticket into the user data of a token.
func (t Ticket) Write(userData *[netcode.UserDataBytes]byte) {
	b := append(userData[:netcode.UserDataBytes-TicketBytes], ticketMark...)
	b = binary.LittleEndian.AppendUint16(b, uint16(t.seats))
	for _, v := range []uint64{t.server, t.placement, t.stamp} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
}

// readTicket reads the ticket in user data; the zero Ticket when there is none.
func readTicket(userData *[netcode.UserDataBytes]byte) Ticket {
	b := userData[netcode.UserDataBytes-TicketBytes:]
	if string(b[:len(ticketMark)]) != ticketMark {
		return Ticket{}
	}
	b = b[len(ticketMark):]
	return Ticket{binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:]), binary.LittleEndian.Uint64(b[18:]), int(binary.LittleEndian.Uint16(b))}
}

// serverHash is an ID in a ticket.
func serverHash(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}
