package handshake

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
)

// Type is the type of a handshake packet.
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

// String returns the type's name.
func (t Type) String() string {
	if t < types {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

func (t Type) hasCookie() bool { return t <= Ack || t == RestartResponse }

// Cookie is the server's proof that a client is at its address.
type Cookie [20]byte

// cookieBits is the secret id, the timestamp and the cookie.
const cookieBits = 1 + 64 + 8*len(Cookie{})

// Sequences returns the first packet sequences of both ends, which are part of the cookie.
func (c *Cookie) Sequences() (server, client uint16) {
	return (uint16(c[0]) | uint16(c[1])<<8) & 0x3fff, (uint16(c[2]) | uint16(c[3])<<8) & 0x3fff
}

// Packet is a handshake packet. In version 0 the fields that don't exist there are zero.
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
	PaddingBytes        int // random bytes behind it, set by Read

	original bool // in the form of version 0 though the protocol is later
}

// Errors of reading a packet; it is dropped.
var (
	ErrMagic  = errors.New("handshake: wrong magic header")
	ErrGame   = errors.New("handshake: a game packet, not a handshake packet")
	ErrShort  = errors.New("handshake: packet too short for its type")
	ErrType   = errors.New("handshake: unknown packet type")
	ErrFormat = errors.New("handshake: fields of the packet contradict each other")
)

// Write writes a packet with its random bytes and terminator. CurVersion says which fields it has. In a Protocol of version 0 no packet has a
// version.
func (p *Protocol) Write(w *bitio.Writer, pk *Packet, padding []byte) {
	p.writePrefix(w, pk.SessionID, pk.ClientID, true)
	w.WriteBool(pk.Restart)
	if p.Version >= Randomized {
		w.WriteUint8(pk.MinVersion)
		w.WriteUint8(pk.CurVersion)
		w.WriteUint8(uint8(pk.Type))
		w.WriteUint8(pk.SentCount)
		if pk.CurVersion >= NetCLVersion {
			w.WriteUint32(pk.NetworkVersion)
		}
		if p.hasFeatures(pk) {
			w.WriteUint16(pk.Features)
		}
	}
	if pk.Type.hasCookie() {
		w.WriteBool(pk.SecretID)
		w.WriteFloat64(pk.Timestamp)
		w.WriteBytes(pk.Cookie[:])
	}
	if pk.Type == RestartResponse {
		w.WriteBytes(pk.FirstCookie[:])
	}
	if p.Version >= Randomized {
		w.WriteBytes(padding)
	}
	handler.WriteTerminator(w)
}

// Read reads a datagram. fromServer says which end sent it, because in version 0 a Challenge and a Response look the same. It ignores what
// follows the fields of the packet's type, so any padding is accepted.
func (p *Protocol) Read(b []byte, fromServer bool) (pk Packet, err error) {
	if fromServer {
		if pk, ok := p.readOriginalReply(b); ok {
			return pk, nil
		}
	}
	var r bitio.Reader
	if err := handler.Open(&r, b); err != nil {
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
	p.readVersion(&r, &pk)
	if pk.Type >= types {
		return pk, ErrType
	}
	p.mendType(&pk, r.Remaining(), fromServer)
	if err = pk.readCookies(&r); err != nil {
		return pk, err
	}
	if p.Version == Original {
		pk.originalSubtype(fromServer)
	}
	return pk, pk.check()
}

// readVersion reads what lies between the restart bit and the cookie.
func (p *Protocol) readVersion(r *bitio.Reader, pk *Packet) {
	if p.Version == Original {
		pk.Type = originalType(pk.Restart, r.Remaining())
		return
	}
	pk.MinVersion, pk.CurVersion, pk.Type, pk.SentCount = r.ReadUint8(), r.ReadUint8(), Type(r.ReadUint8()), r.ReadUint8()
	if pk.CurVersion >= NetCLVersion {
		pk.NetworkVersion = r.ReadUint32()
	}
	if p.hasFeatures(pk) {
		pk.Features = r.ReadUint16()
	}
}

func (pk *Packet) readCookies(r *bitio.Reader) error {
	if pk.Type.hasCookie() {
		pk.SecretID = r.ReadBool()
		pk.Timestamp = r.ReadFloat64()
		r.ReadBytes(pk.Cookie[:])
	}
	if pk.Type == RestartResponse {
		r.ReadBytes(pk.FirstCookie[:])
	}
	if r.Err() != nil {
		return ErrShort
	}
	pk.PaddingBytes = r.Remaining() / 8
	return nil
}

// originalType tells version 0 packets apart by size.
func originalType(restart bool, bits int) Type {
	switch {
	case restart && bits < cookieBits:
		return RestartHandshake
	case restart && bits >= cookieBits+8*len(Cookie{}):
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
