package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// Ship is what the clients see.
type Ship struct {
	actorrep.Base
	X     float64 `net:"q=0.01"`
	Y     float64 `net:"q=0.01"`
	Armor uint8   `net:"max=100"`

	angle, speed float64
}

const ships = 60

var chatName = bunch.Name{Text: "Chat"}

// network is a client's path to the server.
type network struct {
	name          string
	loss          float64
	delay, wobble time.Duration
}

var networks = []network{
	{"Ann, at home", 1, 15 * time.Millisecond, 3 * time.Millisecond},
	{"Bob, far away", 2, 90 * time.Millisecond, 10 * time.Millisecond},
	{"Cleo, on a train", 15, 60 * time.Millisecond, 40 * time.Millisecond},
	{"Dan, on Wi-Fi", 5, 20 * time.Millisecond, 15 * time.Millisecond},
	{"Eve, by satellite", 3, 250 * time.Millisecond, 20 * time.Millisecond},
	{"Finn, next door", 0, 2 * time.Millisecond, time.Millisecond},
}

// game is the server with its world, and the clients.
type game struct {
	server  *driver.Driver
	world   *actorrep.World
	ships   []*Ship
	peers   map[*driver.Conn]*actorrep.Peer
	chats   map[*driver.Conn]*channel.Channel
	clients []*driver.Driver
	mirrors []*actorrep.World
	rng     *rand.Rand
	ticks   int
	err     error
}

func newGame() (*game, error) {
	g := &game{world: actorrep.NewServer(actorrep.Config{}), peers: map[*driver.Conn]*actorrep.Peer{}, chats: map[*driver.Conn]*channel.Channel{}, rng: rand.New(rand.NewPCG(1, 0))}
	if err := g.world.Register("Ship", (*Ship)(nil)); err != nil {
		return nil, err
	}
	for range ships {
		s := &Ship{X: 100 * g.rng.Float64(), Y: 100 * g.rng.Float64(), Armor: 100, angle: 7 * g.rng.Float64(), speed: 0.02 + 0.2*g.rng.Float64()}
		if err := g.world.Spawn(s); err != nil {
			return nil, err
		}
		g.ships = append(g.ships, s)
	}
	var err error
	g.server, err = driver.Listen("127.0.0.1:0", driver.Config{
		Channels: append(g.world.ChannelTypes(), channel.Type{Name: chatName, ServerOpen: true}),
		Server:   control.ServerConfig{Map: "arena"}, Joined: g.joined,
		Closed: func(c *driver.Conn, _ netconn.CloseResult) { g.left(c) },
	})
	if err != nil {
		return nil, err
	}
	for i, n := range networks {
		if err := g.dial(n, uint64(i)); err != nil {
			return nil, errors.Join(err, g.server.Close())
		}
	}
	return g, nil
}

func (g *game) dial(n network, seed uint64) error {
	local, err := udp.Listen(":0", udp.Config{})
	if err != nil {
		return err
	}
	bad := netsim.Settings{Loss: n.loss, LagMin: n.delay - n.wobble, LagMax: n.delay + n.wobble, Order: n.loss / 2}
	socket, err := proxy.Impair(local, bad, bad, 2*seed)
	if err != nil {
		return err
	}
	mirror := actorrep.NewClient(actorrep.Config{})
	if err := mirror.Register("Ship", (*Ship)(nil)); err != nil {
		return err
	}
	d, err := driver.Dial(g.server.LocalAddr().String(), driver.Config{Socket: socket, Client: control.ClientConfig{URL: n.name},
		Channels: append(mirror.ChannelTypes(), channel.Type{Name: chatName, ServerOpen: true})})
	if err != nil {
		return err
	}
	g.clients, g.mirrors = append(g.clients, d), append(g.mirrors, mirror)
	return nil
}

func (g *game) joined(c *driver.Conn) {
	g.peers[c] = g.world.AddConn(c)
	ch, err := c.Open(chatName, nil)
	if err != nil {
		g.err = err
		return
	}
	g.chats[c] = ch
}

func (g *game) left(c *driver.Conn) {
	if p := g.peers[c]; p != nil {
		g.world.RemoveConn(p)
		delete(g.peers, c)
		delete(g.chats, c)
	}
}

// play is the loop of server and clients, until ctx is done.
func (g *game) play(ctx context.Context) error {
	t := time.NewTicker(time.Second / 60)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			if err := g.tick(now); err != nil {
				return err
			}
		}
	}
}

func (g *game) tick(now time.Time) error {
	g.server.TickDispatch(now)
	g.step()
	g.world.Step(g.server.Time(now))
	g.server.TickFlush(now)
	for i, c := range g.clients {
		c.TickDispatch(now)
		g.mirrors[i].Step(c.Time(now))
		c.TickFlush(now)
		if err := c.Err(); err != nil {
			return err
		}
	}
	return errors.Join(g.err, g.server.Err())
}

// step moves the ships; now and then one is hit, and somebody says so.
func (g *game) step() {
	g.ticks++
	for i, s := range g.ships {
		if i%3 == g.ticks/120%3 {
			continue // a third of them rests
		}
		s.angle += 0.02
		s.X += s.speed * math.Cos(s.angle)
		s.Y += s.speed * math.Sin(s.angle)
	}
	if g.ticks%20 != 0 {
		return
	}
	s := g.ships[g.rng.IntN(len(g.ships))]
	s.Armor = uint8(g.rng.IntN(101))
	line := fmt.Sprintf("ship %v has %d armor left", s.GUID(), s.Armor)
	for _, ch := range g.chats {
		if _, err := ch.SendBunch(&bunch.Out{Data: []byte(line), Reliable: true}); err != nil && !errors.Is(err, channel.ErrReliableFull) && !errors.Is(err, channel.ErrClosed) {
			g.err = err
		}
	}
}

// nameOf is for the inspector: what the client said it is called.
func (g *game) nameOf(c *driver.Conn) string {
	if l := c.Login(); l != nil {
		return l.URL
	}
	return ""
}

// peerOf is for the inspector: the world's side of a connection.
func (g *game) peerOf(c *driver.Conn) *actorrep.Peer { return g.peers[c] }

func (g *game) names() []string {
	var list []string
	for _, n := range networks {
		list = append(list, n.name)
	}
	return list
}

func (g *game) close() {
	for _, c := range g.clients {
		_ = c.Close()
	}
	_ = g.server.Close()
}
