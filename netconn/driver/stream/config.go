package stream

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// InitialCredit is how many bytes an end may send before its peer's first credit. It is part of the wire format.
const InitialCredit = 16 << 10

// Config has the settings of a Conn or a Listener. The zero value is useful. The two ends may have different settings.
type Config struct {
	// Window bounds the bytes received and not read yet: InitialCredit to 1 GiB. Default 256 KiB.
	Window int
	// Buffer bounds the bytes written and not sent yet: 1 byte to 1 GiB. Default 64 KiB.
	Buffer int
	// MaxStreams bounds a Listener's streams over all connections. A stream counts until the program or the peer has closed
	// it. Default 256, up to 1048576.
	MaxStreams int
	// MaxPerConn bounds a Listener's streams of one connection, and so the windows of bytes and the goroutines that one client
	// can have a program hold. A stream counts until the program has closed it and its channel is gone, which takes the peer's
	// close too, or until the connection ends. Default 16, up to 1048576.
	MaxPerConn int
	// Backlog bounds a Listener's streams that wait for Accept. Default 64, up to 1048576.
	Backlog int
}

// ErrConfig is wrapped by the errors of Open and Dial, and by what Listen panics with, for settings that can't work.
var ErrConfig = errors.New("stream: config")

func (c Config) filled() (Config, error) {
	c.Window = cmp.Or(c.Window, 256<<10)
	c.Buffer = cmp.Or(c.Buffer, 64<<10)
	c.MaxStreams = cmp.Or(c.MaxStreams, 256)
	c.MaxPerConn = cmp.Or(c.MaxPerConn, 16)
	c.Backlog = cmp.Or(c.Backlog, 64)
	return c, setting.First(
		setting.Within(ErrConfig, "Window", c.Window, InitialCredit, maxBytes),
		setting.Within(ErrConfig, "Buffer", c.Buffer, 1, maxBytes),
		setting.Within(ErrConfig, "MaxStreams", c.MaxStreams, 1, maxNumber),
		setting.Within(ErrConfig, "MaxPerConn", c.MaxPerConn, 1, maxNumber),
		setting.Within(ErrConfig, "Backlog", c.Backlog, 1, maxNumber))
}

const (
	maxBytes  = 1 << 30
	maxNumber = 1 << 20
)

// Errors of a Conn. Other errors are a Refusal; io.EOF, when Read reaches the peer's end of data; os.ErrDeadlineExceeded, when a
// deadline has passed; and net.ErrClosed, when the Conn is closed.
var (
	// ErrLost: the connection ended before the stream did.
	ErrLost = errors.New("stream: connection lost")
	// ErrPeerClosed: Write failed because the peer has closed its end and reads no more.
	ErrPeerClosed = errors.New("stream: the peer has closed its end")
)

// Refusal is the error of Read and Write on a stream that the peer refused, and says why. errors.Is finds each reason, errors.As any.
type Refusal uint8

const (
	// NoListener: the peer has no Listener for streams of this name, or has closed it.
	NoListener Refusal = 1 + iota
	// TooManyStreams: the Listener has Config.MaxStreams streams.
	TooManyStreams
	// TooManyOfConn: the Listener has Config.MaxPerConn streams of this connection. A stream counts until both ends' programs have closed it.
	TooManyOfConn
	// BacklogFull: Config.Backlog streams wait for the peer's program to call Accept.
	BacklogFull
)

func (r Refusal) Error() string {
	switch r {
	case NoListener:
		return "stream: refused: the peer accepts no streams of this name"
	case TooManyStreams:
		return "stream: refused: the peer has as many streams as it accepts"
	case TooManyOfConn:
		return "stream: refused: the peer has as many streams of this connection as it accepts"
	case BacklogFull:
		return "stream: refused: too many streams wait for the peer's Accept"
	}
	return fmt.Sprintf("stream: refused for reason %d", uint8(r))
}

// Errors of Dial.
var (
	// ErrNoConnection: the connection has ended, is being closed or was never made, or its driver was closed.
	ErrNoConnection = errors.New("stream: the client has no connection")
	// ErrServer: the driver is a server's, which has many connections. Open takes the connection.
	ErrServer = errors.New("stream: Dial is for clients; a server opens a stream with Open")
)

// Errors that the peer causes. The connection ends with them.
var (
	// ErrFormat: a segment is malformed, cut short, or came after a fin.
	ErrFormat = errors.New("stream: malformed segment")
	// ErrCredit: the peer sent more data than this end's credit allows.
	ErrCredit = errors.New("stream: data beyond the credit")
)
