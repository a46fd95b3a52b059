package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// walker is an actor: a player's, or the game's own.
type walker struct {
	mesh.Body
	X       float64 `net:"q=0.01"`
	Y       float64 `net:"q=0.01"`
	Heading float64 `net:"rot=12"`
	Health  uint8   `net:"max=100"`

	toX, toY float64
	player   uint64
}

func (a *walker) Location() (x, y, z float64) { return a.X, a.Y, 0 }

// stateBytes is what a walker's state has; a game's has an inventory and more, which stateMore stands for.
const (
	stateBytes = 5*8 + 1
	stateMore  = 200
)

func (a *walker) state() []byte {
	b := make([]byte, 0, stateBytes+stateMore+8)
	for _, v := range [...]float64{a.X, a.Y, a.toX, a.toY} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	b = binary.LittleEndian.AppendUint64(b, a.player)
	return append(append(b, a.Health), make([]byte, stateMore)...)
}

func (a *walker) set(b []byte) {
	for i, v := range [...]*float64{&a.X, &a.Y, &a.toX, &a.toY} {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	a.player, a.Health = binary.LittleEndian.Uint64(b[32:]), b[40]
}

// server is a game server of the world.
type server struct {
	w       *world
	h       *simtest.Host
	index   int
	id      string
	driver  *driver.Driver
	actors  *actorrep.World
	zone    *mesh.Zone
	mesh    *mesh.Server
	keeper  *mesh.Keeper
	view    *kvsim.View
	borders []*border
	peers   map[uint64]*actorrep.Peer
	chans   map[uint64]*channel.Channel
	pawns   map[uint64]*walker
	epochs  map[uint64]uint32
	going   map[uint64]string
	inbox   []letter
	spawned bool
	bytes   counts
	ticks   []time.Duration // CPU time of each tick
	zones   []time.Duration // of that, what the borders take
	own     int             // actors, at the end
	all     int             // with mirrors
	wrong   error
}

// counts is bytes that a server has sent.
type counts struct {
	clients, borders, messages, travel uint64
	crossed                            uint64 // actors that went to another server
}

// letter is a packet of another server's Zone or Server.
type letter struct {
	from string
	zone bool
	b    []byte
}

// border is a connection to a neighbour.
type border struct {
	to     *server
	driver *driver.Driver
	actors *actorrep.World
}

const neighbours = 1 << 20 // and the index of a server is the client ID of its connections

func (w *world) newServer(h *simtest.Host) *server {
	return &server{w: w, h: h, index: len(w.servers), id: fmt.Sprintf("s%d", len(w.servers)), peers: map[uint64]*actorrep.Peer{}, chans: map[uint64]*channel.Channel{},
		pawns: map[uint64]*walker{}, epochs: map[uint64]uint32{}, going: map[uint64]string{}}
}

func (s *server) fail(err error) {
	if err != nil && s.wrong == nil {
		s.wrong = fmt.Errorf("%s: %w", s.id, err)
	}
}

// must ends the program: it isn't the run that went wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func register(w *actorrep.World) error {
	return w.Register("Walker", (*walker)(nil), actorrep.CullDistance(sight))
}

