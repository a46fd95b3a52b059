package mesh

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// The simulation: servers, and clients with a player each. Players send numbered inputs, servers send numbered notes, and players who are at one server give each other gold. All packets are
// lost, late, doubled and reordered as a script says, between servers too.

// world is a simulated mesh.
type world struct {
	w       *simtest.Simulation
	rng     simtest.Rand
	servers []*simServer
	clients []*simClient
	lives   map[uint64]*life
	dead    []death
	calm    bool
	rate    int // one in so many ticks a player travels
	link    link
	between link // servers
	tally   tally
}

type tally struct{ travels, moved, stayed, lost, lives, inputs, notes, trades, relogins uint64 }

// link is how packets travel.
type link struct {
	lag, jitter time.Duration
	loss, dup   int
}

// life is what is true of a player from its login until its server has crashed: the ledger.
type life struct {
	number, gold, input, note int
	session                   uint64
	over                      bool // its server has crashed, or it has left
}

// death is a server that has crashed.
type death struct {
	id string
	at time.Duration
}

// saved is a player's state.
type saved struct {
	Life, Gold, Input, Note int
	Session                 uint64
}

func drawMesh(seed uint64) simtest.Script {
	rng := simtest.NewRand(seed, 0x6d657368)
	servers, clients := 2+rng.IntN(3), 1+rng.IntN(5)
	s := simtest.Draw(seed, simtest.Profile{MaxClients: 1, MinRun: 4 * time.Second, MaxRun: 12 * time.Second, MaxFaults: 8,
		Kinds: []simtest.Kind{simtest.Cut, simtest.CutOne, simtest.Pause, simtest.Crash, simtest.Skew}})
	s.Servers, s.Clients = servers, clients
	for i := range s.Faults {
		f := &s.Faults[i]
		host := func() string {
			if n := rng.IntN(2*servers + clients); n < 2*servers {
				return fmt.Sprintf("server%d", 1+n%servers)
			}
			return fmt.Sprintf("client%d", 1+rng.IntN(clients))
		}
		f.Host = host()
		for f.Other != "" {
			if f.Other = host(); f.Other != f.Host {
				break
			}
		}
	}
	set := func(key string, v int) { s.Set(key, strconv.Itoa(v)) }
	set("rate", 5+rng.IntN(60))
	set("lag", rng.IntN(150))
	set("between", rng.IntN(60))
	if rng.IntN(4) > 0 {
		set("jitter", rng.IntN(150))
		set("loss", rng.IntN(30))
		set("dup", rng.IntN(30))
	}
	return s
}

func playMesh(s simtest.Script) (simtest.Result, *world) {
	var g *world
	r := simtest.Play(s, func(w *simtest.Simulation, s *simtest.Script) (simtest.Game, error) {
		number := func(key string) int {
			n, _ := strconv.Atoi(s.Option(key))
			return n
		}
		ms := func(key string) time.Duration { return time.Duration(number(key)) * time.Millisecond }
		g = &world{w: w, rng: w.Rand("mesh"), lives: map[uint64]*life{}, rate: max(1, number("rate")),
			link: link{ms("lag"), ms("jitter"), number("loss"), number("dup")}, between: link{ms("between"), ms("jitter"), number("loss"), number("dup")}}
		for _, h := range w.Hosts() {
			h.SetTick(50 * time.Millisecond)
			if h.IsServer() {
				g.servers = append(g.servers, &simServer{g: g, h: h})
			} else {
				g.clients = append(g.clients, &simClient{g: g, h: h, id: uint64(len(g.clients) + 1)})
			}
		}
		return g, nil
	})
	return r, g
}

// Boot implements simtest.Game.
func (g *world) Boot(h *simtest.Host) (simtest.Program, error) {
	if i := h.Index(); i < len(g.servers) {
		return g.servers[i], g.servers[i].boot()
	}
	c := g.clients[h.Index()-len(g.servers)]
	return c, nil
}

// Calm implements simtest.Game.
func (g *world) Calm() {
	g.calm = true
	g.link, g.between = link{lag: 10 * time.Millisecond}, link{lag: time.Millisecond}
}

