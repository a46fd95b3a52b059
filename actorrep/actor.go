package actorrep

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Actor is a pointer to a struct that embeds Base.
type Actor interface{ base() *Base }

// Role says who controls an actor at this end (Unreal's ENetRole).
type Role uint8

// The roles.
const (
	NoRole          Role = iota // not spawned
	SimulatedProxy              // shows the server's values
	AutonomousProxy             // controlled by this client's player, corrected by the server
	Authority                   // decides: the server, or a client after TearOff
)

// String is the role's name, such as "simulated proxy".
func (r Role) String() string {
	return [...]string{"none", "simulated proxy", "autonomous proxy", "authority"}[r&3]
}

// Base makes a struct an actor. Embed it by value. Don't copy the struct once the actor is spawned, and don't
// assign to the whole of it, as in *p = Player{}: that wipes Base, and the next Step panics. Set its fields.
//
// SetOwner, SetPriority and what else sets how an actor is replicated are for the server. A client may call them, and nothing comes of it.
//
// Printing an actor with %v or %+v prints all of Base's bookkeeping as well. Print the fields that you want, or give the actor a String method.
type Base struct {
	// What every change touches comes first.
	rep            *replicated // on a server
	class          *class
	slot           int // index in World.actors
	world          *World
	ptr            unsafe.Pointer
	self           Actor
	parent         *Base
	inactive       layout.Mask // custom units that SetCondition switched off
	guid           netguid.GUID
	relevancyIndex int32 // the Relevancy's number of the actor
	role           Role
	autonomous     bool
	physics        bool
	tornOff        bool
	dormant        bool
	always         bool // relevant to all
	onlyOwner      bool
	height         uint8 // on a client: how deep components of components have gone below it

	priority float32
	cull     float64
	owner    *Peer
	children []*Base // in the order of their coming, with nils where some went; the last is there
	gaps     int     // the nils
	place    int     // among its parent's children
	mirror   *mirror // on a client
}

func (b *Base) base() *Base { return b }

// GUID names the actor at both ends; 0 before it is spawned.
func (b *Base) GUID() netguid.GUID { return b.guid }

// ClassName is the name under which the class was registered; "" before the actor is spawned.
func (b *Base) ClassName() string {
	if b.class == nil {
		return ""
	}
	return b.class.name
}

// World is the world that the actor is in; nil when it isn't spawned, and once it is gone, also in Destroyed.
func (b *Base) World() *World { return b.world }

// Role says who controls the actor at this end.
func (b *Base) Role() Role { return b.role }

// IsOwned reports whether the actor belongs to this end's player: on a client, the client's player; on a server,
// World.Local.
func (b *Base) IsOwned() bool {
	if b.world == nil || b.world.server {
		o := b.Owner()
		return o != nil && o.local
	}
	return b.mirror != nil && b.mirror.owned
}

// Owner is the connection whose player owns the actor, on a server; nil for none. A component has its parent's owner.
func (b *Base) Owner() *Peer {
	if b.parent != nil {
		return b.parent.Owner()
	}
	return b.owner
}

// Parent is the actor that this one is a component of, or nil.
func (b *Base) Parent() Actor {
	if p := b.above(); p != nil {
		return p.self
	}
	return nil
}

// above is the parent. On a client that is, from the disappearance of an actor to the next Step, the one that has appeared under its id since.
func (b *Base) above() *Base {
	p := b.parent
	if p != nil && p.world == nil && b.world != nil {
		return b.world.byGUID[p.guid]
	}
	return p
}

// Children calls yield for each component, in the order in which they were spawned. Components may be spawned and
// destroyed meanwhile. One destroyed before its turn isn't yielded; one that is spawned may or may not be.
func (b *Base) Children(yield func(Actor) bool) {
	if b.world != nil && !b.world.server {
		b.world.client.settleOrphans()
	}
	b.components(func(c *Base) bool { return yield(c.self) })
}

// components calls yield for each component that is there.
func (b *Base) components(yield func(*Base) bool) {
	for _, c := range b.children {
		if c != nil && c.parent == b && !yield(c) {
			return
		}
	}
}

// addChild makes c a component.
func (b *Base) addChild(c *Base) {
	c.parent, c.place = b, len(b.children)
	b.children = append(b.children, c)
}

