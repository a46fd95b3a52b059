package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/examples/rollback/ring"
)

// curve is points of a panel: what is drawn over what.
type curve struct {
	file       *csv.Writer
	y, x, name string
}

func (c curve) point(x, y float64) error {
	return c.file.Write([]string{c.y, c.x, c.name, strconv.FormatFloat(x, 'g', 6, 64), strconv.FormatFloat(y, 'g', 6, 64)})
}

// curves writes what a curve says better than a figure, for bench/plot.
func curves(dir string, seeds int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name, err := filepath.Abs(filepath.Join(dir, "feel.csv")) // to be opened from another folder
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	err = w.Write([]string{"y", "x", "curve", "at", "value"})
	for _, draw := range []func(w *csv.Writer, seeds int) error{pathCurves, feltCurves, drawnCurves} {
		err = errors.Join(err, draw(w, seeds))
	}
	w.Flush()
	if err = errors.Join(err, w.Error(), file.Close()); err == nil {
		fmt.Printf("the curves are in %s; draw them with: cd bench/plot && go run . -in %s -png feel.png\n", name, name)
	}
	return err
}

// pathCurves is the time after a path of 50 ms has become one of 150 ms.
func pathCurves(w *csv.Writer, seeds int) error {
	const step, steps, before = 200 * time.Millisecond, 30, 5
	var wait, missed [steps]float64
	for seed := range seeds {
		g, err := onShortPath(seed)
		if err != nil {
			return err
		}
		for i := range steps {
			if i == before {
				if err := g.set(longPath); err != nil {
					return err
				}
			}
			f, err := g.measure(step)
			if errors.Is(err, errNoInput) { // the path takes them longer
				f.missed = 100
			} else if err != nil {
				return err
			}
			wait[i] += f.wait / float64(seeds)
			missed[i] += f.missed / float64(seeds)
		}
	}
	for i := range steps {
		at := (time.Duration(i-before) * step).Seconds()
		err := errors.Join(curve{w, "inputs wait, ms", "seconds after the path became longer", "wait"}.point(at, wait[i]),
			curve{w, "ticks without an input, %", "seconds after the path became longer", "missed"}.point(at, missed[i]))
		if err != nil {
			return err
		}
	}
	return nil
}

// feltCurves is how long a key takes over the round trip.
func feltCurves(w *csv.Writer, _ int) error {
	for i, play := range []func(ring.Options, time.Duration) (ring.Figures, error){ring.Lockstep, ring.Rollback} {
		c := curve{w, "a key is felt after, ms", "round trip, ms", []string{"lockstep", "rollback"}[i]}
		for rtt := 20 * time.Millisecond; rtt <= 200*time.Millisecond; rtt += 20 * time.Millisecond {
			f, err := meanRing(play, 2, rtt, 20*time.Second)
			if err != nil {
				return err
			}
			if err := c.point(ms(rtt), ms(f.Felt)); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawnCurves is how many draws wait for a value over the loss.
func drawnCurves(w *csv.Writer, seeds int) error {
	for _, hz := range []float64{60, 20, 10} {
		c := curve{w, "draws that waited, %", "packets lost, %", fmt.Sprintf("%g updates a second", hz)}
		for loss := 0.0; loss <= 20; loss += 4 {
			f, err := mean(max(seeds/8, 2), path(100*time.Millisecond, 25*time.Millisecond, loss), hz, 12*time.Second, 30*time.Second, nil)
			if err != nil {
				return err
			}
			if err := c.point(loss, f.late); err != nil {
				return err
			}
		}
	}
	return nil
}
