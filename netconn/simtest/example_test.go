package simtest_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// chat is a game of one server and its clients: each says hello once, and the server counts.
type chat struct {
	clients, heard int
}

type chatEnd struct {
	channel.Nop
	game *chat
	d    *driver.Driver
}

var chatName = bunch.Name{Index: 300}

func (g *chat) Boot(h *simtest.Host) (simtest.Program, error) {
	p := &chatEnd{game: g}
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Joined: p.joined, Link: driver.PlainSalted{},
		Channels: []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return p }}}}
	var err error
	if h.IsServer() {
		if cfg.Socket, err = h.Listen(7777); err == nil {
			p.d, err = driver.Listen("", cfg)
		}
		return p, err
	}
	cfg.Socket = h.Open()
	p.d, err = driver.Dial(fmt.Sprintf("%v:7777", h.Simulation().ServerOf(h).Addr()), cfg)
	return p, err
}

func (g *chat) Calm() {}

func (g *chat) Pending() string {
	if g.heard < g.clients {
		return fmt.Sprintf("heard %d of %d", g.heard, g.clients)
	}
	return ""
}

func (p *chatEnd) Tick(now time.Time) error {
	p.d.TickDispatch(now)
	p.d.TickFlush(now)
	return p.d.Err()
}

func (p *chatEnd) joined(c *driver.Conn) {
	if c.IsServer() {
		return
	}
	if ch, err := c.Open(chatName, p); err == nil {
		_, _ = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	}
}

func (p *chatEnd) ReceivedBunch(*channel.Channel, *bunch.In) { p.game.heard++ }

func Example() {
	script, err := simtest.Parse(`
		seed 7
		run 3s
		clients 3
		net lag=30ms loss=10 order=5
		at 200ms cut client2 server1 for 500ms
		at 1s pause client3 for 300ms`)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := simtest.Play(script, func(_ *simtest.Simulation, s *simtest.Script) (simtest.Game, error) {
		return &chat{clients: s.Clients}, nil
	})
	fmt.Println(r.OK(), r.Game.(*chat).heard)
	// Output: true 3
}
