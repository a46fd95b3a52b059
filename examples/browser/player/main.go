//go:build js

// Player is the game's client in a page: it draws on a canvas, reads the keyboard, and comes to the server by the first way that answers.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/netconn/web"
)

const (
	tickTime  = time.Second / 60
	retryTime = time.Second
)

// player is the game in this page. All of it belongs to the one goroutine of main, and to what the browser calls while that one waits.
type player struct {
	cfg    config
	page   page
	client *game.Client // nil before the first connection
	ladder *web.Ladder
	net    *proxy.Impaired
	graph  graph
	ticks  times
	still  bool
	err    error     // of the last connection
	retry  time.Time // when to dial again
}

func main() {
	cfg, err := readConfig()
	p := &player{cfg: cfg, err: err}
	p.page = openPage(p)
	if cfg.Measure {
		measure()
		return
	}
	ticker := time.NewTicker(tickTime)
	for {
		select {
		case now := <-ticker.C:
			p.tick(now)
		case <-p.page.frames:
			p.draw()
		}
	}
}

// tick is a frame of the game's, or a new connection when there is none.
func (p *player) tick(now time.Time) {
	if p.cfg.Name == "" || now.Before(p.retry) {
		return
	}
	if p.client == nil || p.err != nil {
		p.retry = now.Add(retryTime)
		if err := p.dial(); err != nil {
			p.err = err
			p.page.event(err.Error())
			return
		}
		p.err = nil
	}
	began := time.Now()
	err := errors.Join(p.client.Tick(now), p.client.Driver.Err())
	p.ticks.add(time.Since(began))
	p.graph.sample(now, p.client)
	if err != nil {
		p.err = err
		p.page.event(err.Error())
		_ = p.client.Driver.Close()
	}
}

// dial gets a token and begins a connection. The player stays who it was, so it finds its tank again.
func (p *player) dial() error {
	token, err := fetchToken(p.cfg.Token, p.cfg.secret)
	if err != nil {
		return err
	}
	ladder := web.LadderConfig{URL: p.cfg.WebTransport, WebSocketURL: p.cfg.WebSocket, Ways: p.cfg.ways(), Last: p.ladder, Dial: web.DialConfig{CertificateHash: p.cfg.hash}}
	if p.ladder, err = web.DialBest(context.Background(), ladder); err != nil {
		return err
	}
	if p.net, err = proxy.Impair(p.ladder, netsim.Settings{}, netsim.Settings{}, rand.Uint64()); err != nil {
		return err
	}
	p.impair()
	play := p.page.input
	if p.cfg.Bot {
		play = game.Bot
	}
	p.client, err = game.Dial(p.cfg.Server, driver.Config{Socket: p.net, Link: driver.Netcode{Token: token}, Timeout: 10 * time.Second}, p.cfg.Name, play)
	if err != nil {
		return err
	}
	p.client.Event = p.page.event
	if p.still {
		p.client.Still()
	}
	return nil
}

// impair makes the network as bad as the page says.
func (p *player) impair() {
	if p.net != nil {
		bad := netsim.Settings{Lag: p.cfg.Lag, LagVariance: p.cfg.Lag / 10, Loss: p.cfg.Loss}
		if err := p.net.Set(bad, bad); err != nil {
			p.page.event(err.Error())
		}
	}
}

// say is a line of the chat.
func (p *player) say(line string) {
	if line = strings.TrimSpace(line); line == "" || p.client == nil {
		return
	}
	if _, ok := p.client.Own(); !ok {
		return
	}
	if err := p.client.Say(line); err != nil {
		p.page.event(err.Error())
	}
}

// way is how it comes to the server.
func (p *player) way() string {
	if p.ladder != nil {
		if w, ok := p.ladder.Way(); ok {
			return w.String()
		}
	}
	return ""
}

// view is what this client has, for -check.
func (p *player) view() map[string]any {
	v := map[string]any{"way": p.way(), "joined": false, "p50": p.ticks.at(0.5).Seconds() * 1000, "p99": p.ticks.at(0.99).Seconds() * 1000, "ticks": p.ticks.n, "drawn": p.page.drawn}
	if p.ladder != nil {
		var tried []any
		for _, a := range p.ladder.Attempts() {
			tried = append(tried, fmt.Sprint(a.Way, " ", a.Took.Round(time.Millisecond), " ", a.Err))
		}
		v["tried"] = tried
	}
	if p.err != nil {
		v["err"] = p.err.Error()
	}
	if p.client == nil {
		return v
	}
	at, ok := p.client.Own()
	view := p.client.View()
	v["joined"], v["x"], v["y"] = ok, at.X, at.Y
	v["score"], v["shots"], v["heard"] = p.client.Score(p.cfg.Name), p.client.Shots, len(p.client.Heard)
	v["drones"], v["crates"], v["othersAmmo"], v["waiting"], v["board"] = view.Drones, view.Crates, view.OthersAmmo, view.Waiting, view.Board
	v["inputs"], v["corrections"], v["draws"], v["late"] = float64(view.Inputs), float64(view.Corrections), float64(view.Draws), float64(view.LateDraws)
	v["rtt"] = p.client.RTT().Seconds() * 1000
	return v
}

// stop lets go of the keys, so that everything comes to rest.
func (p *player) stop() {
	p.still = true
	if p.client != nil {
		p.client.Still()
	}
}
