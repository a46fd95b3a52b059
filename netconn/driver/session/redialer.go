package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/internal/silence"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// RedialConfig configures a Redialer.
type RedialConfig struct {
	// Dial begins a dial, for example with driver.Dial. Each one needs a fresh token and, if actors are replicated, a World of its own. The
	// driver's Joined and Closed callbacks are called as usual. Return a nil driver and a nil error while the token isn't there yet: Dial is
	// called again in the next tick. An error counts as a failed dial. Give both ends the same LoginTimeout, no longer than the server's Timeout: by its
	// own the client knows for how long the server waits while it loads a level. Give the client a longer Timeout than the server: one that times out first, as when
	// the server stands still or only the way back is dark, says so, and the server takes that for leaving: the player is gone. A token of several servers begins
	// with the player's own: while there is a connection, a dial that nobody has answered ends after 5 s, before it comes to the others if the token's Timeout is that
	// or more. Required.
	Dial func() (*driver.Driver, error)
	// Silence is how long nothing arrives from the server before another dial begins beside the connection. Where packets are rare it
	// is three times the longest time between two packets of the last seconds, if that is longer; a silence in which nobody answers a dial doesn't count, or
	// for half a second, if there was such a one in the last 10 s.
	// Default 300 ms: a game that sends at 10 Hz or more survives a change of networks within a second. At most a day.
	Silence time.Duration
	// Pause is the time between a failed dial and the next one, when nobody answered or Dial returned an error. After each refusal, each dial whose ends don't
	// understand each other, and each connection that ends, or that another one replaces though packets arrived on it, within MaxPause of joining, it doubles,
	// up to MaxPause. Defaults: 250 ms, and 5 s or Pause, if that is longer. At most a day; a MaxPause below Pause is an error.
	Pause, MaxPause time.Duration
	// GiveUp reports whether an end of a connection or dial is final, so that no other dial follows. err is the CloseResult's Err or Dial's
	// error. Default: driver.ErrBanned, ErrVersion, ErrKicked and ErrReplaced, ErrLeft, and wrong settings, which are netconn.ErrConfig,
	// driver.ErrNoToken and netcode.ErrTokenReused.
	GiveUp func(err error) bool
	// Failed is called with the reason of every end that another dial follows, but not of dials beside a connection that nobody answered. May be nil.
	Failed func(why error)
}

// Redialer is a client that dials again when its connection is silent or has ended. Call its TickDispatch and TickFlush like those of a
// driver. Use it in one goroutine.
type Redialer struct {
	cfg    RedialConfig
	tick   time.Time     // time of the last tick
	now    time.Duration // since the first tick; never goes back
	conn   dialed        // the connection that joined last; zero after its end
	next   dialed        // the dial in progress
	parked []dialed      // former connections that are dead, and aren't closed yet
	unsure time.Duration // when the server hadn't acked conn's Join, while some are parked
	gaps   silence.Gaps  // between packets that arrive on conn
	began  time.Duration // when next began
	heard  time.Duration // when something arrived for next, or it began
	in     uint64        // datagrams that had arrived for next by then
	// answered: a dial beside conn came so far that the server may have let it replace conn.
	answered bool
	since    time.Duration // when conn joined
	at       time.Duration // earliest time of the next dial
	pause    time.Duration
	hurry    bool // Redial was called
	// hurried: next was begun by Redial, and goes on even if packets arrive on conn again.
	hurried bool
	err     error         // why no more dials are made
	acked   time.Duration // when the server had acked that next has joined; 0 before
	// switching: next has joined and is about to replace conn.
	switching bool
}

// dialed is a driver and its connection, which is nil until the handshake is done.
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

// look stores the connection, because the driver forgets it when it ends.
func (d *dialed) look() {
	if d.driver != nil && d.conn == nil {
		d.conn = d.driver.Server()
	}
}

// ended reports whether the dial failed or its connection has ended.
func (d *dialed) ended() bool {
	return d.driver.Err() != nil || d.conn != nil && d.conn.Closed()
}

// NewRedialer returns a Redialer that dials in its first tick, or an error that wraps ErrConfig.
func NewRedialer(cfg RedialConfig) (*Redialer, error) {
	if cfg.Dial == nil {
		return nil, fmt.Errorf("%w: Dial is needed", ErrConfig)
	}
	cfg.Silence, cfg.Pause = cmp.Or(cfg.Silence, 300*time.Millisecond), cmp.Or(cfg.Pause, 250*time.Millisecond)
	cfg.MaxPause = cmp.Or(cfg.MaxPause, max(cfg.Pause, 5*time.Second))
	const day = 24 * time.Hour
	if err := setting.First(
		setting.Within(ErrConfig, "Silence", cfg.Silence, 1, day),
		setting.Within(ErrConfig, "Pause", cfg.Pause, 1, day),
		setting.Within(ErrConfig, "MaxPause", cfg.MaxPause, cfg.Pause, day)); err != nil {
		return nil, err
	}
	if cfg.GiveUp == nil {
		cfg.GiveUp = givesUp
	}
	return &Redialer{cfg: cfg}, nil
}

