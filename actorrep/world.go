package actorrep

import (
	"context"
	"fmt"
	"reflect"
	"runtime/trace"
	"time"

	"github.com/google/btree"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Config configures a World. The zero value is useful.
type Config struct {
	// Relevancy makes what decides which actors each connection sees; package actorrep/graph has one that scales. Default: a list that checks every actor for every connection about once a second.
	Relevancy func(w *World) Relevancy
	// Relevant overrides, for the default list, whether an actor is relevant to a connection. Default: Peer.Sees, the
	// actor's own settings.
	Relevant func(p *Peer, a Actor) bool
	// IDs is, on a server, the part of the actors' ids that Spawn gives. With another part at each server of a mesh, an actor
	// has the same id at all of them (World.SpawnAs). Default: all ids. NewServer panics when it is out of range.
	IDs netguid.Share
	// RelevantTimeout is how long an actor stays on a client after it stopped being relevant, and longer when many go at
	// once. Default 5 s (Unreal's); negative is 0.
	RelevantTimeout time.Duration
	// Parallel runs a server's Step on several cores; driver.Cores is such an Executor. Default: one core. What is sent,
	// its order and all Counters are the same with any number of cores. Records for different connections are encoded at
	// the same time, and distances are checked, so the methods of actors and fields that this calls must change nothing:
	// Location of actors, and the NetWrite of fields. Without Config.Relevancy distances are checked on several cores
	// only if Config.Relevant is nil.
	Parallel Executor
	// Spawned and Destroyed are called on a client, within Step, when an actor appears or disappears. When the connection has ended the next Step calls Destroyed
	// for all, so go on with Step after the driver's Closed if the game needs that. May be nil.
	Spawned, Destroyed func(a Actor)
	// Failed gets the errors that no call can return: bunches that couldn't be decoded, errors returned by RPCs, and, as
	// an ActorError, values that don't fit their field or a connection's ReliableBuffer or MaxMemory, and accepted calls that can't be sent. A client is told once
	// (ErrNoProcedure) of each procedure that the server calls and the client lacks. In a second it is told of 16 bunches that it
	// can't decode, of 16 values and calls that it can't take (ErrUnread, ErrClamped) and of 256 procedures that were refused
	// (RefusedError); of more it is told the number and the last. A server is told once (channel.ErrNoIndex) of a connection that has all its
	// channels, so that relevant actors wait for one. It is called at the end of the Step,
	// the call or the bunch in which they happened, and may do anything: destroy actors, remove connections. May be nil.
	Failed func(err error)
	// SchemaRefused gets, on a server, what a client lacks or can't decode, when it has joined: classes, procedures that the
	// server calls, and fields of another type, by name. Default: Failed gets that as an ErrSchema.
	SchemaRefused func(p *Peer, reason string)
}

// Executor runs a piece of work on several cores.
type Executor interface {
	// Workers is the most calls of f that Run makes at the same time.
	Workers() int
	// Run calls f(0, ...) to f(n-1, ...), in any order, and returns when all have returned. worker is 0 to Workers-1 and
	// differs between calls at the same time.
	Run(n int, f func(i, worker int))
}

// Counters counts what a World did.
type Counters struct {
	Compared, Changed uint64 // actors compared, and found changed
	Opened, Closed    uint64 // channels
	Updates           uint64 // records of changed values
	UpdateBits        uint64 // their size
	Bunches           uint64 // that carried the records
	Large             uint64 // updates too large for one packet, sent reliably
	Deltas            uint64 // updates against a baseline
	Resent            uint64 // updates whose packet was lost
	Saturated         uint64 // Steps in which a connection had no bandwidth for everything
	Delayed           uint64 // opens and closes that had to wait
	Unfit             uint64 // values and parameters that don't fit; Config.Failed or the call reports each
	Unflushed         uint64 // dormant actors found with a value that no FlushDormancy sends, of one looked at in each Step; Explain names it
	SharedBits        uint64 // bits of updates that are encoded once, on each core, and copied for every connection that gets the same

	CallsSent, CallsReceived, CallsDropped, CallsRefused, CallErrors uint64

	Spawned, Destroyed uint64 // on a client
	Received           uint64 // bunches
	Stale              uint64 // values older than the actor's
	Bad                uint64 // bunches that couldn't be decoded
	Unmapped           uint64 // references to actors that weren't there
}

// World is the actors of a game, on a server or on one of its clients. A process may have many Worlds; each belongs to
// one goroutine.
type World struct {
	Counters Counters
	// User holds whatever the game puts there. Procedures reach it through Call.World, notifies through Base.World.
	User any

	cfg        Config
	server     bool
	classes    []*class
	byType     map[reflect.Type]*class
	byGUID     map[netguid.GUID]*Base
	actors     []*Base // in the order of their spawning, with nils where one went
	live       int
	walking    int // loops over actors in progress; meanwhile no actor's index may change
	ids        netguid.Allocator
	now        time.Duration
	frame      uint32
	stepped    bool // Step was called
	noStep     bool // Config.Failed was told that it never is
	scratch    []byte
	out        bitio.Writer // writes to scratch; see message
	in         bitio.Reader // reads a call's parameters
	unheld     spareCalls
	busy       int      // calls into the World in progress: errors wait for their end
	untold     []error  // that wait for it; Config.Failed was told of the first, told of them
	endings    []ending // that wait for it
	removed    []*Peer  // likewise: their views are still there, as they may be iterated
	told       int      // of untold; less than there are, or 0
	rows       int      // of an attribution: one for each unit and procedure
	procedures int      // of all classes
	typesAsked bool     // ChannelTypes was called

	// on a server
	relevancy Relevancy
	listener  ChangeListener        // the same, or nil
	stays     func([]Actor, []bool) // its method Stays, or nil
	peers     []*Peer
	local     *Peer
	nextPeer  int
	mayOpen   int     // how many actors each connection may open in this Step
	mayClose  int     // and close
	marked    []*Base // to be compared in the next Step
	spare     []*Base
	early     map[*Base][]*call // multicasts called before the actor's first Step: for all who see it then
	moving    []*Base           // between polled and scheduled; see settleMoves
	polled    []*Base           // compared every Step
	scheduled *btree.BTreeG[appointment]
	workers   []*worker
	compares  compares

	fates   int     // of packets, that the connections are to learn
	hearing []*Peer // these connections

	gatherPeer, comparePart, learnPeer, markPeer func(i, worker int) // made once, for Config.Parallel
	described                                    int                 // bytes of the classes' descriptions
	paths                                        int                 // bytes of the names of their values

	client *client // on a client

	observer bridge.Observer // of what is sent; nil for none
	wentBack bool            // the game was told that its time went back
	clock    clock
	nested   bool       // the game was told that it called Step within a callback
	looksAt  int        // how far in actors the search for values that weren't flushed has come
	looked   int        // for the observer: how far in actors the search for values that nobody is told has come
	waits    waitSearch // for the observer too
	onValues []func(a Actor)
	moved    []*Base         // on a server: the listener is to be told of them
	found    []*Base         // on a server: changed since onValues were told
	before   []func(a Actor) // called before received values are set
	watches  []watch
}

// NewServer returns a server's world: its actors are replicated to the connections added by AddConn. Without connections
// it serves an offline game; World.Local is the player of an offline game or a listen server.
func NewServer(cfg Config) *World {
	if !cfg.IDs.Valid() {
		panic(fmt.Sprintf("actorrep: Config.IDs is %+v; Server is 0 to Servers-1, and Servers %d at most", cfg.IDs, netguid.MaxServers))
	}
	w := newWorld(cfg, true)
	w.ids.Share = cfg.IDs
	w.local = &Peer{world: w, local: true}
	w.scheduled = btree.NewG(32, appointment.before)
	cores := 1
	if cfg.Parallel != nil {
		cores = max(1, cfg.Parallel.Workers())
	}
	for range cores {
		w.workers = append(w.workers, newWorker())
	}
	w.compares.from = manyViews
	w.compares.told, w.compares.slept, w.compares.asked = make([]int, partsACore*cores), make([][]*Base, cores), make([]asked, cores)
	w.gatherPeer = func(i, worker int) { w.peers[i].gather(w.workers[worker]) }
	w.comparePart = func(i, worker int) { w.compares.part(w, i, worker) }
	w.learnPeer = func(i, _ int) { w.hearing[i].learnFates() }
	w.markPeer = func(i, worker int) {
		w.peers[i].learnFates()
		w.compares.mark(w.peers[i], worker)
	}
	w.expectRemove()
	w.relevancy = newList(w)
	if cfg.Relevancy == nil && cfg.Relevant == nil {
		w.expectViewpoint()
	}
	if cfg.Relevancy != nil {
		w.relevancy = cfg.Relevancy(w)
		w.listener, _ = w.relevancy.(ChangeListener)
		if s, ok := w.relevancy.(interface{ Stays([]Actor, []bool) }); ok {
			w.stays = s.Stays
		}
	}
	return w
}

// NewClient returns a client's world, which mirrors the server's.
func NewClient(cfg Config) *World {
	w := newWorld(cfg, false)
	w.client = &client{world: w, bad: flood{most: mostBad, what: "bunches couldn't be decoded"}, untaken: flood{most: mostUntaken, what: "values and calls couldn't be taken"},
		refusals: flood{most: mostRefused, what: "procedures were refused"}}
	return w
}

func newWorld(cfg Config, server bool) *World {
	if cfg.RelevantTimeout == 0 {
		cfg.RelevantTimeout = 5 * time.Second
	}
	return &World{cfg: cfg, server: server, byType: map[reflect.Type]*class{}, byGUID: map[netguid.GUID]*Base{}, scratch: make([]byte, bunch.MaxPayload)}
}

// Register registers a class under a name. The two ends match classes and fields by name. Only the type of a is used; a
// nil pointer is fine. Register all classes before the first connection: after that it returns ErrLate. A class may have
// nothing but procedures, or nothing at all when clients are only to see that its actors are there; exported fields of
// which none has a net tag are ErrNothing.
func (w *World) Register(name string, a Actor, options ...ClassOption) error {
	if len(w.peers) > 0 {
		return ErrLate
	}
	if name == "" {
		return fmt.Errorf("%w: %T", ErrNoName, a)
	}
	c, err := newClass(len(w.classes), name, a, options)
	if err != nil {
		return fmt.Errorf("%w (class %q)", err, name)
	}
	if w.server && c.cull > 0 && !reflect.PointerTo(c.typ).Implements(reflect.TypeFor[Located]()) {
		return fmt.Errorf("%w: %v (class %q)", errNotLocated, reflect.PointerTo(c.typ), name)
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

// IsServer reports whether NewServer made the world.
func (w *World) IsServer() bool { return w.server }

// Now is the time that the last Step was given: this end's own. In a call Call.Now is newer on a server, by up to a tick. Other actors are drawn
// at a time of the server's that lies behind: interpolation's Timeline.Shown.
func (w *World) Now() time.Duration { return w.now }

// OnValues adds a function that is called whenever values of an actor that belong together are complete: on a client
// when a record has set them, on a server in the Step that finds them changed. Base.ServerTime is their time. It is
// meant for code that keeps past values, such as package interp.
func (w *World) OnValues(f func(a Actor)) { w.onValues = append(w.onValues, f) }

// tellBefore announces that values are about to be set, to code that shows other values in an actor's fields.
func (w *World) tellBefore(b *Base) {
	for _, f := range w.before {
		f(b.self)
	}
}

// tellValues calls the functions of OnValues.
func (w *World) tellValues(b *Base) {
	for _, f := range w.onValues {
		f(b.self)
	}
}

// Conn is a client's connection to its server, once the server has described its classes. It is nil before that, in a
// replay, and on a server, where each Peer has its own.
func (w *World) Conn() channel.Conn {
	if w.client == nil {
		return nil
	}
	return w.client.conn
}

// Frame is, on a server, the number of Steps so far. On a client it is the server's frame of the newest values received;
// it doesn't advance while nothing changes. For a clock use package actorrep/netclock, or an actor that changes every
// Step.
func (w *World) Frame() uint32 {
	if !w.server {
		return uint32(w.client.frame)
	}
	return w.frame
}

// Local is the player at the server itself. A client RPC on an actor that it owns runs here.
func (w *World) Local() *Peer { return w.local }

// Spawn adds an actor to a server's world. Connections are told in the next Step.
func (w *World) Spawn(a Actor) error { return w.spawn(a, nil) }

// SpawnIn adds an actor as a component of parent. It has the parent's owner, is relevant to the same connections, and is
// destroyed with it. One of an actor that was torn off is torn off too: no connection is told of it. Components of components go 64 deep: ErrDeep.
func (w *World) SpawnIn(parent, a Actor) error {
	if parent == nil || parent.base().world != w {
		return ErrNotSpawned
	}
	return w.spawn(a, parent.base())
}

func (w *World) spawn(a Actor, parent *Base) error {
	for range w.live + 1 { // when all ids were given once, the first may be those of actors that are still there
		if id := w.ids.Next(); w.byGUID[id] == nil {
			return w.spawnID(a, parent, id)
		}
	}
	return ErrTaken
}

// SpawnAs adds an actor under the id that it has in another server's world, or had in a checkpoint: references go to it, and
// a client that sees both servers' worlds knows it as the same. With a parent it is a component, as by SpawnIn; parent may
// be nil. ErrTaken: an actor of this world has the id, or it isn't one.
func (w *World) SpawnAs(a, parent Actor, id netguid.GUID) error {
	switch {
	case !w.server:
		return ErrClient
	case !id.Valid() || w.byGUID[id] != nil:
		return ErrTaken
	case parent == nil:
		return w.spawnID(a, nil, id)
	case parent.base().world != w:
		return ErrNotSpawned
	}
	return w.spawnID(a, parent.base(), id)
}

func (w *World) spawnID(a Actor, parent *Base, id netguid.GUID) error {
	if !w.server {
		return ErrClient
	}
	v := reflect.ValueOf(a)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("%w: %T", ErrClass, a)
	}
	c := w.byType[v.Type().Elem()]
	if c == nil {
		return fmt.Errorf("%w: %T", ErrUnknown, a)
	}
	b := a.base()
	switch {
	case b.world != nil:
		return ErrSpawned
	case parent == nil && b.owner != nil && b.owner.world != w && !b.owner.removed():
		return fmt.Errorf("%w: the actor's owner", ErrOtherWorld)
	}
	depth := 0
	for up := parent; up != nil; up = up.parent {
		if depth++; depth > maxDepth {
			return ErrDeep
		}
	}
	w.add(a, c, id)
	b.role = Authority
	b.tornOff = parent != nil && parent.tornOff
	b.rep = newReplicated(c)
	bindVars(c, b.ptr, b)
	b.mark(c.layout.All())
	w.reschedule(b)
	if b.cull > 0 && !located(a) {
		w.enter()
		defer w.exit()
		w.tell(b, "", nil, errNotLocated)
	}
	if parent == nil {
		w.relevancy.AddActor(a)
		return nil
	}
	parent.addChild(b)
	for _, v := range parent.rep.views {
		if v.relevant {
			v.peer.want(b)
		}
	}
	return nil
}

// add adds an actor to the list.
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
	if !w.server {
		w.client.held += c.size()
	}
}

// isNil reports whether an actor or a procedure is nil, or a nil pointer.
func isNil(v any) bool { return v == nil || reflect.ValueOf(v).IsNil() }

// Destroy removes an actor from a server's world, its components first. It disappears on the clients. On a client it removes
// an actor that was torn off, and its components; the next Step tells the game that they are gone. Of any other it returns
// ErrClient. Of nil, and of an actor that isn't in the world, it does nothing.
func (w *World) Destroy(a Actor) error {
	if isNil(a) {
		return nil
	}
	b := a.base()
	switch {
	case !w.server && !b.tornOff:
		return ErrClient
	case b.world != w:
		return nil
	}
	w.enter()
	defer w.exit()
	if !w.server {
		w.client.settleOrphans()
		w.client.drop(b)
		return nil
	}
	for len(b.children) > 0 {
		_ = w.Destroy(b.children[len(b.children)-1].self) // a server may destroy all of its own
	}
	for _, v := range b.rep.views {
		v.flush() // while the driver still knows the actor
	}
	if b.parent == nil && !b.tornOff {
		w.relevancy.RemoveActor(a)
	}
	var name *Base // what views keep of it whose channels a client leaves unacked
	forget := func(v *view) {
		if name == nil {
			name = &Base{class: b.class, guid: b.guid}
		}
		v.b = name
	}
	for len(b.rep.views) > 0 {
		v := b.rep.views[len(b.rep.views)-1]
		v.leave(bunch.Destroyed)
		forget(v)
	}
	for _, p := range w.peers {
		p.keepView(a)
		for _, v := range p.closing[b.guid].views {
			forget(v)
		}
	}
	w.unschedule(b)
	bindVars(b.class, b.ptr, nil)
	w.remove(b)
	return nil
}

// remove removes an actor from the list.
func (w *World) remove(b *Base) {
	w.actors[b.slot] = nil
	w.live--
	w.compact()
	delete(w.byGUID, b.guid)
	if !w.server {
		w.client.held -= b.class.size()
	}
	if p := b.parent; p != nil {
		p.dropChild(b)
	}
	b.world, b.rep, b.mirror, b.parent, b.role = nil, nil, nil, nil, NoRole
}

// compact closes the gaps in the list when there are many and no loop over it is in progress.
func (w *World) compact() {
	if w.walking > 0 || len(w.actors) <= 64 || w.live >= len(w.actors)/2 {
		return
	}
	n := 0
	for _, b := range w.actors {
		if b != nil {
			b.slot = n
			w.actors[n] = b
			if n++; b.rep != nil {
				for _, v := range b.rep.views {
					v.peer.slots[v.place] = int32(b.slot)
				}
			}
		}
	}
	clear(w.actors[n:])
	w.actors = w.actors[:n]
}

// Find returns the actor with an id; nil when it isn't there, or not yet.
func (w *World) Find(id netguid.GUID) Actor {
	if b := w.byGUID[id]; b != nil {
		return b.self
	}
	return nil
}

// walk begins a loop over the actors: until walked, none changes its index.
func (w *World) walk() { w.walking++ }

// walked ends the loop.
func (w *World) walked() {
	w.walking--
	w.compact()
}

// All calls yield for each actor, in the order in which they were added. Actors may be spawned and destroyed meanwhile.
// One destroyed before its turn isn't yielded; one that is spawned is. A client has an actor as soon as it has arrived: All, Find and Len know it before
// Spawned is called, which the next Step does.
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

// ChannelTypes returns the channel types that actors need. Give them to the connection configs of both ends.
func (w *World) ChannelTypes() []channel.Type {
	w.typesAsked = true
	return []channel.Type{
		{Name: bunch.Actor, ServerOpen: true, Accept: w.acceptActor},
		{Name: ReplicationName, ServerOpen: true, Accept: w.acceptReplication},
	}
}

// ReplicationName names the channel on which a server describes its classes and sends changed values.
var ReplicationName = bunch.Name{Text: "Replication"}

func (w *World) failed(err error) {
	w.Counters.Bad++
	w.report(err)
}

// Step advances the world by one tick. On a server call it after the game's own step and before TickFlush: it finds what
// has changed and sends it to the connections. On a client call it after TickDispatch: it tells the game what has
// arrived since the last Step. now is the driver's time (driver.Driver.Time), or of another clock that never goes back.
// In what the World calls while it is at work, such as a notify, Init or Config.Failed, it does nothing, and Config.Failed is told once.
func (w *World) Step(now time.Duration) {
	defer trace.StartRegion(context.Background(), "bunchnet.Replicate").End()
	w.enter()
	defer w.exit()
	if w.busy > 1 {
		if !w.nested {
			w.nested = true
			w.report(errNested)
		}
		return
	}
	if now < w.now && w.server && !w.wentBack {
		w.wentBack = true
		w.report(fmt.Errorf("%w: %v, and before %v", errWentBack, now, w.now))
	}
	w.now, w.stepped = now, true
	w.stepWatches()
	w.watchTime()
	if w.server {
		w.frame++
		w.stepServer()
		return
	}
	w.client.step()
}
