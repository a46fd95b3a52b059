// Hostile lets strangers loose on the door for browsers of netconn/web, over real sockets on the loopback, where each stranger has an address of its
// own: connections that say nothing, sessions without a connect token or that name others' connections, garbage at every layer. Beside them six players by UDP, WebTransport and
// WebSocket have 60 messages a second echoed each, and newcomers join. It needs Linux, where all of 127.0.0.0/8 is the loopback.
//
//	go run ./hostile
//	go run ./hostile -seconds 30 -only "no token"
//
// It fails when a player loses its connection or an echo, a newcomer who dials again isn't let in within 10 s, a stranger moves a connection, memory grows by more than 64 MB, or
// sessions or goroutines stay behind. How long echoes take, and newcomers at most, is printed: the strangers have the same cores as the server.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	length := flag.Int("seconds", 5, "how long each attack lasts, 1 to 600")
	only := flag.String("only", "", "attacks whose name contains this")
	seed := flag.Uint64("seed", 1, "seed of the strangers")
	flag.Parse()
	if *length < 1 || *length > 600 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, time.Duration(*length)*time.Second, *only, *seed)
	if err == nil {
		_, err = fmt.Println("PASS: players undisturbed, newcomers let in, memory and sessions bounded")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
