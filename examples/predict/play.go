package main

import (
	"fmt"
	"io"
	"time"
)

const (
	step    = time.Millisecond
	frame   = time.Second / 60
	tick    = time.Second / 30
	playing = 30 * time.Second
	total   = playing + 4*time.Second // the player stands
)

// moment is a row of the strip.
type moment struct {
	at                         time.Duration
	server, predicted, watched float64
}

// game is the three ends, and what they were seen to do.
type game struct {
	o       options
	server  *server
	player  *player
	watcher *watcher
	strip   []moment
	rate    float64 // of the player's clock
}

func newGame(o options, redundancy int) (*game, error) {
	a, err := newPath(o.network(), 2*o.seed)
	if err != nil {
		return nil, err
	}
	b, err := newPath(o.network(), 2*o.seed+1)
	if err != nil {
		return nil, err
	}
	g := &game{o: o, rate: 1}
	if o.cheat {
		g.rate = 1.5
	}
	// A watcher sees the past of a round trip and its delay; shots at older pictures miss.
	if g.server, err = newServer(a, b, min(2*time.Second, o.rtt+2*o.jitter+300*time.Millisecond)); err != nil {
		return nil, err
	}
	if g.player, err = newPlayer(a, o.seed, redundancy); err != nil {
		return nil, err
	}
	g.watcher, err = newWatcher(b)
	return g, err
}

// run plays to the end, a millisecond at a time.
func (g *game) run() error {
	frames, watched, ticks := 0, 0, 1
	for now := step; now <= total; now += step {
		g.player.still, g.watcher.ceasefire = now > playing, now > playing
		g.player.hands(now)
		if err := g.server.dispatch(now); err != nil {
			return err
		}
		if now >= time.Duration(ticks)*tick {
			ticks++
			if now < playing && ticks%240 == 0 {
				g.server.push()
			}
			if err := g.server.tick(now); err != nil {
				return err
			}
		}
		local := time.Duration(float64(now) * g.rate)
		for local >= time.Duration(frames+1)*frame {
			frames++
			if err := g.player.frame(now, time.Duration(frames)*frame); err != nil {
				return err
			}
		}
		if now >= time.Duration(watched+1)*frame {
			watched++
			if err := g.watcher.frame(now); err != nil {
				return err
			}
		}
		if now%(50*step) == 0 {
			g.strip = append(g.strip, moment{now, g.server.body.State().X, g.player.drawn(local), g.watcher.drawn[0]})
		}
	}
	return nil
}

// play runs and reports; the error is the verdict.
func play(w io.Writer, o options) error {
	g, err := newGame(o, 2)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "round trip %v, %v more or less each way, %.0f %% lost each way; player at 60 Hz, server at 30; seed %d\n\n", o.rtt, o.jitter, o.loss, o.seed)
	if err := g.run(); err != nil {
		return err
	}
	once, err := newGame(o, -1) // the same with each move sent once only
	if err != nil {
		return err
	}
	if err := once.run(); err != nil {
		return err
	}
	g.report(w, once)
	if o.cheat {
		return g.cheatVerdict(w)
	}
	return g.verdict(w)
}
