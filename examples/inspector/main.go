// Inspector shows the live page of netconn/inspect on a busy game: a server with sixty ships and six
// clients, each behind a bad network of its own, in one process. Without flags it runs for four seconds,
// asks its own page for text and JSON, prints the text, and says whether they show what happened.
//
//	go run ./examples/inspector
//	go run ./examples/inspector -http 127.0.0.1:8080   # then open it in a browser, until interrupted
//	curl http://127.0.0.1:8080/net/                    # the same in a terminal
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bunchnet/bunchnet/netconn/inspect"
)

func main() {
	addr := flag.String("http", "", "serve the page at this address until interrupted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g, err := newGame()
	if err != nil {
		return err
	}
	defer g.close()

	mux := http.NewServeMux()
	mux.Handle("/net/", inspect.New(g.server, inspect.Config{Title: "arena", Name: g.nameOf, Actors: inspect.Actors(g.world, g.peerOf), Properties: inspect.Properties(g.peerOf), Figures: inspect.Figures(g.world)}))
	listen := addr
	if addr == "" {
		listen = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	page := fmt.Sprintf("http://%v/net/", l.Addr())
	fmt.Println("open", page)
	if addr != "" {
		return g.play(ctx)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- g.play(ctx) }()
	// A client far away may take longer to join on a busy machine: what isn't right after four seconds is looked
	// at again for a minute.
	wait := 4 * time.Second
	for try := range 60 {
		select {
		case <-time.After(wait):
		case err := <-played:
			return err
		}
		if err = check(page, g.names(), try == 0); err == nil {
			break
		}
		wait = time.Second
	}
	cancel()
	return errors.Join(err, <-played)
}

// check asks for the page's text and JSON, and compares with what must be there.
func check(page string, names []string, show bool) error {
	text, err := fetch(page)
	if err != nil {
		return err
	}
	if show {
		fmt.Printf("\n%s\n", text)
	}
	b, err := fetch(page + "json")
	if err != nil {
		return err
	}
	var v struct {
		Conns []struct {
			Name   string
			Joined bool
			Stats  struct{ RTT time.Duration }
		}
		Detail struct {
			Sent       []struct{ State string }
			ActorCount int
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if len(v.Conns) != len(names) {
		return fmt.Errorf("%d connections on the page, not %d", len(v.Conns), len(names))
	}
	for _, c := range v.Conns {
		if !c.Joined || c.Name == "" || c.Stats.RTT <= 0 {
			return fmt.Errorf("connection %+v isn't as it should be", c)
		}
	}
	acked := 0
	for _, p := range v.Detail.Sent {
		if p.State == "acked" {
			acked++
		}
	}
	if acked == 0 || v.Detail.ActorCount != ships {
		return fmt.Errorf("%d packets acked, %d actors", acked, v.Detail.ActorCount)
	}
	_, err = fmt.Printf("PASS: the page shows %d connections, %d actors, and %d of the last %d packets acked\n", len(v.Conns), v.Detail.ActorCount, acked, len(v.Detail.Sent))
	return err
}

func fetch(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return b, err
}
