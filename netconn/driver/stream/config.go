package stream

import (
	"errors"
)

// InitialCredit is the bytes an end may send before it has heard of its peer's window. Part of the wire.
const InitialCredit = 16 << 10

// Config is the settings of a Conn or a Listener. The zero value is useful; the ends may differ.
type Config struct {
	// Window bounds the bytes received and not read yet. Default 256 KiB, at least InitialCredit.
	Window int
	// Buffer bounds the bytes written and not sent yet. Default 64 KiB.
	Buffer int
	// MaxStreams bounds a Listener's streams that its program hasn't closed, whosever they are. Default 256.
	MaxStreams int
	// MaxPerConn bounds a Listener's streams of one connection, each until its channel is gone, which takes the peer's
	// close too. Default 16.
	MaxPerConn int
	// Backlog bounds those of them that wait for Accept. Default 64.
	Backlog int
}

func (c Config) filled() Config {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.Window, 256<<10)
	set(&c.Buffer, 64<<10)
	set(&c.MaxStreams, 256)
	set(&c.MaxPerConn, 16)
	set(&c.Backlog, 64)
	c.Window = max(c.Window, InitialCredit)
	return c
}

// Errors of a Conn. Reading at the peer's end of data is io.EOF, a passed deadline os.ErrDeadlineExceeded, and
// using a closed Conn net.ErrClosed.
var (
	// ErrLost: the connection ended before the stream did.
	ErrLost = errors.New("stream: connection lost")
	// ErrPeerClosed: the peer reads no more, so writing is in vain.
	ErrPeerClosed = errors.New("stream: the peer has closed its end")
)

// Errors of Dial.
var (
	// ErrNoConnection: the connection has ended, or never came about, or its driver was closed.
	ErrNoConnection = errors.New("stream: the client has no connection")
	// ErrServer: the driver is a server's, which has many connections; Open takes one.
	ErrServer = errors.New("stream: Dial is for clients; a server opens a stream with Open")
)

// Errors of the peer's making; the connection ends.
var (
	// ErrFormat: a segment is malformed, cut, or behind a fin.
	ErrFormat = errors.New("stream: malformed segment")
	// ErrCredit: more data than was allowed.
	ErrCredit = errors.New("stream: data beyond the credit")
)
