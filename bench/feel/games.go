package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/examples/rollback/ring"
	"github.com/bunchnet/bunchnet/examples/tanks/modes"
)

// roundTrips is where a key is felt.
var roundTrips = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond}

// keysFelt is how long a key takes until it moves the own player, with rollback.
func keysFelt(t *table, seeds int, length time.Duration) error {
	fmt.Println("Two players push each other about a ring, 2 % loss: rollback, where lockstep waits for the round trip")
	for _, rtt := range roundTrips {
		f, err := meanRing(ring.Rollback, max(seeds/24, 1), rtt, length)
		if err != nil {
			return err
		}
		t.row(fmt.Sprintf("round trip %v: a key is felt after", rtt), "ms", ms(f.Felt), ms(3*ring.FrameTime))
		t.row(fmt.Sprintf("round trip %v: the other jumps, a second", rtt), "", f.Jumps, 6)
		t.row(fmt.Sprintf("round trip %v: frames that came late", rtt), "%", 100*f.Still, 1)
	}
	return nil
}

// meanRing plays the ring with several seeds.
func meanRing(play func(ring.Options, time.Duration) (ring.Figures, error), seeds int, rtt, length time.Duration) (m ring.Figures, err error) {
	for seed := range seeds {
		f, err := play(ring.Options{Seed: uint64(seed + 1), Seconds: int(length.Seconds()), Loss: 2}, rtt)
		if err != nil {
			return m, err
		}
		m.Felt += f.Felt / time.Duration(seeds)
		m.Jumps += f.Jumps / float64(seeds)
		m.Still += f.Still / float64(seeds)
	}
	return m, nil
}

// sameGame is whether the tank game sees the same happen in every mode.
func sameGame(t *table, _ int, _ time.Duration) error {
	fmt.Println("The tank game with the same inputs in every mode: events that differ from those offline")
	var offline []string
	for _, m := range modes.All {
		saw, replayed, err := m.Play()
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if offline == nil {
			offline = saw
		}
		t.row(fmt.Sprintf("%s: of %d events", m.Name, len(offline)), "", float64(differ(saw, offline)), 0)
		public := slices.DeleteFunc(slices.Clone(offline), modes.Own)
		t.row(fmt.Sprintf("%s, replayed: of %d events", m.Name, len(public)), "", float64(differ(replayed, public)), 0)
	}
	return nil
}

// differ counts the places where two games differ.
func differ(a, b []string) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
