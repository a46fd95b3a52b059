// Package page shows a running tank server with netconn/inspect: its connections, packets, and actors with the reasons why
// they are sent.
package page

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// New is the page of a server, with a flight recorder. Call it before the server is ticked.
func New(s *game.Server) (*inspect.Inspector, error) {
	past, err := flight.New(s.World(), s.Driver, flight.Config{})
	if err != nil {
		return nil, err
	}
	return inspect.New(s.Driver, inspect.Config{
		Title: "tanks", Past: past, Name: func(c *driver.Conn) string { return c.Login().URL },
		Actors: inspect.Actors(s.World(), s.Peer), Properties: inspect.Properties(s.Peer), Figures: inspect.Figures(s.World()),
	}), nil
}

// Serve serves the page at an address until it is closed, and writes to out where it is. Without an address it does nothing.
func Serve(addr string, s *game.Server, out io.Writer) (io.Closer, error) {
	web := &http.Server{ReadHeaderTimeout: 5 * time.Second}
	if addr == "" {
		return web, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if web.Handler, err = New(s); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go func() { _ = web.Serve(l) }() // ends with Close
	fmt.Fprintf(out, "the inspector is at http://%v/\n", l.Addr())
	return web, nil
}
