package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// rawPoint is one measurement of W4: datagrams between two sockets of one goroutine.
type rawPoint struct {
	Way  string
	Size int

	NS  float64 // CPU of a datagram sent and received
	Err error
}

const w4Batch = 32

var w4Sizes = []int{200, 1200}

// rawWay is how datagrams may go: open returns a function that sends and receives w4Batch of them.
type rawWay struct {
	name string
	open func(size int) (trip func() error, close func(), err error)
}

var w4Ways = append([]rawWay{
	{"net.UDPConn, one by one", oneByOne},
	{"x/net ReadBatch, WriteBatch", bareBatches},
	{"netconn/udp without offload", func(size int) (func() error, func(), error) { return ourBatches(size, true) }},
	{"netconn/udp", func(size int) (func() error, func(), error) { return ourBatches(size, false) }},
}, kernelWays...)

// w4Rounds is how often each way has its turn: what else the machine does then hits all of them, and the least counts.
const w4Rounds = 20

func runW4(w io.Writer, s settings) []rawPoint {
	n := 400_000
	if s.quick {
		n /= 10
	}
	var points []rawPoint
	for _, size := range w4Sizes {
		all := make([]rawPoint, len(w4Ways))
		for range w4Rounds {
			for i, way := range w4Ways {
				all[i].Way, all[i].Size = way.name, size
				all[i].measure(way.open, n/w4Rounds)
			}
		}
		for _, p := range all {
			fmt.Fprintf(w, "w4 %s %d B: %.0f ns\n", p.Way, p.Size, p.NS)
		}
		points = append(points, all...)
	}
	return points
}

// measure has a round.
func (p *rawPoint) measure(open func(int) (func() error, func(), error), n int) {
	trip, stop, err := open(p.Size)
	if err != nil {
		p.Err = err
		return
	}
	defer stop()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var begin time.Duration
	for i := range 1 + n/w4Batch {
		if i == 1 { // the first one warms up
			begin = cpuTime()
		}
		if err := trip(); err != nil {
			p.Err = err
			return
		}
	}
	if ns := float64(cpuTime()-begin) / float64(n/w4Batch*w4Batch); p.NS == 0 || ns < p.NS {
		p.NS = ns
	}
}

// twoConns is two sockets of package net.
func twoConns() (a, b *net.UDPConn, to netip.AddrPort, stop func(), err error) {
	a, err1 := rawSocket(Options{}, 4<<20)
	b, err2 := rawSocket(Options{}, 4<<20)
	if err = errors.Join(err1, err2); err != nil {
		return nil, nil, to, nil, err
	}
	err = b.SetReadDeadline(time.Now().Add(time.Minute))
	return a, b, b.LocalAddr().(*net.UDPAddr).AddrPort(), func() { _, _ = a.Close(), b.Close() }, err
}

func oneByOne(size int) (func() error, func(), error) {
	a, b, to, stop, err := twoConns()
	msg, buf := make([]byte, size), make([]byte, 2048)
	return func() error {
		for range w4Batch {
			if _, err := a.WriteToUDPAddrPort(msg, to); err != nil {
				return err
			}
		}
		for range w4Batch {
			if _, _, err := b.ReadFromUDPAddrPort(buf); err != nil {
				return err
			}
		}
		return nil
	}, stop, err
}

func bareBatches(size int) (func() error, func(), error) {
	a, b, to, stop, err := twoConns()
	if err != nil {
		return nil, nil, err
	}
	x, y := ipv4.NewPacketConn(a), ipv4.NewPacketConn(b)
	out, in := make([]ipv4.Message, w4Batch), make([]ipv4.Message, w4Batch)
	for i := range out {
		out[i] = ipv4.Message{Buffers: [][]byte{make([]byte, size)}, Addr: net.UDPAddrFromAddrPort(to)}
		in[i] = ipv4.Message{Buffers: [][]byte{make([]byte, 2048)}}
	}
	return func() error {
		for sent := 0; sent < w4Batch; {
			n, err := x.WriteBatch(out[sent:], 0)
			if err != nil {
				return err
			}
			sent += n
		}
		for got := 0; got < w4Batch; {
			n, err := y.ReadBatch(in[got:], 0)
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	}, stop, nil
}

func ourBatches(size int, noOffload bool) (func() error, func(), error) {
	a, err1 := udp.Listen("127.0.0.1:0", udp.Config{NoOffload: noOffload, NoPoller: true})
	b, err2 := udp.Listen("127.0.0.1:0", udp.Config{NoOffload: noOffload, NoPoller: true})
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	out, in := make([]udp.Message, w4Batch), make([]udp.Message, w4Batch)
	for i := range out {
		out[i] = udp.Message{Buf: make([]byte, size), Addr: b.LocalAddr()}
		in[i].Buf = make([]byte, 2048)
	}
	trip := func() error {
		if _, err := a.WriteBatch(out); err != nil {
			return err
		}
		for got := 0; got < w4Batch; {
			n, err := b.ReadBatch(in)
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	}
	return trip, func() { _, _ = a.Close(), b.Close() }, b.SetReadDeadline(time.Now().Add(time.Minute))
}
