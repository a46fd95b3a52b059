package predict

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// MaxMembers is the most members of a Group.
const MaxMembers = 256

const (
	// keptStates is how many of the last ticks a client keeps of each member; a power of two.
	keptStates = 128
	// maxBack bounds GroupConfig.MaxBack: the rest of the ticks kept is for states that come before their tick.
	maxBack = 64
	// forgetAfter is after how long without a state a client takes a member for gone, if it wasn't told so.
	forgetAfter = time.Second
)

// Errors of Group.
var (
	ErrGroup       = errors.New("predict: group")
	ErrManyMembers = fmt.Errorf("predict: a group has %d members at most", MaxMembers)
	// ErrStates is wrapped by what is wrong with states that a server sends.
	ErrStates = errors.New("predict: malformed states of a group")
)

// GroupConfig configures a group. The zero value is fine for members that don't collide.
type GroupConfig struct {
	// Touch handles what happens between members in a tick, such as collisions. It is called once a tick, after Simulate
	// of all members, at both ends; on clients again for each replayed tick. members is in the same order at both ends.
	// Touch may change only predicted fields of members. Its result may depend only on these and on what is the same at
	// both ends. It must not keep members.
	Touch func(members []actorrep.Actor, dt time.Duration)
	// Rate is the number of ticks a second, for all classes of the group. Default 60; 10 to 240.
	Rate float64
	// MaxCatchUp is Config.MaxCatchUp, for all classes of the group.
	MaxCatchUp int
	// UpdateRate is how often the server sends each player the states of the members, in times a second. Default 30; 1
	// to 240.
	UpdateRate float64
	// MaxBack is the most ticks that a client rewinds. States of an older tick are applied at the oldest one. Default:
	// the ticks of 500 ms; 1 to 64.
	MaxBack int
}

func (c *GroupConfig) fill() error {
	c.Rate = cmp.Or(c.Rate, 60)
	if !(c.Rate >= 10 && c.Rate <= maxRate) {
		return fmt.Errorf("%w: Rate is %v; give 10 to 240", ErrConfig, c.Rate)
	}
	c.MaxCatchUp = cmp.Or(c.MaxCatchUp, max(8, int(c.Rate/5)))
	c.UpdateRate = cmp.Or(c.UpdateRate, 30)
	c.MaxBack = cmp.Or(c.MaxBack, min(int(c.Rate/2), maxBack))
	switch {
	case c.MaxCatchUp < 1 || c.MaxCatchUp > 64:
		return fmt.Errorf("%w: MaxCatchUp is %d; give 1 to 64", ErrConfig, c.MaxCatchUp)
	case !(c.UpdateRate >= 1 && c.UpdateRate <= maxRate):
		return fmt.Errorf("%w: UpdateRate is %v; give 1 to 240", ErrConfig, c.UpdateRate)
	case c.MaxBack < 1 || c.MaxBack > maxBack:
		return fmt.Errorf("%w: MaxBack is %d; give 1 to %d", ErrConfig, c.MaxBack, maxBack)
	}
	return nil
}

// GroupCounters counts what happened in a group at this end.
type GroupCounters struct {
	Ticks   uint64
	Updates uint64 // messages of states, sent by a server or received by a client

	// On a client.
	States    uint64 // states received
	Good      uint64 // states that were as predicted
	Old       uint64 // states of a tick more than MaxBack ago
	Rewinds   uint64
	Replayed  uint64 // ticks
	Corrected uint64 // members that a rewind moved by more than a tolerance
	Unknown   uint64 // states of actors that this end doesn't have (yet), or of other classes
	Strange   uint64 // states that can't be right: of a tick far ahead, or of more than MaxMembers
}

