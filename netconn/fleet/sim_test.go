package fleet

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// The simulation: server1 has the store; the first clients are game servers, then come token services with a placer each, and the last one
// has all players.

var simTiming = Timing{Beat: 200 * time.Millisecond, Expiry: time.Second, Life: 3 * time.Second, OpTimeout: 400 * time.Millisecond}

const (
	simTick      = 50 * time.Millisecond
	dialTimeout  = time.Second // for each server in a token
	simDeadline  = time.Second
	networkDelay = 30 * time.Millisecond
)

// world is a simulated fleet.
type world struct {
	w       *simtest.Simulation
	store   *kvsim.Store
	servers []*simServer
	placers []*simPlacer
	crowd   *crowd
	rng     simtest.Rand
	policy  Policy
	calm    bool
	tally   tally
	owner   map[uint64]uint64 // players by the slots of their placements
	failed  map[uint64]int    // placings of a player that ended with ErrUnavailable, or whose placer crashed
}

type tally struct{ placed, parties, walkIns, denied, unavailable, full, deadPlaced, drains, mostSeats uint64 }

// drawFleet is the script of a seed.
func drawFleet(seed uint64) simtest.Script {
	rng := simtest.NewRand(seed, 0x666c656574)
	servers, placers := 2+rng.IntN(4), 1+rng.IntN(3)
	s := simtest.Draw(seed, simtest.Profile{MaxClients: 1, MinRun: 6 * time.Second, MaxRun: 14 * time.Second, MaxFaults: 8,
		Kinds: []simtest.Kind{simtest.Cut, simtest.CutOne, simtest.Pause, simtest.Crash, simtest.Skew}})
	s.Clients = servers + placers + 1
	for i := range s.Faults {
		f := &s.Faults[i]
		victim := fmt.Sprintf("client%d", 1+rng.IntN(servers+placers))
		if f.Host != "server1" {
			f.Host = victim
		} else if f.Other != "" {
			f.Other = victim
		}
		if f.Host == "server1" && f.Kind == simtest.Skew {
			f.PPM /= 10
		}
	}
	set := func(key string, v int) { s.Set(key, strconv.Itoa(v)) }
	set("servers", servers)
	set("placers", placers)
	set("capacity", 2+rng.IntN(12))
	set("players", 4+rng.IntN(servers*8))
	set("policy", rng.IntN(2))
	if rng.IntN(2) == 0 {
		set("lostop", rng.IntN(8))
		set("lostresult", rng.IntN(8))
		set("slow", rng.IntN(10))
		set("break", rng.IntN(3))
	}
	return s
}

func playFleet(s simtest.Script) (simtest.Result, *world) {
	var g *world
	r := simtest.Play(s, func(w *simtest.Simulation, s *simtest.Script) (simtest.Game, error) {
		number := func(key string) int {
			n, _ := strconv.Atoi(s.Option(key))
			return n
		}
		if n := number("servers") + number("placers") + 1; s.Clients != n || s.Servers != 1 {
			return nil, fmt.Errorf("%d clients, not %d", s.Clients, n)
		}
		g = &world{owner: map[uint64]uint64{}, failed: map[uint64]int{}, w: w, rng: w.Rand("fleet"), policy: Policy(number("policy"))}
		g.store = kvsim.New(w.Host("server1"), kvsim.Trouble{LostOp: number("lostop"), LostResult: number("lostresult"), Slow: number("slow"),
			SlowBy: 2 * time.Second, BreakWatch: number("break")})
		for i, h := range w.Hosts()[1:] {
			h.SetTick(simTick)
			switch {
			case i < number("servers"):
				g.servers = append(g.servers, &simServer{g: g, h: h, capacity: number("capacity"), addr: netip.AddrPortFrom(h.Addr(), 7777)})
			case i < number("servers")+number("placers"):
				g.placers = append(g.placers, &simPlacer{g: g, h: h})
			default:
				g.crowd = &crowd{g: g, h: h}
				g.crowd.gather(number("players"))
			}
		}
		return g, nil
	})
	return r, g
}

// Boot implements simtest.Game.
func (g *world) Boot(h *simtest.Host) (simtest.Program, error) {
	switch i := h.Index() - 1; {
	case i < 0:
		return g.store, nil
	case i < len(g.servers):
		return g.servers[i], g.servers[i].boot()
	case i < len(g.servers)+len(g.placers):
		return g.placers[i-len(g.servers)], g.placers[i-len(g.servers)].boot()
	}
	return g.crowd, nil
}

