package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/ice/rendezvous"
)

// patience is how long anything may take on a machine that has much else to do.
const patience = 2 * time.Minute

// check plays as a host and two guests, one of them by the relay, and compares what all have.
func check(ctx context.Context, out io.Writer, o options) (err error) {
	o.check, o.serve, o.relay, o.relayTLS, o.relayAddr, o.cert, o.trust, o.bot = true, "127.0.0.1:0", "127.0.0.1:0", "", "127.0.0.1", "", "", true
	s, err := open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o.at, o.public, o.name = s.url, true, "Ann"
	m, err := newMatch(ctx, o, game.Bot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	told := func(what string) { fmt.Fprintln(out, what) }
	fmt.Fprintf(out, "code: %s\n", m.room.Code)
	friends := map[string]*friend{}
	tick := func() error {
		now := time.Now()
		err := errors.Join(ctx.Err(), m.tick(ctx, now, told))
		for _, f := range friends {
			err = errors.Join(err, f.tick(now, func(string) {}))
		}
		time.Sleep(frame)
		return err
	}
	defer func() {
		for _, f := range friends {
			err = errors.Join(err, f.Driver.Close())
		}
	}()
	// join joins while the game goes on.
	join := func(name string, o options) (*friend, error) {
		type result struct {
			f   *friend
			err error
		}
		done := make(chan result, 1)
		o.name = name
		go func() {
			f, err := joinGame(ctx, o, game.Bot)
			done <- result{f, err}
		}()
		for {
			select {
			case r := <-done:
				return r.f, r.err
			default:
			}
			if err := tick(); err != nil {
				return nil, errors.Join(err, (<-done).err)
			}
		}
	}
	wrong := o
	wrong.join = "QUACK-0000000"
	if _, err := join("Mallory", wrong); !errors.Is(err, rendezvous.ErrNoRoom) {
		return fmt.Errorf("a code that nobody has: %w", err)
	}
	wrong.join = m.room.Link()[:len(m.room.Link())-4] + "AAAA"
	if _, err := join("Mallory", wrong); !errors.Is(err, rendezvous.ErrNoRoom) && !errors.Is(err, rendezvous.ErrCode) {
		return fmt.Errorf("a link to another host: %w", err)
	}
	want := map[string]ice.Path{"Bob": ice.Direct, "Cid": ice.ByRelay}
	for name, path := range want {
		o := o
		o.join, o.relayOnly = m.room.Link(), path == ice.ByRelay
		if friends[name], err = join(name, o); err != nil {
			delete(friends, name)
			return fmt.Errorf("%s: %w", name, err)
		}
		if got, _ := friends[name].socket.Path(); got != path {
			return fmt.Errorf("%s's path is %v, not %v", name, got, path)
		}
	}
	seconds := o.seconds
	if seconds == 0 {
		seconds = 5
	}
	until := func(what string, f func() error) (err error) {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if err = f(); err == nil {
				return nil
			}
			if err := tick(); err != nil {
				return err
			}
		}
		return fmt.Errorf("%s: not after %v: %w", what, patience, err)
	}
	if err := until("all play", func() error {
		for name, f := range friends {
			if _, ok := f.Own(); !ok {
				return fmt.Errorf("%s has no tank", name)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		if err := tick(); err != nil {
			return err
		}
	}
	m.game.Still()
	m.own.Still()
	for _, f := range friends {
		f.Still()
	}
	if err := until("all agree", func() error {
		board := m.own.View().Board
		for name, f := range friends {
			truth, there := m.game.Place(name)
			at, ok := f.Own()
			switch {
			case !there || !ok:
				return fmt.Errorf("%s has no tank", name)
			case truth.Distance(at) > 0.05:
				return fmt.Errorf("%s's tank is at %v, and feels to be at %v", name, truth, at)
			case f.View().Board != board:
				return fmt.Errorf("%s has the score board %s, the host %s", name, f.View().Board, board)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	games, err := rendezvous.Games(ctx, nil, s.url)
	if err != nil || len(games) != 1 || games[0].Code != m.room.Code || games[0].Players != 3 {
		return fmt.Errorf("the list of public games is %v: %w", games, err)
	}
	n := m.socket.Counters()
	if n.Unsealed > 0 {
		return fmt.Errorf("%d datagrams weren't sealed", n.Unsealed)
	}
	fmt.Fprintf(out, "%d guests: %d direct, %d through the router, %d relayed; %d datagrams received, %d sent\n", n.Sessions, n.Direct, n.Routed, n.Relayed, n.Received, n.Sent)
	_, err = fmt.Fprintln(out, "PASS: a direct and a relayed guest have the host's world; a wrong code and a wrong link were refused")
	return err
}
