package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// sweepSetting is the settings of ours that W6 turns.
type sweepSetting struct {
	ackDelay time.Duration
	prompt   bool
	tickRate int
}

func (s sweepSetting) name() string {
	how := "ticks"
	if s.prompt {
		how = "prompt"
	}
	return fmt.Sprintf("%s, %d/s, ack delay %v", how, s.tickRate, s.ackDelay)
}

const w6Size = 1200

// patience is how long a measurement goes on at most while nothing arrives, or not all. At ticks a client has 32 MB written before it sends any, which on a machine that has a
// hundredth of a core for it takes 10 s.
const patience = 2 * time.Minute

// sweepRTTs is the round trips of W6 and W7; without one there is no proxy in between.
var sweepRTTs = []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond}

// sweptPoint is a measurement of W6 or W7.
type sweptPoint struct {
	Name  string
	Size  int
	RTT   time.Duration
	Bytes float64 // a second
	CPU   float64 // seconds a million messages; of both ends, the kernel and the proxy
	Err   error
}

// w6Peers is ours with every setting, and those to compare with.
func w6Peers(quick bool) []*Peer {
	var all []*Peer
	for _, prompt := range []bool{true, false} {
		for _, rate := range []int{60, 500} {
			for _, delay := range []time.Duration{0, 25 * time.Millisecond, 100 * time.Millisecond} {
				if quick && (rate != 60 || delay > 25*time.Millisecond) {
					continue
				}
				s := &sweepSetting{delay, prompt, rate}
				o := setting{sweep: s}
				all = append(all, &Peer{Name: s.name(), Reliable: true, Ticks: true, Listen: o.listen, Dial: o.dial})
			}
		}
	}
	return append(append(all, kcpPeers()[:1]...), quicPeers()[:1]...)
}

// runW6 measures how fast a reliable channel is with every setting and round trip.
func runW6(w io.Writer, s settings) []sweptPoint {
	var peers []*Peer
	for _, p := range w6Peers(s.quick) {
		if strings.Contains(p.Name, s.row) {
			peers = append(peers, p)
		}
	}
	return sweepAll(w, "w6", s, peers, []int{w6Size})
}

// sweepAll measures each size over each peer at each round trip, all of them again and again, and returns the medians.
func sweepAll(w io.Writer, name string, s settings, peers []*Peer, sizes []int) []sweptPoint {
	length, rounds := 3*time.Second, sweepRounds
	if s.quick {
		length, rounds = 500*time.Millisecond, 1
	}
	var runs [][]sweptPoint // by point
	for round := range rounds {
		i := 0
		for _, size := range sizes {
			for _, p := range peers {
				for _, rtt := range sweepRTTs {
					point := sweptPoint{Name: p.Name, Size: size, RTT: rtt}
					point.Err = point.measure(p, length, s.seed+uint64(round))
					fmt.Fprintf(w, "%s %s, %d B, RTT %v: %.1f MB/s, %v\n", name, p.Name, size, rtt, point.Bytes/1e6, point.Err)
					if round == 0 {
						runs = append(runs, nil)
					}
					runs[i] = append(runs[i], point)
					i++
				}
			}
		}
	}
	var points []sweptPoint
	for _, r := range runs {
		points = append(points, median(r))
	}
	return points
}

// sweepRounds is how often all is measured: a hitch of the machine, or another program's work, falls into one of them.
const sweepRounds = 3

// median is the point in the middle by throughput, or the first that failed.
func median(runs []sweptPoint) sweptPoint {
	slices.SortFunc(runs, func(a, b sweptPoint) int { return cmp.Compare(a.Bytes, b.Bytes) })
	if i := slices.IndexFunc(runs, func(p sweptPoint) bool { return p.Err != nil }); i >= 0 {
		return runs[i]
	}
	return runs[len(runs)/2]
}

// measure sends as fast as it is taken, and counts what arrives in the last two thirds of the time, or until something does.
func (p *sweptPoint) measure(peer *Peer, length time.Duration, seed uint64) error {
	var received atomic.Int64
	var wrong atomic.Bool
	count := func(_ Conn, msg []byte) {
		if len(msg) != p.Size || binary.LittleEndian.Uint64(msg) != uint64(received.Load()) {
			wrong.Store(true)
		}
		received.Add(1)
	}
	c, stop, err := p.connect(peer, seed, count)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		msg := make([]byte, p.Size)
		for i := uint64(0); ; i++ {
			binary.LittleEndian.PutUint64(msg, i)
			if err := c.Send(msg); err != nil {
				sent <- err // it was closed
				return
			}
		}
	}()
	time.Sleep(length / 3)
	before, cpu, begin := received.Load(), cpuTime(), time.Now()
	time.Sleep(length - length/3)
	for received.Load() == before && time.Since(begin) < patience {
		time.Sleep(length / 10) // a peer that has just lost everything waits for its timer
	}
	n, took := received.Load()-before, time.Since(begin).Seconds()
	p.CPU = (cpuTime() - cpu).Seconds() / float64(max(1, n)) * 1e6
	p.Bytes = float64(n) * float64(p.Size) / took
	var ended error
	select {
	case ended = <-sent:
		stop()
	default:
		stop()
		<-sent
	}
	if ended != nil {
		return fmt.Errorf("it ended: %w", ended)
	}
	if wrong.Load() {
		return fmt.Errorf("out of order")
	}
	return nil
}

// connect makes a connection with a round trip of p.RTT.
func (p *sweptPoint) connect(peer *Peer, seed uint64, count Handler) (Conn, func(), error) {
	if p.RTT > 0 {
		net, err := newNetwork(peer, netsim.Settings{Lag: p.RTT / 2}, seed)
		if err != nil {
			return nil, nil, err
		}
		c, stop, err := net.connect(peer, Options{}, count, func(Conn, []byte) {})
		if err != nil {
			net.close()
			return nil, nil, err
		}
		return c, func() { stop(); net.close() }, nil
	}
	s, err := peer.Listen(Options{}, count)
	if err != nil {
		return nil, nil, err
	}
	c, err := peer.Dial(s.Addr(), Options{}, func(Conn, []byte) {})
	if err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	return c, func() { _, _ = c.Close(), s.Close() }, nil
}

func printW6(w io.Writer, points []sweptPoint) {
	printSweep(w, fmt.Sprintf("W6: %d B", w6Size), "settings", points)
}

// printSweep prints points with a row for each peer.
func printSweep(w io.Writer, title, rows string, points []sweptPoint) {
	table(w, title+", reliable and ordered, one way, as fast as it is taken: MB/s (CPU s/million)", func(row func(...any)) {
		head := []any{rows}
		for _, rtt := range sweepRTTs {
			head = append(head, fmt.Sprintf("RTT %v", rtt))
		}
		row(head...)
		for ; len(points) > 0; points = points[len(sweepRTTs):] {
			cells := []any{points[0].Name}
			for _, p := range points[:len(sweepRTTs)] {
				if p.Err != nil {
					cells = append(cells, p.Err)
					continue
				}
				cells = append(cells, fmt.Sprintf("%.1f (%.2f)", p.Bytes/1e6, p.CPU))
			}
			row(cells...)
		}
	})
}
