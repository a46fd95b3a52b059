// Step 6 of the guide: a game that feels good far away. Ann runs at once when a key is pressed, 200 ms before the
// server's answer is there, and the server has the last word, as when it pushes her (prediction). Bob sees Ann run evenly although packets come
// unevenly or not at all (interpolation). All of it travels as calls and values of an actor.
//
//	go run ./examples/guide/6-predicted
package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const (
	hz   = 60
	step = time.Second / hz
	lag  = 100 * time.Millisecond // each way
)

// keys is what Ann presses at a time since she began.
func keys(t time.Duration) int8 {
	if t < 0 || t > 5*time.Second {
		return 0
	}
	return []int8{1, 1, 0, -1, 1}[int(t.Seconds()*2)%5]
}

// ann is the player's program.
type ann struct {
	*client
	me      *Runner
	since   time.Duration
	last    int8
	pressed time.Duration   // when the keys last changed
	felt    int             // frames in which a key moved her at once
	changed int             // keys pressed
	server  []time.Duration // what it would have taken without prediction
}

func (a *ann) frame(now time.Time) error {
	at := a.begin(now)
	if a.me == nil {
		if a.me = a.own(); a.me != nil {
			a.since = at + time.Second/2
			if err := a.me.predict(at); err != nil {
				return err
			}
		}
	}
	if a.me != nil {
		key, before := keys(at-a.since), *a.me.mine.State()
		a.me.mine.Move(at, key) // felt now
		if key != a.last && key != 0 {
			a.changed, a.pressed = a.changed+1, at
			if *a.me.mine.State() != before {
				a.felt++
			}
		}
		a.last = key
		if a.pressed != 0 && a.me.Key == key && key != 0 { // the server's copy has come to it
			a.server, a.pressed = append(a.server, at-a.pressed), 0
		}
		if err := a.me.send(at); err != nil { // and told to the server when a message is due
			return err
		}
	}
	a.net.TickFlush(now)
	return a.net.Err()
}

// bob is another player's program: it draws Ann a little in the past, between two places that it knows.
type bob struct {
	*client
	drawn  float64
	states map[interpolation.State]int
	jump   float64 // the longest way between two frames
}

func (b *bob) frame(now time.Time) error {
	at := b.begin(now)
	for a := range b.world.All {
		r := a.(*Runner)
		if t, ok := r.timeline.Now(at); ok {
			x, state := r.places.At(t)
			if b.states[interpolation.Interpolated] > 0 {
				b.jump = max(b.jump, math.Abs(x-b.drawn))
			}
			b.drawn = x
			b.states[state]++
		}
	}
	b.net.TickFlush(now)
	return b.net.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := listen()
	if err != nil {
		return err
	}
	defer s.net.Close()
	bad := netsim.Settings{Loss: 5, LagMin: lag - 10*time.Millisecond, LagMax: lag + 10*time.Millisecond}
	a, b := &ann{}, &bob{states: map[interpolation.State]int{}}
	if a.client, err = dial(s.net.LocalAddr().String(), "Ann", bad, 1); err != nil {
		return err
	}
	defer a.net.Close()
	if b.client, err = dial(s.net.LocalAddr().String(), "Bob", bad, 3); err != nil {
		return err
	}
	defer b.net.Close()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for range 8 * hz {
		now := <-tick.C
		if err := cmp.Or(s.frame(now), a.frame(now), b.frame(now)); err != nil {
			return err
		}
	}
	return verdict(s, a, b)
}

func verdict(s *server, a *ann, b *bob) error {
	if a.me == nil || s.runner == nil || len(a.server) == 0 {
		return fmt.Errorf("nobody came to run")
	}
	truth, predicted := s.runner.X, *a.me.mine.State()
	drawn, all := b.states[interpolation.Interpolated], 0
	for _, n := range b.states {
		all += n
	}
	c := a.me.mine.Counters
	fmt.Printf("Ann:  %d keys, %d felt in the same frame; without prediction the first would have taken %v\n", a.changed, a.felt, a.server[0].Round(time.Millisecond))
	fmt.Printf("      %d moves, %d acks, %d corrections\n", c.Moves, c.Acks, c.Corrections)
	fmt.Printf("Bob:  %d of %d frames between two known places; at most %.2f m from frame to frame\n", drawn, all, b.jump)
	fmt.Printf("end:  server %.3f, Ann %.3f, Bob %.3f\n", truth, predicted, b.drawn)
	switch {
	case a.felt < a.changed || a.changed < 4:
		return fmt.Errorf("%d of %d keys were felt at once", a.felt, a.changed)
	case math.Abs(truth-predicted) > 1e-6 || math.Abs(truth-b.drawn) > 0.006:
		return fmt.Errorf("not everybody has Ann in the same place")
	case c.Corrections == 0:
		return fmt.Errorf("the push wasn't felt")
	case drawn*2 < all:
		return fmt.Errorf("only in %d of %d frames had Bob two places", drawn, all)
	}
	fmt.Println("PASS: felt at once, seen evenly, and all agree")
	return nil
}