// Pending implements simtest.Game: each client knows the one server that plays its player, nobody is on the way, and nothing is unacknowledged.
func (g *world) Pending() string {
	for _, s := range g.servers {
		if s.m == nil {
			return "a server is down"
		}
		if !s.m.Idle() {
			return fmt.Sprintf("%s: players are on the way: %d leaving, %d arriving", s.m.cfg.ID, len(s.m.leaving), len(s.m.arrivals))
		}
	}
	for _, c := range g.clients {
		if c.m == nil || c.m.Lost() {
			return fmt.Sprintf("player %d is nowhere", c.id)
		}
		s := g.owner(c.id)
		if s == nil || s.m.cfg.ID != c.m.Server() || !s.m.Plays(c.id) {
			return fmt.Sprintf("player %d isn't where it thinks, at %s", c.id, c.m.Server())
		}
		if n := len(c.m.out.waiting) + len(s.m.players[c.id].out.waiting); n > 0 {
			return fmt.Sprintf("player %d: %d messages wait", c.id, n)
		}
		if _, _, ok := c.m.Next(); ok {
			return fmt.Sprintf("player %d still goes elsewhere", c.id)
		}
		if l := g.lives[c.id]; l.session == c.session && c.input != l.input || l.session != c.session && c.input > 0 {
			return fmt.Sprintf("player %d has sent %d inputs, and %d came", c.id, c.input, l.input)
		}
	}
	return ""
}

// owner returns the server whose player it is, and checks that there is one at most.
func (g *world) owner(id uint64) (o *simServer) {
	for _, s := range g.servers {
		if s.m != nil && s.m.players[id] != nil {
			if o != nil {
				g.w.Failf("authority", "player %d is both %s's and %s's", id, o.m.cfg.ID, s.m.cfg.ID)
			}
			o = s
		}
	}
	return o
}

// under reports whether a player is, or may yet be, some server's.
func (g *world) under(id uint64) bool {
	for _, s := range g.servers {
		if s.m != nil && slices.ContainsFunc(s.m.arrivals, func(a *arrival) bool { return a.player == id && a.given != nil }) {
			return true
		}
	}
	return g.owner(id) != nil
}

// send sends a packet from host to host.
func (g *world) send(l link, from, to *simtest.Host, b []byte, arrive func(b []byte)) {
	b = slices.Clone(b)
	g.w.AddToHash(b)
	n := 1
	if g.rng.IntN(100) < l.loss {
		n = 0
	} else if g.rng.IntN(100) < l.dup {
		n = 2
	}
	boots := to.Boots()
	for range n {
		d := l.lag
		if l.jitter > 0 {
			d += time.Duration(g.rng.Int64N(int64(l.jitter)))
			if g.rng.IntN(20) == 0 {
				d += time.Duration(g.rng.Int64N(int64(2 * time.Second))) // very late
			}
		}
		g.w.At(g.w.Now()+d, func() {
			if !g.w.IsCut(from, to) && to.Program() != nil && to.Boots() == boots {
				arrive(b)
			}
		})
	}
}

// simServer is a game server.
type simServer struct {
	g      *world
	h      *simtest.Host
	m      *Server
	states map[uint64]*saved
	heard  map[uint64]time.Duration // clients
	inbox  []func()
	dead   int // how many of world.dead it knows
}

func (s *simServer) id() string { return fmt.Sprintf("%s-%d", s.h.Name(), s.h.Boots()) }

func (s *simServer) boot() (err error) {
	s.states, s.heard, s.inbox, s.dead = map[uint64]*saved{}, map[uint64]time.Duration{}, nil, len(s.g.dead)
	id := s.id()
	s.m, err = NewServer(ServerConfig{ID: id, Game: s, Key: [32]byte{1}, Rand: s.h.Secrets(),
		ToServer: func(to string, b []byte) {
			for _, o := range s.g.servers {
				if o.m != nil && o.m.cfg.ID == to {
					s.g.send(s.g.between, s.h, o.h, b, func(b []byte) { o.inbox = append(o.inbox, func() { o.check(o.m.Receive(id, b)) }) })
				}
			}
		},
		ToClient: func(player uint64, b []byte) {
			c := s.g.clients[player-1]
			s.g.send(s.g.link, s.h, c.h, b, func(b []byte) { c.inbox = append(c.inbox, func() { c.receive(id, b) }) })
		}})
	return err
}

