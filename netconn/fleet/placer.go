package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Errors of a placing.
var (
	// ErrNoServers: no server is ready.
	ErrNoServers = errors.New("fleet: no server is ready")
	// ErrBuild: no server takes the client's build or schema. An *OtherBuild says which builds there are.
	ErrBuild = errors.New("fleet: no server takes this build")
	// ErrRegion: no server is in a region that the client measured, within MaxLatency.
	ErrRegion = errors.New("fleet: no server is near enough")
	// ErrTooLarge: no server has so many seats at all.
	ErrTooLarge = errors.New("fleet: the party is larger than any server")
	// ErrFull: no server has so many free seats.
	ErrFull = errors.New("fleet: all servers are full")
	// ErrUnavailable: the store didn't answer in time. A seat may be kept for nobody for twice Life.
	ErrUnavailable = errors.New("fleet: the store is away")
	// ErrBusy: MaxWants players wait already.
	ErrBusy = errors.New("fleet: too many players wait to be placed")
)

// OtherBuild is the error of a Want whose build or schema no ready server accepts. It wraps ErrBuild.
type OtherBuild struct {
	// Builds are those that ready servers take, sorted; 16 at most.
	Builds []string
}

// Error says which builds there are.
func (e *OtherBuild) Error() string {
	return fmt.Sprintf("%v; servers take %q", ErrBuild, e.Builds)
}

// Unwrap returns ErrBuild.
func (e *OtherBuild) Unwrap() error { return ErrBuild }

// Policy says which server is chosen among those that are equally near.
type Policy uint8

// The policies.
const (
	Fill   Policy = iota // the fullest that has room: few servers are in use, the others can stop
	Spread               // the emptiest, by share of its seats; of those that are equally empty each placer begins with another one
)

// PlacerConfig configures a Placer.
type PlacerConfig struct {
	ListConfig
	Policy Policy
	// MaxLatency bounds the latency, measured by the client, of the regions that are considered. Default 0: no bound.
	MaxLatency time.Duration
	// Backups is how many further servers a placement of one player names, for when the first is dead or turns out full: the player
	// comes there without a seat, and one is found if there is room. Default 2; negative none; at most 31. Parties of several have none: a
	// member that asks again is led to where the party is.
	Backups int
	// Accept leaves out servers by the game's own rules, such as their Load. May be nil.
	Accept func(i *Info) bool
	// MaxWants bounds the wants under way. Default 4096.
	MaxWants int
	// Deadline bounds how long placing a Want may take. Default 5 s, or a third of Life when that is less; at most a third of Life.
	Deadline time.Duration
}

// Want is what a placing shall find.
type Want struct {
	// Players is how many seats, all on one server. Default 1.
	Players int
	// Player is the client's ID. A player has one seat for its way to a server, however often it asks and at whichever placer: within Life/2 it gets the same
	// placement again, while it is as wanted; later its seat is renewed, or it gets another one, and the one before is revoked. It counts only for one player
	// without a Party. Default 0: each want gets a seat of its own.
	Player uint64
	// Party makes wants of several members one: who asks with the same Party within Life/2, at any placer, gets the same placement. Its
	// first want books the seats of all its Players. Later, or when its server is gone or draining, it is placed anew. Letters, digits, - and _, at most 96. Default "": no party.
	Party string
	// Build and Schema are the client's. Default of each: any.
	Build  string
	Schema uint64
	// Latency is what the client measured to regions. Default nil: any region.
	Latency map[string]time.Duration
	// Server is the ID of a server that is taken if it can be, such as the one that the player's friends are on.
	Server string
	// Not is the ID of a server that isn't taken, such as the one that a player shall leave. A party that has its placement keeps it all the same, as its members stay
	// together.
	Not string
}

// Placement says which server the players of a Want should go to.
type Placement struct {
	// Server has the seats; Backups may be tried after it.
	Server  Info
	Backups []Info
	// Ticket goes into the token's user data.
	Ticket Ticket
}

// Outcome is the result of a Want.
type Outcome struct {
	ID        uint64 // as Place returned it
	Placement Placement
	Err       error
}

// PlacerCounters counts what a Placer did.
type PlacerCounters struct {
	Placed, Failed              uint64 // wants
	Writes, Conflicts, Unknowns uint64 // of records of seats
	Revoked                     uint64 // placements, in each write that does it
	Unreadable                  uint64 // records of seats that couldn't be read, such as those of another version; nobody is placed on their servers
}

