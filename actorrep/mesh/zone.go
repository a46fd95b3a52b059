package mesh

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
)

// Errors of zones.
var (
	// ErrNoActor: no actor of this id is known here, or it isn't one that a zone can have.
	ErrNoActor = errors.New("mesh: no such actor")
	// ErrOwned: the actor is this server's already, or another's by a newer epoch.
	ErrOwned = errors.New("mesh: the actor has an owner")
)

// Body makes an actor part of a world with zones. Embed it instead of actorrep.Base.
type Body struct {
	actorrep.Base
	Epoch uint32 `net:""` // how many authorities the actor has had. A Zone sets it
}

func (b *Body) body() *Body { return b }

// Actor is a pointer to a struct that embeds Body and has a Location, whose x and y are its place on the plane.
type Actor interface {
	actorrep.Actor
	actorrep.Located
	body() *Body
}

// ZoneGame is what a Zone asks of its game. It is called within Zone.Step and Zone.Receive.
type ZoneGame interface {
	// Make returns a new actor of a class, which the Zone spawns; nil when there is no such class. It is another server's until Take.
	Make(class string) Actor
	// Give returns the state of an actor that has crossed the border: it is another server's from now on, and this server changes nothing of it. With ok false
	// it stays for now, and the next Step asks again: so does a player's actor, which goes with its player (Server.Travel).
	Give(a Actor, to string) (state []byte, ok bool)
	// Take has this server play an actor from now on, with the state of Give at another server. An error returns it. It is called as well for an actor that comes back, because
	// the other server didn't take it.
	Take(a Actor, state []byte) error
	// Call is a call of Zone.Call at a server, for an actor that is this server's.
	Call(a Actor, from string, call []byte)
	// Undelivered is a call of this server's whose actor isn't there any more.
	Undelivered(id netguid.GUID, call []byte)
}

// ZoneConfig configures a Zone.
type ZoneConfig struct {
	// ID names this start of the server in the mesh, as in ServerConfig.
	ID string
	// World is the server's world. Its Config.IDs is this server's share. Its classes with a Body have no fast arrays, and 64 units at most.
	World *actorrep.World
	Game  ZoneGame
	Table Table
	// Margin is how far beyond its border a server mirrors what is its neighbour's: the cull distance of players, and a little. Hysteresis is how far an actor must
	// be beyond the border to become the neighbour's. Both are in the units of Location, above 0, and together four cells at most.
	Margin, Hysteresis float64
	// ToServer sends a packet to a server, which is valid during the call. It may be lost, late or doubled.
	ToServer func(id string, packet []byte)
	// Key and Rand are as in ServerConfig.
	Key  [32]byte
	Rand io.Reader
	// Resend is the time after which is said again what wasn't acknowledged. Default 50 ms.
	Resend time.Duration
	// Forget is how long a mirrored actor stays that no server shows. Default 2 s.
	Forget time.Duration
	// MaxActors bounds the actors that the Zone knows, this server's and the mirrored ones. Above it others' are refused. Default 65536.
	MaxActors int
}

// ZoneCounters counts what a Zone did.
type ZoneCounters struct {
	Given, Taken uint64 // actors that went to another server, and came from one
	Returned     uint64 // actors that were given and not taken
	Lost         uint64 // actors that were given to a server that is gone, which had not acknowledged them, or couldn't be returned
	Stale        uint64 // values of an authority that is no more
	Refused      uint64 // values and actors of a server that isn't the authority, and what can't be mirrored
	Forwarded    uint64 // calls that were passed on to another server
	CallsLost    uint64 // calls that came back to nobody, because too much waits for the caller's server
	TooLong      uint64 // states above MaxActorState: the actor stays
	Malformed    uint64 // packets that no honest server sends
	Forged       uint64 // packets that no server of the mesh has sent to this one
}

