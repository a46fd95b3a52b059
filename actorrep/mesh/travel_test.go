package mesh_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// The city is two servers with drivers, a player that runs about, and carts that exist on both servers.

const (
	carts = 8
	speed = 5.0
	frame = time.Second / 60
	me    = 7 // the player
)

type keys struct {
	N   uint32 `net:""`
	Dir int8   `net:""`
}

// runner is the player's.
type runner struct {
	mesh.Body
	X    float64 `net:"q=0.01,simulated" predict:"0.001,smooth"`
	city *city   // on a server
}

func (r *runner) Location() (x, y, z float64) { return r.X, 0, 0 }

func (r *runner) Simulate(in keys, dt time.Duration) {
	r.X += speed * float64(in.Dir) * dt.Seconds()
	if r.city != nil && in.N > 0 {
		r.city.taken = append(r.city.taken, in.N)
	}
}

// cart drives for ever.
type cart struct {
	actorrep.Base
	X float64 `net:"q=0.01" interp:""`
}

// end is one end of a connection, or a server: a world and what belongs to it.
type end struct {
	driver  *driver.Driver
	world   *actorrep.World
	interp  *interp.Interpolator
	carts   *interp.Class[*cart]
	runners *predict.Class[*runner, keys]
	ch      *channel.Channel // of a client
	closed  bool
	filled  time.Duration
}

func (e *end) init(w *actorrep.World, input func(*runner) keys) (err error) {
	e.world = w
	if e.interp, err = interp.New(w, interp.Config{}); err != nil {
		return err
	}
	if err = w.Register("Cart", (*cart)(nil)); err != nil {
		return err
	}
	if e.carts, err = interp.Register(e.interp, interp.ClassConfig[*cart]{}); err != nil {
		return err
	}
	e.runners, err = predict.Register(w, "Runner", predict.Config[*runner, keys]{Input: input}, calls)
	return err
}

type city struct {
	t       testing.TB
	w       *simtest.Simulation
	rng     simtest.Rand
	servers []*server
	client  *client
	lose    int // of a hundred packets between the servers
	taken   []uint32
	given   []int         // when the player was given: how many were taken before
	shown   time.Duration // for how long the client shows the next world before the player goes
	calls   *ledger       // of TestCallsUnderWay
	zones   bool          // the servers have zones, and the player goes on when it crosses the border
	walk    int8          // where to; 0: to and fro
	blinks  int           // ticks in which a server lacked the runner
}

// server is a game server.
type server struct {
	end
	c      *city
	h      *simtest.Host
	m      *mesh.Server
	peers  map[uint64]*actorrep.Peer
	chans  map[uint64]*channel.Channel
	own    *runner // the player's
	played bool    // it was here
	note   int
	zone   *mesh.Zone // nil without zones
	border *end       // the connection to the other server's
	epoch  uint32     // of the runner, while the player is being given away
}

func (s *server) addr() netip.AddrPort { return netip.AddrPortFrom(s.h.Addr(), 7777) }