// Calm implements simtest.Game.
func (g *world) Calm() {
	g.calm = true
	g.store.Trouble = kvsim.Trouble{Delay: time.Millisecond}
	for _, p := range g.crowd.players {
		p.party = nil // a party may fit nowhere
	}
}

// Pending implements simtest.Game: in the calm every player finds a server if there is room, every seat is used or free, and every list is right.
func (g *world) Pending() string {
	room := 0
	for _, s := range g.servers {
		if s.m == nil {
			return "a server is down"
		}
		if s.m.info.State != Ready || !s.m.Announced() {
			return "a server isn't ready"
		}
		room += s.capacity
		value, _, ok := g.store.Entry(s.m.seats.cell.key)
		rec, err := parseSeats(value)
		if !ok || err != nil || rec.held != len(s.m.seats.players) || len(rec.placements) > 0 || len(s.m.seats.walks) > 0 {
			return fmt.Sprintf("the seats of %s: %+v, %d players", s.m.ID(), rec, s.m.Players())
		}
		if n := g.crowd.on(s); n != len(s.m.seats.players) {
			return fmt.Sprintf("%d players on %s, which has %d", n, s.m.ID(), len(s.m.seats.players))
		}
	}
	playing := 0
	for _, p := range g.crowd.players {
		if p.server != nil {
			playing++
		}
	}
	if playing < min(len(g.crowd.players), room) {
		return fmt.Sprintf("%d of %d players play, in %d seats", playing, len(g.crowd.players), room)
	}
	for _, p := range g.placers {
		if p.m == nil || !p.m.list.fresh() || p.m.list.Len() != len(g.servers) {
			return "a list isn't right"
		}
	}
	return ""
}

// simServer is a game server: what its netcode.Server would ask Admit, players ask through dials.
type simServer struct {
	g        *world
	h        *simtest.Host
	addr     netip.AddrPort
	capacity int
	m        *Server
	view     *kvsim.View
	dials    []*player
	ready    time.Duration // when it will be
	died     map[string]time.Duration
	conns    map[uint64]*player
}

func (s *simServer) boot() (err error) {
	if s.died == nil {
		s.died = map[string]time.Duration{}
	}
	s.m, err = NewServer(ServerConfig{Name: s.h.Name(), Timing: simTiming, Rand: s.h.Secrets(), Info: Info{Addrs: []netip.AddrPort{s.addr}, Capacity: s.capacity, Region: "r"}})
	if err != nil {
		return err
	}
	s.view = s.g.store.View(s.h, s.m)
	s.ready = s.g.w.Now() + 300*time.Millisecond
	s.conns = map[uint64]*player{}
	return nil
}

// Crashed implements simtest.Crasher.
func (s *simServer) Crashed() {
	s.died[s.m.ID()] = s.g.w.Now()
	s.view.Retire()
	s.g.crowd.lost(s)
	s.m, s.conns, s.dials = nil, nil, nil
}

func (s *simServer) Tick(now time.Time) error {
	if s.g.w.Now() >= s.ready {
		s.m.Ready()
	}
	kv.Tick(s.m, s.view, now.Sub(simtest.Epoch))
	dials := s.dials
	s.dials = nil
	for _, p := range dials {
		if p.to == s {
			s.dialed(p)
		}
	}
	if n := len(s.m.seats.players); n > s.capacity {
		s.g.w.Failf("overfilled", "%s has %d players in %d seats", s.m.ID(), n, s.capacity)
	}
	if !s.g.calm && s.m.info.State == Ready && s.g.rng.IntN(600) == 0 {
		s.g.tally.drains++
		s.m.Drain()
	}
	if s.m.Drained() {
		s.m.Stop()
	}
	if s.m.Stopped() { // and another one begins
		s.h.Crash(time.Second)
		return nil
	}
	if s.m.info.State == Draining {
		for _, p := range s.g.crowd.players {
			if p.server == s && s.conns[p.id] == p {
				p.leave(s)
				break // one a tick
			}
		}
	}
	return nil
}