// Zone is a server's part of a world that several servers simulate. It belongs to the goroutine that ticks the game.
type Zone struct {
	Counters ZoneCounters

	cfg        ZoneConfig
	seal       *seal
	now        time.Duration
	table      Table
	changes    int // of the table and the neighbours
	records    map[netguid.GUID]*record
	list       []*record
	neighbours []*neighbour // by ID
	gone       map[string]bool
	held       []heldCall
	copier     copier
	around     []distance // scratch
	msgs       [][]byte   // scratch
	buf        []byte     // scratch
	msg        []byte     // scratch
}

// record is what is known of an actor.
type record struct {
	id      netguid.GUID
	a       Actor  // nil: it isn't here, but old values of it may come
	owner   string // its authority; "" when that isn't known
	epoch   uint32
	table   uint64 // own: the epoch of the table by which it came
	ended   bool   // its authority has destroyed it
	seen    bool   // its authority has shown it
	shownAt time.Duration
	giveAt  time.Duration // own: not given before
	placed  bool          // own: a Step has looked where it is
	x, y    float64       // own: where the last one found it
	looked  int           // own: Zone.changes at that time
	index   int           // in Zone.list
}

// neighbour is another server.
type neighbour struct {
	id    string
	peer  *actorrep.Peer  // its connection here
	world *actorrep.World // the client's world of our connection there
	fresh []actorrep.Actor
	out   stream
	next  uint64        // number of its next message
	sayAt time.Duration // 0: there is news
	ackAt time.Duration // when it last acknowledged something, or had nothing to
}

type distance struct {
	server string
	d      float64
}

// heldCall waits for the actor's next authority.
type heldCall struct {
	m     zoneMessage
	until time.Duration
}

// maxHeldCalls and maxNeighbours bound a Zone.
const (
	maxHeldCalls  = 1024
	maxNeighbours = netguid.MaxServers
)

// NewZone returns a zone without actors, or an error that wraps ErrConfig.
func NewZone(cfg ZoneConfig) (*Zone, error) {
	cfg.Resend = cmp.Or(cfg.Resend, 50*time.Millisecond)
	cfg.Forget = cmp.Or(cfg.Forget, 2*time.Second)
	cfg.MaxActors = cmp.Or(cfg.MaxActors, 65536)
	switch {
	case cfg.ID == "" || len(cfg.ID) > maxID:
		return nil, fmt.Errorf("%w: ID %q must have 1 to %d bytes", ErrConfig, cfg.ID, maxID)
	case cfg.World == nil || !cfg.World.IsServer() || cfg.Game == nil || cfg.ToServer == nil || cfg.Rand == nil:
		return nil, fmt.Errorf("%w: a server's World, Game, ToServer and Rand are needed", ErrConfig)
	case cfg.Resend < 0 || cfg.Forget < 0 || cfg.MaxActors < 0:
		return nil, fmt.Errorf("%w: Resend %v, Forget %v, MaxActors %d", ErrConfig, cfg.Resend, cfg.Forget, cfg.MaxActors)
	case !(cfg.Margin > 0) || !(cfg.Hysteresis > 0):
		return nil, fmt.Errorf("%w: Margin %v and Hysteresis %v must be above 0", ErrConfig, cfg.Margin, cfg.Hysteresis)
	}
	s, err := newSeal(cfg.Key, cfg.ID, cfg.Rand, zoneSeal)
	if err != nil {
		return nil, err
	}
	z := &Zone{cfg: cfg, seal: s, records: map[netguid.GUID]*record{}, gone: map[string]bool{}}
	z.copier.init(cfg.World)
	return z, z.SetTable(cfg.Table)
}

// SetTable takes a new table, whose Epoch is higher. Actors that are in another server's zone now go there.
func (z *Zone) SetTable(t Table) error {
	if err := t.check(); err != nil {
		return err
	}
	switch {
	case t.Epoch <= z.table.Epoch:
		return fmt.Errorf("%w: Table.Epoch is %d after %d", ErrConfig, t.Epoch, z.table.Epoch)
	case z.cfg.Margin+z.cfg.Hysteresis > 4*t.Cell:
		return fmt.Errorf("%w: Margin and Hysteresis of %v and %v, with cells of %v", ErrConfig, z.cfg.Margin, z.cfg.Hysteresis, t.Cell)
	}
	t.Servers = slices.Clone(t.Servers)
	z.table = t
	z.changes++
	return nil
}

