package paths

import (
	"fmt"
	"slices"
	"time"
)

// Path is a link, who sends over it, and what happens.
type Path struct {
	Name               string
	Link               func() *Link
	Flows              int           // 0: one
	RTT                time.Duration // without queues and ticks
	Hz                 int           // ticks a second of the games and of their peers
	Length             time.Duration
	Events             []time.Duration // after each the rate has to be found again
	Asleep, PeerAsleep []Span          // of the senders' processes, and of the peers'
	Rough              bool            // loses 10 % and more, or in bursts
	Jittery            bool            // each packet's delay varies on its own
	Longer             time.Duration   // by which the round trip time is longer for a while
	Demand             float64         // bytes a second of the application; 0: no end
}

// Figures is what a controller made of a path. Share and queue are looked at while nothing happens: not in the
// five seconds after the start and after each event.
type Figures struct {
	Share    float64       // delivered of what the link lets through, or of the Demand
	P50, P95 time.Duration // of how long packets waited in the queue
	Recovery time.Duration // the longest, after an event, until 90 % of the link are used for half a second, and 50 % in the 3 s after that
	Fairness float64       // Jain's index, from 10 s after the last flow began
}

// Missed is what of netconn/congestion's promises for Adaptive the figures don't keep; empty: all are kept.
func (p *Path) Missed(f Figures) (missed []string) {
	fine := p.RTT+p.Longer <= 150*time.Millisecond && p.Hz >= 30
	share := 0.9
	if !fine { // rounds of half a second, or ticks that hide a queue of 100 ms
		share = 0.7
	}
	if p.Rough {
		share = min(share, 0.8)
	}
	if p.Jittery { // a delay may be a queue, or not
		share = min(share, 0.7)
	}
	if f.Share < share {
		missed = append(missed, fmt.Sprintf("share below %.1f", share))
	}
	if f.Recovery > recovers {
		missed = append(missed, fmt.Sprintf("recovery above %v", recovers))
	}
	if queue := map[bool]time.Duration{true: 30, false: 60}[p.Hz >= 60] * time.Millisecond; fine && f.P50 > queue {
		missed = append(missed, fmt.Sprintf("median queue above %v", queue))
	}
	if fine && f.Fairness < 0.7 {
		missed = append(missed, "fairness below 0.7")
	}
	return missed
}

// recovers is the time in which the rate has to be found again.
const recovers = 5 * time.Second

// Never is the Recovery of a flow that didn't reach 90 % before the next event or the end.
const Never = time.Hour

// Run gives the path's flows controllers and measures them.
func (p *Path) Run(seed uint64, controller func() Controller) Figures {
	tick := time.Second / time.Duration(p.Hz)
	var flows []*Flow
	for i := range max(p.Flows, 1) {
		f := &Flow{Controller: controller(), Tick: tick, AckEvery: tick, Jitter: time.Millisecond, Starts: time.Duration(i) * 2 * time.Second, Asleep: p.Asleep, PeerAsleep: p.PeerAsleep}
		if p.Demand > 0 {
			f.Demand = Constant(p.Demand)
		}
		flows = append(flows, f)
	}
	w := New(seed, p.Link(), flows...)
	w.Run(p.Length)
	return p.figures(w)
}

func (p *Path) figures(w *Run) Figures {
	var rates []float64
	last := w.Flows[len(w.Flows)-1].Starts
	for _, f := range w.Flows {
		rates = append(rates, f.Delivered(last+2*settled, p.Length))
	}
	out := Figures{Fairness: Fairness(rates...)}
	total, offered := 0.0, 0.0
	var waits []time.Duration
	for t := settled; t < p.Length; t += bin {
		if !p.calm(w, t) {
			continue
		}
		for _, f := range w.Flows {
			total += f.Delivered(t, t+bin)
		}
		capacity := w.Link.Capacity(t, t+bin)
		if p.Demand > 0 {
			capacity = min(capacity, 8*p.Demand*float64(len(w.Flows))*(1-w.Link.Loss))
		}
		offered += capacity
	}
	for _, s := range w.Link.waits {
		if p.calm(w, s.at) {
			waits = append(waits, s.wait)
		}
	}
	slices.Sort(waits)
	out.Share, out.P50, out.P95 = total/offered, waits[len(waits)/2], waits[len(waits)*95/100]
	for i, at := range p.Events {
		end := p.Length
		if i+1 < len(p.Events) {
			end = p.Events[i+1]
		}
		out.Recovery = max(out.Recovery, recovery(w, at, end))
	}
	return out
}

// settled is how long after an event share and queue are looked at again.
const settled = 5 * time.Second

func (p *Path) calm(w *Run, t time.Duration) bool {
	if t < settled {
		return false
	}
	for _, at := range p.Events {
		if t >= at && t < at+settled {
			return false
		}
	}
	for _, spans := range [][]Span{w.Link.Held, w.Link.Dark, p.Asleep, p.PeerAsleep} {
		if _, in := within(spans, t); in {
			return false
		}
	}
	return true
}

// recovery is how long after at the flows first used 90 % of the link for half a second. It has to last: what was sent before the
// event may arrive after it.
func recovery(w *Run, at, end time.Duration) time.Duration {
	const window, after = 500 * time.Millisecond, 3 * time.Second
	used := func(share float64, from, to time.Duration) bool {
		sum := 0.0
		for _, f := range w.Flows {
			sum += f.Delivered(from, to)
		}
		return sum >= share*w.Link.Capacity(from, to)
	}
	for t := at; t+window < end; t += 5 * bin {
		if used(0.9, t, t+window) && used(0.5, t+window, min(t+window+after, end)) {
			return t - at
		}
	}
	return Never
}

