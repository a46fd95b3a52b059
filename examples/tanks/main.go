// Tanks is the parts together: players in predicted tanks, drones that are interpolated and hit where they were seen, shells that
// appear with the key, ammunition that only its owner knows, crates that sleep, a score board, chat, and sight that ends at 150 m.
//
// Without more it plays a match of four bots over a bad network in virtual time, so that every run with a seed is the same; one of the clients crashes and
// is back with tank and score. It prints what each player saw, then the verdict. The exit code is 1 when something isn't as it should be.
//
//	go run ./examples/tanks
//	go run ./examples/tanks -seconds 300 -lag 80ms -loss 10 -seed 7
//	go run ./examples/tanks -migrate                     the host of a listen server dies, another player goes on
//	go run ./examples/tanks -pictures /tmp/tanks          what Ann saw, as PNG files
//
// The same game over real sockets. The host of a listen server plays over a connection like everybody's, in memory. W, A, S and D drive,
// the space bar fires, Q ends it; -bot plays by itself, and so does a client without a terminal.
//
//	go run ./examples/tanks -host :7777 -name Ann -bots 3
//	go run ./examples/tanks -host 127.0.0.1:0 -bots 3 -bot -seconds 10          with a verdict
//	go run ./examples/tanks -host 127.0.0.1:0 -migrate -seconds 20              the host dies, a bot goes on as the host
//	go run ./examples/tanks -host 127.0.0.1:0 -bots 3 -record match.bunchnet
//	go run ./examples/tanks -watch match.bunchnet
//	go run ./examples/tanks -host 127.0.0.1:0 -bots 3 -http 127.0.0.1:8080      with the inspector's page at that address
//	go run ./examples/tanks -host 127.0.0.1:0 -bots 3 -http 127.0.0.1:8080 -films /tmp     and films saved when something goes wrong
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)                                 for several processes
//	go run ./examples/tanks -serve :7777
//	go run ./examples/tanks -join 127.0.0.1:7777 -name Bob
//
//	go run ./examples/tanks -serve 127.0.0.1:7777 -public 127.0.0.1:9000        players come through a proxy, such as examples/badnetwork
//	go run ./examples/tanks -join 127.0.0.1:9000 -name Bob
//
//	go run ./examples/tanks -serve :7777 -delay 10s                             and for spectators, 10 s later
//	go run ./examples/tanks -spectate 127.0.0.1:7777
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	seed     uint64
	seconds  int
	lag      time.Duration
	loss     float64
	pictures string
	migrate  bool

	serve, host, join string
	public            netip.AddrPort
	name              string
	record, watch     string
	http, films       string
	spectate          string
	delay             time.Duration
	bots              int
	bot               bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network, the drones and the bots")
	flag.IntVar(&o.seconds, "seconds", 60, "how long they play, 20 to 3600; over real sockets without an end unless it is given")
	flag.DurationVar(&o.lag, "lag", 50*time.Millisecond, "one way delay in virtual time, up to 200ms; it varies by a quarter of that")
	flag.Float64Var(&o.loss, "loss", 5, "percentage of packets lost in virtual time, 0 to 20")
	flag.StringVar(&o.pictures, "pictures", "", "folder for what a player sees, a PNG file each half second")
	flag.BoolVar(&o.migrate, "migrate", false, "have the first player be the host, and its machine die amid the match: another player goes on as the host")
	flag.StringVar(&o.serve, "serve", "", "be only a server, at this address")
	flag.StringVar(&o.host, "host", "", "be a server at this address, and a player")
	flag.StringVar(&o.join, "join", "", "be only a client, of the server at this address")
	flag.TextVar(&o.public, "public", netip.AddrPort{}, "with -serve and -host: the address that players dial, when it isn't the server's own: a proxy's or a NAT's")
	flag.StringVar(&o.name, "name", "Ann", "the player's name")
	flag.StringVar(&o.record, "record", "", "file to write the match to, with -serve and -host")
	flag.StringVar(&o.watch, "watch", "", "watch a match that was written with -record")
	flag.StringVar(&o.http, "http", "", "with -serve and -host: serve the inspector's page at this address")
	flag.StringVar(&o.films, "films", "", "with -http: folder for films of what went before a player was lost, or corrected by much")
	flag.DurationVar(&o.delay, "delay", 0, "with -serve and -host: let spectators see the game, so much later")
	flag.StringVar(&o.spectate, "spectate", "", "see the game of the server at this address, as a spectator")
	flag.IntVar(&o.bots, "bots", 0, "bots that join from this process, up to 64")
	flag.BoolVar(&o.bot, "bot", false, "have a bot play instead of the keyboard")
	flag.Parse()
	real, given := o.serve+o.host+o.join+o.watch+o.spectate != "", false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "seconds" })
	if real && !o.migrate && !given {
		o.seconds = 0
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q is no flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if o.migrate && (o.serve+o.join+o.watch+o.spectate+o.record+o.pictures+o.http != "" || o.bots > 0 || o.delay > 0) || o.record != "" && o.serve+o.host == "" || o.bots > 0 && o.watch+o.spectate != "" || o.films != "" && o.http == "" || (o.delay != 0 || o.http != "" || o.public.IsValid()) && o.serve+o.host == "" || count(o.serve, o.host, o.join, o.watch, o.spectate) > 1 {
		fmt.Fprintln(os.Stderr, "these flags don't go together; see -help")
		os.Exit(2)
	}
	if o.seconds < 0 || o.delay < 0 || o.delay > 10*time.Minute || !real && o.seconds < 20 || o.seconds > 3600 || o.lag < 0 || o.lag > 200*time.Millisecond || !(o.loss >= 0 && o.loss <= 20) || o.bots < 0 || o.bots > 64 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := start(o, real); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// start plays what the flags ask for. An interrupt ends run as any program; the others end in order.
func start(o options, real bool) error {
	if !real && !o.migrate {
		return run(os.Stdout, o)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.migrate {
		return runMigrate(ctx, os.Stdout, o)
	}
	return play(ctx, os.Stdout, o)
}

// count is how many are given.
func count(all ...string) (n int) {
	for _, s := range all {
		if s != "" {
			n++
		}
	}
	return n
}
