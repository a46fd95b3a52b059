package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// servePage serves the inspector's page of a server until it is closed; without an address it does nothing.
func servePage(addr string, s *server) (io.Closer, error) {
	web := &http.Server{ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	if addr == "" {
		return web, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	peer := func(c *driver.Conn) *actorrep.Peer {
		if seat := s.peers[c]; seat != nil {
			return seat.peer
		}
		return nil
	}
	past, err := flight.New(s.world, s.driver, flight.Config{})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	web.Handler = inspect.New(s.driver, inspect.Config{
		Title: "arena", Past: past, Name: func(c *driver.Conn) string { return c.Login().URL },
		Actors: inspect.Actors(s.world, peer), Properties: inspect.Properties(peer), Figures: inspect.Figures(s.world),
	})
	go func() { _ = web.Serve(l) }() // ends with Close
	fmt.Printf("the inspector is at http://%v/\n", l.Addr())
	return web, nil
}