// Group is a set of actors, of one class or several, that collide with each other. A client predicts its own and all others
// together. It belongs to the world's goroutine.
type Group struct {
	Counters GroupCounters

	cfg      GroupConfig
	world    *actorrep.World
	kinds    map[reflect.Type]*kind
	list     []*kind
	members  []*member // by id, but for those that joined in this tick
	byBase   map[*actorrep.Base]*member
	joined   bool             // members has new ones that aren't sorted yet
	live     []actorrep.Actor // the simulated members, for Touch
	step     time.Duration
	ticked   bool          // Tick was called
	tickedAt time.Duration // the time that it was given

	// On a server.
	ticks  *netclock.Accumulator
	at     time.Duration // time of the last tick
	update time.Duration // time of the next update
	told   map[*actorrep.Peer]time.Duration

	// On a client.
	clock  clock
	newest int64 // number of the last tick; 0 before the first
	dirty  int64 // oldest tick with a state that differs from the prediction; 0 none
	whole  int64 // newest tick for which all members' states have arrived
	replay bool

	got       [maxNumbers]uint64
	given     [maxNumbers]uint64
	part      bitio.Reader
	w         bitio.Writer
	simulated time.Duration // time of the tick being simulated
}

// NoInput is the input type of actors that never have a player, such as a ball.
type NoInput struct{}

// kind is a class of a group.
type kind struct {
	state, input plan
	smooth       [3]int
	smoothing    prediction.SmootherConfig

	// move simulates a member with an input. repeated says that the input is an earlier tick's.
	move       func(m *member, in []uint64, repeated bool)
	writeInput func(w *bitio.Writer, in []uint64)
	readInput  func(r *bitio.Reader, in []uint64)
	forgetLost func()
	spare      []*member // free list
	hitch      func()

	// On a server.
	tick   func(m *member, at time.Duration) // simulates a member by its player's input, and notes that
	answer func(now time.Duration) error
	tell   func(tick time.Duration) error

	// On a client.
	own       func(m *member) bool                           // whether this end's player possesses the actor
	sample    func(m *member, in []uint64)                   // asks for the player's input
	moved     func(m *member, at, now, shared time.Duration) // sends the input of a simulated tick
	send      func(now time.Duration) error
	rewind    func(now, to time.Duration) // takes back what was sent of later ticks
	corrected func(m *member, c prediction.Correction)
	off       []string // names of the numbers that a correction is about
}

// how says what moved a member in a tick.
type how = uint8

const (
	coasting how = iota // the zero input: it has no player, or one whose inputs don't arrive
	driven              // its player's input
	yours               // the receiver's own: the input isn't sent
	howBits  = 2
)

// member is an actor of a group.
type member struct {
	group *Group
	kind  *kind
	actor actorrep.Actor
	base  *actorrep.Base
	at    unsafe.Pointer
	id    netguid.GUID
	left  bool     // the next Tick removes it
	how   how      // in the last tick
	input []uint64 // in the last tick

	// On a server: the state and the input of the last tick, as they are sent.
	encoded              []byte
	stateBits, totalBits int

	// On a client.
	own   bool
	alive bool  // in the tick being simulated
	from  int64 // first tick for which its state is known; 0 none
	heard int64 // newest tick for which a state has arrived
	wrong int64 // that tick, if its state differs from the prediction and wasn't taken yet; 0 none
	past  []moment
	// shadow is the server's values of the fields, for when the prediction ends; shown is what the fields have
	// meanwhile.
	shadow, shown, before []uint64
	came                  uint32 // numbers that the server has sent since this end's player possesses the member
	wasAlive              bool
	smoother              *prediction.Smoother
}

// moment is one tick of a member on a client.
type moment struct {
	tick                 int64 // its number
	how                  how   // what moved it
	fresh                bool  // the input is of this tick, not repeated
	told                 int64 // tick of the server's state and input in this moment
	toldHow              how
	older                bool // what was told is of an older tick
	state, input         []uint64
	toldState, toldInput []uint64
}

