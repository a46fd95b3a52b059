// Package silence tells a path that has died from one on which packets are rare.
package silence

import "time"

// Gaps holds the longest time between two packets in the last seconds. The zero value is ready.
type Gaps struct {
	silence        time.Duration
	before, latest time.Duration // longest gap in the previous gapTime, and in the current one
	until          time.Duration
	dark           bool // the present silence is no gap, unless there has been such a one lately
	darkUntil      time.Duration
}

const (
	// gapTime is how long the longest gap counts. It counts up to twice as long.
	gapTime = 5 * time.Second
	// usualGaps allows two lost packets in a row.
	usualGaps = 3
	// darkGap is what a darkness counts for at most that isn't the first within 2*gapTime, as of a server that stands still every few seconds.
	darkGap = 500 * time.Millisecond
)

// Note is called in each tick with the time since the last packet.
func (g *Gaps) Note(now, silence time.Duration) {
	if now >= g.until {
		g.before, g.latest, g.until = g.latest, 0, now+gapTime
	}
	if silence < g.silence {
		switch {
		case !g.dark:
			g.latest = max(g.latest, g.silence)
		case now < g.darkUntil:
			g.latest = max(g.latest, min(g.silence, darkGap))
		}
		if g.dark {
			g.dark, g.darkUntil = false, now+2*gapTime
		}
	}
	g.silence = silence
}

// Dark says that the present silence is that of a path that is dark, so that packets aren't rare because of it.
func (g *Gaps) Dark() { g.dark = true }

// Died reports whether a silence is at least as long as least, and as three times the longest gap.
func (g *Gaps) Died(silence, least time.Duration) bool {
	return silence >= max(least, usualGaps*max(g.before, g.latest))
}
