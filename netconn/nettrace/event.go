package nettrace

import (
	"fmt"
	"net/netip"
	"time"
)

// Kind says what an Event is about, and so which of its fields are set.
type Kind uint8

// The kinds, with what A and B hold.
const (
	None               Kind = iota
	PacketSent              // PacketID; A bytes
	PacketReceived          // PacketID; A bytes of content, B how far ahead of the last
	PacketAcked             // PacketID; A round trip in ns
	PacketNak               // PacketID
	PacketRefused           // PacketID newest accepted; A wire sequence
	BunchSent               // PacketID, ChIndex, ChSequence, Bits; A flags. Bunches merged into it later don't count
	BunchReceived           // PacketID, ChIndex, ChSequence, Bits; A flags
	ChannelOpened           // ChIndex
	ChannelClosed           // ChIndex; A reason
	ConnOpened              //
	ConnClosed              // A code, B reliable bunches unacked
	ReplicationSent         // ChIndex, Bits; A actor, B change mask
	ReplicationSkipped      // A actor, B reason
	SequenceSkipped         // PacketID, which no packet has: a peer that acks it lies
	kinds
)

var kindNames = [kinds]string{"None", "PacketSent", "PacketReceived", "PacketAcked", "PacketNak", "PacketRefused",
	"BunchSent", "BunchReceived", "ChannelOpened", "ChannelClosed", "ConnOpened", "ConnClosed", "ReplicationSent", "ReplicationSkipped", "SequenceSkipped"}

// String returns the kind's name.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// The flags of a bunch.
const (
	Reliable = 1 << iota
	Open
	Close
	Partial
)

// Event is one thing that happened in a connection. Kind says which fields have a meaning.
type Event struct {
	At         time.Duration
	PacketID   int64
	ChSequence int64 // of a reliable bunch, as on the wire: 10 bits in Unreal's protocols, 14 in netconn.Bunchnet
	A, B       uint64
	Conn       uint32
	ChIndex    uint32
	Bits       uint32
	Kind       Kind
}

// Sink receives events. e is valid until Trace returns.
type Sink interface{ Trace(e *Event) }

// Tee is a Sink that passes every event to all of its sinks, in order.
type Tee []Sink

// Trace implements Sink.
func (t Tee) Trace(e *Event) {
	for _, s := range t {
		s.Trace(e)
	}
}

// Packet is a packet as a connection sent or received it: decrypted, with the prefix of its handlers, without the link's header.
type Packet struct {
	At     time.Duration
	Conn   uint32
	Server bool // the connection is a server's end
	Sent   bool
	// Local and Remote are the addresses of the connection's ends; a driver sets them.
	Local, Remote netip.AddrPort
	Data          []byte
}

// PacketSink receives packets. p and its Data are valid until TracePacket returns.
type PacketSink interface{ TracePacket(p *Packet) }