// dropChild removes a component. What is left is moved only to another list, because this one may be iterated.
func (b *Base) dropChild(c *Base) {
	b.children[c.place] = nil
	b.gaps++
	for n := len(b.children); n > 0 && b.children[n-1] == nil; n-- {
		b.children = b.children[:n-1]
		b.gaps--
	}
	if b.gaps <= leastGaps || b.gaps <= len(b.children)/2 {
		return
	}
	kept := make([]*Base, 0, len(b.children)-b.gaps)
	for c := range b.components {
		c.place = len(kept)
		kept = append(kept, c)
	}
	b.children, b.gaps = kept, 0
}

// leastGaps in a list of components are closed.
const leastGaps = 16

// SetOwner gives the actor to a connection's player, or to nobody with nil. Fields with owner conditions are sent or
// withheld accordingly. World.Local is the player of a listen server or an offline game. A removed connection counts as
// nil, and so does one of another World, of which Config.Failed is told (ErrOtherWorld). A component has its parent's owner,
// whatever its own is set to.
func (b *Base) SetOwner(p *Peer) {
	switch {
	case p.removed():
		p = nil
	case p != nil && b.world != nil && b.world.server && p.world != b.world:
		b.world.tell(b, "", nil, fmt.Errorf("%w: its new owner", ErrOtherWorld))
		p = nil
	}
	if b.owner == p {
		return
	}
	if b.rep != nil {
		b.world.enter()
		defer b.world.exit()
		if b.owner != nil {
			b.flushCalls(b.owner) // with the values that the old owner may still see
		}
	}
	b.owner = p
	b.audienceChanged()
}

// SetAutonomous says whether the owner's client moves the actor itself and is corrected by the server. Its role there is
// then AutonomousProxy. Default false.
func (b *Base) SetAutonomous(on bool) {
	if b.autonomous != on {
		b.autonomous = on
		b.audienceChanged()
	}
}

// SetPhysics says whether physics moves the actor (Unreal's bRepPhysics). Fields with the conditions
// simulated-or-physics then go to the owner's client too. Default false.
func (b *Base) SetPhysics(on bool) {
	if b.physics != on {
		b.physics = on
		b.audienceChanged()
	}
}

// audienceChanged has each view update what its connection is to the actor.
func (b *Base) audienceChanged() {
	if b.rep == nil {
		return
	}
	b.world.learnFates()
	b.world.enter()
	defer b.world.exit()
	for _, v := range b.rep.views {
		v.setAudience()
	}
	for c := range b.components {
		c.audienceChanged()
	}
	b.relevancyChanged()
}

// SetCondition switches a field with the condition custom on or off, for all connections. While it is off its changes
// aren't sent; when it is switched on again the newest value is. It returns ErrNotCustom for any other field. Default
// on.
func (b *Base) SetCondition(field string, on bool) error {
	if b.rep == nil {
		return b.noServer()
	}
	m := b.class.layout.FieldMask(field) & b.class.layout.Custom
	if m == 0 {
		return ErrNotCustom
	}
	if on {
		b.inactive &^= m
		b.thaw(m)
	} else {
		b.flushAll()
		b.freeze(m &^ b.inactive)
		b.inactive |= m
	}
	b.mark(m)
	b.audienceChanged()
	return nil
}

// flushAll sends the calls that wait, with what was set before them.
func (b *Base) flushAll() {
	b.world.enter()
	defer b.world.exit()
	b.world.learnFates()
	for _, v := range b.rep.views {
		if v.state != wanted {
			v.flush()
		}
	}
}

// freeze keeps fast arrays that are switched off as they are now, for the checkpoints of recordings, which have them as they were sent last. Of other
// values the shadow keeps that.
func (b *Base) freeze(m layout.Mask) {
	if b.rep == nil || m&b.class.layout.Fasts == 0 {
		return
	}
	recorded := layout.Mask(0)
	for _, v := range b.rep.views {
		if v.peer.replay {
			recorded |= v.told & m
		}
	}
	changed := b.class.layout.Freeze(b.rep.shadow, recorded)
	for _, v := range b.rep.views {
		v.dirty |= changed
	}
}

// thaw ends freeze.
func (b *Base) thaw(m layout.Mask) {
	if b.rep != nil {
		b.class.layout.Thaw(b.rep.shadow, m)
	}
}

