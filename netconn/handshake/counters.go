package handshake

import (
	"errors"

	"github.com/bunchnet/bunchnet/netconn/handler"
)

// Malformed counts datagrams that aren't handshake packets, by reason.
type Malformed struct {
	Empty, ZeroLastByte, WrongMagic, NotHandshake, TooShort, UnknownType, Contradictory uint64
}

func (m *Malformed) count(err error) {
	switch {
	case errors.Is(err, handler.ErrZeroSize):
		m.Empty++
	case errors.Is(err, handler.ErrZeroLastByte):
		m.ZeroLastByte++
	case errors.Is(err, ErrMagic):
		m.WrongMagic++
	case errors.Is(err, ErrGame):
		m.NotHandshake++
	case errors.Is(err, ErrType):
		m.UnknownType++
	case errors.Is(err, ErrFormat):
		m.Contradictory++
	default:
		m.TooShort++
	}
}

// Total returns the sum of all counts.
func (m *Malformed) Total() uint64 {
	return m.Empty + m.ZeroLastByte + m.WrongMagic + m.NotHandshake + m.TooShort + m.UnknownType + m.Contradictory
}

// ServerCounters counts the packets that a Server sent and received.
type ServerCounters struct {
	Initials        uint64 // answered with a Challenge, or meant to be
	Accepted        uint64 // connections
	Repeated        uint64 // a Response came again, another Ack went out
	Restarts        uint64 // connections that moved
	RestartRequests uint64 // sent, for packets from addresses that no connection has
	Upgrades        uint64 // VersionUpgrade sent

	// Refused, by reason.
	Malformed        Malformed
	WrongType        uint64 // what only servers send
	WrongVersion     uint64 // no version in common
	WrongSession     uint64 // of another SessionID
	Expired          uint64 // the challenge is older than 40 s
	WrongSecret      uint64 // the secret that it names wasn't in use then
	BadCookie        uint64 // not this server's for this address
	Replayed         uint64 // a Response whose connection has ended, or may have
	LateRepeat       uint64 // a Response that came again too late for another Ack, or of an older Challenge than the address's connection
	NoRoom           uint64 // Handler.Accepted said no
	UnknownRestart   uint64 // Handler.Restarted said no
	TooSmall         uint64 // the answer would be longer than the packet; of those without a connection some are answered all the same
	RestartsLimited  uint64 // more than MaxRestarts
	UpgradesLimited  uint64 // more than MaxUpgrades
	RandomnessFailed uint64 // ServerConfig.Rand gave an error
}

// ClientCounters counts the packets that a Client sent and received.
type ClientCounters struct {
	Sent             uint64 // packets sent
	Challenges       uint64 // answered
	Acks             uint64 // that ended an exchange
	RestartRequests  uint64 // followed
	Restarts         uint64 // that succeeded
	RestartTimeouts  uint64 // that failed
	RestartsNeedless uint64 // that a game packet ended: the server had us
	Upgrades         uint64 // VersionUpgrade received while connecting

	// Refused, by reason.
	Malformed       Malformed
	WrongType       uint64 // what only clients send
	WrongVersion    uint64 // no version in common
	WrongClientID   uint64 // for another connection of this address
	WrongSession    uint64 // of another SessionID
	WrongCookie     uint64 // an Ack of another exchange
	Unexpected      uint64 // a Challenge or an Ack that nothing waits for
	RestartUnlikely uint64 // a restart request that wasn't believed
}