func (s *simServer) check(err error) {
	if err != nil {
		s.g.w.Failf("honest", "%v", err)
	}
}

// Crashed implements simtest.Crasher.
func (s *simServer) Crashed() {
	s.g.dead = append(s.g.dead, death{s.m.cfg.ID, s.g.w.Now()})
	for id := range s.m.players {
		s.g.lives[id].over = true
	}
	for _, l := range s.m.leaving { // which the next server may never hear
		s.g.lives[l.player].over = true
	}
	s.g.tally.add(s.m)
	s.m, s.states = nil, nil
}

func (t *tally) add(m *Server) {
	t.moved += m.Counters.Moved
	t.stayed += m.Counters.Stayed
	t.lost += m.Counters.Lost
}

func (s *simServer) Tick(now time.Time) error {
	g := s.g
	inbox := s.inbox
	s.inbox = nil
	for _, f := range inbox {
		f()
	}
	for s.dead < len(g.dead) && g.w.Now() > g.dead[s.dead].at+time.Second {
		id := g.dead[s.dead].id
		for _, l := range s.m.leaving {
			g.lives[l.player].over = g.lives[l.player].over || l.to == id
		}
		for _, a := range s.m.arrivals {
			g.lives[a.player].over = g.lives[a.player].over || a.from == id && a.given != nil
		}
		s.m.Gone(id)
		s.dead++
	}
	var here []uint64
	for _, c := range g.clients {
		id := c.id
		if t, ok := s.heard[id]; ok && g.w.Now()-t > time.Second {
			delete(s.heard, id)
			s.m.Disconnected(id)
		}
		if s.m.Plays(id) != (s.m.Plays(id) && s.states[id] != nil) {
			g.w.Failf("state", "player %d plays at %s without a state", id, s.m.cfg.ID)
		}
		if g.owner(id) == s && s.m.Plays(id) {
			here = append(here, id)
		}
	}
	for _, id := range here {
		if g.calm {
			break
		}
		st := s.states[id]
		if g.rng.IntN(2) == 0 && s.m.Send(id, fmt.Append(nil, st.Note+1)) == nil {
			st.Note++
			g.lives[id].note++
		}
		if other := here[g.rng.IntN(len(here))]; other != id && st.Gold > 0 && s.m.Plays(other) {
			st.Gold--
			s.states[other].Gold++
			g.lives[id].gold--
			g.lives[other].gold++
			g.tally.trades++
		}
		if to := g.servers[g.rng.IntN(len(g.servers))]; to != s && g.rng.IntN(g.rate) == 0 && s.m.Travel(id, to.id()) == nil {
			g.tally.travels++
		}
		if g.rng.IntN(2000) == 0 {
			s.m.Leave(id)
			g.lives[id].over = true
			delete(s.states, id)
		}
	}
	s.m.Step(now.Sub(simtest.Epoch))
	return nil
}

// fromClient is a packet of a client for a server ID.
func (s *simServer) fromClient(c *simClient, id string, ticket, b []byte) {
	if id != s.m.cfg.ID { // another start of this server: the connection is no more
		s.g.send(s.g.link, s.h, c.h, nil, func([]byte) { c.inbox = append(c.inbox, func() { c.closed(id) }) })
		return
	}
	if _, ok := s.heard[c.id]; !ok {
		if string(ticket) != fmt.Sprint(c.id, " at ", id) {
			s.g.w.Failf("ticket", "player %d dials %s with %q", c.id, id, ticket)
		}
		s.m.Connected(c.id)
	}
	s.heard[c.id] = s.g.w.Now()
	s.check(s.m.ReceiveClient(c.id, b))
}

