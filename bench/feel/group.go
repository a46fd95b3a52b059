package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Disc is what slides about in a room of 12 by 12 m and bounces off others.
type Disc struct {
	X, Y   float64 `predict:"0.005,smooth"`
	VX, VY float64 `predict:"0.01"`
}

func (d *Disc) slide(dt time.Duration) {
	f := 1 - dt.Seconds()
	d.VX, d.VY = d.VX*f, d.VY*f
	d.X, d.Y = d.X+d.VX*dt.Seconds(), d.Y+d.VY*dt.Seconds()
	if math.Abs(d.X) > 6 {
		d.X, d.VX = math.Copysign(6, d.X), -d.VX
	}
	if math.Abs(d.Y) > 6 {
		d.Y, d.VY = math.Copysign(6, d.Y), -d.VY
	}
}

func (d *Disc) disc() *Disc { return d }

func (d *Disc) far(o *Disc) float64 { return math.Hypot(d.X-o.X, d.Y-o.Y) }

// pusher is a player's disc, stone nobody's.
type pusher struct {
	actorrep.Base
	Disc
	Ticks uint32 `predict:""`
}

type stone struct {
	actorrep.Base
	Disc
}

// Simulate pushes.
func (p *pusher) Simulate(in keys, dt time.Duration) {
	p.VX += 12 * float64(in.X) * dt.Seconds()
	p.VY += 12 * float64(in.Y) * dt.Seconds()
	p.slide(dt)
	p.Ticks++
}

// Simulate slides.
func (s *stone) Simulate(_ predict.NoInput, dt time.Duration) { s.slide(dt) }

// bounce has discs of a metre that overlap exchange their velocities along the line between them.
func bounce(members []actorrep.Actor, _ time.Duration) {
	for i, a := range members {
		a := a.(interface{ disc() *Disc }).disc()
		for _, b := range members[i+1:] {
			b := b.(interface{ disc() *Disc }).disc()
			d := a.far(b)
			if d >= 1 || d == 0 {
				continue
			}
			x, y, over := (b.X-a.X)/d, (b.Y-a.Y)/d, (1-d)/2
			a.X, a.Y, b.X, b.Y = a.X-x*over, a.Y-y*over, b.X+x*over, b.Y+y*over
			if v := (a.VX-b.VX)*x + (a.VY-b.VY)*y; v > 0 {
				a.VX, a.VY, b.VX, b.VY = a.VX-v*x, a.VY-v*y, b.VX+v*x, b.VY+v*y
			}
		}
	}
}

// room is a server and players in a group.
type room struct {
	now     time.Duration
	world   *actorrep.World
	group   *predict.Group
	pushers *predict.Class[*pusher, keys]
	stone   *stone
	players []*pushing
	rng     *rand.Rand
	calm    bool
	err     error
}

// pushing is a player.
type pushing struct {
	room      *room
	server    *pusher
	world     *actorrep.World
	group     *predict.Group
	class     *predict.Class[*pusher, keys]
	own       *pusher
	stone     *stone
	near, far wire // this end's, and the server's
	keys      keys
	log       map[uint32][2]Disc // what the server had, by the player's ticks

	frames int
	jump   float64
}

func (r *room) register(w *actorrep.World, input func(*pusher) keys) (g *predict.Group, c *predict.Class[*pusher, keys], err error) {
	if g, err = predict.NewGroup(w, predict.GroupConfig{Touch: bounce}); err != nil {
		return nil, nil, err
	}
	if c, err = predict.Register(w, "Pusher", predict.Config[*pusher, keys]{Group: g, Input: input}); err != nil {
		return nil, nil, err
	}
	balls, err := predict.Register(w, "Stone", predict.Config[*stone, predict.NoInput]{Group: g})
	if err != nil || !w.IsServer() {
		return g, c, err
	}
	r.stone = &stone{}
	if err := w.Spawn(r.stone); err != nil {
		return nil, nil, err
	}
	return g, c, balls.Join(r.stone)
}

// newRoom is one with players over a path.
func newRoom(seed uint64, set netsim.Settings, players int) (*room, error) {
	r := &room{rng: rand.New(rand.NewPCG(seed, 9)), world: actorrep.NewServer(actorrep.Config{})}
	var err error
	if r.group, r.pushers, err = r.register(r.world, nil); err != nil {
		return nil, err
	}
	for i := range players {
		p := &pushing{room: r, log: map[uint32][2]Disc{}, server: &pusher{Disc: Disc{X: float64(2*i) - 4, Y: 3}}}
		p.world = actorrep.NewClient(actorrep.Config{Spawned: p.spawned, Failed: func(err error) { r.err = err }})
		if p.group, p.class, err = r.register(p.world, func(*pusher) keys { return p.keys }); err != nil {
			return nil, err
		}
		if p.far, p.near, err = connect(&r.now, set, r.rng, r.world, p.world); err != nil {
			return nil, err
		}
		if err := r.world.Spawn(p.server); err != nil {
			return nil, err
		}
		if err := r.pushers.Possess(p.server, r.world.AddConn(p.far.conn), 0); err != nil {
			return nil, err
		}
		r.players = append(r.players, p)
	}
	return r, nil
}

