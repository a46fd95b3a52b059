package actorrep

import (
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/channel"
)

// watch detects a method that the game should call each frame and doesn't.
type watch struct {
	due   func() bool // something waits for the call
	err   error
	steps int           // in which it was due, in a row
	since time.Duration // of the first of these
	told  bool
}

// A call counts as forgotten when it was due for this long, and in this many Steps.
const (
	forgottenAfter = time.Second
	forgottenSteps = 30
)

// watch gives err to Config.Failed, once, when due was true in all Steps for a while.
func (w *World) watch(due func() bool, err error) {
	w.watches = append(w.watches, watch{due: due, err: err})
}

// stepWatches looks for what the game has forgotten.
func (w *World) stepWatches() {
	for i := range w.watches {
		f := &w.watches[i]
		switch {
		case f.told:
		case !f.due():
			f.steps = 0
		case f.steps == 0:
			f.steps, f.since = 1, w.now
		default:
			f.steps++
			if f.told = f.steps > forgottenSteps && w.now-f.since > forgottenAfter; f.told {
				w.report(f.err)
			}
		}
	}
}

// errNoStep is given to Config.Failed when a world has a connection, and the game never calls Step.
var errNoStep = errors.New("actorrep: the world has a connection, but the game never calls World.Step; call it each tick, on a server before TickFlush, on a client after TickDispatch")

// expectStep has Config.Failed told, once, when the game ticks a connection of the world's, and never calls Step.
func (w *World) expectStep(conn channel.Conn) {
	if w.stepped || w.noStep || w.cfg.Failed == nil {
		return
	}
	since, ticks := conn.Now(), 0
	var look func()
	look = func() {
		if w.stepped || w.noStep {
			return
		}
		if ticks++; ticks > forgottenSteps && conn.Now()-since > forgottenAfter {
			w.noStep = true
			w.report(errNoStep)
			return
		}
		conn.Table().Later(look)
	}
	conn.Table().Later(look)
}

// errNoRemove is given to Config.Failed when a connection of a server's world has ended, and the game doesn't call RemoveConn.
var errNoRemove = errors.New("actorrep: a connection has ended, but the game hasn't called World.RemoveConn, so the world keeps its memory and what it owns; call it in the driver's Config.Closed")

// expectRemove has Config.Failed told, once, of a connection that has ended and stays. Each Step looks at one connection.
func (w *World) expectRemove() {
	var gone *Peer
	next := 0
	w.watch(func() bool {
		if gone == nil || !gone.ended() {
			gone = nil
			if next++; next >= len(w.peers) {
				next = 0
			}
			if next < len(w.peers) && w.peers[next].ended() {
				gone = w.peers[next]
			}
		}
		return gone != nil
	}, errNoRemove)
}

// lookForUnflushed looks at the next actor, for values that the game has set while it sleeps, without FlushDormancy.
func (w *World) lookForUnflushed() {
	b := w.nextActor(&w.looksAt)
	if b == nil || !b.dormant || b.tornOff || b.rep.marked {
		return
	}
	if l := b.class.layout; l.Differs(b.rep.shadow, b.ptr, l.All()&^b.inactive) != 0 {
		w.Counters.Unflushed++
	}
}

// errWentBack is given to Config.Failed, once, when a server's World is stepped with a time before the last.
var errWentBack = errors.New("actorrep: Step's time went back, so what is due at a time, such as actors with an update frequency, waits until it has caught up; give driver.Driver.Time, which never goes back")

// errSlowTime is given to Config.Failed, once, when the time that Step is given hardly advances while a connection's does.
var errSlowTime = errors.New("actorrep: Step's time hardly advances while a connection's does, so what is due at a time, such as actors with an update frequency, waits; unless the game is paused, give the time since a fixed moment, such as driver.Driver.Time, not since the last Step")

// slowFor is how long that takes, by the connection's time. A World's clock may be slower by this factor.
const (
	slowFor    = 10 * time.Second
	slowFactor = 10
)

// clock compares the time of a World's Steps with that of a connection.
type clock struct {
	conn               channel.Conn
	own, other         time.Duration // the World's and the connection's time in the last Step
	advanced, expected time.Duration // how much they have advanced
	told               bool
}

// watchTime looks for a World whose time hardly advances. Of the connection's time between two Steps only mostSilence counts, and nothing of a leap back by more.
func (w *World) watchTime() {
	k := &w.clock
	if k.told {
		return
	}
	conn := w.Conn()
	if len(w.peers) > 0 {
		conn = w.peers[0].Conn()
	}
	if conn != k.conn {
		*k = clock{conn: conn, own: w.now}
		if conn != nil {
			k.other = conn.Now()
		}
	}
	if conn == nil {
		return
	}
	now := conn.Now()
	k.expected += min(now-k.other, mostSilence)
	if step := w.now - k.own; step > -mostSilence {
		k.advanced += step
	}
	if k.own, k.other = w.now, now; k.expected < slowFor {
		return
	}
	if k.told = k.advanced < k.expected/slowFactor; k.told {
		w.report(errSlowTime)
	}
	k.advanced, k.expected = 0, 0
}

// errNested is given to Config.Failed, once, when the game calls Step while the World is at work.
var errNested = errors.New("actorrep: World.Step was called by what the World calls, such as a notify or Config.Failed, and did nothing; call it once in each frame, in the game's loop")

// ErrNoViewpoint is given to Config.Failed, once, when actors have a cull distance and connections have been there for 10 s, none of which ever had a viewpoint.
var ErrNoViewpoint = errors.New("actorrep: actors have a cull distance, but no connection has had a viewpoint, so each sees them at any distance; call Peer.SetViewTarget with a player's actor that has a method Location() (x, y, z float64), or Peer.SetViewpoint")

// blindFor is how long connections may be without a viewpoint before the game is told: longer than a spawn takes.
const blindFor = 10 * time.Second

// expectViewpoint has Config.Failed told, once, when a cull distance does nothing because no connection has ever had a viewpoint. It is for worlds whose
// Relevancy is the list, without Config.Relevant. Until an actor with a cull distance is found, each Step looks at one.
func (w *World) expectViewpoint() {
	culls, sighted, waits := false, false, false
	at, since := 0, time.Duration(0)
	w.watch(func() bool {
		if b := w.nextActor(&at); !culls && b != nil && b.cull > 0 && !b.always && !b.onlyOwner {
			culls = located(b.self)
		}
		if !culls || sighted {
			return false
		}
		waited := waits
		waits = false
		for _, p := range w.peers {
			if p.replay || p.byHand {
				continue
			}
			if _, _, _, sighted = p.Viewpoint(); sighted {
				return false
			}
			waits = true
		}
		if !waited {
			since = w.now
		}
		return waits && w.now-since > blindFor
	}, ErrNoViewpoint)
}