func (s *server) boot() error {
	w := s.w
	g := &graph.Graph{}
	s.actors = actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(s.index), Servers: netguid.MaxServers}, Relevancy: g.Relevancy, Failed: s.fail})
	must(register(s.actors))
	table := w.table
	if w.store != nil { // until the Keeper has the zones
		table.Servers = slices.Repeat([]string{s.id}, len(table.Servers))
	}
	carry := func(zone bool, sent *uint64) func(to string, b []byte) {
		return func(to string, b []byte) {
			*sent += uint64(len(b))
			o, b := w.byID[to], slices.Clone(b)
			w.sim.At(w.sim.Now()+betweenLag, func() { o.inbox = append(o.inbox, letter{s.id, zone, b}) })
		}
	}
	var err error
	s.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: s.id, World: s.actors, Game: zoneGame{s}, Table: table, Margin: margin, Hysteresis: hysteresis, Key: [32]byte{1}, Rand: s.h.Secrets(),
		ToServer: carry(true, &s.bytes.messages)})
	must(err)
	s.mesh, err = mesh.NewServer(mesh.ServerConfig{ID: s.id, Game: s, Key: [32]byte{1}, Rand: s.h.Secrets(), ToServer: carry(false, &s.bytes.travel),
		ToClient: func(player uint64, packet []byte) { mesh.SendOn(s.chans[player], packet) }})
	must(err)
	if w.store != nil {
		plan := w.table
		plan.Servers = slices.Clone(w.table.Servers)
		for i := range plan.Servers {
			plan.Servers[i] = "z" + plan.Servers[i][1:]
		}
		s.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: s.zone, Plan: plan, Zones: []string{fmt.Sprintf("z%d", s.index)}, Save: func(a mesh.Actor) []byte { return a.(*walker).state() }})
		must(err)
		s.view = w.store.View(s.h, s.keeper)
	}
	socket, err := s.h.Listen(port)
	if err != nil {
		return err
	}
	s.driver, err = driver.Listen(s.addr().String(), driver.Config{Socket: counting{socket, &s.bytes}, Clock: s.h.Time, Rand: s.h.Secrets(), MaxConns: 4096, Channels: append(s.actors.ChannelTypes(), mesh.ChannelType(nil)),
		Link: driver.Netcode{Key: netcode.Key{1}}, Joined: s.joined, Closed: func(c *driver.Conn, _ netconn.CloseResult) { s.left(c) }})
	return err
}

func (s *server) addr() netip.AddrPort { return netip.AddrPortFrom(s.h.Addr(), port) }

func (s *server) joined(c *driver.Conn) {
	id := c.ClientID()
	if id >= neighbours {
		s.peers[id] = s.zone.Accept(s.w.servers[id-neighbours].id, c)
		return
	}
	s.peers[id] = s.actors.AddConn(c)
	ch, err := mesh.Open(c, func(packet []byte) error { return s.mesh.ReceiveClient(id, packet) })
	s.fail(err)
	s.chans[id] = ch
	s.mesh.Connected(id)
	if p := s.w.players[id-1]; !p.entered {
		p.entered = true
		s.fail(s.mesh.Enter(id))
		s.pawns[id] = s.spawn(id)
		p.pawn = s.pawns[id].GUID()
	}
}

func (s *server) left(c *driver.Conn) {
	id := c.ClientID()
	if p := s.peers[id]; p == nil || p.Conn() != channel.Conn(c.Conn) && p.Conn() != channel.Conn(c) {
		return // another one has taken its place
	}
	s.actors.RemoveConn(s.peers[id])
	delete(s.peers, id)
	if id < neighbours {
		delete(s.chans, id)
		s.mesh.Disconnected(id)
	}
}

// spawn has a new walker in the server's zone.
func (s *server) spawn(player uint64) *walker {
	x, y := s.w.corner(s.index)
	a := &walker{X: x + zoneSide*s.w.rng.Float64(), Y: y + zoneSide*s.w.rng.Float64(), Health: 100, player: player}
	a.toX, a.toY = a.X, a.Y
	s.add(a)
	return a
}

func (s *server) add(a *walker) {
	s.fail(s.actors.Spawn(a))
	s.fail(s.zone.Own(a, 1))
}

// Tick implements simtest.Program: a tick as a game's.
func (s *server) Tick(now time.Time) error {
	began := cputime.Thread()
	borders := time.Duration(0)
	part := func(f func()) {
		t := cputime.Thread()
		f()
		borders += cputime.Thread() - t
	}
	at := s.driver.Time(now)
	if s.keeper != nil {
		for _, op := range s.keeper.Step(now.Sub(simtest.Epoch), s.view.Events()) {
			s.view.Do(op)
		}
		if s.keeper.Over() {
			return fmt.Errorf("%s has lost its lease", s.id)
		}
	}
	s.driver.TickDispatch(now)
	part(func() {
		inbox := s.inbox
		s.inbox = nil
		for _, l := range inbox {
			if l.zone {
				s.fail(s.zone.Receive(l.from, l.b))
			} else {
				s.fail(s.mesh.Receive(l.from, l.b))
			}
		}
		if s.borders == nil {
			s.dial()
		}
		for _, b := range s.borders {
			b.driver.TickDispatch(now)
			b.actors.Step(at)
		}
	})
	s.play()
	part(func() { s.zone.Step(at) })
	s.actors.Step(at)
	s.mesh.Step(at)
	part(func() {
		for _, b := range s.borders {
			b.driver.TickFlush(now)
		}
	})
	s.driver.TickFlush(now)
	if s.w.measures {
		s.ticks = append(s.ticks, cputime.Thread()-began)
		s.zones = append(s.zones, borders)
	}
	if s.wrong != nil {
		return s.wrong
	}
	return s.driver.Err()
}

