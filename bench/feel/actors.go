package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// path is a way there and back.
func path(lag, jitter time.Duration, loss float64) netsim.Settings {
	return netsim.Settings{Lag: lag, LagVariance: jitter, Loss: loss}
}

// mean plays a game with each seed, each as before leaves it, and is the average of what was measured in length after warming up.
func mean(seeds int, set netsim.Settings, hz float64, warm, length time.Duration, before func(g *game)) (m figures, err error) {
	for seed := range seeds {
		g, err := newGame(uint64(seed), set, hz)
		if err != nil {
			return m, err
		}
		if before != nil {
			before(g)
		}
		if err := g.run(warm); err != nil {
			return m, err
		}
		f, err := g.measure(length)
		if err != nil {
			return m, err
		}
		m.add(&f, 1/float64(seeds))
	}
	return m, nil
}

// inputs is whether they come in time, how long they wait, and how often the player is corrected.
func inputs(t *table, seeds int, length time.Duration) error {
	fmt.Println("Inputs: 60 ticks a second, 100 ms ± 25 ms each way")
	for _, loss := range []float64{0, 5, 10} {
		f, err := mean(seeds, path(100*time.Millisecond, 25*time.Millisecond, loss), 0, 12*time.Second, length, nil)
		if err != nil {
			return err
		}
		t.row(fmt.Sprintf("%2.0f %% loss: ticks without the player's own input", loss), "%", f.missed, 0.1)
		t.row(fmt.Sprintf("%2.0f %% loss: inputs wait, of which the jitter is 50 ms", loss), "ms", f.wait, ms(50*time.Millisecond+2*tick))
		t.row(fmt.Sprintf("%2.0f %% loss: corrections a minute", loss), "", f.corrections/length.Minutes(), 6)
	}
	return nil
}

// longPath is what a path becomes.
var longPath = path(150*time.Millisecond, 5*time.Millisecond, 0)

// onShortPath is a game of ten seconds over a path of 50 ms.
func onShortPath(seed int) (*game, error) {
	g, err := newGame(uint64(seed), path(50*time.Millisecond, 5*time.Millisecond, 0), 0)
	if err != nil {
		return nil, err
	}
	return g, g.run(10 * time.Second)
}

// changes is a path that becomes longer.
func changes(t *table, seeds int, _ time.Duration) error {
	fmt.Println("A path of 50 ms becomes one of 150 ms")
	worst := 0.0
	for seed := range seeds {
		g, err := onShortPath(seed)
		if err != nil {
			return err
		}
		if err := g.set(longPath); err != nil {
			return err
		}
		if err := g.run(3 * time.Second); err != nil {
			return err
		}
		f, err := g.measure(10 * time.Second)
		if err != nil {
			return err
		}
		worst = max(worst, f.missed)
	}
	t.row("ticks without an input from three seconds later on, worst seed", "%", worst, 0.1)
	return nil
}

// clocks is a client whose clock is wrong.
func clocks(t *table, seeds int, _ time.Duration) error {
	fmt.Println("A clock that is 1 % wrong, 50 ms ± 10 ms, 2 % loss")
	for _, clock := range []float64{0.99, 1.01} {
		f, err := mean(seeds, path(50*time.Millisecond, 10*time.Millisecond, 2), 0, 20*time.Second, time.Minute, func(g *game) { g.clock = clock })
		if err != nil {
			return err
		}
		t.row(fmt.Sprintf("clock %.2f: ticks without an input", clock), "%", f.missed, 0.5)
		t.row(fmt.Sprintf("clock %.2f: inputs wait", clock), "ms", f.wait, ms(20*time.Millisecond+4*tick))
	}
	return nil
}

// drawing is whether what others see moves evenly.
func drawing(t *table, seeds int, length time.Duration) error {
	fmt.Println("Drawn actors: 100 ms ± 25 ms")
	for _, loss := range []float64{2, 5, 10} {
		for _, hz := range []float64{60, 20, 10} {
			f, err := mean(max(seeds/4, 2), path(100*time.Millisecond, 25*time.Millisecond, loss), hz, 12*time.Second, length, nil)
			if err != nil {
				return err
			}
			t.row(fmt.Sprintf("%2.0f %% loss, %2.0f updates a second: draws that waited for a value", loss, hz), "%", f.late, 0.5)
			t.row(fmt.Sprintf("%2.0f %% loss, %2.0f updates a second: drawn behind", loss, hz), "ms", f.behind, 160+4000/hz)
		}
	}
	return nil
}

// shots is whether the server shows what the shooter saw.
func shots(t *table, seeds int, length time.Duration) error {
	fmt.Println("Shots at actors of 5 m/s: what the server shows is off from what was drawn")
	for _, loss := range []float64{0, 5, 10} {
		for _, hz := range []float64{60, 20} {
			f, err := mean(max(seeds/4, 2), path(60*time.Millisecond, 10*time.Millisecond, loss), hz, 12*time.Second, length, func(g *game) { g.shooting = true })
			if err != nil {
				return err
			}
			t.row(fmt.Sprintf("%2.0f %% loss, %2.0f updates a second: on average", loss, hz), "cm", 100*f.off, 1)
			t.row(fmt.Sprintf("%2.0f %% loss, %2.0f updates a second: shots over 10 cm off", loss, hz), "%", f.far, 1)
		}
	}
	return nil
}
