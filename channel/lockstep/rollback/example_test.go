package rollback_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
)

// duel is two players on a line; an input is a step to the left or the right.
type duel struct{ x [2]int8 }

// Save is rollback's.
func (d *duel) Save(dst []byte) []byte { return append(dst, byte(d.x[0]), byte(d.x[1])) }

// Load is rollback's.
func (d *duel) Load(b []byte) { d.x = [2]int8{int8(b[0]), int8(b[1])} }

// Advance is rollback's.
func (d *duel) Advance(_ int64, inputs [][]byte) {
	for p := range d.x {
		d.x[p] += int8(inputs[p][0])
	}
}

// handed is a Transport that hands packets over some frames later.
type handed struct {
	late    int
	packets [][]byte
}

// Send is lockstep's.
func (h *handed) Send(_ time.Duration, p []byte) error {
	h.packets = append(h.packets, append([]byte(nil), p...))
	return nil
}

// take is the packet that is due, or nil.
func (h *handed) take() (p []byte) {
	if len(h.packets) > h.late {
		p, h.packets = h.packets[0], h.packets[1:]
	}
	return p
}

// Two machines four frames apart: each moves its own player at once, and both come to the same.
func Example() {
	var games [2]duel
	var sessions [2]*rollback.Session
	wires := [2]*handed{{late: 4}, {late: 4}} // to 0, to 1
	for p := range sessions {
		s, err := rollback.New(rollback.Config{Players: 2, Local: p, InputSize: 1, Delay: -1}, &games[p])
		if err == nil {
			err = s.Connect(1-p, wires[1-p])
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		sessions[p] = s
	}
	for frame := range 100 { // 60 a second
		now := time.Duration(frame) * time.Second / 60
		for p, s := range sessions {
			if packet := wires[p].take(); packet != nil {
				if err := s.Receive(now, 1-p, packet); err != nil {
					fmt.Println(err)
				}
			}
			var step byte
			if s.Frame() == 20 {
				step = 3 // a jump, felt in this frame
			}
			if _, err := s.Step([]byte{step}); err != nil {
				fmt.Println(err)
			}
			s.Tick(now)
		}
	}
	fmt.Println(games[0] == games[1], games[0].x, sessions[0].Stats().Rollbacks > 0)
	// Output: true [3 3] true
}

// A game whose state is whole passes.
func ExampleSyncTest() {
	err := rollback.SyncTest(rollback.Config{Players: 2, InputSize: 1}, &duel{}, 600, func(player int, frame int64, dst []byte) {
		dst[0] = byte(int8(frame%3) - int8(player))
	})
	fmt.Println(err)
	// Output: <nil>
}

// A spectator simulates what is final.
func ExampleNewWatcher() {
	var game duel
	var up handed
	w, err := rollback.NewWatcher(rollback.Config{Players: 2, InputSize: 1}, 2, 0, &game, &up)
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Tick(0) // says which frame it needs; the player's Session gets it by Receive, and answers
	fmt.Println(len(up.packets), w.Step(), w.Frame())
	// Output: 1 false 0
}
