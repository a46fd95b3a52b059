// Package page shows a running tank server with netconn/inspect: its connections, packets, and actors with the reasons why
// they are sent.
package page

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// New is the page of a server, with a flight recorder that saves films to a folder, when a player is lost or corrected by much; not when
// the folder is "". Call it before the server is ticked.
func New(s *game.Server, films string) (*inspect.Inspector, error) {
	past, err := flight.New(s.World(), s.Driver, flight.Config{Save: flight.Saving{Dir: films, Left: true, Correction: 50, Saved: func(file string, err error) {
		slog.Info("a film", "file", file, "error", err)
	}}})
	if err != nil {
		return nil, err
	}
	return inspect.New(s.Driver, inspect.Config{
		Title: "tanks", Past: past, Name: func(c *driver.Conn) string { return c.Login().URL },
		Actors: inspect.Actors(s.World(), s.Peer), Properties: inspect.Properties(s.Peer), Figures: inspect.Figures(s.World()),
	}), nil
}

// Serve serves the page at an address until it is closed, and writes to out where it is. Without an address it does nothing. films is New's.
func Serve(addr, films string, s *game.Server, out io.Writer) (io.Closer, error) {
	web := &http.Server{ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	if addr == "" {
		return web, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if web.Handler, err = New(s, films); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go func() { _ = web.Serve(l) }() // ends with Close
	fmt.Fprintf(out, "the inspector is at http://%v/\n", l.Addr())
	return web, nil
}