func givesUp(err error) bool {
	return slices.ContainsFunc(forGood, func(e error) bool { return errors.Is(err, e) })
}

var forGood = []error{driver.ErrBanned, driver.ErrVersion, driver.ErrKicked, driver.ErrReplaced, ErrLeft, netconn.ErrConfig, driver.ErrNoToken, netcode.ErrTokenReused}

// Driver returns the driver of the connection that joined last. If there is none, it returns that of the dial in progress, or nil.
func (r *Redialer) Driver() *driver.Driver {
	if r.conn.driver != nil && !r.switching {
		return r.conn.driver
	}
	return r.next.driver
}

// Err returns why no more dials are made: the error that GiveUp accepted, or ErrLeft. It is nil as long as dials are made.
func (r *Redialer) Err() error { return r.err }

// Redial begins a dial at the next tick although the connection isn't silent, for example because the machine has changed networks. A dial in
// progress that nobody has answered for Pause is ended first. One that was answered is finished first, unless nothing arrives on its connection for 5 s.
func (r *Redialer) Redial() { r.hurry = true }

// TickDispatch calls TickDispatch of the connection's driver and of the dial in progress. It begins a dial when one is due.
func (r *Redialer) TickDispatch(now time.Time) {
	before := r.now
	if !r.tick.IsZero() {
		r.now += max(now.Sub(r.tick), 0)
	}
	r.tick = now
	slept := r.now-before >= sleepTime
	r.conn.dispatch(now)
	if r.next.driver != nil && !r.switching && r.next.driver.Counters.DatagramsIn == 0 && (r.hurry && r.now >= r.began+r.cfg.Pause || r.needless()) {
		r.next.end() // nobody has answered the dial: the server hasn't replaced the connection
	}
	if c := r.next.driver; c != nil && c.Counters.DatagramsIn == 0 && c.Counters.DatagramsOut >= darkAfter && r.conn.driver != nil && r.silent() && r.now-r.began >= answerTime+r.conn.conn.RTT() {
		r.gaps.Dark() // where packets are rare a dial is answered
	}
	if r.next.driver != nil && !r.switching && r.now-r.heard >= sleepTime && (r.next.conn != nil || r.conn.driver != nil || slept) && !r.loads() {
		r.next.end() // the server may have given it up without this machine hearing of that, as when it slept
	}
	if r.leaving() {
		r.drop() // before next joins
	}
	if r.next.dispatch(now); r.next.driver != nil && r.next.driver.Counters.DatagramsIn != r.in {
		if r.in = r.next.driver.Counters.DatagramsIn; r.next.conn == nil || r.next.conn.Silence() == 0 { // a server that has given it up may ask for a handshake
			r.heard = r.now
		}
	}
	switch {
	case !r.switching || r.conn.driver == nil || r.conn.ended():
	case r.silent() || 2*r.conn.conn.Silence() >= sleepTime || slept:
		r.heard = r.now // the path is dark, or this machine stood still: that says nothing of the dial
	case r.now-r.heard >= sleepTime:
		r.switching = false
		r.next.end() // the server has given it up, and knows the connection
	}
	if r.switching && len(r.parked) < maxParked && r.conn.driver != nil && !r.conn.ended() && !r.next.ended() && min(r.conn.conn.Silence(), r.next.conn.Silence()) >= sleepTime {
		r.park()
	}
	r.answered = r.conn.driver != nil && (r.answered || r.next.conn != nil)
	if r.err == nil {
		r.lookAtDial()
		r.lookAtConn()
	}
	if len(r.parked) > 0 && r.known() {
		r.unpark()
	}
	if r.err == nil && r.next.driver == nil && r.wants() {
		r.dial()
	}
}

// sleepTime is how long after the last tick, or the last datagram of its connection, a dial in progress is of no use, since the server has given it up: a page in the background
// ticks once a minute. Where there is no connection at all the link has its own times: it may go on to the token's next server, while the player of a connection is kept by the first.
const sleepTime = 5 * time.Second

// answerTime, and a round trip, is how long a dial is answered in on a path that isn't dark.
const answerTime = 100 * time.Millisecond

// darkAfter is how many datagrams of a dial get no answer where a path is dark: one is lost on others, too.
const darkAfter = 3