// Own makes this server the authority of an actor that is in World, and no component: 1 is the epoch of one that is new, for a player's that comes from another server it is
// what Release returned there. ErrOwned: it has an authority of that epoch, or a newer one.
func (z *Zone) Own(a Actor, epoch uint32) error {
	b := a.body()
	if b.World() != z.cfg.World || b.Parent() != nil || epoch == 0 || epoch >= maxEpoch {
		return ErrNoActor
	}
	if err := z.copier.check(b.ClassName()); err != nil {
		return err
	}
	r := z.records[b.GUID()]
	switch {
	case r == nil:
		r = z.add(b.GUID())
	case r.epoch >= epoch:
		return ErrOwned
	}
	r.a = a
	z.own(r, epoch)
	return nil
}

// own makes this server the authority.
func (z *Zone) own(r *record, epoch uint32) {
	r.owner, r.epoch, r.table, r.ended, r.seen, r.placed, r.looked, r.giveAt = z.cfg.ID, epoch, 0, false, false, false, 0, 0
	r.a.body().Epoch = epoch
	r.a.body().MarkDirty()
}

// Release ends this server's authority over an actor that goes by other ways than Give, such as in the state of a travelling player, and returns the epoch for Own at the next
// server, or here when it stays. It is 0 when the actor isn't this server's.
func (z *Zone) Release(a Actor) uint32 {
	r := z.records[a.body().GUID()]
	if r == nil || r.owner != z.cfg.ID || r.epoch >= maxEpoch-1 {
		return 0
	}
	z.hide(r)
	r.owner, r.shownAt = "", z.now
	return r.epoch + 1
}

// Owns reports whether this server is the actor's authority, and may change it.
func (z *Zone) Owns(a Actor) bool {
	r := z.records[a.body().GUID()]
	return r != nil && r.owner == z.cfg.ID && r.a == a
}

// Simulates reports whether this server simulates what two actors do to each other, such as a collision: the authority of the one with the lower id does, at
// all servers. It changes what is its own, and tells the other's authority by Call.
func (z *Zone) Simulates(a, b Actor) bool {
	if b.body().GUID() < a.body().GUID() {
		a = b
	}
	return z.Owns(a)
}

// Accept replicates this server's actors of the margin to the connection of a neighbour, instead of World.AddConn. Who it is, is the connection's to
// prove. Call World.RemoveConn when it has ended.
func (z *Zone) Accept(id string, conn channel.Conn) *actorrep.Peer {
	p := addConnByHand(z.cfg.World, conn)
	if n := z.neighbour(id); n != nil {
		for _, r := range z.list {
			if n.peer != nil && r.a != nil { // its former connection sees nothing any more
				n.peer.SetRelevant(r.a, false)
			}
		}
		n.peer = p
		z.changes++
	}
	return p
}

// Mirror has the actors of a neighbour mirrored: w is the client's world of the connection to it, with the same classes as World. Step it before the Zone.
// nil: the connection has ended.
func (z *Zone) Mirror(id string, w *actorrep.World) {
	n := z.neighbour(id)
	if n == nil {
		return
	}
	n.world, n.fresh = w, nil
	if w != nil {
		w.OnValues(func(a actorrep.Actor) {
			if n.world == w && (len(n.fresh) == 0 || n.fresh[len(n.fresh)-1] != a) {
				n.fresh = append(n.fresh, a)
			}
		})
	}
}

// Gone: a server has certainly stopped. Actors that it had are lost, and their mirrors go. No actor is given to it any more.
func (z *Zone) Gone(id string) {
	z.gone[id] = true
	i, ok := z.find(id)
	if !ok {
		return
	}
	n := z.neighbours[i]
	z.neighbours = slices.Delete(z.neighbours, i, i+1)
	var m zoneMessage
	for _, b := range n.out.waiting {
		switch m.read(b); m.kind {
		case zoneGive:
			z.Counters.Lost++
		case zoneCall:
			z.bounce(m)
		}
	}
}

