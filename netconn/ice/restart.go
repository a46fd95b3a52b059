package ice

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

// A restart is that of RFC 8445 section 9: when no path of a session answers any more, since one of the players is in another network, both exchange
// new passwords and addresses over a new Signal, and look for a path as at first. Meanwhile the old session goes on. When there is a path the new session
// takes its place: the driver sees the same peer.

const (
	redialTime   = 3 * time.Second // for another Signal
	restartTime  = 8 * time.Second // for a path by it
	restartAgain = 500 * time.Millisecond
	// restartRarely is the longest pause while a path answers: each is twice the one before.
	restartRarely = 30 * time.Second
)

// restartAfter is how long nothing has answered when a restart begins, and restartPause is how long there is no other one after it.
var restartAfter, restartPause = 3500 * time.Millisecond, 5 * time.Second

var (
	errReplaced = errors.New("ice: another session has taken its place")
	// ErrUnknown is returned by Host.Rejoin for a guest that has no session, or not any more.
	ErrUnknown = errors.New("ice: no such session of a guest, or not any more; join anew")
)

// heir makes a session the one that takes another's place once it has a path. take moves what the driver knows from one to the other, and reports whether
// old is still there; node.mu is held.
func (s *session) heir(old *session, take func() bool) {
	s.old, s.source, s.take = old, old.source, take
	s.named = func(netip.AddrPort) {}
}

// inherit takes the old session's place; false if that has ended.
func (s *session) inherit() bool {
	n := s.n
	n.mu.Lock()
	taken := !isDone(s.ended) && s.take()
	n.mu.Unlock()
	if !taken {
		s.end(fmt.Errorf("%w: %w", ErrNoWay, ErrUnknown))
		return false
	}
	n.n.restarts.Add(1)
	s.old.end(errReplaced)
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, of := range s.remotes { // which old may have had
		if of.valid && !isDone(s.ended) {
			n.routes[r] = s
		}
	}
	return true
}

// silence is how long none of the session's paths has answered.
func (s *session) silence() time.Duration {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	var last time.Duration
	for _, r := range s.remotes {
		last = max(last, r.consent)
	}
	return s.n.now() - last
}

// keep ends the session when ctx is done. It restarts the session when that is silent, and when this end is in another network: a relay may go on
// working, but a better path is found only by new addresses.
func (c *Client) keep(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var next, unhurried time.Duration // when a restart may begin, and one for which the silence is no reason
	moved, elsewhere, pause := c.whenMoved(), false, restartAgain
	for {
		s := c.session()
		select {
		case <-ticker.C:
		case <-moved:
			moved, elsewhere, pause, unhurried = c.whenMoved(), true, restartAgain, 0
		case <-ctx.Done():
			s.end(context.Cause(ctx))
			return
		case <-c.ctx.Done():
			s.end(net.ErrClosed)
			return
		case <-s.ended:
			if s == c.session() {
				return
			}
			continue
		}
		silent := s.silence() >= restartAfter
		if c.cfg.Redial == nil || c.now() < next || !silent && (!elsewhere || c.now() < unhurried) {
			continue
		}
		err := c.restart(ctx, s)
		switch next = c.now() + restartAgain; {
		case err == nil:
			next, elsewhere = c.now()+restartPause, false
		case !silent:
			unhurried, pause = c.now()+pause, min(2*pause, restartRarely)
		}
	}
}

// restart looks for a path by another Signal. It returns when there is one, or when the old session has ended.
func (c *Client) restart(ctx context.Context, old *session) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	ending := make(chan struct{})
	defer close(ending)
	c.wg.Go(func() {
		select {
		case <-old.ended:
			if c.session() == old {
				cancel()
			}
		case <-ending:
		}
	})
	dialing, done := context.WithTimeout(ctx, redialTime)
	sig, err := c.cfg.Redial(dialing)
	done()
	if err == nil {
		var s *session
		if s, err = newSession(c.node, true); err == nil {
			old.n.mu.Lock()
			s.again = old.theirPwd
			old.n.mu.Unlock()
			s.connectTime = restartTime
			s.heir(old, func() bool {
				if isDone(old.ended) {
					return false
				}
				c.current.Store(s)
				return true
			})
			s.done = func(why error) {
				stop()
				cancel()
				c.ended(s, why)
			}
			return s.talk(ctx, sig)
		}
	}
	stop()
	cancel()
	return err
}

// replayed is a Signal whose first message was received before.
type replayed struct {
	Signal
	first *Message
}

// Receive implements Signal. One goroutine calls it.
func (r *replayed) Receive(ctx context.Context) (Message, error) {
	if m := r.first; m != nil {
		r.first = nil
		return *m, nil
	}
	return r.Signal.Receive(ctx)
}

// Rejoin looks for another path to a guest whose paths all failed, and whose Config.Redial made the other end of the signal. It is like Join, but the guest
// stays the same to the driver, and has its place among MaxGuests. It returns ErrUnknown, before the guest hears of any address, unless the guest shows
// by its first message that it has a session.
func (h *Host) Rejoin(ctx context.Context, sig Signal) error {
	m, err := sig.Receive(ctx)
	if err != nil {
		return err
	}
	if err := m.check(); err != nil {
		h.n.badMessages.Add(1)
		return err
	}
	old := h.find(m.Again)
	if old == nil {
		h.n.unknown.Add(1)
		return ErrUnknown
	}
	return h.join(ctx, &replayed{sig, &m}, old)
}

// find returns the session that a guest knows the password of, or nil.
func (h *Host) find(password string) (found *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.peers {
		if subtle.ConstantTimeCompare([]byte(s.pwd), []byte(password)) == 1 {
			found = s
		}
	}
	return found
}

// takeOver gives a session the address of another guest's; false if that is gone. h.mu is held.
func (h *Host) takeOver(s, old *session) bool {
	for at, of := range h.peers {
		if of == old {
			h.peers[at] = s
			s.written.Store(old.written.Load())
			s.answered.Store(old.answered.Load())
			return true
		}
	}
	return false
}

// newSource is that of a session which isn't another one's heir.
func newSource(at netip.AddrPort, most int) *mailbox.Source {
	source := mailbox.NewSource(at, most)
	return &source
}
