package capture

import (
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Errors of this package.
var (
	// ErrFormat: the file isn't a capture, or is damaged.
	ErrFormat = errors.New("capture: not a capture, or damaged")
	// ErrDiverged: the replay behaved differently from the recorded run.
	ErrDiverged = errors.New("capture: the replay went another way than the recorded run")
	// ErrFull: the file has reached Config.MaxBytes.
	ErrFull = errors.New("capture: the file is full; raise Config.MaxBytes")
	// ErrTooLarge: the data of a call has more than 64 KiB. The call wasn't made.
	ErrTooLarge = errors.New("capture: a call is over 64 KiB")
	// ErrTime: the time of a tick is more than 290 years away from the beginning of the recording, or not in the years 1678 to 2262, which the
	// file can't hold. The tick wasn't made. The usual cause is a time that counts from time.Time{}.
	ErrTime = errors.New("capture: a tick's time is more than 290 years from the beginning, or not from 1678 to 2262")
	// ErrOutside: the Outside has no Socket.
	ErrOutside = errors.New("capture: Record needs Outside.Socket; open one with udp.Listen")
	// ErrEnded: the Recorder is closed.
	ErrEnded = errors.New("capture: the recorder is closed")
)

// Outside holds the sources of a program's inputs, besides its ticks and calls.
type Outside struct {
	// Socket is the driver's socket. Required for Record.
	Socket udp.Socket
	// Clock returns the time of day. Default time.Now.
	Clock func() time.Time
	// Rand is the randomness that secrets are made from. Default crypto/rand.
	Rand io.Reader
}

// Config returns cfg with this socket, clock and randomness.
func (o Outside) Config(cfg driver.Config) driver.Config {
	cfg.Socket, cfg.Clock, cfg.Rand = o.Socket, o.Clock, o.Rand
	return cfg
}

func (o Outside) filled() Outside {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o
}

// Program is a driver and the game on it.
type Program interface {
	// Tick runs a frame of the game. It passes now to the driver's TickDispatch and TickFlush.
	Tick(now time.Time) error
	// Call handles an input that doesn't come from the network, in an encoding of the game's own. data has at most 64 KiB.
	Call(data []byte) error
	// State writes the state that a replay must reproduce. It is hashed, not stored.
	State(w io.Writer)
}

// Boot makes a program. Record and Replay need the same function.
type Boot func(o Outside) (Program, error)
