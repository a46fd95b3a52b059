package game

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// table is a server with a client at the host's place, and room for another.
type table struct {
	t      *testing.T
	now    time.Time
	server *Server
	other  udp.Socket
	ann    *Client
}

func newTable(t *testing.T) *table {
	e := &table{t: t, now: time.Unix(1000, 0)}
	a, b := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := udp.WithLocal(a, netip.MustParseAddrPort("127.0.0.1:1"))
	var err error
	if e.server, err = Listen("", driver.Config{Socket: both, Clock: e.clock, Link: driver.PlainSalted{}}, 1); err != nil {
		t.Fatal(err)
	}
	e.other, e.ann = b, e.dial(own, "Ann")
	return e
}

func (e *table) clock() time.Time { return e.now }

func (e *table) dial(s udp.Socket, name string) *Client {
	c, err := Dial("10.0.0.1:7777", driver.Config{Socket: s, Clock: e.clock, Link: driver.PlainSalted{}, Timeout: 10 * time.Second}, name, func(*Client) Input { return Input{} })
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

// play ticks the server and clients for a time of the game's, and returns each one's first error.
func (e *table) play(d time.Duration, clients ...*Client) (client []error, server error) {
	client = make([]error, len(clients))
	for end := e.now.Add(d); e.now.Before(end) && server == nil; e.now = e.now.Add(time.Second / 60) {
		for i, c := range clients {
			if client[i] == nil {
				client[i] = errors.Join(c.Tick(e.now), c.Driver.Err())
			}
		}
		server = e.server.Tick(e.now)
	}
	return client, server
}

// TestNames: a name that the score board has no room for, or that a terminal would obey, is refused with its reason; who is there plays on.
func TestNames(t *testing.T) {
	for name, why := range map[string]string{"": "1 to 24", strings.Repeat("x", 25): "1 to 24", "Eve\x1b[31m": "print", "Eve\xff": "print", "Eve\u202e": "print"} {
		e := newTable(t)
		if c, s := e.play(2*time.Second, e.ann); s != nil || c[0] != nil {
			t.Fatal(s, c)
		}
		eve := e.dial(e.other, name)
		c, s := e.play(5*time.Second, e.ann, eve)
		if s != nil || c[0] != nil || c[1] == nil || !strings.Contains(c[1].Error(), why) {
			t.Errorf("%q: server %v, Ann %v, the stranger %v", name, s, c[0], c[1])
		}
	}
	e := newTable(t)
	bob := e.dial(e.other, strings.Repeat("ü", 12))
	if c, s := e.play(5*time.Second, e.ann, bob); s != nil || c[0] != nil || c[1] != nil || e.ann.Score(strings.Repeat("ü", 12)) != 0 {
		t.Errorf("a name of 24 bytes: server %v, clients %v", s, c)
	}
}

// TestServerGone: a player is told that the server has gone, and why.
func TestServerGone(t *testing.T) {
	e := newTable(t)
	if c, s := e.play(2*time.Second, e.ann); s != nil || c[0] != nil {
		t.Fatal(s, c)
	}
	e.server.Driver.Shutdown("good night")
	if c, s := e.play(5*time.Second, e.ann); s != nil || c[0] == nil || !strings.Contains(c[0].Error(), "good night") {
		t.Errorf("server %v, Ann %v", s, c)
	}
}

// TestSpectator: a spectator sees all of the game with its delay, and is no player; a server without spectators refuses one.
func TestSpectator(t *testing.T) {
	const delay = 4 * time.Second
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	a, b := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := udp.WithLocal(a, netip.MustParseAddrPort("127.0.0.1:1"))
	server, err := ListenDelayed("", driver.Config{Socket: both, Clock: clock, Link: driver.PlainSalted{}}, 1, delay)
	if err != nil {
		t.Fatal(err)
	}
	ann, err := Dial("10.0.0.1:7777", driver.Config{Socket: own, Clock: clock, Link: driver.PlainSalted{}}, "Ann", Bot)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Spectate("10.0.0.1:7777", driver.Config{Socket: b, Clock: clock, Link: driver.PlainSalted{}})
	if err != nil {
		t.Fatal(err)
	}
	for begin := now; now.Sub(begin) < 20*time.Second; now = now.Add(time.Second / 60) {
		if err := errors.Join(ann.Tick(now), s.Tick(now), server.Tick(now)); err != nil {
			t.Fatal(err)
		}
		if at := s.Shown(); at > 0 && now.Sub(begin)-at < delay {
			t.Fatalf("after %v the spectator sees %v", now.Sub(begin), at)
		}
	}
	rows, ammo := s.Board()
	if v := s.View(); v.Drones != server.Drones() || v.Crates != server.Crates() || len(rows) != 1 || ammo != 0 || v.OthersAmmo != 0 {
		t.Errorf("%+v, %v", v, rows)
	}
	if at := s.Shown(); at < 20*time.Second-delay-4*time.Second {
		t.Errorf("after 20 s the spectator sees %v", at)
	}
	e := newTable(t)
	if s, err = Spectate("10.0.0.1:7777", driver.Config{Socket: e.other, Clock: e.clock, Link: driver.PlainSalted{}}); err != nil {
		t.Fatal(err)
	}
	if c, srv := e.play(3*time.Second, e.ann, s); srv != nil || c[0] != nil || c[1] == nil || !strings.Contains(c[1].Error(), "nothing for spectators") {
		t.Error(c, srv)
	}
}

// TestScoreKept: who left for good and comes back under the same name has the score that the match has for that name.
func TestScoreKept(t *testing.T) {
	e := newTable(t)
	if c, s := e.play(2*time.Second, e.ann); s != nil || c[0] != nil {
		t.Fatal(s, c)
	}
	bob := e.dial(e.other, "Bob")
	if c, s := e.play(2*time.Second, e.ann, bob); s != nil || c[0] != nil || c[1] != nil {
		t.Fatal(s, c)
	}
	for p := range e.server.players.All {
		if p.tank.Name == "Bob" {
			e.server.score(p.tank)
			e.server.score(p.tank)
		}
	}
	bob.Driver.Shutdown("")
	there := func() bool { _, ok := e.server.Place("Bob"); return ok }
	for range 120 { // seconds
		if c, s := e.play(time.Second, e.ann, bob); s != nil || c[0] != nil {
			t.Fatal(s, c)
		}
		if !there() {
			break
		}
	}
	if there() {
		t.Fatal("Bob has left, and is there two minutes later")
	}
	bob = e.dial(e.other, "Bob")
	if c, s := e.play(3*time.Second, e.ann, bob); s != nil || c[0] != nil || c[1] != nil || !there() {
		t.Fatal(s, c)
	}
	if a, b := e.ann.Score("Bob"), bob.Score("Bob"); a != 2 || b != 2 || e.server.Hits["Bob"] != 2 {
		t.Errorf("Bob hit %d, the boards have %d and %d", e.server.Hits["Bob"], a, b)
	}
}
