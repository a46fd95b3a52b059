package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// mesher is the first process: it starts the others, and has the bots and the token service.
type mesher struct {
	o        options
	ctx      context.Context
	seed     uint64
	began    time.Time
	key      netcode.Key
	meshKey  [32]byte
	nats     *cluster
	slots    [servers]*slot
	starts   map[int]*start // all that there were
	reports  chan report
	bots     []*bot
	entered  map[uint32]bool // players whom a server plays, or has played
	entering map[uint32]int  // the start where they shall begin
	logins   map[uint32]int
	known    map[uint32]int // lines of an account that were read
	truth    truth
	history  history
	losses   []*loss
	returned []time.Duration // from the kill of its server until a player was back
	calm     bool            // no trade is begun any more
	settled  bool            // all trades are over
	late     time.Duration   // how much later than asked for this process's ticks came, since it began, above a quarter of a second each
	lastTick time.Time
	awayAt   time.Time // when a server was without the store last
	stoodAt  time.Time // when the machine stood still last: a tick of a server, or of this process, came later than a quarter of a lease
	crowd    *crowd    // where bots gather; nil: nowhere
	crowds   []*crowd
	table    mesh.Table // the newest one of all servers
	outage   *outage
	outages  []*outage
	events   []event
	script   script
	wrong    error
	view     viewer
}

// slot is the place of a game server: when one has ended, another start takes it.
type slot struct {
	number  int
	now     *start
	again   time.Time // when another one is started
	cut     cuts
	stopped bool // it shall stay away
	still   bool // its server stands still
}

// start is a game server's process.
type start struct {
	number, start int
	id            string
	process       *process
	peer          *peer // nil: it hasn't begun
	last          report
	heard         time.Time // when it reported last
	over          bool
}

// loss is a server that was killed.
type loss struct {
	number, start int
	at            time.Time
	late          time.Duration // mesher.late at that time
	parts         []part
	actors        []uint32
	back          time.Duration // until other servers had its zones, and played all its actors; 0: that isn't so yet
	stood         time.Duration // how long the machine stood still meanwhile
	away          time.Duration // how long its zones may have to wait because it might play on without the store
}

// outage is a time without NATS: from when all nodes were killed until all servers had the store again.
type outage struct {
	from, to time.Time
	on       bool   // nodes were started
	steps    uint64 // of actors
	ended    int    // servers
	stood    bool   // the machine stood still meanwhile, so that leases may have ended
	refused  int    // trades
}

// event is something to tell.
type event struct {
	at   time.Duration
	what string
}

const (
	maxEvents  = 200
	maxHistory = 1 << 19 // operations; above, nobody trades any more
	againAfter = time.Second
	maxStarts  = 1000 // a world has 1024 at most
)

// history is what the bots did.
type history struct {
	list                         []operation
	trades, refused, open, reads int // that ended as ok, fail and unknown, and reads that were answered
}

func (h *history) add(o operation) {
	switch {
	case o.Trade == 0 && o.Result == ok:
		h.reads++
	case o.Trade == 0:
	case o.Result == ok:
		h.trades++
	case o.Result == failed:
		h.refused++
	default:
		h.open++
	}
	if len(h.list) < maxHistory {
		h.list = append(h.list, o)
	}
}

// newMesher starts all. life is for as long as the program goes on, opening until it is interrupted.
func newMesher(life, opening context.Context, o options) (g *mesher, err error) {
	g = &mesher{o: o, ctx: life, seed: mathrand.Uint64(), began: time.Now(), lastTick: time.Now(), starts: map[int]*start{}, reports: make(chan report, 1024), entered: map[uint32]bool{}, entering: map[uint32]int{},
		logins: map[uint32]int{}, known: map[uint32]int{}, truth: truth{actors: map[uint32][]tenure{}}}
	if err := g.view.init(g); err != nil {
		return g, err
	}
	if g.key, err = netcode.GenerateKey(nil); err != nil {
		return g, err
	}
	if _, err = rand.Read(g.meshKey[:]); err != nil {
		return g, err
	}
	g.tell("starting a NATS cluster of %d", nodes)
	if g.nats, err = startCluster(); err != nil {
		return g, err
	}
	opening, cancel := context.WithTimeout(opening, patience)
	defer cancel()
	if _, err := openBucket(opening, g.nats.conn); err != nil {
		return g, fmt.Errorf("NATS: %w", errors.Join(err, g.nats.failed()))
	}
	g.tell("NATS has the bucket; starting %d game servers", servers)
	for i := range g.slots {
		g.slots[i] = &slot{number: i + 1}
		if err := g.startServer(g.slots[i]); err != nil {
			return g, err
		}
	}
	for i := range o.players {
		g.bots = append(g.bots, newBot(g, uint32(i+1)))
	}
	return g, nil
}

