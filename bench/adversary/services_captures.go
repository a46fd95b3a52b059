package main

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func init() {
	register(
		attack{area: "services", name: "a capture cut anywhere", promise: "a file that is cut off is never said to have gone another way", bound: none("times"), run: cutCapture},
		attack{area: "services", name: "damaged captures", promise: "no damaged file makes a replay panic or go on for ever: seconds a file", bound: atMost(20, "s"), run: damagedCapture},
	)
}

// captured is a program around a server.
type captured struct{ d *driver.Driver }

func (c *captured) Tick(now time.Time) error {
	c.d.TickDispatch(now)
	c.d.TickFlush(now)
	return nil
}
func (c *captured) Call([]byte) error { return nil }
func (c *captured) State(w io.Writer) { _, _ = w.Write([]byte{byte(c.d.Len())}) }

func bootCaptured(o capture.Outside) (capture.Program, error) {
	d, err := driver.Listen("", o.Config(driver.Config{Link: driver.PlainSalted{}}))
	if err != nil {
		return nil, err
	}
	return &captured{d}, nil
}

// captureFile is a recorded server to which a client comes.
func captureFile() ([]byte, error) {
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	var file bytes.Buffer
	rec, err := capture.Record(&file, capture.Outside{Socket: a}, capture.Config{StateEvery: 10}, bootCaptured)
	if err != nil {
		return nil, err
	}
	cl, err := driver.Dial("127.0.0.1:1", driver.Config{Socket: b, Link: driver.PlainSalted{}})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for range 120 {
		now = now.Add(16 * time.Millisecond)
		cl.TickDispatch(now)
		cl.TickFlush(now)
		if err := rec.Tick(now); err != nil {
			return nil, err
		}
		if err := rec.Call([]byte("call")); err != nil {
			return nil, err
		}
	}
	err = errors.Join(rec.Close(), cl.Close())
	return file.Bytes(), err
}

func cutCapture(e *env) figure {
	file, err := captureFile()
	if err != nil {
		return broken("%v", err)
	}
	if r, err := capture.Replay(bytes.NewReader(file), bootCaptured); err != nil || !r.Complete {
		return broken("the whole file: %v", err)
	}
	wrong, tried := 0, 0
	for n := 0; n < len(file); n += 1 + len(file)/e.pick(100, 1500) {
		tried++
		if _, err := capture.Replay(bytes.NewReader(file[:n]), bootCaptured); errors.Is(err, capture.ErrDiverged) {
			wrong++
		}
	}
	e.notef("%d cuts of %d bytes", tried, len(file))
	return figure{value: float64(wrong)}
}

func damagedCapture(e *env) figure {
	file, err := captureFile()
	if err != nil {
		return broken("%v", err)
	}
	longest := time.Duration(0)
	for range e.pick(200, 4000) {
		bad := bytes.Clone(file)
		for range 1 + e.rng.IntN(4) {
			bad[e.rng.IntN(len(bad))] = byte(e.rng.Uint32())
		}
		begin := time.Now()
		_, _ = capture.Replay(bytes.NewReader(bad), bootCaptured) // what it says is the other attack's
		longest = max(longest, time.Since(begin))
	}
	return figure{value: longest.Seconds()}
}