// dialed answers a player's packet.
func (s *simServer) dialed(p *player) {
	holds := p.ticket.server == serverHash(s.m.ID()) && p.promised == s && s.g.w.Now() < p.good
	var user [netcode.UserDataBytes]byte
	p.ticket.Write(&user)
	answer := s.m.Admit(netcode.ClientInfo{ID: p.id, UserData: &user})
	if holds && answer != netcode.Admit && s.m.info.State != Starting {
		s.g.w.Failf("promise", "player %d has a seat on %s and isn't let in: %d, %s", p.id, s.m.ID(), answer, s.m.info.State)
	}
	switch answer {
	case netcode.Admit:
		if !holds {
			s.g.tally.walkIns++
		}
		s.conns[p.id] = p
		p.joined(s)
	case netcode.Refuse:
		s.g.tally.denied++
		p.next()
	}
}

// simPlacer is a token service.
type simPlacer struct {
	g     *world
	h     *simtest.Host
	m     *Placer
	view  *kvsim.View
	asked map[uint64]*player
	inbox []*player
}

func (p *simPlacer) boot() (err error) {
	p.m, err = NewPlacer(PlacerConfig{ListConfig: ListConfig{Name: p.h.Name(), Timing: simTiming, Rand: p.h.Secrets()}, Policy: p.g.policy, Deadline: simDeadline})
	if err != nil {
		return err
	}
	p.view, p.asked = p.g.store.View(p.h, p.m), map[uint64]*player{}
	return nil
}

// Crashed implements simtest.Crasher.
func (p *simPlacer) Crashed() {
	p.view.Retire()
	for _, o := range p.asked {
		p.g.failed[o.id]++
	}
	for _, o := range p.g.crowd.players {
		if o.asks == p {
			o.asks = nil
		}
	}
	p.m, p.asked, p.inbox = nil, nil, nil
}

func (p *simPlacer) Tick(now time.Time) error {
	for _, o := range p.inbox {
		if o.asks != p {
			continue
		}
		o.asked = o.party.name()
		w := Want{Players: 1, Party: o.asked, Player: o.id, Not: o.not}
		if o.party != nil {
			w.Players = len(o.party.members)
		}
		id, err := p.m.Place(w)
		if err != nil {
			return err
		}
		p.asked[id] = o
		for _, w := range p.m.wants {
			if w.id == id && w.Party == "" {
				p.g.owner[w.fresh] = o.id
			}
		}
	}
	p.inbox = nil
	kv.Tick(p.m, p.view, now.Sub(simtest.Epoch))
	for _, o := range p.m.Outcomes() {
		if o.Err == ErrUnavailable {
			p.g.failed[p.asked[o.ID].id]++
		}
		if pl := p.asked[o.ID]; pl != nil && pl.asks == p {
			pl.answered(p, o)
		}
		delete(p.asked, o.ID)
	}
	return nil
}

// party is players who want to play together.
type party struct {
	g       *world
	number  int
	attempt int
	members []*player
	where   map[uint64]string // by member: the server of its last placement
	began   time.Duration
}

func (p *party) name() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("p%d-%d", p.number, p.attempt)
}

// crowd is all players.
type crowd struct {
	g       *world
	h       *simtest.Host
	players []*player
	parties []*party
}

// player asks a placer, dials the servers of its placement, plays, leaves, and begins again.
type player struct {
	g      *world
	id     uint64
	party  *party
	asks   *simPlacer
	again  time.Duration // when it asks next
	servs  []*simServer
	to     *simServer // that it dials
	began  time.Duration
	server *simServer // that it plays on
	until  time.Duration
	ticket Ticket
	// promised has a seat for it until good.
	promised *simServer
	good     time.Duration
	asked    string // the party it asked as
	not      string // the server that it doesn't want to go to
	used     uint64 // the placement by which it joined last
}

func (c *crowd) gather(n int) {
	for i := range n {
		p := &player{g: c.g, id: uint64(i + 1)}
		c.players = append(c.players, p)
		p.again = time.Duration(c.g.rng.Int64N(int64(2 * time.Second)))
		if c.g.rng.IntN(2) == 0 {
			p.again = 500 * time.Millisecond // all at once
		}
	}
	for i := 0; i+1 < n && c.g.rng.IntN(2) == 0; {
		size := min(2+c.g.rng.IntN(3), n-i)
		t := &party{g: c.g, number: len(c.parties) + 1, members: c.players[i : i+size], where: map[uint64]string{}}
		for _, p := range t.members {
			p.party, p.again = t, t.members[0].again
		}
		c.parties = append(c.parties, t)
		i += size
	}
}

