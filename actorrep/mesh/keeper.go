package mesh

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// KeeperConfig configures a Keeper.
type KeeperConfig struct {
	// Zone is the server's part of the world. Its ID has letters, digits, - and _ only. Make it with a Table of Epoch 1 in which every cell is its own.
	Zone *Zone
	// Plan is the world: a Table, the same at all servers, whose Servers are names of zones. Its Epoch isn't used.
	Plan Table
	// Zones are those that this server takes when nobody has held them yet.
	Zones []string
	// Save returns the state of an actor of this server's as it is, for ZoneGame.Take. The actor stays.
	Save func(a Actor) []byte
	// Deals is for actors that deal with each other (Keeper.Deal). May be nil.
	Deals DealGame
	// Server is the one beside the Zone, if players travel: its Gone is called when another server's lease is over, and Leave waits for the players who have been given to it.
	Server *Server
	// Gone: a server's lease is over. Zone.Gone was called, and Server.Gone. May be nil.
	Gone func(id string)
	// Name begins the store's keys. Default "mesh".
	Name string
	// Lease is how long a server may write without having renewed its lease, 1 h at most. It is renewed four times as often. Others wait for as long as the longer of theirs and
	// this one. Default 2 s.
	Lease time.Duration
	// Away is how long this server plays on at most when neither it nor any other server can reach the store, from Lease to 1 h; the package's doc says when it may. A server that crashes
	// meanwhile is taken over from after Away: so it is also when NATS elects a leader just then, which takes some seconds. Set it no longer than the losses that you want to survive. Default 0: it is over after Lease.
	Away time.Duration
	// Spread is how long zones stay where they are before the server that holds the most hands one to a server with at least two fewer, whose lease is as old: after a take-over, and to a server
	// that is new. Default 10 s; below 0: never.
	Spread time.Duration
	// Weight is what an actor in this server's zones costs, in a unit that is the same at all servers: 1, for example, and 10 for a player's. The actor may be another server's still, so weigh it by what is replicated. With it zones are handed by what servers' actors weigh, and not by how
	// many zones they hold: a server hands up to 16 to the lightest one, when that weighs less than three fifths of what this one does, until both weigh as much. So the zones of a crowd are divided, and empty ones stay where they
	// are. A zone is the least that is handed, so give Plan many, or set Split. What weighs is the mean of about the last four Spreads. Weights below a thousandth count as 0. It mustn't change the world. Set it at all servers, or at none: one without it is handed
	// nothing by those that have it. Default nil: zones are counted.
	Weight func(a Actor) float64
	// Split is what a zone weighs at least that is split into quarters, by Weight: many times what one actor weighs, and a small share of what a server can carry. It is split when its server can't become much lighter by handing zones as they are, so that
	// quarters can be handed, and quarters are split again. When each of four quarters has weighed less than a 16th of Split for a while they are merged. The sides of what is split are at least four times Hysteresis, and a quarter of Margin and Hysteresis
	// together. A zone of several cells isn't split. It needs Weight. Set it at all servers, or at none. While a server of a release that knows no splits is among them nothing is split, which World's Config.Failed is told. Default 0: this server splits nothing, and merges nothing.
	Split float64
	// Checkpoint is how often an actor that changes is written. Default 10 s.
	Checkpoint time.Duration
}

// KeeperCounters counts what a Keeper did.
type KeeperCounters struct {
	Ended    uint64 // leases of others that had run out
	Zones    uint64 // zones that it took
	Handed   uint64 // zones that it handed to other servers, or parts of them
	Split    uint64 // zones that it split, or parts of them
	Merged   uint64 // parts that it merged, four at a time
	Written  uint64 // records of actors that were written
	Restored uint64 // actors that it took over
	Fenced   uint64 // actors that were another server's by a newer record
	TooLong  uint64 // states above MaxActorState, which weren't written
	Damaged  uint64 // records of actors that couldn't be read, each second again
	Unknown  uint64 // ops of the store without an answer
	Failed   uint64 // actors that ZoneGame didn't take, tables that weren't right: each time it was tried
}