func (g *mesher) close() {
	for _, b := range g.bots {
		b.closeAll()
	}
	for _, s := range g.slots {
		if s != nil && s.now != nil {
			s.now.process.kill()
		}
	}
	if g.nats != nil {
		g.nats.close()
	}
	g.view.close()
}

// fail notes what went wrong first.
func (g *mesher) fail(err error) {
	if g.wrong == nil {
		g.wrong = err
	}
}

func (g *mesher) tell(format string, args ...any) {
	e := event{time.Since(g.began), fmt.Sprintf(format, args...)}
	g.events = append(g.events, e)
	g.events = g.events[max(0, len(g.events)-maxEvents):]
	g.view.told(e)
}

// startServer starts a game server in a slot.
func (g *mesher) startServer(s *slot) error {
	n := len(g.starts) + 1
	if n > maxStarts {
		return errors.New("so many servers were started that there are no ids for another one")
	}
	p := &start{number: s.number, start: n, id: fmt.Sprintf("server%d-%d", s.number, n)}
	cfg := serverConfig{Number: s.number, Start: n, ID: p.id, Key: g.key, MeshKey: g.meshKey, URL: g.nats.url, Away: g.away(), Split: splitAt(g.o.players)}
	if n <= servers { // the first ones divide the zones
		for i := range columns / servers * rows {
			cfg.Zones = append(cfg.Zones, zoneName((n-1)*columns/servers+i/rows, i%rows))
		}
	}
	var err error
	p.process, err = startProcess(p.id, "server", cfg, func(line []byte) {
		var r report
		if json.Unmarshal(line, &r) == nil {
			select {
			case g.reports <- r:
			case <-g.ctx.Done():
			}
		}
	})
	g.starts[n], s.now = p, p
	if err == nil {
		err = p.process.tell(order{Cuts: &s.cut})
	}
	return err
}

// away is KeeperConfig.Away.
func (g *mesher) away() time.Duration { return g.o.outage + 30*time.Second }

// alive reports whether a server runs.
func (g *mesher) alive(id string) bool {
	return slices.ContainsFunc(g.slots[:], func(s *slot) bool { return s.now != nil && s.now.id == id })
}

// tellPeers tells all servers who is there.
func (g *mesher) tellPeers() {
	var peers []peer
	for _, s := range g.slots {
		if s.now != nil && s.now.peer != nil {
			peers = append(peers, *s.now.peer)
		}
	}
	for _, s := range g.slots {
		if s.now != nil && s.now.peer != nil {
			_ = s.now.process.tell(order{Peers: peers}) // it may have ended
		}
	}
}

// tick does everything once.
func (g *mesher) tick(now time.Time) error {
	if d := now.Sub(g.lastTick) - step; d > 250*time.Millisecond {
		g.late += d
		g.stands(d, now)
	}
	g.lastTick = now
	for range len(g.reports) {
		g.heard(<-g.reports)
	}
	for _, s := range g.slots {
		if err := g.watch(s, now); err != nil {
			return err
		}
	}
	for _, b := range g.bots {
		b.tick(now)
	}
	g.watchLosses()
	g.watchCrowds(now)
	g.watchOutage(now)
	if len(g.history.list) >= maxHistory && !g.calm {
		g.tell("the history is full: nobody trades any more")
		g.calm = true
	}
	g.view.show(now)
	return g.wrong
}

// watch looks whether a slot's server has ended.
func (g *mesher) watch(s *slot, now time.Time) error {
	switch p := s.now; {
	case p != nil && p.process.ended():
		if !p.over {
			return errors.New(p.process.why())
		}
		g.gone(s, now)
	case p == nil && !s.stopped && now.After(s.again):
		if err := g.startServer(s); err != nil {
			return err
		}
		g.tell("server %d begins anew, as %s", s.number, s.now.id)
	}
	return nil
}

// gone: a slot's server has ended.
func (g *mesher) gone(s *slot, now time.Time) {
	for _, b := range g.bots {
		if b.mesh != nil && b.mesh.Server() == s.now.id {
			b.lostAt = now
		}
	}
	s.now, s.still, s.again = nil, false, now.Add(againAfter)
	g.tellPeers()
}

