package largeworld

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
)

// Config is how large it is.
type Config struct {
	Conns, Actors int
	// Relevant is about how many actors each connection sees; their density follows from it. With all of them each
	// connection sees every actor.
	Relevant int
	// Parallel is the world's.
	Parallel actorrep.Executor
}

// R1 is the scenario itself.
var R1 = Config{Conns: 100, Actors: 50_000, Relevant: 2_000}

// Rate is the ticks a second, in virtual time.
const Rate = 30

const (
	cull = 100
	// sight is how far a connection sees, on average: what has come within the cull distance stays for a little more.
	sight = 1.1 * cull
	// openTicks is how many ticks pass until every client has all it sees.
	openTicks = 200
)

// unit is an actor.
type unit struct {
	actorrep.Base
	X, Y   actorrep.Var[float32] `net:"q=0.01"`
	Health actorrep.Var[uint8]   `net:"max=100"`
	State  actorrep.Var[uint8]   `net:""`
}

// Location is where it is.
func (u *unit) Location() (x, y, z float64) { return float64(u.X.Get()), float64(u.Y.Get()), 0 }

// Rig is a server's world, and connections to clients in the same process. Packets wait in memory between a server's Tick
// and its next TickDispatch, as they would in a socket.
type Rig struct {
	world *actorrep.World
	conns []*conn
	units []*unit
	rng   *rand.Rand
	now   time.Duration
	side  float64
	walks int
	sent  int // bytes, by the server
	// Clock is asked for the time before and after what is measured. Default time.Since the rig's start.
	Clock func() time.Duration
}

// New spreads actors so that each connection sees about as many as it is to, and has the clients told of them.
func New(cfg Config) (*Rig, error) {
	g := &graph.Graph{}
	began := time.Now()
	c := &Rig{rng: rand.New(rand.NewPCG(1, 2)), Clock: func() time.Duration { return time.Since(began) }}
	c.world = actorrep.NewServer(actorrep.Config{Relevancy: g.Relevancy, Parallel: cfg.Parallel})
	sees := float64(cull)
	if cfg.Relevant == cfg.Actors {
		sees = 100 * cull
	}
	if err := c.world.Register("unit", (*unit)(nil), actorrep.CullDistance(sees)); err != nil {
		return nil, err
	}
	c.side = math.Sqrt(float64(cfg.Actors) / float64(cfg.Relevant) * math.Pi * sight * sight)
	for range cfg.Actors {
		u := &unit{}
		u.X.Set(float32(c.rng.Float64() * c.side))
		u.Y.Set(float32(c.rng.Float64() * c.side))
		u.Health.Set(100)
		if err := c.world.Spawn(u); err != nil {
			return nil, err
		}
		c.units = append(c.units, u)
	}
	for range cfg.Conns {
		if err := c.connect(); err != nil {
			return nil, err
		}
	}
	c.place()
	for range openTicks {
		c.Serve()
		c.Answer()
	}
	if c.Seen() < float64(cfg.Relevant)/4 {
		return nil, fmt.Errorf("largeworld: a connection sees %.0f actors instead of about %d", c.Seen(), cfg.Relevant)
	}
	return c, nil
}

// place puts the viewpoints on circles within the world.
func (c *Rig) place() {
	for i, k := range c.conns {
		middle := c.side / 2
		r := max(0, c.side/2-1.2*cull) * (0.2 + 0.8*float64(i%10)/10)
		speed := 5 + 10*float64(i)/float64(len(c.conns)) // a second
		a := 2*math.Pi*float64(i)/float64(len(c.conns)) + float64(c.walks)/Rate*speed/max(r, 1)
		k.peer.SetViewpoint(middle+r*math.Cos(a), middle+r*math.Sin(a), 0)
	}
}

// Walk moves every viewpoint by a tick's way at 5 to 15 a second, so that actors come into sight and leave it.
func (c *Rig) Walk() {
	c.walks++
	c.place()
}

