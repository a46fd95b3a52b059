package interp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// Config configures an Interpolator. The zero value is fine.
type Config struct {
	// MaxDelay bounds the two parts of the delay: lateness, and reach times an actor's interval. Default 500 ms; at most
	// 2 s. With actors that are sent less than twice a second it must be longer: at once a second half of the draws wait
	// for a value with 500 ms, and none with 2 s.
	MaxDelay time.Duration
	// MaxRewind is how far back Rewind goes at most. Default 400 ms; at most 2 s. Choose the longest round trip with
	// which a player should hit what he aims at, plus the delay, plus how long a shot in an input of package predict waits
	// for its tick (80 ms at 100 ms ± 25 ms). The longer it is, the longer after reaching cover players are still hit.
	MaxRewind time.Duration
}

// ErrConfig is wrapped by errors about a config, and by the one that a World's Failed gets when values are shown or rewound but Tick was never
// called.
var ErrConfig = errors.New("interp: config")

var errNoTick = fmt.Errorf("%w: the game never calls Interpolator.Tick; call it right after World.Step, at both ends", ErrConfig)

// Counters counts what an Interpolator did.
type Counters struct {
	Samples uint64 // values received, without each actor's first
	Rests   uint64 // of these, the ones after a rest
	Jumps   uint64 // of these, the ones after a teleport
	Draws   uint64 // calls of At that interpolated
	Late    uint64 // of these, the ones for which a value was late: the actor stood still though it moved
	Rewinds uint64
	Clamped uint64 // of these, the ones whose claim had to be limited
}

// Interpolator keeps the past values of a world's actors, at either end. It belongs to the world's goroutine.
type Interpolator struct {
	Counters Counters

	cfg     Config
	world   *actorrep.World
	scratch sample
	classes map[reflect.Type]*class
	tracks  map[*actorrep.Base]*track
	list    []*track // the same
	many    int      // length of list at which the next track sweeps it
	now     time.Duration
	ticked  bool
	told    bool // the game was told that it never calls Tick

	// On a client.
	timeline         *interpolation.Timeline
	heard, heardAt   time.Duration // World.ServerTime in the last Tick, and when it last changed
	came             [maxCame]time.Duration
	nCame            int           // times of the values received since the last Tick
	shown            time.Duration // server time that is drawn, before an actor's reach * interval
	shows            bool
	loss             float64
	packetsKnown     float64 // number of packets that loss is the average of
	received, missed uint64  // packets
	reach            float64

	// On a server.
	history *rewind.History[*Past]
	rewound rewound
	fill    func(add func(id rewind.ID, p *Past) error)

	explained []explained // in the order of World.Peers
}

// class is an interpolated class.
type class struct {
	plan     *plan
	typical  time.Duration // interval of the actor that was sampled last
	smooth   time.Duration // typical, smoothed
	hitboxes func(p *Past, dst []rewind.Capsule) []rewind.Capsule
	spare    []*track
}

func (c *class) interval() time.Duration {
	if c.typical == 0 {
		return firstInterval
	}
	return c.typical
}

