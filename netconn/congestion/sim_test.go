package congestion

import (
	"math/rand/v2"
	"slices"
	"time"
)

// bottleneck is a link with a queue, in virtual time.
type bottleneck struct {
	rate   func(now time.Duration) float64 // bits a second
	buffer time.Duration                   // of the queue at the current rate
	bytes  int                             // of the queue, when not 0
	loss   float64
	delay  time.Duration // one way, each way
	rng    *rand.Rand

	free  time.Duration // when what is queued has left
	waits []sample
	sent  int
	full  int
}

type sample struct{ at, wait time.Duration }

// push returns when a packet arrives, ok false when it is lost.
func (b *bottleneck) push(now time.Duration, bytes int) (arrives time.Duration, ok bool) {
	b.sent++
	b.free = max(b.free, now)
	wait := b.free - now
	rate := b.rate(now)
	if b.bytes > 0 && wait.Seconds()*rate/8 > float64(b.bytes) || b.bytes == 0 && wait > b.buffer {
		b.full++
		return 0, false
	}
	b.waits = append(b.waits, sample{now, wait})
	b.free += time.Duration(float64(bytes*8) / rate * float64(time.Second))
	return b.free + b.delay, b.rng.Float64() >= b.loss
}

// quantile is of the waits from a time on.
func (b *bottleneck) quantile(q float64, from, to time.Duration) time.Duration {
	var waits []time.Duration
	for _, s := range b.waits {
		if s.at >= from && s.at < to {
			waits = append(waits, s.wait)
		}
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[int(q*float64(len(waits)-1))]
}

// flow is a connection that sends over the link.
type flow struct {
	c         Controller
	tick      time.Duration // of the game
	jitter    time.Duration // of the tick
	ackEvery  time.Duration // 0: at once
	starts    time.Duration
	packet    int
	app       func(now time.Duration) float64 // bytes a second the application has, nil: no end
	immediate bool                            // acks are taken as they come, and sends whenever there is budget
	skew      time.Duration

	nextTick, nextAck time.Duration
	appCredit         float64
	appAt             time.Duration
	id, acked         int64
	sentAt            map[int64]time.Duration
	arrived           []arrival // by time of arrival at the peer, not yet acked
	acks              []arrival // on their way back, by time
	got               []arrival // delivered, all
	maxID             int64
}

type arrival struct {
	at time.Duration
	id int64
}

// world runs flows over one link.
type world struct {
	link  *bottleneck
	flows []*flow
	rng   *rand.Rand
	each  func(now time.Duration)
}

const simStep = 500 * time.Microsecond

func newWorld(seed uint64, link *bottleneck, flows ...*flow) *world {
	w := &world{link: link, flows: flows, rng: rand.New(rand.NewPCG(seed, 1))}
	link.rng = rand.New(rand.NewPCG(seed, 2))
	for _, f := range flows {
		f.sentAt = map[int64]time.Duration{}
		if f.packet == 0 {
			f.packet = 1000
		}
		f.nextTick = f.starts + time.Duration(w.rng.Int64N(int64(f.tick)+1))
		f.nextAck = time.Duration(w.rng.Int64N(int64(f.ackEvery) + 1))
		f.acked, f.maxID = -1, -1
	}
	return w
}

func (w *world) run(from, to time.Duration) {
	for now := from; now < to; now += simStep {
		for _, f := range w.flows {
			w.peer(f, now)
			if now >= f.starts {
				w.sender(f, now)
			}
		}
		if w.each != nil {
			w.each(now)
		}
	}
}

// peer acks what has arrived.
func (w *world) peer(f *flow, now time.Duration) {
	if now < f.nextAck {
		return
	}
	if f.ackEvery > 0 {
		f.nextAck += f.ackEvery
	}
	n := 0
	for n < len(f.arrived) && f.arrived[n].at <= now {
		f.acks = append(f.acks, arrival{now + w.link.delay, f.arrived[n].id})
		n++
	}
	f.arrived = f.arrived[n:]
}

func (w *world) sender(f *flow, now time.Duration) {
	ticks := now >= f.nextTick
	if !ticks && !f.immediate {
		return
	}
	n := 0
	for n < len(f.acks) && f.acks[n].at <= now {
		w.ack(f, now, f.acks[n].id)
		n++
	}
	f.acks = f.acks[n:]
	if ticks {
		f.nextTick += f.tick + f.skew
		if f.jitter > 0 {
			f.nextTick += time.Duration(w.rng.Int64N(int64(2*f.jitter))) - f.jitter
		}
		f.c.Tick(now)
	}
	for f.c.Budget(now) > 0 && w.hasData(f, now) {
		w.send(f, now)
	}
}

func (w *world) hasData(f *flow, now time.Duration) bool {
	if f.app == nil {
		return true
	}
	f.appCredit = min(f.appCredit+f.app(now)*(now-f.appAt).Seconds(), 1e6)
	f.appAt = now
	if f.appCredit < float64(f.packet) {
		return false
	}
	f.appCredit -= float64(f.packet)
	return true
}

func (w *world) send(f *flow, now time.Duration) {
	id := f.id
	f.id++
	f.sentAt[id] = now
	f.c.OnSent(now, id, f.packet)
	if at, ok := w.link.push(now, f.packet); ok {
		f.arrived = append(f.arrived, arrival{at, id})
		f.got = append(f.got, arrival{at, id})
	}
}

// ack tells of a packet, and that the ones before without acks are lost.
func (w *world) ack(f *flow, now time.Duration, id int64) {
	for lost := f.acked + 1; lost < id; lost++ {
		f.c.OnLost(now, lost, f.packet)
		delete(f.sentAt, lost)
	}
	f.c.OnAck(now, id, f.packet, now-f.sentAt[id])
	delete(f.sentAt, id)
	f.acked = max(f.acked, id)
}

// delivered is the bits a second that a flow got through in a time.
func (f *flow) delivered(from, to time.Duration) float64 {
	n := 0
	for _, a := range f.got {
		if a.at >= from && a.at < to {
			n++
		}
	}
	return float64(n*f.packet*8) / (to - from).Seconds()
}

// jain is Jain's fairness index: 1 is fair, 1/n is all for one.
func jain(rates ...float64) float64 {
	var sum, squares float64
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

func constant(bps float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return bps }
}
