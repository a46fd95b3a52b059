package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Config configures Record. The zero value has the defaults.
type Config struct {
	// StateEvery is the number of ticks between two hashes of the state. It is hashed at the end, too. Default 60; -1 for the end only.
	StateEvery int
	// MaxBytes is the largest size of the file. After that nothing is recorded; see ErrFull. Default 1 GiB.
	MaxBytes int64
}

// ErrConfig is wrapped by Record's errors for settings that can't work.
var ErrConfig = errors.New("capture: config")

func (c Config) filled() (Config, error) {
	if c.StateEvery == 0 {
		c.StateEvery = 60
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 30
	}
	return c, setting.First(
		setting.Within(ErrConfig, "StateEvery", c.StateEvery, -1, math.MaxInt32),
		setting.Within(ErrConfig, "MaxBytes", c.MaxBytes, 1, math.MaxInt64))
}

// Recorder runs a program and writes its inputs to a file. Use it and the program in one goroutine. The program can't use the driver's Run
// and Do.
type Recorder struct {
	cfg     Config
	w       io.Writer
	out     Outside
	program Program
	buf     []byte // events to be written
	size    int64
	ticks   int
	base    time.Time // the first time, with its monotonic reading
	wall    time.Time // the same without it
	last    int64     // the last time written, nanoseconds since 1970
	sent    fnv
	writes  uint64 // that went well, since the last that didn't
	state   fnv
	err     error
	ended   bool
}

// Record boots a program and writes its inputs to w. Zero fields of o have their defaults; Socket is required.
func Record(w io.Writer, o Outside, cfg Config, boot Boot) (*Recorder, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if o.Socket == nil {
		return nil, ErrOutside
	}
	r := &Recorder{cfg: cfg, w: w, out: o.filled(), sent: fnvBasis}
	r.base = r.out.Clock()
	r.wall = time.Unix(0, r.base.UnixNano()).UTC()
	r.last = r.wall.UnixNano()
	r.buf = append(r.buf, magic...)
	r.addr(o.Socket.LocalAddr())
	batch := uint64(min(o.Socket.BatchSize(), maxMessages))
	if udp.SendsWhole(o.Socket) {
		batch |= sendsWhole
	}
	r.buf = binary.AppendUvarint(r.buf, batch)
	r.buf = binary.AppendVarint(r.buf, r.last)
	r.program, err = boot(Outside{Socket: (*recordedSocket)(r), Clock: r.clock, Rand: (*recordedRand)(r)})
	r.flush()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Program returns what boot made.
func (r *Recorder) Program() Program { return r.program }

// Err returns why the recording has stopped although the program goes on; nil while it is recorded.
func (r *Recorder) Err() error { return r.err }

// Tick calls the program's Tick and returns its error. It returns ErrTime or ErrEnded without calling it.
func (r *Recorder) Tick(now time.Time) error {
	at := r.told(now)
	switch {
	case r.ended:
		return ErrEnded
	case now.Sub(r.base).Abs() > maxAway || !time.Unix(0, at.UnixNano()).Equal(at):
		return ErrTime
	}
	defer r.flush() // also if Tick panics
	r.time(evTick, at)
	err := r.program.Tick(at)
	r.done(err)
	if r.ticks++; r.cfg.StateEvery > 0 && r.ticks%r.cfg.StateEvery == 0 {
		r.hashState()
	}
	return err
}

// Call calls the program's Call and returns its error. It returns ErrTooLarge or ErrEnded without calling it.
func (r *Recorder) Call(data []byte) error {
	switch {
	case r.ended:
		return ErrEnded
	case len(data) > maxBytes:
		return ErrTooLarge
	}
	defer r.flush()
	r.bytes(evCall, data)
	err := r.program.Call(data)
	r.done(err)
	return err
}

// Close writes a hash of the state and ends the recording. It doesn't close the program, whose further inputs aren't recorded.
func (r *Recorder) Close() error {
	if !r.ended {
		r.hashState()
		r.ended = true
		r.buf = append(r.buf, byte(evEnd))
		r.flush()
	}
	return r.err
}

func (r *Recorder) hashState() {
	r.state = fnvBasis
	r.program.State(&r.state)
	r.buf = append(r.buf, byte(evState))
	r.buf = binary.LittleEndian.AppendUint64(r.buf, uint64(r.state))
}

func (r *Recorder) done(err error) {
	r.buf = append(r.buf, byte(evDone))
	r.buf = binary.LittleEndian.AppendUint64(r.buf, uint64(r.sent))
	text := ""
	if err != nil {
		text = err.Error()
	}
	text = text[:min(len(text), maxBytes)]
	r.buf = binary.AppendUvarint(r.buf, uint64(len(text)))
	r.buf = append(r.buf, text...)
}

// flush writes the buffered events. What the program reads is written before the program gets it, for the case that it is its last.
func (r *Recorder) flush() {
	if r.err == nil && r.size+int64(len(r.buf)) > r.cfg.MaxBytes {
		r.err = ErrFull
	}
	if r.err == nil && len(r.buf) > 0 {
		n, err := r.w.Write(r.buf)
		r.size += int64(n)
		if err != nil {
			r.err = fmt.Errorf("capture: %w", err)
		}
	}
	r.buf = r.buf[:0]
}

// maxAway is the longest time between the beginning and a tick: an int64 of nanoseconds overflows after 292 years. Those since 1970, which the
// file has, do so in 2262.
const maxAway = 290 * 365 * 24 * time.Hour

// told returns the time that the program is given: it advances like the monotonic clock but has no monotonic reading, as in the
// replay.
func (r *Recorder) told(t time.Time) time.Time { return r.wall.Add(t.Sub(r.base)) }

func (r *Recorder) time(e event, t time.Time) {
	r.buf = append(r.buf, byte(e))
	r.buf = binary.AppendVarint(r.buf, t.UnixNano()-r.last)
	r.last = t.UnixNano()
	r.flush()
}

func (r *Recorder) clock() time.Time {
	t := r.told(r.out.Clock())
	if !r.ended {
		r.time(evClock, t)
	}
	return t
}

func (r *Recorder) bytes(e event, p []byte) {
	r.buf = append(r.buf, byte(e))
	r.buf = binary.AppendUvarint(r.buf, uint64(len(p)))
	r.buf = append(r.buf, p...)
	r.flush()
}

// addr writes an address. A zone that is too long for the file is left out.
func (r *Recorder) addr(a netip.AddrPort) {
	var room [128]byte
	p, err := a.AppendBinary(room[:0])
	if err != nil || len(p) > maxAddr {
		p, _ = netip.AddrPortFrom(a.Addr().WithZone(""), a.Port()).AppendBinary(room[:0])
	}
	r.buf = binary.AppendUvarint(r.buf, uint64(len(p)))
	r.buf = append(r.buf, p...)
}

// recordedRand is the randomness that the program is given.
type recordedRand Recorder

// Read may return fewer bytes than asked for.
func (s *recordedRand) Read(p []byte) (int, error) {
	r := (*Recorder)(s)
	n, err := io.ReadFull(r.out.Rand, p[:min(len(p), maxBytes)])
	if err != nil {
		return 0, fmt.Errorf("capture: %w", err)
	}
	if !r.ended {
		r.bytes(evRand, p[:n])
	}
	return n, nil
}

// recordedSocket is the socket that the program is given.
type recordedSocket Recorder

func (s *recordedSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.out.Socket.TryReadBatch(msgs[:min(len(msgs), maxMessages)])
	(*Recorder)(s).read(msgs[:n], err)
	return n, failureOf(err).err()
}

func (s *recordedSocket) ReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.out.Socket.ReadBatch(msgs[:min(len(msgs), maxMessages)])
	(*Recorder)(s).read(msgs[:n], err)
	return n, failureOf(err).err()
}

