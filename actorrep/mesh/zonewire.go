package mesh

import (
	"encoding/binary"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// zoneKind is what a message between zones says.
type zoneKind uint8

const (
	zoneGive    zoneKind = iota + 1 // the actor is yours
	zoneNo                          // to who gave it: it stays yours
	zoneCall                        // a call of an actor
	zoneBack                        // to the caller: the call reached nobody
	zoneEnded                       // the actor was destroyed
	zoneAsks                        // the sender's Keeper asks this one before it goes on without the store
	zoneDeal                        // an actor's deal for another one
	zoneWanted                      // to who dealt: say it again, with this nonce
	zoneTaken                       // to who dealt: the store has that it was taken
	zoneSettled                     // to who took it: the store has that
)

// Bounds of what zones send each other.
const (
	// MaxActorState is the most bytes of an actor's state.
	MaxActorState = 16 << 10

	maxZoneMessage      = MaxActorState + 1024
	maxZoneWaiting      = 4096
	maxZoneWaitingBytes = 512 << 10
	zonePackBytes       = 56 << 10 // of messages in a packet
	maxZonePacket       = 64 << 10
	maxClassName        = 256
	maxGives            = 256     // actors in a Step
	maxHops             = 8       // of a call
	maxEpoch            = 1 << 31 // an actor whose epoch comes near stays where it is
)

// zoneMessage is a message between zones. Its parts are those of the packet.
type zoneMessage struct {
	kind   zoneKind
	id     netguid.GUID
	epoch  uint32
	table  uint64
	class  string
	state  []byte
	hops   uint8
	origin string
	call   []byte
	from   netguid.GUID // the other actor of a deal
	number uint64       // and the deal's
	nonce  uint64       // of the question that a deal is the answer to
}

func (m *zoneMessage) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(m.kind)), uint64(m.id))
	switch m.kind {
	case zoneGive, zoneNo:
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.epoch)), m.table)
		b = appendBytes(appendBytes(b, []byte(m.class)), m.state)
	case zoneCall:
		b = appendBytes(appendBytes(append(b, m.hops), []byte(m.origin)), m.call)
	case zoneBack:
		b = appendBytes(b, m.call)
	case zoneDeal, zoneWanted, zoneTaken, zoneSettled:
		b = binary.AppendUvarint(binary.AppendUvarint(append(b, m.hops), uint64(m.from)), m.number)
		b = binary.AppendUvarint(b, m.nonce)
		b = appendBytes(appendBytes(b, []byte(m.origin)), m.call)
	case zoneEnded:
		b = binary.AppendUvarint(b, uint64(m.epoch))
	}
	return b
}

// read reads a message. It reports whether it is one.
func (m *zoneMessage) read(b []byte) bool {
	r := reader{b: b}
	*m = zoneMessage{kind: zoneKind(r.byte())}
	m.id = netguid.GUID(r.number32())
	switch m.kind {
	case zoneGive, zoneNo:
		m.epoch, m.table = r.number32(), r.number()
		m.class, m.state = string(r.bytes(maxClassName)), r.bytes(MaxActorState)
		r.bad = r.bad || m.epoch == 0 || m.epoch >= maxEpoch-1 // so that there is one to come back with
	case zoneCall:
		m.hops, m.origin, m.call = r.byte(), string(r.bytes(maxID)), r.bytes(MaxMessage)
		r.bad = r.bad || m.origin == ""
	case zoneBack:
		m.call = r.bytes(MaxMessage)
	case zoneDeal, zoneWanted, zoneTaken, zoneSettled:
		m.hops, m.from, m.number = r.byte(), netguid.GUID(r.number32()), r.number()
		m.nonce = r.number()
		m.origin, m.call = string(r.bytes(maxID)), r.bytes(MaxDeal)
		r.bad = r.bad || m.origin == "" || !m.from.Valid()
	case zoneEnded:
		m.epoch = r.number32()
	case zoneAsks:
		return r.end() && m.id == 0
	default:
		return false
	}
	return r.end() && m.id.Valid()
}

func (r *reader) number32() uint32 {
	n := r.number()
	if n > 1<<32-1 {
		r.bad = true
	}
	return uint32(n)
}
