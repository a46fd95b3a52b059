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

// running is how many frames Ann presses keys in.
const running = 5 * hz

// keys is what Ann presses in a frame, counted from the one in which she begins.
func keys(frame int) int8 {
	if frame < 0 || frame >= running {
		return 0
	}
	return []int8{1, 1, 0, -1, 1}[frame*2/hz%5]
}

// ann is the player's program.
type ann struct {
	*client
	me      *Runner
	frames  int // since she begins
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
			a.frames = -hz / 2
			if err := a.me.predict(at); err != nil {
				return err
			}
		}
	}
	if a.me != nil {
		key, before := keys(a.frames), *a.me.mine.State()
		a.frames++
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
	for range 60 * hz { // a minute at most; Ann stands after five seconds, and then all should come to agree
		now := <-tick.C
		if err := cmp.Or(s.frame(now), a.frame(now), b.frame(now)); err != nil {
			return err
		}
		if a.frames > running && agree(s, a, b) {
			break
		}
	}
	return verdict(s, a, b)
}
