// Package echotest is a server that echoes and clients that note what comes back, for tests of ways that packets take.
package echotest

import (
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

var name = bunch.Name{Index: 300}

// Server is the server's channel type. It sends back reliably what it gets.
func Server() channel.Type {
	return channel.Type{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return echo{} }}
}

// Client is the clients'.
func Client() channel.Type { return channel.Type{Name: name, ClientOpen: true} }

type echo struct{ channel.Nop }

func (echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	_, _ = ch.SendBunch(&bunch.Out{Data: b, Reliable: true, NoMerge: true}) // what doesn't come back is missed
}

// Sink has what came back.
type Sink struct {
	channel.Nop
	Got []string

	conn *driver.Conn
	ch   *channel.Channel // of conn
}

// ReceivedBunch notes what came.
func (s *Sink) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	s.Got = append(s.Got, string(b))
}

// Send sends texts on a channel of a client's, which the first call opens, each in a bunch of its own. Their echoes go to s, which forgets what it had.
func (s *Sink) Send(c *driver.Conn, texts []string) (err error) {
	s.Got = nil
	if s.conn != c {
		if s.ch, err = c.Open(name, s); err != nil {
			return err
		}
		s.conn = c
	}
	for _, text := range texts {
		if _, err := s.ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true}); err != nil {
			return err
		}
	}
	return nil
}