// play is the game's step.
func (s *server) play() {
	if !s.spawned && (s.keeper == nil || s.keeper.Holds(fmt.Sprintf("z%d", s.index)) > 0) {
		s.spawned = true
		s.w.populate(s)
	}
	for id, p := range s.peers {
		if id < neighbours && p.ViewTarget() == nil {
			if a := s.actors.Find(s.w.players[id-1].pawn); a != nil {
				p.SetViewTarget(a)
			}
		}
	}
	if s.w.calm {
		return
	}
	for a := range s.actors.All {
		if a := a.(*walker); s.zone.Owns(a) {
			s.w.walk(s, a)
		}
	}
}

// dial connects with the neighbours whose zones are within the margin.
func (s *server) dial() {
	s.borders = []*border{}
	for _, o := range s.w.servers {
		if o == s || !s.w.beside(s.index, o.index) {
			continue
		}
		b := &border{to: o, actors: actorrep.NewClient(actorrep.Config{Failed: s.fail})}
		must(register(b.actors))
		var err error
		b.driver, err = driver.Dial("", driver.Config{Socket: counting{s.h.Open(), &s.bytes}, Clock: s.h.Time, Rand: s.h.Secrets(), Channels: append(b.actors.ChannelTypes(), mesh.ChannelType(func(*channel.Channel) func([]byte) error {
			return func([]byte) error { return nil }
		})), Link: driver.Netcode{Token: s.w.token(o, uint64(neighbours+s.index))}})
		must(err)
		s.zone.Mirror(o.id, b.actors)
		s.borders = append(s.borders, b)
	}
}

// zoneGame is a server's mesh.ZoneGame.
type zoneGame struct{ *server }

func (z zoneGame) Make(string) mesh.Actor { return &walker{} }

func (z zoneGame) Give(a mesh.Actor, to string) ([]byte, bool) {
	w := a.(*walker)
	if p := w.player; p != 0 {
		if z.mesh.Plays(p) && z.mesh.Travel(p, to) == nil {
			z.going[p] = to
		}
		return nil, false
	}
	z.bytes.crossed++
	return w.state(), true
}

func (z zoneGame) Take(a mesh.Actor, state []byte) error {
	a.(*walker).set(state)
	return nil
}

func (z zoneGame) Call(mesh.Actor, string, []byte)  {}
func (z zoneGame) Undelivered(netguid.GUID, []byte) {}

// Ticket implements mesh.Game.
func (s *server) Ticket(player uint64) ([]byte, error) { return s.w.token(s, player), nil }

// Save implements mesh.Game.
func (s *server) Save(player uint64) []byte {
	a := s.pawns[player]
	e := s.zone.Release(a, s.going[player])
	s.epochs[player] = e
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(a.state(), uint32(a.GUID())), e)
}

// Play implements mesh.Game.
func (s *server) Play(player uint64, state []byte) {
	n := len(state) - 8
	id := netguid.GUID(binary.LittleEndian.Uint32(state[n:]))
	a, _ := s.actors.Find(id).(*walker)
	if a == nil {
		a = &walker{}
		s.fail(s.actors.SpawnAs(a, nil, id))
	}
	a.set(state)
	s.pawns[player] = a
	s.fail(s.zone.Own(a, binary.LittleEndian.Uint32(state[n+4:])))
}

// Moved implements mesh.Game.
func (s *server) Moved(player uint64) {
	delete(s.epochs, player)
	delete(s.pawns, player)
	s.bytes.crossed++
	s.w.travelled++
}

// Stays implements mesh.Game.
func (s *server) Stays(player uint64, _ error) {
	if e := s.epochs[player]; e != 0 {
		delete(s.epochs, player)
		s.fail(s.zone.Own(s.pawns[player], e))
	}
}

// Message implements mesh.Game.
func (s *server) Message(uint64, []byte) {}
