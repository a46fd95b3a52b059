package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// RedialConfig is the settings of a Redialer.
type RedialConfig struct {
	// Dial begins a dial, as driver.Dial does, with a fresh token, and with a world of its own where there are actors. The driver's
	// Joined and Closed tell the game as always. A nil driver without an error is not yet: the token is on its way, and Dial is
	// called again in the next tick. An error counts as a dial that failed. Needed.
	Dial func() (*driver.Driver, error)
	// Silence is how long nothing was heard of the server when another dial begins beside the connection; where packets are few, three
	// times the longest time between two in the last seconds, if that is more. Default 300 ms, so that in a game that sends at 10 Hz or more
	// a change of networks is over within a second.
	Silence time.Duration
	// Pause is between a dial that failed and the next, when nobody answered or Dial gave an error. After a refusal it is twice as long
	// each time, up to MaxPause. Default 250 ms and 5 s.
	Pause, MaxPause time.Duration
	// GiveUp says which ends are for good, of a connection or a dial, by the CloseResult's Err or Dial's error. Default driver.ErrBanned, ErrVersion,
	// ErrKicked and ErrReplaced, ErrLeft, and settings that can't work: netconn.ErrConfig, driver.ErrNoToken and netcode.ErrTokenReused.
	GiveUp func(err error) bool
	// Failed is told of every end that another dial follows. May be nil.
	Failed func(why error)
}

// Redialer is a client that dials again when its connection is silent or has ended. Tick it as one would a driver; it belongs to
// one goroutine.
type Redialer struct {
	cfg   RedialConfig
	tick  time.Time     // the last one's
	now   time.Duration // since the first tick; it doesn't go back when the clock is set
	conn  dialed        // joined last; without a driver when it has ended
	next  dialed        // under way
	gaps  gaps          // between what conn hears
	began time.Duration // when that was
	at    time.Duration // when the next dial may begin
	pause time.Duration
	hurry bool // Redial was called
	// hurried is that the dial under way is Redial's: it goes on though the connection is heard.
	hurried bool
	err     error // why no dial is made any more
	// switchAt is when the connection of a dial that has joined stands for the one before at the latest, while switching.
	switchAt  time.Duration
	switching bool
}

// dialed is a driver and its connection, nil until the handshake is done.
type dialed struct {
	driver *driver.Driver
	conn   *driver.Conn
}

func (d *dialed) dispatch(now time.Time) {
	if d.driver != nil {
		d.driver.TickDispatch(now)
		d.look()
	}
}

// look notes the connection: the driver forgets it when it ends.
func (d *dialed) look() {
	if d.driver != nil && d.conn == nil {
		d.conn = d.driver.Server()
	}
}

// ended reports whether there is nothing more to come of it.
func (d *dialed) ended() bool {
	return d.driver.Err() != nil || d.conn != nil && d.conn.Closed()
}

// NewRedialer returns one that dials in its first tick, or what is wrong with its settings.
func NewRedialer(cfg RedialConfig) (*Redialer, error) {
	switch {
	case cfg.Dial == nil:
		return nil, fmt.Errorf("%w: Dial is needed", ErrConfig)
	case cfg.Silence < 0 || cfg.Pause < 0 || cfg.MaxPause < 0:
		return nil, fmt.Errorf("%w: Silence %v, Pause %v and MaxPause %v must be positive, or 0 for the default", ErrConfig, cfg.Silence, cfg.Pause, cfg.MaxPause)
	}
	cfg.Silence, cfg.Pause = cmp.Or(cfg.Silence, 300*time.Millisecond), cmp.Or(cfg.Pause, 250*time.Millisecond)
	cfg.MaxPause = max(cfg.Pause, cmp.Or(cfg.MaxPause, 5*time.Second))
	if cfg.GiveUp == nil {
		cfg.GiveUp = givesUp
	}
	return &Redialer{cfg: cfg}, nil
}

func givesUp(err error) bool {
	return slices.ContainsFunc(forGood, func(e error) bool { return errors.Is(err, e) })
}

var forGood = []error{driver.ErrBanned, driver.ErrVersion, driver.ErrKicked, driver.ErrReplaced, ErrLeft, netconn.ErrConfig, driver.ErrNoToken, netcode.ErrTokenReused}

// Driver is that of the connection that joined last, or before there is one of the dial under way; nil between dials.
func (r *Redialer) Driver() *driver.Driver {
	if r.conn.driver != nil && !r.switching {
		return r.conn.driver
	}
	return r.next.driver
}

// Err is why no further dial is made, nil until then: what GiveUp was for, or ErrLeft.
func (r *Redialer) Err() error { return r.err }

// Redial begins a dial at the next tick, whatever the connection is like: the machine has changed networks. It takes the place of a dial under way
// that nobody has answered for Pause, and comes after one that somebody has.
func (r *Redialer) Redial() { r.hurry = true }

// TickDispatch ticks the connection and the dial under way, and begins one when it is time.
func (r *Redialer) TickDispatch(now time.Time) {
	if !r.tick.IsZero() {
		r.now += max(now.Sub(r.tick), 0)
	}
	r.tick = now
	r.conn.dispatch(now)
	if r.next.driver != nil && !r.switching && r.next.driver.Counters.DatagramsIn == 0 && (r.hurry && r.now >= r.began+r.cfg.Pause || r.needless()) {
		r.next.end() // nobody has answered the dial: the server hasn't replaced the connection
	}
	r.next.dispatch(now)
	if r.err == nil {
		r.lookAtDial()
		r.lookAtConn()
	}
	if r.err == nil && r.next.driver == nil && r.wants() {
		r.dial()
	}
}

// needless reports whether the connection is heard again, so that the dial under way isn't needed.
func (r *Redialer) needless() bool {
	return r.conn.driver != nil && !r.hurried && !r.conn.ended() && !r.silent()
}

