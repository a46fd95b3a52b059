package interpolation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
)

// ErrConfig is wrapped by errors about a config.
var ErrConfig = errors.New("interpolation: config")

const (
	maxWindow  = 256
	minSamples = 8 // before them the delay is InitialDelay
)

// Config configures a [Timeline]. The zero value is fine.
type Config struct {
	// MinDelay and MaxDelay bound the delay. Default 0 and 500 ms.
	MinDelay, MaxDelay time.Duration
	// InitialDelay is the delay until 8 arrivals were seen. Default 100 ms, within MinDelay and MaxDelay.
	InitialDelay time.Duration
	// Margin is added to the delay that was needed. Default 5 ms; -1 for none.
	Margin time.Duration
	// Quantile is the share of arrivals for which the delay is enough. Default 0.95; above 0, at most 1.
	Quantile float64
	// LatenessOnly makes the delay cover only how late arrivals are, not the time between them. Use it when the sender
	// is silent while nothing changes, and when buffers are read at times of their own.
	LatenessOnly bool
	// Window is the number of last arrivals that the delay is computed from. Default 64; 8 to 256.
	Window int
	// Follower configures how fast the delay may change. Its default here is a slew of 0.1 and a jump of 1 s.
	Follower netclock.FollowerConfig
}

func (c *Config) fill() error {
	if c.MaxDelay == 0 {
		c.MaxDelay = 500 * time.Millisecond
	}
	if c.InitialDelay == 0 {
		c.InitialDelay = min(max(100*time.Millisecond, c.MinDelay), c.MaxDelay)
	}
	switch c.Margin {
	case 0:
		c.Margin = 5 * time.Millisecond
	case -1:
		c.Margin = 0
	}
	if c.Quantile == 0 {
		c.Quantile = 0.95
	}
	if c.Window == 0 {
		c.Window = 64
	}
	if c.Follower.MaxSlew == 0 {
		c.Follower.MaxSlew = 0.1
	}
	switch {
	case c.MinDelay < 0 || c.MinDelay > c.MaxDelay || c.InitialDelay < c.MinDelay || c.InitialDelay > c.MaxDelay:
		return fmt.Errorf("%w: delays of %v to %v, at first %v; give 0 <= MinDelay <= InitialDelay <= MaxDelay", ErrConfig, c.MinDelay, c.MaxDelay, c.InitialDelay)
	case c.Margin < 0:
		return fmt.Errorf("%w: Margin is %v; give a duration, or -1 for none", ErrConfig, c.Margin)
	case !(c.Quantile > 0 && c.Quantile <= 1):
		return fmt.Errorf("%w: Quantile is %v; give a share above 0, at most 1", ErrConfig, c.Quantile)
	case c.Window < minSamples || c.Window > maxWindow:
		return fmt.Errorf("%w: Window is %d; give %d to %d", ErrConfig, c.Window, minSamples, maxWindow)
	}
	return nil
}

// TimelineCounters counts arrivals.
type TimelineCounters struct {
	Arrivals uint64
	Late     uint64 // of these, the ones that a newer snapshot had overtaken
}

type arrival struct {
	transit time.Duration // local arrival time minus sender's time: the network delay plus an unknown constant
	gap     time.Duration // sender's time since the snapshot before
}

// Timeline says what time to show. Not safe for concurrent use.
type Timeline struct {
	Counters TimelineCounters

	cfg      Config
	follower *netclock.Follower
	newest   time.Duration
	window   [maxWindow]arrival
	taken    int // arrivals stored in window so far
	base     time.Duration
	delay    time.Duration
	started  bool
}

// NewTimeline returns a timeline without arrivals.
func NewTimeline(cfg Config) (*Timeline, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	f, err := netclock.NewFollower(cfg.Follower)
	if err != nil {
		return nil, err
	}
	return &Timeline{cfg: cfg, follower: f, delay: cfg.InitialDelay}, nil
}

// Arrived reports a snapshot that arrived at now, in local time, and was made at at, in the sender's time. Call it once
// for each packet, whatever it contains.
func (t *Timeline) Arrived(now, at time.Duration) {
	t.Counters.Arrivals++
	if !t.started {
		t.started, t.newest, t.base = true, at, now-at
		return
	}
	if at <= t.newest {
		t.Counters.Late++
		return
	}
	t.take(now, at)
}

// Missed reports a snapshot that hadn't arrived at now, the time of the last frame, and has arrived since. Use it when
// several snapshots arrive together because they were held up, for example behind a lost packet: call it for each but
// the newest, then Arrived for that. It has no effect for a snapshot that couldn't have arrived by now, or that isn't
// newer than those before.
func (t *Timeline) Missed(now, at time.Duration) {
	if t.started && at > t.newest && now-at > t.base {
		t.take(now, at)
	}
}

// take stores an arrival.
func (t *Timeline) take(now, at time.Duration) {
	t.window[t.taken%t.cfg.Window] = arrival{transit: now - at, gap: at - t.newest}
	t.taken++
	t.newest = at
	t.adapt()
}

// adapt recomputes the fastest transit, and the delay that would have been enough.
func (t *Timeline) adapt() {
	seen := t.window[:min(t.taken, t.cfg.Window)]
	t.base = seen[0].transit
	for _, a := range seen[1:] {
		t.base = min(t.base, a.transit)
	}
	if len(seen) < minSamples {
		return
	}
	var needs [maxWindow]time.Duration
	for i, a := range seen {
		needs[i] = a.transit - t.base
		if !t.cfg.LatenessOnly {
			needs[i] += a.gap
		}
	}
	sorted := needs[:len(seen)]
	slices.Sort(sorted)
	i := int(t.cfg.Quantile*float64(len(sorted))+0.999999) - 1
	t.delay = min(max(sorted[max(0, i)]+t.cfg.Margin, t.cfg.MinDelay), t.cfg.MaxDelay)
}

// Delay is how far behind the newest time that can have arrived the shown time should be.
func (t *Timeline) Delay() time.Duration { return t.delay }

// Shown is the sender's time to show at the local time now. It never goes back. ok is false before the first arrival.
func (t *Timeline) Shown(now time.Duration) (at time.Duration, ok bool) {
	if !t.started {
		return 0, false
	}
	return t.follower.Advance(now, now-t.base-t.delay), true
}

// Jumps is how often the shown time jumped forward, and how often it stood still.
func (t *Timeline) Jumps() (jumps, stands uint64) { return t.follower.Jumps, t.follower.Stands }
