// Badnetwork is a UDP proxy that loses, delays, repeats and reorders the datagrams that pass through it, in both directions. Clients dial the proxy
// (--listen), which passes their datagrams on to the server (--to). It works with any game that uses UDP:
//
//	go run ./examples/badnetwork --listen 127.0.0.1:9000 --to 127.0.0.1:7777 --loss 10 --dup 2 --reorder 5 --delay-min 5 --delay-max 15 --seed 7 --seconds 60
//
// It prints a line each second, and at the end a table of what became of the datagrams. With the same seed and the same traffic the same datagrams
// are lost.
//
// With the default link a client's token names the address that the client dials: the proxy's. The server must know that address as its own, or it refuses
// the token (other_server). The games here have a flag for that:
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)
//	go run ./examples/tanks -serve 127.0.0.1:7777 -public 127.0.0.1:9000
//	go run ./examples/badnetwork --loss 5 --delay-min 60 --delay-max 90
//	go run ./examples/tanks -join 127.0.0.1:9000 -name Bob
//
// In your own server it is driver.Netcode.Addrs. A token service lists the proxy as one of Servers and the server itself as one of Internal
// (netconn/netcode/tokenserver). In one process use proxy.Impair instead, on the client's socket.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address that clients dial")
	to := flag.String("to", "127.0.0.1:7777", "address of the server")
	loss := flag.Float64("loss", 0, "datagrams lost, percent")
	burst := flag.Float64("burst", 0, "percentage of datagrams at which a burst of losses begins")
	burstLength := flag.Int("burst-length", 5, "datagrams lost in a burst")
	dup := flag.Float64("dup", 0, "datagrams repeated, percent")
	reorder := flag.Float64("reorder", 0, "datagrams held back so that later ones overtake them, percent")
	corrupt := flag.Float64("corrupt", 0, "datagrams with flipped bits, percent")
	delayMin := flag.Float64("delay-min", 0, "smallest one-way delay, ms")
	delayMax := flag.Float64("delay-max", 0, "largest one-way delay, ms; default --delay-min")
	rate := flag.Float64("rate", 0, "bandwidth each way, bits a second; 0 is unlimited")
	queue := flag.Float64("queue-ms", 1000, "longest wait for that bandwidth, ms; what would wait longer is lost")
	mtu := flag.Int("mtu", 0, "largest datagram that passes, bytes; 0 is unlimited")
	seed := flag.Uint64("seed", 1, "seed of the losses, delays and the rest")
	seconds := flag.Float64("seconds", 0, "how long to run; 0 until interrupted")
	flag.Parse()
	if flag.NArg() > 0 || !(*seconds >= 0) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}

	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	s := netsim.Settings{Loss: *loss, Dup: *dup, Order: *reorder, Corrupt: *corrupt, LagMin: ms(*delayMin), LagMax: ms(max(*delayMin, *delayMax)),
		Bandwidth: *rate, QueueDelay: ms(*queue), MTU: *mtu}
	if *burst != 0 {
		s.BurstLoss, s.BurstLength = *burst, *burstLength
	}
	if err := run(proxy.Config{Listen: *listen, To: *to, Up: s, Down: s, Seed: *seed}, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "badnetwork:", err)
		os.Exit(1)
	}
}

func run(cfg proxy.Config, seconds float64) error {
	p, err := proxy.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer cancel()
	}
	until := "until interrupted"
	if seconds > 0 {
		until = fmt.Sprintf("for %v s", seconds)
	}
	fmt.Printf("%v -> %s, seed %d, %s\n", p.LocalAddr(), cfg.To, cfg.Seed, until)
	end := "\n"
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		end = "\r"
	}
	start, shown := time.Now(), time.Now()
	for ctx.Err() == nil {
		if err := p.Step(time.Now()); err != nil {
			return err
		}
		if time.Since(shown) >= time.Second {
			shown = time.Now()
			c := p.Counters()
			fmt.Printf("%4.0f s  %2d clients  up %6d lost %4d dup %3d  down %6d lost %4d dup %3d%s", time.Since(start).Seconds(), c.Clients,
				c.Up.Pushed, c.Up.Lost+c.Up.BurstLost, c.Up.Duplicated, c.Down.Pushed, c.Down.Lost+c.Down.BurstLost, c.Down.Duplicated, end)
		}
		time.Sleep(500 * time.Microsecond)
	}
	fmt.Println()
	summary(p.Counters())
	return p.Close()
}

func summary(c proxy.Counters) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tto the server\tto the clients\t")
	for _, row := range []struct {
		name     string
		up, down uint64
	}{
		{"in", c.Up.Pushed, c.Down.Pushed},
		{"out", c.Up.Passed, c.Down.Passed},
		{"lost", c.Up.Lost, c.Down.Lost},
		{"in bursts", c.Up.BurstLost, c.Down.BurstLost},
		{"repeated", c.Up.Duplicated, c.Down.Duplicated},
		{"reordered", c.Up.Reordered, c.Down.Reordered},
		{"corrupted", c.Up.Corrupted, c.Down.Corrupted},
		{"too big", c.Up.TooBig, c.Down.TooBig},
		{"queue full", c.Up.QueueFull, c.Down.QueueFull},
	} {
		fmt.Fprintf(w, "%s\t%d\t%d\t\n", row.name, row.up, row.down)
	}
	w.Flush()
}
