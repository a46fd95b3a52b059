package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const (
	packetSize = 1000
	step       = 500 * time.Microsecond
	warmUp     = 5 * time.Second // not in the figures
	bin        = 500 * time.Millisecond
)

// style is how games tick and peers ack.
type style struct{ tick, ack time.Duration }

// run is a controller on a link, and what came of it.
type run struct {
	link  *link
	kind  string
	rates [][]float64 // of each flow: bits a second in each bin
	queue []float64   // ms, the mean of each bin

	utilisation, loss, fairness float64
	p50, p95                    time.Duration
}

// flow is a game that always has something to send, and its peer.
type flow struct {
	index    byte
	c        congestion.Controller
	starts   time.Duration
	nextTick time.Duration
	nextAck  time.Duration
	next     int64 // id of the next packet
	settled  int64 // ids below are acked or lost
	sentAt   map[int64]time.Duration
	acks     *netsim.Link
	arrived  []byte // ids to ack, 8 bytes each
	bytes    []float64
	fair     float64 // bytes while all flows are there
}

// world is a link and its flows.
type world struct {
	run    *run
	path   *netsim.Link
	flows  []*flow
	rng    *rand.Rand
	style  style
	waits  []time.Duration
	bins   [][2]float64 // sum and number of waits
	sent   int
	passed int
	buf    [packetSize]byte
}

func simulate(seed uint64, l *link, k kind, s style) run {
	r := run{link: l, kind: k.name}
	n := int(l.length/bin) + 1
	w := &world{run: &r, rng: rand.New(rand.NewPCG(seed, 1)), style: s, bins: make([][2]float64, n)}
	w.path = mustLink(l.net, seed)
	for i := range l.flows {
		f := &flow{
			index: byte(i), c: k.make(), starts: time.Duration(i) * l.second, sentAt: map[int64]time.Duration{},
			acks: mustLink(netsim.Settings{Lag: l.net.Lag}, seed+uint64(i)+2), bytes: make([]float64, n),
		}
		f.nextTick = f.starts + time.Duration(w.rng.Int64N(int64(s.tick)))
		f.nextAck = f.starts + time.Duration(w.rng.Int64N(int64(s.ack)))
		w.flows = append(w.flows, f)
	}
	var offered, delivered float64
	for now := time.Duration(0); now < l.length; now += step {
		w.step(now)
		if now >= warmUp {
			offered += l.capacity(now) * step.Seconds()
		}
	}
	for _, f := range w.flows {
		rates := make([]float64, n-1)
		for i := range rates {
			rates[i] = f.bytes[i] * 8 / bin.Seconds()
			if time.Duration(i)*bin >= warmUp {
				delivered += f.bytes[i] * 8
			}
		}
		r.rates = append(r.rates, rates)
	}
	w.figures(delivered / offered)
	return r
}

func (w *world) figures(utilisation float64) {
	r := w.run
	slices.Sort(w.waits)
	r.utilisation = utilisation
	r.p50, r.p95 = w.waits[len(w.waits)/2], w.waits[len(w.waits)*95/100]
	r.loss = 1 - float64(w.passed)/float64(w.sent)
	var sum, squares float64
	for _, f := range w.flows {
		sum += f.fair
		squares += f.fair * f.fair
	}
	r.fairness = sum * sum / (float64(len(w.flows)) * squares)
	for _, b := range w.bins[:len(w.bins)-1] {
		r.queue = append(r.queue, b[0]/max(b[1], 1))
	}
}

func mustLink(s netsim.Settings, seed uint64) *netsim.Link {
	l, err := netsim.NewLink(s, seed)
	if err != nil {
		panic(err)
	}
	return l
}

func (w *world) step(now time.Duration) {
	if l := w.run.link; l.rate != nil && l.rate(now) != l.capacity(now-step) {
		s := l.net
		s.Bandwidth = l.rate(now)
		if err := w.path.Set(s); err != nil {
			panic(err)
		}
	}
	for p, ok := w.path.Pop(now); ok; p, ok = w.path.Pop(now) {
		w.arrive(now, p)
	}
	for _, f := range w.flows {
		if now >= f.nextAck {
			f.nextAck += w.style.ack
			if len(f.arrived) > 0 {
				f.acks.Push(now, f.arrived)
				f.arrived = f.arrived[:0]
			}
		}
		if now >= f.nextTick {
			f.nextTick += w.style.tick - time.Millisecond + time.Duration(w.rng.Int64N(int64(2*time.Millisecond)))
			w.tick(now, f)
		}
	}
}

// arrive takes a packet at the peer.
func (w *world) arrive(now time.Duration, p []byte) {
	f := w.flows[p[0]]
	f.arrived = append(f.arrived, p[1:9]...)
	f.bytes[now/bin] += packetSize
	w.passed++
	if now >= w.flows[len(w.flows)-1].starts+warmUp {
		f.fair += packetSize
	}
}

// tick is a game's: acks, and then as many packets as the controller allows.
func (w *world) tick(now time.Duration, f *flow) {
	for p, ok := f.acks.Pop(now); ok; p, ok = f.acks.Pop(now) {
		for ; len(p) > 0; p = p[8:] {
			f.acked(now, int64(binary.LittleEndian.Uint64(p)))
		}
	}
	f.c.Tick(now)
	for f.c.Budget(now) > 0 {
		w.send(now, f)
	}
}

func (w *world) send(now time.Duration, f *flow) {
	w.buf[0] = f.index
	binary.LittleEndian.PutUint64(w.buf[1:], uint64(f.next))
	wait := w.path.QueueDelay(now)
	w.bins[now/bin][0] += float64(wait) / float64(time.Millisecond)
	w.bins[now/bin][1]++
	if now >= warmUp {
		w.waits = append(w.waits, wait)
	}
	w.path.Push(now, w.buf[:])
	f.sentAt[f.next] = now
	f.c.OnSent(now, f.next, packetSize)
	f.next++
	w.sent++
}

// acked settles a packet, and takes those before it for lost.
func (f *flow) acked(now time.Duration, id int64) {
	for ; f.settled < id; f.settled++ {
		f.c.OnLost(now, f.settled, packetSize)
		delete(f.sentAt, f.settled)
	}
	f.c.OnAck(now, id, packetSize, now-f.sentAt[id])
	delete(f.sentAt, id)
	f.settled = id + 1
}