// ackTime, and two round trips, is how long after its ack of a Join a server may say that it had given up the login by then: it acks what comes while it lingers, too.
const ackTime = 300 * time.Millisecond

// loads reports whether the game may be loading a level, or has done so since the last tick, before next joins: then nothing was heard because the game didn't tick. Beside a
// connection that counts for LoginLimit only: if the server has given up the dial, its Join is never acked.
func (r *Redialer) loads() bool {
	c := r.next.conn
	return c != nil && c.Welcome() != nil && c.Silence() < sleepTime && (r.conn.driver == nil || r.now-r.heard < r.next.driver.LoginLimit())
}

// needless reports whether packets arrive on the connection again, so that the dial in progress isn't needed.
func (r *Redialer) needless() bool {
	return r.conn.driver != nil && !r.hurried && !r.conn.ended() && !r.silent()
}

// TickFlush calls TickFlush of both drivers.
func (r *Redialer) TickFlush(now time.Time) {
	for _, d := range []*dialed{&r.conn, &r.next} {
		if d.driver != nil {
			d.driver.TickFlush(now)
			d.look()
		}
	}
}

// lookAtDial handles the end or success of the dial in progress.
func (r *Redialer) lookAtDial() {
	d := &r.next
	switch {
	case d.driver == nil:
	case d.ended():
		had := r.switching
		admitted := had && r.acked > 0
		r.switching = false
		answered := d.driver.Counters.DatagramsIn > 0
		why := d.end()
		if admitted && r.cfg.GiveUp(why) && r.conn.driver != nil {
			r.conn.end() // it was the connection already
		}
		r.failed(why, had || errors.Is(why, driver.ErrDenied) || broke(why))
		if answered && errors.Is(why, driver.ErrNoAnswer) {
			r.at = r.now // a server has given it up, as when this machine slept
		}
	case d.conn != nil && d.conn.Joined():
		r.joined()
	}
}

// lookAtConn handles the end or silence of the connection.
func (r *Redialer) lookAtConn() {
	switch {
	case r.conn.driver == nil:
	case r.conn.ended():
		timedOut := r.conn.conn.Result().Code == netconn.TimedOut
		why := r.conn.end()
		if timedOut {
			r.unpark() // they were dead before
		}
		switch {
		case r.err != nil: // Closed has closed the Redialer
		case r.next.driver == nil && r.answered && errors.Is(why, driver.ErrReplaced): // by a dial that has ended by now
			r.again(why, false)
		case r.next.driver == nil || r.leaves(why):
			r.failed(why, r.now-r.since < r.cfg.MaxPause)
		case errors.Is(why, driver.ErrReplaced): // by the dial in progress; it has heard that, so it was alive
			r.slow()
		}
	case r.leaving():
		r.drop()
	default:
		if r.now-r.since >= r.cfg.MaxPause && !r.silent() {
			r.pause = 0
		}
		r.gaps.Note(r.now, r.conn.conn.Silence())
	}
}

// leaving reports whether the game is closing the connection. Then no dial is made, unless one has joined already.
func (r *Redialer) leaving() bool {
	return r.conn.driver != nil && r.conn.conn.Closing() && !r.switching
}

// leaves reports whether the connection's end also ends the dial in progress. ErrReplaced doesn't: the dial itself caused it.
func (r *Redialer) leaves(why error) bool {
	return !r.switching && r.cfg.GiveUp(why) && !errors.Is(why, driver.ErrReplaced)
}

// drop ends the dial in progress.
func (r *Redialer) drop() {
	if r.next.driver != nil {
		r.next.end()
	}
	r.hurry, r.switching = false, false
}

// joined replaces the connection by the dial's, once the server knows that the dial has joined. Otherwise the former connection's close could
// arrive before the new one's Join, and the server would remove the player.
func (r *Redialer) joined() {
	if r.conn.driver != nil {
		r.switching = true
		if ch := r.next.conn.Channel(0); ch != nil && ch.NumOutRec() > 0 {
			return
		}
		if r.acked = cmp.Or(r.acked, r.now); r.now-r.acked < ackTime+2*r.next.conn.RTT() {
			return
		}
		if r.conn.conn.Silence() < r.now-r.began { // it was alive
			r.slow()
		}
		r.conn.end()
	}
	r.take()
}

// park has the dial that has joined be the connection though the server hasn't acked that, since both are dead, so that another dial begins. The former connection is
// closed once the server knows another: by its last words the server might take the player for one who leaves.
func (r *Redialer) park() {
	r.parked = append(r.parked, r.conn)
	r.take()
}

