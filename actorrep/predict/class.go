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
	"github.com/bunchnet/bunchnet/actorrep/internal/numbers"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Mover is an actor that inputs of type I move, a pointer to a struct.
type Mover[I any] interface {
	actorrep.Actor
	// Simulate moves the actor on by dt. It must depend on the predicted fields, its arguments, and what is the same at both ends.
	Simulate(in I, dt time.Duration)
}

// Config is how actors of a class are predicted. The zero value will do on a server without a player of its own.
type Config[A Mover[I], I any] struct {
	// Input says what the player does now: on clients, for actors that are theirs, and for those of World.Local. It is
	// asked once for each step of the simulation. A client without it predicts nothing, and its World's Failed gets ErrNoInput. An input that
	// isn't finite counts as the zero one.
	Input func(a A) I
	// Group is of actors that touch each other and are predicted together; see "Groups". Then Rate and MaxCatchUp are the group's. Default: each actor is
	// predicted for itself.
	Group *Group
	// Rate is the ticks of the simulation a second, whatever the frames of either end are. A server's holds for its clients. Default 60; 10 to 240.
	Rate float64
	// MaxCatchUp is how many ticks a client makes in a frame at most; after a longer pause those before are left out. Default those of 200 ms, and
	// 8 at least; 1 to 64. A server makes 64.
	MaxCatchUp int
	// Corrected is called on a client after each correction.
	Corrected func(a A, c prediction.Correction)
	// Smoothing is how Offset fades.
	Smoothing prediction.SmootherConfig
	// MaxForced is how long a server moves an actor on whose player's inputs don't come. Default 1 s; to 3 s.
	MaxForced time.Duration
	// ForceInput is the input of a tick for which none has come, made of the last: without what should happen once only, as a shot. Default: the last.
	ForceInput func(last I) I
}

// Errors of Class.
var (
	ErrConfig     = errors.New("predict: config")
	ErrClient     = errors.New("predict: only a server may do that")
	ErrNotSpawned = errors.New("predict: spawn the actor first")
	ErrNoPlayer   = errors.New("predict: possession needs a player who is connected to this world; a component's is its parent's owner")
	ErrGrouped    = errors.New("predict: the class belongs to a group; call Group.Tick")
	ErrNoGroup    = errors.New("predict: the class belongs to no group; give it one as Config.Group")
	ErrNoInput    = errors.New("predict: a player of this end needs Config.Input")
)

// Counters is what the actors of a class did and met at this end.
type Counters struct {
	// Strange is calls about actors that their sender doesn't possess, or possesses anew.
	Strange uint64
	// Hitches is frames of clients that came after more than MaxCatchUp ticks.
	Hitches uint64
	// Client and Server are the sums over all actors, those that are gone too.
	Client prediction.ClientCounters
	Server prediction.ServerCounters
}

// Class is the predicted actors of one class in a World. It belongs to the world's goroutine.
type Class[A Mover[I], I any] struct {
	world *actorrep.World
	cfg   Config[A, I]
	step  time.Duration         // of a tick; on a client as its server has told
	ticks *netclock.Accumulator // on a server
	clock *clock                // on a client
	group *Group                // nil for none
	kind  *kind                 // in it

	state, input plan
	smooth       [3]int // numbers of the state, -1 none
	codec        *layout.Layout
	moves, reply *actorrep.RPC[A, message[A, I]]
	begin        *actorrep.RPC[A, message[A, I]] // the first reply: it comes with the actor
	states       *actorrep.RPC[A, message[A, I]] // those of a group

	pawns   []*pawn[A, I] // those of players at this end, and on a server those of all players
	byActor map[actorrep.Actor]*pawn[A, I]
	gone    Counters
	strange uint64
	hitches uint64
	number  uint8 // of the last possession

	// Scratch.
	out, got    message[A, I]
	given, read I
	w           bitio.Writer
	r           bitio.Reader
}

