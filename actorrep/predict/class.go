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

// Mover is an actor, a pointer to a struct, that inputs of type I move.
type Mover[I any] interface {
	actorrep.Actor
	// Simulate advances the actor by dt. Its result may depend only on the predicted fields, its arguments, and what is
	// the same at both ends.
	Simulate(in I, dt time.Duration)
}

// Config configures the prediction of a class. The zero value is enough on a server without a local player.
type Config[A Mover[I], I any] struct {
	// Input returns the player's current input, for actors of this end's player: a client's, or World.Local. It is
	// called once for each tick. A client without it predicts nothing, and its World's Failed gets ErrNoInput. An input
	// that isn't finite counts as the zero input; the World's Failed gets ErrInput the first time.
	Input func(a A) I
	// Group is the actors that this class's actors collide with and are predicted with; see "Groups". Rate and
	// MaxCatchUp are then the group's. Default: each actor is predicted alone.
	Group *Group
	// Rate is the number of ticks a second, independent of frame rates. Clients use the server's. Default 60; 10 to 240.
	Rate float64
	// MaxCatchUp is the most ticks that a client simulates in one frame; after a longer pause it skips the oldest.
	// Default: the ticks of 200 ms, at least 8; 1 to 64. A server simulates up to 64.
	MaxCatchUp int
	// Corrected is called on a client after each correction.
	Corrected func(a A, c prediction.Correction)
	// Smoothing configures how Offset fades.
	Smoothing prediction.SmootherConfig
	// MaxForced is how long a server simulates an actor whose player's inputs don't arrive with ForceInput. After it, and
	// before the first input, it simulates the actor with the zero input. Default 1 s; at most 3 s.
	MaxForced time.Duration
	// ForceInput makes the input of a tick for which none has arrived, from the last one. Remove from it what should
	// happen only once, such as a shot. Default: the last input.
	ForceInput func(last I) I
}

// Errors of Register and Class.
var (
	ErrConfig     = errors.New("predict: config")
	ErrClient     = errors.New("predict: only a server may do that")
	ErrNotSpawned = errors.New("predict: spawn the actor first")
	ErrNoPlayer   = errors.New("predict: possession needs a player who is connected to this world; a component's is its parent's owner")
	ErrGrouped    = errors.New("predict: the class belongs to a group; call Group.Tick")
	ErrNoGroup    = errors.New("predict: the class belongs to no group; give it one as Config.Group")
	ErrNoInput    = errors.New("predict: a player of this end needs Config.Input")
	ErrInput      = errors.New("predict: Config.Input returned a number that isn't finite")
	// ErrManyPossessed is Possess's error above 16 actors of a class for one player of a connection.
	ErrManyPossessed = fmt.Errorf("predict: a player possesses %d actors of a class at most", maxPossessed)
)

var errNoTick = fmt.Errorf("%w: an actor is possessed, but the game never calls Class.Tick, or Group.Tick for a group; call it each frame at both ends", ErrConfig)

// maxPossessed is the most actors of a class that one player possesses. Each takes about 50 KB on its client, and the server decides how many there are.
const maxPossessed = 16

// Counters counts what happened to the actors of a class at this end.
type Counters struct {
	// Strange counts messages about an actor that their sender doesn't possess, or about an ended possession.
	Strange uint64
	// Hitches counts a client's frames that came more than MaxCatchUp ticks after the last.
	Hitches uint64
	// Client and Server are the sums over all actors, past ones included.
	Client prediction.ClientCounters
	Server prediction.ServerCounters
}

