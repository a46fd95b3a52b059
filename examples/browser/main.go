// Browser is the game of examples/tanks for players in browsers: one server takes WebTransport, WebSocket and UDP, in one world. This program is
// the game server, the token service and the page; it builds the client for browsers with the go command.
//
//	go run .                          then open the address it prints; bots are there already
//	go run . -check                   two tabs of a headless Chromium and two native clients play over a bad network, then a verdict
//	go run . -check -ways websocket   the same without WebTransport
//	open http://127.0.0.1:8080/net/   the inspector of the server, on this machine
//	go run . -measure                 what the client weighs, and what a tick of it costs in Chromium
//
// Native players join with the line that it prints for examples/tanks. For a server with a name, whose certificate comes by ACME (Let's Encrypt):
//
//	go run . -domain play.example.com -udp :7777 -public 192.0.2.1:7777
//
// It needs TCP and UDP port 443 and UDP port 7777 to be open. Let's Encrypt has limits; try it first with certificates that no browser trusts:
//
//	go run . -domain play.example.com -udp :7777 -public 192.0.2.1:7777 -acme https://acme-staging-v02.api.letsencrypt.org/directory -certs staging
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/web"
)

// options are the command line's.
type options struct {
	http, web, udp, public string
	domain, https          string
	certs, acme            string
	ways                   string
	bots                   int
	seed                   uint64

	check, measure bool
	seconds        int
	lag            time.Duration
	loss           float64
	picture        string
	inspector      string
}

func main() {
	var o options
	flag.StringVar(&o.http, "http", "127.0.0.1:8080", "address of the page, the tokens and WebSocket")
	flag.StringVar(&o.web, "web", "127.0.0.1:8443", "address of WebTransport")
	flag.StringVar(&o.udp, "udp", "127.0.0.1:7777", "address of native players")
	flag.StringVar(&o.public, "public", "", "where players send to, if that isn't -udp")
	flag.StringVar(&o.domain, "domain", "", "serve HTTPS, HTTP/3 and WebSocket under this name at port 443, with a certificate by ACME")
	flag.StringVar(&o.https, "https", ":443", "address of -domain; the ACME service asks at port 443")
	flag.StringVar(&o.acme, "acme", autocert.DefaultACMEDirectory, "directory of the ACME service of -domain")
	flag.StringVar(&o.certs, "certs", "certs", "folder to keep the certificate of -domain in")
	flag.StringVar(&o.ways, "ways", "all", "how browsers may come: all, or websocket alone")
	flag.IntVar(&o.bots, "bots", 2, "bots over UDP from this process, up to 64")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the drones, and of the bad networks of -check")
	flag.BoolVar(&o.check, "check", false, "play with a headless Chromium, and end with a verdict")
	flag.BoolVar(&o.measure, "measure", false, "measure the client in a headless Chromium")
	flag.IntVar(&o.seconds, "seconds", 20, "how long -check plays, 5 to 3600")
	flag.DurationVar(&o.lag, "lag", 40*time.Millisecond, "one way delay of -check's networks, up to 200ms")
	flag.Float64Var(&o.loss, "loss", 3, "percentage of packets that -check's networks lose each way, 0 to 20")
	flag.StringVar(&o.picture, "picture", "", "file for a picture of a tab of -check, PNG")
	flag.StringVar(&o.inspector, "inspector", "", "file for a picture of the inspector, PNG, that sees the same tab a moment later")
	flag.Parse()
	if flag.NArg() > 0 || o.seconds < 5 || o.seconds > 3600 || o.lag < 0 || o.lag > 200*time.Millisecond || !(o.loss >= 0 && o.loss <= 20) || o.bots < 0 || o.bots > 64 ||
		o.ways != "all" && o.ways != web.WebSocket.String() {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case o.check:
		err = check(ctx, os.Stdout, o)
	case o.measure:
		err = measure(ctx, os.Stdout)
	default:
		err = serve(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// serve runs the game until it is interrupted.
func serve(ctx context.Context, o options) error {
	fmt.Println("building the client for browsers ...")
	c, err := build(ctx)
	if err != nil {
		return err
	}
	s, err := listen(o, c)
	if err != nil {
		return err
	}
	var bots []*game.Client
	for i := range o.bots {
		b, err := s.native(fmt.Sprintf("bot %d", i+1), netsim.Settings{}, uint64(i), game.Bot)
		if err != nil {
			return errors.Join(err, s.close())
		}
		bots = append(bots, b)
	}
	fmt.Printf("play at %s, in as many tabs as you like\n", s.url)
	if o.domain == "" && os.Getenv(driver.KeyEnv) == "" {
		fmt.Printf("or natively: %s=%s go run github.com/bunchnet/bunchnet/examples/tanks -join %v -name Ann\n", driver.KeyEnv, s.key.Hex(), s.addr)
	}
	ticker := time.NewTicker(time.Second / 60)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, b := range bots {
				_ = b.Driver.Close() // so does the game
			}
			return s.close()
		case now := <-ticker.C:
			for _, b := range bots {
				if err := errors.Join(b.Tick(now), b.Driver.Err()); err != nil {
					return errors.Join(err, s.close())
				}
			}
			if err := s.game.Tick(now); err != nil {
				return errors.Join(err, s.close())
			}
		}
	}
}
