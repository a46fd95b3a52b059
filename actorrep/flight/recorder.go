package flight

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// Config configures a Recorder. The zero value has the defaults. New returns ErrConfig for a value out of range, and for a folder that
// isn't there.
type Config struct {
	// Keep is how long what is recorded is kept, while MaxBytes has room. Default 1 minute, which 0 is too; any positive time.
	Keep time.Duration
	// MaxBytes bounds the memory for what is kept, in bytes: a quarter of it for the world, the rest for packets and what they carried. When it is
	// full, the oldest is dropped before it is Keep old. Default 64 MiB, which 0 is too; 1 MiB or more.
	MaxBytes int
	// Save has the recorder save films to a folder, when the game asks for one and at events. Default: none are saved.
	Save Saving
}

// Errors.
var (
	// ErrConfig is wrapped by New's errors.
	ErrConfig = errors.New("flight: settings that no recorder can have")
	// ErrFull ends the recording of the world: what it holds between two checkpoints, 5 s, is larger than a quarter of MaxBytes.
	ErrFull = errors.New("flight: 5 s of the world are larger than a quarter of MaxBytes")
)

// checkpoints is the time between those of the recording: a film begins at one.
const checkpoints = 5 * time.Second

// Recorder keeps the last minutes of a server or of a client. It is a nettrace.Sink, and belongs to the driver's goroutine.
type Recorder struct {
	world *actorrep.World
	// driver is the one whose times the world should have; may be nil. apart counts the Steps in a row that had others.
	driver *driver.Driver
	apart  int
	rec    *replay.Recorder // of a server
	shown  *shown           // of a client
	pool   pool
	tape   tape
	log    log
	conn   channel.Conn // of id
	id     uint32
	ended  bool // by Close
	saver  saver
	// names is the procedures that were called, callOf their places in it.
	names  []procedure
	callOf map[procedure]uint64
	// called is the last one of these.
	called   procedure
	calledAt uint64
	// unsaid is the units of actors that were noted as set without the world knowing.
	unsaid map[netguid.GUID]layout.Mask
	// views is where connections look from, by ID. step numbers the Steps.
	views map[uint32]*view
	waits waits
	step  uint64
	// heard is when a packet last came from each connection that began and hasn't ended, by ID.
	heard   map[uint32]time.Duration
	scratch []byte
}

// view is where a connection looks from, as it was noted. at is when, step the last one in which the connection was there.
type view struct {
	sight
	at   time.Duration
	step uint64
	lost bool // its view target was destroyed, and it has been given nothing since
}

// sight is none, a place, or an actor's.
type sight struct {
	of      uint64
	actor   netguid.GUID
	x, y, z float64
}

// The kinds of views.
const (
	viewNone = iota
	viewPlace
	viewActor
)

// procedure is one of a class.
type procedure struct{ class, name string }

var (
	observe = bridge.Observe.(func(w *actorrep.World, o bridge.Observer))
	silent  = bridge.Silent.(func(w *actorrep.World) func() (*actorrep.World, error))
)