// Class is the predicted actors of one class in a World. It belongs to the world's goroutine.
type Class[A Mover[I], I any] struct {
	world *actorrep.World
	cfg   Config[A, I]
	step  time.Duration         // length of a tick; on a client the server's
	ticks *netclock.Accumulator // on a server
	clock *clock                // on a client
	group *Group                // nil for none
	kind  *kind                 // the class, in its group

	state, input plan
	smooth       [3]int // indexes into state; -1 none
	codec        *layout.Layout
	moves, reply *actorrep.RPC[A, message[A, I]]
	begin        *actorrep.RPC[A, message[A, I]] // the first reply: reliable, so that it arrives with the actor
	states       *actorrep.RPC[A, message[A, I]] // of a group's members

	pawns         []*pawn[A, I] // on a client those of its player, on a server those of all players
	byActor       map[actorrep.Actor]*pawn[A, I]
	gone          Counters
	strange       uint64
	hitches       uint64
	follows       *Class[A, I]  // on a client, see Follow
	offset        time.Duration // local time here minus there
	told          bool          // what was wrong with a server's message
	noInput       bool          // told of the missing Config.Input
	everPossessed bool          // Possess was called
	strayed       bool          // Config.Input returned what isn't finite
	ticked        bool          // Tick was called
	tickedAt      time.Duration // the time that it was given
	number        uint8         // of the newest possession

	// Scratch.
	out, got    message[A, I]
	given, read I
	w           bitio.Writer
	r           bitio.Reader
}

// Register registers a class with a world, as World.Register does, and predicts its actors. Pass the game's own
// procedures as options, as there.
func Register[A Mover[I], I any](w *actorrep.World, name string, cfg Config[A, I], options ...actorrep.ClassOption) (*Class[A, I], error) {
	if err := cfg.Group.fits(w, cfg.Rate, cfg.MaxCatchUp); err != nil {
		return nil, err
	}
	if _, err := prediction.NewSmoother(cfg.Smoothing); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if cfg.Group != nil {
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
	// A client says something of each actor in every step at most, and after an outage all at once.
	limit := actorrep.RateLimit(maxPossessed*2*max(cfg.Rate, 60), int(maxPossessed*4*cfg.Rate))
	c.moves = actorrep.ServerRPC(c.receiveMoves, limit)
	c.reply = actorrep.ClientRPC(c.toldOnce(c.receiveReply))
	c.begin = actorrep.ClientRPC(c.toldOnce(c.receiveReply), actorrep.Reliable)
	procedures := actorrep.RPCs{"predict.Moves": c.moves, "predict.Reply": c.reply, "predict.Begin": c.begin}
	if c.group != nil {
		c.states = actorrep.ClientRPC(c.toldOnce(c.receiveStates))
		procedures["predict.States"] = c.states
	}
	var none A
	if err := w.Register(name, none, append(options, procedures)...); err != nil {
		return nil, err
	}
	if c.group != nil {
		c.clock, c.kind = &c.group.clock, c.newKind()
		c.group.add(reflect.TypeFor[A](), c.kind)
	} else {
		watch(w, func() bool { return !c.ticked && len(c.pawns) > 0 }, errNoTick)
	}
	if c.group == nil && !w.IsServer() {
		beforeValues(w, c.beforeValues)
		w.OnValues(c.values)
	}
	if w.IsServer() {
		watch(w, c.forgotPossess(), fmt.Errorf("%w: a player has owned an actor of class %q for %v, and the game has never called Class.Possess: nothing is predicted", ErrConfig, name, possessAfter))
	}
	return c, nil
}

// possessAfter is how long a player owns an actor of a class, none of which was ever possessed, until the game is told.
const possessAfter = 10 * time.Second

// forgotPossess returns a function that reports whether the game seems to have forgotten Possess. It looks at the world's actors every 10 s, until the first Possess.
func (c *Class[A, I]) forgotPossess() func() bool {
	var next time.Duration
	var looks int // in a row at which a player owned an actor of the class
	return func() bool {
		now := c.world.Now()
		if c.everPossessed || now < next {
			return !c.everPossessed && looks > 1
		}
		next = now + possessAfter
		owned := false
		for a := range c.world.All {
			if _, is := a.(A); is && baseOf(a).Owner() != nil {
				owned = true
				break
			}
		}
		if looks++; !owned {
			looks = 0
		}
		return looks > 1
	}
}

// toldOnce returns the first error of a server's messages to Config.Failed: a hostile server could fill a log with them. A missing Input is the game's, and is
// told beside that, once as well.
func (c *Class[A, I]) toldOnce(receive func(actorrep.Call, A, message[A, I]) error) func(actorrep.Call, A, message[A, I]) error {
	return func(call actorrep.Call, a A, m message[A, I]) error {
		err := receive(call, a, m)
		told := &c.told
		if errors.Is(err, ErrNoInput) {
			told = &c.noInput
		}
		if err == nil || *told {
			return nil
		}
		*told = true
		return err
	}
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
	case c.MaxForced < 0 || c.MaxForced > 3*time.Second:
		return fmt.Errorf("%w: MaxForced is %v; give up to 3 s", ErrConfig, c.MaxForced)
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

// model describes how an actor moves, for package prediction.
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
			c.move(p, in, dt)
			c.state.load(p.at, s)
		},
		Distance: func(a, b *snapshot) float64 {
			d := c.state.distance(a, b)
			if p.off = p.off[:0]; d > 1 {
				p.off = c.state.off(p.off, a[:], b[:], 1)
			}
			return d
		},
		WriteInput: func(w *bitio.Writer, in *I) { c.codec.WriteValue(w, unsafe.Pointer(in)) },
		ReadInput:  c.readInput,
		WriteState: c.state.writeState, ReadState: c.state.readState,
		WriteClaim: c.state.writeClaim, ReadClaim: c.state.readClaim,
	}
}

