package spectate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// ErrTooMuch ends a connection whose server sends more than NewSpectator's maxBytes ahead of what is played.
var ErrTooMuch = errors.New("spectate: the server sent more than maxBytes ahead of what is played")

// Spectator is the client's part. It belongs to the goroutine of its world.
type Spectator struct {
	world *actorrep.World
	max   int
	got   window
	first bool // the first byte came
	saved bool // it said that a checkpoint comes first
	r     *replay.Replay
	plays bool
	late  bool // it plays faster, as it is behind what came
	err   error
}

// window is what is kept of a recording.
type window struct {
	base int64 // what lies before isn't kept
	data []byte
}

func (w *window) size() int64 { return w.base + int64(len(w.data)) }

// ReadAt implements io.ReaderAt.
func (w *window) ReadAt(p []byte, at int64) (int, error) {
	if at < w.base || at > w.size() {
		return 0, io.EOF
	}
	n := copy(p, w.data[at-w.base:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// NewSpectator returns a Spectator for a client's world with registered classes and without a connection. maxBytes bounds the
// bytes received and not played yet; 0 is 64 MiB. The error is ErrConfig.
func NewSpectator(w *actorrep.World, maxBytes int) (*Spectator, error) {
	if w.IsServer() || maxBytes < 0 {
		return nil, fmt.Errorf("%w: a Spectator needs a client's world, and maxBytes, %d, must be positive, or 0 for the default", ErrConfig, maxBytes)
	}
	return &Spectator{world: w, max: cmp.Or(maxBytes, 64<<20)}, nil
}

// Channel is the channel type to add to the driver.Config of the dial.
func (s *Spectator) Channel() channel.Type { return channel.Type{Name: name, ClientOpen: true} }

// Open asks the server for its game. Call it when the connection has joined. The error is Conn.Open's or SendBunch's.
func (s *Spectator) Open(c *driver.Conn) error {
	ch, err := c.Open(name, &source{s: s})
	if err == nil {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{0}, Reliable: true})
	}
	return err
}

// Playing reports whether the world shows the game.
func (s *Spectator) Playing() bool { return s.plays }

// Position is the recording's time that is shown; 0 before Playing.
func (s *Spectator) Position() time.Duration {
	if !s.plays {
		return 0
	}
	return s.r.Position()
}

// Step plays what has arrived, up to now, in the world. When it is more than 2.5 s behind what has arrived, as after an
// interruption, it plays faster, at most twice as fast. When what has arrived isn't a recording, or is damaged, Step returns
// an error, from then on each time. Call it each tick, instead of World.Step.
func (s *Spectator) Step(now time.Duration) error {
	if s.err != nil {
		return s.err
	}
	if s.r == nil {
		if !s.first {
			return nil
		}
		r, err := replay.Open(&s.got, s.got.size())
		if errors.Is(err, replay.ErrTruncated) {
			return nil // the rest is on its way
		}
		if err != nil {
			return s.fail(err)
		}
		s.r = r
	}
	if err := s.r.Grow(s.got.size()); err != nil {
		return s.fail(err)
	}
	if !s.plays {
		if s.saved && s.r.Checkpoints() == 0 || s.r.Duration() == 0 {
			return nil
		}
		if err := s.r.Play(s.world); err != nil {
			return s.fail(err)
		}
		if s.saved {
			if err := s.r.Seek(s.r.Duration()); err != nil {
				return s.fail(err)
			}
		}
		s.plays = true
	}
	if err := s.r.SetSpeed(s.speed()); err != nil {
		return s.fail(err)
	}
	if err := s.r.Step(now); err != nil {
		return s.fail(err)
	}
	if n := s.r.Offset() - s.got.base; n > 1<<20 || n > int64(s.max/2) { // not each time
		s.got.data = append(s.got.data[:0], s.got.data[n:]...)
		s.got.base += n
	}
	return nil
}

// speed is how fast it plays: faster, up to twice as fast, when more came than the second that blocks are apart, and some of reserve.
func (s *Spectator) speed() float64 {
	behind, apart := s.r.Duration()-s.r.Position(), max(time.Second, s.r.Interval())
	if s.late = behind > 5*apart/2 || s.late && behind > apart; !s.late {
		return 1
	}
	return 1 + min(behind.Seconds()/(8*apart.Seconds()), 1)
}

func (s *Spectator) fail(err error) error {
	if !errors.Is(err, replay.ErrWithin) {
		s.err = err
	}
	return err
}

// source is the channel that the recording comes by.
type source struct {
	channel.Nop
	s *Spectator
}

// ReceivedBunch is the channel's.
func (o *source) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	s, n := o.s, in.Data.Remaining()/8
	if n > 0 && !s.first {
		s.first, s.saved = true, in.Data.ReadUint8() == 1
		n--
	}
	if len(s.got.data)+n > s.max {
		ch.Conn().Fail(ErrTooMuch, false)
		return
	}
	at := len(s.got.data)
	s.got.data = append(s.got.data, make([]byte, n)...)
	in.Data.ReadBytes(s.got.data[at:])
}
