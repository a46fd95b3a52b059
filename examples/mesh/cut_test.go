package main

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestCuts: a command cuts a direction, or both, at both ends, and nothing else.
func TestCuts(t *testing.T) {
	for line, want := range map[string][2]cuts{ // of servers 1 and 2
		"cut 1":           {{To: reach{All: true}, From: reach{All: true}}},
		"cut 1 to all":    {{To: reach{All: true}}},
		"cut 1 nats":      {{To: reach{Store: true}, From: reach{Store: true}}},
		"cut 1 to nats":   {{To: reach{Store: true}}},
		"cut 1 from nats": {{From: reach{Store: true}}},
		"cut 1 2":         {{To: reach{Servers: []int{2}}, From: reach{Servers: []int{2}}}, {To: reach{Servers: []int{1}}, From: reach{Servers: []int{1}}}},
		"cut 1 to 2":      {{To: reach{Servers: []int{2}}}, {From: reach{Servers: []int{1}}}},
		"cut 1 from 2":    {{From: reach{Servers: []int{2}}}, {To: reach{Servers: []int{1}}}},
	} {
		g := &mesher{}
		for i := range g.slots {
			g.slots[i] = &slot{number: i + 1}
		}
		if err := g.do(line, time.Now()); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for i, w := range want {
			for what, r := range map[string][2]reach{"to": {g.slots[i].cut.To, w.To}, "from": {g.slots[i].cut.From, w.From}} {
				if r[0].All != r[1].All || r[0].Store != r[1].Store || !slices.Equal(r[0].Servers, r[1].Servers) {
					t.Errorf("%s: server %d, %s: %+v, and it should be %+v", line, i+1, what, r[0], r[1])
				}
			}
		}
	}
}

// TestCutOneWay: of a socket and a TCP connection that are cut in one direction, the other one goes on.
func TestCutOneWay(t *testing.T) {
	for _, c := range []struct{ to, from bool }{{}, {to: true}, {from: true}, {true, true}} {
		near, far := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1"))
		s := cutSocket{near, func() bool { return c.to }, func() bool { return c.from }}
		pass := func(out, in udp.Socket) bool {
			_, err := out.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: in.LocalAddr()}})
			if err != nil {
				t.Fatal(err)
			}
			n, err := in.TryReadBatch([]udp.Message{{Buf: make([]byte, 100)}})
			return n > 0 && err == nil
		}
		if to, from := pass(s, far), pass(far, s); to == c.to || from == c.from {
			t.Errorf("%+v: it passes to %v, from %v", c, to, from)
		}
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var d cutDialer
	dial := func() (near, far net.Conn) {
		near, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if far, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	say := func(out net.Conn, what string) {
		if _, err := out.Write([]byte(what)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(in net.Conn, want string) {
		t.Helper()
		b := make([]byte, 8)
		if n, err := in.Read(b); err != nil || string(b[:n]) != want {
			t.Fatalf("%q, and it should be %q: %v", b[:n], want, err)
		}
	}
	near, far := dial()
	say(near, "a")
	hear(far, "a")
	d.set(true, false)
	if _, err := d.Dial("tcp", l.Addr().String()); err == nil {
		t.Fatal("it dials while it is cut")
	}
	say(near, "lost")
	say(far, "b")
	hear(near, "b")
	d.set(false, false)
	if _, err := far.Read(make([]byte, 8)); err != io.EOF { // without what was lost the rest says nothing
		t.Fatal(err)
	}
	_ = far.Close()
	near, far = dial()
	d.set(false, true)
	say(far, "lost")
	say(near, "c")
	hear(far, "c")
	go d.set(false, false)
	if n, err := near.Read(make([]byte, 8)); err == nil {
		t.Fatalf("%d bytes came", n)
	}
	_ = far.Close()
}