func (s *server) boot() (err error) {
	s.peers, s.chans = map[uint64]*actorrep.Peer{}, map[uint64]*channel.Channel{}
	i := slices.Index(s.c.servers, s)
	if err = s.init(actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}, Failed: func(err error) { s.c.t.Error(s.h.Name(), err) }}), nil); err != nil {
		return err
	}
	for n := range carts {
		a := &cart{}
		a.SetAlwaysRelevant(true)
		if err = s.world.SpawnAs(a, nil, netguid.GUID(2*(1000+n))); err != nil {
			return err
		}
	}
	s.m, err = mesh.NewServer(mesh.ServerConfig{ID: s.h.Name(), Game: s, Key: [32]byte{9}, Rand: s.h.Secrets(),
		ToServer: func(to string, packet []byte) {
			packet = slices.Clone(packet)
			if s.c.rng.IntN(100) < s.c.lose {
				return
			}
			for _, o := range s.c.servers {
				if o.h.Name() == to {
					s.c.w.At(s.c.w.Now()+5*time.Millisecond, func() {
						if !s.c.w.IsCut(s.h, o.h) && o.h.Program() != nil {
							_ = o.m.Receive(s.h.Name(), packet)
						}
					})
				}
			}
		},
		ToClient: func(player uint64, packet []byte) { mesh.SendOn(s.chans[player], packet) }})
	if err != nil {
		return err
	}
	if s.c.zones {
		if err := s.bootZone(); err != nil {
			return err
		}
	}
	socket, err := s.h.Listen(7777)
	if err != nil {
		return err
	}
	types := append(s.world.ChannelTypes(), mesh.ChannelType(nil))
	s.driver, err = driver.Listen(s.addr().String(), driver.Config{Socket: socket, Clock: s.h.Time, Rand: s.h.Secrets(), Timeout: 5 * time.Second, Channels: types,
		Link: driver.Netcode{Key: netcode.Key{1}, TakeOver: true}, Joined: s.joined, Closed: func(c *driver.Conn, _ netconn.CloseResult) { s.left(c) }})
	return err
}

func (s *server) joined(c *driver.Conn) {
	id := c.ClientID()
	if id == neighbour {
		s.zone.Accept(s.other().h.Name(), c)
		return
	}
	s.peers[id] = s.world.AddConn(c)
	ch, err := mesh.Open(c, func(packet []byte) error { return s.m.ReceiveClient(id, packet) })
	if err != nil {
		s.c.t.Error(err)
	}
	s.chans[id] = ch
	s.m.Connected(id)
	if !s.played && s == s.c.servers[0] && s.own == nil {
		s.played = true
		if err := s.m.Enter(id); err != nil {
			s.c.t.Error(err)
		}
		s.own = &runner{city: s.c}
		s.own.SetAlwaysRelevant(true)
		_ = s.world.Spawn(s.own)
		if s.zone != nil {
			require.NoError(s.c.t, s.zone.Own(s.own, 1))
		}
		if err := s.runners.Possess(s.own, s.peers[id], s.driver.Time(s.h.Time())); err != nil {
			s.c.t.Error(err)
		}
	}
}

func (s *server) left(c *driver.Conn) {
	id := c.ClientID()
	if s.peers[id] == nil || s.peers[id].Conn() != channel.Conn(c.Conn) && s.peers[id].Conn() != channel.Conn(c) {
		return // another one has taken its place
	}
	s.world.RemoveConn(s.peers[id])
	delete(s.peers, id)
	delete(s.chans, id)
	s.m.Disconnected(id)
	if s.own != nil && !s.m.Plays(id) {
		if s.zone == nil { // else it goes on as a mirror
			_ = s.world.Destroy(s.own)
		}
		s.own = nil
	}
}

func (s *server) Tick(now time.Time) error {
	s.driver.TickDispatch(now)
	at := s.driver.Time(now)
	for a := range s.world.All {
		if c, ok := a.(*cart); ok {
			c.X = speed * s.c.w.Now().Seconds()
		}
	}
	if s.m.Plays(me) && s.c.rng.IntN(4) == 0 && s.m.Send(me, []byte(fmt.Sprint(s.note+1))) == nil {
		s.note++
	}
	if err := s.runners.Tick(at); err != nil {
		return err
	}
	if s.zone != nil {
		if err := s.tickZone(now); err != nil {
			return err
		}
	}
	s.world.Step(at)
	s.interp.Tick(at)
	s.m.Step(at)
	s.driver.TickFlush(now)
	return s.driver.Err()
}

func (s *server) Ticket(player uint64) ([]byte, error) {
	return s.c.token(s, player), nil
}

func (c *city) token(s *server, player uint64) []byte {
	now := uint64(simtest.Epoch.Add(c.w.Now()).Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: player, Create: now, Expire: now + 60, Timeout: 5,
		Servers: []netip.AddrPort{s.addr()}, PrivateKey: netcode.Key{1}, Rand: s.h.Secrets()})
	require.NoError(c.t, err)
	return token
}

