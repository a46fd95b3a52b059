package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// latencyPoint is one measurement of W1.
type latencyPoint struct {
	Peer   string
	Rate   int
	Loss   float64
	Jitter time.Duration
	Burst  bool
	Batch  bool
	// Together is messages written w1Together at a moment, as in a game's ticks of 60 Hz.
	Together bool

	P50, P90, P99, P999, Max time.Duration
	WireBytes                float64 // of both directions, a payload byte of both
	Sent, Got, Disordered    int
	Err                      error
}

const (
	w1Size   = 64
	w1Lag    = 50 * time.Millisecond
	ipHeader = 28 // IPv4 and UDP
	// w1Warm is how long a connection runs before it is measured.
	w1Warm = 2 * time.Second
	// w1Together is the messages of a tick where they are written together, at w1TogetherRate in all.
	w1Together     = 10
	w1TogetherRate = 600
)

// w1Plan is the measurements of W1.
func w1Plan(all []*Peer, s settings) []latencyPoint {
	rates, losses := []int{60, 600}, []float64{0, 1, 5, 10, 20}
	jitters := []time.Duration{0, 10 * time.Millisecond}
	if s.quick {
		rates, losses, jitters = []int{60}, []float64{0, 5}, jitters[:1]
	}
	if s.rate > 0 {
		rates = []int{s.rate}
	}
	if s.loss >= 0 {
		losses, jitters = []float64{s.loss}, jitters[:1]
	}
	together := []float64{5, 20}
	if s.loss >= 0 {
		together = losses
	}
	if s.burst || s.together {
		losses = nil
	}
	var plan []latencyPoint
	for _, jitter := range jitters {
		for _, rate := range rates {
			for _, loss := range losses {
				if jitter > 0 && loss != 5 {
					continue
				}
				for _, p := range all {
					plan = p.points(plan, latencyPoint{Rate: rate, Loss: loss, Jitter: jitter})
				}
			}
			if !s.quick && s.loss < 0 && jitter == 0 && !s.together {
				for _, p := range all {
					plan = p.points(plan, latencyPoint{Rate: rate, Burst: true})
				}
			}
		}
	}
	if s.together || !s.quick && !s.burst && s.loss < 0 && s.rate == 0 {
		for _, loss := range together {
			for _, p := range all {
				if p.Reliable {
					plan = append(plan, latencyPoint{Peer: p.Name, Rate: w1TogetherRate, Loss: loss, Together: true})
				}
			}
		}
	}
	return plan
}

// points adds a point of a peer, and at rates above a game's ticks a second one with messages batched at ticks.
func (p *Peer) points(plan []latencyPoint, point latencyPoint) []latencyPoint {
	point.Peer = p.Name
	plan = append(plan, point)
	if point.Rate > batchRate && p.Reliable {
		point.Batch = true
		plan = append(plan, point)
	}
	return plan
}

// name is the peer's, and how it sends.
func (p *latencyPoint) name() string {
	if p.Batch {
		return fmt.Sprintf("%s @%d", p.Peer, batchRate)
	}
	return p.Peer
}

func (p *latencyPoint) network() netsim.Settings {
	s := netsim.Settings{Loss: p.Loss, Lag: w1Lag, LagVariance: p.Jitter}
	if p.Burst {
		s.BurstLoss, s.BurstLength = 1, 5 // 5 %, five in a row
	}
	return s
}

// runW1 measures all points, several at a time: each needs little of the machine.
func runW1(w io.Writer, all []*Peer, s settings) []latencyPoint {
	plan := w1Plan(all, s)
	byName := map[string]*Peer{}
	for _, p := range all {
		byName[p.Name] = p
	}
	var wg sync.WaitGroup
	free := make(chan struct{}, s.parallel)
	for i := range plan {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			p := &plan[i]
			p.Err = p.measure(byName[p.Peer], s.length, s.seed)
			fmt.Fprintf(w, "w1 %d/%d %s %d/s loss %v: p99 %v\n", i+1, len(plan), p.name(), p.Rate, p.Loss, p.P99.Round(time.Millisecond))
		})
	}
	wg.Wait()
	return plan
}

