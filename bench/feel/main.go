// Command feel measures how a game feels over a bad network, in virtual time: whether inputs come in time, whether what touches agrees, whether others move evenly, whether who
// shoots hits what he saw, after how long a key is felt with rollback, and whether the game is the same in every mode. Each figure has a bound; it
// exits with 1 beyond one.
//
//	go run ./bench/feel               a hundred seeds, a minute of the game each
//	go run ./bench/feel -quick        a quarter of them, in some twenty seconds
//	go run ./bench/feel -plot DIR     the curves besides, as DIR/feel.csv; then
//	cd bench/plot && go run . -in DIR/feel.csv -png DIR/feel.png
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// table is the figures that were measured.
type table struct{ beyond int }

// row prints a figure with its bound.
func (t *table) row(what, unit string, figure, most float64) {
	verdict := "ok"
	if !(figure <= most) {
		verdict = "BEYOND"
		t.beyond++
	}
	fmt.Printf("%-78s %9.3f %-4s at most %8.3f   %s\n", what, figure, unit, most, verdict)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func main() {
	quick := flag.Bool("quick", false, "fewer seeds")
	plot := flag.String("plot", "", "folder for the curves")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	seeds, length := 100, 60*time.Second
	if *quick {
		seeds = 24
	}
	t := &table{}
	for _, part := range []func(t *table, seeds int, length time.Duration) error{inputs, changes, clocks, together, drawing, shots, keysFelt, sameGame} {
		if err := part(t, seeds, length); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			os.Exit(1)
		}
	}
	if *plot != "" {
		if err := curves(*plot, seeds); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			os.Exit(1)
		}
	}
	if t.beyond > 0 {
		fmt.Printf("FAIL: %d figures beyond their bounds\n", t.beyond)
		os.Exit(1)
	}
	if _, err := fmt.Println("PASS"); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

const tick = time.Second / 60