// move simulates an actor by its player's input. Meanwhile the peer says how long a server had that input.
func (c *Class[A, I]) move(p *pawn[A, I], in I, dt time.Duration) {
	if p.server == nil {
		p.actor.Simulate(in, dt)
		return
	}
	setWaited(p.peer, p.server.Waited())
	p.actor.Simulate(in, dt)
	setWaited(p.peer, 0)
}

// readInput decodes an input. Numbers that aren't finite are an error.
func (c *Class[A, I]) readInput(r *bitio.Reader, in *I) {
	c.codec.ReadValue(r, unsafe.Pointer(in), nil)
	var s snapshot
	if c.input.load(unsafe.Pointer(in), &s); !c.input.finite(s[:]) {
		r.Fail(bitio.ErrFormat)
	}
}

// sample asks for an input and returns it as the server will decode it.
func (c *Class[A, I]) sample(a A) (in I) {
	c.given = c.cfg.Input(a)
	c.w.Reset(c.out.data[:])
	c.codec.WriteValue(&c.w, unsafe.Pointer(&c.given))
	c.r.Reset(c.w.Bytes(), c.w.Len())
	if c.readInput(&c.r, &c.read); c.w.Err() != nil || c.r.Err() != nil {
		if !c.strayed {
			c.strayed = true
			report(c.world, fmt.Errorf("%w: of %T: %+v; the zero input is taken instead", ErrInput, a, c.given))
		}
		return in
	}
	return c.read
}

// Tick runs a frame. On a client call it after World.Step: it samples inputs, applies and sends them. On a server call
// it between the driver's TickDispatch and World.Step: it simulates the ticks that are due and sends replies.
//
// It returns the errors of messages that can't be sent, for example of one over 384 bytes; the other actors are handled
// all the same. A lack of bandwidth, or a connection that is closing, is no error.
//
// For a class of a group it returns ErrGrouped: call Group.Tick.
func (c *Class[A, I]) Tick(now time.Duration) error {
	if c.group != nil {
		return ErrGrouped
	}
	c.ticked, c.tickedAt = true, now
	var failed error
	if c.world.IsServer() {
		c.simulate(now)
	}
	local, shared := c.clock.advance(now, c.world.Now())
	if c.follows != nil {
		c.offset = local - c.follows.clock.local
	}
	for i := 0; i < len(c.pawns); i++ { // a step may possess more: they are appended
		switch p := c.pawns[i]; {
		case !c.holds(p) || p.left:
		case p.server != nil:
			failed = errors.Join(failed, c.answer(p, now))
		case p.client != nil:
			failed = errors.Join(failed, c.play(p, local, shared))
		}
	}
	c.forgetLost()
	return failed
}

// forgetLost forgets the actors whose possession has ended.
func (c *Class[A, I]) forgetLost() {
	c.pawns = slices.DeleteFunc(c.pawns, func(p *pawn[A, I]) bool {
		lost := !c.holds(p)
		if lost {
			c.forget(p)
		}
		return lost
	})
}

// simulate simulates the ticks that are due on a server, each for all actors before the next tick.
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