// SetPriority sets the actor's weight when bandwidth is short. Default: its class's priority, or 1.
func (b *Base) SetPriority(p float32) { b.priority = p }

// ActorPriority is the number that SetPriority sets.
func (b *Base) ActorPriority() float32 { return b.priority }

// SetAlwaysRelevant makes the actor relevant to every connection, at any distance.
func (b *Base) SetAlwaysRelevant(on bool) {
	b.always = on
	b.relevancyChanged()
}

// AlwaysRelevant reports whether the actor is relevant to every connection.
func (b *Base) AlwaysRelevant() bool { return b.always }

// SetOnlyOwner makes the actor relevant to its owner only.
func (b *Base) SetOnlyOwner(on bool) {
	b.onlyOwner = on
	b.relevancyChanged()
}

// OnlyOwner reports whether the actor is relevant to its owner only.
func (b *Base) OnlyOwner() bool { return b.onlyOwner }

// SetCullDistance sets the distance from which the actor is relevant, in the units of Location; 0 is any distance. The actor must
// implement Located: of one that doesn't Config.Failed is told. The connection must have a viewpoint (Peer.SetViewTarget, Peer.SetViewpoint): without one it sees the actor at any distance. When
// no connection has had one for 10 s, Config.Failed is told once.
func (b *Base) SetCullDistance(d float64) {
	if b.rep != nil && d > 0 && d != b.cull && !located(b.self) {
		b.world.tell(b, "", nil, errNotLocated)
	}
	b.cull = d
	b.relevancyChanged()
}

// CullDistance is the distance that SetCullDistance sets.
func (b *Base) CullDistance() float64 { return b.cull }

func (b *Base) relevancyChanged() {
	if b.rep != nil && b.parent == nil {
		b.world.relevancy.OwnerChanged(b.self)
	}
}

// MarkDirty has the actor compared in the next Step that its update frequency allows. Classes registered with Manual
// need it; for others it does nothing harmful.
func (b *Base) MarkDirty() {
	if b.class != nil {
		b.mark(b.class.layout.All())
	}
}

// MarkUnits has units of the actor compared in the next Step that its update frequency allows. The setters that package
// actorrep/gen generates call it.
func (b *Base) MarkUnits(m layout.Mask) { b.mark(m) }

// ForceUpdate has the actor compared in the next Step, whatever its update frequency.
func (b *Base) ForceUpdate() {
	if b.rep != nil {
		b.MarkDirty()
		b.force()
	}
}

// force has the actor compared in the next Step, whatever its update frequency, even if it is dormant.
func (b *Base) force() {
	r := b.rep
	if b.dormant {
		r.marks |= b.class.layout.All()
	}
	if !r.forced {
		r.forced, r.marked, r.due = true, true, 0
		b.world.marked = append(b.world.marked, b)
	}
}

// mark has units compared in the next Step.
func (b *Base) mark(m layout.Mask) {
	r := b.rep
	if r == nil {
		return
	}
	r.marks |= m
	if !r.marked {
		r.marked = true
		b.world.marked = append(b.world.marked, b)
	}
}

// SetUpdateFrequency limits how often the actor is compared, in times a second, instead of its class's UpdateFrequency; 0 is every Step.
func (b *Base) SetUpdateFrequency(hz float64) error {
	switch {
	case b.rep == nil:
		return b.noServer()
	case !(hz >= 0):
		return fmt.Errorf("actorrep: SetUpdateFrequency %v must be 0, for every Step, or above", hz)
	}
	b.rep.fastest = 0
	if hz > 0 {
		b.rep.fastest = intervalOf(hz)
	}
	b.rep.interval = b.rep.fastest
	b.rep.due = min(b.rep.due, b.world.now+b.rep.interval) // a higher frequency holds at once
	b.world.reschedule(b)
	return nil
}

// intervalOf is the time between two compares at a frequency. It is a century at most, because longer times may overflow a Duration.
func intervalOf(hz float64) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(time.Second)/hz, float64(longest)))
}

