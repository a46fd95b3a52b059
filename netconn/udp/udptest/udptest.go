// Package udptest tests whether a kind of socket behaves as a [udp.Socket] must. It is for the tests of packages that make one.
package udptest

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Open makes two sockets. What a sends to b's LocalAddr must arrive at b. What b sends to the address where that came from must
// arrive at a. Datagrams may be lost. The test closes both.
type Open func(t *testing.T) (a, b udp.Socket)

const (
	patience = time.Minute            // for anything, on a busy machine
	again    = 100 * time.Millisecond // a datagram that hasn't come is sent again
	rounds   = 50
)

// Run runs all tests on sockets that open makes.
func Run(t *testing.T, open Open) {
	t.Run("datagrams", func(t *testing.T) { testDatagrams(t, open) })
	t.Run("deadlines", func(t *testing.T) { testDeadlines(t, open) })
	t.Run("interrupts", func(t *testing.T) { testInterrupts(t, open) })
}

func messages(n int) []udp.Message {
	msgs := make([]udp.Message, n)
	for i := range msgs {
		msgs[i].Buf = make([]byte, 1500)
	}
	return msgs
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, not %v", err, want)
	}
}

// send writes a datagram until it has arrived, and returns where it came from.
func send(t *testing.T, from, to udp.Socket, addr netip.AddrPort, p []byte) netip.AddrPort {
	t.Helper()
	in := messages(to.BatchSize())
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := from.WriteBatch([]udp.Message{{Buf: p, Addr: addr}})
		check(t, err)
		if n != 1 {
			t.Fatalf("%d datagrams were written, not 1", n)
		}
		check(t, to.SetReadDeadline(time.Now().Add(again)))
		n, err = to.ReadBatch(in)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		check(t, err)
		for i := range in[:n] {
			if bytes.Equal(in[i].Data(), p) { // not an earlier one that came twice
				return in[i].Addr
			}
		}
	}
	t.Fatalf("a datagram of %d bytes never arrived", len(p))
	return netip.AddrPort{}
}

// testDatagrams: datagrams of all sizes that packets have arrive whole, at both ends, from one address; nothing is read that wasn't sent; a socket
// that is closed says so.
func testDatagrams(t *testing.T, open Open) {
	a, b := open(t)
	in := messages(100)
	n, err := b.TryReadBatch(in)
	check(t, err)
	if n != 0 {
		t.Fatalf("%d datagrams came, and none was sent", n)
	}
	var from netip.AddrPort
	for i := range 1100 {
		if i > 50 && i%50 != 0 {
			continue
		}
		p := append(bytes.Repeat([]byte{byte(i)}, i), byte(i>>8))
		addr := send(t, a, b, b.LocalAddr(), p)
		if from.IsValid() && addr != from {
			t.Fatalf("a peer at %v is at %v now", from, addr)
		}
		from = addr
		send(t, b, a, from, p)
	}
	check(t, a.Close())
	_, err = a.TryReadBatch(in)
	expect(t, err, net.ErrClosed)
	_, err = a.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: b.LocalAddr()}})
	expect(t, err, net.ErrClosed)
	check(t, b.Close())
}

// testDeadlines: a deadline that another goroutine sets ends a read that waits, and one that has passed is looked at before
// what there is to read; TryReadBatch doesn't look at it.
func testDeadlines(t *testing.T, open Open) {
	a, b := open(t)
	check(t, b.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := b.ReadBatch(messages(1))
	expect(t, err, os.ErrDeadlineExceeded)
	check(t, b.SetReadDeadline(time.Now().Add(time.Hour)))
	ended := make(chan error)
	go func() {
		_, err := b.ReadBatch(messages(1))
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond) // so that it most likely waits
	check(t, b.SetReadDeadline(time.Unix(1, 0)))
	expect(t, <-ended, os.ErrDeadlineExceeded)
	for n, end := 0, time.Now().Add(patience); n == 0; {
		if time.Now().After(end) {
			t.Fatal("nothing arrived")
		}
		_, err := a.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: b.LocalAddr()}})
		check(t, err)
		_, err = b.ReadBatch(messages(1))
		expect(t, err, os.ErrDeadlineExceeded)
		n, err = b.TryReadBatch(messages(1))
		check(t, err)
	}
	check(t, a.Close())
	check(t, b.Close())
}

// testInterrupts: a read that waits ends when another goroutine sets its deadline, when something comes, or when the socket is closed.
func testInterrupts(t *testing.T, open Open) {
	a, b := open(t)
	to := send(t, a, b, b.LocalAddr(), []byte("hello"))
	in := messages(1)
	read := make(chan error)
	reader := func() {
		_, err := a.ReadBatch(in)
		read <- err
	}
	for range rounds {
		check(t, a.SetReadDeadline(time.Time{}))
		go reader()
		check(t, a.SetReadDeadline(time.Unix(1, 0)))
		expect(t, <-read, os.ErrDeadlineExceeded)
	}
	check(t, a.SetReadDeadline(time.Time{}))
	go reader()
	for came := false; !came; {
		_, err := b.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: to}})
		check(t, err)
		select {
		case err := <-read:
			check(t, err)
			came = true
		case <-time.After(again):
		}
	}
	for n := 1; n > 0; { // what was sent again meanwhile
		var err error
		n, err = a.TryReadBatch(in)
		check(t, err)
	}
	go func() {
		for { // a datagram that comes late ends a read too
			if _, err := a.ReadBatch(in); err != nil {
				read <- err
				return
			}
		}
	}()
	check(t, a.Close())
	expect(t, <-read, net.ErrClosed)
	check(t, b.Close())
}
