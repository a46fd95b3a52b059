//go:build js

// Player is the game's client in a page: it draws on a canvas, reads the keyboard, and comes to the server by the first way that answers.
package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/netconn/web"
)

const tickTime = time.Second / 60

// player is the game in this page. All of it belongs to the one goroutine of main, and to what the browser calls while that one waits.
type player struct {
	cfg    config
	page   page
	redial *session.Redialer
	dialed map[*driver.Driver]*end // its connection, and the dial beside it
	*end                           // of the connection; an empty one before the first
	last   *web.Ladder             // of the last dial
	tokens chan token
	asked  bool // for a token
	dials  int
	graph  graph
	ticks  times
	still  bool
	err    error // why the last connection ended; nil while there is one
}

// end is a connection, and what belongs to it.
type end struct {
	client *game.Client
	ladder *web.Ladder
	net    *proxy.Impaired
	failed bool // its game failed, which was told
}

// token is what the service gave.
type token struct {
	netcode.Token
	err error
}

func main() {
	cfg, err := readConfig()
	p := &player{cfg: cfg, err: err, dialed: map[*driver.Driver]*end{}, end: &end{}, tokens: make(chan token, 1)}
	p.redial, _ = session.NewRedialer(session.RedialConfig{Dial: p.dial, Failed: p.failed, Silence: 2 * time.Second}) // the ladder goes first; the settings are right
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

// tick is a frame of the game's. A page in the background has few of them: the Redialer dials again when the server has given the player up meanwhile.
func (p *player) tick(now time.Time) {
	if p.cfg.Name == "" || p.redial.Err() != nil {
		return
	}
	began := time.Now()
	p.redial.TickDispatch(now)
	if e := p.dialed[p.redial.Driver()]; e != nil { // without one the page shows what there was
		p.end = e
		p.frame(now)
	}
	p.redial.TickFlush(now)
	if err := p.redial.Err(); err != nil { // it dials no more
		p.failed(err)
	}
	p.ticks.add(time.Since(began))
}

// frame is one of the game with its present connection.
func (p *player) frame(now time.Time) {
	if err := p.client.Frame(now); err != nil && !p.end.failed {
		p.end.failed = true
		p.page.event(err.Error())
		p.redial.Redial()
	}
	if _, ok := p.client.Own(); ok && !p.end.failed {
		p.err = nil
	}
	p.graph.sample(now, p.client)
}

func (p *player) failed(why error) {
	p.err = why
	p.page.event(why.Error())
}

// dial begins a connection when its token has come. The player stays who it was, so it finds its tank again.
func (p *player) dial() (*driver.Driver, error) {
	if !p.asked {
		p.asked = true
		go func() {
			t, err := fetchToken(p.cfg.Token, p.cfg.secret)
			p.tokens <- token{t, err}
		}()
	}
	var came token
	select {
	case came = <-p.tokens:
		p.asked = false
	default:
		return nil, nil
	}
	if came.err != nil {
		return nil, came.err
	}
	maps.DeleteFunc(p.dialed, func(d *driver.Driver, _ *end) bool { return d != p.redial.Driver() }) // dials that have failed
	e := &end{}
	ladder := web.LadderConfig{URL: p.cfg.WebTransport, WebSocketURL: p.cfg.WebSocket, Ways: p.cfg.ways(), Token: came.Token, Last: p.last, Dial: web.DialConfig{CertificateHash: p.cfg.hash}}
	var err error
	if e.ladder, err = web.DialBest(context.Background(), ladder); err != nil {
		return nil, err
	}
	p.last = e.ladder
	if e.net, err = proxy.Impair(e.ladder, netsim.Settings{}, netsim.Settings{}, rand.Uint64()); err != nil {
		return nil, err
	}
	play := p.page.input
	if p.cfg.Bot {
		play = game.Bot
	}
	e.client, err = game.Dial(p.cfg.Server, driver.Config{Socket: e.net, Link: driver.Netcode{Token: came.Token}, Timeout: 10 * time.Second}, p.cfg.Name, play)
	if err != nil {
		return nil, err
	}
	e.client.Event = p.page.event
	if p.still {
		e.client.Still()
	}
	p.dials++
	p.dialed[e.client.Driver] = e
	p.impair()
	return e.client.Driver, nil
}

// impair makes the network as bad as the page says.
func (p *player) impair() {
	for _, e := range p.dialed {
		bad := netsim.Settings{Lag: p.cfg.Lag, LagVariance: p.cfg.Lag / 10, Loss: p.cfg.Loss}
		if err := e.net.Set(bad, bad); err != nil {
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
	v := map[string]any{"way": p.way(), "joined": false, "p50": p.ticks.at(0.5).Seconds() * 1000, "p99": p.ticks.at(0.99).Seconds() * 1000, "ticks": p.ticks.n, "drawn": p.page.drawn,
		"dials": p.dials}
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
