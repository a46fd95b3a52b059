package main

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

func init() {
	register(
		attack{area: "core", name: "reason: version", promise: "a client of another version learns that, at 10 % loss and 45 to 55 ms", bound: none("never told"),
			run: func(e *env) figure { return refusals(e, refusal{words: "version", version: true}) }},
		attack{area: "core", name: "reason: refused login", promise: "a client whose login is refused learns the game's words", bound: none("never told"),
			run: func(e *env) figure { return refusals(e, refusal{words: "you are banned", banned: true}) }},
		attack{area: "core", name: "reason: kick", promise: "a client that is kicked learns the game's words", bound: none("never told"),
			run: func(e *env) figure { return refusals(e, refusal{words: "kicked for good", kick: true}) }},
		attack{area: "core", name: "reason: full", promise: "a client of a full server learns that it is full", bound: none("never told"),
			run: func(e *env) figure { return refusals(e, refusal{words: "full", full: true}) }},
		attack{area: "core", name: "reason: already on", promise: "a client whose id is on the server already learns that", bound: none("never told"),
			run: func(e *env) figure { return refusals(e, refusal{words: "already", twice: true}) }},
	)
}

// refusal is a reason for which a server ends a client's connection, and words that its client must be told.
type refusal struct {
	words                              string
	version, banned, kick, full, twice bool
}

// refusals has many clients refused, over all links that the reason exists on, and counts those that never learn why.
func refusals(e *env, r refusal) figure {
	names := []string{"netcode", "salted", "unreal"}
	if r.twice {
		names = names[:1] // the others know no ids
	}
	const crowd = 20
	clients, untold := e.pick(120, 1020), 0
	for n := 0; n < clients; n += crowd {
		link := names[n/crowd%len(names)]
		told, reasons, err := r.play(e, link, crowd)
		if err != nil {
			return broken("%s: %v", link, err)
		}
		untold += crowd - told
		if told < crowd {
			e.notef("%s: %d of %d weren't told, but %q", link, crowd-told, crowd, reasons)
		}
	}
	return figure{value: float64(untold)}
}

// play has a number of clients refused by one server.
func (r *refusal) play(e *env, link string, crowd int) (told int, reasons []string, err error) {
	made := links[link]
	e.seed++
	w := newWorld(e, func() driver.Link {
		if !r.twice {
			return made()
		}
		unix := uint64(simtest.Epoch.Unix())
		token, tokenErr := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 42, ClientID: 7, Create: unix, Expire: unix + 600, Timeout: 10,
			Servers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7777")}, PrivateKey: gameKey})
		if tokenErr != nil {
			err = tokenErr
		}
		return driver.Netcode{ProtocolID: 42, Key: gameKey, Token: token}
	}, func(m *member, c *driver.Config) {
		switch {
		case r.version && m.host.IsServer():
			c.Server.NetworkVersion = 2
		case r.version:
			c.Client.NetworkVersion = 1
		case r.banned:
			c.Server.Authorize = func(*control.Login) error { return errors.New("you are banned") }
		case r.kick && m.host.IsServer():
			c.Joined = func(conn *driver.Conn) { conn.CloseWithReason("kicked for good") }
		case r.full:
			c.MaxConns = 1
			if l, ok := c.Link.(driver.PlainSalted); ok {
				l.Slots = 1
				c.Link = l
			}
		}
	})
	net := netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}
	var first *member
	if r.full || r.twice {
		first = w.join(netsim.Settings{Lag: 20 * time.Millisecond})
		if !w.runUntil(5*time.Second, func() bool { return first.conn != nil && first.conn.Joined() }) {
			return 0, nil, errors.Join(errors.New("the first client couldn't join"), w.err)
		}
	}
	for range crowd {
		w.join(net)
	}
	waiting := func(m *member) bool {
		return m != first && m.result == nil && (m.driver == nil || m.driver.Err() == nil)
	}
	w.runUntil(90*time.Second, func() bool { return !slices.ContainsFunc(w.clients, waiting) })
	if first != nil && first.result != nil {
		return 0, nil, errors.New("the first client was lost: " + first.result.String())
	}
	for _, m := range w.clients {
		if m == first {
			continue
		}
		text := "nothing"
		if m.result != nil {
			text = m.result.String()
		}
		if m.driver != nil && m.driver.Err() != nil {
			text += "; " + m.driver.Err().Error()
		}
		if strings.Contains(text, r.words) {
			told++
		} else if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	return told, reasons, w.err
}
