package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const character rewind.ID = 1

// server owns the truth.
type server struct {
	player, watcher *path
	body            *prediction.Server[Body, Input]
	history         *rewind.History[rewind.Vec]
	simulated       time.Duration
	pushes          []time.Duration // the player's timestamps at which it was pushed

	shots, hits, plainHits int // that arrived; that hit what was seen; that would have hit what is
}

func newServer(player, watcher *path, maxRewind time.Duration) (*server, error) {
	s := &server{player: player, watcher: watcher}
	m := model()
	m.Simulate = func(b *Body, in Input, dt time.Duration) {
		s.simulated += dt
		simulate(b, in, dt)
	}
	var err error
	s.body, err = prediction.NewServer(prediction.ServerConfig[Body, Input]{Model: m, MaxError: maxError, LargeError: 0.5}, Body{}, 0)
	if err != nil {
		return nil, err
	}
	s.history, err = rewind.New(rewind.Config[rewind.Vec]{
		MaxRewind: maxRewind, Snapshots: 64,
		Lerp: func(a, b rewind.Vec, t float64) rewind.Vec { return rewind.Vec(lerp(a, b, t)) },
		Hitboxes: func(_ rewind.ID, at *rewind.Vec, dst []rewind.Capsule) []rewind.Capsule {
			return append(dst, rewind.Capsule{A: *at, B: rewind.Vec{at[0], at[1], at[2] + 1.4}, Radius: 0.4})
		},
	})
	return s, err
}

// dispatch takes what arrived, at any time.
func (s *server) dispatch(now time.Duration) error {
	err := receive(now, s.player.up, func(_ kind, r *bitio.Reader) error { return s.body.Receive(now, r) })
	if err != nil {
		return err
	}
	return receive(now, s.watcher.up, func(k kind, r *bitio.Reader) error {
		if k == shot {
			return s.judge(now, r)
		}
		return s.watcher.send(now, s.watcher.down, clockReply, func(w *bitio.Writer) (bool, error) {
			return true, netclock.Answer(now, now, r, w)
		})
	})
}

// judge decides a shot: down onto a point of the field, at the time the watcher saw.
func (s *server) judge(now time.Duration, r *bitio.Reader) error {
	seen := time.Duration(r.ReadIntPacked64()) * time.Microsecond
	x, y := r.ReadFloat64(), r.ReadFloat64()
	if err := r.Err(); err != nil {
		return err
	}
	from, to := rewind.Vec{x, y, 10}, rewind.Vec{x, y, 0}
	s.shots++
	if _, ok := s.history.At(now, seen).Ray(from, to, rewind.NoID); ok {
		s.hits++
	}
	if _, ok := s.history.At(now, now).Ray(from, to, rewind.NoID); ok {
		s.plainHits++
	}
	return nil
}

// push is something that no client can predict.
func (s *server) push() {
	s.body.State().VX += 8
	s.body.Correct()
	s.pushes = append(s.pushes, s.body.Timestamp())
}

// tick is the server's frame.
func (s *server) tick(now time.Duration) error {
	s.body.Tick(now)
	b := s.body.State()
	if err := s.history.Begin(now); err != nil {
		return err
	}
	if err := s.history.Add(character, rewind.Vec{b.X, b.Y, 0}); err != nil {
		return err
	}
	err := s.player.send(now, s.player.down, reply, func(w *bitio.Writer) (bool, error) { return s.body.Reply(now, w) })
	for _, p := range [...]*path{s.player, s.watcher} {
		if err == nil {
			err = p.send(now, p.down, snapshot, func(w *bitio.Writer) (bool, error) {
				w.WriteIntPacked64(uint64(now / time.Microsecond))
				w.WriteIntPacked64(uint64(s.body.Timestamp() / time.Microsecond))
				w.WriteFloat32(float32(b.X))
				w.WriteFloat32(float32(b.Y))
				return true, nil
			})
		}
	}
	return err
}

// readSnapshot is the server's time, the timestamp of the player's last move in it, and where the character is.
func readSnapshot(r *bitio.Reader) (at, timestamp time.Duration, pos [3]float64) {
	at = time.Duration(r.ReadIntPacked64()) * time.Microsecond
	timestamp = time.Duration(r.ReadIntPacked64()) * time.Microsecond
	return at, timestamp, [3]float64{float64(r.ReadFloat32()), float64(r.ReadFloat32())}
}