// Placer places players on servers of the fleet. Any number of placers may work at once. It belongs to one goroutine.
type Placer struct {
	Counters PlacerCounters

	cfg    PlacerConfig
	list   *List
	now    time.Duration
	ask    asker
	rooms  map[string]*room // by server ID
	ids    []string         // of rooms, sorted
	wants  []*want          // in the order they came
	out    []Outcome
	lastID uint64
}

// room is a server's seats as a placer sees them.
type room struct {
	id     string
	cell   cell
	rec    seats
	ok     bool   // rec is that of cell.value
	tie    uint64 // for Spread
	listed bool
	wrote  uint64   // the revision that the last write expected: while the record has it, that write may still happen
	batch  []*want  // those in the write under way
	next   []*want  // those of the next one
	revoke []Ticket // placements to revoke with it
}

// step is where a want stands.
type step uint8

const (
	reads   step = iota // where its group is, is read
	follows             // another want of its group goes first
	claims              // its party's claim is being written
	chooses
	books   // its seats are being written
	founds  // where its group is, is being written
	decided // its outcome is told
)

type want struct {
	Want
	id        uint64
	fresh     uint64 // the number of a placement of its own
	placement uint64 // the number of its placement: fresh, or that of the one before, renewed
	until     time.Duration
	step      step
	group     cell    // where its party, or its player, is; no key: it has none
	before    Ticket  // its player's last placement
	beforeAt  string  // the ID of that one's server
	tried     []*room // where its seats may have been written although nobody said so
	placed    Placement
	at        *room         // where its seats are
	told      bool          // nobody knows whether others of its group may be told of its seats
	next      time.Duration // when its group is looked at again
}