// Call calls an actor, whichever server's it is. The call comes once, and calls of this server in order unless the authority changes while they are under way. ErrNoActor: it isn't known
// here. ErrTooLong: above MaxMessage. ErrFull: too much waits for the other server.
func (z *Zone) Call(id netguid.GUID, call []byte) error {
	r := z.records[id]
	switch {
	case len(call) > MaxMessage:
		return ErrTooLong
	case r == nil || r.a == nil:
		return ErrNoActor
	case r.owner == z.cfg.ID:
		z.cfg.Game.Call(r.a, z.cfg.ID, call)
		return nil
	}
	if n := z.neighbour(r.owner); n != nil && len(n.out.waiting) > maxZoneWaiting/2 { // the other half is for what others forward
		return ErrFull
	}
	return z.route(zoneMessage{kind: zoneCall, id: id, origin: z.cfg.ID, call: call})
}

// route passes a call on to the actor's authority.
func (z *Zone) route(m zoneMessage) error {
	r := z.records[m.id]
	switch {
	case r == nil || r.ended || m.hops >= maxHops:
		return ErrNoActor
	case r.owner == z.cfg.ID:
		z.cfg.Game.Call(r.a, m.origin, m.call)
		return nil
	case r.owner == "":
		if len(z.held) >= maxHeldCalls {
			return ErrFull
		}
		m.call = slices.Clone(m.call)
		z.held = append(z.held, heldCall{m, z.now + z.cfg.Forget})
		return nil
	}
	m.hops++
	return z.push(r.owner, &m)
}

// bounce tells a caller that its call reached nobody.
func (z *Zone) bounce(m zoneMessage) {
	if m.origin == z.cfg.ID {
		z.cfg.Game.Undelivered(m.id, m.call)
		return
	}
	if z.push(m.origin, &zoneMessage{kind: zoneBack, id: m.id, call: m.call}) != nil {
		z.Counters.CallsLost++
	}
}

// push has a message sent to a server.
func (z *Zone) push(to string, m *zoneMessage) error {
	n := z.neighbour(to)
	if n == nil {
		return ErrGone
	}
	z.msg = m.append(z.msg[:0])
	if len(n.out.waiting) == 0 {
		n.ackAt = z.now
	}
	err := n.out.push(z.msg)
	n.sayAt = 0
	return err
}

func (z *Zone) find(id string) (int, bool) {
	return slices.BinarySearchFunc(z.neighbours, id, func(n *neighbour, id string) int { return cmp.Compare(n.id, id) })
}

// neighbour returns another server; nil when it is gone, or there are too many.
func (z *Zone) neighbour(id string) *neighbour {
	i, ok := z.find(id)
	switch {
	case ok:
		return z.neighbours[i]
	case z.gone[id] || id == "" || id == z.cfg.ID || len(id) > maxID || len(z.neighbours) >= maxNeighbours:
		return nil
	}
	n := &neighbour{id: id, out: stream{servers: true, first: 1}, next: 1, sayAt: z.now + z.cfg.Resend}
	z.neighbours = slices.Insert(z.neighbours, i, n)
	return n
}

func (z *Zone) add(id netguid.GUID) *record {
	r := &record{id: id, index: len(z.list), shownAt: z.now}
	z.records[id] = r
	z.list = append(z.list, r)
	return r
}

func (z *Zone) drop(r *record) {
	last := z.list[len(z.list)-1]
	z.list[r.index], last.index = last, r.index
	z.list[len(z.list)-1] = nil
	z.list = z.list[:len(z.list)-1]
	delete(z.records, r.id)
}