// Keeper holds a server's zones by lease, writes its actors to a store, and takes over what a server that is no more has had. It is a kv.Machine, and belongs to the goroutine that ticks the game.
type Keeper struct {
	Counters KeeperCounters

	cfg       KeeperConfig
	id        string
	z         *Zone
	now       time.Duration
	store     uint64
	current   bool // the watch has told all
	currentAt time.Duration
	over      bool
	leaving   bool
	leftAt    time.Duration // when it was to leave
	steps     int
	former    bool // World was told of a server that knows no splits
	mine      ownLease
	leases    []*lease       // by ID, this server's too
	zones     []*tenancy     // in the order of Plan
	division  division       // of these
	laid      bool           // it is as they are
	parts     []part         // scratch
	deepest   uint8          // as often a cell of Plan is halved at most
	places    map[string]int // of zones in it, by name
	cells     []int          // and of the zone of each cell of Plan
	tabled    bool           // the Zone has the table
	load      load
	hands     bool           // something is to be handed
	counts    map[string]int // zones and parts of them by holder; nil: they have changed
	seen      uint64         // the newest end of a lease after which no actor comes from there, and all that came are in the store
	toldSeen  uint64         // seen, as this server's lease says it

	durable  map[string]*durable // by class
	kept     map[netguid.GUID]*kept
	list     []*kept
	at       int // where the next Step goes on
	pages    []*page
	arrivals uint64 // actors that have come
	end      uint64 // the newest end of a lease
	fence    uint64 // arrivals when end was heard
	waiting  int    // for their change to be written
	estates  []*estate
	dealers  []Dealer // whose Books may have something to do
	looks    int      // for holders of actors

	ops      []kv.Op
	opID     uint64
	pending  []pendingOp // by id
	ofActors int         // of pending
	ofZones  int
	ofPages  int
	ofEnds   int // of other servers' leases and lists
}

type pendingOp struct {
	id    uint64
	until time.Duration
	done  func(kv.Event)
}

// NewKeeper returns a Keeper, or an error that wraps ErrConfig.
func NewKeeper(cfg KeeperConfig) (*Keeper, error) {
	cfg.Name = cmp.Or(cfg.Name, "mesh")
	cfg.Lease = cmp.Or(cfg.Lease, 2*time.Second)
	cfg.Checkpoint = cmp.Or(cfg.Checkpoint, 10*time.Second)
	cfg.Spread = cmp.Or(cfg.Spread, 10*time.Second)
	plan := cfg.Plan
	plan.Epoch = 1
	switch {
	case cfg.Zone == nil || cfg.Save == nil:
		return nil, fmt.Errorf("%w: Zone and Save are needed", ErrConfig)
	case cfg.Zone.keeper != nil:
		return nil, fmt.Errorf("%w: Zone has a Keeper", ErrConfig)
	case cfg.Lease < 100*time.Millisecond || cfg.Lease > maxLease || cfg.Checkpoint < 0:
		return nil, fmt.Errorf("%w: Lease %v, 100 ms to 1 h, Checkpoint %v", ErrConfig, cfg.Lease, cfg.Checkpoint)
	case cfg.Away != 0 && (cfg.Away < cfg.Lease || cfg.Away > maxLease):
		return nil, fmt.Errorf("%w: Away %v, from Lease to 1 h", ErrConfig, cfg.Away)
	case plan.check() != nil:
		return nil, plan.check()
	case cfg.Zone.cfg.Margin+cfg.Zone.cfg.Hysteresis > 4*plan.Cell:
		return nil, fmt.Errorf("%w: Plan with cells of %v: Margin and Hysteresis are %v and %v, together four cells at most", ErrConfig, plan.Cell, cfg.Zone.cfg.Margin, cfg.Zone.cfg.Hysteresis)
	case len(plan.Splits) > 0:
		return nil, fmt.Errorf("%w: Plan has Splits, which the Keeper makes", ErrConfig)
	case !(cfg.Split >= 0) || cfg.Split > 0 && (cfg.Weight == nil || cfg.Spread < 0):
		return nil, fmt.Errorf("%w: Split %v must be above 0, with a Weight and a Spread", ErrConfig, cfg.Split)
	case cfg.Split > 0 && cfg.Zone.deepest(plan.Cell) == 0:
		return nil, fmt.Errorf("%w: Split with cells of %v: Margin and Hysteresis of %v and %v allow no quarters of them", ErrConfig, plan.Cell, cfg.Zone.cfg.Margin, cfg.Zone.cfg.Hysteresis)
	}
	k := &Keeper{cfg: cfg, id: cfg.Zone.cfg.ID, z: cfg.Zone, deepest: cfg.Zone.deepest(plan.Cell), kept: map[netguid.GUID]*kept{}, places: map[string]int{}}
	for _, name := range plan.Servers {
		at, ok := k.places[name]
		if !ok {
			at = len(k.zones)
			k.places[name] = at
			k.zones = append(k.zones, &tenancy{name: name, value: zoneValue{parts: wholly("")}, shares: make([]share, 1)})
		}
		k.zones[at].cells++
		k.cells = append(k.cells, at)
	}
	for _, name := range append([]string{k.id, cfg.Name}, plan.Servers...) {
		if strings.ContainsFunc(name, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) {
			return nil, fmt.Errorf("%w: %q has other letters than a-z, A-Z, 0-9, - and _", ErrConfig, name)
		}
	}
	for _, name := range cfg.Zones {
		t := k.tenancy(name)
		if t == nil {
			return nil, fmt.Errorf("%w: Plan has no zone %q", ErrConfig, name)
		}
		t.first = true
	}
	marked, err := durables(classes(cfg.Zone.cfg.World))
	if err != nil {
		return nil, err
	}
	k.durable = marked
	var base [4]byte
	if _, err := io.ReadFull(cfg.Zone.cfg.Rand, base[:]); err != nil {
		return nil, err
	}
	k.mine.base = splitBeats + uint64(binary.LittleEndian.Uint32(base[:]))
	k.mine.beat = k.mine.base
	k.z.keeper = k
	for _, r := range k.z.list {
		if r.owner == k.id {
			k.owned(r)
		}
	}
	return k, nil
}

