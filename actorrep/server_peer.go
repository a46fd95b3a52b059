package actorrep

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// Peer is a client's connection, on a server's world.
type Peer struct {
	// User holds whatever the game puts there.
	User any

	// Fields that every Step reads come first: with many connections, loading them from memory takes most of an idle Step.
	world               *World
	out                 outlet
	replay              bool
	ready               bool    // the client has answered which of our classes it has
	idle                bool    // nothing is sent in this Step
	gathered            bool    // there was something to send in this Step
	hasView             bool    // SetViewpoint was called
	holding             int     // how many of opening wait for Release
	noRoom              bool    // opening wait for a channel or for room in the packets under way, since the last Step
	opening             []*view // relevant, not opened yet
	halves              []*view // with opening bunches, or changes larger than a packet, that weren't sent yet, in the order of their turns
	inParts             []*view // with openings in several bunches that aren't acked, the oldest first; and some that are
	pending             []*view // with something to send
	leaving             []*view // no longer relevant, timeout expired
	going               departures
	settling            []*view   // dormant, with something in flight
	speaking            []*view   // with reliable calls to send
	later               [][]*view // with something to send in a later Step, by Step modulo the length
	gone                []farewell
	refusals            []wire.Refusal // calls of the client that it wasn't told of yet
	viewX, viewY, viewZ float64
	viewTarget          Actor
	peaks               peaks
	batch               batch

	local      bool // the player at the server itself; nothing is sent
	views      map[*Base]*view
	list       []*view            // the views, in a stable order
	slots      []int32            // of the list: where each one's actor is in World.actors
	slab       []view             // views not used yet
	lacks      []bool             // by class: the client lacks it
	finishing  bool               // the connection closes in order
	everything bool               // of a recording: it has all values, whatever their conditions
	byHand     bool               // SetRelevant alone says what it sees, at once; the Relevancy isn't told of it
	splits     [2]uint32          // ids before which a chunk must end, for a checkpoint's copied range; 0 none
	filter     func(a Actor) bool // of a recording: which actors it has; nil all
	held       func(a Actor) bool // actors that aren't opened until Release; nil none
	groups     []string
	waited     time.Duration // how long the player's input that is being simulated has waited since it arrived

	// Channels closed before all was acked, by the ids of their actors: that actor, or another one that has got its id, opens behind them. And the ids of these
	// channels, because an actor's struct may have been spawned again under another.
	ending   map[netguid.GUID]*channel.Channel
	endingID map[*channel.Channel]netguid.GUID

	closing map[netguid.GUID]closing

	oversize map[*view]layout.Mask // units that the game was told are too large for the connection, until they fit again

	turns turns

	sent     sentRing
	fates    []fate // of packets, to be learned
	resent   uint64 // records that were lost, not counted yet
	hearing  bool   // in World.hearing
	known    uint32 // the newest frame that the client has acked, and its time; valid when knows is set
	knownAt  time.Duration
	knows    bool
	limits   []rateLimit
	rowBits  []uint64 // by row of the attribution
	calls    []callCount
	overhead overhead
}

// AddConn replicates the world to a connection, and accepts its RPCs. Call RemoveConn when the connection has ended, for
// example in the driver's Config.Closed: until then the world keeps the peer and what it owns. A game that forgets it is
// told by Config.Failed, once. AddConn panics on a client's world. For a connection that the world has already it returns
// the same Peer, and Config.Failed is told.
func (w *World) AddConn(conn channel.Conn) *Peer { return w.addConn(conn, false) }

// addConnByHand is AddConn for a connection that sees what SetRelevant says, and nothing else. An actor that is no longer relevant is closed
// at once: nothing that is set from then on is sent.
func (w *World) addConnByHand(conn channel.Conn) *Peer { return w.addConn(conn, true) }

func (w *World) addConn(conn channel.Conn, byHand bool) *Peer {
	if !w.IsServer() {
		panic("actorrep: AddConn is called on a server's world; a client's has its connection from ChannelTypes")
	}
	for _, p := range w.peers {
		if p.Conn() == conn {
			w.failed(errAddedTwice)
			return p
		}
	}
	p := w.newPeer()
	p.byHand, p.out = byHand, &channelOutlet{peer: p, conn: conn}
	w.addPeer(p)
	w.expectStep(conn)
	return p
}

var errAddedTwice = errors.New("actorrep: AddConn was called again for a connection that the world has")

