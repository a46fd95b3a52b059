package handshake

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
)

// Type is what a handshake packet says.
type Type uint8

// The types of Unreal 5; version 0 has no type field, and they are told apart by size and
// timestamp.
const (
	Initial Type = iota
	Challenge
	Response
	Ack
	RestartHandshake
	RestartResponse
	VersionUpgrade
	types
)

var typeNames = [types]string{"Initial", "Challenge", "Response", "Ack", "RestartHandshake", "RestartResponse", "VersionUpgrade"}

// String is the type's name.
func (t Type) String() string {
	if t < types {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

func (t Type) hasCookie() bool { return t <= Ack || t == RestartResponse }

// Cookie is the server's proof of an address.
type Cookie [20]byte

// Sequences are the initial packet sequences that the cookie stands for.
func (c *Cookie) Sequences() (server, client uint16) {
	return (uint16(c[0]) | uint16(c[1])<<8) & 0x3fff, (uint16(c[2]) | uint16(c[3])<<8) & 0x3fff
}

// Protocol is what differs between versions. Both ends must have the same, but for
// Version and MinVersion.
type Protocol struct {
	// Version of the handshake, 0 to 4.
	Version uint8
	// MinVersion is the lowest version that this end accepts. Default Version; Unreal 5.3 has 3.
	MinVersion uint8
	// NetworkVersion is the checksum of the game's network version (version 2 and
	// later). Compared by the control channel's Hello, not here.
	NetworkVersion uint32
	// Features is whether the 16 bits of runtime features are there (5.3 and later;
	// 5.1 as recorded hasn't them).
	Features bool
	// RuntimeFeatures is what is sent in them.
	RuntimeFeatures uint16
	// Magic is the low MagicBits bits, at most 32, before every packet (net.MagicHeader); both 0 for none.
	Magic     uint32
	MagicBits int
}

// Unreal427 is version 0, of 4.26 to 5.0.
func Unreal427() Protocol { return Protocol{} }

// Unreal51 is version 3 without runtime features, as recorded from a 5.1.1 peer.
// MinVersion is 1 because such peers send that.
func Unreal51() Protocol { return Protocol{Version: 3, MinVersion: 1} }

// Unreal53 is version 4 with runtime features, of 5.3 and later.
func Unreal53() Protocol { return Protocol{Version: 4, MinVersion: 3, Features: true} }

func (p *Protocol) hasIDs() bool { return p.Version >= 3 }

const (
	sessionBits = 2
	clientBits  = 3
	minPadding  = 8
	maxPadding  = 16
)

// Packet is a handshake packet. Of version 0, the fields that it lacks are zero.
type Packet struct {
	SessionID, ClientID uint8
	Restart             bool
	MinVersion          uint8
	CurVersion          uint8
	Type                Type
	SentCount           uint8
	NetworkVersion      uint32
	Features            uint16
	SecretID            bool
	Timestamp           float64
	Cookie, FirstCookie Cookie
	PaddingBytes        int // random bytes behind it
}

// Errors of reading a packet.
var (
	ErrMagic  = errors.New("handshake: wrong magic header")
	ErrGame   = errors.New("handshake: a game packet, not a handshake packet")
	ErrShort  = errors.New("handshake: packet too short for its type")
	ErrType   = errors.New("handshake: unknown packet type")
	ErrFormat = errors.New("handshake: fields of the packet contradict each other")
)

func (p *Protocol) writePrefix(w *bitio.Writer, session, client uint8, handshake bool) {
	w.WriteBits(uint64(p.Magic), p.MagicBits)
	if p.hasIDs() {
		w.WriteBits(uint64(session), sessionBits)
		w.WriteBits(uint64(client), clientBits)
	}
	w.WriteBool(handshake)
}

func (p *Protocol) readPrefix(r *bitio.Reader) (session, client uint8, handshake bool, err error) {
	if uint32(r.ReadBits(p.MagicBits)) != p.Magic {
		return 0, 0, false, ErrMagic
	}
	if p.hasIDs() {
		session, client = uint8(r.ReadBits(sessionBits)), uint8(r.ReadBits(clientBits))
	}
	handshake = r.ReadBool()
	if r.Err() != nil {
		err = ErrShort
	}
	return session, client, handshake, err
}

// Write writes a packet with its random bytes and end mark.
func (p *Protocol) Write(w *bitio.Writer, pk *Packet, padding []byte) {
	p.writePrefix(w, pk.SessionID, pk.ClientID, true)
	w.WriteBool(pk.Restart)
	if p.Version >= 1 {
		w.WriteUint8(pk.MinVersion)
		w.WriteUint8(pk.CurVersion)
		w.WriteUint8(uint8(pk.Type))
		w.WriteUint8(pk.SentCount)
	}
	if p.Version >= 2 {
		w.WriteUint32(pk.NetworkVersion)
	}
	if p.Features {
		w.WriteUint16(pk.Features)
	}
	if pk.Type.hasCookie() {
		w.WriteBool(pk.SecretID)
		w.WriteFloat64(pk.Timestamp)
		w.WriteBytes(pk.Cookie[:])
	}
	if pk.Type == RestartResponse {
		w.WriteBytes(pk.FirstCookie[:])
	}
	if p.Version >= 1 {
		w.WriteBytes(padding)
	}
	w.WriteBool(true)
}

// Read reads a datagram. fromServer says who sent it, since in version 0 a Challenge and a
// Response are alike. It reads what the type needs and ignores what follows.
func (p *Protocol) Read(b []byte, fromServer bool) (pk Packet, err error) {
	r, err := handler.Open(b)
	if err != nil {
		return pk, err
	}
	var handshake bool
	if pk.SessionID, pk.ClientID, handshake, err = p.readPrefix(&r); err != nil {
		return pk, err
	}
	if !handshake {
		return pk, ErrGame
	}
	pk.Restart = r.ReadBool()
	if p.Version >= 1 {
		pk.MinVersion, pk.CurVersion, pk.Type, pk.SentCount = r.ReadUint8(), r.ReadUint8(), Type(r.ReadUint8()), r.ReadUint8()
	} else {
		pk.Type = originalType(pk.Restart, r.Remaining())
	}
	if p.Version >= 2 {
		pk.NetworkVersion = r.ReadUint32()
	}
	if p.Features {
		pk.Features = r.ReadUint16()
	}
	if pk.Type >= types {
		return pk, ErrType
	}
	if pk.Type.hasCookie() {
		pk.SecretID = r.ReadBool()
		pk.Timestamp = r.ReadFloat64()
		r.ReadBytes(pk.Cookie[:])
	}
	if pk.Type == RestartResponse {
		r.ReadBytes(pk.FirstCookie[:])
	}
	if r.Err() != nil {
		return pk, ErrShort
	}
	pk.PaddingBytes = r.Remaining() / 8
	if p.Version == 0 {
		pk.originalSubtype(fromServer)
	}
	return pk, pk.check()
}

// originalType tells version 0 packets apart by size.
func originalType(restart bool, bits int) Type {
	const cookie = 160
	switch {
	case restart && bits < 1+64+cookie:
		return RestartHandshake
	case restart && bits >= 1+64+2*cookie:
		return RestartResponse
	}
	return Initial // or Challenge, Response, Ack: by the timestamp
}

func (pk *Packet) originalSubtype(fromServer bool) {
	switch {
	case pk.Type != Initial || pk.Timestamp == 0:
	case pk.Timestamp < 0:
		pk.Type = Ack
	case fromServer:
		pk.Type = Challenge
	default:
		pk.Type = Response
	}
}

// check refuses a timestamp that doesn't go with the type; NaN goes with none.
func (pk *Packet) check() error {
	ok := true
	switch pk.Type {
	case Challenge, Response, RestartResponse:
		ok = pk.Timestamp > 0
	case Ack:
		ok = pk.Timestamp < 0
	}
	if !ok {
		return ErrFormat
	}
	return nil
}

// IsHandshake reports whether a datagram is a handshake packet of the protocol.
func (p *Protocol) IsHandshake(b []byte) bool {
	var r bitio.Reader
	r.Reset(b, len(b)*8)
	_, _, handshake, err := p.readPrefix(&r)
	return err == nil && handshake
}
