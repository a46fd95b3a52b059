//go:build js

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/web"
)

// move plays until its connection has gone on by another session, and all that it sent has come back: moves, URLs of WebTransport and WebSocket, hash of the certificate, token,
// address of the server.
func move(args []string) (err error) {
	cfg := web.LadderConfig{URL: args[1], WebSocketURL: args[2], HeadStart: 5 * time.Second} // so that it begins with WebTransport
	if _, err := hex.Decode(cfg.Dial.CertificateHash[:], []byte(args[3])); err != nil {
		return err
	}
	token, err := hex.DecodeString(args[4])
	if err != nil {
		return err
	}
	cfg.Token = netcode.Token(token)
	ladder, err := web.DialBest(context.Background(), cfg)
	if err != nil {
		return err
	}
	var conn *driver.Conn
	name := bunch.Name{Index: 300}
	cl, err := driver.Dial(args[5], driver.Config{Socket: ladder, Link: driver.Netcode{Token: cfg.Token}, Channels: []channel.Type{{Name: name, ClientOpen: true}},
		Joined: func(c *driver.Conn) { conn = c }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	got, sent := &sink{}, []string{}
	var ch *channel.Channel
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		now := time.Now()
		cl.TickDispatch(now)
		switch {
		case conn == nil:
		case ch == nil:
			if ch, err = conn.Open(name, got); err != nil {
				return err
			}
		case ladder.Moved() == 0 && len(sent) < len(got.got)+messages:
			text := fmt.Sprint(len(sent))
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true}); err != nil {
				return err
			}
			sent = append(sent, text)
		}
		cl.TickFlush(now)
		switch {
		case cl.Err() != nil:
			return cl.Err()
		case conn != nil && conn.Closed():
			return fmt.Errorf("the connection ended: %v", conn.Result())
		case now.After(end):
			return fmt.Errorf("%d of %d came back; %v", len(got.got), len(sent), ladder)
		case ladder.Moved() > 0 && len(got.got) == len(sent):
			if way, _ := ladder.Way(); way != web.WebSocket || !slices.Equal(got.got, sent) {
				return fmt.Errorf("%v: what came back isn't what was sent", ladder)
			}
			return nil
		}
	}
}