func (c *crowd) on(s *simServer) (n int) {
	for _, p := range c.players {
		if p.server == s {
			n++
		}
	}
	return n
}

// lost: a server has crashed.
func (c *crowd) lost(s *simServer) {
	for _, p := range c.players {
		if p.server == s {
			p.server = nil
			p.wait()
		}
		if p.promised == s {
			p.promised = nil
		}
	}
}

func (p *player) wait() {
	p.again = p.g.w.Now() + 200*time.Millisecond + time.Duration(p.g.rng.Int64N(int64(time.Second)))
	if p.party != nil && p.party.began+simTiming.Life < p.g.w.Now() {
		p.party.attempt, p.party.began = p.party.attempt+1, p.g.w.Now() // its match is over for all who ask from now on
		clear(p.party.where)
	}
}

func (p *player) leave(s *simServer) {
	s.m.Left(p.id)
	delete(s.conns, p.id)
	p.server = nil
	p.wait()
}

func (c *crowd) Tick(time.Time) error {
	now := c.g.w.Now()
	for _, p := range c.players {
		switch {
		case p.server != nil:
			if now >= p.until && !c.g.calm && p.server.m != nil {
				p.leave(p.server)
			}
		case p.to != nil:
			switch {
			case now >= p.began+dialTimeout:
				p.next()
			case p.to.m != nil:
				p.to.dials = append(p.to.dials, p)
			}
		case p.asks != nil:
			if now >= p.began+3*time.Second { // the service has been away
				p.asks = nil
				p.wait()
			}
		case now >= p.again:
			s := c.g.placers[c.g.rng.IntN(len(c.g.placers))]
			p.not = ""
			if to := c.g.servers[c.g.rng.IntN(len(c.g.servers))]; !c.g.calm && to.m != nil && c.g.rng.IntN(4) == 0 {
				p.not = to.m.ID()
			}
			if p.began = now; s.m != nil {
				p.asks = s
				s.inbox = append(s.inbox, p)
			}
		}
	}
	c.promises()
	c.g.seatsOfPlayers()
	return nil
}

// promises checks that a server has a seat for everybody who was told so.
func (c *crowd) promises() {
	now := c.g.w.Now()
	for _, s := range c.g.servers {
		if s.m == nil {
			continue
		}
		n := len(s.m.seats.players)
		for _, p := range c.players {
			if p.promised == s && now < p.good && s.conns[p.id] == nil {
				n++
			}
		}
		if n > s.capacity {
			c.g.w.Failf("overfilled", "%s: %d players and promises in %d seats", s.m.ID(), n, s.capacity)
		}
	}
}

// seatsOfPlayers checks how many seats are kept for a player that asks without a party: one, and the one before while it is being revoked. One more may be left by
// each placing that failed, or whose placer crashed.
func (g *world) seatsOfPlayers() {
	seats := map[uint64]int{}
	for _, s := range g.servers {
		if s.m == nil {
			continue
		}
		value, _, _ := g.store.Entry(s.m.seats.cell.key)
		rec, _ := parseSeats(value)
		for _, p := range rec.placements {
			if id := g.owner[slot(p.id)]; id != 0 && !p.revoked {
				seats[id]++
				g.tally.mostSeats = max(g.tally.mostSeats, uint64(seats[id]))
				if seats[id] > 2+g.failed[id] {
					g.w.Failf("hoards", "player %d has %d seats after %d placings that failed", id, seats[id], g.failed[id])
				}
			}
		}
	}
}

