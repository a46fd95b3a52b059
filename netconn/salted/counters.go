package salted

// Counters counts what a Server or Client did. Each reason for refusing a packet has a counter.
type Counters struct {
	Received, Sent uint64 // packets

	// Refused packets.
	TooShort    uint64 // shorter than any packet
	BadSize     uint64 // not the size of its type
	BadChecksum uint64 // damaged, or of another protocol or ProtocolID
	BadType     uint64 // an unknown type, or one that this end doesn't receive
	BadPadding  uint64 // padding that isn't zeros
	BadSalt     uint64 // a response that doesn't fit our challenge, or an answer to somebody else's request
	BadPrefix   uint64 // another prefix than the connection's
	Replayed    uint64 // a request or response of a connection that has ended
	NoSession   uint64 // from an address that isn't connected, or not from the server
	Unexpected  uint64 // of no use in this state, such as a duplicate

	Requests  uint64 // answered with a challenge
	Denied    uint64 // requests and responses answered with denied
	TooMany   uint64 // those among Denied whose address has MaxPerAddr slots
	Connected uint64 // connections made
	Replaced  uint64 // connections replaced by a newer one from the same address
	TimedOut  uint64
	Payloads  uint64 // delivered
	// LateDisconnects counts disconnects from addresses that aren't connected. An end that leaves sends ten, of which the first
	// suffices.
	LateDisconnects uint64
	RandErrors      uint64 // failures of the source of secrets; the old secret is kept
}

type refusal uint8

const (
	accepted refusal = iota
	tooShort
	badSize
	badChecksum
	badType
	badPadding
	badSalt
	badPrefix
	replayed
	noSession
	unexpected
)

func (c *Counters) refuse(r refusal) {
	switch r {
	case accepted:
	case tooShort:
		c.TooShort++
	case badSize:
		c.BadSize++
	case badChecksum:
		c.BadChecksum++
	case badType:
		c.BadType++
	case badPadding:
		c.BadPadding++
	case badSalt:
		c.BadSalt++
	case badPrefix:
		c.BadPrefix++
	case replayed:
		c.Replayed++
	case noSession:
		c.NoSession++
	case unexpected:
		c.Unexpected++
	}
}