// Register registers a class with a world, as World.Register does, and predicts its actors. Procedures of the game go among the options.
func Register[A Mover[I], I any](w *actorrep.World, name string, cfg Config[A, I], options ...actorrep.ClassOption) (*Class[A, I], error) {
	if err := cfg.Group.fits(w, cfg.Rate, cfg.MaxCatchUp); err != nil {
		return nil, err
	}
	if cfg.Group != nil {
		if _, err := prediction.NewSmoother(cfg.Smoothing); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		cfg.Rate, cfg.MaxCatchUp = cfg.Group.cfg.Rate, cfg.Group.cfg.MaxCatchUp
	}
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Class[A, I]{world: w, cfg: cfg, clock: &clock{}, group: cfg.Group, step: time.Duration(float64(time.Second) / cfg.Rate).Truncate(time.Microsecond), byActor: map[actorrep.Actor]*pawn[A, I]{}}
	if err := c.plan(); err != nil {
		return nil, fmt.Errorf("%w (class %q)", err, name)
	}
	var err error
	if c.ticks, err = netclock.NewAccumulator(c.step, max(cfg.MaxCatchUp, 64)); err != nil {
		return nil, err
	}
	// A client says something in every step at most, and after an outage all at once.
	limit := actorrep.RateLimit(2*max(cfg.Rate, 60), int(4*cfg.Rate))
	c.moves = actorrep.ServerRPC(c.receiveMoves, limit)
	c.reply = actorrep.ClientRPC(c.receiveReply)
	c.begin = actorrep.ClientRPC(c.receiveReply, actorrep.Reliable)
	procedures := actorrep.RPCs{"predict.Moves": c.moves, "predict.Reply": c.reply, "predict.Begin": c.begin}
	if c.group != nil {
		c.states = actorrep.ClientRPC(c.receiveStates)
		procedures["predict.States"] = c.states
	}
	var none A
	if err := w.Register(name, none, append(options, procedures)...); err != nil {
		return nil, err
	}
	if c.group != nil {
		c.clock, c.kind = &c.group.clock, c.newKind()
		c.group.add(reflect.TypeFor[A](), c.kind)
	}
	return c, nil
}

// maxRate bounds Config.Rate.
const maxRate = 240

func (c *Config[A, I]) fill() error {
	c.Rate = cmp.Or(c.Rate, 60)
	if c.MaxCatchUp == 0 && c.Rate <= maxRate {
		c.MaxCatchUp = max(8, int(c.Rate/5))
	}
	switch {
	case !(c.Rate >= 10 && c.Rate <= maxRate):
		return fmt.Errorf("%w: Rate is %v; give 10 to 240", ErrConfig, c.Rate)
	case c.MaxCatchUp < 1 || c.MaxCatchUp > 64:
		return fmt.Errorf("%w: MaxCatchUp is %d; give 1 to 64", ErrConfig, c.MaxCatchUp)
	}
	return nil
}

// plan finds the numbers of the state and of the input.
func (c *Class[A, I]) plan() (err error) {
	t := reflect.TypeFor[A]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%w: %v is no pointer to a struct", ErrClass, t)
	}
	if c.state, err = stateOf(t.Elem()); err != nil {
		return err
	}
	c.smooth = [3]int{-1, -1, -1}
	places := 0
	for i := range c.state {
		if c.state[i].smooth && places < len(c.smooth) {
			c.smooth[places] = i
			places++
		}
	}
	in := reflect.TypeFor[I]()
	if c.input, err = c.input.flatten(number{Number: numbers.Number{Name: in.String()}}, in); err != nil {
		return err
	}
	if c.codec, err = layout.BuildValue(in); err != nil {
		return fmt.Errorf("%w: input %v: %w", ErrClass, in, err)
	}
	return nil
}

// model is how an actor moves, for package prediction.
func (c *Class[A, I]) model(p *pawn[A, I]) prediction.Model[snapshot, I] {
	if c.group != nil {
		return c.groupModel(p)
	}
	return prediction.Model[snapshot, I]{
		Interval: c.step,
		Simulate: func(s *snapshot, in I, dt time.Duration) {
			if !c.holds(p) {
				return // an earlier step has ended the possession
			}
			c.state.store(p.at, s)
			p.actor.Simulate(in, dt)
			c.state.load(p.at, s)
		},
		Distance:   c.state.distance,
		WriteInput: func(w *bitio.Writer, in *I) { c.codec.WriteValue(w, unsafe.Pointer(in)) },
		ReadInput:  c.readInput,
		WriteState: c.state.writeState, ReadState: c.state.readState,
		WriteClaim: c.state.writeClaim, ReadClaim: c.state.readClaim,
	}
}

