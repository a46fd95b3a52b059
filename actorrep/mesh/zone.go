package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Errors of zones.
var (
	// ErrNoActor: no actor of this id is known here, or it isn't one that a zone can have.
	ErrNoActor = errors.New("mesh: no such actor")
	// ErrOwned: the actor is this server's already, or another's by a newer epoch.
	ErrOwned = errors.New("mesh: the actor has an owner")
	// ErrAway: the store is away, and what needs it can't begin.
	ErrAway = errors.New("mesh: the store is away")
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
	// World is the server's world. Its Config.IDs is this server's share. What its classes with a Body can't have, the package's doc says.
	World *actorrep.World
	Game  ZoneGame
	Table Table
	// Margin is how far beyond its border a server mirrors what is its neighbour's: the cull distance of players, and a little. Hysteresis is how far an actor must
	// be beyond the border to become the neighbour's. Both are in the units of Location, above 0, and together four sides of the smallest cell or quarter at most.
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
	// Linger is how long after a new table a server mirrors its former zone and what is near that as well: for its players who haven't travelled yet. Default 15 s.
	Linger time.Duration
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
	CallsLost    uint64 // calls that came back to nobody, because too much waits for the caller's server, or no such server is known
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
	steps      int
	gives      int // states of actors that were given in this Step
	table      Table
	past       past            // of its grid
	formers    []former        // tables of other grids before it, the oldest first
	servers    map[string]bool // of table
	changes    int             // of the table and the neighbours
	records    map[netguid.GUID]*record
	list       []*record
	neighbours []*neighbour // by ID
	gone       map[string]bool
	held       []heldCall
	keeper     *Keeper // nil: nothing is kept
	stopped    bool    // the lease is over
	leaving    bool    // it is to be: nothing changes any more
	copier     copier
	reported   map[string]bool // what World's Config.Failed was told: a class each at most, and one more
	around     []distance      // scratch: by table
	wide       []distance      // scratch: by table, past and formers
	msgs       [][]byte        // scratch
	buf        []byte          // scratch
	msg        []byte          // scratch
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

// NewZone returns a zone without actors, or an error that wraps ErrConfig.
func NewZone(cfg ZoneConfig) (*Zone, error) {
	cfg.Resend = cmp.Or(cfg.Resend, 50*time.Millisecond)
	cfg.Forget = cmp.Or(cfg.Forget, 2*time.Second)
	cfg.Linger = cmp.Or(cfg.Linger, 15*time.Second)
	cfg.MaxActors = cmp.Or(cfg.MaxActors, 65536)
	switch {
	case cfg.ID == "" || len(cfg.ID) > maxID:
		return nil, fmt.Errorf("%w: ID %q must have 1 to %d bytes", ErrConfig, cfg.ID, maxID)
	case cfg.World == nil || !cfg.World.IsServer() || cfg.Game == nil || cfg.ToServer == nil || cfg.Rand == nil:
		return nil, fmt.Errorf("%w: a server's World, Game, ToServer and Rand are needed", ErrConfig)
	case idsOf(cfg.World).Servers == 0:
		return nil, fmt.Errorf("%w: World has no actorrep.Config.IDs, this server's share of the ids of all", ErrConfig)
	case cfg.Resend < 0 || cfg.Forget < 0 || cfg.Linger < 0 || cfg.MaxActors < 0:
		return nil, fmt.Errorf("%w: Resend %v, Forget %v, Linger %v, MaxActors %d", ErrConfig, cfg.Resend, cfg.Forget, cfg.Linger, cfg.MaxActors)
	case !(cfg.Margin > 0) || !(cfg.Hysteresis > 0):
		return nil, fmt.Errorf("%w: Margin %v and Hysteresis %v must be above 0", ErrConfig, cfg.Margin, cfg.Hysteresis)
	}
	s, err := newSeal(cfg.Key, cfg.ID, cfg.Rand, zoneSeal)
	if err != nil {
		return nil, err
	}
	z := &Zone{cfg: cfg, seal: s, records: map[netguid.GUID]*record{}, gone: map[string]bool{}, reported: map[string]bool{}}
	z.copier.init(cfg.World)
	return z, z.SetTable(cfg.Table)
}

// SetTable takes a new table, whose Epoch is higher. Actors that are in another server's zone now go there.
func (z *Zone) SetTable(t Table) error {
	if err := t.check(); err != nil {
		return err
	}
	if z.cfg.Margin+z.cfg.Hysteresis > 4*t.side() {
		return fmt.Errorf("%w: Margin and Hysteresis of %v and %v, with cells or quarters of %v", ErrConfig, z.cfg.Margin, z.cfg.Hysteresis, t.side())
	}
	return z.setTable(t)
}

// setTable takes a table whose quarters may be smaller: a server with a smaller Margin has split a zone.
func (z *Zone) setTable(t Table) error {
	if err := t.check(); err != nil {
		return err
	}
	if t.Epoch <= z.table.Epoch {
		return fmt.Errorf("%w: Table.Epoch is %d after %d", ErrConfig, t.Epoch, z.table.Epoch)
	}
	if z.table.Epoch > 0 {
		if until := z.now + z.cfg.Linger; z.table.sameGrid(&t) {
			z.past.add(&z.table, &t, until)
		} else {
			if len(z.formers) >= maxFormers {
				z.formers = slices.Delete(z.formers, 0, 1)
			}
			z.formers = append(z.formers, former{z.table, z.past, until})
			z.past = past{}
		}
	}
	t.Servers, t.Splits = slices.Clone(t.Servers), slices.Clone(t.Splits)
	z.table, z.servers = t, map[string]bool{}
	for _, id := range t.Servers {
		z.servers[id] = true
	}
	delete(z.servers, "") // of what is split
	z.changes++
	return nil
}

// Table returns the table that this server has now: for a map, or to place what is new where it stays. Don't change what its slices have. A Keeper's tables rise alike at all servers, so of two servers' tables the one with the higher Epoch is the newer.
func (z *Zone) Table() Table { return z.table }

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
	if z.keeper != nil {
		z.keeper.owned(r)
	}
}

