//go:build js

// Player is a client for the tests in browsers: it joins, has all that it sends echoed, and says how that went.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/web"
)

const (
	messages = 60
	large    = 20_000 // bytes of one that fills packets
	last     = 60     // datagrams of 1000 bytes before Close, fewer than a SendBuffer has
	// leastSize is that of the packets that are found, in both directions, above the base size of 1024; from Chromium datagrams have 1215 bytes at most, netcode's 25 among them.
	leastSize = 1215 - 25 - 16
)

// measured is a socket that notes the largest datagram that came.
type measured struct {
	*web.Client
	largest int
}

// TryReadBatch implements udp.Socket.
func (m *measured) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := m.Client.TryReadBatch(msgs)
	for i := range msgs[:n] {
		m.largest = max(m.largest, msgs[i].N)
	}
	return n, err
}

func main() {
	args := os.Args[1:]
	if v := js.Global().Get("playerArgs"); v.Type() == js.TypeString {
		args = strings.Fields(v.String())
	}
	result := "PASS"
	if err := run(args); err != nil {
		result = "FAIL: " + err.Error()
	}
	fmt.Println(result)
	if f := js.Global().Get("playerEnded"); f.Type() == js.TypeFunction {
		f.Invoke(result)
	}
	if result != "PASS" {
		os.Exit(1)
	}
}

// sink notes what it gets.
type sink struct {
	channel.Nop
	got []string
}

func (s *sink) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	s.got = append(s.got, string(b))
}

// leave closes the driver when more waits than the browser takes at once: all is sent.
func leave(cl *driver.Driver, socket *measured, server string) error {
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		return err
	}
	before := socket.Counters()
	for range last {
		if _, err := socket.WriteBatch([]udp.Message{{Buf: make([]byte, 1000), Addr: to}}); err != nil {
			return err
		}
	}
	if err := cl.Close(); err != nil {
		return err
	}
	n := socket.Counters()
	if n.Sent < before.Sent+last {
		return fmt.Errorf("%d of the last %d datagrams and more were sent", n.Sent-before.Sent, last)
	}
	fmt.Println("sent", n.Sent)
	return nil
}

// run plays: url, way, hash of the certificate or -, key and address of the server.
func run(args []string) (err error) {
	if len(args) == 6 && args[0] == "moves" {
		return move(args)
	}
	if len(args) != 5 {
		return fmt.Errorf("%d arguments: %q", len(args), args)
	}
	cfg := web.DialConfig{Way: web.WebTransport}
	if args[1] == web.WebSocket.String() {
		cfg.Way = web.WebSocket
	}
	if args[2] != "-" {
		if _, err := hex.Decode(cfg.CertificateHash[:], []byte(args[2])); err != nil {
			return err
		}
	}
	key, err := netcode.ParseKey(args[3])
	if err != nil {
		return err
	}
	dialed, err := web.Dial(context.Background(), args[0], cfg)
	if err != nil {
		return err
	}
	socket := &measured{Client: dialed}
	var conn *driver.Conn
	name := bunch.Name{Index: 300}
	cl, err := driver.Dial(args[4], driver.Config{Socket: socket, Link: driver.Netcode{Key: key}, Channels: []channel.Type{{Name: name, ClientOpen: true}},
		Joined: func(c *driver.Conn) { conn = c }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave(cl, socket, args[4])) }()
	got, sent := &sink{}, []string{}
	var ch *channel.Channel
	for end := time.Now().Add(30 * time.Second); ; {
		now := time.Now()
		cl.TickDispatch(now)
		if conn != nil && ch == nil {
			if ch, err = conn.Open(name, got); err != nil {
				return err
			}
			for i := range messages {
				text := fmt.Sprint(i, strings.Repeat("x", i*50))
				if _, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true}); err != nil {
					return err
				}
				sent = append(sent, text)
			}
		}
		cl.TickFlush(now)
		n := socket.Counters()
		switch {
		case cl.Err() != nil:
			return cl.Err()
		case now.After(end) && conn != nil:
			return fmt.Errorf("%d of %d came back; packets of %d and %d bytes; %+v", len(got.got), len(sent), conn.Stats().PacketSize, socket.largest, n)
		case now.After(end):
			return fmt.Errorf("it didn't join; %+v", n)
		case ch == nil:
		case len(got.got) == len(sent) && !slices.Equal(got.got, sent):
			return fmt.Errorf("what came back isn't what was sent")
		case n.Unread > 0:
			return fmt.Errorf("some was lost: %+v", n)
		case len(got.got) < len(sent):
		case conn.Stats().PacketSize >= leastSize && socket.largest >= leastSize:
			return nil
		default:
			text := strings.Repeat("x", large)
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true}); err != nil {
				return err
			}
			sent = append(sent, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
