package graph

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
)

// thing is somewhere.
type thing struct {
	actorrep.Base
	X, Y, Z actorrep.Var[float64] `net:""`
	Team    actorrep.Var[uint32]  `net:""`
}

func (a *thing) Location() (x, y, z float64) { return a.X.Get(), a.Y.Get(), a.Z.Get() }

func (a *thing) move(x, y, z float64) {
	a.X.Set(x)
	a.Y.Set(y)
	a.Z.Set(z)
}

// idea is nowhere in particular.
type idea struct {
	actorrep.Base
	N actorrep.Var[uint32] `net:""`
}

// part is a component.
type part struct {
	actorrep.Base
	N actorrep.Var[uint32] `net:""`
}

func register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("thing", (*thing)(nil), actorrep.CullDistance(100)))
	require.NoError(t, w.Register("idea", (*idea)(nil)))
	require.NoError(t, w.Register("part", (*part)(nil), actorrep.Priority(1000)))
}

// rig is a server's world with clients, in virtual time. A deaf one's packets go nowhere.
type rig struct {
	t       testing.TB
	g       *Graph
	w       *actorrep.World
	now     time.Duration
	clients []*client
	sent    func(p []byte)
	lose    bool // what the server sends
}

type client struct {
	w    *actorrep.World
	s, c *netconn.Conn
	peer *actorrep.Peer
}

func newRig(t testing.TB, g *Graph, cfg actorrep.Config) *rig {
	cfg.Relevancy = g.Relevancy
	r := &rig{t: t, g: g, w: actorrep.NewServer(cfg)}
	register(t, r.w)
	return r
}

const tick = time.Second / 30

func (r *rig) deaf() *client {
	c := &client{}
	var err error
	c.s, err = netconn.New(netconn.Config{Server: true, Channels: r.w.ChannelTypes(), Timeout: -1, LowLevelSend: func([]byte) {}}, r.now, 1, 1)
	require.NoError(r.t, err)
	c.peer = r.w.AddConn(c.s)
	r.clients = append(r.clients, c)
	return c
}

func (r *rig) join(speed int) *client {
	c := &client{w: actorrep.NewClient(actorrep.Config{Failed: func(err error) { r.t.Error(err) }})}
	register(r.t, c.w)
	var err error
	c.s, err = netconn.New(netconn.Config{Server: true, NetSpeed: speed, Channels: r.w.ChannelTypes(), LowLevelSend: func(p []byte) {
		if r.sent != nil {
			r.sent(p)
		}
		if !r.lose {
			require.NoError(r.t, c.c.ReceivedPacket(r.now, p))
		}
	}}, r.now, 7, 9)
	require.NoError(r.t, err)
	c.c, err = netconn.New(netconn.Config{Channels: c.w.ChannelTypes(), LowLevelSend: func(p []byte) {
		require.NoError(r.t, c.s.ReceivedPacket(r.now, p))
	}}, r.now, 9, 7)
	require.NoError(r.t, err)
	c.peer = r.w.AddConn(c.s)
	r.clients = append(r.clients, c)
	return c
}

func (r *rig) leave(c *client) {
	r.w.RemoveConn(c.peer)
	for i, o := range r.clients {
		if o == c {
			r.clients = append(r.clients[:i], r.clients[i+1:]...)
			return
		}
	}
}

func (r *rig) step() {
	r.now += tick
	r.w.Step(r.now)
	for _, c := range r.clients {
		if c.c == nil {
			continue
		}
		c.s.Tick(r.now)
		c.c.Tick(r.now)
		c.w.Step(r.now)
	}
}

func (r *rig) steps(n int) {
	for range n {
		r.step()
	}
}

func (r *rig) spawn(x, y float64) *thing {
	a := &thing{}
	a.move(x, y, 0)
	require.NoError(r.t, r.w.Spawn(a))
	return a
}

// dist is how far an actor is from where a connection looks.
func dist(p *actorrep.Peer, a *thing) float64 {
	x, y, z, ok := p.Viewpoint()
	if !ok {
		return math.NaN()
	}
	ax, ay, az := a.Location()
	return math.Sqrt(square(ax-x, ay-y, az-z))
}

func seeded(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 77))
}