// New returns an Interpolator for a world's actors. Make it, and Register its classes, before the first connection.
func New(w *actorrep.World, cfg Config) (*Interpolator, error) {
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 500 * time.Millisecond
	}
	if cfg.MaxRewind == 0 {
		cfg.MaxRewind = 400 * time.Millisecond
	}
	if cfg.MaxDelay < 0 || cfg.MaxDelay > maxDelay {
		return nil, fmt.Errorf("%w: MaxDelay is %v; give up to %v", ErrConfig, cfg.MaxDelay, maxDelay)
	}
	in := &Interpolator{cfg: cfg, world: w, classes: map[reflect.Type]*class{}, tracks: map[*actorrep.Base]*track{}, loss: firstLoss, packetsKnown: firstPackets}
	in.reach = reachFor(in.loss)
	var err error
	if in.history, err = rewind.New(rewind.Config[*Past]{
		Lerp:        func(a, _ *Past, _ float64) *Past { return a }, // Rewind's poses are interpolated already
		Hitboxes:    func(_ rewind.ID, p **Past, dst []rewind.Capsule) []rewind.Capsule { return (*p).class.hit(*p, dst) },
		MaxRewind:   cfg.MaxRewind,
		MaxEntities: maxActors,
	}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	in.fill = in.fillView
	if err := in.restart(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	w.OnValues(in.values)
	return in, nil
}

const (
	maxDelay  = 2 * time.Second
	maxActors = 1 << 16
	// firstLoss is the share of lost packets that is assumed at first.
	firstLoss = 0.01
	// lossSpan is the number of packets that the loss is averaged over. It starts as if firstPackets had arrived.
	lossSpan     = 200
	firstPackets = 20
	// lateShare is the share of draws that may find a value missing.
	lateShare = 0.004
	// maxReach is the largest reach.
	maxReach = 8
	// reachSlew is how much reach changes at most, a second.
	reachSlew = 0.5
	// maxCame is how many times of values are kept apart in one Tick.
	maxCame = 32
	// strange is how far the server's time may be from the expected one; beyond it there is another server, or a replay
	// was moved.
	strange = time.Second
)

// reachFor is the reach at which at most lateShare of the draws find a value missing: losing that many packets in a row
// is as rare.
func reachFor(loss float64) float64 {
	if loss <= lateShare {
		return 1
	}
	return min(math.Ceil(math.Log(lateShare)/math.Log(min(loss, 0.9))), maxReach)
}

// restart forgets everything received.
func (in *Interpolator) restart() (err error) {
	in.heard, in.shows, in.nCame = 0, false, 0
	for _, t := range in.list {
		t.begin(t.actor, t.class)
	}
	in.timeline, err = interpolation.NewTimeline(interpolation.Config{LatenessOnly: true, Quantile: 0.995, Window: 256, MaxDelay: in.cfg.MaxDelay,
		InitialDelay: min(100*time.Millisecond, in.cfg.MaxDelay)})
	return err
}

// values stores an actor's current values as a sample.
func (in *Interpolator) values(a actorrep.Actor) {
	b := baseOf(a)
	t := in.tracks[b]
	switch {
	case t == nil:
		c := in.classes[reflect.TypeOf(a)]
		if c == nil {
			return
		}
		t = in.track(a, c)
	case t.guid != b.GUID(): // destroyed, and the struct spawned again
		t.begin(a, t.class)
	}
	at, ok := b.ServerTime()
	if !ok {
		if !t.any {
			t.class.plan.load(pointer(a), &t.last)
			t.came = in.now
		}
		return
	}
	if !in.world.IsServer() && in.nCame < maxCame && (in.nCame == 0 || at > in.came[in.nCame-1]) {
		in.came[in.nCame] = at
		in.nCame++
	}
	_, missed := in.packets()
	if before := in.now - t.came; !t.any && t.came > 0 && before > 0 && before < at {
		in.scratch = t.last
		t.sample(at-before, &in.scratch, missed, in.reach, 0, &in.Counters)
	}
	t.class.plan.load(pointer(a), &in.scratch)
	t.sample(at, &in.scratch, missed, in.reach, in.opening(), &in.Counters)
}

// opening is how long it takes on a client until the server sends an actor's next values behind its first: these are acked before, and may be lost once.
func (in *Interpolator) opening() time.Duration {
	if c, ok := in.world.Conn().(interface{ RTT() time.Duration }); ok {
		return 2 * c.RTT()
	}
	return 0
}

// track begins the past of an actor. It reuses the memory of a gone one.
func (in *Interpolator) track(a actorrep.Actor, c *class) *track {
	if len(in.list) >= max(in.many, sweepAt) {
		in.sweep()
		in.many = 2 * len(in.list)
	}
	var t *track
	if n := len(c.spare); n > 0 {
		t, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		buffer, err := interpolation.NewBuffer(interpolation.BufferConfig[sample]{Lerp: c.plan.between, MaxExtrapolation: -1, Capacity: samples})
		if err != nil {
			panic(err) // the config is ours
		}
		t = &track{buffer: buffer}
	}
	t.begin(a, c)
	in.tracks[t.base] = t
	in.list = append(in.list, t)
	return t
}

// sweepAt is the smallest many.
const sweepAt = 64

// sweep forgets actors that are gone.
func (in *Interpolator) sweep() {
	kept := in.list[:0]
	for _, t := range in.list {
		if t.there(in.world) {
			kept = append(kept, t)
			continue
		}
		delete(in.tracks, t.base)
		t.class.spare = append(t.class.spare, t)
		t.actor, t.base = nil, nil
	}
	clear(in.list[len(kept):])
	in.list = kept
}

// samples is how many samples an actor keeps: 0.8 s at 60 a second.
const samples = 48

// packets is how many packets the client's connection received and missed so far.
func (in *Interpolator) packets() (received, missed uint64) {
	if c, ok := in.world.Conn().(interface{ InPackets() (uint64, uint64) }); ok {
		return c.InPackets()
	}
	return 0, 0
}

// Tick advances the time by a frame. Call it right after World.Step, at both ends, with the same time. In a replay pass
// Replay.Position, so that it is right at any speed.
func (in *Interpolator) Tick(now time.Duration) {
	dt := now - in.now
	if !in.ticked {
		dt = 0
	}
	dt = min(max(dt, 0), time.Second)
	if !in.world.IsServer() {
		in.listen(now, dt)
	} else {
		in.measure(now)
	}
	in.now, in.ticked = now, true
	for _, c := range in.classes {
		c.smooth = follow(cmp.Or(c.smooth, c.interval()), c.interval(), dt)
	}
	in.sweep()
	for _, t := range in.list {
		t.tick(dt)
	}
}

// manyGaps is how many of an actor's values must have come for Tick to have been forgotten: a second's, at 60 a second.
const manyGaps = 60

// forgotten tells the world's Failed, once, when values of t have come for long but the game never called Tick.
func (in *Interpolator) forgotten(t *track) {
	if t != nil && t.nGaps >= manyGaps && !in.told {
		in.told = true
		report(in.world, errNoTick)
	}
}

// listen learns from what has arrived, and sets the time that is drawn.
func (in *Interpolator) listen(now, dt time.Duration) {
	received, missed := in.packets()
	if received < in.received || missed < in.missed { // another connection
		in.received, in.missed = received, missed
	}
	if n := float64(received - in.received + missed - in.missed); n > 0 {
		share := float64(missed-in.missed) / n
		in.packetsKnown = min(in.packetsKnown+n, lossSpan)
		in.loss += (share - in.loss) * min(n/in.packetsKnown, 1)
		in.received, in.missed = received, missed
	}
	most := reachSlew * dt.Seconds()
	in.reach += min(max(reachFor(in.loss)-in.reach, -most), most)

	if at, ok := in.world.ServerTime(); ok && at != in.heard {
		if off := at - in.heard - max(now-in.heardAt, 0); in.shows && (off > strange || off < -strange) {
			_ = in.restart() // the config was right before
		}
		in.heard, in.heardAt = at, now
		for _, one := range in.came[:in.nCame] { // values held up behind a lost packet arrive together: each was missed
			if one < at {
				in.timeline.Missed(in.now, one)
			}
		}
		in.timeline.Arrived(now, at)
	}
	in.nCame = 0
	in.shown, in.shows = in.timeline.Shown(now)
}

// Delay is how far behind the newest server time that can have arrived a frame shows the world, without an actor's reach
// * interval.
func (in *Interpolator) Delay() time.Duration { return in.timeline.Delay() }

// Reach is how many of its intervals an actor is shown behind that: 1 without loss, more with more loss.
func (in *Interpolator) Reach() float64 { return in.reach }