// Step gives away what has crossed the border, mirrors what the neighbours show, and sends what is due. Call it once a tick, after the game's step, between
// that of the Mirror worlds and that of World.
func (z *Zone) Step(now time.Duration) {
	z.now = max(z.now, now)
	for _, n := range z.neighbours {
		if n.peer != nil && n.peer.Conn() == nil { // it was removed
			n.peer = nil
		}
		for _, a := range n.fresh {
			z.mirror(n, a)
		}
		clear(n.fresh)
		n.fresh = n.fresh[:0]
	}
	for i := 0; i < len(z.list); i++ {
		r := z.list[i]
		if r.owner == z.cfg.ID {
			z.stepOwn(r)
		} else {
			z.stepOther(r)
		}
		if i < len(z.list) && z.list[i] != r { // it is no more, and another has its place
			i--
		}
	}
	held := z.held
	z.held = nil
	for _, h := range held {
		if r := z.records[h.m.id]; r != nil && r.owner == "" && !r.ended && z.now < h.until {
			z.held = append(z.held, h)
		} else if z.route(h.m) != nil {
			z.bounce(h.m)
		}
	}
	for _, n := range z.neighbours {
		if n.sayAt == 0 || len(n.out.waiting) > 0 && z.now >= n.sayAt {
			z.say(n)
		}
	}
}

// stepOwn looks where an actor of this server is.
func (z *Zone) stepOwn(r *record) {
	if b := r.a.body(); b.World() != z.cfg.World || b.TornOff() { // the game has destroyed it
		for _, n := range z.neighbours {
			if n.peer != nil {
				_ = z.push(n.id, &zoneMessage{kind: zoneEnded, id: r.id, epoch: r.epoch}) // without room its mirrors stay for Forget
			}
		}
		r.a, r.owner, r.ended, r.shownAt = nil, "", true, z.now
		return
	}
	x, y, _ := r.a.Location()
	if r.x == x && r.y == y && r.looked == z.changes {
		return
	}
	r.x, r.y, r.looked = x, y, z.changes
	reach := z.cfg.Margin + z.cfg.Hysteresis
	z.around = z.around[:0]
	z.table.near(x, y, reach, z.noteDistance)
	if z.distance(z.cfg.ID) > z.cfg.Hysteresis {
		if z.give(r, z.table.At(x, y)) {
			return
		}
		r.looked = 0
	}
	margin := z.cfg.Margin
	if !r.placed { // who mirrors it beyond that goes on
		r.placed, margin = true, reach
	}
	for _, n := range z.neighbours {
		if n.peer == nil {
			continue
		}
		d, shown := z.distance(n.id), n.peer.IsRelevant(r.a)
		switch {
		case d <= margin && !shown:
			n.peer.SetRelevant(r.a, true)
			if !n.peer.IsRelevant(r.a) {
				r.looked = 0 // later
			}
		case d > reach && shown:
			n.peer.SetRelevant(r.a, false)
		}
	}
}

func (z *Zone) noteDistance(server string, d float64) {
	for i := range z.around {
		if z.around[i].server == server {
			z.around[i].d = min(z.around[i].d, d)
			return
		}
	}
	z.around = append(z.around, distance{server, d})
}

// distance is how far the actor that is looked at is from a server's zone.
func (z *Zone) distance(server string) float64 {
	for i := range z.around {
		if z.around[i].server == server {
			return z.around[i].d
		}
	}
	return math.Inf(1)
}

// hide has no server see the actor as this one's.
func (z *Zone) hide(r *record) {
	for _, n := range z.neighbours {
		if n.peer != nil {
			n.peer.SetRelevant(r.a, false)
		}
	}
}

// answers reports whether a server acknowledges what it is sent.
func (z *Zone) answers(n *neighbour) bool {
	return len(n.out.waiting) == 0 || z.now-n.ackAt <= 5*z.cfg.Resend
}

// give gives an actor to another server. It reports whether it is that one's now.
func (z *Zone) give(r *record, to string) bool {
	n := z.neighbour(to)
	switch {
	case n == nil || r.epoch >= maxEpoch-1 || z.table.Epoch < r.table || z.now < r.giveAt:
		return false
	case !z.answers(n) || len(n.out.waiting) > maxZoneWaiting/2 || n.out.bytes > maxZoneWaitingBytes/2:
		return false // later
	}
	state, ok := z.cfg.Game.Give(r.a, to)
	switch {
	case !ok || r.owner != z.cfg.ID:
		return r.owner != z.cfg.ID // the game has released it
	case len(state) > MaxActorState:
		z.Counters.TooLong++
		r.giveAt = z.now + time.Second
		z.takeBack(r, state)
		return false
	}
	z.hide(r)
	r.owner, r.epoch, r.shownAt = to, r.epoch+1, z.now
	r.a.body().Epoch = r.epoch
	z.Counters.Given++
	_ = z.push(to, &zoneMessage{kind: zoneGive, id: r.id, epoch: r.epoch, table: z.table.Epoch, class: r.a.body().ClassName(), state: state}) // there is room
	return true
}

