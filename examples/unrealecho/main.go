// Unrealecho tests whether two implementations of Unreal Engine's packets and bunches understand each other. Its server echoes every bunch. Its client sends
// bunches of all kinds, small, large and split, reliable and not, on several channels, and checks every echo. The wire format is that of Unreal 5.1;
// --unreal chooses another release. Either end may be another implementation; a game that uses bunchnet at both ends doesn't need this program.
//
// Run both in two terminals:
//
//	go run ./examples/unrealecho server --once
//	go run ./examples/unrealecho client
//	go run ./examples/unrealecho server --listen :7777 --unreal 5.3
//	go run ./examples/unrealecho client --connect 192.0.2.1:7777 --unreal 5.3 --messages 500 --big
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	var err error
	switch os.Args[1] {
	case "server":
		err = server(os.Args[2:])
	case "client":
		err = client(os.Args[2:])
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: unrealecho server [--listen ADDR] [--unreal RELEASE] [--once] [--seconds S]\n       unrealecho client [--connect ADDR] [--unreal RELEASE] [--messages N] [--seconds S] [--seed K] [--channels C] [--big]")
	os.Exit(2)
}

// parse ends the program when args has something else than flags.
func parse(f *flag.FlagSet, args []string) {
	_ = f.Parse(args) // exits by itself
	if f.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", f.Arg(0))
		os.Exit(2)
	}
}

// withTimeout is a context that ends after so many seconds; never for 0.
func withTimeout(seconds float64) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
}

func server(args []string) error {
	f := flag.NewFlagSet("server", flag.ExitOnError)
	listen := f.String("listen", "127.0.0.1:7777", "address to listen at")
	once := f.Bool("once", false, "end after the first client has left")
	seconds := f.Float64("seconds", 0, "end after so many seconds; 0 never")
	checksum := f.Bool("checksum", false, "CRC-32C behind every datagram; both ends, not Unreal's wire")
	release := f.String("unreal", "5.1", "the release whose wire it is: 4.27, 5.1, 5.3 or 5.8; both ends")
	parse(f, args)
	base, err := wire(*release, driver.Config{Checksum: *checksum})
	if err != nil {
		return err
	}
	cfg, s := newServer(base)
	d, err := driver.Listen(*listen, cfg)
	if err != nil {
		return err
	}
	fmt.Printf("listening at %v\n", d.LocalAddr())
	ctx, cancel := withTimeout(*seconds)
	defer cancel()
	err = d.Run(ctx, func(time.Time) {
		if *once && s.left > 0 && d.Len() == 0 {
			cancel()
		}
	})
	fmt.Printf("server: %d clients, %d bunches of %d bytes echoed, %d refused, last: %v\n", s.joined, s.bunches, s.bytes, s.failed, s.last)
	switch {
	case err != nil:
		return err
	case *once && s.left == 0:
		return errors.New("no client came and left")
	case s.failed > 0:
		return fmt.Errorf("%d messages found no room", s.failed)
	}
	return nil
}

func client(args []string) error {
	f := flag.NewFlagSet("client", flag.ExitOnError)
	connect := f.String("connect", "127.0.0.1:7777", "the server's address")
	messages := f.Int("messages", 200, "messages to send")
	seconds := f.Float64("seconds", 60, "give up after so many seconds")
	seed := f.Uint64("seed", 1, "seed of sizes and kinds")
	channels := f.Int("channels", 2, "channels besides channel 0")
	big := f.Bool("big", false, "send 40000, 65536 and (refused) 65537 bytes too")
	checksum := f.Bool("checksum", false, "CRC-32C behind every datagram; both ends, not Unreal's wire")
	release := f.String("unreal", "5.1", "the release whose wire it is: 4.27, 5.1, 5.3 or 5.8; both ends")
	parse(f, args)
	base, err := wire(*release, driver.Config{Checksum: *checksum})
	if err != nil {
		return err
	}
	cfg, e := newClient(base, clientOptions{messages: *messages, channels: *channels, seed: *seed, big: *big})
	d, err := driver.Dial(*connect, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := withTimeout(*seconds)
	defer cancel()
	start := time.Now()
	err = d.Run(ctx, func(time.Time) {
		e.step()
		if e.result != nil {
			cancel()
		}
	})
	if verdict := e.verdict(); verdict != nil {
		return e.failure(verdict, err)
	}
	_, err = fmt.Printf("PASS: %s in %.1f s (seed %d)\n", e.summary(), time.Since(start).Seconds(), *seed)
	return err
}
