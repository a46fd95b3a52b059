package main

import (
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// press is an input that changed, until it is seen.
type press struct {
	at        time.Duration // when the key went down
	timestamp time.Duration // of the first move with it; 0: not sampled yet
}

// player is who steers the character.
type player struct {
	path   *path
	client *prediction.Client[Body, Input]
	rnd    *rand.Rand
	keys   Input         // held now
	used   Input         // in the last frame
	change time.Duration // when the keys change next
	still  bool          // the player lets go

	pressed   press                   // not felt yet
	waiting   []press                 // felt, not yet in what the server showed
	predicted []time.Duration         // from a key to a state that differs
	plain     []time.Duration         // to the server's snapshot that has it
	fixes     []prediction.Correction // all corrections
}

func newPlayer(p *path, seed uint64, redundancy int) (*player, error) {
	pl := &player{path: p, rnd: rand.New(rand.NewPCG(seed, 1))}
	cfg := prediction.ClientConfig[Body, Input]{Model: model(), Redundancy: redundancy,
		CanCombine: func(_ *Body, a, b *Input) bool { return *a == *b },
		Position:   func(b *Body) [3]float64 { return [3]float64{b.X, b.Y, 0} },
		Corrected:  func(c prediction.Correction) { pl.fixes = append(pl.fixes, c) },
	}
	var err error
	pl.client, err = prediction.NewClient(cfg, Body{}, 0)
	return pl, err
}

// hands presses keys, at any time and not only at frames.
func (p *player) hands(now time.Duration) {
	if p.still {
		p.keys = Input{}
		return
	}
	if now < p.change {
		return
	}
	p.change = now + time.Duration(150+p.rnd.IntN(700))*time.Millisecond
	at := p.client.State()
	keys := Input{p.towards(at.X), p.towards(at.Y)}
	if keys != p.keys {
		p.keys, p.pressed = keys, press{at: now}
	}
}

// towards is any direction, but back to the middle when it is far.
func (p *player) towards(x float64) int8 {
	switch d := int8(p.rnd.IntN(3) - 1); {
	case x > 10:
		return -1
	case x < -10:
		return 1
	default:
		return d
	}
}

// frame is one of the player's: its own clock says local, everybody's now.
func (p *player) frame(now, local time.Duration) error {
	err := receive(now, p.path.down, func(k kind, r *bitio.Reader) error {
		if k == reply {
			return p.client.Receive(local, r)
		}
		return p.plainSnapshot(now, r)
	})
	if err != nil {
		return err
	}
	ghost, before := *p.client.State(), p.client.Timestamp()
	p.client.Move(local, p.keys)
	if at := p.client.Timestamp(); p.keys != p.used && at > before {
		simulate(&ghost, p.used, at-before)
		p.felt(now, at, ghost != *p.client.State())
	}
	return p.path.send(now, p.path.up, moves, func(w *bitio.Writer) (bool, error) {
		return p.client.Send(local, w)
	})
}

// felt notes how long a changed input took to make a difference on the own screen.
func (p *player) felt(now, timestamp time.Duration, differs bool) {
	p.used = p.keys
	if p.pressed.at == 0 || !differs { // running against a wall, say
		return
	}
	p.pressed.timestamp = timestamp
	p.predicted = append(p.predicted, now-p.pressed.at)
	p.waiting = append(p.waiting, p.pressed)
	p.pressed = press{}
}

// plainSnapshot is what a player without prediction would see: the server's state, with the timestamp of
// the last move in it.
func (p *player) plainSnapshot(now time.Duration, r *bitio.Reader) error {
	_, timestamp, _ := readSnapshot(r)
	for len(p.waiting) > 0 && p.waiting[0].timestamp <= timestamp {
		p.plain = append(p.plain, now-p.waiting[0].at)
		p.waiting = p.waiting[1:]
	}
	return r.Err()
}

// drawn is where the player sees the character.
func (p *player) drawn(local time.Duration) float64 {
	return p.client.State().X + p.client.Offset(local)[0]
}
