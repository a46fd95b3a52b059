package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// watch plays the recording and compares it with what there was to see.
func watch(out io.Writer, file *os.File, pictures []picture, rng *rand.Rand) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	replay, err := replay.Open(file, info.Size())
	if err != nil {
		return err
	}
	world := actorrep.NewClient(actorrep.Config{})
	if err := register(world); err != nil {
		return err
	}
	if err := replay.Play(world); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-10s %q, %v, frames every %v, %d checkpoints\n", "opened", replay.Note(), replay.Duration().Round(time.Second), replay.Interval(), replay.Checkpoints())
	if err := playThrough(out, replay, world, pictures); err != nil {
		return err
	}
	if err := seekAbout(out, replay, world, pictures, rng); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "PASS: %d frames and %d seeks show what the server had\n", len(pictures), seeks)
	return err
}

// playThrough plays at four times the speed, as a viewer at 60 frames a second would.
func playThrough(out io.Writer, replay *replay.Replay, world *actorrep.World, pictures []picture) error {
	const speed = 4
	if err := replay.SetSpeed(speed); err != nil {
		return err
	}
	now, next, compared := time.Duration(0), 0, 0
	for !replay.Done() {
		if err := replay.Step(now); err != nil {
			return err
		}
		for next+1 < len(pictures) && pictures[next+1].at <= replay.Position() {
			next++
		}
		if diff := difference(draw(world), pictures[next].text); diff != "" {
			return fmt.Errorf("at %v: %s", replay.Position(), diff)
		}
		compared++
		now += time.Second / 60
	}
	fmt.Fprintf(out, "%-10s %v at %d times the speed, %d pictures compared, %d hits seen\n", "played", now.Round(time.Second), speed, compared, bangs)
	return nil
}

const seeks = 200

// seekAbout looks at places here and there.
func seekAbout(out io.Writer, replay *replay.Replay, world *actorrep.World, pictures []picture, rng *rand.Rand) error {
	was := bangs
	spent, slowest := time.Duration(0), time.Duration(0)
	for range seeks {
		p := pictures[rng.IntN(len(pictures))]
		start := time.Now()
		if err := replay.Seek(p.at); err != nil {
			return err
		}
		took := time.Since(start)
		spent, slowest = spent+took, max(slowest, took)
		if diff := difference(draw(world), p.text); diff != "" {
			return fmt.Errorf("after a seek to %v: %s", p.at, diff)
		}
	}
	if bangs != was {
		return fmt.Errorf("%d hits that were jumped over were seen", bangs-was)
	}
	fmt.Fprintf(out, "%-10s %d places, in %v on average and %v at most\n", "sought", seeks, (spent / seeks).Round(time.Microsecond), slowest.Round(time.Microsecond))
	return nil
}

// difference is the first line that isn't the same, or "".
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "nothing", "nothing"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("%s, but the server had %s", a, b)
		}
	}
	return ""
}