func (p *pushing) spawned(a actorrep.Actor) {
	switch a := a.(type) {
	case *stone:
		p.stone = a
	case *pusher:
		if a.IsOwned() {
			p.own = a
		}
	}
}

// run lets time pass, in frames of a 60th.
func (r *room) run(d time.Duration) error {
	for until := r.now + d; r.now < until && r.err == nil; {
		r.now += tick
		for _, p := range r.players {
			p.far.receive(r.now, r.now)
		}
		if err := r.group.Tick(r.now); err != nil {
			return err
		}
		for _, p := range r.players {
			p.log[p.server.Ticks] = [2]Disc{p.server.Disc, r.stone.Disc}
		}
		r.world.Step(r.now)
		for _, p := range r.players {
			p.far.conn.Tick(r.now)
			if err := p.play(r.now); err != nil {
				return err
			}
			if p.near.conn.Closed() || p.far.conn.Closed() {
				return fmt.Errorf("a connection ended: %v, %v", p.far.conn.Result(), p.near.conn.Result())
			}
		}
	}
	return r.err
}

// play is a player's frame: he runs at the stone, and now and then elsewhere.
func (p *pushing) play(now time.Duration) error {
	p.near.receive(now, now)
	p.world.Step(now)
	var before [3]float64
	if p.own != nil && p.stone != nil {
		before = p.class.Offset(p.own, now)
		switch {
		case p.room.calm:
			p.keys = keys{}
		case p.room.rng.IntN(20) == 0:
			p.keys = keys{int8(p.room.rng.IntN(3) - 1), int8(p.room.rng.IntN(3) - 1)}
		case p.room.rng.IntN(10) == 0:
			p.keys = keys{toward(p.own.X, p.stone.X), toward(p.own.Y, p.stone.Y)}
		}
	}
	if err := p.group.Tick(now); err != nil {
		return err
	}
	if p.own != nil && p.stone != nil && p.class.Predicting(p.own) {
		after := p.class.Offset(p.own, now)
		p.frames++
		p.jump += math.Hypot(after[0]-before[0], after[1]-before[1])
		if !p.room.calm {
			p.log[p.own.Ticks|drawnBit] = [2]Disc{p.own.Disc, p.stone.Disc}
		}
	}
	p.near.conn.Tick(now)
	return nil
}

// drawnBit tells what a client drew from what the server had of a tick.
const drawnBit = 1 << 31

func toward(from, to float64) int8 {
	switch {
	case to > from+0.2:
		return 1
	case to < from-0.2:
		return -1
	}
	return 0
}

// together is actors that touch, predicted together.
func together(t *table, seeds int, length time.Duration) error {
	const players = 3
	fmt.Printf("A group of %d players and a ball: 60 ms ± 5 ms each way\n", players)
	for _, loss := range []float64{0, 5} {
		off, n, jump, frames, worst, replayed := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
		for seed := range max(seeds/8, 3) {
			r, err := newRoom(uint64(seed), path(60*time.Millisecond, 5*time.Millisecond, loss), players)
			if err != nil {
				return err
			}
			if err := r.run(5 * time.Second); err != nil {
				return err
			}
			for _, p := range r.players {
				p.frames, p.jump = 0, 0
				clear(p.log)
			}
			if err := r.run(length); err != nil {
				return err
			}
			r.calm = true
			for _, p := range r.players {
				jump, frames = jump+p.jump, frames+float64(p.frames)
			}
			if err := r.run(15 * time.Second); err != nil {
				return err
			}
			for _, p := range r.players {
				for ticks, drawn := range p.log {
					if had, ok := p.log[ticks&^drawnBit]; ok && ticks&drawnBit != 0 {
						off += drawn[1].far(&had[1])
						n++
					}
				}
				replayed += float64(p.group.Counters.Replayed) / r.now.Seconds()
				worst = max(worst, p.own.far(&p.server.Disc), p.stone.far(&r.stone.Disc))
			}
			if n == 0 {
				return fmt.Errorf("no tick was seen at both ends")
			}
		}
		t.row(fmt.Sprintf("%2.0f %% loss: the ball is off from where the server has it in the player's tick", loss), "cm", 100*off/n, 4)
		t.row(fmt.Sprintf("%2.0f %% loss: corrections put the own player, a second", loss), "cm", 100*jump/frames*60, 40)
		t.row(fmt.Sprintf("%2.0f %% loss: ticks simulated again, a second and player", loss), "", replayed/float64(max(seeds/8, 3)*players), 150)
		t.row(fmt.Sprintf("%2.0f %% loss: anything off when all stands, worst seed", loss), "cm", 100*worst, 1)
	}
	return nil
}