// Over reports whether this server has lost its lease, or its store. Its Zone owns nothing any more and sends nothing. The game ends the connections, and begins anew with another ID.
func (k *Keeper) Over() bool { return k.over }

// Leave ends the lease of a server that shall stop. From now on its Zone owns nothing; when the store has all actors as they are now, and those that were on the way are there, the lease is
// over, Over reports true, and another server takes over at once. Players don't come here any more; those who have been given to this server already are waited for, as long as a Lease: then their server can't be reached, and
// they may go back by a checkpoint.
func (k *Keeper) Leave() {
	if k.leaving {
		return
	}
	k.leaving, k.z.leaving, k.leftAt, k.mine.renewAt = true, true, k.now, k.now
	if k.cfg.Server != nil {
		k.cfg.Server.close()
	}
	for _, a := range k.list {
		a.checkAt, a.final = 0, false
	}
}

// Watches implements kv.Machine.
func (k *Keeper) Watches() []string {
	return []string{k.cfg.Name + ".server.", k.cfg.Name + ".zone."}
}

// Step implements kv.Machine. Call it once a tick, before the game's step; ask Over then. now is of a monotonic clock, which goes on while the process or the machine stands still,
// and is at most 1 % wrong: time.Since of one time.Now. driver.Driver.Time isn't one, since it takes a long hitch for one second; by it a server goes on when its lease has run out.
func (k *Keeper) Step(now time.Duration, in []kv.Event) []kv.Op {
	k.now = max(k.now, now)
	k.ops = k.ops[:0]
	k.tellForgotten()
	k.over = k.over || k.mine.held && k.now >= k.mine.until
	if k.over { // what the store has said meanwhile may have been too late for who took over
		k.stop()
		return nil
	}
	for i := range in {
		switch e := &in[i]; e.Kind {
		case kv.Result:
			k.result(*e)
		case kv.Begin:
			k.begins(e.Store)
		case kv.Current:
			k.isCurrent()
		case kv.Changed, kv.Deleted:
			k.heardKey(e)
		}
	}
	for len(k.pending) > 0 && k.now >= k.pending[0].until {
		k.Counters.Unknown++
		k.result(kv.Event{ID: k.pending[0].id, Status: kv.Unknown})
	}
	if k.over {
		k.stop()
		return nil
	}
	k.stepAway()
	k.renew()
	k.stepLeases()
	if k.mine.held && !k.Away() {
		k.stepDurable()
		k.stepKept()
		k.stepDeals()
	}
	if k.toldSeen != k.seen {
		k.mine.renewAt = k.now
		k.renew()
	}
	return k.ops
}

// do asks the store. done hears what came of it; Unknown after a quarter of Lease.
func (k *Keeper) do(op kv.Op, done func(kv.Event)) {
	k.opID++
	op.ID = k.opID
	k.ops = append(k.ops, op)
	k.pending = append(k.pending, pendingOp{op.ID, k.now + k.cfg.Lease/4, done})
}

func (k *Keeper) result(e kv.Event) {
	i, ok := slices.BinarySearchFunc(k.pending, e.ID, func(p pendingOp, id uint64) int { return cmp.Compare(p.id, id) })
	if !ok {
		return // it was given up
	}
	done := k.pending[i].done
	k.pending = slices.Delete(k.pending, i, i+1)
	done(e)
}

// forgottenAfter is how many Steps of one part tell that another one is never stepped.
const forgottenAfter = 100

// tellForgotten tells World's Config.Failed, once, what isn't stepped.
func (k *Keeper) tellForgotten() {
	if k.steps++; k.steps != forgottenAfter {
		return
	}
	if k.z.steps == 0 {
		report(k.z.cfg.World, fmt.Errorf("%w: Zone.Step was never called", ErrConfig))
	}
	if s := k.cfg.Server; s != nil && !s.stepped {
		report(k.z.cfg.World, fmt.Errorf("%w: Server.Step was never called", ErrConfig))
	}
}

// gone: a server's lease is over.
func (k *Keeper) gone(id string) {
	k.z.Gone(id)
	if k.cfg.Server != nil {
		k.cfg.Server.Gone(id)
	}
	if k.cfg.Gone != nil {
		k.cfg.Gone(id)
	}
}

// stop ends this server.
func (k *Keeper) stop() {
	k.z.stopped = true
	for _, a := range k.list {
		k.tell(a, a.want, ErrGone)
	}
}

func (k *Keeper) complain(err error) {
	if err != nil {
		k.Counters.Failed++
	}
}
