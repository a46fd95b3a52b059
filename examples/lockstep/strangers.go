package main

import (
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// What the strangers do, and when: machine liar says a wrong hash from lieTurn on, machine staller does nothing for
// a while after stallTurn, and machine leaver is gone after leaveTurn. Machine 0 is honest.
const (
	liar, lieTurn      = 3, 40
	staller, stallTurn = 1, 80
	leaver, leaveTurn  = 2, 120
	stallFor           = 6 * time.Second
	strangerTurns      = 400
	strangerDrop       = 2 * time.Second
)

// strangers plays a game in which all but one misbehave, and checks that it goes on.
func strangers(out io.Writer, o options) error {
	o.desync, o.maps, o.strangers = false, false, true
	w, err := newWorld(out, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nA game among strangers: %d lies, %d stalls, %d leaves\n", liar, staller, leaver)
	w.machines[liar].lieFrom = lieTurn
	var stalledAt time.Duration
	honest := w.machines[0]
	// The stall and the leaving cost a drop each; besides, a turn may take 20 times as long as it should.
	limit := strangerTurns*turnTime*20 + 4*strangerDrop
	for ; honest.peer.Turn() < strangerTurns; w.step() {
		switch {
		case w.refused != nil:
			return w.refused
		case w.now > limit:
			return fmt.Errorf("only %d of %d turns in %v: the strangers hold the game", honest.peer.Turn(), strangerTurns, limit)
		}
		if r := w.report; r != nil && !w.machines[liar].gone {
			fmt.Fprintf(out, "turn %4d  player %d is out of step, and is thrown out\n", w.host.Turn(), r.Player)
			if err := w.host.Drop(w.now, r.Player); err != nil {
				return err
			}
			w.machines[r.Player].gone = true
		}
		if m := w.machines[staller]; stalledAt == 0 && w.host.Turn() >= stallTurn {
			stalledAt, m.frozen = w.now, true
		} else if m.frozen && w.now >= stalledAt+stallFor {
			m.frozen = false
		}
		if w.host.Turn() >= leaveTurn {
			w.machines[leaver].gone = true
		}
	}
	return w.strangersVerdict(honest)
}

func (w *world) strangersVerdict(honest *machine) error {
	s := w.host.Stats()
	switch {
	case w.report == nil || w.report.Player != liar || s.Desyncs != 1 || s.Splits != 0:
		return fmt.Errorf("the liar isn't the one who was named: %+v, %d desyncs, %d splits", w.report, s.Desyncs, s.Splits)
	case w.host.Active()&1 == 0:
		return fmt.Errorf("the honest player is out")
	case w.dropped[staller] == 0 || w.dropped[leaver] == 0 || w.dropped[0] > 0:
		return fmt.Errorf("the wrong ones were dropped: %v", w.dropped)
	case w.joined[staller] < 2:
		return fmt.Errorf("who stalled didn't come back")
	case w.compared < strangerTurns:
		return fmt.Errorf("only %d hashes found equal", w.compared)
	}
	_, err := fmt.Fprintf(w.out, "PASS: %d turns in %.1f s, at best %.1f s, though one lied, one stalled for %v and one left\n",
		honest.peer.Turn(), w.now.Seconds(), strangerTurns*turnTime.Seconds(), stallFor)
	return err
}

// hostConfig is the host's; among strangers who stalls is out soon.
func (w *world) hostConfig() lockstep.HostConfig {
	c := lockstep.HostConfig{Config: w.cfg, Secret: [32]byte{1}}
	if w.o.strangers {
		c.DropAfter, c.RejoinAfter = strangerDrop, time.Second
	}
	return c
}