const mbit = 1e6

// level is a rate from a time on.
type level struct {
	from time.Duration
	bits float64
}

func levels(ls ...level) func(time.Duration) float64 {
	return func(now time.Duration) float64 {
		bits := ls[0].bits
		for _, l := range ls {
			if now >= l.from {
				bits = l.bits
			}
		}
		return bits
	}
}

const sec = time.Second

// Table is the paths: each event at some round trip times and ticks, or at all of them.
func Table(all bool) []Path {
	type setting struct {
		rtt time.Duration
		hz  int
	}
	settings := []setting{{40 * time.Millisecond, 60}, {5 * time.Millisecond, 60}, {150 * time.Millisecond, 30}, {400 * time.Millisecond, 60}, {40 * time.Millisecond, 10}}
	if all {
		settings = nil
		for _, rtt := range []time.Duration{5, 40, 150, 400} {
			for _, hz := range []int{10, 20, 30, 60} {
				settings = append(settings, setting{rtt * time.Millisecond, hz})
			}
		}
	}
	var paths []Path
	for _, s := range settings {
		for _, p := range events(s.rtt) {
			p.Name = fmt.Sprintf("%s, RTT %d ms, %d Hz", p.Name, s.rtt.Milliseconds(), s.hz)
			p.RTT, p.Hz = s.rtt, s.hz
			paths = append(paths, p)
		}
	}
	return paths
}

// events is what can happen to a path.
func events(rtt time.Duration) []Path {
	link := func(l Link) func() *Link {
		return func() *Link {
			l := l
			l.Delay = rtt / 2
			if l.Buffer == 0 {
				l.Buffer = 200 * time.Millisecond
			}
			return &l
		}
	}
	var ps []Path
	add := func(name string, l Link, length time.Duration, events ...time.Duration) *Path {
		ps = append(ps, Path{Name: name, Link: link(l), Length: length, Events: events})
		return &ps[len(ps)-1]
	}
	for _, r := range []float64{1, 10, 100} {
		add(fmt.Sprintf("steady %g Mbit/s", r), Link{Rate: Constant(r * mbit)}, 40*sec, 0)
	}
	for _, st := range [][3]float64{{10, 1, 10}, {100, 10, 100}, {100, 1, 100}, {1, 100, 1}} {
		l := Link{Rate: levels(level{0, st[0] * mbit}, level{15 * sec, st[1] * mbit}, level{30 * sec, st[2] * mbit})}
		add(fmt.Sprintf("%g to %g to %g Mbit/s", st[0], st[1], st[2]), l, 40*sec, 0, 15*sec, 30*sec)
	}
	add("trickle of 64 kbit/s for 30 s", Link{Rate: levels(level{0, 10 * mbit}, level{10 * sec, 64e3}, level{40 * sec, 10 * mbit}), Bytes: 125_000}, 50*sec, 0, 40*sec)
	for _, d := range []time.Duration{1, 3, 10} {
		span := []Span{{10 * sec, (10 + d) * sec}}
		end := (10 + d) * sec
		add(fmt.Sprintf("frozen for %d s", d), Link{Rate: Constant(10 * mbit), Held: span}, end+10*sec, 0, end)
		add(fmt.Sprintf("dark for %d s", d), Link{Rate: Constant(10 * mbit), Dark: span}, end+10*sec, 0, end)
		add(fmt.Sprintf("suspended for %d s", d), Link{Rate: Constant(10 * mbit)}, end+10*sec, 0, end).Asleep = span
		add(fmt.Sprintf("peer suspended for %d s", d), Link{Rate: Constant(10 * mbit)}, end+10*sec, 0, end).PeerAsleep = span
	}
	for _, loss := range []float64{1, 5, 10, 20} {
		add(fmt.Sprintf("loss of %g %%", loss), Link{Rate: Constant(10 * mbit), Loss: loss / 100, AckLoss: loss / 100}, 40*sec, 0).Rough = loss >= 10
		add(fmt.Sprintf("loss of %g %%, 20 kB/s asked", loss), Link{Rate: Constant(10 * mbit), Loss: loss / 100, AckLoss: loss / 100}, 60*sec).Demand = 20_000
	}
	add("bursts of loss", Link{Rate: Constant(10 * mbit), Bursts: Bursts{Every: 2 * sec, Length: 50 * time.Millisecond, Loss: 0.7}}, 40*sec, 0).Rough = true
	add("jitter of 20 ms", Link{Rate: Constant(10 * mbit), Jitter: 20 * time.Millisecond}, 40*sec, 0).Jittery = true
	jittery := levels(level{0, 10 * mbit}, level{15 * sec, mbit}, level{30 * sec, 10 * mbit})
	add("jitter of 20 ms, 10 to 1 to 10 Mbit/s", Link{Rate: jittery, Jitter: 20 * time.Millisecond}, 45*sec, 0, 15*sec, 30*sec).Jittery = true
	for _, by := range []time.Duration{80 * time.Millisecond, 280 * time.Millisecond} {
		for _, r := range []float64{1, 10, 100} {
			l := Link{Rate: Constant(r * mbit), Detours: []Detour{{Span{15 * sec, 30 * sec}, by / 2}}}
			add(fmt.Sprintf("%g Mbit/s, %d ms longer for 15 s", r, by.Milliseconds()), l, 40*sec, 0, 15*sec, 30*sec).Longer = by
		}
	}
	for _, n := range []int{2, 4, 8} {
		add(fmt.Sprintf("%d flows", n), Link{Rate: Constant(10 * mbit)}, 80*sec).Flows = n
	}
	return ps
}
