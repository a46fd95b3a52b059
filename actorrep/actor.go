package actorrep

import (
	"errors"
	"slices"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Actor is a pointer to a struct that embeds Base.
type Actor interface{ base() *Base }

// Role is who has the say over an actor at this end (Unreal's ENetRole).
type Role uint8

// The roles.
const (
	NoRole          Role = iota // not spawned
	SimulatedProxy              // shows what the server says
	AutonomousProxy             // controlled by this client's player, corrected by the server
	Authority                   // decides
)

// String is the role's name.
func (r Role) String() string {
	return [...]string{"none", "simulated proxy", "autonomous proxy", "authority"}[r&3]
}

// Base is what every actor has. It must be embedded by value and not be copied once the actor
// is spawned.
type Base struct {
	// What every change touches comes first.
	rep         *replicated // on a server
	class       *class
	world       *World
	ptr         unsafe.Pointer
	self        Actor
	parent      *Base
	slot        int         // in the world's list
	inactive    layout.Mask // custom units that are off
	guid        netguid.GUID
	driverIndex int32 // of the ReplicationDriver
	role        Role
	autonomous  bool
	physics     bool
	tornOff     bool
	dormant     bool
	always      bool // relevant to all
	onlyOwner   bool

	priority float32
	cull     float64
	owner    *Peer
	children []*Base
	mirror   *mirror // on a client
}

func (b *Base) base() *Base { return b }

// GUID names the actor at both ends; 0 before it is spawned.
func (b *Base) GUID() netguid.GUID { return b.guid }

// ClassName is what the class was registered as; "" before the actor is spawned.
func (b *Base) ClassName() string {
	if b.class == nil {
		return ""
	}
	return b.class.name
}

// World is where the actor is, or nil.
func (b *Base) World() *World { return b.world }

// Role is who has the say over the actor here.
func (b *Base) Role() Role { return b.role }

// IsOwned reports whether the actor is this end's own: on a client, its player's; on a server, a local
// player's.
func (b *Base) IsOwned() bool {
	if b.world == nil || b.world.server {
		o := b.Owner()
		return o != nil && o.local
	}
	return b.mirror != nil && b.mirror.owned
}

// Owner is the connection whose player the actor is, on a server; nil for none. A child has its
// parent's.
func (b *Base) Owner() *Peer {
	if b.parent != nil {
		return b.parent.Owner()
	}
	return b.owner
}

// Parent is the actor that this one is a component of, or nil.
func (b *Base) Parent() Actor {
	if b.parent == nil {
		return nil
	}
	return b.parent.self
}

// Children calls yield for each component, in the order they came. Components may be destroyed meanwhile, and aren't yielded
// then; of those that are spawned it doesn't say whether they are.
func (b *Base) Children(yield func(Actor) bool) {
	for _, c := range b.children {
		if c != nil && c.parent == b && !yield(c.self) {
			return
		}
	}
}

// dropChild takes a component from the list. The others keep their places in lists that are being walked.
func (b *Base) dropChild(c *Base) {
	i, last := slices.Index(b.children, c), len(b.children)-1
	switch {
	case i < 0:
	case i == last:
		b.children[last] = nil
		b.children = b.children[:last]
	default:
		b.children = slices.Concat(b.children[:i], b.children[i+1:])
	}
}

// SetOwner makes the actor a connection's own, or nobody's. Values with the owner's conditions
// follow. World.Local is the player of a listen server or an offline game. A connection that was removed is nobody.
func (b *Base) SetOwner(p *Peer) {
	if p.removed() {
		p = nil
	}
	if b.owner == p {
		return
	}
	if b.rep != nil && b.owner != nil {
		b.flushCalls(b.owner) // with the values that he may still see
	}
	b.owner = p
	b.audienceChanged()
}

// SetAutonomous says whether the owner's client controls the actor itself and is corrected: its role there
// is AutonomousProxy.
func (b *Base) SetAutonomous(on bool) {
	if b.autonomous != on {
		b.autonomous = on
		b.audienceChanged()
	}
}

// SetPhysics says whether physics moves the actor, for fields of the conditions that ask: who controls the actor has them then too
// (Unreal's bRepPhysics).
func (b *Base) SetPhysics(on bool) {
	if b.physics != on {
		b.physics = on
		b.audienceChanged()
	}
}

// audienceChanged has views look again to whom they speak.
func (b *Base) audienceChanged() {
	if b.rep == nil {
		return
	}
	for _, v := range b.rep.views {
		v.setAudience()
	}
	for _, c := range b.children {
		c.audienceChanged()
	}
	if b.parent == nil && b.world.driver != nil {
		b.world.driver.OwnerChanged(b.self)
	}
}

// SetActive switches a field with the custom condition on or off, for all connections. Its changes while it is off
// are sent when it is on again.
func (b *Base) SetActive(field string, on bool) error {
	if b.class == nil {
		return ErrNotSpawned
	}
	m := b.class.layout.FieldMask(field) & b.class.layout.Custom
	if m == 0 {
		return ErrNotCustom
	}
	if on {
		b.inactive &^= m
	} else {
		b.inactive |= m
	}
	b.mark(m)
	b.audienceChanged()
	return nil
}

// SetPriority says how much the actor matters when bandwidth is short. Default 1, or its class's.
func (b *Base) SetPriority(p float32) { b.priority = p }

// ActorPriority is that number.
func (b *Base) ActorPriority() float32 { return b.priority }

// SetAlwaysRelevant makes every connection see the actor, however far.
func (b *Base) SetAlwaysRelevant(on bool) {
	b.always = on
	b.relevancyChanged()
}

// AlwaysRelevant reports that.
func (b *Base) AlwaysRelevant() bool { return b.always }

// SetOnlyOwner makes the actor relevant to its owner only.
func (b *Base) SetOnlyOwner(on bool) {
	b.onlyOwner = on
	b.relevancyChanged()
}

// OnlyOwner reports that.
func (b *Base) OnlyOwner() bool { return b.onlyOwner }

// SetCullDistance is how far the actor is seen; 0 is any distance. It needs a Location.
func (b *Base) SetCullDistance(d float64) {
	b.cull = d
	b.relevancyChanged()
}

// CullDistance is that distance.
func (b *Base) CullDistance() float64 { return b.cull }

func (b *Base) relevancyChanged() {
	if b.rep != nil && b.parent == nil {
		b.world.driver.OwnerChanged(b.self)
	}
}

// MarkDirty has the actor compared in the next Step, or when its update frequency says so. It is needed for
// classes registered with Manual, and does no harm to others.
func (b *Base) MarkDirty() {
	if b.class != nil {
		b.mark(b.class.layout.All())
	}
}

// ForceUpdate has the actor compared in the next Step whatever its update frequency.
func (b *Base) ForceUpdate() {
	if b.rep != nil {
		b.MarkDirty()
		b.force()
	}
}

// force has the actor compared in the next Step whatever its update frequency, asleep or not.
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

// mark notes units that may have changed.
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

// SetUpdateFrequency is how often at most the actor is compared, a second; 0 is every Step.
func (b *Base) SetUpdateFrequency(hz float64) error {
	if b.rep == nil {
		return ErrNotSpawned
	}
	b.rep.interval = 0
	if hz > 0 {
		b.rep.interval = time.Duration(float64(time.Second) / hz)
	}
	b.world.reschedule(b)
	return nil
}

// SetDormant puts an actor that won't change to sleep: once every connection has its last values, its channels
// close and it costs nothing; clients keep it. False wakes it.
func (b *Base) SetDormant(on bool) error {
	if b.rep == nil {
		return ErrNotSpawned
	}
	if b.dormant == on {
		return nil
	}
	b.dormant = on
	b.rep.dormantSince = b.world.now
	b.mark(b.class.layout.All()) // what changed until now
	b.world.reschedule(b)
	return nil
}

// FlushDormancy sends what has changed of a dormant actor, which then goes on sleeping. Call it before the change
// or after it.
func (b *Base) FlushDormancy() { b.ForceUpdate() }

// Dormant reports whether the actor sleeps, or soon will.
func (b *Base) Dormant() bool { return b.dormant }

// TearOff ends the actor's replication with its last values: clients keep it and have the authority over their own.
func (b *Base) TearOff() error {
	if b.rep == nil {
		return ErrNotSpawned
	}
	if b.tornOff {
		return nil
	}
	b.MarkDirty()
	b.world.compare(b)
	b.tornOff = true
	for _, c := range b.children {
		if err := c.TearOff(); err != nil {
			return err
		}
	}
	if b.parent == nil {
		b.world.driver.RemoveActor(b.self)
	}
	b.world.reschedule(b)
	for len(b.rep.views) > 0 {
		v := b.rep.views[len(b.rep.views)-1]
		v.tearOff()
	}
	return nil
}

// TornOff reports whether it was torn off.
func (b *Base) TornOff() bool { return b.tornOff }

// Initializer may be implemented by an actor that wants to be called when it is made on a client, before its
// first values. These include zeros then, so that what Init sets doesn't stay where the server has zero; the server must have the
// method too.
type Initializer interface{ Init() }

// Notified may be implemented by an actor that wants to know of its coming and going on a client.
type Notified interface {
	// Spawned is called after its first values are set.
	Spawned()
	// Destroyed is called when it is gone.
	Destroyed()
}

// Located may be implemented by an actor that is somewhere: relevancy by distance and priority need it.
type Located interface {
	Location() (x, y, z float64)
}

// Errors of a caller.
var (
	ErrClass      = errors.New("actorrep: not a pointer to a struct that embeds actorrep.Base by value")
	ErrNotify     = errors.New("actorrep: notify method missing or with wrong parameters")
	ErrRegistered = errors.New("actorrep: class, type or RPC registered twice")
	ErrUnknown    = errors.New("actorrep: class not registered; call Register with it at both ends")
	ErrSpawned    = errors.New("actorrep: the actor is spawned already")
	ErrNotSpawned = errors.New("actorrep: the actor isn't spawned, or gone")
	ErrClient     = errors.New("actorrep: only a server may do that")
	ErrNotCustom  = errors.New("actorrep: no field of that name with the custom condition")
	ErrLate       = errors.New("actorrep: register all classes before the first connection")
	ErrManyFast   = errors.New("actorrep: a class may have two fast arrays; move others into a component")
)
