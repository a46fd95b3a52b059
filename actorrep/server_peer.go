package actorrep

import (
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// Peer is a client's connection as a server's world sees it.
type Peer struct {
	// User is the game's.
	User any

	world  *World
	local  bool // the player at the server itself; nothing is sent
	replay bool
	out    outlet
	views  map[*Base]*view
	list   []*view            // the same, in a stable order
	slab   []view             // to be used
	ready  bool               // the client has told which of our classes it has
	lacks  []bool             // by class: it hasn't
	idle   bool               // nothing is sent in this Step
	splits [2]uint32          // records of views from these ids on begin chunks of their own; 0 none
	filter func(a Actor) bool // of a recording; nil everything
	held   func(a Actor) bool // what isn't opened until Release; nil nothing
	groups []string

	viewX, viewY, viewZ float64
	hasView             bool
	viewTarget          Actor

	opening  []*view // relevant, without a channel
	holding  int     // of those, for Release
	mayOpen  int     // of those, in this Step
	halves   []*view // whose openings have bunches that weren't sent
	turn     bool    // of those, to go first
	pending  []*view // with something to send
	leaving  []*view // not relevant any more, for long enough
	going    departures
	settling []*view   // dormant, with something in flight
	speaking []*view   // with reliable calls to send
	later    [][]*view // with something to send in a later Step, by its number
	gone     []farewell
	ending   map[*Base]*channel.Channel // closed with calls that aren't acked: the actor opens again behind them

	closing map[*Base]closing

	sent     sentRing
	peaks    peaks
	known    uint32 // the newest frame that the client acked, and its time, when knows
	knownAt  time.Duration
	knows    bool
	batch    batch
	limits   []rateLimit
	rowBits  []uint64 // by row of the attribution
	calls    []callCount
	overhead overhead
}

// AddConn replicates the world to a connection from now on, and takes its RPCs. It panics on a client's world.
func (w *World) AddConn(conn channel.Conn) *Peer {
	if !w.IsServer() {
		panic("actorrep: AddConn is called on a server's world; a client's has its connection from ChannelTypes")
	}
	p := w.newPeer()
	p.out = &channelOutlet{peer: p, conn: conn}
	w.addPeer(p)
	return p
}

func (w *World) newPeer() *Peer {
	return &Peer{world: w, peaks: peaks{steps: len(w.peers) * 37 % trimEvery}, views: map[*Base]*view{}, rowBits: make([]uint64, w.rows), calls: make([]callCount, w.procedures)}
}

func (w *World) addPeer(p *Peer) {
	w.peers = append(w.peers, p)
	w.driver.AddPeer(p)
}

// RemoveConn ends that. Actors it owned are nobody's.
func (w *World) RemoveConn(p *Peer) {
	if i := slices.Index(w.peers, p); i >= 0 {
		w.peers = slices.Concat(w.peers[:i], w.peers[i+1:]) // it may be walked
		w.driver.RemovePeer(p)
	}
	for len(p.list) > 0 {
		p.list[len(p.list)-1].detach()
	}
	p.out = nil
	w.walk()
	defer w.walked()
	for _, b := range w.actors {
		if b != nil && b.owner == p {
			b.SetOwner(nil)
		}
	}
}

// Peers calls yield for each connection, in the order they came. Connections may be removed meanwhile, and aren't yielded
// then; those that are added aren't.
func (w *World) Peers(yield func(*Peer) bool) {
	for _, p := range w.peers {
		if !p.removed() && !yield(p) {
			return
		}
	}
}

// Len is the number of actors that the client has, or is being told of.
func (p *Peer) Len() int {
	n := 0
	for _, v := range p.list {
		if v.state != wanted {
			n++
		}
	}
	return n
}

// Has reports whether the client has an actor, or is being told of it; false for one that waits for bandwidth or for Release, relevant though it may be.
func (p *Peer) Has(a Actor) bool {
	v := p.views[a.base()]
	return v != nil && v.state != wanted && v.state != ended
}

// removed reports whether RemoveConn ended the connection.
func (p *Peer) removed() bool { return p != nil && !p.local && p.out == nil }

// Conn is the connection that AddConn was given; nil for World.Local and recordings.
func (p *Peer) Conn() channel.Conn {
	if o, ok := p.out.(*channelOutlet); ok {
		return o.conn
	}
	return nil
}

// IsLocal reports whether this is World.Local.
func (p *Peer) IsLocal() bool { return p.local }

// IsReplay reports whether this is a recording.
func (p *Peer) IsReplay() bool { return p.replay }

// MaxGroups bounds the groups that a connection is in.
const MaxGroups = 256

// ErrManyGroups is a connection that is to be in more.
var ErrManyGroups = fmt.Errorf("actorrep: a connection is in %d groups at most", MaxGroups)

// JoinGroup lets the connection have fields with the condition group=name, of all actors that it sees (Unreal's COND_NetGroup).
// It is in none at first.
func (p *Peer) JoinGroup(name string) error {
	switch {
	case p.InGroup(name):
		return nil
	case len(p.groups) >= MaxGroups:
		return ErrManyGroups
	}
	p.groups = append(p.groups, name)
	p.groupsChanged()
	return nil
}

// LeaveGroup ends that. The client keeps what it has of these fields, and hears of no changes.
func (p *Peer) LeaveGroup(name string) {
	if i := slices.Index(p.groups, name); i >= 0 {
		p.groups = slices.Delete(p.groups, i, i+1)
		p.groupsChanged()
	}
}

// InGroup reports whether the connection is in a group.
func (p *Peer) InGroup(name string) bool { return slices.Contains(p.groups, name) }

func (p *Peer) groupsChanged() {
	for _, v := range p.list {
		if v.b.class.layout.NetGroups != nil {
			v.setAudience()
		}
	}
}

// outside is the units of groups in which the connection isn't. A recording is in all.
func (p *Peer) outside(l *layout.Layout) (m layout.Mask) {
	if l.NetGroups == nil || p.replay {
		return 0
	}
	for name, units := range l.NetGroups {
		if !p.InGroup(name) {
			m |= units
		}
	}
	return m
}

// Ready reports whether the client has answered which of our classes it has; actors are sent only then.
func (p *Peer) Ready() bool { return p.ready }

// lacking reports whether the client doesn't have a class, or refuses ours.
func (p *Peer) lacking(c *class) bool { return p.lacks != nil && p.lacks[c.id] }

// dropLacking gives up the calls to actors that the client will never see.
func (p *Peer) dropLacking() {
	for _, v := range p.list {
		if p.lacking(v.b.class) && len(v.calls) > 0 {
			p.world.dropCalls(v.b, p, v.calls, ErrNoClass)
			v.calls = nil
		}
	}
}

// SetViewpoint is where the player looks from, for relevancy and priority.
func (p *Peer) SetViewpoint(x, y, z float64) {
	p.viewX, p.viewY, p.viewZ, p.hasView = x, y, z, true
}

// SetViewTarget makes an actor's Location the viewpoint, and the actor itself four times as important.
func (p *Peer) SetViewTarget(a Actor) { p.viewTarget = a }

// ViewTarget is that actor, or nil.
func (p *Peer) ViewTarget() Actor { return p.viewTarget }

// Viewpoint is where the player looks from; false when nobody said.
func (p *Peer) Viewpoint() (x, y, z float64, ok bool) {
	if l, is := p.viewTarget.(Located); is && p.viewTarget.base().world == p.world {
		x, y, z = l.Location()
		return x, y, z, true
	}
	return p.viewX, p.viewY, p.viewZ, p.hasView
}

// stepServer is a server's Step.
func (w *World) stepServer() {
	w.compareAll()
	w.settleMoves()
	if len(w.peers) > 0 {
		w.driver.Update(w.now)
	}
	w.dropEarly()
	peers := w.peers // the game may remove some meanwhile
	if len(peers) == 0 {
		return
	}
	w.shareOpenings()
	for _, p := range peers {
		if !p.removed() {
			p.begin()
		}
	}
	w.gatherAll()
	// The one that went first goes last in the next Step.
	n := len(peers)
	for i := range n {
		if p := peers[(w.nextPeer+i)%n]; !p.removed() {
			p.write()
		}
	}
	w.nextPeer = (w.nextPeer + 1) % n
}

// begin does what can't be done for many connections at once: channels that open and close, and reliable calls.
func (p *Peer) begin() {
	if !p.ready {
		p.ready = p.out.introduce()
		if !p.ready {
			return
		}
	}
	p.trim()
	p.unpark()
	p.idle = !p.out.begin(p.world.now)
	if p.idle {
		return
	}
	p.closeLeavers()
	p.tellGone()
	p.takeTurn()
	p.openWanted()
	p.speak()
	p.settle()
}

// farewell is an actor that left a connection while it had no channel there.
type farewell struct {
	id   netguid.GUID
	torn bool // it stays there, as the client's own
}

// tellGone tells of actors that went while they had no channel.
func (p *Peer) tellGone() {
	n := 0
	for _, f := range p.gone {
		if !p.out.gone(f) {
			break
		}
		n++
	}
	p.gone = append(p.gone[:0], p.gone[n:]...)
}

// closeLeavers closes what hasn't been relevant for the timeout.
func (p *Peer) closeLeavers() {
	for v := p.going.pop(p.world.now); v != nil; v = p.going.pop(p.world.now) {
		if !v.inLeaving {
			v.inLeaving = true
			p.leaving = append(p.leaving, v)
		}
	}
	kept := p.leaving[:0]
	for _, v := range p.leaving {
		switch {
		case v.state == ended || v.relevant:
			v.inLeaving = false
		case p.world.now < v.leaveAt || !v.leave(bunch.Relevancy):
			kept = append(kept, v)
		}
	}
	clear(p.leaving[len(kept):])
	p.leaving = kept
}

// SetRelevant says whether the connection is to see an actor. A ReplicationDriver calls it when that changes; what
// isn't relevant any more stays for Config.RelevantTimeout. Components follow their actor.
func (p *Peer) SetRelevant(a Actor, relevant bool) {
	b := a.base()
	if b.world != p.world || b.tornOff || p.local || p.removed() {
		return
	}
	if relevant && (p.filter == nil || p.filter(a)) {
		p.want(b)
		return
	}
	if v := p.views[b]; v != nil {
		v.unwant()
	}
}

// Hold keeps actors from a client that isn't there yet, as while it loads a level: of those it doesn't have, these for which held reports true
// are opened only after Release, whatever is relevant; components go with their parents. Calls to them wait as for any that aren't
// opened. What the client has stays.
func (p *Peer) Hold(held func(a Actor) bool) { p.held = held }

// Release ends Hold.
func (p *Peer) Release() { p.held = nil }

// holds reports whether an actor waits for Release.
func (p *Peer) holds(b *Base) bool {
	if p.held == nil {
		return false
	}
	for b.parent != nil {
		b = b.parent
	}
	return p.held(b.self)
}

// IsRelevant reports whether the actor is relevant to the connection now.
func (p *Peer) IsRelevant(a Actor) bool {
	v := p.views[a.base()]
	return v != nil && v.relevant
}

// want makes a view of an actor, and of its components.
func (p *Peer) want(b *Base) {
	v := p.views[b]
	if v == nil {
		v = newView(p, b)
		v.reopen()
	}
	v.relevant = true
	for _, c := range b.children {
		p.want(c)
	}
}

// timeout is how long what isn't relevant stays.
func (w *World) timeout() time.Duration { return max(w.cfg.RelevantTimeout, 0) }