// readInput reads an input, and refuses numbers that aren't finite.
func (c *Class[A, I]) readInput(r *bitio.Reader, in *I) {
	c.codec.ReadValue(r, unsafe.Pointer(in), nil)
	var s snapshot
	if c.input.load(unsafe.Pointer(in), &s); !c.input.finite(s[:]) {
		r.Fail(bitio.ErrFormat)
	}
}

// sample asks for an input, and is what the server will read of it.
func (c *Class[A, I]) sample(a A) (in I) {
	c.given = c.cfg.Input(a)
	c.w.Reset(c.out.data[:])
	c.codec.WriteValue(&c.w, unsafe.Pointer(&c.given))
	c.r.Reset(c.w.Bytes(), c.w.Len())
	if c.readInput(&c.r, &c.read); c.w.Err() != nil || c.r.Err() != nil {
		return in // it isn't finite
	}
	return c.read
}

// Tick is a frame. On a client, call it after World.Step: inputs are sampled, felt and sent. On a server, call it before, after the
// driver's TickDispatch: the ticks that are due are simulated, and answers are sent.
//
// Its errors are those of calls that can't be made, as of a message over 384 bytes; all other actors are played nevertheless. What can't go for
// want of bandwidth, or because the connection is closing, is none.
//
// The classes of a group are played by Group.Tick.
func (c *Class[A, I]) Tick(now time.Duration) error {
	if c.group != nil {
		return ErrGrouped
	}
	var failed error
	if c.world.IsServer() {
		c.simulate(now)
	}
	shared := c.clock.advance(now)
	for i := 0; i < len(c.pawns); i++ { // what a step of one possesses is added behind
		switch p := c.pawns[i]; {
		case !c.holds(p):
		case p.server != nil:
			failed = errors.Join(failed, c.answer(p, now))
		case p.client != nil:
			failed = errors.Join(failed, c.play(p, now, shared))
		}
	}
	c.forgetLost()
	return failed
}

// forgetLost forgets the actors that their players don't have any more.
func (c *Class[A, I]) forgetLost() {
	c.pawns = slices.DeleteFunc(c.pawns, func(p *pawn[A, I]) bool {
		lost := !c.holds(p)
		if lost {
			c.forget(p)
		}
		return lost
	})
}

// simulate makes the ticks of a server that are due, each of all actors before the next.
func (c *Class[A, I]) simulate(now time.Duration) {
	for n := c.ticks.Advance(now); n > 0; n-- {
		at := c.ticks.At(n)
		for i := 0; i < len(c.pawns); i++ {
			if p := c.pawns[i]; c.holds(p) {
				c.simulateOne(p, at)
			}
		}
	}
}

// holds reports whether the player still has the actor.
func (c *Class[A, I]) holds(p *pawn[A, I]) bool {
	if p.gone || p.base.World() != c.world {
		return false
	}
	if c.world.IsServer() {
		return p.base.Owner() == p.peer
	}
	return p.base.IsOwned()
}

func (c *Class[A, I]) forget(p *pawn[A, I]) {
	p.count(&c.gone)
	if c.byActor[p.actor] != p {
		return
	}
	delete(c.byActor, p.actor)
	if c.world.IsServer() && p.base.World() == c.world {
		p.base.SetAutonomous(false) // or another owner wouldn't get the simulated fields
	}
}

// Predicting reports whether an actor is predicted at this end: on a client from its first tick on, on a server while it is possessed.
// Of a group's actors it says so of each member.
func (c *Class[A, I]) Predicting(a A) bool {
	if c.group != nil {
		return c.group.predicting(baseOf(a))
	}
	p := c.byActor[a]
	return p != nil && (p.client == nil || p.done != 0)
}

// Offset is what to add to where an actor is drawn, on its player's client, so that a correction doesn't show as a jump: to the fields whose
// predict tag has smooth, in their order. It fades away.
func (c *Class[A, I]) Offset(a A, now time.Duration) [3]float64 {
	if c.group != nil {
		return c.group.offset(baseOf(a), now)
	}
	if p := c.byActor[a]; p != nil && p.client != nil {
		return p.client.Offset(now)
	}
	return [3]float64{}
}

// Counters is what this end did and met.
func (c *Class[A, I]) Counters() Counters {
	all := c.gone
	all.Strange, all.Hitches = c.strange, c.hitches
	for _, p := range c.pawns {
		p.count(&all)
	}
	return all
}
