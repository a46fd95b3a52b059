package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/xtaci/kcp-go/v5"

	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn"
)

// memoryPoint is one measurement of W5: messages between two ends in memory, no socket and no goroutine.
type memoryPoint struct {
	Way string

	NS     float64 // CPU of a message sent, received and acked
	Allocs float64
	Wire   float64 // bytes, without IP and UDP
	Err    error
}

const (
	w5Size   = 100
	w5Rounds = 20 // as W4's
	// w5Tick is the time between two messages of an end, for what doesn't look at the clock itself.
	w5Tick = time.Second / 60
)

// memoryEnds is two ends that have each other's packets.
type memoryEnds struct {
	trip      func() error // each end sends a message, which acks the last one of the other
	got, wire int          // messages that arrived, bytes of the packets
}

// memoryWay is a protocol of W5.
type memoryWay struct {
	name string
	open func(m *memoryEnds) error
}

var w5Ways = []memoryWay{
	{"kcp-go, turbo", kcpEnds},
	{"bunchnet: a reliable bunch", plainEnds},
	{"the same, five packets under way", delayedEnds(netconn.Coding{})},
	{"and a repair symbol in each", delayedEnds(netconn.Coding{Repairs: 1})},
	{"the same over netcode", sealedEnds},
	{"netcode alone: seal, open", netcodeEnds},
	{"channel/message: an ordered message", queueEnds},
	{"channel/lockstep/link", linkEnds},
}

func runW5(w io.Writer, s settings) []memoryPoint {
	n := 2_000_000
	if s.quick {
		n /= 10
	}
	ways := slices.DeleteFunc(slices.Clone(w5Ways), func(way memoryWay) bool { return !strings.Contains(way.name, s.row) })
	points, ends := make([]memoryPoint, len(ways)), make([]memoryEnds, len(ways))
	for i, way := range ways {
		points[i].Way, points[i].Err = way.name, way.open(&ends[i])
	}
	for range w5Rounds {
		for i := range points {
			points[i].measure(&ends[i], n/w5Rounds)
		}
	}
	for _, p := range points {
		fmt.Fprintf(w, "w5 %s: %.0f ns, %v\n", p.Way, p.NS, p.Err)
	}
	return points
}

// w5Warm is the trips before a round is measured.
const w5Warm = 100

// measure has a round of n messages. The least of all rounds counts.
func (p *memoryPoint) measure(m *memoryEnds, n int) {
	var before, after runtime.MemStats
	for i := 0; i < w5Warm && p.Err == nil; i++ {
		p.Err = m.trip()
	}
	got, wire := m.got, m.wire
	runtime.ReadMemStats(&before)
	begin := cpuTime()
	for i := 0; i < n && p.Err == nil; i += 2 {
		p.Err = m.trip()
	}
	cpu := cpuTime() - begin
	runtime.ReadMemStats(&after)
	if got = m.got - got; p.Err == nil && got < n {
		p.Err = fmt.Errorf("%d of %d messages arrived", got, n)
	}
	if p.Err != nil {
		return
	}
	if ns := float64(cpu) / float64(got); p.NS == 0 || ns < p.NS {
		p.NS = ns
	}
	p.Allocs = float64(after.Mallocs-before.Mallocs) / float64(got)
	p.Wire = float64(m.wire-wire) / float64(got)
}

// errStalled ends a measurement whose ends wait for each other.
var errStalled = errors.New("nothing was sent")

// kcpEnds is two of kcp-go's cores, without its sessions. Their clock is the machine's, and is hardly asked: a packet that acks
// makes an end send what it has.
func kcpEnds(m *memoryEnds) error {
	var ends [2]*kcp.KCP
	var packets [2][]byte // to each end
	for i := range ends {
		ends[i] = kcp.NewKCP(1, func(buf []byte, size int) {
			m.wire += size
			packets[1-i] = append(packets[1-i], buf[:size]...)
		})
		ends[i].NoDelay(1, 10, 2, 1)
		ends[i].WndSize(1024, 1024)
	}
	msg, buf, in := make([]byte, w5Size), make([]byte, 2048), []byte(nil)
	turn := func(i int) error {
		if len(packets[i]) == 0 {
			return errStalled
		}
		in, packets[i] = packets[i], in[:0]
		if ends[i].Send(msg) != 0 || ends[i].Input(in, kcp.IKCP_PACKET_REGULAR, true) != 0 {
			return errors.New("kcp refused a message or a packet")
		}
		for ends[i].Recv(buf) >= 0 {
			m.got++
		}
		return nil
	}
	m.trip = func() error { return errors.Join(turn(0), turn(1)) }
	ends[0].Send(msg)
	ends[0].Update() // the first one sends at once
	err := turn(1)
	ends[1].Update()
	return err
}

// linkEnd is one end of linkEnds.
type linkEnd struct {
	m     *memoryEnds
	now   *time.Duration
	other *link.Link
	err   error
}

func (e *linkEnd) Datagram(p []byte) {
	e.m.wire += len(p)
	if err := e.other.Receive(*e.now, p); err != nil {
		e.err = err
	}
}

func (e *linkEnd) Message([]byte) { e.m.got++ }

func linkEnds(m *memoryEnds) (err error) {
	var now time.Duration
	var ends [2]linkEnd
	var links [2]*link.Link
	for i := range links {
		ends[i] = linkEnd{m: m, now: &now}
		if links[i], err = link.New(link.Config{PingInterval: -1}, &ends[i]); err != nil {
			return err
		}
	}
	ends[0].other, ends[1].other = links[1], links[0]
	msg := make([]byte, w5Size)
	m.trip = func() error {
		now += w5Tick
		for i, l := range links {
			if err := l.Send(now, msg); err != nil {
				return err
			}
			l.Tick(now)
			if ends[i].err != nil {
				return ends[i].err
			}
		}
		return nil
	}
	return nil
}
