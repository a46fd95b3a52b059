package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// player is a client, which is a bot.
type player struct {
	g     *game
	id    uint64
	mesh  *mesh.Client
	towns map[string]*visit
	drawn string // the town whose world is drawn
	keys  Keys

	ordered, answered uint32
	orderAt           time.Time

	// What the travels were.
	went         int
	inputs, lost uint32
	stood        []time.Duration
	worst        time.Duration // since it was sent to the next town
	watch        time.Time     // until then it counts
	moved        map[uint32]place
	wrong        error
}

// place is where a thing was drawn last, and since when.
type place struct {
	x     float64
	since time.Time
}

// visit is a connection with a town.
type visit struct {
	end
	ch     *channel.Channel
	filled time.Time // since when everything is there
	closed bool
}

func (g *game) player(id uint64) *player { return g.players[id-1] }

func (g *game) newPlayer(id uint64) (*player, error) {
	first := g.towns[int(id)%towns]
	p := &player{g: g, id: id, towns: map[string]*visit{}, drawn: first.name, keys: Keys{Dir: 1}, moved: map[uint32]place{}}
	var err error
	if p.mesh, err = mesh.NewClient(mesh.ClientConfig{Session: rand.Uint64() | 1, Server: first.name, Message: func([]byte) {}, Ready: p.ready,
		Send: func(town string, packet []byte) {
			if v := p.towns[town]; v != nil {
				mesh.SendOn(v.ch, packet)
			}
		},
		Moved: func(string) { p.went++ }}); err != nil {
		return nil, err
	}
	token, err := first.token(id)
	if err != nil {
		return nil, err
	}
	return p, p.dial(first.name, token)
}

func (p *player) close() {
	for _, v := range p.towns {
		_ = v.driver.Close()
	}
}

// dial connects with a town.
func (p *player) dial(town string, token []byte) error {
	v := &visit{}
	w := actorrep.NewClient(actorrep.Config{})
	w.User = p
	if err := v.init(w, p.press); err != nil {
		return err
	}
	socket, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return err
	}
	impaired, err := proxy.Impair(socket, p.g.o.bad, p.g.o.bad, rand.Uint64())
	if err != nil {
		return err
	}
	types := append(v.world.ChannelTypes(), mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
		v.ch = ch
		return func(packet []byte) error { return p.mesh.Receive(town, packet) }
	}))
	v.driver, err = driver.Dial("127.0.0.1:1", driver.Config{Socket: impaired, Channels: types, Link: driver.Netcode{Token: append([]byte(nil), token...)}, // the token says where
		Closed: func(*driver.Conn, netconn.CloseResult) { v.closed = true }})
	if err != nil {
		return err
	}
	p.towns[town] = v
	return nil
}

// press is the keys of a tick: east to the road's end, and back.
func (p *player) press(r *Runner) Keys {
	switch {
	case r.X > towns*length-1:
		p.keys.Dir = -1
	case r.X < 1:
		p.keys.Dir = 1
	}
	p.keys.N++
	return p.keys
}

// took notes that a town has simulated an input.
func (p *player) took(n uint32) {
	if n > p.inputs {
		if p.inputs > 0 {
			p.lost += n - p.inputs - 1
		}
		p.inputs = n
	}
}

// ready holds a travel back until the next town has been shown for a while, so that its things are drawn at the same time as here.
func (p *player) ready(town string) bool {
	v := p.towns[town]
	if v == nil || v.world.Len() < carts {
		return false
	}
	if v.filled.IsZero() {
		v.filled = time.Now()
	}
	return time.Since(v.filled) > 1500*time.Millisecond
}

// answer is an order that a town has taken.
func (p *player) answer(n uint32) {
	if n != p.answered+1 {
		p.wrong = fmt.Errorf("answer %d after %d", n, p.answered)
	}
	p.answered++
}

func (p *player) tick(now time.Time) error {
	order := []string{p.drawn} // the town that is drawn comes first
	for _, t := range p.g.towns {
		if p.towns[t.name] != nil && t.name != p.drawn {
			order = append(order, t.name)
		}
	}
	for _, name := range order {
		p.towns[name].driver.TickDispatch(now)
	}
	next, token, goes := p.mesh.Next()
	if goes && p.towns[next] == nil {
		if err := p.dial(next, token); err != nil {
			return err
		}
		order = append(order, next)
	}
	if from := p.towns[p.mesh.Server()]; goes && from != nil {
		p.towns[next].runners.Follow(from.runners) // the prediction and the calls go on there
	}
	p.mesh.Step(now.Sub(p.g.began))
	for _, name := range order {
		v := p.towns[name]
		at := v.driver.Time(now)
		v.world.Step(at)
		if err := v.runners.Tick(at); err != nil {
			return err
		}
		v.interp.Tick(at)
	}
	if at := p.mesh.Server(); at != p.drawn && p.towns[at] != nil && p.towns[at].mine() != nil {
		p.drawn = at // its own runner goes on there
		p.watch = now.Add(500 * time.Millisecond)
	}
	if r := p.towns[p.drawn].mine(); r != nil && now.After(p.orderAt) && !p.g.stopped && Order.Call(r, p.ordered+1) == nil {
		p.ordered++
		p.orderAt = now.Add(100 * time.Millisecond)
	}
	p.look(now, goes)
	for _, name := range order {
		v := p.towns[name]
		v.driver.TickFlush(now)
		if v.closed {
			p.mesh.Closed(name)
		}
		if v.closed || name != p.mesh.Server() && name != p.drawn && !(goes && name == next) {
			_ = v.driver.Close()
			delete(p.towns, name)
		}
	}
	if p.mesh.Lost() || p.towns[p.drawn] == nil {
		return fmt.Errorf("player %d is nowhere", p.id)
	}
	return p.wrong
}

// mine is the player's own runner in a town, when it is predicted there.
func (v *visit) mine() *Runner {
	for a := range v.world.All {
		if r, ok := a.(*Runner); ok && v.runners.Predicting(r) {
			return r
		}
	}
	return nil
}

// seen is what is drawn in this frame: by its place on the road, a letter.
func (p *player) seen() map[float64]byte {
	all := map[float64]byte{}
	p.each(func(_ uint32, x float64, c byte) { all[x] = c })
	return all
}

// each calls f for everything that is drawn: its id, where, and a letter.
func (p *player) each(f func(id uint32, x float64, c byte)) {
	v := p.towns[p.drawn]
	for a := range v.world.All {
		switch a := a.(type) {
		case *Cart:
			into := Cart{X: a.X}
			v.carts.At(a, &into)
			f(uint32(a.GUID()), into.X, '#')
		case *Runner:
			into := Runner{X: a.X}
			if v.runners.Predicting(a) {
				f(uint32(a.GUID()), a.X+v.runners.Offset(a, v.driver.Time(time.Now()))[0], '@')
			} else if v.others.At(a, &into) {
				f(uint32(a.GUID()), into.X, 'o')
			}
		}
	}
}

// look measures for how long carts and the player's own runner stand still while it travels, and for half a second after.
func (p *player) look(now time.Time, goes bool) {
	p.each(func(id uint32, x float64, c byte) {
		was, known := p.moved[id]
		if !known || math.Abs(x-was.x) > 1e-6 {
			p.moved[id] = place{x, now}
		} else if c != 'o' && (goes || now.Before(p.watch)) {
			p.worst = max(p.worst, now.Sub(was.since))
		}
	})
	if !p.watch.IsZero() && now.After(p.watch) {
		p.stood, p.worst, p.watch = append(p.stood, p.worst), 0, time.Time{}
	}
}
