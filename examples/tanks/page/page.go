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
	page, _, err := open(s, films)
	return page, err
}

// open is New, with the flight recorder.
func open(s *game.Server, films string) (*inspect.Inspector, *flight.Recorder, error) {
	past, err := flight.New(s.World(), s.Driver, flight.Config{Save: flight.Saving{Dir: films, Left: true, Correction: 50, Saved: func(file string, err error) {
		slog.Info("a film", "file", file, "error", err)
	}}})
	if err != nil {
		return nil, nil, err
	}
	return inspect.New(s.Driver, inspect.Config{
		Title: "tanks", Past: past, Name: func(c *driver.Conn) string { return c.Login().URL },
		Actors: inspect.Actors(s.World(), s.Peer), Properties: inspect.Properties(s.Peer), Figures: inspect.Figures(s.World()),
	}), past, nil
}

// site is the page that is served. Close also ends the recorder, which then saves a film that is due.
type site struct {
	http.Server
	past *flight.Recorder
}

// Close belongs to the goroutine that ticks the server.
func (s *site) Close() error { return errors.Join(s.Server.Close(), s.past.Close()) }

// Serve serves the page at an address until it is closed, and writes to out where it is. Without an address it does nothing. films is New's.
func Serve(addr, films string, s *game.Server, out io.Writer) (io.Closer, error) {
	if addr == "" {
		return io.NopCloser(nil), nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	page, past, err := open(s, films)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	web := &site{http.Server{Handler: page, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute}, past}
	go func() { _ = web.Serve(l) }() // ends with Close
	fmt.Fprintf(out, "the inspector is at http://%v/\n", l.Addr())
	return web, nil
}