// TickFlush lets both send what was written.
func (r *Redialer) TickFlush(now time.Time) {
	for _, d := range []*dialed{&r.conn, &r.next} {
		if d.driver != nil {
			d.driver.TickFlush(now)
			d.look()
		}
	}
}

// lookAtDial sees what has become of the dial under way.
func (r *Redialer) lookAtDial() {
	d := &r.next
	switch {
	case d.driver == nil:
	case d.ended():
		r.switching = false
		r.failed(d.end())
	case d.conn != nil && d.conn.Joined():
		r.joined()
	}
}

// lookAtConn sees what has become of the connection.
func (r *Redialer) lookAtConn() {
	switch {
	case r.conn.driver == nil:
	case r.conn.ended():
		why := r.conn.end()
		if r.next.driver == nil || r.leaves(why) {
			r.failed(why)
		}
	case r.leaving():
		r.drop()
	default:
		r.gaps.note(r.now, r.conn.conn.Silence())
	}
}

// leaving reports whether the game is closing the connection: it wants no other one, unless that has joined already.
func (r *Redialer) leaving() bool {
	return r.conn.driver != nil && r.conn.conn.Closing() && !r.switching
}

// leaves reports whether the end of the connection is that of the dial under way, too. Being replaced is that dial's own doing.
func (r *Redialer) leaves(why error) bool {
	return !r.switching && r.cfg.GiveUp(why) && !errors.Is(why, driver.ErrReplaced)
}

// drop ends the dial under way.
func (r *Redialer) drop() {
	if r.next.driver != nil {
		r.next.end()
	}
	r.hurry, r.switching = false, false
}

// joined goes on with a dial's connection, once the server knows that it has joined: the goodbye of the one before could overtake that, and
// the player be taken for gone.
func (r *Redialer) joined() {
	if r.conn.driver != nil {
		if !r.switching {
			r.switching, r.switchAt = true, r.now+switchTime
		}
		if r.next.conn.Table().Unacked() > 0 && r.now < r.switchAt {
			return
		}
		r.conn.end()
	}
	r.conn, r.next, r.gaps, r.pause, r.switching = r.next, dialed{}, gaps{}, 0, false
}

// switchTime is how long that is waited for, as a game may always have something that isn't acked.
const switchTime = time.Second

// silent reports whether the connection has been for too long: longer than usual, where packets are few.
func (r *Redialer) silent() bool {
	return r.conn.conn.Silence() >= max(r.cfg.Silence, usualGaps*r.gaps.longest())
}

// usualGaps is how many times the longest usual gap a silence lasts before a dial: two packets in a row may be lost.
const usualGaps = 3

// gaps is how far apart packets were heard in the last few seconds.
type gaps struct {
	silence        time.Duration
	before, latest time.Duration // the longest in the last gapTime that is over, and in the present one
	until          time.Duration
}

// gapTime is how long the longest gap counts, at least.
const gapTime = 5 * time.Second

// note takes the silence of a tick.
func (g *gaps) note(now, silence time.Duration) {
	if now >= g.until {
		g.before, g.latest, g.until = g.latest, 0, now+gapTime
	}
	if silence < g.silence {
		g.latest = max(g.latest, g.silence)
	}
	g.silence = silence
}

func (g *gaps) longest() time.Duration { return max(g.before, g.latest) }

// wants reports whether it is time for a dial.
func (r *Redialer) wants() bool {
	return !r.leaving() && (r.hurry || (r.conn.driver == nil || r.silent()) && r.now >= r.at)
}

func (r *Redialer) dial() {
	d, err := r.cfg.Dial()
	if err == nil && d == nil {
		return
	}
	r.hurried, r.hurry = r.hurry, false
	switch {
	case r.err != nil: // Dial has closed the Redialer
		if d != nil {
			_ = d.Close()
		}
		return
	case err != nil:
		r.failed(err)
		return
	}
	r.next.driver, r.began = d, r.now
	d.TickDispatch(r.tick)
	r.next.look()
}

// failed waits for the next dial, or gives up.
func (r *Redialer) failed(why error) {
	if left := errors.Is(why, ErrLeft); r.cfg.GiveUp(why) && (left || r.conn.driver == nil) {
		if r.drop(); r.conn.driver != nil {
			r.conn.end()
		}
		r.err = why
		return
	}
	if errors.Is(why, driver.ErrDenied) {
		r.pause = min(max(2*r.pause, r.cfg.Pause), r.cfg.MaxPause)
	} else {
		r.pause = r.cfg.Pause
	}
	r.at = r.now + r.pause
	if r.cfg.Failed != nil {
		r.cfg.Failed(why)
	}
}

// end closes the driver of a connection or dial that is over, and says why it was.
func (d *dialed) end() error {
	err := d.driver.Err()
	if d.conn != nil {
		r := d.conn.Result()
		err = errors.Join(fmt.Errorf("session: the connection ended: %v", r), r.Err, err)
		if r.Code == netconn.ClosedByUs && r.Err == nil { // not for a login that took too long
			err = ErrLeft
		}
	}
	_ = d.driver.Close()
	*d = dialed{}
	return err
}

// ErrLeft: the game closed its connection, or the Redialer.
var ErrLeft = errors.New("session: the game closed the connection")

// Close ends the connection and the dial under way, at once, as driver.Driver's Close does.
func (r *Redialer) Close() error {
	if r.err == nil {
		r.err = ErrLeft
	}
	var errs []error
	for _, d := range []*dialed{&r.conn, &r.next} {
		if d.driver != nil {
			errs = append(errs, d.driver.Close())
		}
		*d = dialed{}
	}
	return errors.Join(errs...)
}