func (w *World) newPeer() *Peer {
	return &Peer{world: w, peaks: peaks{steps: len(w.peers) * 37 % trimEvery}, views: map[*Base]*view{}, rowBits: make([]uint64, w.rows), calls: make([]callCount, w.procedures)}
}

func (w *World) addPeer(p *Peer) {
	w.peers = append(w.peers, p)
	if !p.byHand {
		w.relevancy.AddPeer(p)
	}
}

// RemoveConn ends the replication to a connection. The actors it owned have no owner then. It does nothing for nil, so that Closed may pass what the game
// keeps for a connection that never joined. Of a connection that goes on the client isn't told: it keeps its actors as they are, its calls don't run, and its World
// can't be added again. So close the connection, or leave it in the world and set what it sees.
func (w *World) RemoveConn(p *Peer) {
	if p == nil {
		return
	}
	w.enter()
	defer w.exit()
	w.learnFates()
	if i := slices.Index(w.peers, p); i >= 0 {
		w.peers = slices.Concat(w.peers[:i], w.peers[i+1:]) // the old list may be iterated
		if !p.byHand {
			w.relevancy.RemovePeer(p)
		}
	}
	p.out = removedOutlet{}
	w.removed = append(w.removed, p)
	w.walk()
	defer w.walked()
	for _, b := range w.actors {
		if b != nil && b.owner == p {
			b.SetOwner(nil)
		}
	}
}

// forget ends the views of a connection that was removed. It may live on, with their channels: these keep no actors.
func (p *Peer) forget() {
	names := map[*class]*Base{}
	for len(p.list) > 0 {
		v := p.list[len(p.list)-1]
		v.detach()
		v.forget(names)
	}
	for _, c := range p.closing {
		for _, v := range c.views {
			v.forget(names)
		}
	}
	p.closing, p.viewTarget = nil, nil
}

// forget has the view know no more of its actor than the class.
func (v *view) forget(names map[*class]*Base) {
	c := v.b.class
	if names[c] == nil {
		names[c] = &Base{class: c}
	}
	v.b = names[c]
}

// Peers calls yield for each connection, in the order in which they were added. Connections may be added and removed
// meanwhile. One removed before its turn isn't yielded, nor is one that is added.
func (w *World) Peers(yield func(*Peer) bool) {
	for _, p := range w.peers {
		if !p.removed() && !yield(p) {
			return
		}
	}
}

// Len is the number of actors that were sent to the client.
func (p *Peer) Len() int {
	n := 0
	for _, v := range p.list {
		if v.state != wanted {
			n++
		}
	}
	return n
}

// Has reports whether an actor was sent to the client. It is false for a relevant one that waits for bandwidth or for
// Release.
func (p *Peer) Has(a Actor) bool {
	v := p.views[a.base()]
	return v != nil && v.state != wanted && v.state != ended
}

// removed reports whether RemoveConn was called.
func (p *Peer) removed() bool { return p != nil && p.out == removedOutlet{} }

// ended reports whether the connection has ended, which only its owner is told of.
func (p *Peer) ended() bool {
	c, ok := p.Conn().(interface{ Closed() bool })
	return ok && c.Closed()
}

// Conn is the connection that AddConn was given; nil for World.Local and recordings.
func (p *Peer) Conn() channel.Conn {
	if o, ok := p.out.(*channelOutlet); ok {
		return o.conn
	}
	return nil
}

// IsLocal reports whether this is World.Local.
func (p *Peer) IsLocal() bool { return p.local }

// IsReplay reports whether this is a recording (package replay).
func (p *Peer) IsReplay() bool { return p.replay }

// MaxGroups is the most groups that a connection may be in.
const MaxGroups = 256

// ErrManyGroups is returned by JoinGroup above MaxGroups.
var ErrManyGroups = fmt.Errorf("actorrep: a connection is in %d groups at most", MaxGroups)

// JoinGroup puts the connection into a group: it gets the fields with the condition group=name, of all actors that it
// sees (Unreal's COND_NetGroup). A new connection is in no group.
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

// LeaveGroup takes the connection out of a group. The client keeps the values that it has and gets no changes.
func (p *Peer) LeaveGroup(name string) {
	if i := slices.Index(p.groups, name); i >= 0 {
		p.groups = slices.Delete(p.groups, i, i+1)
		p.groupsChanged()
	}
}

