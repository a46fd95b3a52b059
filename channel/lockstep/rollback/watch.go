package rollback

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// logFrames is how many frames of final inputs are kept for spectators: a power of two.
const logFrames = 1024

// finalLog is the inputs of all players in frames that are final.
type finalLog struct {
	next     int64
	ring     []byte // by frame
	zero     []byte // a frame of no inputs
	watchers [MaxSpectators]watcher
}

// watcher is a spectator.
type watcher struct {
	transport lockstep.Transport
	next      int64 // the frame that it needs; below 0 until it has said so
	onward    int64 // see rest
	behind    bool
	heard     time.Duration
	again     time.Duration // when it gets a packet although it isn't heard any more
}

// newFinalLog has frames of size bytes.
func newFinalLog(size int) finalLog {
	return finalLog{ring: make([]byte, logFrames*size), zero: make([]byte, size)}
}

func (l *finalLog) at(frame int64) []byte {
	n := len(l.zero)
	i := int(frame&(logFrames-1)) * n
	return l.ring[i : i+n : i+n]
}

// keepFinal takes the inputs of frames that have become final.
func (s *Session) keepFinal(final int64) {
	l := &s.log
	for ; l.next < final; l.next++ {
		b := l.at(l.next)
		for p := range s.cfg.Players {
			copy(b[p*s.cfg.InputSize:], s.input(p, l.next))
		}
	}
}

// sendFinal sends a spectator what it lacks.
func (s *Session) sendFinal(i int) {
	l := &s.log
	w := &l.watchers[i]
	end, oldest := l.next-int64(s.cfg.SpectatorDelay), max(0, l.next-logFrames)
	kind, first := byte(finalInputs), goOn(w.next, w.onward)
	if w.next < oldest {
		kind, first = finalGone, oldest
		if !w.behind {
			w.behind = true
			s.tell(Event{Kind: Behind, Player: s.cfg.Players + i, Frame: w.next})
		}
	}
	if s.err != nil { // nothing is kept back any more
		if end = l.next; w.next >= end {
			kind, first = finalOver, end
		}
	}
	limit, onward := maxPacket(s.cfg.MaxPacket, w.transport), w.onward
	b := append(s.packet[:0], typeFinal, kind)
	b = binary.LittleEndian.AppendUint32(b, s.agreement)
	b = binary.AppendUvarint(b, uint64(first))
	if kind == finalInputs && w.next < end {
		n := 0
		b, n = appendInputs(b, limit, l.zero, first, end-first, l.at)
		onward = rest(first+int64(n), end)
	}
	s.packet = b
	if s.give(w.transport, b) {
		w.onward = onward
	}
}

// receiveWatch takes a spectator's word of what it needs.
func (s *Session) receiveWatch(i int, r *wire.Reader) error {
	next := readFrame(r)
	switch {
	case !r.Done():
		return ErrMalformed
	case i < 0 || i >= MaxSpectators || s.log.watchers[i].transport == nil:
		return ErrNoPlayer
	case next > s.log.next:
		return ErrAhead
	}
	w := &s.log.watchers[i]
	w.next, w.heard = max(w.next, next), s.now
	return nil
}

// Watcher is a spectator's part: it simulates final frames. Not safe for concurrent use.
type Watcher struct {
	cfg       Config
	number    int
	game      Game
	agreement uint32
	transport lockstep.Transport
	frame     int64
	next      int64               // the first frame without inputs
	ring      []byte              // from frame on
	early     [watcherFrames]bool // has come before next; by frame, as ring
	advancing [][]byte
	packet    []byte
	sentAt    time.Duration
	zero      []byte
	err       error
}

// watcherFrames is how many frames a Watcher keeps that it hasn't simulated: a power of two.
const watcherFrames = 256

