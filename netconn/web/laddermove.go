package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/silence"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// mover moves a Ladder's connection to another session when its path dies. The zero value moves nothing.
type mover struct {
	on   bool
	path netcode.PathID
	need time.Duration // LadderConfig.Silence
	died chan struct{} // a path has

	// These are of the driver's goroutine.
	began       time.Time
	quiet, last time.Duration // since something came; of the last read
	gaps        silence.Gaps
	seen        udp.Socket // that the times are of

	mu     sync.Mutex
	former udp.Socket         // the last one by which something came, until something comes by the chosen one
	dead   udp.Socket         // it has failed
	why    error              // with this
	since  time.Time          // then
	giveUp context.CancelFunc // of the round under way
	moves  int
	rounds int       // since something came
	moved  time.Time // when it moved last
	brief  int       // moves, each within briefTime of the one before
}

const (
	// maxStep is the longest time between two reads that counts as silence: a machine that slept hasn't listened.
	maxStep = 100 * time.Millisecond
	// roundPause is the time between two rounds of attempts while nothing comes; it doubles up to maxRoundPause.
	roundPause, maxRoundPause = 500 * time.Millisecond, 8 * time.Second
	// fewBrief moves, each within briefTime of the one before, are made at once, and more of them after brokenPause: who ends each session soon isn't asked for many.
	fewBrief, briefTime = 3, 5 * time.Second
	// brokenPause is the longest pause after a session has broken, since the server waits for the next one for moveTime.
	brokenPause = time.Second
	// moveTime is how long a connection waits for another session after its own has broken, at either end.
	moveTime = 5 * time.Second
	// hitchTime is how long something may come by the old way after another one has answered: what stood still may have been the server, which answers by all of them then.
	hitchTime = 50 * time.Millisecond
)

// pathID returns Token's; zeros when there is none.
func (c LadderConfig) pathID() (id netcode.PathID, err error) {
	if c.Token == nil {
		return id, nil
	}
	id, ok := c.Token.PathID()
	if !ok {
		return id, fmt.Errorf("%w: LadderConfig.Token is no connect token", ErrConfig)
	}
	return id, nil
}

func (m *mover) begin(on bool, path netcode.PathID, need time.Duration) {
	m.on, m.path, m.need, m.died, m.began = on, path, cmp.Or(need, 300*time.Millisecond), make(chan struct{}, 1), time.Now()
}

// ask is a probe for a session that is to carry the connection.
func (m *mover) ask() []byte {
	p := newProbe(probeMove)
	copy(p[1+len(probeName)+probeNonce:], m.path[:])
	return p
}

// noted is told of each read and failed write of a socket: whether something came, and the error. It returns the error that the driver is to see.
func (m *mover) noted(l *Ladder, s udp.Socket, came bool, err error) error {
	if !m.on || !l.heard.Load() {
		return err
	}
	if s != m.seen {
		m.seen, m.quiet = s, 0
	}
	now := time.Since(m.began)
	if m.quiet += min(now-m.last, maxStep); came {
		m.quiet = 0
	}
	m.last = now
	m.gaps.Note(now, m.quiet)
	if came {
		m.heard(s, &l.done)
	}
	fatal := err != nil && (errors.Is(err, ErrEnded) || !udp.IsTemporary(err) && !errors.Is(err, os.ErrDeadlineExceeded))
	if fatal && !m.fails(l, s, err) {
		return err
	}
	if fatal {
		err = nil
	}
	if fatal || m.gaps.Died(m.quiet, m.need) {
		select {
		case m.died <- struct{}{}:
		default:
		}
	}
	return err
}

