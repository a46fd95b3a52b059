package main

import (
	"errors"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// smallBatch is the datagrams that a ticked client reads or writes at once.
const smallBatch = 2

// tickedConn is a client without a goroutine: who has it ticks it, as a game does in its loop. It is an ourConn
// as a server has them, so it needs no lock.
type tickedConn struct {
	ourConn
	now    time.Time // of the last Tick
	joined bool
	err    error
}

// dialTicked is dial for clients of which a process has thousands.
func (s setting) dialTicked(addr string, o Options, h Handler) (Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	c := &tickedConn{ourConn: ourConn{h: h, unreliable: o.Unreliable, single: o.single(), msg: make([]byte, w3Size)}}
	cfg, err := s.clientConfig(addr, o, &c.ourConn, func(err error) { c.joined, c.err = true, err })
	if err != nil {
		return nil, err
	}
	if cfg.Socket, err = newSmallSocket(to); err != nil {
		return nil, err
	}
	if c.d, err = driver.Dial(addr, cfg); err != nil {
		return nil, err
	}
	if err = c.join(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// join ticks until the connection is there.
func (c *tickedConn) join() error {
	for end := time.Now().Add(dialTimeout); !c.joined && c.d.Err() == nil; time.Sleep(2 * time.Millisecond) {
		c.Tick(time.Now())
		if err := c.Flush(); err != nil {
			return err
		}
		if c.now.After(end) {
			return errDial
		}
	}
	return errors.Join(c.err, c.d.Err())
}

// Tick takes in what has come.
func (c *tickedConn) Tick(now time.Time) {
	c.now = now
	c.d.TickDispatch(now)
}

// Flush sends what was written since the last one, and what is due.
func (c *tickedConn) Flush() error {
	c.d.TickFlush(c.now)
	return nil
}

func (c *tickedConn) Close() error { return c.d.Close() }