// Release ends this server's authority over an actor that goes to a server by other ways than Give, such as in the state of a travelling player, and returns the epoch for Own at that
// server, or here when it stays. It is 0 when the actor isn't this server's.
func (z *Zone) Release(a Actor, to string) uint32 {
	r := z.records[a.body().GUID()]
	if r == nil || r.owner != z.cfg.ID || r.epoch >= maxEpoch-1 {
		return 0
	}
	z.hide(r)
	r.owner, r.shownAt = "", z.now
	if z.keeper != nil {
		z.keeper.goes(r, to, r.epoch+1, nil)
	}
	return r.epoch + 1
}

// Owns reports whether this server is the actor's authority, and may change it.
func (z *Zone) Owns(a Actor) bool {
	r := z.records[a.body().GUID()]
	return r != nil && r.owner == z.cfg.ID && r.a == a && !z.stopped && !z.leaving
}

// Simulates reports whether this server simulates what two actors do to each other, such as a collision: the authority of the one with the lower id does, at
// all servers. It changes what is its own, and tells the other's authority by Call.
func (z *Zone) Simulates(a, b Actor) bool {
	if b.body().GUID() < a.body().GUID() {
		a = b
	}
	return z.Owns(a)
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
	z.now, z.gives = max(z.now, now), 0
	if z.stopped {
		return
	}
	if z.steps++; z.steps == forgottenAfter && z.keeper != nil && z.keeper.steps == 0 {
		report(z.cfg.World, fmt.Errorf("%w: Keeper.Step was never called", ErrConfig))
	}
	for len(z.formers) > 0 && z.now >= z.formers[0].until {
		z.formers = slices.Delete(z.formers, 0, 1)
		z.changes++
	}
	if n := z.past.expired(z.now); n > 0 {
		z.past.forget(n)
		z.changes++
	}
	for _, n := range z.neighbours {
		if n.peer != nil && n.peer.Conn() == nil { // it was removed
			n.peer = nil
		}
		for _, a := range n.fresh {
			z.mirror(n, a)
		}
		clear(n.fresh)
		n.fresh = n.fresh[:0]
		n.given = 0
		for _, m := range n.out.waiting {
			if zoneKind(m[0]) == zoneGive {
				n.given += len(m) + 2
			}
		}
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