// SetDormant(true) puts an actor that won't change to sleep. Once every connection has its last values, its channels
// close and it costs nothing; clients keep it. SetDormant(false) wakes it. Clients can't call a dormant actor: Call returns
// ErrNotThere.
func (b *Base) SetDormant(on bool) error {
	if b.rep == nil {
		return b.noServer()
	}
	if b.dormant == on {
		return nil
	}
	b.dormant = on
	b.rep.dormantSince = b.world.now
	b.mark(b.class.layout.All()) // what changed until now
	b.world.reschedule(b)
	for _, v := range b.rep.views {
		v.setDrowsy()
		v.wake()
	}
	return nil
}

// FlushDormancy sends the changes of a dormant actor, which stays dormant. Call it before or after the change, in the
// same tick. Where it is forgotten, Counters.Unflushed grows.
func (b *Base) FlushDormancy() { b.ForceUpdate() }

// noServer is why a server's method can't be used: the actor isn't spawned, or this is a client's.
func (b *Base) noServer() error {
	if b.world != nil {
		return ErrClient
	}
	return ErrNotSpawned
}

// Dormant reports whether SetDormant put the actor to sleep. Its last values may still be on their way.
func (b *Base) Dormant() bool { return b.dormant }

// TearOff sends the actor's last values and ends its replication. Each client keeps its copy, with the role Authority.
func (b *Base) TearOff() error {
	if b.rep == nil {
		return b.noServer()
	}
	if b.tornOff {
		return nil
	}
	b.world.enter()
	defer b.world.exit()
	b.MarkDirty()
	b.world.compareNow(b)
	b.tornOff = true
	for c := range b.components {
		if err := c.TearOff(); err != nil {
			return err
		}
	}
	if b.parent == nil {
		b.world.relevancy.RemoveActor(b.self)
	}
	b.world.reschedule(b)
	for len(b.rep.views) > 0 {
		v := b.rep.views[len(b.rep.views)-1]
		v.tearOff()
	}
	return nil
}

// TornOff reports whether the actor was torn off.
func (b *Base) TornOff() bool { return b.tornOff }

// Initializer may be implemented by an actor. Init is called on a client when the actor is made, before its first values
// are set. Those then include zeros, so that a value set by Init doesn't remain where the server has zero. The server's
// type must have the method too.
type Initializer interface{ Init() }

// Notified may be implemented by an actor that wants to know when it appears and disappears on a client. One of the two
// methods alone is called as well.
type Notified interface {
	// Spawned is called after the first values are set.
	Spawned()
	// Destroyed is called when the actor has disappeared, and for all actors, in the next Step, when the connection has ended.
	Destroyed()
}

// Located may be implemented by an actor that has a position. Relevancy by distance and priority need it.
type Located interface {
	Location() (x, y, z float64)
}

// located reports whether an actor has a position.
func located(a Actor) bool {
	_, is := a.(Located)
	return is
}

// Errors of wrong calls and registrations.
var (
	ErrClass      = errors.New("actorrep: not a pointer to a struct that embeds actorrep.Base by value")
	ErrNothing    = errors.New("actorrep: the class has fields, but none has a net tag, and no procedures: nothing of it would be sent")
	ErrNoName     = errors.New("actorrep: a class needs a name, by which the other end knows it")
	ErrNotify     = errors.New("actorrep: notify method missing or with wrong parameters")
	ErrRegistered = errors.New("actorrep: class, type or RPC registered twice")
	ErrUnknown    = errors.New("actorrep: class not registered; call Register with it at both ends")
	ErrSpawned    = errors.New("actorrep: the actor is spawned already")
	ErrNotSpawned = errors.New("actorrep: the actor isn't spawned, or gone")
	ErrClient     = errors.New("actorrep: only a server may do that; a client asks it by a ServerRPC")
	ErrNotCustom  = errors.New("actorrep: no field of that name with the custom condition")
	ErrLate       = errors.New("actorrep: register all classes before the first connection")
	ErrDeep       = fmt.Errorf("actorrep: components of components go %d deep at most", maxDepth)
	ErrTaken      = errors.New("actorrep: another actor has the id, or it isn't one")
	ErrOtherWorld = errors.New("actorrep: a Peer of another World; use the one that AddConn of the actor's World returned, or its World.Local")
	errNotLocated = errors.New("actorrep: a cull distance needs a method Location() (x, y, z float64), by which the actor is somewhere")
	ErrManyFast   = errors.New("actorrep: a class may have two fast arrays; move others into a component")
)
