package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mlange-42/ark/ecs"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// client is an entity world that follows the server's.
type client struct {
	ecs      ecs.World
	bridge   *clientBridge
	trails   *trails
	actors   *actorrep.World
	here     *netconn.Conn
	there    *netconn.Conn // the server's end
	up, down *netsim.Link
	err      error
}

// play is a server and its clients in virtual time.
type play struct {
	now     time.Duration
	game    *game
	bridge  *serverBridge
	actors  *actorrep.World
	clients []*client
}

func newPlay(clients int, bad netsim.Settings, seed uint64) (*play, error) {
	p := &play{game: newGame(seed), actors: actorrep.NewServer(actorrep.Config{})}
	if err := register(p.actors); err != nil {
		return nil, err
	}
	p.bridge = newServerBridge(&p.game.world, p.actors)
	for i := range clients {
		if err := p.join(bad, 100*seed+uint64(2*i)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// join connects a client; a game would use driver.Listen and driver.Dial.
func (p *play) join(bad netsim.Settings, seed uint64) (err error) {
	c := &client{ecs: ecs.NewWorld()}
	c.bridge = newClientBridge(&c.ecs)
	c.trails = newTrails(&c.ecs)
	c.actors = actorrep.NewClient(actorrep.Config{Spawned: c.bridge.spawned, Destroyed: c.bridge.destroyed, Failed: func(err error) { c.err = err }})
	if err := register(c.actors); err != nil {
		return err
	}
	if c.up, err = netsim.NewLink(bad, seed); err != nil {
		return err
	}
	if c.down, err = netsim.NewLink(bad, seed+1); err != nil {
		return err
	}
	if c.there, err = netconn.New(netconn.Config{Server: true, Channels: p.actors.ChannelTypes(),
		LowLevelSend: func(b []byte) { c.down.Push(p.now, b) }}, p.now, 1, 2); err != nil {
		return err
	}
	if c.here, err = netconn.New(netconn.Config{Channels: c.actors.ChannelTypes(),
		LowLevelSend: func(b []byte) { c.up.Push(p.now, b) }}, p.now, 2, 1); err != nil {
		return err
	}
	p.actors.AddConn(c.there)
	p.clients = append(p.clients, c)
	return nil
}

// step is a tick of all ends; with frozen the game stands still.
func (p *play) step(frozen bool) error {
	p.now += time.Second / 30
	for _, c := range p.clients {
		pump(c.up, c.there, p.now)
	}
	if !frozen {
		p.game.step()
	}
	if err := p.bridge.sync(); err != nil {
		return err
	}
	p.actors.Step(p.now)
	for _, c := range p.clients {
		c.there.Tick(p.now)
		pump(c.down, c.here, p.now)
		c.actors.Step(p.now)
		c.bridge.sync()
		c.trails.step()
		c.here.Tick(p.now)
		if c.err != nil {
			return c.err
		}
		if c.here.Closed() {
			return fmt.Errorf("connection closed: %v", c.here.Result())
		}
	}
	return nil
}

func pump(l *netsim.Link, to *netconn.Conn, now time.Duration) {
	for b, ok := l.Pop(now); ok; b, ok = l.Pop(now) {
		_ = to.ReceivedPacket(now, b) // what it drops comes again, or is counted
	}
	to.PostTickDispatch(now)
}

// snapshot is the replicated components of a world as sorted lines; positions are rounded to what is sent.
func snapshot(w *ecs.World) []string {
	health, fire := ecs.NewMap[Health](w), ecs.NewMap[Burning](w)
	var lines []string
	for q := ecs.NewFilter2[Name, Position](w).Query(); q.Next(); {
		n, p := q.Get()
		line := fmt.Sprintf("%s at %.0f, %.0f cm", n.Text, math.Round(100*p.X), math.Round(100*p.Y))
		if health.Has(q.Entity()) {
			h := health.Get(q.Entity())
			line += fmt.Sprintf(", health %d of %d", h.Points, h.Max)
		}
		if fire.Has(q.Entity()) {
			line += fmt.Sprintf(", burning for %d", fire.Get(q.Entity()).Ticks)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// compare is the first difference between a client's world and the server's.
func (p *play) compare() error {
	want := snapshot(&p.game.world)
	for i, c := range p.clients {
		got := snapshot(&c.ecs)
		for j := range max(len(got), len(want)) {
			g, w := "nothing", "nothing"
			if j < len(got) {
				g = got[j]
			}
			if j < len(want) {
				w = want[j]
			}
			if g != w {
				return fmt.Errorf("client %d has %s, the server %s", i+1, g, w)
			}
		}
	}
	return nil
}