// New begins to record a world and d's packets. Call it on the goroutine that ticks both, or before they are ticked. A client's game also
// calls Look in each frame. d may be nil in a game with a network of its own, which calls Trace itself. Make one Recorder for a world: a
// second one takes over the first one's records and calls. Errors: ErrConfig, or replay.Record's.
func New(w *actorrep.World, d *driver.Driver, cfg Config) (*Recorder, error) {
	if cfg.Keep == 0 {
		cfg.Keep = time.Minute
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.Keep < 0 || cfg.MaxBytes < 1<<20 {
		return nil, fmt.Errorf("%w: Keep %v must be positive, MaxBytes %d at least 1 MiB", ErrConfig, cfg.Keep, cfg.MaxBytes)
	}
	if err := cfg.Save.check(); err != nil {
		return nil, err
	}
	r := &Recorder{world: w, driver: d, saver: newSaver(cfg.Save), unsaid: map[netguid.GUID]layout.Mask{}, views: map[uint32]*view{}, heard: map[uint32]time.Duration{}, callOf: map[procedure]uint64{}}
	r.waits = waits{of: map[uint32]*connWaits{}, refused: -1}
	pages := cfg.MaxBytes / pageBytes
	r.log = log{pool: &r.pool, max: pages, keep: cfg.Keep}
	if w.IsServer() {
		r.tape = tape{pool: &r.pool, max: pages / 4, keep: cfg.Keep, began: func() time.Duration { return w.Now() - r.rec.Duration() }}
		r.log.max -= pages / 4
		var err error
		if r.rec, err = replay.Record(w, &r.tape, replay.Config{Rate: -1, Checkpoints: checkpoints, Everything: true}); err != nil {
			return nil, err
		}
	} else {
		r.shown = newShown(w)
		r.log.dropped = r.shown.settle
	}
	observe(w, observer{r})
	if d != nil {
		d.AddTrace(r)
	}
	return r, nil
}

// Err is why the recording of a server's world ended, such as ErrFull, or nil. What was recorded until then is kept, and films show the
// error.
func (r *Recorder) Err() error {
	if r.rec == nil {
		return nil
	}
	return r.rec.Err()
}

// Bytes is the memory in use, for what is kept and for films that are in use. Without films in use it is at most Config.MaxBytes.
func (r *Recorder) Bytes() int { return r.pool.all * pageBytes }

// Close ends the recording. A film that is due is saved now, and Close waits until all films are written and Config.Save.Saved has
// returned. What is kept can still be taken.
func (r *Recorder) Close() error {
	r.saveRest()
	r.ended = true
	observe(r.world, nil)
	if r.rec == nil {
		return nil
	}
	return r.rec.Close()
}

// Trace implements nettrace.Sink.
func (r *Recorder) Trace(e *nettrace.Event) {
	if r.ended {
		return
	}
	switch e.Kind {
	case nettrace.PacketSent:
		r.log.begin(kindSent, e.At, e.Conn).uint(uint64(e.PacketID)).uint(e.A)
	case nettrace.PacketReceived:
		if _, open := r.heard[e.Conn]; open { // one that has ended may still be answered
			r.heard[e.Conn] = e.At
		}
		if r.shown != nil {
			r.log.begin(kindReceived, e.At, e.Conn).uint(uint64(e.PacketID))
		}
	case nettrace.PacketAcked:
		r.log.begin(kindAcked, e.At, e.Conn).uint(uint64(e.PacketID))
	case nettrace.PacketNak:
		r.log.begin(kindLost, e.At, e.Conn).uint(uint64(e.PacketID))
	case nettrace.BunchSent:
		if e.A&nettrace.Reliable != 0 {
			r.log.begin(kindBunch, e.At, e.Conn).uint(uint64(e.PacketID)).uint(uint64(e.ChIndex)).
				uint(uint64(e.ChSequence)<<2 | (e.A&nettrace.Close)/nettrace.Close<<1 | (e.A&nettrace.Open)/nettrace.Open)
		}
	case nettrace.ConnOpened:
		r.heard[e.Conn] = e.At
		r.log.begin(kindBegan, e.At, e.Conn).uint(0)
	case nettrace.ConnClosed:
		code := netconn.CloseCode(e.A)
		ago := uint64(0)
		if at, ok := r.heard[e.Conn]; ok {
			ago = uint64(max(e.At-at, 0)/time.Microsecond) + 1
			delete(r.heard, e.Conn)
		}
		r.log.begin(kindEnded, e.At, e.Conn).uint(uint64(code)).uint(ago)
		if r.saver.cfg.Left && left(code) {
			_ = r.trigger(fmt.Sprintf("connection %d: %v", e.Conn, code), e.Conn, 0) // as many films as may be are there
		}
	}
}

// observer is told what the world sends.
type observer struct{ *Recorder }

// Stepping saves a film that is due.
func (r observer) Stepping() {
	r.saveDue(r.world.Now())
	r.checkClock(r.world.Now())
	r.look()
	r.waits.noted = 0
}

// A viewpoint that moves is noted at most once in viewEvery, and one that stands again after checkpoints: a log has only its last part.
const viewEvery = 100 * time.Millisecond

// look notes where connections look from.
func (r *Recorder) look() {
	now, n := r.world.Now(), 0
	r.step++
	for p := range r.world.Peers {
		id := uint32(0)
		if !p.IsReplay() {
			id = r.idOf(p.Conn())
		}
		if id == 0 {
			continue
		}
		n++
		v := r.views[id]
		if v == nil {
			v = &view{at: -checkpoints}
			r.views[id] = v
		}
		v.step = r.step
		var s sight
		x, y, z, ok := p.Viewpoint()
		target := p.ViewTarget()
		switch _, located := target.(actorrep.Located); {
		case located && ok:
			s.of, s.actor = viewActor, guidOf(target)
		case ok:
			s = sight{of: viewPlace, x: x, y: y, z: z}
		}
		if now-v.at < checkpoints && (s == v.sight || now-v.at < viewEvery && s.of == v.of) {
			continue
		}
		switch {
		case v.of == viewActor && s.of == viewPlace && r.world.Find(v.actor) == nil:
			v.lost = true
			r.note(id, v.actor, fmt.Sprintf("its view target, %v, was destroyed: it looks from where that was, until SetViewTarget or SetViewpoint", v.actor))
		case v.lost && s.of == viewActor:
			v.lost = false
			r.note(id, s.actor, fmt.Sprintf("its view target is %v now", s.actor))
		case v.lost && s != v.sight:
			v.lost = false
			r.note(id, 0, fmt.Sprintf("it looks from (%.4g, %.4g, %.4g) now: SetViewpoint", s.x, s.y, s.z))
		}
		v.sight, v.at = s, now
		r.scratch = appendNumber(append(r.scratch[:0], '['), s.x)
		r.scratch = appendNumber(append(r.scratch, ','), s.y)
		r.scratch = append(appendNumber(append(r.scratch, ','), s.z), ']')
		r.log.begin(kindView, now, id).uint(s.of).uint(uint64(s.actor)).uint(0).bytes(r.scratch)
	}
	if len(r.views) > n {
		for id, v := range r.views {
			if v.step != r.step {
				delete(r.views, id)
				r.forgetWaits(id)
			}
		}
	}
}

// A tick is at most maxApart after the one before, so a Step that has the driver's Time isn't further away from it. When more than someSteps in a row are, the game's
// clock is another.
const (
	maxApart  = time.Second
	someSteps = 10
)

// checkClock notes, once, that the times of Steps aren't the driver's: values and packets then are at different times in a film.
func (r *Recorder) checkClock(now time.Duration) {
	switch {
	case r.driver == nil || r.apart > someSteps:
	case (now - r.driver.Now()).Abs() <= maxApart:
		r.apart = 0
	default:
		if r.apart++; r.apart > someSteps {
			r.note(0, 0, fmt.Sprintf("the world's time is %v and the driver's %v: give it the driver's Time, or values and packets aren't at the same times in a film",
				now.Round(time.Millisecond), r.driver.Now().Round(time.Millisecond)))
		}
	}
}

// Opening notes that an actor's channel opens.
func (r observer) Opening(conn channel.Conn, id netguid.GUID, ch uint32, units layout.Mask) {
	r.log.begin(kindOpening, r.world.Now(), r.idOf(conn)).uint(uint64(ch)).uint(uint64(id)).uint(units)
}

// Carried notes which values a reliable bunch has.
func (r observer) Carried(conn channel.Conn, ch uint32, sequence int64, units layout.Mask) {
	r.log.begin(kindCarried, r.world.Now(), r.idOf(conn)).uint(uint64(ch)).uint(uint64(sequence)).uint(units)
}

// Closing notes why an actor's channel is closed.
func (r observer) Closing(conn channel.Conn, ch uint32, reason channel.CloseReason) {
	r.log.begin(kindClosing, r.world.Now(), r.idOf(conn)).uint(uint64(ch)).uint(0).uint(uint64(reason))
}

// Sent notes a packet's records of changed values.
func (r observer) Sent(conn channel.Conn, packet int64, records []bridge.Sent) {
	r.log.records(r.world.Now(), r.idOf(conn), packet, records)
}

// Set notes that a client's world has set values that came.
func (r observer) Set(conn channel.Conn, id netguid.GUID, units layout.Mask) {
	r.log.records(r.world.Now(), r.idOf(conn), 0, []bridge.Sent{{Actor: id, Units: units}})
}

// The flags of a call in the log.
const (
	callReliable = 1 << iota
	callCame
	callName = iota // where its procedure's place begins
)

// Called notes a procedure's call.
func (r observer) Called(c bridge.Call) {
	if p := (procedure{c.Class, c.Procedure}); p != r.called { // mostly it is called again, on the next connection
		at, ok := r.callOf[p]
		if !ok {
			at = uint64(len(r.names))
			r.names, r.callOf[p] = append(r.names, p), at
		}
		r.called, r.calledAt = p, at
	}
	n := r.calledAt << callName
	if c.Reliable {
		n |= callReliable
	}
	if c.Came {
		n |= callCame
	}
	r.log.begin(kindCall, r.world.Now(), r.idOf(c.Conn)).uint(uint64(c.Packet)).uint(uint64(c.Actor)).uint(n).text(c.Refused)
}

// Corrected notes a correction. Sizes are kept in thousandths.
func (r observer) Corrected(conn channel.Conn, id netguid.GUID, size float64, off []string) {
	r.scratch = r.scratch[:0]
	for i, name := range off {
		if len(r.scratch)+len(name) > maxText-len(", …") {
			r.scratch = append(r.scratch, ", …"...)
			break
		}
		if i > 0 {
			r.scratch = append(r.scratch, ", "...)
		}
		r.scratch = append(r.scratch, name...)
	}
	r.log.begin(kindCorrected, r.world.Now(), r.idOf(conn)).uint(0).uint(uint64(id)).uint(thousandths(size)).bytes(r.scratch)
	if most := r.saver.cfg.Correction; most > 0 && size > most {
		_ = r.trigger(fmt.Sprintf("%v: a correction of %.4g times the tolerance", id, size), r.idOf(conn), id) // as many films as may be are there
	}
}

// maxSize is a size that no number has.
const maxSize = 1e12

func thousandths(size float64) uint64 {
	if n := math.Ceil(1000 * size); n < maxSize {
		return uint64(n)
	}
	return maxSize
}

// maxUnsaid bounds the actors of which unsaid is known.
const maxUnsaid = 1024

// Unsaid notes, once, what the game has set without the world knowing.
func (r observer) Unsaid(id netguid.GUID, class string, l *layout.Layout, units layout.Mask, sleeps bool) {
	switch {
	case units == r.unsaid[id]:
		return
	case units == 0:
		delete(r.unsaid, id)
		r.log.begin(kindUnsaid, r.world.Now(), 0).uint(0).uint(uint64(id)).uint(0)
		return
	case len(r.unsaid) == maxUnsaid:
		clear(r.unsaid)
		r.log.begin(kindUnsaid, r.world.Now(), 0).uint(0).uint(0).uint(0) // of all
	}
	fresh := units &^ r.unsaid[id]
	r.unsaid[id] = units
	r.log.begin(kindUnsaid, r.world.Now(), 0).uint(0).uint(uint64(id)).uint(units)
	var names []string
	var sets, inPlace bool
	for _, f := range l.Fields {
		if f.Mask&fresh != 0 {
			names = append(names, f.Name)
			if t := l.Type.FieldByIndex(f.Index).Type; reflect.PointerTo(t).Implements(pusher) { // a Var
				sets, inPlace = true, inPlace || t.Field(0).Type.Kind() == reflect.Slice
			}
		}
	}
	if len(names) == 0 {
		return
	}
	what := "call its setter, or the actor's MarkDirty"
	switch {
	case sleeps:
		what = "it sleeps; call FlushDormancy"
	case inPlace:
		what = "it changed the slice that Get returned; call Set afterwards, or the actor's MarkDirty"
	case sets:
		what = "call Set, or the actor's MarkDirty"
	}
	r.note(0, id, fmt.Sprintf("%s %v: the game set %s, and nobody is told: %s", class, id, strings.Join(names, ", "), what))
}

// idOf is a connection's id, 0 when it has none.
func (r *Recorder) idOf(conn channel.Conn) uint32 {
	if conn != r.conn {
		r.conn, r.id = conn, 0
		if c, ok := conn.(interface{ ID() uint32 }); ok {
			r.id = c.ID()
		}
	}
	return r.id
}

// Note adds a text to the time line at the time of the last Step, for example a checker's verdict, or a shot. conn is the id of the
// connection that it is about; 0 is none. A text is cut after 200 bytes.
func (r *Recorder) Note(conn uint32, text string) {
	r.note(conn, 0, text)
}

func (r *Recorder) note(conn uint32, about netguid.GUID, text string) {
	r.log.begin(kindNote, r.world.Now(), conn).uint(uint64(about)).text(text[:min(len(text), maxText)])
}

// Take returns what is kept now. It copies nothing: a film holds its memory until nothing refers to it, and the recorder then allocates up
// to as much again. So keep few films at a time.
func (r *Recorder) Take() *Film {
	f := &Film{log: take(r.log.pages), dropped: r.log.began, names: r.names, values: maxValues, entries: maxEntries, refused: r.waits.refused}
	if r.shown != nil {
		f.shown = r.shown.copy()
		return f
	}
	f.culls = map[netguid.GUID]float64{}
	for a := range r.world.All {
		if d := a.(interface{ CullDistance() float64 }).CullDistance(); d > 0 && len(f.culls) < maxActors {
			f.culls[guidOf(a)] = d
		}
	}
	err := r.rec.Flush()
	f.world, f.tape = silent(r.world), r.tape.take()
	if err != nil && !errors.Is(err, replay.ErrEnded) {
		f.cut = err.Error()
	}
	return f
}
