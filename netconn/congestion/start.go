package congestion

import "time"

// What a start takes for congestion is told from few packets: chance, lost acks and the peer's wait for late packets look the same. Two things tell them apart.

// startSteps are the fates of packets by the rates at which they left, while the rate doubles: a path loses as many of its own at half the rate, and a full link hardly any.
type startSteps struct {
	steps [6]startStep
	n     int
}

// startStep is the fates of what left at a rate in bytes a second, or at little more.
type startStep struct {
	rate float64
	fates
}

const (
	stepRatio  = 1.2 // between the rates of two steps at least
	lowerRate  = 0.6 // of the rate that is judged: what left at that, or less, is evidence
	fastSample = 10  // packets that the rate that is judged had at least
	startSure  = 6.0 // odds of e to that are enough
)

// starts reports whether packet id is one that left while the rate doubles, and the application used all of it.
func (a *Adaptive) starts(id int64) bool { return a.phase == Startup && id > a.idle }

// at is the step of a rate. Without a free one the two slowest become one. A rate that has fallen begins anew.
func (s *startSteps) at(rate float64) *startStep {
	if s.n > 0 && rate < s.steps[s.n-1].rate {
		s.n = 0
	}
	if s.n == 0 || rate > stepRatio*s.steps[s.n-1].rate {
		if s.n == len(s.steps) {
			s.steps[1].add(s.steps[0].fates)
			s.n = copy(s.steps[:], s.steps[1:])
		}
		s.steps[s.n] = startStep{rate: rate}
		s.n++
	}
	return &s.steps[s.n-1]
}

// excuse takes the loss of l's last verdict, which was that it is congestion, for the path's own if it was there at lower rates as well.
func (s *startSteps) excuse(l *lossTest) bool {
	var fast, slow fates
	k := s.n
	for k > 0 && fast.acked+fast.lost < fastSample {
		k--
		fast.add(s.steps[k].fates)
	}
	slower := s.steps[:k]
	for len(slower) > 0 && slower[len(slower)-1].rate > lowerRate*s.steps[k].rate {
		slower = slower[:len(slower)-1]
	}
	for _, step := range slower {
		slow.add(step.fates)
	}
	if slow.lost == 0 {
		return false
	}
	all, odds := fast, 0.0
	all.add(slow)
	for _, step := range slower {
		more, _ := l.compare(float64(step.acked), float64(step.lost), all.loss(), (1-fast.loss())*s.steps[k].rate/step.rate)
		odds += more
	}
	own := min(1.5*slow.loss(), maxTolerance)
	if odds < startSure || l.lastLoss > own {
		return false
	}
	l.tolerance, l.lastLoss = max(l.tolerance, own), 0
	return true
}

// doubt is of a delay that has ended the start: what the packets say of it that had been sent by then. They left at the rate that had made the queue, so if it is one they wait
// in it as long, and longer.
type doubt struct {
	delay   time.Duration // that ended the start; 0: there is no doubt
	sendGap time.Duration // time between bursts when the start ended. The drain's own is longer, and would hide a queue
	last    int64         // of those packets
	low     time.Duration // the lowest round trip time of theirs since
	packets int           // it is of
	before  memory
}

const (
	doubtPackets = 4    // tell enough
	doubtShare   = 0.75 // of the delay: a packet that waits less isn't in the same queue
)

// sample takes a packet's round trip time.
func (d *doubt) sample(id int64, rtt time.Duration) {
	if d.delay == 0 || id > d.last {
		return
	}
	if d.packets == 0 || rtt < d.low {
		d.low = rtt
	}
	d.packets++
}

// refuted reports whether there is no queue beyond what can't be told from none: by sendGap, and by unclear for other reasons.
func (d *doubt) refuted(base, unclear time.Duration) bool {
	low := d.low - base
	return d.packets >= doubtPackets && low <= d.sendGap+unclear && float64(low) <= doubtShare*float64(d.delay)
}