func (p *latencyPoint) measure(peer *Peer, length time.Duration, seed uint64) error {
	net, err := newNetwork(peer, p.network(), seed)
	if err != nil {
		return err
	}
	defer net.close()
	o := Options{Rate: p.Rate, Unreliable: !peer.Reliable, Batch: p.Batch, Together: p.Together}
	l := &latencies{expected: int((w1Warm + length).Seconds() * float64(p.Rate)), warm: int(w1Warm.Seconds() * float64(p.Rate)), done: make(chan struct{})}
	c, stop, err := net.connect(peer, o, echo, l.got)
	if err != nil {
		return err
	}
	defer stop()
	group := 1
	if p.Together {
		group = w1Together
	}
	before, err := l.send(c, p.Rate, group, net)
	if err != nil {
		return err
	}
	late := 5 * time.Second // what unreliable peers have lost doesn't come
	if peer.Reliable {
		late = patience
	}
	select {
	case <-l.done:
	case <-time.After(late):
	}
	payload := 2 * w1Size * (l.expected - l.warm)
	p.WireBytes = float64(net.wireBytes()-before) / float64(payload)
	l.fill(p)
	return nil
}

// latencies is a client of W1: it sends at a steady rate and notes when each echo came.
type latencies struct {
	expected, warm int
	done           chan struct{}

	mu         sync.Mutex
	rtt        []time.Duration
	next       uint64
	received   int
	disordered int
}

var w1Epoch = time.Now()

// stamp is when a message was sent.
func stamp(msg []byte) time.Duration { return time.Duration(binary.LittleEndian.Uint64(msg[8:])) }

func setStamp(msg []byte, at time.Duration) { binary.LittleEndian.PutUint64(msg[8:], uint64(at)) }

// send sends all messages, so many at a moment, and returns the bytes on the wire before the first that counts.
func (l *latencies) send(c Conn, rate, group int, net *network) (before uint64, err error) {
	msg := make([]byte, w1Size)
	begin := time.Now()
	for i := range l.expected {
		due := begin.Add(time.Duration(i-i%group) * time.Second / time.Duration(rate))
		for d := time.Until(due); d > 0; d = time.Until(due) {
			if d > 2*time.Millisecond {
				time.Sleep(d - 2*time.Millisecond)
			} else {
				nap()
			}
		}
		if i == l.warm {
			before = net.wireBytes()
		}
		binary.LittleEndian.PutUint64(msg, uint64(i))
		setStamp(msg, time.Since(w1Epoch))
		if err := c.Send(msg); err != nil {
			return 0, err
		}
		if i%group < group-1 {
			continue
		}
		if err := c.Flush(); err != nil {
			return 0, err
		}
	}
	return before, nil
}

func (l *latencies) got(_ Conn, msg []byte) {
	if len(msg) < 16 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := binary.LittleEndian.Uint64(msg)
	if n != l.next {
		l.disordered++
	}
	l.next = n + 1
	if int(n) >= l.warm {
		l.rtt = append(l.rtt, time.Since(w1Epoch)-stamp(msg))
	}
	if l.received++; l.received == l.expected {
		close(l.done)
	}
}

func (l *latencies) fill(p *latencyPoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Sent, p.Got, p.Disordered = l.expected-l.warm, len(l.rtt), l.disordered
	if len(l.rtt) == 0 {
		return
	}
	slices.Sort(l.rtt)
	at := func(q float64) time.Duration { return l.rtt[min(len(l.rtt)-1, int(q*float64(len(l.rtt))))] }
	p.P50, p.P90, p.P99, p.P999, p.Max = at(0.5), at(0.9), at(0.99), at(0.999), l.rtt[len(l.rtt)-1]
}
