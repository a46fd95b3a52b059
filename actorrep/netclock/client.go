package netclock

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	maxWaiting = 16 // requests
	maxWindow  = 64 // samples
)

// Config configures a [Client]. The zero value is fine.
type Config struct {
	// Interval is the time between requests. Default 1 s; at least 10 ms.
	Interval time.Duration
	// Burst is how many of the first requests are sent BurstInterval apart. Default 5; at most 16. -1 for none.
	Burst int
	// BurstInterval is the time between these. Default 100 ms; at least 10 ms.
	BurstInterval time.Duration
	// Window is the number of last answers of which the fastest is used. A longer one resists jitter better, a shorter
	// one follows a drifting clock or a new route sooner. Default 16; 1 to 64.
	Window int
	// Follower configures how the time follows the estimate.
	Follower FollowerConfig
}

func (c *Config) fill() error {
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.BurstInterval == 0 {
		c.BurstInterval = 100 * time.Millisecond
	}
	switch c.Burst {
	case 0:
		c.Burst = 5
	case -1:
		c.Burst = 0
	}
	if c.Window == 0 {
		c.Window = 16
	}
	switch {
	case c.Interval < 10*time.Millisecond || c.BurstInterval < 10*time.Millisecond:
		return fmt.Errorf("%w: intervals of %v and %v; give at least 10 ms", ErrConfig, c.Interval, c.BurstInterval)
	case c.Burst < 0 || c.Burst > 16:
		return fmt.Errorf("%w: Burst is %d; give 1 to 16, or -1 for none", ErrConfig, c.Burst)
	case c.Window < 1 || c.Window > maxWindow:
		return fmt.Errorf("%w: Window is %d; give 1 to %d", ErrConfig, c.Window, maxWindow)
	}
	return nil
}

// Counters counts a client's messages.
type Counters struct {
	Requests  uint64
	Replies   uint64 // that were used
	Unmatched uint64 // without a waiting request: repeated or too late
	Malformed uint64
}

type sample struct{ rtt, offset, at time.Duration }

// contradicts reports whether two samples can't both be right: each is off by half its round trip at most, and clocks drift by 2 % at most.
func (s *sample) contradicts(o *sample) bool {
	return max(s.offset-o.offset, o.offset-s.offset) > (s.rtt+o.rtt)/2+(s.at-o.at)/50
}

type waiting struct {
	number uint16
	live   bool
	sent   time.Duration
}

// Client asks a server for its time. Not safe for concurrent use.
type Client struct {
	Counters Counters

	cfg      Config
	follower *Follower
	number   uint16
	next     time.Duration // of the next request
	waits    [maxWaiting]waiting
	samples  [maxWindow]sample
	taken    int // samples ever taken
	best     sample
	latest   time.Duration // local time
}

// NewClient returns a client whose first request is due at once.
func NewClient(cfg Config) (*Client, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	f, err := NewFollower(cfg.Follower)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, follower: f}, nil
}

// NextDeadline is when the next request is due.
func (c *Client) NextDeadline() time.Duration { return c.next }

// Request writes a request if one is due, and reports whether it did. When it doesn't fit, nothing is written and it
// stays due.
func (c *Client) Request(now time.Duration, w *bitio.Writer) (bool, error) {
	c.rebase(now)
	if now < c.next {
		return false, nil
	}
	mark := w.Mark()
	w.WriteUint16(c.number)
	if err := w.Err(); err != nil {
		w.Rollback(mark)
		return false, fmt.Errorf("netclock: a request takes 16 bits: %w", err)
	}
	c.waits[c.number%maxWaiting] = waiting{number: c.number, live: true, sent: now}
	c.number++
	c.Counters.Requests++
	c.next = now + c.cfg.Interval
	if c.Counters.Requests < uint64(c.cfg.Burst) {
		c.next = now + c.cfg.BurstInterval
	}
	return true, nil
}

// Reply handles a reply. A malformed one is an error. One without a waiting request is only counted, because networks
// duplicate datagrams.
func (c *Client) Reply(now time.Duration, r *bitio.Reader) error {
	c.rebase(now)
	number, server, held, err := readReply(r)
	if err != nil {
		c.Counters.Malformed++
		return err
	}
	wait := &c.waits[number%maxWaiting]
	if !wait.live || wait.number != number {
		c.Counters.Unmatched++
		return nil
	}
	rtt := now - wait.sent - held
	if rtt < 0 {
		c.Counters.Malformed++
		return fmt.Errorf("%w: it was held for longer than its whole round trip", ErrMessage)
	}
	wait.live = false
	c.Counters.Replies++
	s := sample{rtt: rtt, offset: server + held + rtt/2 - now, at: now}
	if c.taken > 0 && s.contradicts(&c.best) {
		c.taken = 0 // one of the clocks was set, or stood still
	}
	c.samples[c.taken%c.cfg.Window] = s
	c.taken++
	c.best = c.samples[0]
	for _, s := range c.samples[1:min(c.taken, c.cfg.Window)] {
		if s.rtt < c.best.rtt {
			c.best = s
		}
	}
	return nil
}

// setBack is how far before the latest the local time must be, so that the clock was set back.
const setBack = time.Second

// rebase notes the local time. A clock that was set back counts as one that stood still: all local times that are kept go back with it.
func (c *Client) rebase(now time.Duration) {
	d := c.latest - now
	if d < setBack {
		c.latest = max(c.latest, now)
		return
	}
	c.latest = now
	c.next -= d
	for i := range c.waits {
		c.waits[i].sent -= d
	}
	for i := range c.samples {
		c.samples[i].offset, c.samples[i].at = c.samples[i].offset+d, c.samples[i].at-d
	}
	c.best.offset, c.best.at = c.best.offset+d, c.best.at-d
	c.follower.last -= d
}

// Synced reports whether a reply has arrived.
func (c *Client) Synced() bool { return c.taken > 0 }

// ServerTime is the server's time at the local time now. It never goes back. ok is false before the first reply.
func (c *Client) ServerTime(now time.Duration) (t time.Duration, ok bool) {
	c.rebase(now)
	if !c.Synced() {
		return 0, false
	}
	return c.follower.Advance(now, now+c.best.offset), true
}

// RTT is the shortest round trip of the window, 0 before the first reply. The estimate's error is at most half of it.
func (c *Client) RTT() time.Duration { return c.best.rtt }

// Offset is the estimate that ServerTime follows: server time minus local time.
func (c *Client) Offset() time.Duration { return c.best.offset }

// Jumps is how often the time jumped forward, and how often it stood still.
func (c *Client) Jumps() (jumps, stands uint64) { return c.follower.Jumps, c.follower.Stands }