// fails notes that a socket has failed, and reports whether the connection may go on by another one. The first error counts.
func (m *mover) fails(l *Ladder, s udp.Socket, err error) bool {
	if err == net.ErrClosed && l.now() == s { // the ladder's end
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != s {
		m.dead, m.why, m.since = s, err, time.Now()
	}
	return true
}

// broken reports whether a socket has failed.
func (m *mover) broken(s udp.Socket) bool {
	if !m.on {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead == s
}

// heard ends the round under way, and the socket that the connection had before, unless something came by that one while the connection moved.
func (m *mover) heard(by udp.Socket, closing *sync.WaitGroup) {
	m.mu.Lock()
	if m.giveUp != nil {
		m.giveUp()
	}
	m.rounds = 0
	m.mu.Unlock()
	m.settle(by, closing)
}

// settle closes the socket that the connection had before, if there is one, and it isn't keep.
func (m *mover) settle(keep udp.Socket, closing *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if former := m.former; former != nil && former != keep {
		m.former = nil
		closing.Go(func() { _ = former.Close() })
	}
}

// watch moves the connection to another session whenever its path has died, until ctx is done.
func (l *Ladder) watch(ctx context.Context, ways []Way, cfg LadderConfig) {
	m := &l.mover
	ways = slices.DeleteFunc(slices.Clone(ways), func(w Way) bool { return w == UDP }) // a server's UDP socket knows a connection by its address
	if !m.on || len(ways) == 0 {
		return
	}
	for {
		select {
		case <-m.died:
		case <-ctx.Done():
			return
		}
		round, giveUp := context.WithCancel(ctx)
		broken := m.broken(l.now())
		m.mu.Lock()
		m.giveUp = giveUp
		pause := m.pause(time.Now(), broken)
		m.rounds = min(m.rounds+1, 8)
		m.mu.Unlock()
		select {
		case <-time.After(pause):
			l.round(ctx, round, ways, cfg)
		case <-round.Done():
		}
		giveUp()
		select {
		case <-m.died: // of before
		default:
		}
	}
}

// pause is the time before the next round. m.mu is held.
func (m *mover) pause(now time.Time, broken bool) (pause time.Duration) {
	if m.rounds > 0 {
		pause = min(maxRoundPause, roundPause<<(m.rounds-1))
	}
	if m.brief > fewBrief && now.Sub(m.moved) < briefTime {
		pause = max(pause, brokenPause)
	}
	if broken {
		pause = min(pause, brokenPause)
	}
	return pause
}

// round tries to move the connection once. When its socket has failed and nothing answers for moveTime, reads return the reason.
func (l *Ladder) round(ctx, round context.Context, ways []Way, cfg LadderConfig) {
	m := &l.mover
	was := l.now()
	err := l.climb(ctx, round, ways, cfg, bareSocket{}, m.ask(), func(r rung) bool {
		if !m.broken(was) {
			select {
			case <-time.After(hitchTime):
			case <-round.Done():
			}
		}
		return l.change(round, r)
	})
	if err == nil {
		return
	}
	m.mu.Lock()
	why := m.why
	dead := m.dead == was && time.Since(m.since) >= moveTime
	m.mu.Unlock()
	if dead {
		l.fail(errors.Join(why, err))
	}
}

// change goes on by another session, unless something has come by the old one.
func (l *Ladder) change(round context.Context, r rung) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || round.Err() != nil {
		return false
	}
	m := &l.mover
	m.mu.Lock()
	last := l.chosen
	if m.former == nil && m.dead != last {
		m.former = last
	} else { // nothing has come by it, or it has ended
		l.done.Go(func() { _ = last.Close() })
	}
	m.moves++
	if m.brief++; time.Since(m.moved) >= briefTime {
		m.brief = 0
	}
	m.moved = time.Now()
	m.mu.Unlock()
	l.chosen, l.from, l.way = r.socket, l.way, r.Way
	_ = r.socket.SetReadDeadline(l.wait.Deadline()) // a socket that has failed says so when it is read
	_ = last.SetReadDeadline(time.Unix(1, 0))       // who reads it looks again
	l.wait.Signal()
	return true
}

// Moved returns how often the connection has moved to another session; see LadderConfig.Token. Any goroutine may call it.
func (l *Ladder) Moved() int {
	l.mover.mu.Lock()
	defer l.mover.mu.Unlock()
	return l.mover.moves
}