// NewPlacer returns a placer, or an error that wraps ErrConfig.
func NewPlacer(cfg PlacerConfig) (*Placer, error) {
	if cfg.Name == "" {
		cfg.Name = "placer"
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Backups == 0 {
		cfg.Backups = 2
	}
	cfg.Backups = max(0, cfg.Backups)
	if cfg.MaxWants == 0 {
		cfg.MaxWants = 4096
	}
	l, err := NewList(cfg.ListConfig)
	if err != nil {
		return nil, err
	}
	most := l.timing.Life / 3
	cfg.Deadline = cmp.Or(cfg.Deadline, min(5*time.Second, most))
	if cfg.Policy > Spread || cfg.MaxLatency < 0 || cfg.MaxWants < 0 || cfg.Deadline < 0 || cfg.Deadline > most || cfg.Backups > 31 {
		return nil, fmt.Errorf("%w: Policy %d, MaxLatency %v, MaxWants %d, Deadline %v (at most a third of Life, %v), Backups %d (at most 31)", ErrConfig, cfg.Policy, cfg.MaxLatency, cfg.MaxWants, cfg.Deadline, most, cfg.Backups)
	}
	return &Placer{cfg: cfg, list: l, rooms: map[string]*room{}, ask: asker{timeout: l.timing.OpTimeout}}, nil
}

// List returns the servers. The placer steps it.
func (p *Placer) List() *List { return p.list }

// Free returns how many seats the placer sees free on a server.
func (p *Placer) Free(id string) int {
	if r := p.rooms[id]; r != nil && r.ok {
		return r.rec.free()
	}
	return 0
}

// Watches implements kv.Machine.
func (p *Placer) Watches() []string { return append(p.list.Watches(), seatsKey) }

// Place begins to place the players of a Want and returns an id. The Outcome with that id comes after a later Step. Errors: ErrBusy, and
// ErrConfig for an invalid Want.
func (p *Placer) Place(w Want) (id uint64, err error) {
	w.Players = max(w.Players, 1)
	switch {
	case w.Players > MaxCapacity:
		return 0, ErrTooLarge
	case w.Party != "" && !validName(w.Party):
		return 0, fmt.Errorf("%w: Party %q must be 1 to %d letters, digits, - and _", ErrConfig, w.Party, maxName)
	case len(p.wants) >= p.cfg.MaxWants:
		return 0, ErrBusy
	}
	var random [8]byte
	if _, err := io.ReadFull(p.cfg.Rand, random[:]); err != nil {
		return 0, fmt.Errorf("fleet: %w", err)
	}
	p.lastID++
	n := &want{Want: w, id: p.lastID, fresh: slot(binary.LittleEndian.Uint64(random[:])), until: p.now + p.cfg.Deadline, step: chooses}
	n.placement = n.fresh
	switch {
	case w.Party != "":
		n.group.key = partyKey + w.Party
	case w.Player != 0 && w.Players == 1:
		n.group.key = playerKey + strconv.FormatUint(w.Player, 10)
	}
	if key := n.group.key; key != "" {
		n.step = reads
		if slices.ContainsFunc(p.wants, func(o *want) bool { return o.group.key == key }) {
			n.step = follows
		}
	}
	p.wants = append(p.wants, n)
	return n.id, nil
}

// Outcomes returns the outcomes since the last call. It is valid until the next Step.
func (p *Placer) Outcomes() []Outcome {
	out := p.out
	p.out = nil
	return out
}

// Step implements kv.Machine.
func (p *Placer) Step(now time.Duration, in []kv.Event) []kv.Op {
	p.now = max(p.now, now)
	p.ask.out = p.ask.out[:0]
	for _, e := range in {
		p.event(e)
	}
	p.list.step(p.now, &p.ask)
	for _, id := range p.ids {
		if r := p.rooms[id]; r.cell.giveUp(p.now) {
			p.Counters.Unknowns++
			p.unbatch(r)
		}
	}
	for _, w := range p.wants {
		p.decide(w)
	}
	p.wants = slices.DeleteFunc(p.wants, func(w *want) bool { return w.step == decided })
	for _, id := range p.ids {
		p.write(p.rooms[id])
	}
	return p.ask.out
}

func (p *Placer) event(e kv.Event) {
	if p.ask.anew(e) {
		for _, r := range p.rooms {
			p.unbatch(r)
			r.cell.anew()
			r.ok, r.wrote = false, 0
		}
		for _, w := range p.wants {
			if w.group.key != "" && w.step != follows {
				w.group.anew()
				w.step, w.at, w.tried, w.told = reads, nil, nil, false
			}
		}
	}
	p.list.event(p.now, e)
	id, isSeats := strings.CutPrefix(e.Key, seatsKey)
	switch {
	case e.Kind == kv.Result:
		p.result(e)
	case e.Kind == kv.Begin:
		for _, r := range p.rooms {
			r.listed = false
		}
	case e.Kind == kv.Current:
		for _, id := range slices.Clone(p.ids) {
			if r := p.rooms[id]; !r.listed {
				p.forget(r)
			}
		}
	case isSeats && validName(id):
		r := p.room(id)
		if r == nil {
			return
		}
		r.listed = e.Kind == kv.Changed
		if r.cell.see(e) {
			p.absorb(r)
		}
		if r.cell.rev == 0 {
			p.forget(r)
		}
	}
}

// room returns a server's room; nil when there are too many.
func (p *Placer) room(id string) *room {
	r := p.rooms[id]
	if r == nil && len(p.ids) < MaxServers {
		r = &room{id: id, cell: cell{key: seatsKey + id}, tie: serverHash(p.list.mark + id)} // each placer has its own order, as they would all write the same record
		p.rooms[id] = r
		i, _ := slices.BinarySearch(p.ids, id)
		p.ids = slices.Insert(p.ids, i, id)
	}
	return r
}

// forget removes a room whose server's record is gone. Those in the write under way choose again.
func (p *Placer) forget(r *room) {
	p.unbatch(r)
	delete(p.rooms, r.id)
	if i, ok := slices.BinarySearch(p.ids, r.id); ok {
		p.ids = slices.Delete(p.ids, i, i+1)
	}
}

func (p *Placer) absorb(r *room) {
	var err error
	r.rec, err = parseSeats(r.cell.value)
	r.ok = err == nil && r.cell.rev != 0
	if err != nil && r.cell.rev != 0 {
		p.Counters.Unreadable++
	}
}

// unbatch lets those in a write of unknown outcome choose again; the record says whether they were in it.
func (p *Placer) unbatch(r *room) {
	for _, w := range r.batch {
		w.step = chooses
		if !slices.Contains(w.tried, r) {
			w.tried = append(w.tried, r)
		}
	}
	r.batch = nil
}

func (p *Placer) result(e kv.Event) {
	for _, id := range p.ids {
		r := p.rooms[id]
		if r.cell.op != e.ID {
			continue
		}
		put := r.cell.kind == kv.Put
		r.cell.result(e)
		if r.cell.known {
			p.absorb(r)
		}
		switch {
		case put && e.Status == kv.OK:
			for _, w := range r.batch {
				p.booked(w, r)
			}
			r.batch = nil
		case put:
			if e.Status == kv.Conflict {
				p.Counters.Conflicts++
			} else {
				p.Counters.Unknowns++
			}
			p.unbatch(r)
		case r.cell.known && r.cell.rev == 0:
			p.forget(r)
		}
		return
	}
	for _, w := range p.wants {
		if w.group.op != 0 && w.group.op == e.ID {
			p.groupResult(w, e)
			return
		}
	}
}

// decide does what a want can do now.
func (p *Placer) decide(w *want) {
	if w.step == decided {
		return
	}
	if p.now >= w.until {
		p.takeBack(w)
		p.finish(w, ErrUnavailable)
		return
	}
	switch w.step {
	case reads, claims, founds:
		p.stepGroup(w)
	case chooses:
		p.choose(w)
	}
}

// finish ends a want. Those that follow it go on by themselves.
func (p *Placer) finish(w *want, err error) {
	w.step = decided
	o := Outcome{ID: w.id, Err: err}
	if err == nil {
		o.Placement = w.placed
		p.Counters.Placed++
	} else {
		p.Counters.Failed++
		p.unclaim(w)
	}
	p.out = append(p.out, o)
	if w.group.key == "" {
		return
	}
	for _, o := range p.wants {
		if o.step == follows && o.group.key == w.group.key {
			o.step = reads
			return // the others follow this one
		}
	}
}

// takeBack has a want's seats revoked, wherever they may be. If others of its group may be told of them, they lapse.
func (p *Placer) takeBack(w *want) {
	if w.told || w.step == founds && w.group.busy() {
		return
	}
	if w.at != nil {
		w.at.takeBack(Ticket{placement: w.fresh})
	}
	for _, r := range w.tried {
		r.takeBack(Ticket{placement: w.fresh})
	}
	for _, id := range p.ids {
		if r := p.rooms[id]; slices.Contains(r.batch, w) {
			r.takeBack(Ticket{placement: w.fresh})
		}
	}
}

func (r *room) takeBack(t Ticket) {
	if len(r.revoke) < maxPlacements && !slices.Contains(r.revoke, t) {
		r.revoke = append(r.revoke, t)
	}
}

// write writes a room's record with those who have chosen it, and with what is revoked.
func (p *Placer) write(r *room) {
	next := r.next
	r.next = nil
	if r.cell.waits(p.now) || !r.cell.known || !r.ok {
		for _, w := range next {
			w.step = chooses
		}
		if !r.cell.waits(p.now) && !r.cell.known {
			r.cell.get(&p.ask, p.now)
		}
		return
	}
	rec := r.rec
	rec.placements = slices.Clone(rec.placements)
	// What the record doesn't have any more, or has revoked, is done. The rest is tried again until it is. A placement whose write may still happen isn't in the
	// record, and could come into it later: the record is written as it is, and of the two writes one happens.
	revokes := false
	r.revoke = slices.DeleteFunc(r.revoke, func(t Ticket) bool {
		o := rec.find(t.placement)
		if o == nil {
			late := r.cell.seen <= r.wrote
			revokes = revokes || late
			return !late && !p.ask.ahead(t.stamp, r.cell.seen)
		}
		o.revoked, revokes = true, true
		p.Counters.Revoked++
		return false
	})
	if len(next) == 0 && !revokes {
		return
	}
	for _, w := range next {
		if o := rec.find(w.placement); o != nil {
			o.id = w.placement
		} else {
			rec.placements = append(rec.placements, placement{id: w.placement, seats: w.Players})
		}
		w.step = books
	}
	r.batch = next
	p.Counters.Writes++
	r.wrote = r.cell.rev
	r.cell.put(&p.ask, p.now, rec.encode(), p.list.timing.seatsTTL())
}

// booked: a want's seats are in a server's record.
func (p *Placer) booked(w *want, r *room) {
	if w.step == decided {
		return // too late; takeBack has seen to it
	}
	w.at = r
	for _, o := range w.tried {
		if o != r {
			o.takeBack(Ticket{placement: w.fresh})
		}
	}
	w.placed.Ticket = Ticket{serverHash(r.id), w.placement, p.ask.stamp(r.cell.rev), w.Players}
	if w.group.key != "" {
		w.step = founds
		p.stepGroup(w)
		return
	}
	p.finish(w, nil)
}
