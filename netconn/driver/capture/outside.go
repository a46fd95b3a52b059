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
	// ErrFormat is a file that isn't a capture, or is damaged.
	ErrFormat = errors.New("capture: not a capture, or damaged")
	// ErrDiverged is a replay that came to something else than the recorded run.
	ErrDiverged = errors.New("capture: the replay went another way than the recorded run")
	// ErrFull is a capture that has reached Config.MaxBytes.
	ErrFull = errors.New("capture: the file is full; raise Config.MaxBytes")
	// ErrTooLarge is a call over 64 KiB; it wasn't made.
	ErrTooLarge = errors.New("capture: a call is over 64 KiB")
	// ErrTime is a tick at a time more than 290 years from when the recording began, which the file can't say; it wasn't made. It comes of times that
	// count from time.Time{}.
	ErrTime = errors.New("capture: a tick's time is more than 290 years from the beginning")
	// ErrOutside is an Outside without a Socket.
	ErrOutside = errors.New("capture: Record needs Outside.Socket; open one with udp.Listen")
	// ErrEnded is a call of a Recorder that was closed.
	ErrEnded = errors.New("capture: the recorder is closed")
)

// Outside is all that a program may get from outside, but for its ticks and calls.
type Outside struct {
	// Socket is the driver's. Record needs one.
	Socket udp.Socket
	// Clock is the time of day. Default time.Now.
	Clock func() time.Time
	// Rand is the source of secrets. Default crypto/rand.
	Rand io.Reader
}

// Config is cfg with this outside.
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
	// Tick is a frame of the game. The driver's TickDispatch and TickFlush get the same now.
	Tick(now time.Time) error
	// Call is what comes from outside other than by the network, in a form of the game's own.
	Call(data []byte) error
	// State writes what a replay must come to again. What it writes is hashed, not kept.
	State(w io.Writer)
}

// Boot makes a program. It is the same function for Record and Replay.
type Boot func(o Outside) (Program, error)
