// Package control is what the two ends say on channel 0: who they are, whether they
// may talk, and why they stop (Unreal's NMT messages, 4.27 and 5.x).
//
//	client                                            server
//	  | Hello(endian, network version, token)    -->    |
//	  |    <-- Challenge(text)  or Upgrade, Failure     |
//	  | Login(response, url, id, platform)       -->    | Authorize
//	  |    <-- Welcome(map, game mode, redirect)        |
//	  | Netspeed(bytes a second), Join           -->    | joined
//
// Each message is a byte of id and its fields; several may follow each other in one
// bunch. All go reliably. A message that is unknown or doesn't parse ends the
// connection, and so does one out of order: on an authentic channel only a broken or lying
// peer sends it.
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
//
// The features are there from engine network version 28 on (5.3's presets). The layout of
// Unreal's unique net id isn't recorded: here it is an IntPacked length and as many bytes,
// so a login with a real Unreal end needs its own Login codec.
//
// The machines [Server] and [Client] hold the order. They get what arrives and say what to
// send; netconn/driver puts them on channel 0.
package control

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ID names a control message (Unreal's NMT numbers).
type ID uint8

// The messages this package speaks.
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
)

// Message is a control message of one of the types below.
type Message interface {
	// ID is the message's number.
	ID() ID
	write(w *bitio.Writer, features bool)
	read(r *bitio.Reader, features bool)
}

// Hello opens the conversation.
type Hello struct {
	LittleEndian   bool
	NetworkVersion uint32
	Token          string // asks for encryption in Unreal; opaque here
	Features       uint16
}

// Welcome lets a client in.
type Welcome struct{ Map, GameMode, Redirect string }

// Upgrade refuses a client of another network version.
type Upgrade struct {
	NetworkVersion uint32
	Features       uint16
}

// Challenge asks for a Login.
type Challenge struct{ Text string }

// Netspeed is the bandwidth the client wants, in bytes a second.
type Netspeed struct{ BytesPerSecond int32 }

// Login says who the client is.
type Login struct {
	Response, URL string
	UniqueID      []byte // at most 256 bytes
	Platform      string
}

// Failure says why the connection ends.
type Failure struct{ Reason string }

// Join says that the client is ready.
type Join struct{}

// CloseReason says why the connection is about to be closed.
type CloseReason struct{ Reason string }

const (
	maxText = 4096
	maxID   = 256
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
	}
	return nil
}

// Encode is a message's bytes. features says whether the runtime features are part of Hello and
// Upgrade. A text of more than 4096 characters is an error.
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

// Read takes the next message of a bunch.
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