// heard takes what a server reports.
func (g *mesher) heard(r report) {
	p := g.starts[r.Start]
	if r.Peer != nil {
		p.peer = r.Peer
		g.tellPeers()
		return
	}
	for _, x := range r.Spans {
		g.truth.played(r.Start, x)
	}
	if r.Wrong != "" && p.last.Wrong == "" {
		g.fail(fmt.Errorf("%s: %s", p.id, r.Wrong))
	}
	if r.Away != p.last.Away && !r.Over {
		if r.Away {
			g.tell("server %d plays on without the store", p.number)
		} else {
			g.tell("server %d has the store again", p.number)
		}
	}
	if r.Table != nil && r.Epoch > g.table.Epoch {
		g.retabled(*r.Table)
	}
	if r.Away {
		g.awayAt = time.Now()
	}
	g.stands(r.Late, time.Now())
	if r.Over && !p.over {
		p.over = true
		g.tell("server %d is over: its lease has ended", p.number)
		if g.outage != nil {
			g.outage.ended++
		}
	}
	for _, player := range r.Plays {
		g.entered[player] = true
	}
	p.last, p.heard = r, time.Now()
}

// kill kills a server, as kill -9.
func (g *mesher) kill(s *slot, now time.Time) {
	p := s.now
	if p == nil {
		g.tell("server %d isn't there", s.number)
		return
	}
	p.process.kill()
	for n := len(g.reports); n > 0; n-- { // the last that it has told
		g.heard(<-g.reports)
	}
	l := g.lost(s, now)
	g.losses = append(g.losses, l)
	g.tell("server %d was killed, with %s and %d actors", s.number, names(l.parts), len(l.actors))
	g.gone(s, now)
}

// lost is what is lost with a server that is killed now.
func (g *mesher) lost(s *slot, now time.Time) *loss {
	l := &loss{number: s.number, start: s.now.start, at: now, late: g.late}
	if now.Sub(g.awayAt) < 4*lease { // the others may have allowed it to
		l.away = g.away()
	}
	for _, x := range g.parts() {
		if x.Server == s.number {
			l.parts = append(l.parts, x)
		}
	}
	for _, d := range s.now.last.Dots {
		l.actors = append(l.actors, d.Actor)
	}
	return l
}

// watchLosses looks whether what killed servers had is played again.
func (g *mesher) watchLosses() {
	for _, l := range g.losses {
		if l.back > 0 || slices.ContainsFunc(l.parts, g.nobodys) {
			continue
		}
		last, all := l.at.UnixNano(), true
		for _, a := range l.actors {
			at, again := g.truth.since(a, l.start)
			last, all = max(last, at), all && again
		}
		if all {
			l.back = max(time.Duration(last-l.at.UnixNano()), 1)
			l.stood = g.late - l.late
			g.tell("what server %d had is played again, %.2f s after it was killed", l.number, l.back.Seconds())
		}
	}
}

// whole says what isn't well; "" when all nodes and servers run, all servers have the store, all agree who has which zone, and all players play.
func (g *mesher) whole() string {
	if !g.nats.whole() {
		return "NATS has no leader, or a node is away"
	}
	for _, s := range g.slots {
		switch {
		case s.stopped:
		case s.still:
			return fmt.Sprintf("server %d stands still", s.number)
		case s.now == nil || s.now.peer == nil || s.now.last.Start == 0:
			return fmt.Sprintf("server %d hasn't begun", s.number)
		case s.now.last.Away || s.now.last.Over:
			return fmt.Sprintf("server %d has no store", s.number)
		}
	}
	for _, p := range g.parts() {
		if p.Server == 0 {
			return p.Name + " is nobody's"
		}
	}
	if why := g.disagrees(); why != "" {
		return why
	}
	for _, l := range g.losses {
		if l.back == 0 {
			return fmt.Sprintf("what server %d had isn't played again", l.number)
		}
	}
	for _, b := range g.bots {
		if !b.present() {
			return b.String() + " isn't connected"
		}
	}
	if c := g.crowd; c != nil && c.split == 0 {
		return "the crowd's zone " + c.name() + " isn't split among servers"
	}
	return ""
}

// unsettled says which trades aren't over.
func (g *mesher) unsettled() string {
	for _, b := range g.bots {
		if b.trade != nil {
			return b.String() + " waits for an answer"
		}
	}
	for _, s := range g.slots {
		if s.now != nil && s.now.last.Unsettled > 0 {
			return fmt.Sprintf("%d actors of server %d have deals that aren't settled", s.now.last.Unsettled, s.number)
		}
	}
	return ""
}

