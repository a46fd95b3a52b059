// Package paths runs rate controllers over simulated network paths in virtual time: one narrow
// link, the flows that share it, and what happens to them. [Table] is the paths that
// netconn/congestion is held to.
package paths

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Controller is congestion.Controller.
type Controller interface {
	OnSent(now time.Duration, id int64, bytes int)
	OnAck(now time.Duration, id int64, bytes int, rtt time.Duration)
	OnLost(now time.Duration, id int64, bytes int)
	Tick(now time.Duration)
	Budget(now time.Duration) int
	Rate() float64
	NextDeadline(now time.Duration) (at time.Duration, ok bool)
}

// Link is the narrow place of a path. Its queue is first in, first out, and drops what comes when it is full.
type Link struct {
	Rate    func(now time.Duration) float64 // bits a second
	Buffer  time.Duration                   // the longest queue, at the current rate
	Bytes   int                             // the longest queue in bytes; 0: Buffer counts
	Delay   time.Duration                   // one way, each way
	Detours []Detour                        // times in which the way is longer
	Jitter  time.Duration                   // each packet's delay, and each ack's, is up to that much more or less, drawn alone: they overtake each other
	Loss    float64                         // share of packets lost at random, 0 to 1
	AckLoss float64                         // share of the peer's ack packets lost; the next one acks again
	Bursts  Bursts
	Held    []Span // nothing leaves the queue
	Dark    []Span // what is sent is lost, either way

	Sent, Full int // packets pushed, and dropped by the full queue

	rng    *rand.Rand
	queue  []queued
	bytes  int     // of the queue
	served float64 // bytes of its head that have left
	waits  []wait
	bad    time.Duration // end of the burst of loss under way
	next   time.Duration // start of the next one
}

// Bursts is loss in bursts: for Length, on average every Every, Loss of the packets are lost.
type Bursts struct {
	Every, Length time.Duration
	Loss          float64
}

// Detour is a time in which a packet and an ack take By longer each. What is sent after a detour overtakes what was sent in it.
type Detour struct {
	Span
	By time.Duration
}

// Span is a time.
type Span struct{ From, To time.Duration }

func within(spans []Span, now time.Duration) (to time.Duration, ok bool) {
	for _, s := range spans {
		if now >= s.From && now < s.To {
			return s.To, true
		}
	}
	return 0, false
}

type wait struct{ at, wait time.Duration }

type queued struct {
	f     *Flow
	id    int64
	bytes int
	at    time.Duration
}

// push queues a packet, or drops it.
func (l *Link) push(now time.Duration, q queued) {
	l.Sent++
	limit := l.Bytes
	if limit == 0 {
		limit = int(l.Buffer.Seconds() * l.Rate(now) / 8)
	}
	if l.bytes > limit {
		l.Full++
		return
	}
	l.bytes += q.bytes
	l.queue = append(l.queue, q)
}

// serve lets leave what the rate allows in a step.
func (l *Link) serve(now time.Duration) {
	if _, held := within(l.Held, now); held || len(l.queue) == 0 {
		l.served = 0
		return
	}
	l.served += l.Rate(now) / 8 * step.Seconds()
	n := 0
	for ; n < len(l.queue) && l.served >= float64(l.queue[n].bytes); n++ {
		q := &l.queue[n]
		l.served -= float64(q.bytes)
		l.bytes -= q.bytes
		l.waits = append(l.waits, wait{q.at, max(now-q.at-time.Duration(float64(q.bytes)*8/l.Rate(now)*float64(time.Second)), 0)})
		if !l.lost(q.at) {
			q.f.arrive(now+l.delay(now), q.id)
		}
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.served = 0
	}
}

// delay is that of one packet, one way.
func (l *Link) delay(now time.Duration) time.Duration {
	delay := l.Delay
	for _, d := range l.Detours {
		if now >= d.From && now < d.To {
			delay += d.By
		}
	}
	if l.Jitter > 0 {
		delay += time.Duration(l.rng.Int64N(int64(2*l.Jitter))) - l.Jitter
	}
	return max(delay, 0)
}

// overtaken reports whether packets may overtake each other.
func (l *Link) overtaken() bool { return l.Jitter > 0 || len(l.Detours) > 0 }

func (l *Link) lost(now time.Duration) bool {
	if _, dark := within(l.Dark, now); dark {
		return true
	}
	loss := l.Loss
	if b := l.Bursts; b.Every > 0 {
		if now >= l.next {
			l.bad = now + b.Length
			l.next = l.bad + time.Duration(l.rng.ExpFloat64()*float64(b.Every))
		}
		if now < l.bad {
			loss = b.Loss
		}
	}
	return loss > 0 && l.rng.Float64() < loss
}