// NewGroup returns a group of actors of a world. Pass it to their classes as Config.Group, at both ends.
func NewGroup(w *actorrep.World, cfg GroupConfig) (*Group, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	g := &Group{cfg: cfg, world: w, kinds: map[reflect.Type]*kind{}, byBase: map[*actorrep.Base]*member{}, told: map[*actorrep.Peer]time.Duration{},
		step: time.Duration(float64(time.Second) / cfg.Rate).Truncate(time.Microsecond)}
	var err error
	if g.ticks, err = netclock.NewAccumulator(g.step, max(cfg.MaxCatchUp, 64)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	watch(w, func() bool { return !g.ticked && len(g.byBase) > 0 }, errNoTick)
	beforeValues(w, g.beforeValues)
	w.OnValues(g.values)
	return g, nil
}

// fits returns an error when a class with these settings can't be in the group.
func (g *Group) fits(w *actorrep.World, rate float64, catchUp int) error {
	switch {
	case g == nil:
		return nil
	case g.world != w:
		return fmt.Errorf("%w: the group is another world's", ErrGroup)
	case rate != 0 && rate != g.cfg.Rate, catchUp != 0 && catchUp != g.cfg.MaxCatchUp:
		return fmt.Errorf("%w: Rate and MaxCatchUp are the group's; leave the class' 0", ErrGroup)
	}
	return nil
}

func (g *Group) add(t reflect.Type, k *kind) {
	g.kinds[t] = k
	g.list = append(g.list, k)
}

// Tick runs a frame for all classes of the group. It replaces Class.Tick.
func (g *Group) Tick(now time.Duration) error {
	g.ticked, g.tickedAt = true, now
	if g.world.IsServer() {
		return g.serve(now)
	}
	return g.play(now)
}

// Simulating is called in Simulate and Touch. at is the time of the tick being simulated, the same at both ends. again
// reports that the tick is being replayed after a correction: its sounds and effects were played already.
func (g *Group) Simulating() (at time.Duration, again bool) { return g.simulated, g.replay }

// Len is the number of members; on a client, of those that it predicts.
func (g *Group) Len() (n int) {
	for _, m := range g.members {
		if !m.gone() {
			n++
		}
	}
	return n
}

func (g *Group) predicting(b *actorrep.Base) bool {
	m := g.byBase[b]
	return m != nil && !m.gone() && (g.world.IsServer() || m.alive)
}

func (g *Group) offset(b *actorrep.Base, now time.Duration) [3]float64 {
	if m := g.byBase[b]; m != nil && m.smoother != nil {
		return m.smoother.Offset(g.clock.at(now))
	}
	return [3]float64{}
}

// join adds an actor, unless it is a member.
func (g *Group) join(a actorrep.Actor, k *kind) error {
	b := baseOf(a)
	if m := g.byBase[b]; m != nil {
		if m.id == b.GUID() {
			if m.left {
				m.left = false
				m.restart()
			}
			return nil
		}
		m.left = true // it was destroyed and spawned again
		delete(g.byBase, b)
	}
	if len(g.byBase) >= MaxMembers {
		return ErrManyMembers
	}
	var m *member
	if n := len(k.spare); n > 0 {
		m, k.spare = k.spare[n-1], k.spare[:n-1]
		m.restart()
	} else {
		m = &member{input: make([]uint64, len(k.input))}
	}
	m.group, m.kind, m.actor, m.base, m.at, m.id = g, k, a, b, reflect.ValueOf(a).UnsafePointer(), b.GUID()
	g.byBase[b] = m
	g.members = append(g.members, m)
	g.joined = true
	return nil
}

// leave removes a member.
func (g *Group) leave(b *actorrep.Base) {
	if m := g.byBase[b]; m != nil {
		m.left = true
	}
}

// gone reports whether a member has left or its actor isn't spawned any more.
func (m *member) gone() bool {
	return m.left || m.base.World() != m.group.world || m.base.GUID() != m.id
}

// prune forgets members that are gone and sorts the others. It must not be called while ticks are simulated.
func (g *Group) prune() {
	g.members = slices.DeleteFunc(g.members, func(m *member) bool {
		if !m.gone() {
			return false
		}
		if g.byBase[m.base] == m {
			delete(g.byBase, m.base)
		}
		m.actor, m.base, m.at, m.left = nil, nil, nil, false
		m.kind.spare = append(m.kind.spare, m) // no more than there were members at once
		return true
	})
	if g.joined {
		slices.SortFunc(g.members, func(a, b *member) int { return cmp.Compare(a.id, b.id) })
		g.joined = false
	}
}

// touch calls Touch for the members that are simulated.
func (g *Group) touch() {
	if g.cfg.Touch != nil && len(g.live) > 0 {
		g.cfg.Touch(g.live, g.step)
	}
}
