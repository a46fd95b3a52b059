// Package control is the protocol of the control channel, channel 0: the login and the reasons for closing (Unreal's NMT
// messages, 4.27 and 5.x).
//
//	client                                            server
//	  | Hello(endian, network version, token)    -->    |
//	  |    <-- Challenge(text)  or Upgrade, Failure     |
//	  | Login(response, url, id, platform)       -->    | Authorize
//	  |    <-- Welcome(map, game mode, redirect)        |
//	  | Netspeed(bytes a second), Join           -->    | joined
//
// A message is one byte with its ID, and its fields. A bunch holds one or more messages. All bunches are reliable. A message that is
// unknown, doesn't parse or comes out of order ends the connection: a correct peer never sends one.
//
//	id                  fields
//	0  Hello            u8 little-endian, u32 network version, FString token[, u16 features]
//	1  Welcome          FString map, FString game mode, FString redirect
//	2  Upgrade          u32 network version[, u16 features]
//	3  Challenge        FString
//	4  Netspeed         i32 bytes a second
//	5  Login            FString response, FString url, bytes id, FString platform
//	6  Failure          FString
//	9  Join
//	23 CloseReason      FString (5.x)
//	240 Memory          u32 bytes, not Unreal's: both ends may send it, the client from Hello on, the server with Challenge
//
// The features are present from engine network version 28 on (the 5.3 presets). This package doesn't know the layout of Unreal's
// unique net ID: it writes an IntPacked length and that many bytes. A login with a real Unreal end therefore needs a
// Login codec of its own.
//
// The state machines [Server] and [Client] check the order of messages. They are given the bunches that arrive and call a [Sender]. Package
// netconn/driver runs them on channel 0.
package control

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ID is the number of a control message (Unreal's NMT numbers).
type ID uint8

// IDs of the messages that this package knows.
const (
	HelloID       ID = 0
	WelcomeID     ID = 1
	UpgradeID     ID = 2
	ChallengeID   ID = 3
	NetspeedID    ID = 4
	LoginID       ID = 5
	FailureID     ID = 6
	JoinID        ID = 9
	CloseReasonID ID = 23
	MemoryID      ID = 240 // not Unreal's, whose numbers are far below
)

// Message is a control message of one of the types below.
type Message interface {
	// ID is the message's number.
	ID() ID
	write(w *bitio.Writer, features bool)
	read(r *bitio.Reader, features bool)
}

// Hello is the client's first message.
type Hello struct {
	LittleEndian   bool
	NetworkVersion uint32
	Token          string // Unreal's encryption token; this package doesn't use it
	Features       uint16
}

// Welcome tells a client that its login is accepted, and which map to load.
type Welcome struct{ Map, GameMode, Redirect string }

// Upgrade refuses a client with another network version, and names the server's.
type Upgrade struct {
	NetworkVersion uint32
	Features       uint16
}

// Challenge is the server's answer to Hello. The client answers it with a Login.
type Challenge struct{ Text string }

// Netspeed is the bandwidth the client wants, in bytes a second.
type Netspeed struct{ BytesPerSecond int32 }

// Login says who the client is. Its fields mean what the game wants; the server's Authorize reads them.
type Login struct {
	Response, URL string
	UniqueID      []byte // at most 256 bytes
	Platform      string
}

// Failure says why the login is refused. The connection ends after it.
type Failure struct{ Reason string }

// Join says that the client is ready to play.
type Join struct{}

// CloseReason says why its sender is about to close the connection.
type CloseReason struct{ Reason string }

// Memory is its sender's MaxMemory, so that the peer sends no more at once than that has room for. Ends send it that have the default replaced, and not with Unreal's
// protocols.
type Memory struct{ Bytes uint32 }

const (
	maxText = 4096 // characters
	maxID   = 256  // bytes
)

// ID is HelloID.
func (*Hello) ID() ID { return HelloID }

// ID is WelcomeID.
func (*Welcome) ID() ID { return WelcomeID }

// ID is UpgradeID.
func (*Upgrade) ID() ID { return UpgradeID }

// ID is ChallengeID.
func (*Challenge) ID() ID { return ChallengeID }

// ID is NetspeedID.
func (*Netspeed) ID() ID { return NetspeedID }

// ID is LoginID.
func (*Login) ID() ID { return LoginID }

// ID is FailureID.
func (*Failure) ID() ID { return FailureID }

// ID is JoinID.
func (*Join) ID() ID { return JoinID }

// ID is CloseReasonID.
func (*CloseReason) ID() ID { return CloseReasonID }

// ID is MemoryID.
func (*Memory) ID() ID { return MemoryID }

func (m *Hello) write(w *bitio.Writer, features bool) {
	endian := uint8(0)
	if m.LittleEndian {
		endian = 1
	}
	w.WriteUint8(endian)
	w.WriteUint32(m.NetworkVersion)
	w.WriteString(m.Token)
	if features {
		w.WriteUint16(m.Features)
	}
}

func (m *Hello) read(r *bitio.Reader, features bool) {
	m.LittleEndian = r.ReadUint8() != 0
	m.NetworkVersion = r.ReadUint32()
	m.Token = r.ReadString(maxText)
	if features {
		m.Features = r.ReadUint16()
	}
}

func (m *Welcome) write(w *bitio.Writer, _ bool) {
	w.WriteString(m.Map)
	w.WriteString(m.GameMode)
	w.WriteString(m.Redirect)
}

func (m *Welcome) read(r *bitio.Reader, _ bool) {
	m.Map, m.GameMode, m.Redirect = r.ReadString(maxText), r.ReadString(maxText), r.ReadString(maxText)
}

func (m *Upgrade) write(w *bitio.Writer, features bool) {
	w.WriteUint32(m.NetworkVersion)
	if features {
		w.WriteUint16(m.Features)
	}
}

func (m *Upgrade) read(r *bitio.Reader, features bool) {
	m.NetworkVersion = r.ReadUint32()
	if features {
		m.Features = r.ReadUint16()
	}
}

func (m *Challenge) write(w *bitio.Writer, _ bool) { w.WriteString(m.Text) }
func (m *Challenge) read(r *bitio.Reader, _ bool)  { m.Text = r.ReadString(maxText) }

func (m *Netspeed) write(w *bitio.Writer, _ bool) { w.WriteUint32(uint32(m.BytesPerSecond)) }
func (m *Netspeed) read(r *bitio.Reader, _ bool)  { m.BytesPerSecond = int32(r.ReadUint32()) }

func (m *Login) write(w *bitio.Writer, _ bool) {
	w.WriteString(m.Response)
	w.WriteString(m.URL)
	w.WriteIntPacked(uint32(len(m.UniqueID)))
	w.WriteBytes(m.UniqueID)
	w.WriteString(m.Platform)
}

func (m *Login) read(r *bitio.Reader, _ bool) {
	m.Response, m.URL = r.ReadString(maxText), r.ReadString(maxText)
	n := r.ReadIntPacked()
	if n > maxID {
		r.Fail(bitio.ErrFormat)
		return
	}
	m.UniqueID = make([]byte, n)
	r.ReadBytes(m.UniqueID)
	m.Platform = r.ReadString(maxText)
}

func (m *Failure) write(w *bitio.Writer, _ bool) { w.WriteString(m.Reason) }
func (m *Failure) read(r *bitio.Reader, _ bool)  { m.Reason = r.ReadString(maxText) }

func (*Join) write(*bitio.Writer, bool) {}
func (*Join) read(*bitio.Reader, bool)  {}

func (m *CloseReason) write(w *bitio.Writer, _ bool) { w.WriteString(m.Reason) }
func (m *CloseReason) read(r *bitio.Reader, _ bool)  { m.Reason = r.ReadString(maxText) }

func (m *Memory) write(w *bitio.Writer, _ bool) { w.WriteUint32(m.Bytes) }
func (m *Memory) read(r *bitio.Reader, _ bool)  { m.Bytes = r.ReadUint32() }

// Errors of Read.
var (
	ErrUnknown = errors.New("control: unknown message")
	ErrFormat  = errors.New("control: message doesn't parse")
)

func newMessage(id ID) Message {
	switch id {
	case HelloID:
		return new(Hello)
	case WelcomeID:
		return new(Welcome)
	case UpgradeID:
		return new(Upgrade)
	case ChallengeID:
		return new(Challenge)
	case NetspeedID:
		return new(Netspeed)
	case LoginID:
		return new(Login)
	case FailureID:
		return new(Failure)
	case JoinID:
		return new(Join)
	case CloseReasonID:
		return new(CloseReason)
	case MemoryID:
		return new(Memory)
	}
	return nil
}

// Encode returns a message's bytes. features says whether Hello and Upgrade carry the runtime features. A text of more than 4096
// characters, or a UniqueID of more than 256 bytes, is an error.
func Encode(m Message, features bool) ([]byte, error) {
	w := bitio.NewWriter(make([]byte, 32<<10))
	w.WriteUint8(uint8(m.ID()))
	m.write(w, features)
	if w.Err() != nil {
		return nil, w.Err()
	}
	var r bitio.Reader
	r.Reset(w.Bytes(), w.Len())
	if _, err := Read(&r, features); err != nil {
		return nil, fmt.Errorf("control: %T holds more than the peer will read: %w", m, err)
	}
	return w.Bytes(), nil
}

// Read reads the next message of a bunch. features is as for Encode.
func Read(r *bitio.Reader, features bool) (Message, error) {
	id := ID(r.ReadUint8())
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.Err())
	}
	m := newMessage(id)
	if m == nil {
		return nil, fmt.Errorf("%w %d", ErrUnknown, id)
	}
	m.read(r, features)
	if r.Err() != nil {
		return nil, fmt.Errorf("%w: %T: %w", ErrFormat, m, r.Err())
	}
	return m, nil
}
