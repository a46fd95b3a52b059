package netconn

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// duel is two connections whose every packet goes, is lost, comes twice or overtakes another by command.
type duel struct {
	now       time.Duration
	ends      [2]*Conn
	wires     [2][][]byte // by sender
	ch        *channel.Channel
	sent, got []byte
	fates     map[int64]int // of packets with a bunch of the channel: +1 acked, +100 naked
	packets   map[int64]bool
	last      int64
	bad       string
}

type duelHandler struct{ d *duel }

func (h duelHandler) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	for in.Data.Remaining() >= 8 {
		h.d.got = append(h.d.got, in.Data.ReadUint8())
	}
}
func (h duelHandler) ReceivedAck(_ *channel.Channel, id int64) { h.d.fate(id, 1) }
func (h duelHandler) ReceivedNak(_ *channel.Channel, id int64) { h.d.fate(id, 100) }
func (duelHandler) Closed(*channel.Channel, channel.CloseReason) {
}

// fate is told once for each packet, in order.
func (d *duel) fate(id int64, what int) {
	d.fates[id] += what
	if id <= d.last || !d.packets[id] {
		d.bad = fmt.Sprintf("fate of packet %d after that of %d", id, d.last)
	}
	d.last = id
}

func newDuel(cfg Config) *duel {
	d := &duel{fates: map[int64]int{}, packets: map[int64]bool{}, last: -1}
	name := bunch.Name{Index: 300}
	for i := range d.ends {
		c := cfg
		c.Server = i == 1
		c.NetSpeed = 1 << 24
		c.Channels = []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return duelHandler{d} }}}
		c.LowLevelSend = func(p []byte) { d.wires[i] = append(d.wires[i], append([]byte(nil), p...)) }
		var err error
		if d.ends[i], err = New(c, 0, 16383, 16383); err != nil { // both sequences wrap at once
			panic(err)
		}
	}
	var err error
	if d.ch, err = d.ends[0].Open(name, duelHandler{d}); err != nil {
		panic(err)
	}
	return d
}

const maxDuel = 3 // bunches

// verbs is what may happen next; each reports whether it could.
var verbs = []struct {
	name string
	do   func(d *duel) bool
}{
	{"send", func(d *duel) bool {
		if len(d.sent) == maxDuel {
			return false
		}
		d.sent = append(d.sent, byte(len(d.sent)+1))
		r, err := d.ch.SendBunch(&bunch.Out{Data: d.sent[len(d.sent)-1:], Reliable: true, NoMerge: true})
		if err != nil {
			d.bad = err.Error()
		}
		d.packets[r.Last] = true
		d.ends[0].FlushNet()
		return true
	}},
	{"deliver", func(d *duel) bool { return d.deliver(0, 0, true) }},
	{"lose", func(d *duel) bool { return d.drop(0) }},
	{"twice", func(d *duel) bool { return len(d.wires[0]) < 6 && d.deliver(0, 0, false) }},
	{"overtake", func(d *duel) bool { return d.deliver(0, 1, true) }},
	{"acks", func(d *duel) bool { return d.tick(1) }},
	{"deliver acks", func(d *duel) bool { return d.deliver(1, 0, true) }},
	{"lose acks", func(d *duel) bool { return d.drop(1) }},
	{"time", func(d *duel) bool { return d.tick(0) }},
}

func (d *duel) deliver(from, i int, remove bool) bool {
	if i >= len(d.wires[from]) {
		return false
	}
	p := append([]byte(nil), d.wires[from][i]...)
	if remove {
		d.wires[from] = append(d.wires[from][:i], d.wires[from][i+1:]...)
	}
	d.note()
	if err := d.ends[1-from].ReceivedPacket(d.now, p); err != nil {
		d.bad = err.Error()
	}
	d.note()
	return true
}

// note knows packets in which reliable bunches went again.
func (d *duel) note() {
	for id := d.ends[0].notify.OutID(); id > d.ends[0].notify.OutID()-64; id-- {
		d.packets[id] = true
	}
}

func (d *duel) drop(from int) bool {
	if len(d.wires[from]) == 0 {
		return false
	}
	d.wires[from] = d.wires[from][1:]
	return true
}

func (d *duel) tick(end int) bool {
	d.now += 20 * time.Millisecond
	c := d.ends[end]
	c.PostTickDispatch(d.now)
	c.Tick(d.now)
	d.note()
	return true
}

// check is the model: what came is the beginning of what was sent, and all of it in the end.
func (d *duel) check(end bool) string {
	switch {
	case d.bad != "":
		return d.bad
	case len(d.got) > len(d.sent) || string(d.got) != string(d.sent[:len(d.got)]):
		return fmt.Sprintf("sent %v, got %v", d.sent, d.got)
	case end && len(d.got) != len(d.sent):
		return fmt.Sprintf("sent %v, in the end only %v came", d.sent, d.got)
	case end && d.ch.NumOutRec() > 0:
		return fmt.Sprintf("%d bunches never acked", d.ch.NumOutRec())
	}
	for id, n := range d.fates {
		if n != 1 && n != 100 {
			return fmt.Sprintf("packet %d has the fates %d", id, n)
		}
	}
	return ""
}

// heal delivers everything until all is quiet.
func (d *duel) heal() {
	for range 40 {
		for from := range d.wires {
			for d.deliver(from, 0, true) {
			}
		}
		d.tick(0)
		d.tick(1)
	}
}

// play plays a sequence of verbs from the beginning; false when one of them can't happen.
func play(cfg Config, sequence []int) (d *duel, ok bool) {
	d = newDuel(cfg)
	for _, v := range sequence {
		if !verbs[v].do(d) {
			return d, false
		}
	}
	return d, true
}

var exhaustiveDepth = flag.Int("depth", 6, "how many things happen in each sequence of TestExhaustive")

// TestExhaustive plays every sequence of what can happen to three reliable bunches and their acks, up to a depth: sends,
// deliveries, losses, duplicates, overtaking, time. At each step what came is a prefix of what was sent, each packet has one
// fate, in order; and once the network is good all arrives, once.
func TestExhaustive(t *testing.T) {
	depth := *exhaustiveDepth
	if testing.Short() {
		depth = 4
	}
	for name, cfg := range map[string]Config{"unreal": {Protocol: Unreal51()}, "reorder window": {ReorderWindow: 30 * time.Millisecond},
		"copies": {Redundancy: Redundancy{Copies: 1}}} {
		t.Run(name, func(t *testing.T) {
			n := 0
			var walk func(sequence []int)
			walk = func(sequence []int) {
				d, ok := play(cfg, sequence)
				if !ok {
					return
				}
				n++
				why := d.check(false)
				if why == "" {
					d.heal()
					why = d.check(true)
				}
				if why != "" {
					var names []string
					for _, v := range sequence {
						names = append(names, verbs[v].name)
					}
					require.FailNow(t, why, "%v", names)
				}
				if len(sequence) == depth {
					return
				}
				for v := range verbs {
					walk(append(sequence[:len(sequence):len(sequence)], v))
				}
			}
			walk(nil)
			t.Logf("%d sequences of up to %d", n, depth)
		})
	}
}