// takeBack has the game play an actor on that it had given.
func (z *Zone) takeBack(r *record, state []byte) {
	if err := z.cfg.Game.Take(r.a, state); err != nil {
		_ = z.cfg.World.Destroy(r.a)
	}
}

// stepOther forgets an actor of another server that nobody shows any more.
func (z *Zone) stepOther(r *record) {
	z.look(r)
	if i, ok := z.find(r.owner); ok && !r.ended && shows(z.neighbours[i], r) {
		r.shownAt = z.now
		return
	}
	if z.now-r.shownAt <= z.cfg.Forget && (!r.seen || r.a == nil || !z.beyond(r.a)) {
		return
	}
	if r.a != nil {
		z.unmirror(r)
	}
	for _, n := range z.neighbours { // else its old values would be taken for new ones
		if n.world != nil && n.world.Find(r.id) != nil {
			return
		}
	}
	z.drop(r)
}

// beyond reports whether a mirror has left the margin.
func (z *Zone) beyond(a Actor) bool {
	x, y, _ := a.Location()
	z.around = z.around[:0]
	z.table.near(x, y, z.cfg.Margin, z.noteDistance)
	return math.IsInf(z.distance(z.cfg.ID), 1)
}

// look forgets a mirror that the game has destroyed.
func (z *Zone) look(r *record) {
	if r.a != nil && r.a.body().World() != z.cfg.World {
		r.a = nil
	}
}

// shows reports whether a server shows the actor as its own.
func shows(n *neighbour, r *record) bool {
	if n.world == nil {
		return false
	}
	a, ok := n.world.Find(r.id).(Actor)
	return ok && a.body().Epoch == r.epoch
}

func (z *Zone) unmirror(r *record) {
	_ = z.cfg.World.Destroy(r.a)
	r.a = nil
}

// mirror takes the values of an actor that a neighbour shows.
func (z *Zone) mirror(n *neighbour, from actorrep.Actor) {
	src, ok := from.(Actor)
	if !ok || src.body().World() != n.world || src.body().Parent() != nil {
		return
	}
	id, epoch := src.body().GUID(), src.body().Epoch
	r := z.records[id]
	switch {
	case epoch == 0 || epoch >= maxEpoch || r == nil && len(z.list) >= z.cfg.MaxActors:
		z.Counters.Refused++
		return
	case r == nil:
		r = z.add(id)
		r.owner, r.epoch = n.id, epoch
	case epoch < r.epoch || r.ended && epoch == r.epoch:
		z.Counters.Stale++
		return
	case r.owner == z.cfg.ID || epoch == r.epoch && r.owner != n.id:
		z.Counters.Refused++
		return
	case epoch > r.epoch:
		r.owner, r.epoch, r.ended = n.id, epoch, false
	}
	z.look(r)
	if r.a == nil && !z.spawn(r, src.body().ClassName()) || !z.copier.copy(r.a, src) {
		z.Counters.Refused++
	}
	r.seen = true
}

// spawn makes the mirror of an actor.
func (z *Zone) spawn(r *record, class string) bool {
	a := z.cfg.Game.Make(class)
	if a == nil || z.cfg.World.SpawnAs(a, nil, r.id) != nil {
		return false
	}
	if a.body().ClassName() != class || z.copier.check(class) != nil {
		_ = z.cfg.World.Destroy(a)
		return false
	}
	r.a, r.shownAt = a, z.now
	return true
}