// unread says which account wasn't read to its end.
func (g *mesher) unread() string {
	for _, b := range g.bots {
		if !b.lastRead {
			return b.String() + " hasn't read its account to the end"
		}
	}
	return ""
}

func (g *mesher) steps() (n uint64) {
	for _, p := range g.starts {
		n += p.last.Steps
	}
	return n
}

// natsOff kills all NATS nodes.
func (g *mesher) natsOff(now time.Time) {
	for i := range nodes {
		g.nats.kill(i)
	}
	if g.outage == nil {
		g.outage = &outage{from: now, steps: g.steps(), refused: g.history.refused}
	}
	g.outage.on = false
}

// natsOn starts those that don't run.
func (g *mesher) natsOn() error {
	if g.outage != nil {
		g.outage.on = true
	}
	for i := range nodes {
		if err := g.nats.start(i); err != nil {
			return err
		}
	}
	return nil
}

// watchOutage looks whether all servers have the store again after a time without NATS.
func (g *mesher) watchOutage(now time.Time) {
	o := g.outage
	if o == nil || !o.on {
		return
	}
	without := func(s *slot) bool {
		return !s.stopped && !s.still && (s.now == nil || s.now.last.Start == 0 || s.now.last.Away)
	}
	if _, leader := g.nats.look(); leader < 0 || slices.ContainsFunc(g.slots[:], without) {
		return
	}
	o.to, o.stood = now, g.stoodAt.After(o.from.Add(-lease))
	o.steps, o.refused = g.steps()-o.steps, g.history.refused-o.refused
	g.outages, g.outage = append(g.outages, o), nil
	g.tell("%s", o)
}

func (o *outage) String() string {
	s := fmt.Sprintf("without NATS for %.1f s, until all servers had the store again: %d steps of actors, %d trades refused", o.to.Sub(o.from).Seconds(), o.steps, o.refused)
	if o.ended > 0 && o.stood {
		s += fmt.Sprintf(", %d servers ended as the machine stood still", o.ended)
	}
	return s
}

// stands notes that a tick came so much later than it should.
func (g *mesher) stands(late time.Duration, now time.Time) {
	if late > lease/4 {
		g.stoodAt = now
	}
}

// The token service.

// login has a player log in, which a real one does with a password, and gives it a pass.
func (g *mesher) login(player uint32) string {
	g.logins[player]++
	return fmt.Sprintf("%d.%s", player, g.sign(player))
}

func (g *mesher) sign(player uint32) string {
	m := hmac.New(sha256.New, g.key[:])
	_, _ = fmt.Fprintf(m, "pass of player %d", player) // it can't fail
	return hex.EncodeToString(m.Sum(nil))
}

// token gives who has a pass a connect token for the server that plays it. there is false when none does just now.
func (g *mesher) token(pass string) (server string, token netcode.Token, there bool) {
	name, signed, _ := strings.Cut(pass, ".")
	id, err := strconv.ParseUint(name, 10, 32)
	player := uint32(id)
	if err != nil || !hmac.Equal([]byte(signed), []byte(g.sign(player))) {
		return "", nil, false
	}
	var at *start
	for _, s := range g.slots {
		// A server that hasn't reported for as long as a lease lasts may have none any more.
		if s.now != nil && s.now.peer != nil && slices.Contains(s.now.last.Plays, player) && time.Since(s.now.heard) < lease {
			at = s.now
		}
	}
	if at == nil && g.entered[player] {
		return "", nil, false // its server is gone, or it is between two
	}
	if at == nil { // it is new: one server has it, as long as that is there
		if at = g.starts[g.entering[player]]; at == nil || !g.alive(at.id) {
			s := g.slots[int(player)%servers].now
			if s == nil || s.peer == nil || !slices.ContainsFunc(g.parts(), func(p part) bool { return p.Server == int(player)%servers+1 }) {
				return "", nil, false
			}
			at, g.entering[player] = s, s.start
		}
	}
	t, err := connectToken(g.key, uint64(player), at.peer.Game, !g.entered[player])
	g.fail(err)
	return at.id, t, err == nil
}

// save writes the history to a file, a line of JSON for each operation.
func (g *mesher) save(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	out := json.NewEncoder(f)
	for _, o := range g.history.list {
		err = errors.Join(err, out.Encode(o))
	}
	return errors.Join(err, f.Close())
}
