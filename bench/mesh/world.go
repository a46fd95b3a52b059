package main

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// The world, in metres and seconds.
const (
	zoneSide   = 200.0
	sight      = 40.0
	margin     = 45.0
	hysteresis = 2.0
	speed      = 4.0
	betweenLag = time.Millisecond
	clientLag  = 25 * time.Millisecond
	port       = 7777
)

// shape is a run: servers in rows, with so many players and other actors in each one's zone.
type shape struct {
	rows, columns    int
	players, walkers int
	keeps            bool // with Keepers and a store
	margin           int  // instead: a server with so many actors within the margin of the other one, 0: far from it
	far              bool
}

func (s shape) servers() int { return s.rows * s.columns }

// world is a run.
type world struct {
	shape
	sim       *simtest.Simulation
	rng       simtest.Rand
	hz        int
	table     mesh.Table
	store     *kvsim.Store
	servers   []*server
	byID      map[string]*server
	programs  map[*simtest.Host]simtest.Program
	players   []*player
	measures  bool
	calm      bool // nobody walks
	travelled int
	before    counts // when measuring began
	measured  counts
	reads     uint64 // of the store
	writes    uint64
	stored    kvsim.Counters
}

func newWorld(s shape, hz int) *world {
	w := &world{shape: s, hz: hz, byID: map[string]*server{}, table: mesh.Table{Epoch: 1, Cell: zoneSide, Columns: s.columns}}
	w.programs = map[*simtest.Host]simtest.Program{}
	w.sim = simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
		if s, ok := w.programs[h].(*server); ok {
			return s, s.boot()
		}
		return w.programs[h], nil
	})
	w.rng = w.sim.Rand("world")
	for range s.servers() {
		h := w.sim.AddHost(fmt.Sprintf("server%d", len(w.servers)), true)
		h.SetTick(time.Second / time.Duration(hz))
		o := w.newServer(h)
		w.programs[h] = o
		w.servers = append(w.servers, o)
		w.byID[o.id] = o
		w.table.Servers = append(w.table.Servers, o.id)
	}
	if s.keeps {
		h := w.sim.AddHost("store", true)
		w.store = kvsim.New(h, kvsim.Trouble{})
		w.programs[h] = w.store
	}
	lines := netsim.Settings{Lag: clientLag}
	for i := range s.servers() * s.players {
		h := w.sim.AddHost(fmt.Sprintf("client%d", i), false)
		h.SetTick(time.Second / time.Duration(hz))
		must(h.SetNet(lines, lines))
		p := &player{w: w, h: h, id: uint64(i + 1), ends: map[string]*end{}}
		w.programs[h] = p
		w.players = append(w.players, p)
	}
	return w
}

// corner is the corner of a server's zone.
func (w *world) corner(server int) (x, y float64) {
	return float64(server%w.columns) * zoneSide, float64(server/w.columns) * zoneSide
}

// beside reports whether two servers' zones touch.
func (w *world) beside(a, b int) bool {
	dx, dy := a%w.columns-b%w.columns, a/w.columns-b/w.columns
	return max(dx, -dx) <= 1 && max(dy, -dy) <= 1
}

// sides is how many of a zone's four sides have a neighbour.
func (w *world) sides(server int) (n int) {
	for o := range w.servers {
		dx, dy := server%w.columns-o%w.columns, server/w.columns-o/w.columns
		if dx*dx+dy*dy == 1 {
			n++
		}
	}
	return n
}

// populate makes the actors of a server's zone.
func (w *world) populate(s *server) {
	for range w.walkers {
		s.spawn(0)
	}
	if s.index > 0 {
		return
	}
	for i := range w.margin { // along the border, or as far from it
		x := zoneSide - margin/2
		if w.far {
			x = margin / 2
		}
		a := &walker{X: x, Y: zoneSide * (float64(i) + 0.5) / float64(w.margin), Health: 100}
		a.toX, a.toY = a.X, a.Y
		s.add(a)
	}
}

