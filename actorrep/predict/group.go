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

// MaxMembers bounds the members of a Group.
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

// GroupConfig is how a group is predicted. The zero value is fine, for members that don't touch.
type GroupConfig struct {
	// Touch is what happens between members in a tick, such as collisions. It is called once a tick, after each member's Simulate, at both ends; on
	// clients again for each tick that is replayed. members is in the same order at both ends. What it changes must be predicted fields of members, and
	// must depend on these and on what is the same at both ends. It may not keep members.
	Touch func(members []actorrep.Actor, dt time.Duration)
	// Rate is the ticks a second of all classes of the group. Default 60; 10 to 240.
	Rate float64
	// MaxCatchUp is Config.MaxCatchUp of all classes of the group.
	MaxCatchUp int
	// UpdateRate is how often a second the server sends each player the states of the members. Default 30; 1 to 240.
	UpdateRate float64
	// MaxBack is how many ticks a client goes back at most. What the server says of an older tick is taken as said of the oldest one. Default those of
	// 500 ms; 1 to 64.
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

// GroupCounters is what a group did and met at this end.
type GroupCounters struct {
	Ticks   uint64
	Updates uint64 // messages of states, sent by a server or taken by a client

	// On a client.
	States    uint64 // told
	Good      uint64 // of those, the ones that were as predicted
	Old       uint64 // of those, the ones of a tick before the last MaxBack
	Rewinds   uint64
	Replayed  uint64 // ticks
	Corrected uint64 // members that a rewind left more than a tolerance off from where they were
	Unknown   uint64 // states of actors that aren't here (yet), or of no class of the group
	Strange   uint64 // states that can't be: of a tick far ahead, or of more than MaxMembers
}

// Group is actors that touch each other, of one class or several, which a client predicts together: its own and all others. It belongs to the
// world's goroutine.
type Group struct {
	Counters GroupCounters

	cfg     GroupConfig
	world   *actorrep.World
	kinds   map[reflect.Type]*kind
	list    []*kind
	members []*member // by id, but for those that joined in this tick
	byBase  map[*actorrep.Base]*member
	joined  bool             // members has some that aren't in their place
	live    []actorrep.Actor // those that are simulated, for Touch
	step    time.Duration

	// On a server.
	ticks  *netclock.Accumulator
	at     time.Duration // the last tick
	update time.Duration // the next one is due
	told   map[*actorrep.Peer]time.Duration

	// On a client.
	clock  clock
	newest int64 // the last tick; 0 before the first
	dirty  int64 // the oldest tick of which states came that aren't as predicted; 0 none
	whole  int64 // the newest tick of which all members were told
	replay bool

	got       [maxNumbers]uint64
	given     [maxNumbers]uint64
	part      bitio.Reader
	w         bitio.Writer
	simulated time.Duration // the tick that is being simulated
}

// NoInput is the input of actors that have no player, as a ball.
type NoInput struct{}

// kind is a class of a group's.
type kind struct {
	state, input plan
	smooth       [3]int
	smoothing    prediction.SmootherConfig

	// move simulates a member by an input; repeated says that it isn't this tick's but an earlier one's.
	move       func(m *member, in []uint64, repeated bool)
	writeInput func(w *bitio.Writer, in []uint64)
	readInput  func(r *bitio.Reader, in []uint64)
	forgetLost func()
	spare      []*member // the memory of those that are gone
	hitch      func()

	// On a server.
	tick   func(m *member, at time.Duration) // simulates a member by its player's input, and notes that
	answer func(now time.Duration) error
	tell   func(tick time.Duration) error

	// On a client.
	own       func(m *member) bool                           // the actor is one of this end's player, who plays it
	sample    func(m *member, in []uint64)                   // asks for the player's input
	moved     func(m *member, at, now, shared time.Duration) // takes that of a tick which was simulated
	send      func(now time.Duration) error
	corrected func(m *member, c prediction.Correction)
}

// how is what moved a member in a tick.
type how = uint8

const (
	coasting how = iota // nobody's input: it has the zero one
	driven              // its player's
	still               // it wasn't simulated: its player is silent
	yours               // of the receiver: the input isn't told
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
	left  bool     // the next Tick forgets it
	how   how      // in the last tick
	input []uint64 // of that

	// On a server: the state and the input of the last tick, as they are sent.
	encoded              []byte
	stateBits, totalBits int

	// On a client.
	own   bool
	alive bool  // in the tick that is being simulated
	from  int64 // the first tick of which its state is known; 0 none
	heard int64 // the newest tick of which the server told
	past  []moment
	// shadow is what the server's values of the fields are, for when prediction ends; shown is what they are set to meanwhile.
	shadow, shown, before []uint64
	came                  uint32 // the numbers that the server sent since the member is this end's player's
	wasAlive              bool
	smoother              *prediction.Smoother
}

// moment is a tick of a member at a client.
type moment struct {
	tick                 int64 // it is of
	how                  how   // of its input
	fresh                bool  // the input is this tick's, not repeated
	told                 int64 // the tick of which the server told the state, and this input
	toldHow              how
	state, input         []uint64
	toldState, toldInput []uint64
}

// NewGroup returns a group of actors of a world. Give it to their classes as Config.Group, at both ends.
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
	beforeValues(w, g.beforeValues)
	w.OnValues(g.values)
	return g, nil
}

// fits reports why a class of a world can't be of the group.
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

// Tick is a frame, of all classes of the group; see Class.Tick, which it replaces.
func (g *Group) Tick(now time.Duration) error {
	if g.world.IsServer() {
		return g.serve(now)
	}
	return g.play(now)
}

// Simulating is for Simulate and Touch: the time of the tick that is being simulated, which is the same at both ends, and whether it was simulated
// before, as on a client after a correction: what is heard and seen of it was heard and seen then.
func (g *Group) Simulating() (at time.Duration, again bool) { return g.simulated, g.replay }

// Len is the number of members: on a client those that it predicts.
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
		return m.smoother.Offset(now)
	}
	return [3]float64{}
}

// join adds a member, unless it is one.
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
	m := &member{input: make([]uint64, len(k.input))}
	if n := len(k.spare); n > 0 {
		m, k.spare = k.spare[n-1], k.spare[:n-1]
		m.restart()
	}
	m.group, m.kind, m.actor, m.base, m.at, m.id = g, k, a, b, reflect.ValueOf(a).UnsafePointer(), b.GUID()
	g.byBase[b] = m
	g.members = append(g.members, m)
	g.joined = true
	return nil
}

// leave takes a member out.
func (g *Group) leave(b *actorrep.Base) {
	if m := g.byBase[b]; m != nil {
		m.left = true
	}
}

// gone reports whether a member has left or its actor is gone.
func (m *member) gone() bool {
	return m.left || m.base.World() != m.group.world || m.base.GUID() != m.id
}

// prune forgets members that are gone, and puts the others in order. Not while ticks are simulated.
func (g *Group) prune() {
	n := len(g.members)
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
	if g.joined || n != len(g.members) {
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