// NewWatcher returns a spectator's part. number is the spectator's, from Players on. frame is the first frame to simulate: 0,
// or that of the state that game was given. t leads to a player that called Connect for number. cfg is the players'; Local
// isn't used. Errors: ErrConfig, ErrNoPlayer.
func NewWatcher(cfg Config, number int, frame int64, game Game, t lockstep.Transport) (*Watcher, error) {
	cfg, err := cfg.filled()
	switch {
	case err != nil:
		return nil, err
	case game == nil || t == nil || frame < 0 || frame > maxFrame:
		return nil, fmt.Errorf("%w: a Watcher needs a Game, a Transport and a frame from 0 on", ErrConfig)
	case number < cfg.Players || number >= cfg.Players+MaxSpectators:
		return nil, ErrNoPlayer
	}
	size := cfg.Players * cfg.InputSize
	return &Watcher{cfg: cfg, number: number, game: game, agreement: cfg.agreement(), transport: t, frame: frame, next: frame,
		ring: make([]byte, watcherFrames*size), advancing: make([][]byte, cfg.Players), zero: make([]byte, size), sentAt: longAgo}, nil
}

// Receive takes a packet from the player. An error means that it was refused and nothing has changed: ErrMalformed or
// ErrAgreement.
func (w *Watcher) Receive(_ time.Duration, p []byte) error {
	r := wire.Reader{P: p}
	kind, what, agreement, first := r.Uint8(), r.Uint8(), r.Uint32(), readFrame(&r)
	switch {
	case r.Bad || kind != typeFinal || what > finalOver:
		return ErrMalformed
	case agreement != w.agreement:
		return ErrAgreement
	case what != finalInputs && !r.Done():
		return ErrMalformed
	case what == finalGone:
		if first > w.next {
			w.err = ErrBehind
		}
		return nil
	case what == finalOver:
		if first <= w.next && w.err == nil {
			w.err = ErrDropped
		}
		return nil
	case len(r.P) == 0:
		return nil
	}
	v := readRun(&r, len(w.zero))
	if !r.Done() {
		return ErrMalformed
	}
	v.each(len(w.zero), w.zero, func(i int, b []byte) {
		if f := first + int64(i); f >= w.next && f < w.frame+watcherFrames { // what finds no room comes again
			copy(w.at(f), b)
			w.early[f%watcherFrames] = true
		}
	})
	for w.next < w.frame+watcherFrames && w.early[w.next%watcherFrames] {
		w.early[w.next%watcherFrames] = false
		w.next++
	}
	return nil
}

func (w *Watcher) at(frame int64) []byte {
	i, n := int(frame&(watcherFrames-1)), len(w.zero)
	return w.ring[i*n : (i+1)*n : (i+1)*n]
}

// Step simulates the next frame. It reports false when the frame's inputs haven't arrived.
func (w *Watcher) Step() bool {
	if w.frame >= w.next {
		return false
	}
	b, n := w.at(w.frame), w.cfg.InputSize
	for p := range w.advancing {
		w.advancing[p] = b[p*n : (p+1)*n : (p+1)*n]
	}
	w.game.Advance(w.frame, w.advancing)
	w.frame++
	return true
}

// Err is ErrBehind when the next frames aren't kept any more, ErrDropped when the player is out and no more come, or nil. Frames that have arrived can still be simulated.
func (w *Watcher) Err() error { return w.err }

// Frame is the number of the next frame.
func (w *Watcher) Frame() int64 { return w.frame }

// Ready is the number of frames that have arrived and aren't simulated. While it is large, call Step more than once a frame.
func (w *Watcher) Ready() int { return int(w.next - w.frame) }

// Tick tells the player which frame is needed next, once each FrameTime.
func (w *Watcher) Tick(now time.Duration) {
	if gap := now - w.sentAt; gap >= 0 && gap < w.cfg.FrameTime*3/4 { // a clock may be set back
		return
	}
	w.sentAt = now
	b := append(w.packet[:0], typeWatch, byte(w.number))
	b = binary.LittleEndian.AppendUint32(b, w.agreement)
	w.packet = binary.AppendUvarint(b, uint64(w.next))
	_ = w.transport.Send(now, w.packet) // it is said again
}