func (s *server) Save(uint64) []byte {
	s.c.given = append(s.c.given, len(s.c.taken))
	b := binary.LittleEndian.AppendUint32(nil, uint32(s.own.GUID()))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.note))
	if s.zone != nil {
		s.epoch = s.zone.Release(s.own, "")
	}
	b = binary.LittleEndian.AppendUint32(b, s.epoch)
	b, err := s.runners.Depart(s.own, b)
	require.NoError(s.c.t, err)
	return b
}

func (s *server) Stays(uint64, error) {
	if s.epoch != 0 {
		require.NoError(s.c.t, s.zone.Own(s.own, s.epoch))
		s.epoch = 0
	}
	s.runners.Stay(s.own)
}

func (s *server) Moved(uint64) { s.played, s.epoch = true, 0 }

func (s *server) Play(player uint64, state []byte) {
	if s.own != nil { // from the last time
		_ = s.world.Destroy(s.own)
	}
	id := netguid.GUID(binary.LittleEndian.Uint32(state))
	if s.own != nil { // from the last time: its connection hasn't ended
		_ = s.world.Destroy(s.own)
	}
	if s.own, _ = s.world.Find(id).(*runner); s.own == nil { // else it is mirrored here
		s.own = &runner{}
		require.NoError(s.c.t, s.world.SpawnAs(s.own, nil, id))
	}
	s.own.city = s.c
	s.own.SetAlwaysRelevant(true)
	s.note = int(binary.LittleEndian.Uint32(state[4:]))
	if s.zone != nil {
		require.NoError(s.c.t, s.zone.Own(s.own, binary.LittleEndian.Uint32(state[8:])))
	}
	require.NoError(s.c.t, s.runners.Arrive(s.own, s.peers[player], state[12:], s.driver.Time(s.h.Time())))
}

func (s *server) Message(uint64, []byte) {}

// client is the player's.
type client struct {
	c     *city
	h     *simtest.Host
	m     *mesh.Client
	ends  map[string]*end
	drawn string // the server whose world is drawn
	input keys
	note  int

	shown [carts + 1]float64       // where things are drawn
	still [carts + 1]time.Duration // for how long they haven't moved
	worst time.Duration            // since the travel began
	jump  float64                  // the longest way of a thing in a frame; back counts ten times
	gone  int                      // frames in which a thing was missing
}

func (p *client) boot() (err error) {
	p.ends = map[string]*end{}
	first := p.c.servers[0]
	p.m, err = mesh.NewClient(mesh.ClientConfig{Session: 5, Server: first.h.Name(),
		Send: func(to string, packet []byte) {
			if e := p.ends[to]; e != nil {
				mesh.SendOn(e.ch, packet)
			}
		},
		Ready: func(id string) bool { // everything has moved for a while
			e := p.ends[id]
			if e == nil || e.world.Len() < carts {
				return false
			}
			if e.filled == 0 {
				e.filled = p.c.w.Now()
			}
			return p.c.w.Now()-e.filled > p.c.shown
		},
		Message: func(m []byte) {
			if p.note++; string(m) != fmt.Sprint(p.note) {
				p.c.w.Failf("note", "%s after %d", m, p.note-1)
			}
		}})
	p.drawn = first.h.Name()
	p.dial(first.h.Name(), p.c.token(first, me))
	return err
}

func (p *client) dial(id string, ticket []byte) {
	e := &end{}
	w := actorrep.NewClient(actorrep.Config{Failed: func(err error) { p.c.w.Failf("failed", "the client is told %v", err) }})
	w.User = p.c
	require.NoError(p.c.t, e.init(w, func(*runner) keys {
		p.input.N++
		if p.input.Dir = p.c.walk; p.c.walk == 0 {
			p.input.Dir = int8(p.c.w.Now()/(700*time.Millisecond)%2)*2 - 1
		}
		return p.input
	}))
	types := append(e.world.ChannelTypes(), mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
		e.ch = ch
		return func(packet []byte) error { return p.m.Receive(id, packet) }
	}))
	var err error
	e.driver, err = driver.Dial("", driver.Config{Socket: p.h.Open(), Clock: p.h.Time, Rand: p.h.Secrets(), Timeout: 5 * time.Second, Channels: types, Link: driver.Netcode{Token: slices.Clone(ticket)},
		Closed: func(*driver.Conn, netconn.CloseResult) { e.closed = true }})
	require.NoError(p.c.t, err)
	p.ends[id] = e
}

