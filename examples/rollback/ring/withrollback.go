package ring

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
)

// fighting is a machine of the game with rollback.
type fighting struct {
	*watch
	session *rollback.Session
	game    rollGame
	out     path
	next    time.Duration
}

// rollGame is the ring as a rollback.Game. It remembers where all were in the last frames, and the keys.
type rollGame struct {
	ring
	seen [64]ring // by frame, as it is known now
	keys [64][2]byte
}

// Save is rollback's.
func (g *rollGame) Save(dst []byte) []byte { return g.append(dst) }

// Load is rollback's.
func (g *rollGame) Load(b []byte) { g.read(b) }

// Advance is rollback's.
func (g *rollGame) Advance(frame int64, inputs [][]byte) {
	keys := [2]byte{inputs[0][0], inputs[1][0]}
	g.step(keys)
	g.seen[g.frame%64], g.keys[frame%64] = g.ring, keys
}

// Rollback plays a game with rollback.
func Rollback(o Options, rtt time.Duration) (Figures, error) {
	var f Figures
	var machines [2]*fighting
	var desync error
	for p := range machines {
		m := &fighting{watch: newWatch(o.Seed, p), game: rollGame{ring: newRing()}}
		cfg := rollback.Config{Session: o.Seed, Players: 2, Local: p, InputSize: 1, MaxRollback: 12, Event: func(e rollback.Event) {
			if e.Kind != rollback.Started {
				desync = fmt.Errorf("machine %d: %v: %+v", p, e.Kind, e)
			}
		}}
		var err error
		if m.session, err = rollback.New(cfg, &m.game); err != nil {
			return f, err
		}
		if m.out, err = newPath(o, rtt, o.Seed*10+uint64(p)); err != nil {
			return f, err
		}
		if err := m.session.Connect(1-p, m.out); err != nil {
			return f, err
		}
		machines[p] = m
	}
	for now := tick; now < time.Duration(o.Seconds)*time.Second; now += tick {
		for p, m := range machines {
			in := machines[1-p].out.link
			for b, ok := in.Pop(now); ok; b, ok = in.Pop(now) {
				if err := m.session.Receive(now, 1-p, b); err != nil {
					return f, err
				}
			}
			if now >= m.next {
				m.next += FrameTime
				if err := m.play(now, p); err != nil {
					return f, err
				}
			}
			m.session.Tick(now)
		}
	}
	for _, m := range machines {
		f.add(m.watch, float64(o.Seconds))
		f.Deepest = max(f.Deepest, m.session.Stats().Deepest)
		if m.session.Final() < int64(o.Seconds)*60*8/10 {
			return f, fmt.Errorf("only %d frames are final", m.session.Final())
		}
	}
	return f, desync
}

// play is a frame of a machine.
func (m *fighting) play(now time.Duration, p int) error {
	ok, err := m.session.Step([]byte{m.press(now, &m.game.ring, p)})
	if err != nil {
		return errors.Join(err, fmt.Errorf("machine %d", p))
	}
	if m.session.Frame() == 0 {
		return nil // the other isn't there yet
	}
	m.frames++
	if m.drawnFrame >= 0 {
		m.corrected(&m.game.seen[m.drawnFrame%64].fighters[1-p])
	}
	if !ok {
		m.late++
	} else {
		m.saw(now, m.game.keys[(m.session.Frame()-1)%64][p])
	}
	m.drawnFrame, m.drawn = m.game.frame, m.game.fighters[1-p]
	return nil
}