// answered is a placer's answer.
func (p *player) answered(from *simPlacer, o Outcome) {
	g, now := p.g, p.g.w.Now()
	p.asks = nil
	if o.Err != nil {
		switch o.Err {
		case ErrUnavailable:
			g.tally.unavailable++
		case ErrFull, ErrNoServers, ErrTooLarge:
			g.tally.full++
		default:
			g.w.Failf("answer", "%v", o.Err)
		}
		if p.party != nil && o.Err == ErrTooLarge {
			p.party = nil // it goes alone
		}
		p.wait()
		return
	}
	g.tally.placed++
	pl := o.Placement
	p.servs, p.ticket = p.servs[:0], pl.Ticket
	for _, i := range append([]Info{pl.Server}, pl.Backups...) {
		for _, s := range g.servers {
			if i.Addrs[0] == s.addr {
				p.servs = append(p.servs, s)
			}
		}
	}
	s := p.servs[0]
	alive := s.m != nil && s.m.ID() == pl.Server.ID
	if !alive {
		g.tally.deadPlaced++
		bound := simTiming.Expiry + simTiming.stale() + simDeadline + 2100*time.Millisecond // of which the last is a slow message, and ticks
		if died, ok := s.died[pl.Server.ID]; !ok || now-died > bound {
			g.w.Failf("dead", "player %d is placed on %s, dead for %v", p.id, pl.Server.ID, now-died)
		}
	} else if pl.Ticket.placement != p.used {
		p.promised, p.good = s, now+simTiming.Life
	}
	if p.party != nil && p.asked == p.party.name() {
		p.checkParty(from, pl.Server.ID)
	}
	p.dial()
}

// checkParty: members are placed on one server, unless the placer knows that it is gone or leaves.
func (p *player) checkParty(from *simPlacer, server string) {
	t := p.party
	p.g.tally.parties++
	for _, o := range t.members {
		if other := t.where[o.id]; other != "" && other != server {
			if i := from.m.list.get(other); i != nil && i.State == Ready && p.g.w.Now() < t.began+simTiming.young()-simDeadline {
				p.g.w.Failf("party", "%s: player %d on %s, player %d on %s", t.name(), o.id, other, p.id, server)
			}
		}
	}
	t.where[p.id] = server
}

func (p *player) dial() {
	p.began = p.g.w.Now() + networkDelay
	p.to, p.servs = p.servs[0], p.servs[1:]
}

// next dials the token's next server, or asks again.
func (p *player) next() {
	p.promised = nil
	if len(p.servs) > 0 {
		p.dial()
		return
	}
	p.to = nil
	p.wait()
}

func (p *player) joined(s *simServer) {
	p.to, p.promised, p.server, p.used = nil, nil, s, p.ticket.placement
	p.until = p.g.w.Now() + 500*time.Millisecond + time.Duration(p.g.rng.Int64N(int64(8*time.Second)))
}

var (
	seeds = flag.Int("seeds", 0, "seeds of the simulation; default 300, and 2000 with CI set")
	first = flag.Uint64("first", 1, "the first of them")
)

// TestSimulated plays fleets with crashes, pauses, partitions, clocks that are wrong, and a slow store that leaves open what happened.
func TestSimulated(t *testing.T) {
	n := *seeds
	switch {
	case n > 0:
	case os.Getenv("CI") != "" && !testing.Short():
		n = 2000
	default:
		n = 300
	}
	var sum tally
	var store kvsim.Counters
	for seed := *first; seed < *first+uint64(n); seed++ {
		r, g := playFleet(drawFleet(seed))
		if !r.OK() {
			r = simtest.Shrink(r, 200, func(s simtest.Script) simtest.Result {
				r, _ := playFleet(s)
				return r
			}, nil)
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		add(&sum, g.tally)
		store.Conflicts += g.store.Counters.Conflicts
		store.Slow += g.store.Counters.Slow
		store.LostResults += g.store.Counters.LostResults
	}
	t.Logf("seeds %d to %d: %+v; the store: %+v", *first, *first+uint64(n)-1, sum, store)
}

func add(sum *tally, t tally) {
	sum.placed += t.placed
	sum.parties += t.parties
	sum.walkIns += t.walkIns
	sum.denied += t.denied
	sum.unavailable += t.unavailable
	sum.full += t.full
	sum.deadPlaced += t.deadPlaced
	sum.drains += t.drains
	sum.mostSeats = max(sum.mostSeats, t.mostSeats)
}

// TestSimulatedTwice: the same seed gives the same run.
func TestSimulatedTwice(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, _ := playFleet(drawFleet(seed))
		b, _ := playFleet(drawFleet(seed))
		if a.Hash != b.Hash {
			t.Fatalf("seed %d: %v and %v", seed, a.String(), b.String())
		}
	}
}
