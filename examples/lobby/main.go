// Lobby is the game of examples/tanks for friends at home: one hosts, tells the others the code of its room, and they join, though all are behind routers.
// It says which path was found: direct, through the routers, or relayed.
//
//	go run . -check                         a host and two guests in this process, one of them by a relay, then a verdict
//	go run . -serve :8080                   the rendezvous, and a STUN server and relay at UDP port 3478
//	go run . -host -at http://HOST:8080     host a game; prints the code, such as QUACK-42, and a link
//	go run . -join QUACK-42 -at http://HOST:8080
//	go run . -join LINK
//	go run . -games -at http://HOST:8080    the public games
//
// Drive with W, A, S, D, fire with the space bar, leave with Q. Without a terminal a bot plays.
//
// The relay must be reachable under an address that players know: give it with -public. With -cert and -key the rendezvous is HTTPS, and the relay takes
// TLS too, at -tls: on TCP port 443 it serves players behind firewalls that let nothing else out. ./nat tests all this with real routers.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/ice/rendezvous"
)

// options are the command line's.
type options struct {
	check, host, games, public, bot, relayOnly bool
	serve, relay, relayTLS, relayAddr          string
	cert, key, trust                           string
	at, join, name                             string
	seconds                                    int
	timeout                                    time.Duration
	seed                                       uint64
}

func main() {
	var o options
	flag.BoolVar(&o.check, "check", false, "play as host and guests in this process, and end with a verdict")
	flag.StringVar(&o.serve, "serve", "", "address to serve the rendezvous at, like :8080")
	flag.StringVar(&o.relay, "relay", ":3478", "with -serve: UDP address of STUN and the relay")
	flag.StringVar(&o.relayTLS, "tls", "", "with -serve: TCP address of the relay over TLS, like :443")
	flag.StringVar(&o.relayAddr, "public", "127.0.0.1", "with -serve: the IPv4 address by which players reach the relay")
	flag.StringVar(&o.cert, "cert", "", "with -serve: file of a certificate, for HTTPS and -tls")
	flag.StringVar(&o.key, "key", "", "with -serve: file of its key")
	flag.StringVar(&o.at, "at", "http://127.0.0.1:8080", "where the rendezvous is")
	flag.StringVar(&o.trust, "trust", "", "file of a certificate to trust, beside those of the system")
	flag.BoolVar(&o.host, "host", false, "host a game")
	flag.BoolVar(&o.public, "list", false, "with -host: have the game in the list of public games")
	flag.StringVar(&o.join, "join", "", "join the game of a code or a link")
	flag.BoolVar(&o.games, "games", false, "list the public games")
	flag.StringVar(&o.name, "name", "player", "name in the game")
	flag.BoolVar(&o.bot, "bot", false, "a bot plays")
	flag.BoolVar(&o.relayOnly, "relayed", false, "go by the relay, so that others don't learn the own address")
	flag.IntVar(&o.seconds, "seconds", 0, "end after so many seconds; 0 is never, and 5 with -check")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Second, "end a connection from which nothing came for so long")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the drones")
	flag.Parse()
	modes := 0
	for _, on := range []bool{o.check, o.serve != "", o.host, o.join != "", o.games} {
		if on {
			modes++
		}
	}
	if flag.NArg() > 0 || modes != 1 || o.seconds < 0 || o.timeout <= 0 {
		fmt.Fprintln(os.Stderr, "say one of -check, -serve, -host, -join and -games; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.seconds > 0 && !o.check {
		ctx, stop = context.WithTimeout(ctx, time.Duration(o.seconds)*time.Second)
		defer stop()
	}
	var err error
	switch {
	case o.check:
		err = check(ctx, os.Stdout, o)
	case o.serve != "":
		err = serve(ctx, o)
	case o.host:
		err = host(ctx, os.Stdout, o)
	case o.join != "":
		err = guest(ctx, os.Stdout, o)
	default:
		err = list(ctx, o)
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// list prints the public games.
func list(ctx context.Context, o options) error {
	client, _, err := o.client()
	if err != nil {
		return err
	}
	all, err := rendezvous.Games(ctx, client, o.at)
	for _, g := range all {
		fmt.Printf("%-12s %d players  %s\n", g.Code, g.Players, g.Name)
	}
	return err
}

// client returns what connects to the rendezvous and the relay, with the certificate of -trust.
func (o options) client() (*http.Client, *tls.Config, error) {
	if o.trust == "" {
		return nil, nil, nil
	}
	text, err := os.ReadFile(o.trust)
	if err != nil {
		return nil, nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("no certificate in %s", o.trust)
	}
	conf := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}, conf, nil
}

// ice returns the settings of a player's socket.
func (o options) ice(servers []ice.Server, conf *tls.Config) ice.Config {
	return ice.Config{Servers: servers, TLS: conf, RelayOnly: o.relayOnly, Loopback: o.check}
}