func (r *Recorder) read(msgs []udp.Message, err error) {
	if r.ended {
		return
	}
	r.buf = append(r.buf, byte(evRead))
	r.buf = binary.AppendUvarint(r.buf, uint64(len(msgs)))
	for i := range msgs {
		r.addr(msgs[i].Addr)
		p := msgs[i].Data()
		r.buf = binary.AppendUvarint(r.buf, uint64(len(p)))
		r.buf = append(r.buf, p...)
	}
	r.buf = append(r.buf, byte(failureOf(err)))
	r.flush()
}

func (s *recordedSocket) WriteBatch(msgs []udp.Message) (int, error) {
	r := (*Recorder)(s)
	n, err := r.out.Socket.WriteBatch(msgs)
	failed := failureOfWrite(err)
	r.sent.sent(msgs)
	switch {
	case r.ended:
	case err == nil && n == len(msgs):
		r.writes++
	default:
		r.buf = append(r.buf, byte(evWrite))
		r.buf = binary.AppendUvarint(r.buf, r.writes)
		r.buf = binary.AppendUvarint(r.buf, uint64(n))
		r.buf = append(r.buf, byte(failed))
		r.writes = 0
		r.flush()
	}
	return n, failed.err()
}

// SendsWhole is for the function of that name: connections try larger packets as without a recording.
func (s *recordedSocket) SendsWhole() bool { return udp.SendsWhole(s.out.Socket) }

func (s *recordedSocket) BatchSize() int                    { return min(s.out.Socket.BatchSize(), maxMessages) }
func (s *recordedSocket) LocalAddr() netip.AddrPort         { return s.out.Socket.LocalAddr() }
func (s *recordedSocket) SetReadDeadline(t time.Time) error { return s.out.Socket.SetReadDeadline(t) }
func (s *recordedSocket) Close() error                      { return s.out.Socket.Close() }
