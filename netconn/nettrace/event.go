// Package nettrace carries what happens inside a connection to whoever wants to
// see it: a ring for post-mortems, a file, an inspector, the hash of a simulated
// run. It is a leaf, so that every floor may emit. Without a sink an event costs
// one branch.
package nettrace

import (
	"fmt"
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
	BunchSent               // PacketID, ChIndex, ChSequence, Bits
	BunchReceived           // PacketID, ChIndex, ChSequence, Bits
	ChannelOpened           // ChIndex
	ChannelClosed           // ChIndex; A reason
	ConnOpened              //
	ConnClosed              // A code, B reliable bunches unacked
	ReplicationSent         // ChIndex, Bits; A actor, B change mask
	ReplicationSkipped      // A actor, B reason
	kinds
)

var kindNames = [kinds]string{"None", "PacketSent", "PacketReceived", "PacketAcked", "PacketNak", "PacketRefused",
	"BunchSent", "BunchReceived", "ChannelOpened", "ChannelClosed", "ConnOpened", "ConnClosed", "ReplicationSent", "ReplicationSkipped"}

// String is the kind's name.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Event is something that happened.
type Event struct {
	At         time.Duration
	PacketID   int64
	ChSequence int64
	A, B       uint64
	Conn       uint32
	ChIndex    uint32
	Bits       uint32
	Kind       Kind
}

// Sink gets events. e is valid until Trace returns.
type Sink interface{ Trace(e *Event) }