// say sends a neighbour what waits for it, and acknowledges.
func (z *Zone) say(n *neighbour) {
	n.sayAt = z.now + z.cfg.Resend
	z.buf = n.out.append(binary.AppendUvarint(z.buf[:0], n.next), zonePackBytes)
	if sealed := z.seal.close(n.id, z.buf); sealed != nil {
		z.cfg.ToServer(n.id, sealed)
	}
}

// Receive takes a packet that the Zone of server from has sent. ErrForged: it has not, or not to this server, or the packet was changed; Counters.Forged
// counts these.
func (z *Zone) Receive(from string, packet []byte) error {
	opened, ok := z.seal.open(from, packet)
	if !ok {
		z.Counters.Forged++
		return ErrForged
	}
	n := z.neighbour(from)
	if n == nil {
		return nil // it is gone
	}
	r := reader{b: opened}
	next := r.number()
	first, msgs := r.messages(z.msgs[:0], ofServers)
	z.msgs = msgs[:0]
	waited, more := len(n.out.waiting), n.out.bytes > zonePackBytes // than went into the last packet
	if !r.end() || first == 0 || len(opened) > maxZonePacket || !n.out.ack(next) {
		z.Counters.Malformed++
		return errPacket
	}
	if len(n.out.waiting) < waited {
		n.ackAt = z.now
		if more {
			n.sayAt = 0
		}
	}
	if len(msgs) > 0 {
		n.sayAt = 0
	}
	for i, b := range msgs {
		if first+uint64(i) != n.next {
			continue
		}
		n.next++
		var m zoneMessage
		if !m.read(b) {
			z.Counters.Malformed++
			return errPacket
		}
		z.heard(n, &m)
	}
	return nil
}

// heard takes a message. Each comes once, in order.
func (z *Zone) heard(n *neighbour, m *zoneMessage) {
	r := z.records[m.id]
	switch m.kind {
	case zoneGive:
		if !z.take(n, r, m) {
			z.Counters.Refused++
			if z.push(n.id, &zoneMessage{kind: zoneNo, id: m.id, epoch: m.epoch, class: m.class, state: m.state}) != nil {
				z.Counters.Lost++
			}
		}
	case zoneNo:
		z.returned(n, r, m)
	case zoneCall:
		if r == nil || r.owner != z.cfg.ID {
			z.Counters.Forwarded++
		}
		if z.route(*m) != nil {
			z.bounce(*m)
		}
	case zoneBack:
		z.cfg.Game.Undelivered(m.id, m.call)
	case zoneEnded:
		if r == nil || r.owner != n.id || r.epoch != m.epoch {
			return
		}
		r.ended, r.shownAt = true, z.now
		if r.a != nil {
			z.unmirror(r)
		}
	}
}

// returned takes an actor back that another server didn't take. It may have been forgotten here meanwhile.
func (z *Zone) returned(n *neighbour, r *record, m *zoneMessage) {
	if r == nil {
		r = z.add(m.id)
		r.owner, r.epoch = n.id, m.epoch
	}
	z.look(r)
	if r.owner != n.id || r.epoch != m.epoch || r.a == nil && !z.spawn(r, m.class) {
		z.Counters.Refused++
		return
	}
	z.own(r, m.epoch+1)
	r.giveAt = z.now + time.Second
	z.Counters.Returned++
	z.takeBack(r, m.state)
}

// take takes an actor that another server gives. It reports whether it is this one's now.
func (z *Zone) take(n *neighbour, r *record, m *zoneMessage) bool {
	if r != nil && (r.owner == z.cfg.ID || r.epoch >= m.epoch) || r == nil && len(z.list) >= z.cfg.MaxActors {
		return false
	}
	if r == nil {
		r = z.add(m.id)
	}
	r.owner, r.epoch, r.ended, r.shownAt = n.id, m.epoch, false, z.now
	z.look(r)
	made := r.a == nil
	if made && !z.spawn(r, m.class) || r.a.body().ClassName() != m.class {
		return false
	}
	if z.cfg.Game.Take(r.a, m.state) != nil {
		if made {
			z.unmirror(r)
		}
		return false
	}
	z.own(r, m.epoch)
	r.table = m.table
	z.Counters.Taken++
	return true
}