// maxParked bounds them. One more dial waits until the server knows a connection, or this end has timed out.
const maxParked = 4

// take has the dial be the connection.
func (r *Redialer) take() {
	r.conn, r.next, r.gaps, r.since, r.switching, r.answered = r.next, dialed{}, silence.Gaps{}, r.now, false, false
}

// known reports whether the server has acked the connection's Join, and hasn't said that it had given up the login by then.
func (r *Redialer) known() bool {
	if r.conn.driver == nil || r.switching {
		return false
	}
	if ch := r.conn.conn.Channel(0); ch == nil || ch.NumOutRec() > 0 {
		r.unsure = r.now
	}
	return r.now-max(r.unsure, r.since) >= ackTime+2*r.conn.conn.RTT() && r.conn.conn.Silence() < ackTime
}

// unpark closes what is parked.
func (r *Redialer) unpark() {
	parked := r.parked
	r.parked = nil // what Closed calls may close the Redialer
	for i := range parked {
		parked[i].end()
	}
}

// slow has the next dial come later where one has replaced a young connection that was alive: that packets are rare must become known.
func (r *Redialer) slow() {
	if r.now-r.since < r.cfg.MaxPause {
		r.pause = r.slower()
		r.at = r.now + r.pause
	}
}

// silent reports whether nothing has arrived for Silence and for three times the longest usual gap.
func (r *Redialer) silent() bool {
	return r.gaps.Died(r.conn.conn.Silence(), r.cfg.Silence)
}

// wants reports whether a dial is due.
func (r *Redialer) wants() bool {
	return !r.leaving() && (r.hurry || (r.conn.driver == nil || r.silent()) && r.now >= r.at)
}

func (r *Redialer) dial() {
	d, err := r.cfg.Dial()
	if err != nil && r.conn.driver != nil && r.silent() {
		r.gaps.Dark() // where the token comes from may be dark, too
	}
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
		r.failed(err, errors.Is(err, driver.ErrDenied))
		return
	}
	r.next.driver, r.began, r.heard, r.acked, r.in = d, r.now, r.now, 0, 0
	d.TickDispatch(r.tick)
	r.next.look()
}

// failed schedules the next dial, or gives up. slower says that dialing on at this pace is of no use.
func (r *Redialer) failed(why error, slower bool) {
	if left := errors.Is(why, ErrLeft); r.cfg.GiveUp(why) && (left || r.conn.driver == nil) {
		if r.drop(); r.conn.driver != nil {
			r.conn.end()
		}
		r.unpark()
		r.err = why
		return
	}
	r.again(why, slower)
}

// again schedules the next dial.
func (r *Redialer) again(why error, slower bool) {
	wait := r.cfg.Pause
	switch {
	case slower:
		r.pause = r.slower()
		wait = r.pause
	case r.conn.driver == nil: // beside a connection it is still to be found out how rare packets are
		r.pause = r.cfg.Pause
	}
	r.at = r.now + wait
	if r.cfg.Failed != nil {
		r.cfg.Failed(why)
	}
}

func (r *Redialer) slower() time.Duration { return min(max(2*r.pause, r.cfg.Pause), r.cfg.MaxPause) }

// broke reports whether a connection ended because its ends don't understand each other: then a dial soon after is of no use either.
func broke(why error) bool {
	var e *endError
	return errors.As(why, &e) && (e.result.Code == netconn.PeerBroke || e.result.Code == netconn.WeBroke)
}

// end closes the driver of a connection or dial that has ended, and returns the reason.
func (d *dialed) end() error {
	err := d.driver.Err()
	if d.conn != nil {
		r := d.conn.Result()
		err = &endError{result: r, socket: err}
		if r.Code == netconn.ClosedByUs && r.Err == nil { // not for a login that took too long
			err = ErrLeft
		}
	}
	_ = d.driver.Close()
	*d = dialed{}
	return err
}

// endError is why a connection ended, in one line.
type endError struct {
	result netconn.CloseResult
	socket error // driver.Driver.Err; may be nil, or the result's Err
}

func (e *endError) Error() string {
	s := "session: the connection ended: " + e.result.String()
	if e.socket != nil && !errors.Is(e.result.Err, e.socket) {
		s += ": " + e.socket.Error()
	}
	return s
}

// Unwrap returns what errors.Is and errors.As look for.
func (e *endError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.result.Err, e.socket}, func(err error) bool { return err == nil })
}

// ErrLeft: the game closed its connection, or the Redialer.
var ErrLeft = errors.New("session: the game closed the connection")

// Close ends the connection and the dial in progress at once, like driver.Driver.Close.
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
	r.unpark()
	return errors.Join(errs...)
}