// Change sets two values of each of n actors, chosen anew, as a game's step would.
func (c *Rig) Change(n int) {
	for i := range min(n, len(c.units)) {
		j := i + c.rng.IntN(len(c.units)-i)
		u := c.units[j]
		c.units[i], c.units[j] = u, c.units[i]
		u.State.Set(u.State.Get() + 1)
		u.Health.Set((u.Health.Get() + 1) % 100)
	}
}

// Fly moves n actors, the same ones each time, by half a metre a tick.
func (c *Rig) Fly(n int) {
	for i, u := range c.units[:n] {
		a := float64(i) + c.now.Seconds()
		u.X.Set(u.X.Get() + float32(math.Cos(a))/2)
		u.Y.Set(u.Y.Get() + float32(math.Sin(a))/2)
	}
}

// Seen is how many actors a connection sees, on average.
func (c *Rig) Seen() float64 {
	n := 0
	for _, k := range c.conns {
		n += k.peer.Len()
	}
	return float64(n) / float64(max(1, len(c.conns)))
}

// Serve is a tick of the server: what came, the world's Step, what goes.
func (c *Rig) Serve() {
	c.now += time.Second / Rate
	for _, k := range c.conns {
		k.up.deliver(k.server, c.now)
	}
	c.world.Step(c.now)
	for _, k := range c.conns {
		k.server.Tick(c.now)
	}
}

// Answer is a tick of the clients.
func (c *Rig) Answer() {
	for _, k := range c.conns {
		k.down.deliver(k.client, c.now)
		k.client.Tick(c.now)
	}
}

// DropClients forgets the clients' ends, for measuring what the server's take. Nothing can be served after it.
func (c *Rig) DropClients() {
	for _, k := range c.conns {
		k.client, k.up, k.down = nil, queue{}, queue{}
	}
}

// conn is a connection, both ends of it.
type conn struct {
	server, client *netconn.Conn
	up, down       queue
	peer           *actorrep.Peer
}

func (c *Rig) connect() (err error) {
	k := &conn{}
	k.server, err = netconn.New(netconn.Config{Server: true, NetSpeed: 1 << 24, Channels: c.world.ChannelTypes(), LowLevelSend: func(p []byte) {
		k.down.push(p)
		c.sent += len(p)
	}}, 0, 1, 1)
	if err != nil {
		return err
	}
	types, err := answering()
	if err != nil {
		return err
	}
	k.client, err = netconn.New(netconn.Config{NetSpeed: 1 << 24, Channels: types, LowLevelSend: func(p []byte) { k.up.push(p) }}, 0, 1, 1)
	if err != nil {
		return err
	}
	k.peer = c.world.AddConn(k.server)
	c.conns = append(c.conns, k)
	return nil
}

// answering is a client's kinds of channels. It answers which classes it has, as the server waits for that, and then only acks.
func answering() ([]channel.Type, error) {
	w := actorrep.NewClient(actorrep.Config{})
	if err := w.Register("unit", (*unit)(nil), actorrep.CullDistance(cull)); err != nil {
		return nil, err
	}
	types := w.ChannelTypes()
	for i := range types {
		accept := types[i].Accept
		types[i].Accept = func(ch *channel.Channel) channel.Handler {
			if ch.Name() == actorrep.ReplicationName {
				return &answer{world: accept(ch)}
			}
			return channel.Nop{}
		}
	}
	return types, nil
}

// answer hands a world what comes until the world has answered.
type answer struct {
	channel.Nop
	world channel.Handler
}

func (a *answer) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if a.world == nil {
		return
	}
	if a.world.ReceivedBunch(ch, in); ch.NumOutRec() > 0 {
		a.world = nil
	}
}

// queue is packets under way, each behind two bytes that say how long it is.
type queue []byte

func (q *queue) push(p []byte) { *q = append(append(*q, byte(len(p)), byte(len(p)>>8)), p...) }

func (q *queue) deliver(to *netconn.Conn, now time.Duration) {
	for b := *q; len(b) > 0; {
		n := int(b[0]) | int(b[1])<<8
		_ = to.ReceivedPacket(now, b[2:2+n]) // nothing is lost or damaged here
		b = b[2+n:]
	}
	*q = (*q)[:0]
	to.PostTickDispatch(now)
}
