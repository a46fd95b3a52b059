// Nat connects two players of examples/lobby through real routers, and says which path each pair of routers got and how long it took. The players, their
// routers, the internet between them and the rendezvous with its relay are network namespaces of this machine; the routers' rules are nftables'.
//
//	go run ./nat              every pair once, then a change of paths amid a game, then a verdict
//	go run ./nat -n 20        each pair 20 times, for p50 and p99
//	go run ./nat -only random   only pairs with such a router
//
// It needs Linux, root, and the programs ip and nft (apt-get install iproute2 nftables). The kinds of routers:
//
//	open      none: the player has an address of the internet
//	masq      masquerade, the same port outside for all whom the player sends to (endpoint-independent mapping); lets in only what was asked for
//	random    masquerade, another random port for each whom the player sends to (symmetric)
//	same      both players behind one masq
//	tcp443    a firewall that only lets TCP to port 443 out
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	n := flag.Int("n", 1, "times that each pair connects, 1 to 1000")
	only := flag.String("only", "", "only pairs with this kind of router")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 || *n > 1000 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *n, *only); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
