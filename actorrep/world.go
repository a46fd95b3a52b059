package actorrep

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// Config is the settings of a World; the zero value is useful.
type Config struct {
	// Relevant says whether a connection is to see an actor; nil shows all to all. An actor that
	// isn't relevant for RelevantTimeout disappears from the client.
	Relevant func(p *Peer, a Actor) bool
	// RelevantTimeout defaults to 5 s (Unreal's).
	RelevantTimeout time.Duration
	// Spawned and Destroyed are called on a client. May be nil.
	Spawned, Destroyed func(a Actor)
	// Failed is called on a client with what it couldn't make of the server's bunches: a class that
	// differs, for one. May be nil.
	Failed func(err error)
}

// Counters is what a World did.
type Counters struct {
	Compared, Changed                 uint64 // actors
	Opened, Updates, Closed           uint64 // bunches
	UpdateBits                        uint64 // payload of updates
	Resent                            uint64 // updates whose packet was lost
	Saturated, Delayed                uint64 // ticks of a connection cut short; opens put off
	Spawned, Destroyed, Received, Bad uint64 // on a client
}

// World is the actors of a game, on a server or on a client of it. There may be many in a
// process; each belongs to one goroutine.
type World struct {
	Counters Counters

	cfg     Config
	server  bool
	classes []*class
	byType  map[reflect.Type]*class
	byGUID  map[netguid.GUID]Actor
	actors  []Actor // in the order of their spawning
	ids     netguid.Allocator
	peers   []*Peer
	now     time.Duration
	scratch []byte
}

// NewServer returns a world whose actors are replicated to its connections.
func NewServer(cfg Config) *World { return newWorld(cfg, true) }

// NewClient returns a world that mirrors a server's.
func NewClient(cfg Config) *World { return newWorld(cfg, false) }

func newWorld(cfg Config, server bool) *World {
	if cfg.RelevantTimeout == 0 {
		cfg.RelevantTimeout = 5 * time.Second
	}
	return &World{cfg: cfg, server: server, byType: map[reflect.Type]*class{}, byGUID: map[netguid.GUID]Actor{}, scratch: make([]byte, bunch.MaxPayload)}
}

// Register makes a class known under a name. Both ends must register the same classes in
// the same order. a is only looked at for its type; a nil pointer does.
func (w *World) Register(name string, a Actor) error {
	c, err := newClass(len(w.classes), name, a)
	if err != nil {
		return fmt.Errorf("%w (class %q)", err, name)
	}
	for _, other := range w.classes {
		if other.name == name || other.typ == c.typ {
			return fmt.Errorf("%w: %q", ErrRegistered, name)
		}
	}
	w.classes = append(w.classes, c)
	w.byType[c.typ] = c
	return nil
}

// Spawn adds an actor to a server's world. Connections hear of it in the next Step.
func (w *World) Spawn(a Actor) error {
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
	w.add(a, c, w.ids.Next())
	b.rep = &replicated{shadow: c.layout.NewShadow()}
	return nil
}

func (w *World) add(a Actor, c *class, id netguid.GUID) {
	b := a.base()
	*b = Base{guid: id, world: w, class: c, owner: b.owner, index: len(w.actors)}
	w.actors = append(w.actors, a)
	w.byGUID[id] = a
}

// Destroy takes an actor out of a server's world. Clients see it disappear.
func (w *World) Destroy(a Actor) error {
	if !w.server {
		return ErrClient
	}
	b := a.base()
	if b.world != w {
		return nil
	}
	for _, p := range w.peers {
		p.close(a, bunch.Destroyed)
	}
	w.remove(a)
	return nil
}

func (w *World) remove(a Actor) {
	b := a.base()
	copy(w.actors[b.index:], w.actors[b.index+1:])
	w.actors[len(w.actors)-1] = nil
	w.actors = w.actors[:len(w.actors)-1]
	for i := b.index; i < len(w.actors); i++ {
		w.actors[i].base().index = i
	}
	delete(w.byGUID, b.guid)
	b.world, b.rep = nil, nil
}

// Find is the actor with an id, or nil: it isn't there, or not yet.
func (w *World) Find(id netguid.GUID) Actor { return w.byGUID[id] }

// All calls yield for each actor in the order they appeared.
func (w *World) All(yield func(Actor) bool) {
	for _, a := range w.actors {
		if !yield(a) {
			return
		}
	}
}

// Len is the number of actors.
func (w *World) Len() int { return len(w.actors) }

// ChannelType is the kind of channel that actors travel on, for the configs of both ends.
func (w *World) ChannelType() channel.Type {
	return channel.Type{Name: bunch.Actor, ServerOpen: true, Accept: w.accept}
}

// changeRing is how many ticks with changes an actor remembers for connections that lag
// (Unreal's changelist history).
const changeRing = 64

// replicated is what the connections of a server share of an actor.
type replicated struct {
	shadow  *layout.Shadow
	changes [changeRing]layout.Mask // of change count n at slot n%64
	count   int64
}

// compare looks for changes, once a tick.
func (w *World) compare(a Actor) {
	b := a.base()
	w.Counters.Compared++
	if m := b.class.layout.Compare(b.rep.shadow, pointer(a)); m != 0 {
		w.Counters.Changed++
		b.rep.changes[b.rep.count%changeRing] = m
		b.rep.count++
	}
}

// since is what changed after a connection had come to count n.
func (r *replicated) since(n int64, all layout.Mask) (m layout.Mask) {
	if r.count-n > changeRing {
		return all
	}
	for ; n < r.count; n++ {
		m |= r.changes[n%changeRing]
	}
	return m
}

// Step replicates: on a server it compares every actor and writes what each connection is to
// know. Call it once a tick, after the game's own step and before TickFlush.
func (w *World) Step(now time.Duration) {
	w.now = now
	if !w.server || len(w.peers) == 0 {
		return
	}
	for _, a := range w.actors {
		w.compare(a)
	}
	for _, p := range w.peers {
		p.replicate()
	}
}
