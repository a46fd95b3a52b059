package actorrep

import (
	"context"
	"fmt"
	"reflect"
	"runtime/trace"
	"time"

	"github.com/google/btree"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Config is the settings of a World; the zero value is useful.
type Config struct {
	// Relevancy makes what decides who sees which actors; see package actorrep/graph for one that scales. nil is a
	// plain list, which looks at every actor for every connection about once a second.
	Relevancy func(w *World) ReplicationDriver
	// Relevant has the last word in the plain list: whether a connection is to see an actor. nil is the
	// actor's own settings: always, only its owner, within its cull distance.
	Relevant func(p *Peer, a Actor) bool
	// RelevantTimeout is how long an actor that isn't relevant any more stays. Default 5 s (Unreal's); negative not
	// at all.
	RelevantTimeout time.Duration
	// Parallel runs f(0) to f(n-1), on as many cores as it likes, and returns when all are done; the worker is
	// from 0 to Workers-1, and two calls at once have different ones. nil runs them in turn. The bytes are the same.
	Parallel func(n int, f func(i, worker int))
	// Workers is how many calls Parallel makes at once at most. Default 1.
	Workers int
	// Spawned and Destroyed are called on a client, within Step. May be nil.
	Spawned, Destroyed func(a Actor)
	// Failed is told of what couldn't be made of the other end's bunches, of errors that RPCs return, on a client once of each procedure
	// that the server calls and the client lacks (ErrNoProcedure), and, as an ActorError, of
	// values that don't fit their field and calls that were taken and can't be sent. May be nil.
	Failed func(err error)
	// SchemaRefused is told, by name, which classes and fields a client doesn't have or can't take from a server; nil leaves it
	// to Failed.
	SchemaRefused func(p *Peer, reason string)
}

// Counters is what a World did.
type Counters struct {
	Compared, Changed uint64 // actors
	Opened, Closed    uint64 // channels
	Updates           uint64 // records of changed values
	UpdateBits        uint64 // their size
	Bunches           uint64 // that held them
	Large             uint64 // updates too large for one packet, sent reliably
	Deltas            uint64 // updates against a baseline
	Resent            uint64 // updates whose packet was lost
	Saturated         uint64 // ticks of a connection without room for everything
	Delayed           uint64 // opens and closes put off
	Unfit             uint64 // values and parameters that don't fit: each is told, by Config.Failed or the call
	SharedBits        uint64 // bits of updates copied instead of encoded

	CallsSent, CallsReceived, CallsDropped, CallsRefused, CallErrors uint64

	Spawned, Destroyed uint64 // on a client
	Received           uint64 // bunches
	Stale              uint64 // values older than those there
	Bad                uint64 // bunches that made no sense
	Unmapped           uint64 // references to actors that aren't there
}

// World is the actors of a game, on a server or on a client of it. There may be many in a
// process; each belongs to one goroutine.
type World struct {
	Counters Counters
	// User is the game's: procedures find it by Call.World, notifies by Base.World.
	User any

	cfg        Config
	server     bool
	classes    []*class
	byType     map[reflect.Type]*class
	byGUID     map[netguid.GUID]*Base
	actors     []*Base // in the order of their spawning, with nils where one went
	live       int
	walking    int // loops over actors, while which none may change its place
	ids        netguid.Allocator
	now        time.Duration
	frame      uint32
	scratch    []byte
	out        bitio.Writer // of what is in scratch; see message
	in         bitio.Reader // of a call's parameters
	unheld     spareCalls
	rows       int  // of an attribution
	procedures int  // of all classes
	typesAsked bool // the channel types

	// on a server
	driver    ReplicationDriver
	listener  ChangeListener // the same, or nil
	peers     []*Peer
	local     *Peer
	nextPeer  int
	marked    []*Base // to be compared
	spare     []*Base
	early     map[*Base][]*call // multicasts from before the actor's first Step: for all who see it then
	moving    []*Base           // between the two below
	polled    []*Base           // compared every Step
	scheduled *btree.BTreeG[appointment]
	workers   []*worker
	described int // bytes of the classes' descriptions
	paths     int // bytes of the names of their values

	client *client // on a client

	onValues []func(a Actor)
	before   []func(a Actor) // called before values that came are set
}

// NewServer returns a world whose actors are replicated to its connections. Without connections it is an offline
// game's; with a player of its own, World.Local, a listen server's.
func NewServer(cfg Config) *World {
	w := newWorld(cfg, true)
	w.local = &Peer{world: w, local: true}
	w.scheduled = btree.NewG(32, appointment.before)
	for range max(1, cfg.Workers) {
		w.workers = append(w.workers, newWorker())
	}
	w.driver = &list{world: w}
	if cfg.Relevancy != nil {
		w.driver = cfg.Relevancy(w)
		w.listener, _ = w.driver.(ChangeListener)
	}
	return w
}

// NewClient returns a world that mirrors a server's.
func NewClient(cfg Config) *World {
	w := newWorld(cfg, false)
	w.client = &client{world: w}
	return w
}

func newWorld(cfg Config, server bool) *World {
	if cfg.RelevantTimeout == 0 {
		cfg.RelevantTimeout = 5 * time.Second
	}
	return &World{cfg: cfg, server: server, byType: map[reflect.Type]*class{}, byGUID: map[netguid.GUID]*Base{}, scratch: make([]byte, bunch.MaxPayload)}
}

// Register makes a class known under a name. Ends find each other's classes and fields by name. a is only looked
// at for its type; a nil pointer does. Register all classes before the first connection.
func (w *World) Register(name string, a Actor, options ...ClassOption) error {
	if len(w.peers) > 0 {
		return ErrLate
	}
	c, err := newClass(len(w.classes), name, a, options)
	if err != nil {
		return fmt.Errorf("%w (class %q)", err, name)
	}
	for _, other := range w.classes {
		if other.name == name || other.typ == c.typ {
			return fmt.Errorf("%w: %q", ErrRegistered, name)
		}
	}
	for i := range c.rpcs {
		if p := &c.rpcs[i]; !p.handled() && p.definition().runsAt(w.server) {
			return fmt.Errorf("%w (class %q, procedure %s)", ErrNoHandler, name, p.name)
		}
	}
	if err := w.describe(c); err != nil {
		return fmt.Errorf("%w (class %q)", err, name)
	}
	c.firstRow = w.rows
	w.rows += len(c.layout.Units) + len(c.rpcs)
	c.firstCall = w.procedures
	w.procedures += len(c.rpcs)
	w.classes = append(w.classes, c)
	w.byType[c.typ] = c
	return nil
}

// IsServer reports which end this is.
func (w *World) IsServer() bool { return w.server }

// Now is the time of the last Step.
func (w *World) Now() time.Duration { return w.now }

// OnValues has f called whenever values of an actor have come together: on a client when a record has set them, before the next one
// does; on a server in the Step that finds them changed. Base.ServerTime is theirs. It is for what keeps past values, as package
// interp does.
func (w *World) OnValues(f func(a Actor)) { w.onValues = append(w.onValues, f) }

// tellBefore tells who shows something else in an actor's fields that values for it come.
func (w *World) tellBefore(b *Base) {
	for _, f := range w.before {
		f(b.self)
	}
}

// tellValues calls them.
func (w *World) tellValues(b *Base) {
	for _, f := range w.onValues {
		f(b.self)
	}
}

// Conn is a client's connection to its server, when that has described its classes; nil in a replay and on a server, where each Peer has
// its own.
func (w *World) Conn() channel.Conn {
	if w.client == nil {
		return nil
	}
	return w.client.conn
}

// Frame is the number of Steps; on a client, that of the server's Step from which its newest values are. It stands
// still there while nothing changes: for a clock, use package actorrep/netclock or an actor that changes every Step.
func (w *World) Frame() uint32 {
	if !w.server {
		return uint32(w.client.frame)
	}
	return w.frame
}

// Local is the player at the server itself: RPCs to the owner of what he owns run here.
func (w *World) Local() *Peer { return w.local }

// Spawn adds an actor to a server's world. Connections hear of it in the next Step.
func (w *World) Spawn(a Actor) error { return w.spawn(a, nil) }

// SpawnIn adds an actor as a component of another: it has its parent's owner, is seen by whom its parent is, and goes
// with it.
func (w *World) SpawnIn(parent, a Actor) error {
	if parent.base().world != w {
		return ErrNotSpawned
	}
	return w.spawn(a, parent.base())
}

func (w *World) spawn(a Actor, parent *Base) error {
	id := w.ids.Next()
	for w.byGUID[id] != nil { // all were given once
		id = w.ids.Next()
	}
	return w.spawnID(a, parent, id)
}

// spawnAs spawns an actor of a checkpoint, to which references go by its id.
func (w *World) spawnAs(a, parent Actor, id netguid.GUID) error {
	if !id.Valid() || w.byGUID[id] != nil {
		return ErrGUID
	}
	if parent == nil {
		return w.spawnID(a, nil, id)
	}
	return w.spawnID(a, parent.base(), id)
}

func (w *World) spawnID(a Actor, parent *Base, id netguid.GUID) error {
	b := a.base()
	switch {
	case !w.server:
		return ErrClient
	case b.world != nil:
		return ErrSpawned
	}
	c := w.byType[reflect.TypeOf(a).Elem()]
	if c == nil {
		return fmt.Errorf("%w: %T", ErrUnknown, a)
	}
	w.add(a, c, id)
	b.role, b.parent = Authority, parent
	b.rep = newReplicated(c)
	bindVars(c, b.ptr, b)
	b.mark(c.layout.All())
	w.reschedule(b)
	if parent == nil {
		w.driver.AddActor(a)
		return nil
	}
	parent.children = append(parent.children, b)
	for _, v := range parent.rep.views {
		if v.relevant {
			v.peer.want(b)
		}
	}
	return nil
}

// add puts an actor into the list.
func (w *World) add(a Actor, c *class, id netguid.GUID) {
	b := a.base()
	old := *b
	*b = Base{guid: id, world: w, class: c, self: a, ptr: reflect.ValueOf(a).UnsafePointer(), owner: old.owner, autonomous: old.autonomous, physics: old.physics,
		slot: len(w.actors), priority: c.priority, cull: c.cull, always: c.always || old.always, onlyOwner: c.onlyOwner || old.onlyOwner}
	if b.owner.removed() {
		b.owner = nil
	}
	if old.priority != 0 {
		b.priority = old.priority
	}
	if old.cull != 0 {
		b.cull = old.cull
	}
	w.actors = append(w.actors, b)
	w.live++
	w.byGUID[id] = b
}

// Destroy takes an actor out of a server's world, its components first. Clients see it disappear.
func (w *World) Destroy(a Actor) error {
	if !w.server {
		return ErrClient
	}
	b := a.base()
	if b.world != w {
		return nil
	}
	for len(b.children) > 0 {
		if err := w.Destroy(b.children[len(b.children)-1].self); err != nil {
			return err
		}
	}
	for _, v := range b.rep.views {
		v.flush() // while the driver still knows the actor
	}
	if b.parent == nil && !b.tornOff {
		w.driver.RemoveActor(a)
	}
	for len(b.rep.views) > 0 {
		b.rep.views[len(b.rep.views)-1].leave(bunch.Destroyed)
	}
	w.unschedule(b)
	bindVars(b.class, b.ptr, nil)
	w.remove(b)
	return nil
}

// remove takes an actor out of the list.
func (w *World) remove(b *Base) {
	w.actors[b.slot] = nil
	w.live--
	w.compact()
	delete(w.byGUID, b.guid)
	if p := b.parent; p != nil {
		p.dropChild(b)
	}
	b.world, b.rep, b.mirror, b.parent, b.role = nil, nil, nil, nil, NoRole
}

// compact closes the gaps in the list when there are many, and nobody walks it.
func (w *World) compact() {
	if w.walking > 0 || len(w.actors) <= 64 || w.live >= len(w.actors)/2 {
		return
	}
	n := 0
	for _, b := range w.actors {
		if b != nil {
			b.slot = n
			w.actors[n] = b
			n++
		}
	}
	clear(w.actors[n:])
	w.actors = w.actors[:n]
}

// Find is the actor with an id, or nil: it isn't there, or not yet.
func (w *World) Find(id netguid.GUID) Actor {
	if b := w.byGUID[id]; b != nil {
		return b.self
	}
	return nil
}

// walk begins a loop over the actors.
func (w *World) walk() { w.walking++ }

// walked ends it.
func (w *World) walked() {
	w.walking--
	w.compact()
}

// All calls yield for each actor in the order they appeared. As in a loop over a map of Go's, actors may be spawned and destroyed
// meanwhile: one that is destroyed before its turn isn't yielded, one that is spawned is.
func (w *World) All(yield func(Actor) bool) {
	w.walk()
	defer w.walked()
	for i := 0; i < len(w.actors); i++ {
		if b := w.actors[i]; b != nil && !yield(b.self) {
			return
		}
	}
}

// Len is the number of actors.
func (w *World) Len() int { return w.live }

// ChannelTypes is the kinds of channels that actors travel on, for the configs of both ends.
func (w *World) ChannelTypes() []channel.Type {
	w.typesAsked = true
	return []channel.Type{
		{Name: bunch.Actor, ServerOpen: true, Accept: w.acceptActor},
		{Name: ReplicationName, ServerOpen: true, Accept: w.acceptReplication},
	}
}

// ReplicationName is the channel on which a server describes its classes and sends changed values.
var ReplicationName = bunch.Name{Text: "Replication"}

func (w *World) failed(err error) {
	w.Counters.Bad++
	if w.cfg.Failed != nil {
		w.cfg.Failed(err)
	}
}

// Step is a tick of the world. On a server call it after the game's own step and before TickFlush: it finds what
// has changed and writes what each connection is to know. On a client call it after TickDispatch: it tells what came since
// the last one.
func (w *World) Step(now time.Duration) {
	defer trace.StartRegion(context.Background(), "bunchnet.Replicate").End()
	w.now = now
	if w.server {
		w.frame++
		w.stepServer()
		return
	}
	w.client.step()
}