// mine is the player's own runner in a world, when it is predicted there.
func (e *end) mine() *runner {
	for a := range e.world.All {
		if r, ok := a.(*runner); ok && e.runners.Predicting(r) {
			return r
		}
	}
	return nil
}

func (p *client) Tick(now time.Time) error {
	var ids []string
	for _, s := range p.c.servers {
		if p.ends[s.h.Name()] != nil {
			ids = append(ids, s.h.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { // the drawn one first
		switch p.drawn {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	for _, id := range ids {
		p.ends[id].driver.TickDispatch(now)
	}
	next, ticket, goes := p.m.Next()
	if goes && p.ends[next] == nil {
		p.dial(next, ticket)
		ids = append(ids, next)
	}
	if from := p.ends[p.m.Server()]; goes && from != nil {
		p.ends[next].runners.Follow(from.runners)
	}
	p.m.Step(p.c.w.Now())
	for _, id := range ids {
		e := p.ends[id]
		at := e.driver.Time(now)
		e.world.Step(at)
		if err := e.runners.Tick(at); err != nil {
			return err
		}
		e.interp.Tick(at)
	}
	if id := p.m.Server(); id != p.drawn && p.ends[id] != nil && p.ends[id].mine() != nil {
		p.drawn = id
	}
	p.draw()
	for _, id := range ids {
		e := p.ends[id]
		e.driver.TickFlush(now)
		if id != p.m.Server() && id != p.drawn && (!goes || id != next) || e.closed {
			if e.closed {
				p.m.Closed(id)
			}
			_ = e.driver.Close()
			delete(p.ends, id)
		}
	}
	return nil
}

// draw notes what a player sees of the carts and of its own runner.
func (p *client) draw() {
	e := p.ends[p.drawn]
	if e == nil {
		return
	}
	var at [carts + 1]float64
	seen := 0
	for a := range e.world.All {
		switch a := a.(type) {
		case *cart:
			into := cart{X: a.X}
			e.carts.At(a, &into)
			at[int(a.GUID()/2)-1000] = into.X
			seen++
		case *runner:
			if e.runners.Predicting(a) {
				at[carts] = a.X + e.runners.Offset(a, e.driver.Time(p.h.Time()))[0]
				seen++
			}
		}
	}
	if seen != carts+1 {
		p.gone++
	}
	for i := range at {
		if math.Abs(at[i]-p.shown[i]) > 1e-6 {
			p.still[i] = 0
		} else {
			p.still[i] += frame
		}
		p.worst = max(p.worst, p.still[i])
		step := math.Abs(at[i] - p.shown[i])
		if i < carts && at[i] < p.shown[i] {
			step *= 10
		}
		p.jump = max(p.jump, step)
	}
	p.shown = at
}

func newCity(t testing.TB, seed uint64, net netsim.Settings) *city {
	c := &city{t: t, shown: 1500 * time.Millisecond}
	c.init(seed, net)
	return c
}

func (c *city) init(seed uint64, net netsim.Settings) {
	c.w = simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
		if h.IsServer() {
			return c.servers[h.Index()], c.servers[h.Index()].boot()
		}
		return c.client, c.client.boot()
	})
	c.rng = c.w.Rand("city")
	for i := range 2 {
		c.servers = append(c.servers, &server{c: c, h: c.w.AddHost(fmt.Sprintf("server%d", i+1), true)})
	}
	c.client = &client{c: c, h: c.w.AddHost("client1", false)}
	require.NoError(c.t, c.client.h.SetNet(net, net))
}

func (c *city) run(d time.Duration) {
	c.w.RunUntil(c.w.Now() + d)
	require.Nil(c.t, c.w.Failure())
}

// plays is the server that plays the player; nil while it is being given.
func (c *city) plays() (s *server) {
	for _, o := range c.servers {
		if o.h.Program() != nil && o.m.Plays(me) {
			require.True(c.t, s == nil, "two servers play it")
			s = o
		}
	}
	return s
}

// gaps is how often a server simulated another input than the one after the last.
func (c *city) gaps() int { return gapsOf(c.taken) }

func gapsOf(taken []uint32) (n int) {
	for i := 1; i < len(taken); i++ {
		if taken[i]-taken[i-1] != 1 {
			n++
		}
	}
	return n
}

// travelling is gaps from the tick before a player was given until half a second later.
func (c *city) travelling() (n int) {
	for _, at := range c.given {
		n += gapsOf(c.taken[max(at-1, 0):min(at+30, len(c.taken))])
	}
	return n
}

// travel takes the player to the other server, and returns how long a thing stood still in the meantime and shortly after.
func (c *city) travel() time.Duration {
	from, p := c.plays(), c.client
	require.True(c.t, from != nil)
	to := c.servers[1-slices.Index(c.servers, from)]
	p.worst = 0
	require.NoError(c.t, from.m.Travel(me, to.h.Name()))
	for began := c.w.Now(); c.plays() != to || p.drawn != to.h.Name(); {
		require.Less(c.t, c.w.Now()-began, 10*time.Second)
		c.run(frame)
	}
	c.run(time.Duration(500+c.rng.IntN(500)) * time.Millisecond)
	return p.worst
}

// begin lets everything start.
func (c *city) begin() {
	c.run(5 * time.Second)
	c.client.gone, c.client.jump, c.taken = 0, 0, nil
}

// TestCity: with drivers, worlds, prediction and interpolation, at 50 ms each way and 2 % loss, what a client draws stands still for 50 ms at most in 99 of 100 travels, and
// no input is lost by them. Nothing is missing or jumps.
func TestCity(t *testing.T) {
	seeds, travels := uint64(1), 15
	if os.Getenv("CI") != "" && !testing.Short() {
		seeds = 4
	}
	if *long > 0 {
		seeds, travels = *long, 50
	}
	var worst []time.Duration
	gaps, travelling, gone, inputs, without := 0, 0, 0, 0, 0
	jump := 0.0
	for seed := uint64(1); seed <= seeds; seed++ {
		for _, goes := range []bool{true, false} {
			c := newCity(t, seed, netsim.Settings{Lag: 50 * time.Millisecond, Loss: 2})
			c.lose = 2
			c.begin()
			if !goes {
				c.run(time.Duration(travels) * 3 * time.Second)
				without += c.gaps()
				continue
			}
			for range travels {
				worst = append(worst, c.travel())
			}
			p := c.client
			require.Greater(t, p.note, 100)
			require.Len(t, c.given, travels)
			gaps, travelling, gone, inputs, jump = gaps+c.gaps(), travelling+c.travelling(), gone+p.gone, inputs+len(c.taken), max(jump, p.jump)
		}
	}
	slices.Sort(worst)
	p99 := worst[len(worst)*99/100].Round(time.Millisecond)
	t.Logf("seeds 1 to %d, %d travels: standstill p50 %v, p99 %v, worst %v; of %d inputs %d repeated or left out, %d of them within half a second of a travel, without travels %d; things missing in %d frames; longest way in a frame %.2f", seeds, len(worst),
		worst[len(worst)/2].Round(time.Millisecond), p99, worst[len(worst)-1].Round(time.Millisecond), inputs, gaps, travelling, without, gone, jump)
	require.LessOrEqual(t, p99, 50*time.Millisecond)
	require.LessOrEqual(t, gaps, without)
	require.Zero(t, travelling)
	require.Zero(t, gone)
	require.Less(t, jump, speed*0.1)
}

var long = flag.Uint64("city", 0, "seeds of TestCity, with 50 travels each")
