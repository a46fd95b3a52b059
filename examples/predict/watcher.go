package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// watcher is another player, who sees the character and shoots at it.
type watcher struct {
	path     *path
	clock    *netclock.Client
	timeline *interpolation.Timeline
	buffer   *interpolation.Buffer[[3]float64]
	drawn    [3]float64
	nextShot time.Duration

	ages      []time.Duration // of the picture, by the network clock
	clockOff  time.Duration   // worst error of that clock
	frames    map[interpolation.State]int
	ceasefire bool
}

func newWatcher(p *path) (*watcher, error) {
	w := &watcher{path: p, frames: map[interpolation.State]int{}}
	var err error
	if w.clock, err = netclock.NewClient(netclock.Config{}); err != nil {
		return nil, err
	}
	if w.timeline, err = interpolation.NewTimeline(interpolation.Config{}); err != nil {
		return nil, err
	}
	w.buffer, err = interpolation.NewBuffer(interpolation.BufferConfig[[3]float64]{Lerp: lerp})
	return w, err
}

func lerp(a, b [3]float64, t float64) [3]float64 {
	for i := range a {
		a[i] += (b[i] - a[i]) * t
	}
	return a
}

// frame is one of the watcher's.
func (w *watcher) frame(now time.Duration) error {
	err := receive(now, w.path.down, func(k kind, r *bitio.Reader) error {
		if k == clockReply {
			return w.clock.Reply(now, r)
		}
		at, _, pos := readSnapshot(r)
		if err := r.Err(); err != nil {
			return err
		}
		w.timeline.Arrived(now, at)
		w.buffer.Push(at, pos)
		return nil
	})
	if err != nil {
		return err
	}
	if shown, ok := w.timeline.Shown(now); ok {
		var state interpolation.State
		w.drawn, state = w.buffer.At(shown)
		w.frames[state]++
		if t, ok := w.clock.ServerTime(now); ok && now > time.Second {
			w.ages = append(w.ages, t-shown)
			w.clockOff = max(w.clockOff, (t - now).Abs())
		}
		if err := w.shoot(now, shown); err != nil {
			return err
		}
	}
	return w.path.send(now, w.path.up, clockRequest, func(b *bitio.Writer) (bool, error) { return w.clock.Request(now, b) })
}

// shoot fires at what is drawn, ten times a second, and says what time that was.
func (w *watcher) shoot(now, shown time.Duration) error {
	if now < w.nextShot || w.ceasefire || shown < 0 {
		return nil
	}
	w.nextShot = now + 100*time.Millisecond
	return w.path.send(now, w.path.up, shot, func(b *bitio.Writer) (bool, error) {
		b.WriteIntPacked64(uint64(shown / time.Microsecond))
		b.WriteFloat64(w.drawn[0])
		b.WriteFloat64(w.drawn[1])
		return true, nil
	})
}