func (s *simServer) Ticket(player uint64) ([]byte, error) {
	if !s.g.calm && s.g.rng.IntN(20) == 0 {
		return nil, errPacket
	}
	return fmt.Append(nil, player, " at ", s.m.cfg.ID), nil
}

func (s *simServer) Save(player uint64) []byte {
	b, _ := json.Marshal(s.states[player])
	return b
}

// truth checks a player's state against the ledger.
func (s *simServer) truth(player uint64, st *saved) *life {
	l := s.g.lives[player]
	if st == nil || *st != (saved{l.number, l.gold, l.input, l.note, l.session}) {
		s.g.w.Failf("state", "player %d at %s: %+v, and in truth %+v", player, s.m.cfg.ID, st, *l)
	}
	return l
}

func (s *simServer) Play(player uint64, state []byte) {
	var st saved
	s.check(json.Unmarshal(state, &st))
	s.truth(player, &st)
	s.states[player] = &st
	s.g.owner(player)
}

func (s *simServer) Moved(player uint64)             { delete(s.states, player) }
func (s *simServer) Stays(player uint64, _ error)    { s.truth(player, s.states[player]) }
func (s *simServer) Message(player uint64, m []byte) { s.input(player, m) }

// input is a player's input: each is simulated once, in order.
func (s *simServer) input(player uint64, m []byte) {
	var session uint64
	var n int
	_, _ = fmt.Sscan(string(m), &session, &n)
	st := s.states[player]
	l := s.truth(player, st)
	if session != l.session { // the client has begun anew
		l.session, l.input, st.Session, st.Input = session, 0, session, 0
	}
	if n != l.input+1 {
		s.g.w.Failf("input", "player %d at %s: input %d after %d", player, s.m.cfg.ID, n, l.input)
	}
	l.input, st.Input = n, n
	s.g.tally.inputs++
}

// simClient is a player's client.
type simClient struct {
	g       *world
	h       *simtest.Host
	id      uint64
	m       *Client
	session uint64
	input   int
	note    int
	again   time.Duration
	inbox   []func()
	tickets map[string][]byte
}

// Crashed implements simtest.Crasher.
func (c *simClient) Crashed() { c.m, c.inbox = nil, nil }

// login has the player enter, or finds where it still plays, as a login service would.
func (c *simClient) login() {
	g := c.g
	if g.w.Now() < c.again {
		return
	}
	c.again = g.w.Now() + 300*time.Millisecond
	o := g.owner(c.id)
	if o == nil {
		if g.under(c.id) {
			return
		}
		if o = g.servers[g.rng.IntN(len(g.servers))]; o.m == nil {
			return
		}
		number := 1
		if l := g.lives[c.id]; l != nil {
			number = l.number + 1
			for _, s := range g.servers { // it was given to one that had crashed
				l.over = l.over || s.m != nil && slices.ContainsFunc(s.m.leaving, func(l *leaving) bool {
					return l.player == c.id && slices.ContainsFunc(g.dead, func(d death) bool { return d.id == l.to })
				})
			}
			if !l.over {
				g.w.Failf("lost", "player %d is nowhere, and no server of its has crashed", c.id)
			}
		}
		g.lives[c.id] = &life{number: number, gold: 100}
		o.states[c.id] = &saved{Life: number, Gold: 100}
		if err := o.m.Enter(c.id); err != nil {
			g.w.Failf("enter", "%v", err)
		}
		g.tally.lives++
	} else {
		g.tally.relogins++
	}
	c.session++
	c.input, c.note, c.inbox = 0, -1, nil
	c.tickets = map[string][]byte{o.m.cfg.ID: fmt.Append(nil, c.id, " at ", o.m.cfg.ID)}
	for _, s := range g.servers {
		delete(s.heard, c.id) // its connections are new ones
	}
	c.m, _ = NewClient(ClientConfig{Session: c.session, Server: o.m.cfg.ID, Send: c.send, Message: c.noted})
}