// InGroup reports whether the connection is in a group.
func (p *Peer) InGroup(name string) bool { return slices.Contains(p.groups, name) }

func (p *Peer) groupsChanged() {
	p.learnFates()
	p.world.enter()
	defer p.world.exit()
	for _, v := range p.list {
		if v.b.class.layout.NetGroups != nil {
			v.setAudience()
		}
	}
}

// outside is the units of groups that the connection isn't in. A recording is in all groups.
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

// Ready reports whether the client has answered which of the server's classes it has. No actors are sent before that.
func (p *Peer) Ready() bool { return p.ready }

// lacking reports whether the client lacks or refuses a class.
func (p *Peer) lacking(c *class) bool { return p.lacks != nil && p.lacks[c.id] }

// dropLacking drops the calls to actors whose class the client lacks.
func (p *Peer) dropLacking() {
	for _, v := range p.list {
		if p.lacking(v.b.class) && len(v.calls) > 0 {
			p.world.dropCalls(v.b, p, v.calls, ErrNoClass)
			v.calls = nil
		}
	}
}

// SetViewpoint sets where the player looks from, in the units of Location. Relevancy and priority use it. While there is a view target, that one's Location counts.
func (p *Peer) SetViewpoint(x, y, z float64) {
	p.viewX, p.viewY, p.viewZ, p.hasView = x, y, z, true
}

// SetViewTarget makes an actor's Location the viewpoint, and its priority four times as high. When the actor is destroyed, the viewpoint stays where the actor was, until the next
// SetViewTarget or SetViewpoint. nil ends that: the viewpoint is then the one that SetViewpoint set, if it did.
func (p *Peer) SetViewTarget(a Actor) {
	if p.viewTarget = a; isNil(a) { // it may be a nil pointer
		p.viewTarget = nil
	}
}

// keepView has the player look from where a view target is that is about to be destroyed. Without a viewpoint the player would see all there is.
func (p *Peer) keepView(a Actor) {
	if p.viewTarget != a {
		return
	}
	if l, ok := a.(Located); ok {
		p.SetViewpoint(l.Location())
	}
	p.viewTarget = nil
}

// ViewTarget is the actor that SetViewTarget set, or nil. It is nil once the actor is destroyed.
func (p *Peer) ViewTarget() Actor { return p.viewTarget }

// Viewpoint is where the player looks from; ok is false when neither SetViewpoint nor SetViewTarget was called.
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
	if w.observer != nil {
		w.observer.Stepping()
		w.lookForUnsaid()
	}
	w.lookForUnflushed()
	w.settleMoves()
	w.tellFound()
	if len(w.peers) > 0 {
		w.relevancy.Update(w.now)
	}
	w.dropEarly()
	peers := w.peers // the game may remove some meanwhile
	if len(peers) == 0 {
		return
	}
	for _, p := range peers {
		if !p.ready && !p.removed() {
			p.ready = p.out.introduce()
		}
	}
	w.shareChannels()
	for _, p := range peers {
		if p.ready && !p.removed() {
			p.begin()
		}
	}
	for _, p := range peers {
		if p.ready && !p.removed() {
			p.talk()
		}
	}
	w.gatherAll()
	// The connection that was first goes last in the next Step.
	first := w.nextPeer % len(peers)
	for _, part := range [...][]*Peer{peers[first:], peers[:first]} {
		for _, p := range part {
			if !p.removed() {
				p.write()
			}
		}
	}
	w.nextPeer = (first + 1) % len(peers)
	if w.observer != nil {
		w.lookForWaits()
	}
}

// begin closes channels, and tells what has gone. The last calls of an actor that leaves have it compared. So all connections
// do this before any of them sends values: values of one Step that are newer than others of it would be taken for these.
func (p *Peer) begin() {
	p.trim()
	if p.later != nil {
		p.unpark()
	}
	p.idle = !p.out.begin(p.world.now)
	if p.idle {
		return
	}
	// Most connections have nothing of a kind to do in a Step.
	if len(p.leaving) > 0 || p.going.due(p.world.now) {
		p.closeLeavers()
	}
	if len(p.gone) > 0 {
		p.tellGone()
	}
	if len(p.refusals) > 0 {
		p.tellRefused()
	}
}

// talk does what can't be done for several connections in parallel: opening channels, and reliable calls.
func (p *Peer) talk() {
	if p.idle {
		return
	}
	if len(p.opening)|len(p.halves) > 0 {
		p.serveFirst()
	}
	if len(p.speaking) > 0 {
		p.speak()
	}
	if len(p.settling) > 0 {
		p.settle()
	}
}

