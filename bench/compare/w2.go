package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"
)

// throughputPoint is one measurement of W2.
type throughputPoint struct {
	Peer string
	Size int

	Messages   int
	Seconds    float64
	CPU        float64 // seconds of both ends and the kernel
	Allocs     float64 // a message
	Disordered bool
	Err        error
}

func (p *throughputPoint) perSecond() float64  { return float64(p.Messages) / p.Seconds }
func (p *throughputPoint) cpuMillion() float64 { return p.CPU / float64(p.Messages) * 1e6 }

// w2Sizes is the messages of W2 and how many of them.
var w2Sizes = []struct{ size, messages int }{{32, 2_000_000}, {256, 800_000}, {1200, 300_000}, {32 << 10, 12_000}}

func runW2(w io.Writer, all []*Peer, s settings) []throughputPoint {
	var points []throughputPoint
	for _, c := range w2Sizes {
		for _, p := range all {
			if !p.Reliable || p.LatencyOnly || s.size > 0 && s.size != c.size {
				continue
			}
			n := c.messages
			if s.quick {
				n /= 10
			}
			point := throughputPoint{Peer: p.Name, Size: c.size, Messages: n}
			point.Err = point.measure(p, w2Timeout)
			points = append(points, point)
			fmt.Fprintf(w, "w2 %s %d B: %.0f/s, %v\n", p.Name, c.size, point.perSecond(), point.Err)
		}
	}
	return points
}

// w2Timeout bounds a measurement.
const w2Timeout = 60 * time.Second

// measure sends all messages one way, as fast as they are taken.
func (p *throughputPoint) measure(peer *Peer, timeout time.Duration) error {
	var received atomic.Int64
	var wrong atomic.Bool
	done := make(chan struct{})
	total := p.Messages + p.Messages/10 // the first tenth warms up
	s, err := peer.Listen(Options{}, func(_ Conn, msg []byte) {
		n := received.Load()
		if len(msg) != p.Size || binary.LittleEndian.Uint64(msg) != uint64(n) {
			wrong.Store(true)
		}
		if received.Add(1) == int64(total) {
			close(done)
		}
	})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := peer.Dial(s.Addr(), Options{}, func(Conn, []byte) {})
	if err != nil {
		return err
	}
	defer c.Close()
	expired := make(chan struct{})
	deadline := time.AfterFunc(timeout, func() {
		close(expired)
		_ = c.Close() // Send then fails
	})
	defer deadline.Stop()
	late := func(err error) error {
		select {
		case <-expired:
			return fmt.Errorf("%d of %d messages in %v", received.Load(), total, timeout)
		default:
			return err
		}
	}
	if err := sendAll(c, p.Size, 0, total-p.Messages); err != nil {
		return late(err)
	}
	for received.Load() < int64(total-p.Messages) {
		if err := late(nil); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := cpuTime(), time.Now()
	if err := sendAll(c, p.Size, total-p.Messages, total); err != nil {
		return late(err)
	}
	select {
	case <-done:
	case <-expired:
		return late(nil)
	}
	p.Seconds, p.CPU = time.Since(begin).Seconds(), (cpuTime() - cpu).Seconds()
	runtime.ReadMemStats(&after)
	p.Allocs = float64(after.Mallocs-before.Mallocs) / float64(p.Messages)
	p.Disordered = wrong.Load()
	return nil
}

func sendAll(c Conn, size, from, to int) error {
	msg := make([]byte, size)
	for i := from; i < to; i++ {
		binary.LittleEndian.PutUint64(msg, uint64(i))
		if err := c.Send(msg); err != nil {
			return err
		}
	}
	return c.Flush()
}
