// Package drivertest tests whether drivers connect over a kind of socket as over any other: each link, the login, channels both ways, and the end. It is for
// the tests of packages that make sockets.
package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

const patience = time.Minute // for anything, on a busy machine

var (
	key      = netcode.Key{1, 2, 3}
	chatName = bunch.Name{Index: 300}
)

// Run runs all tests on sockets that open makes: a client's, and the server's that it reaches.
func Run(t *testing.T, open udptest.Open) {
	t.Run("default", func(t *testing.T) { testLink(t, open, nil, nil) })
	t.Run("salted", func(t *testing.T) { testLink(t, open, driver.PlainSalted{}, driver.PlainSalted{}) })
	t.Run("netcode", func(t *testing.T) { testLink(t, open, driver.Netcode{Key: key}, driver.Netcode{Key: key}) })
	t.Run("refused", func(t *testing.T) { testRefused(t, open) })
	t.Run("silence", func(t *testing.T) { testSilence(t, open) })
}

// sink notes what it gets, and sends it back when it is the server's.
type sink struct {
	channel.Nop
	got  []string
	echo bool
}

func (s *sink) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	s.got = append(s.got, string(b))
	if s.echo {
		_, _ = ch.SendBunch(&bunch.Out{Data: b, Reliable: in.Reliable, NoMerge: true})
	}
}

// pair is a server and a client.
type pair struct {
	t              *testing.T
	server, client *driver.Driver
	sc, cc         *driver.Conn
	sres, cres     *netconn.CloseResult
	silent         bool // the server isn't ticked
}

func newPair(t *testing.T, open udptest.Open, sc, cc driver.Config) *pair {
	t.Helper()
	p := &pair{t: t}
	cc.Socket, sc.Socket = open(t)
	at := sc.Socket.LocalAddr()
	sc.Joined, cc.Joined = func(c *driver.Conn) { p.sc = c }, func(c *driver.Conn) { p.cc = c }
	sc.Closed, cc.Closed = func(_ *driver.Conn, r netconn.CloseResult) { p.sres = &r }, func(_ *driver.Conn, r netconn.CloseResult) { p.cres = &r }
	var err error
	if p.server, err = driver.Listen("", sc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close(p.server) })
	if p.client, err = driver.Dial(at.String(), cc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close(p.client) })
	return p
}

func (p *pair) close(d *driver.Driver) {
	if err := d.Close(); err != nil {
		p.t.Error(err)
	}
}

// until ticks both until f.
func (p *pair) until(what string, f func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
		now := time.Now()
		if now.After(end) {
			p.t.Fatalf("never: %s; server %+v %v, client %+v %v", what, p.server.Counters, p.sres, p.client.Counters, p.cres)
		}
		if !p.silent {
			p.server.TickDispatch(now)
			p.server.TickFlush(now)
		}
		p.client.TickDispatch(now)
		p.client.TickFlush(now)
	}
}

// testLink: a client logs in, what it sends comes back whole and in order, small and large, and each end learns why the other has closed.
func testLink(t *testing.T, open udptest.Open, server, client driver.Link) {
	for _, byServer := range []bool{false, true} {
		e, got := &sink{echo: true}, &sink{}
		p := newPair(t, open, driver.Config{Link: server, Server: control.ServerConfig{Map: "yard"},
			Channels: []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return e }}}},
			driver.Config{Link: client, Client: control.ClientConfig{URL: "?Name=Ann"}, Channels: []channel.Type{{Name: chatName, ClientOpen: true}}})
		p.until("joined", func() bool { return p.sc != nil && p.cc != nil })
		if p.sc.Login().URL != "?Name=Ann" || p.cc.Welcome().Map != "yard" || p.cc.RemoteAddr() != p.server.LocalAddr() {
			t.Fatalf("%+v, %+v, %v", p.sc.Login(), p.cc.Welcome(), p.cc.RemoteAddr())
		}
		ch, err := p.cc.Open(chatName, got)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range 40 {
			text := fmt.Sprintf("%d %s", i, strings.Repeat("x", i*i*5)) // up to seven packets
			want = append(want, text)
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true}); err != nil {
				t.Fatal(err)
			}
		}
		p.until("echoed", func() bool { return len(got.got) >= len(want) })
		if !slices.Equal(want, got.got) || !slices.Equal(want, e.got) {
			t.Fatalf("%q, not %q", got.got, want)
		}
		got.got = nil
		p.until("something unreliable has come back", func() bool {
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte("now")}); err != nil {
				t.Fatal(err)
			}
			return len(got.got) > 0
		})
		first, second := &p.cres, &p.sres
		if byServer {
			p.sc.CloseWithReason("enough")
			first, second = second, first
		} else {
			p.cc.CloseWithReason("enough")
		}
		p.until("closed", func() bool { return p.sres != nil && p.cres != nil })
		if a, b := *first, *second; a.Code != netconn.ClosedByUs || a.Unacked != 0 || b.Code != netconn.ClosedByPeer || b.Reason != "enough" {
			t.Fatalf("%v, %v", a, b)
		}
	}
}

// testRefused: a client whose login is refused learns why.
func testRefused(t *testing.T, open udptest.Open) {
	p := newPair(t, open, driver.Config{Link: driver.PlainSalted{}, Server: control.ServerConfig{Authorize: func(*control.Login) error { return errors.New("banned") }}},
		driver.Config{Link: driver.PlainSalted{}})
	p.until("refused", func() bool { return p.cres != nil })
	if p.sc != nil || !strings.Contains(p.cres.String(), "banned") {
		t.Fatal(p.cres)
	}
}

// testSilence: a server that falls silent is noticed.
func testSilence(t *testing.T, open udptest.Open) {
	p := newPair(t, open, driver.Config{Link: driver.PlainSalted{}}, driver.Config{Link: driver.PlainSalted{}, Timeout: 500 * time.Millisecond})
	p.until("joined", func() bool { return p.sc != nil && p.cc != nil })
	p.silent = true
	p.until("timed out", func() bool { return p.cres != nil })
	if p.cres.Code != netconn.TimedOut {
		t.Fatal(p.cres)
	}
}