// farewell is an actor that was destroyed or torn off while it had no channel on the connection.
type farewell struct {
	id   netguid.GUID
	torn bool // torn off: the client keeps it
}

// maxFarewells bounds those of a connection, which take 8 MiB then. Its client lets none pass.
const maxFarewells = 1 << 20

var errFarewells = errors.New("actorrep: the client takes nothing of actors that are gone")

// bid has the client told of an actor. A connection that has no room for one more ends.
func (p *Peer) bid(f farewell) {
	if len(p.gone) == maxFarewells {
		p.world.endings = append(p.world.endings, ending{p, errFarewells})
		return
	}
	p.gone = append(p.gone, f)
}

// tellGone tells the client of actors that were destroyed or torn off while they had no channel.
func (p *Peer) tellGone() {
	p.gone = tellSome(p.gone, p.out.gone)
}

// tellSome tells what there is room for, in order, and returns the rest.
func tellSome[T any](list []T, tell func(T) bool) []T {
	n := 0
	for n < len(list) && tell(list[n]) {
		n++
	}
	if n == 0 {
		return list
	}
	return append(list[:0], list[n:]...)
}

// closeLeavers closes the actors that haven't been relevant for Config.RelevantTimeout, as far as the connection's share of
// the Step's closings allows. Those for which there is no room go behind the others.
func (p *Peer) closeLeavers() {
	may := p.mayClose()
	for len(p.leaving) < may {
		v := p.going.pop(p.world.now)
		if v == nil {
			break
		}
		if !v.inLeaving {
			v.inLeaving = true
			p.leaving = append(p.leaving, v)
		}
	}
	n := min(len(p.leaving), may)
	for i := range n {
		switch v := p.leaving[i]; {
		case v.state == ended || v.relevant:
			v.inLeaving = false
		case p.world.now < v.leaveAt || !v.leave(bunch.Relevancy):
			p.leaving = append(p.leaving, v)
		}
	}
	left := copy(p.leaving, p.leaving[n:])
	clear(p.leaving[left:])
	p.leaving = p.leaving[:left]
}

// SetRelevant says whether an actor is relevant to the connection. A Relevancy calls it when that changes. An
// actor that is no longer relevant stays for Config.RelevantTimeout. Components follow their parent.
func (p *Peer) SetRelevant(a Actor, relevant bool) {
	b := a.base()
	if b.world != p.world || b.tornOff || p.local || p.removed() {
		return
	}
	if relevant && (p.filter == nil || p.filter(a)) {
		if !p.byHand || len(p.gone) == 0 { // else the end of its last channel, which waits for room, would end the next one
			p.want(b)
		}
		return
	}
	p.world.enter()
	defer p.world.exit()
	switch v := p.views[b]; {
	case v == nil:
	case p.byHand:
		v.leave(bunch.Destroyed)
	default:
		v.unwant()
	}
}

// Hold holds actors back from a client that isn't ready for them, for example while it loads a level. Actors that the
// client doesn't have, and for which held returns true, are opened only after Release, even if they are relevant.
// Components wait with their parent. Reliable calls to them wait. What the client has already stays.
func (p *Peer) Hold(held func(a Actor) bool) { p.held = held }

// Release ends Hold.
func (p *Peer) Release() { p.held = nil }

// holds reports whether an actor has to wait for Release.
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
func (p *Peer) IsRelevant(a Actor) bool { return p.relevant(a.base()) }

func (p *Peer) relevant(b *Base) bool {
	if b.rep != nil && len(b.rep.views) <= fewViews {
		for _, v := range b.rep.views {
			if v.peer == p {
				return v.relevant
			}
		}
		return false
	}
	v := p.views[b]
	return v != nil && v.relevant
}

// fewViews of an actor are looked through faster than a connection's map of views.
const fewViews = 4

// want makes the actor relevant: it creates a view of it and of its components if there is none.
func (p *Peer) want(b *Base) {
	v := p.views[b]
	if v == nil {
		v = newView(p, b)
		v.reopen()
	}
	v.relevant = true
	for c := range b.components {
		p.want(c)
	}
}

// timeout is how long an actor stays after it stopped being relevant.
func (w *World) timeout() time.Duration { return max(w.cfg.RelevantTimeout, 0) }