// walk is an actor's way in a tick: to somewhere within 50 m, and then to somewhere else. Those of a run with a margin stay within it.
func (w *world) walk(s *server, a *walker) {
	dx, dy := a.toX-a.X, a.toY-a.Y
	d, step := math.Hypot(dx, dy), speed/float64(w.hz)
	if d <= step {
		reach := 50.0
		if w.margin > 0 {
			reach = margin / 4
		}
		width, height := float64(w.columns)*zoneSide, float64(w.rows)*zoneSide
		a.toX = min(max(a.X+reach*(2*w.rng.Float64()-1), 1), width-1)
		a.toY = min(max(a.Y+reach*(2*w.rng.Float64()-1), 1), height-1)
		if w.margin > 0 {
			base := zoneSide - margin/2
			if w.far {
				base = margin / 2
			}
			a.toX = min(max(a.toX, base-margin/4), base+margin/4)
		}
		a.Heading = math.Mod(360+180/math.Pi*math.Atan2(a.toY-a.Y, a.toX-a.X), 360)
	} else {
		a.X, a.Y = a.X+dx/d*step, a.Y+dy/d*step
	}
	a.MarkDirty()
}

func (w *world) token(s *server, id uint64) []byte {
	now := uint64(simtest.Epoch.Add(w.sim.Now()).Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 600, Timeout: 10, Servers: []netip.AddrPort{s.addr()}, PrivateKey: netcode.Key{1}, Rand: s.h.Secrets()})
	must(err)
	return token
}

// begin begins to measure.
func (w *world) begin() {
	w.measures, w.travelled = true, 0
	w.before = w.sum()
	if w.store != nil {
		w.stored = w.store.Counters
	}
}

// sum is what all servers have sent.
func (w *world) sum() (c counts) {
	for _, s := range w.servers {
		b := s.bytes
		c.clients, c.borders, c.messages, c.travel, c.crossed = c.clients+b.clients, c.borders+b.borders, c.messages+b.messages, c.travel+b.travel, c.crossed+b.crossed
	}
	return c
}

// verdict says what isn't as it should be, after nobody has walked for some seconds.
func (w *world) verdict() error {
	if f := w.sim.Failure(); f != nil {
		return fmt.Errorf("%v", f)
	}
	owners := map[netguid.GUID]int{}
	place := map[netguid.GUID]*walker{}
	for _, s := range w.servers {
		for a := range s.actors.All {
			if a := a.(*walker); s.zone.Owns(a) {
				owners[a.GUID()]++
				place[a.GUID()] = a
			}
		}
	}
	if want := w.walkers*len(w.servers) + w.margin + len(w.players); len(owners) != want {
		return fmt.Errorf("%d actors have an authority, and there are %d", len(owners), want)
	}
	for id, n := range owners {
		if n != 1 {
			return fmt.Errorf("actor %v has %d authorities", id, n)
		}
	}
	for _, p := range w.players {
		e := p.ends[p.mesh.Server()]
		s := w.byID[p.mesh.Server()]
		if e == nil || !s.mesh.Plays(p.id) {
			return fmt.Errorf("player %d isn't at %s", p.id, p.mesh.Server())
		}
		own := place[p.pawn]
		for id, a := range place {
			d := math.Hypot(a.X-own.X, a.Y-own.Y)
			seen, _ := e.actors.Find(id).(*walker)
			if d < sight-1 && (seen == nil || math.Abs(seen.X-a.X) > 0.011 || math.Abs(seen.Y-a.Y) > 0.011) {
				return fmt.Errorf("player %d at %s doesn't see actor %v, %.0f m away, as it is", p.id, s.id, id, d)
			}
		}
	}
	return nil
}

// player is a client.
type player struct {
	w       *world
	h       *simtest.Host
	id      uint64
	mesh    *mesh.Client
	ends    map[string]*end
	entered bool
	pawn    netguid.GUID
}

// end is a client's connection with a server.
type end struct {
	driver *driver.Driver
	actors *actorrep.World
	ch     *channel.Channel
	closed bool
}

