package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/web"
)

// player notes when something comes.
type player struct {
	channel.Nop
	id      uint64
	set     settings
	key     netcode.Key
	ctx     context.Context
	ladder  *web.Ladder
	last    time.Time     // something came
	since   time.Time     // and with pauses up to pause
	longest time.Duration // pause
	joins   int

	back bool // its path doesn't die
}

func (p *player) ReceivedBunch(*channel.Channel, *bunch.In) {
	now := time.Now()
	if gap := now.Sub(p.last); gap > p.longest {
		p.longest, p.since = gap, now
	}
	p.last = now
}

// dial is for a Redialer, or the only one.
func (p *player) dial() (*driver.Driver, error) {
	now := uint64(time.Now().Unix())
	server, err := netip.ParseAddrPort(p.set.UDP)
	if err != nil {
		return nil, err
	}
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: p.id, Create: now, Expire: now + 30, Timeout: 10, Servers: []netip.AddrPort{server}, PrivateKey: p.key})
	if err != nil {
		return nil, err
	}
	cfg := web.LadderConfig{UDP: server, URL: p.set.WebTransport, WebSocketURL: p.set.WebSocket, Ways: p.set.Ways, Last: p.ladder}
	hash, err := hex.DecodeString(p.set.Hash)
	if err != nil {
		return nil, err
	}
	copy(cfg.Dial.CertificateHash[:], hash)
	if p.set.Token {
		cfg.Token = token
	}
	if p.ladder, err = web.DialBest(p.ctx, cfg); err != nil {
		return nil, err
	}
	return driver.Dial(p.set.UDP, driver.Config{Socket: p.ladder, Link: driver.Netcode{Token: token}, Channels: []channel.Type{{Name: name, ClientOpen: true}},
		Joined: func(c *driver.Conn) {
			p.joins++
			ch, err := c.Open(name, p)
			if err == nil {
				_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
			}
			if err != nil {
				panic(err)
			}
		}})
}

// ticked is a Redialer or a driver.
type ticked interface {
	TickDispatch(now time.Time)
	TickFlush(now time.Time)
	Close() error
}

func (p *player) open() (ticked, error) {
	if p.set.Redial {
		cfg := session.RedialConfig{Dial: p.dial}
		if p.set.Token {
			cfg.Silence = 2 * time.Second // the ladder goes first
		}
		return session.NewRedialer(cfg)
	}
	return p.dial()
}

const (
	patience = 20 * time.Second
	calm     = time.Second // with messages, before and after
)

// play has players play; when the server says so on in, their path dies.
func play(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var set settings
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return err
	}
	key, err := netcode.ParseKey(set.Key)
	if err != nil {
		return err
	}
	now := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(in).ReadString('\n')
		now <- err
	}()
	var players []*player
	var all []ticked
	for i := range together {
		p := &player{id: uint64(i + 1), set: set, key: key, ctx: ctx}
		t, err := p.open()
		if err != nil {
			return err
		}
		players, all = append(players, p), append(all, t)
	}
	until := func(f func(p *player) bool) error {
		tick := time.NewTicker(time.Second / 60)
		defer tick.Stop()
		for end := time.Now().Add(patience); ; <-tick.C {
			now, done := time.Now(), 0
			for i, t := range all {
				t.TickDispatch(now)
				t.TickFlush(now)
				if f(players[i]) {
					done++
				}
			}
			if done == len(all) {
				return nil
			}
			if now.After(end) {
				return errors.New("nothing came any more")
			}
		}
	}
	began := time.Now() // what counts as silence depends on the last 10 s
	if err := until(func(p *player) bool { return !p.last.IsZero() && time.Since(began) > 11*calm }); err != nil {
		return err
	}
	fmt.Fprintln(out, "all play")
	said := false
	err = until(func(*player) bool {
		select {
		case err = <-now:
			said = true
		default:
		}
		return said
	})
	if err != nil {
		return err
	}
	for _, p := range players {
		p.longest, p.joins = 0, 0
		way, ok := p.ladder.Way()
		p.back = !ok || way != set.Ways[0] // another way was quicker
	}
	err = until(func(p *player) bool {
		return p.back || p.longest > 250*time.Millisecond && time.Since(p.since) > calm && time.Since(p.last) < calm/4
	})
	var r result
	for _, p := range players {
		if !p.back {
			r.Took, r.Dials = append(r.Took, p.longest), r.Dials+p.joins
		}
		if err != nil {
			err = fmt.Errorf("%w; %v", err, p.ladder)
		}
	}
	for _, t := range all {
		_ = t.Close() // the server is told, or isn't
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