// holds reports whether the player still possesses the actor.
func (c *Class[A, I]) holds(p *pawn[A, I]) bool {
	if p.gone || p.base.World() != c.world || p.base.GUID() != p.id {
		return false
	}
	if c.world.IsServer() {
		return p.base.Owner() == p.peer
	}
	return plays(p.base)
}

// plays reports whether a client's player controls an actor. Who owns one may not: when the game has taken it from him and let him keep it.
func plays(b *actorrep.Base) bool { return b.IsOwned() && b.Role() == actorrep.AutonomousProxy }

func (c *Class[A, I]) forget(p *pawn[A, I]) {
	p.count(&c.gone)
	if c.byActor[p.actor] != p {
		return
	}
	delete(c.byActor, p.actor)
	in, tornOff, owned := p.base.World(), p.base.Role() == actorrep.Authority, p.base.IsOwned()
	for i := range c.state {
		again := !tornOff && (c.state[i].owners || !owned) // the server sends it, unless it is for others than its owner
		if (p.came&(1<<i) != 0 || again && p.old&(1<<i) != 0) && in == c.world {
			c.state[i].Store(p.at, p.shadow[i])
		}
	}
	if c.world.IsServer() && (in == c.world || in == nil) {
		p.base.SetAutonomous(false) // else another owner wouldn't get the simulated fields, of the actor spawned again either
	}
}

// Predicting reports whether an actor is predicted at this end: on a client from its first tick on, on a server while it
// is possessed. For a class of a group it reports whether the actor is a member.
func (c *Class[A, I]) Predicting(a A) bool {
	if c.group != nil {
		return c.group.predicting(baseOf(a))
	}
	p := c.byActor[a]
	return p != nil && !p.left && (p.client == nil || p.done != 0)
}

// silence is after how long without inputs Explain says so.
const silence = time.Second

// Explain says in words who moves an actor, and what is missing when nobody does.
func (c *Class[A, I]) Explain(a A) string {
	b, p := baseOf(a), c.byActor[a]
	switch {
	case b.World() != c.world:
		return "not spawned"
	case (p == nil || !c.holds(p)) && c.world.IsServer():
		return "nobody possesses it: call Possess, also for a player who is back with another connection"
	case (p == nil || !c.holds(p)) && b.IsOwned() && c.cfg.Input == nil:
		return ErrNoInput.Error()
	case (p == nil || !c.holds(p)) && b.IsOwned():
		return "owned, not possessed: the server hasn't called Possess, or its first state is on its way"
	case p == nil || !c.holds(p):
		return "another player's, or nobody's"
	case !c.ticked && (c.group == nil || !c.group.ticked):
		return errNoTick.Error()
	case p.left:
		return "its player plays at another server; or Depart was called, and neither Stay nor World.Destroy since"
	case p.client != nil:
		return fmt.Sprintf("this end's player moves it; %d inputs aren't acknowledged", p.client.Unacked())
	case p.server == nil:
		return "this end's player moves it"
	}
	silent := max(c.world.Now()-p.heard, 0)
	conn, ok := p.peer.Conn().(interface{ Closed() bool })
	switch {
	case ok && conn.Closed():
		return "its player's connection has ended; call World.RemoveConn"
	case silent < silence:
		return "its player moves it"
	case p.server.Counters.Messages == 0:
		return fmt.Sprintf("no input has arrived in the %v since Possess: the client doesn't call Tick, or doesn't have the actor yet", silent.Round(time.Millisecond))
	}
	return fmt.Sprintf("no input has arrived for %v", silent.Round(time.Millisecond))
}

// Offset is what to add to an actor's position when drawing it on its player's client, so that a correction isn't
// visible as a jump. Its elements belong to the fields marked smooth, in their order. It fades to zero.
func (c *Class[A, I]) Offset(a A, now time.Duration) [3]float64 {
	if c.group != nil {
		return c.group.offset(baseOf(a), now)
	}
	if p := c.byActor[a]; p != nil && p.client != nil {
		return p.client.Offset(c.clock.at(now))
	}
	return [3]float64{}
}

// Counters returns this end's counters.
func (c *Class[A, I]) Counters() Counters {
	all := c.gone
	all.Strange, all.Hitches = c.strange, c.hitches
	for _, p := range c.pawns {
		p.count(&all)
	}
	return all
}