// Queue is a quantile, 0 to 1, of how long the packets sent in a time waited in the queue.
func (l *Link) Queue(quantile float64, from, to time.Duration) time.Duration {
	var waits []time.Duration
	for _, s := range l.waits {
		if s.at >= from && s.at < to {
			waits = append(waits, s.wait)
		}
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[int(quantile*float64(len(waits)-1))]
}

// Capacity is the bits a second, on average, that the link lets through in a time.
func (l *Link) Capacity(from, to time.Duration) float64 {
	const grain = 10 * time.Millisecond
	sum, n := 0.0, 0.0
	for now := from; now < to; now += grain {
		n++
		_, held := within(l.Held, now)
		if _, dark := within(l.Dark, now); !held && !dark {
			sum += l.Rate(now) * (1 - l.Loss)
		}
	}
	return sum / n
}

// Flow is a connection that sends over the link.
type Flow struct {
	Controller Controller
	Tick       time.Duration // of the game
	Jitter     time.Duration // of the tick
	AckEvery   time.Duration // the peer's tick; 0: it acks at once
	Starts     time.Duration
	Packet     int                             // bytes, default 1000
	Demand     func(now time.Duration) float64 // bytes a second the application has, nil: no end
	Offer      func(now time.Duration) int     // bytes that the application puts into its queue at each tick, in place of Demand: they leave in packets of up to Packet bytes
	Resend     bool                            // what is lost of an Offer goes back to the head of the queue
	Immediate  bool                            // acks are taken as they come, and sends whenever there is budget
	Asleep     []Span                          // the sender's process doesn't run
	PeerAsleep []Span                          // the peer's doesn't

	nextTick, nextAck time.Duration
	credit            float64 // of the application
	creditAt          time.Duration
	id, settled       int64
	sentAt            []time.Duration // by id
	sizes             []int           // bytes, by id
	offers            []Offered       // those that haven't left whole
	left              []Offered       // those that have
	arrived           []arrival       // by time of arrival at the peer, not yet acked
	held              []arrival       // waiting for one that was overtaken, by id
	next              int64           // id after the newest that was acked in order
	acks              []arrival       // on their way back, by time
	bins              []float64       // bytes that arrived, by time
}

// Offered is what an application put into a flow's queue at once.
type Offered struct {
	At    time.Duration
	Bytes int
	Wait  time.Duration // until the last of it left
	rest  int           // bytes that haven't left
}

type arrival struct {
	at time.Duration
	id int64
}

// Run is flows over one link, in virtual time.
type Run struct {
	Link  *Link
	Flows []*Flow
	Each  func(now time.Duration) // called at each step; may be nil

	now time.Duration
	rng *rand.Rand
}

// step is the grain of the simulation, bin that of what was delivered.
const (
	step = 500 * time.Microsecond
	bin  = 10 * time.Millisecond
)

// New returns a run; the same seed gives the same one.
func New(seed uint64, link *Link, flows ...*Flow) *Run {
	w := &Run{Link: link, Flows: flows, rng: rand.New(rand.NewPCG(seed, 1))}
	link.rng = rand.New(rand.NewPCG(seed, 2))
	link.next = link.Bursts.Every
	for _, f := range flows {
		if f.Packet == 0 {
			f.Packet = 1000
		}
		f.nextTick = f.Starts + time.Duration(w.rng.Int64N(int64(f.Tick)+1))
		f.nextAck = time.Duration(w.rng.Int64N(int64(f.AckEvery) + 1))
	}
	return w
}

// Run goes on until a time.
func (w *Run) Run(to time.Duration) {
	for ; w.now < to; w.now += step {
		w.Link.serve(w.now)
		for _, f := range w.Flows {
			w.peer(f)
			if w.now >= f.Starts {
				w.sender(f)
			}
		}
		if w.Each != nil {
			w.Each(w.now)
		}
	}
}

// peer acks what has arrived.
func (w *Run) peer(f *Flow) {
	if w.now < f.nextAck {
		return
	}
	if _, asleep := within(f.PeerAsleep, w.now); asleep {
		return
	}
	if f.AckEvery > 0 {
		for f.nextAck <= w.now {
			f.nextAck += f.AckEvery
		}
	}
	l := w.Link
	if _, dark := within(l.Dark, w.now); dark || l.AckLoss > 0 && l.rng.Float64() < l.AckLoss {
		return
	}
	back := w.now + l.delay(w.now)
	for i := len(f.acks) - 1; i >= 0 && f.acks[i].at > back; i-- {
		f.acks[i].at = back // an ack tells of the packets before as well
	}
	if l.overtaken() {
		f.inOrder(w.now, back, l.Jitter > 0)
		return
	}
	n := 0
	for n < len(f.arrived) && f.arrived[n].at <= w.now {
		f.acks = append(f.acks, arrival{back, f.arrived[n].id})
		n++
	}
	f.arrived = f.arrived[n:]
}

// orderWindow is how long the peer waits for a packet that others overtook.
const orderWindow = 50 * time.Millisecond

// inOrder acks what has arrived in the order of ids. A packet that comes later than orderWindow after the first that overtook it is stale,
// or at once when the peer doesn't wait.
func (f *Flow) inOrder(now, back time.Duration, waits bool) {
	n := 0
	for ; n < len(f.arrived) && f.arrived[n].at <= now; n++ {
		a := f.arrived[n]
		if a.id < f.next {
			f.bins[a.at/bin] -= float64(f.sizes[a.id])
			continue
		}
		i, _ := slices.BinarySearchFunc(f.held, a.id, func(h arrival, id int64) int { return int(h.id - id) })
		f.held = slices.Insert(f.held, i, a)
	}
	f.arrived = f.arrived[n:]
	waited := 0 // of the held ones, those before this have waited long enough
	for i, h := range f.held {
		if !waits || now-h.at >= orderWindow {
			waited = i + 1
		}
	}
	n = 0
	for n < len(f.held) && (n < waited || f.held[n].id == f.next) {
		f.acks = append(f.acks, arrival{back, f.held[n].id})
		f.next = f.held[n].id + 1
		n++
	}
	f.held = f.held[n:]
}

func (w *Run) sender(f *Flow) {
	if _, asleep := within(f.Asleep, w.now); asleep {
		return
	}
	ticks := w.now >= f.nextTick
	if !ticks && !f.Immediate {
		return
	}
	n := 0
	for n < len(f.acks) && f.acks[n].at <= w.now {
		f.ack(w.now, f.acks[n].id)
		n++
	}
	f.acks = f.acks[n:]
	if ticks {
		for f.nextTick <= w.now {
			f.nextTick += f.Tick
		}
		if f.Jitter > 0 {
			f.nextTick += time.Duration(w.rng.Int64N(int64(2*f.Jitter))) - f.Jitter
		}
		f.Controller.Tick(w.now)
		if f.Offer != nil {
			if n := f.Offer(w.now); n > 0 {
				f.offers = append(f.offers, Offered{At: w.now, Bytes: n, rest: n})
			}
		}
	}
	for f.Controller.Budget(w.now) > 0 {
		bytes := f.take(w.now)
		if bytes == 0 {
			break
		}
		w.send(f, bytes)
	}
}

// take is the bytes of the next packet, 0 when there is nothing to send.
func (f *Flow) take(now time.Duration) int {
	if f.Offer == nil {
		if !f.hasData(now) {
			return 0
		}
		return f.Packet
	}
	bytes := 0
	for len(f.offers) > 0 && bytes < f.Packet {
		o := &f.offers[0]
		n := min(o.rest, f.Packet-bytes)
		bytes += n
		if o.rest -= n; o.rest == 0 {
			o.Wait = now - o.At
			if o.Bytes > 0 {
				f.left = append(f.left, *o)
			}
			f.offers = f.offers[1:]
		}
	}
	return bytes
}

// Offers is what of the flow's Offer has left its queue, but what was lost and sent again.
func (f *Flow) Offers() []Offered { return f.left }

func (f *Flow) hasData(now time.Duration) bool {
	if f.Demand == nil {
		return true
	}
	f.credit = min(f.credit+f.Demand(now)*(now-f.creditAt).Seconds(), 1e6)
	f.creditAt = now
	if f.credit < float64(f.Packet) {
		return false
	}
	f.credit -= float64(f.Packet)
	return true
}

func (w *Run) send(f *Flow, bytes int) {
	id := f.id
	f.id++
	f.sentAt, f.sizes = append(f.sentAt, w.now), append(f.sizes, bytes)
	f.Controller.OnSent(w.now, id, bytes)
	w.Link.push(w.now, queued{f, id, bytes, w.now})
}

// arrive is a packet at the peer.
func (f *Flow) arrive(at time.Duration, id int64) {
	i := len(f.arrived)
	for i > 0 && f.arrived[i-1].at > at {
		i--
	}
	f.arrived = slices.Insert(f.arrived, i, arrival{at, id})
	for int(at/bin) >= len(f.bins) {
		f.bins = append(f.bins, 0)
	}
	f.bins[at/bin] += float64(f.sizes[id])
}

// ack tells of a packet, and that the ones before without acks are lost.
func (f *Flow) ack(now time.Duration, id int64) {
	for ; f.settled < id; f.settled++ {
		f.Controller.OnLost(now, f.settled, f.sizes[f.settled])
		if f.Resend {
			f.offers = slices.Insert(f.offers, 0, Offered{At: now, rest: f.sizes[f.settled]})
		}
	}
	f.Controller.OnAck(now, id, f.sizes[id], now-f.sentAt[id])
	f.settled = id + 1
}

// Delivered is the bits a second that arrived in a time.
func (f *Flow) Delivered(from, to time.Duration) float64 {
	sum := 0.0
	for i := int(from / bin); i < min(int(to/bin), len(f.bins)); i++ {
		sum += f.bins[i]
	}
	return sum * 8 / (to - from).Seconds()
}

// Fairness is Jain's index: 1 is fair, 1/n is all for one.
func Fairness(rates ...float64) float64 {
	var sum, squares float64
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// Constant is a rate that doesn't change, in bits a second.
func Constant(bits float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return bits }
}