func (p *player) dial(id string, ticket []byte) {
	fail := func(err error) { p.w.sim.Failf("client", "%d: %v", p.id, err) }
	e := &end{actors: actorrep.NewClient(actorrep.Config{Failed: fail})}
	must(register(e.actors))
	types := append(e.actors.ChannelTypes(), mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
		e.ch = ch
		return func(packet []byte) error { return p.mesh.Receive(id, packet) }
	}))
	var err error
	e.driver, err = driver.Dial("", driver.Config{Socket: p.h.Open(), Clock: p.h.Time, Rand: p.h.Secrets(), Channels: types, Link: driver.Netcode{Token: slices.Clone(ticket)},
		Closed: func(*driver.Conn, netconn.CloseResult) { e.closed = true }})
	must(err)
	p.ends[id] = e
}

// Tick implements simtest.Program.
func (p *player) Tick(now time.Time) error {
	if p.mesh == nil {
		first := p.w.servers[int(p.id-1)%len(p.w.servers)]
		if !first.spawned {
			return nil
		}
		var err error
		p.mesh, err = mesh.NewClient(mesh.ClientConfig{Session: p.id, Server: first.id, Message: func([]byte) {},
			Send: func(to string, packet []byte) {
				if e := p.ends[to]; e != nil {
					mesh.SendOn(e.ch, packet)
				}
			}})
		must(err)
		p.dial(first.id, p.w.token(first, p.id))
	}
	next, ticket, goes := p.mesh.Next()
	if goes && p.ends[next] == nil {
		p.dial(next, ticket)
	}
	for _, s := range p.w.servers {
		if e := p.ends[s.id]; e != nil {
			e.driver.TickDispatch(now)
			e.actors.Step(e.driver.Time(now))
		}
	}
	p.mesh.Step(p.w.sim.Now())
	next, _, goes = p.mesh.Next()
	for _, s := range p.w.servers {
		e := p.ends[s.id]
		if e == nil {
			continue
		}
		e.driver.TickFlush(now)
		if e.closed || s.id != p.mesh.Server() && (!goes || s.id != next) {
			if e.closed {
				p.mesh.Closed(s.id)
			}
			_ = e.driver.Close()
			delete(p.ends, s.id)
		}
	}
	return nil
}

// counting counts what a server's socket sends.
type counting struct {
	*simtest.Socket
	to *counts
}

// WriteBatch implements udp.Socket.
func (c counting) WriteBatch(msgs []udp.Message) (int, error) {
	n, err := c.Socket.WriteBatch(msgs)
	for _, m := range msgs[:n] {
		if m.Addr.Addr().As4()[1] == 1 { // clients have 10.1.0.0/16
			c.to.clients += uint64(len(m.Buf))
		} else {
			c.to.borders += uint64(len(m.Buf))
		}
	}
	return n, err
}

// end ends measuring, and has everybody stand.
func (w *world) end() {
	a, b := w.sum(), w.before
	w.measured = counts{a.clients - b.clients, a.borders - b.borders, a.messages - b.messages, a.travel - b.travel, a.crossed - b.crossed}
	w.measures, w.calm = false, true
	for _, s := range w.servers {
		s.own, s.all = 0, 0
		for a := range s.actors.All {
			s.all++
			if s.zone.Owns(a.(*walker)) {
				s.own++
			}
		}
	}
	if w.store != nil {
		c := w.store.Counters
		w.reads, w.writes = c.Gets-w.stored.Gets, c.Puts+c.Deletes-w.stored.Puts-w.stored.Deletes
	}
}

// memory is the megabytes of a server, when its clients are gone. The world is over then.
func (w *world) memory() float64 {
	drop := func(server bool) {
		for _, h := range w.sim.Hosts() {
			if h.IsServer() == server {
				h.Crash(time.Hour)
				delete(w.programs, h)
			}
		}
	}
	drop(false)
	clear(w.players)
	with := heap()
	drop(true)
	w.servers, w.byID, w.store = nil, nil, nil
	return float64(with-heap()) / 1e6 / float64(w.shape.servers())
}

// heap is the bytes of what is used.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