func (c *simClient) send(server string, b []byte) {
	session := c.session
	for _, s := range c.g.servers {
		if len(server) > len(s.h.Name()) && server[:len(s.h.Name())] == s.h.Name() {
			ticket := c.tickets[server]
			c.g.send(c.g.link, c.h, s.h, b, func(b []byte) {
				s.inbox = append(s.inbox, func() {
					if c.session == session { // a former connection's packets are dropped by the link
						s.fromClient(c, server, ticket, b)
					}
				})
			})
		}
	}
}

func (c *simClient) receive(server string, b []byte) {
	if c.m != nil && c.tickets[server] != nil { // else there is no connection any more
		if err := c.m.Receive(server, b); err != nil {
			c.g.w.Failf("honest", "%v", err)
		}
	}
}

func (c *simClient) closed(server string) {
	if c.m != nil {
		c.m.Closed(server)
	}
}

// noted is a note of a server: each comes once, in order.
func (c *simClient) noted(m []byte) {
	var n int
	_, _ = fmt.Sscan(string(m), &n)
	if c.note >= 0 && n != c.note+1 {
		c.g.w.Failf("note", "player %d: note %d after %d", c.id, n, c.note)
	}
	c.note = n
	c.g.tally.notes++
}

func (c *simClient) Tick(now time.Time) error {
	inbox := c.inbox
	c.inbox = nil
	for _, f := range inbox {
		f()
	}
	if c.m == nil || c.m.Lost() {
		c.login()
		if c.m == nil {
			return nil
		}
	}
	if id, ticket, ok := c.m.Next(); ok {
		c.tickets[id] = slices.Clone(ticket)
	}
	maps.DeleteFunc(c.tickets, func(id string, _ []byte) bool { // the others' connections are closed
		next, _, _ := c.m.Next()
		return id != c.m.Server() && id != next
	})
	if !c.g.calm && c.m.Send(fmt.Append(nil, c.session, " ", c.input+1)) == nil {
		c.input++
	}
	c.m.Step(now.Sub(simtest.Epoch))
	return nil
}

var (
	seeds = flag.Int("seeds", 0, "seeds of the simulation; default 50, and 200 with CI set")
	first = flag.Uint64("first", 1, "the first of them")
)

// seedsToPlay is how many seeds a test plays: as many as were asked for, or else more where CI is set.
func seedsToPlay(asked, long, short int) int {
	switch {
	case asked > 0:
		return asked
	case os.Getenv("CI") != "" && !testing.Short():
		return long
	}
	return short
}

// TestSimulated plays meshes with crashes, pauses, partitions, and packets that are lost, late and doubled: a player is one server's at any time, its state is what it was, each input and each
// note comes once and in order, and in the end everybody plays somewhere.
func TestSimulated(t *testing.T) {
	n := seedsToPlay(*seeds, 200, 50)
	var sum tally
	for seed := *first; seed < *first+uint64(n); seed++ {
		r, g := playMesh(drawMesh(seed))
		if !r.OK() {
			r = simtest.Shrink(r, 200, func(s simtest.Script) simtest.Result {
				r, _ := playMesh(s)
				return r
			}, nil)
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		for _, s := range g.servers {
			g.tally.add(s.m)
		}
		a, b := &sum, g.tally
		a.travels, a.moved, a.stayed, a.lost, a.lives = a.travels+b.travels, a.moved+b.moved, a.stayed+b.stayed, a.lost+b.lost, a.lives+b.lives
		a.inputs, a.notes, a.trades, a.relogins = a.inputs+b.inputs, a.notes+b.notes, a.trades+b.trades, a.relogins+b.relogins
	}
	t.Logf("seeds %d to %d: %+v", *first, *first+uint64(n)-1, sum)
	if sum.moved == 0 || sum.stayed == 0 || sum.trades == 0 {
		t.Fatal("nothing was tried")
	}
}

// TestSimulatedTwice: the same seed gives the same run.
func TestSimulatedTwice(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		a, _ := playMesh(drawMesh(seed))
		b, _ := playMesh(drawMesh(seed))
		if a.Hash != b.Hash {
			t.Fatalf("seed %d: %v and %v", seed, a.String(), b.String())
		}
	}
}
