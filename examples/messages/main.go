// Messages sends typed messages three ways over the same bad link and counts what
// arrives: reliable and in order, unreliable, and newest-wins.
//
//	go run ./examples/messages
//	go run ./examples/messages -loss 40
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Position is a message: one method writes, reads and measures it.
type Position struct {
	N    uint32
	X, Y int32
}

// Serialize hands its fields to s.
func (p *Position) Serialize(s *message.Stream) {
	s.Uint32(&p.N)
	s.Int(&p.X, -5000, 5000)
	s.Int(&p.Y, -5000, 5000)
}

// way is one queue of each end, on a channel of its own.
type way struct {
	name           string
	mode           message.Mode
	kindA, kindB   *message.Kind
	a, b           *message.Attached
	got            int
	last           int64
	backwards, gap int
}

func newWay(name string, mode message.Mode) *way {
	w := &way{name: name, mode: mode, last: -1}
	var ra, rb message.Registry
	w.kindA = ra.Add("Position", func() message.Message { return new(Position) })
	w.kindB = rb.Add("Position", func() message.Message { return new(Position) })
	w.a = message.Attach(message.New(message.Config{Mode: mode, Kinds: &ra}))
	w.b = message.Attach(message.New(message.Config{Mode: mode, Kinds: &rb}))
	return w
}

func (w *way) receive() {
	for m, k := w.b.Receive(); m != nil; m, k = w.b.Receive() {
		n := int64(m.(*Position).N)
		w.got++
		if n <= w.last {
			w.backwards++
		} else if n > w.last+1 {
			w.gap++
		}
		w.last = max(w.last, n)
		k.Free(m)
	}
}

func main() {
	loss := flag.Float64("loss", 10, "datagrams lost, percent")
	count := flag.Int("count", 2000, "messages each way of sending gets")
	seed := flag.Uint64("seed", 1, "seed of the losses")
	flag.Parse()
	if flag.NArg() > 0 || *count < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(*loss, *count, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(loss float64, count int, seed uint64) error {
	ways := []*way{newWay("ordered", message.Ordered), newWay("unordered", message.Unordered), newWay("sequenced", message.Sequenced)}
	set := netsim.Settings{Loss: loss, Dup: 2, Order: 5, Lag: 30 * time.Millisecond, LagVariance: 10 * time.Millisecond}
	var types []channel.Type
	for i, w := range ways {
		types = append(types, channel.Type{Name: bunch.Name{Index: 320 + uint32(i)}, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return w.b }})
	}
	var now time.Duration
	var conns [2]*netconn.Conn
	var links [2]*netsim.Link
	for i := range conns {
		var err error
		if links[i], err = netsim.NewLink(set, seed+uint64(i)); err != nil {
			return err
		}
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, NetSpeed: 1 << 20, LowLevelSend: func(p []byte) { links[i].Push(now, p) }}, 0, 1, 1)
		if err != nil {
			return err
		}
	}
	for i, w := range ways {
		if _, err := conns[0].Open(types[i].Name, w.a); err != nil {
			return err
		}
	}
	sent := 0
	for now < 10*time.Minute && (sent < count || ways[0].a.Pending() > 0 || now < time.Second || ways[0].got < count) {
		now += time.Second / 60
		for i, c := range conns {
			for p, ok := links[1-i].Pop(now); ok; p, ok = links[1-i].Pop(now) {
				_ = c.ReceivedPacket(now, p)
			}
			c.PostTickDispatch(now)
		}
		for range 2 {
			if sent == count || ways[0].a.Pending() > 500 {
				break
			}
			for _, w := range ways {
				if err := w.a.Send(w.kindA, &Position{N: uint32(sent), X: int32(sent % 5000), Y: -int32(sent % 5000)}); err != nil {
					return err
				}
			}
			sent++
		}
		for _, w := range ways {
			w.a.Tick(now)
			w.receive()
		}
		for _, c := range conns {
			c.Tick(now)
		}
	}
	fmt.Printf("%d messages each way, %.0f %% of the datagrams lost, %.1f s of the link's time, seed %d\n", count, loss, now.Seconds(), seed)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "mode\tarrived\tgaps\tout of order\tsent again\t")
	for _, w := range ways {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", w.name, w.got, w.gap, w.backwards, w.a.Counters.Resent)
	}
	t.Flush()
	o, u, s := ways[0], ways[1], ways[2]
	switch {
	case o.got != count || o.gap+o.backwards > 0:
		return fmt.Errorf("ordered: %d of %d arrived, %d gaps, %d out of order", o.got, count, o.gap, o.backwards)
	case s.backwards > 0:
		return fmt.Errorf("sequenced: %d older than the newest", s.backwards)
	case u.got > count || u.got == 0:
		return fmt.Errorf("unordered: %d of %d arrived", u.got, count)
	}
	_, err := fmt.Println("PASS: ordered all, once and in order; sequenced never backwards")
	return err
}
