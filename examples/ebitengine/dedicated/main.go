// Dedicated is the arena's server without graphics: it needs neither a screen nor cgo.
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)    # the same for who joins
//	go run ./dedicated -serve :7777 -bots 6
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

func main() {
	addr := flag.String("serve", ":7777", "the address to listen at")
	bots := flag.Int("bots", 4, "ships without a player")
	seed := flag.Uint64("seed", 1, "seed of places and bots")
	seconds := flag.Float64("seconds", 0, "play so long with a player of its own who comes over UDP, compare, and end; 0 is until interrupted")
	flag.Parse()
	if flag.NArg() > 0 || !(*seconds >= 0) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(*addr, *bots, *seed, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(addr string, bots int, seed uint64, seconds float64) error {
	s, err := arena.Listen(arena.ServerConfig{Addr: addr, Bots: bots, Seed: seed})
	if err != nil {
		return err
	}
	if seconds > 0 {
		return try(s, seconds)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("arena at %v with %d bots; interrupt to end\n", s.Driver.LocalAddr(), bots)
	if err := s.Run(ctx); err != nil {
		return err
	}
	for ship := range s.Ships {
		fmt.Printf("%-24s %4d hits\n", ship.Name, ship.Score)
	}
	return nil
}
