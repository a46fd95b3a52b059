// Pause measures how long nothing comes to a player whose path dies: where the connection goes on by another session (LadderConfig.Token), where a Redialer dials
// again, and where both do. The server sends 60 messages a second; 50 ms there and back, through a network of IP packets in which TCP and QUIC have to live as well. It
// needs Linux and root.
//
//	go run ./pause
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/web"
)

func main() {
	runs := flag.Int("runs", 20, "paths that die for each row, a multiple of 20, 20 to 1000")
	seed := flag.Uint64("seed", 1, "seed of the network")
	player := flag.String("player", "", "a client's settings; the program starts itself with it in the client's namespace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *player != "":
		err = play(ctx, *player, os.Stdin, os.Stdout)
	case *runs < together || *runs > 1000 || *runs%together != 0 || flag.NArg() > 0:
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	default:
		err = run(ctx, os.Stdout, *runs, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

const (
	delay    = 25 * time.Millisecond // each way
	together = 20                    // players whose path dies at once
)

// means are what a client has against a path that dies.
type means struct {
	name          string
	token, redial bool
}

var allMeans = []means{{"goes on", true, false}, {"dials again", false, true}, {"both", true, true}}

// moves are the ways before and after.
var moves = [][2]web.Way{{web.UDP, web.WebTransport}, {web.UDP, web.WebSocket}, {web.WebTransport, web.WebSocket}}

func run(ctx context.Context, out io.Writer, runs int, seed uint64) error {
	fmt.Fprintf(out, "%d paths that die for each row, or some more, %d players at once, %v there and back; ms without a message\n\n", runs, together, 2*delay)
	fmt.Fprintln(out, "lost each way  from          to            the client      p50     p99  new connections")
	for _, loss := range []float64{0, 5} {
		for _, m := range moves {
			for _, how := range allMeans {
				var took []time.Duration
				dials := 0
				for len(took) < runs {
					r, err := measure(ctx, loss, seed+uint64(len(took)), m, how)
					if err == nil && len(r.Took) == 0 {
						err = errors.New("all players came by another way")
					}
					if err != nil {
						return fmt.Errorf("%v to %v, %s, %.0f %%: %w", m[0], m[1], how.name, loss, errors.Join(err, ctx.Err()))
					}
					took, dials = append(took, r.Took...), dials+r.Dials
				}
				slices.Sort(took)
				at := func(q float64) int64 { return took[int(q*float64(len(took)-1)+0.5)].Milliseconds() }
				fmt.Fprintf(out, "%11.0f %%  %-12v  %-12v  %-12s  %6d  %6d  %15d\n", loss, m[0], m[1], how.name, at(0.5), at(0.99), dials)
			}
		}
	}
	return nil
}
