package packetnotify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
)

// An oracle watches one end from outside: it knows what the peer really processed.
type oracle struct {
	t         *testing.T
	where     func() string
	n         Notify
	peer      *oracle
	processed map[int64]bool // ids of the peer's that were processed and not refused
	heard     int64          // newest of our packets that the handler heard of
	first     int64
	acked     int64 // what the header under way acks
	tooLate   int   // delivered, but reported lost as it was behind the history
	ackedSum  int
	gaveUp    bool // stopped waiting for a flush without one
}

func (o *oracle) hear(id int64) {
	if id != o.heard+1 {
		o.t.Fatalf("%s: heard of %d after %d", o.where(), id, o.heard)
	}
	o.heard = id
	if o.n.OutAckID() != id {
		o.t.Fatalf("%s: OutAckID is %d while told of %d", o.where(), o.n.OutAckID(), id)
	}
}

func (o *oracle) PacketAcked(id int64) {
	o.hear(id)
	o.ackedSum++
	if !o.peer.processed[id] {
		o.t.Fatalf("%s: false ack of %d", o.where(), id)
	}
}

func (o *oracle) PacketLost(id int64) {
	o.hear(id)
	if !o.peer.processed[id] {
		return
	}
	o.tooLate++
	if o.n.cfg.WaitForFlush && !o.peer.gaveUp || o.acked-id < history.Bits {
		o.t.Fatalf("%s: %d was delivered but is reported lost with the ack of %d", o.where(), id, o.acked)
	}
}

// A flight is a packet under way, with the ids that its header has cut short.
type flight struct {
	id, acked int64
	b         []byte
	due       int
}

// A world is two ends and a bad link.
type world struct {
	rnd      *rand.Rand
	ends     [2]*oracle
	flying   [2][]flight // by receiver
	tick     int
	silent   int  // ticks until a silent direction is heard again
	silentTo int  // the receiver that hears nothing
	refuse   bool // refuse some of the packets
	loss     float64
}

func newWorld(t *testing.T, cfg Config, seed uint64, loss float64) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 5)), loss: loss, refuse: true}
	where := func() string { return fmt.Sprintf("loss %v, seed %d, tick %d", loss, seed, w.tick) }
	in, out := uint16(w.rnd.IntN(1<<14)), uint16(w.rnd.IntN(1<<14))
	for i := range w.ends {
		w.ends[i] = &oracle{t: t, where: where, processed: map[int64]bool{}, first: int64(out), heard: int64(out) - 1}
		w.ends[i].n.Init(cfg, in, out)
		in, out = out, in
	}
	w.ends[0].peer, w.ends[1].peer = w.ends[1], w.ends[0]
	return w
}

// send begins a packet, lets what is due arrive, and refreshes its header before
// it leaves.
func (w *world) send(from int) {
	o := w.ends[from]
	out := bitio.NewWriter(make([]byte, 64))
	out.WriteBits(5, 3)
	o.n.WriteHeader(out)
	acked, words, before := o.n.inAckSeq, o.n.writtenWords, string(out.Bytes())
	if w.rnd.IntN(4) == 0 {
		w.arrive(from)
		if o.n.RefreshHeader(out, 3) {
			acked = o.n.inAckSeq
		} else if string(out.Bytes()) != before || o.n.words() <= words {
			o.t.Fatalf("%s: a refused refresh of %d words", o.where(), words)
		}
	}
	want := o.n.OutID()
	if id := o.n.Commit(); id != want {
		o.t.Fatalf("%s: sent %d, said %d", o.where(), id, want)
	}
	w.launch(1-from, flight{id: want, acked: acked, b: out.Bytes()})
}

func (w *world) launch(to int, f flight) {
	if w.silent > 0 && w.silentTo == to || w.rnd.Float64() < w.loss {
		return
	}
	for copies := 1 + w.rnd.IntN(20)/19; copies > 0; copies-- {
		f.due = w.tick + max(0, w.rnd.IntN(12)-8)
		w.flying[to] = append(w.flying[to], f)
	}
}

// arrive delivers what is due, now and then in any order.
func (w *world) arrive(to int) {
	l := w.flying[to]
	if w.rnd.IntN(4) == 0 {
		w.rnd.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	}
	w.flying[to] = nil
	for _, f := range l {
		if f.due > w.tick {
			w.flying[to] = append(w.flying[to], f)
			continue
		}
		w.receive(to, f)
	}
}

func (w *world) receive(to int, f flight) {
	o := w.ends[to]
	r := bitio.NewReader(f.b, len(f.b)*8)
	r.Skip(3)
	var h Header
	err := h.Read(r)
	require.NoError(o.t, err)
	want := f.id - o.n.InID()
	if want <= 0 || f.acked < o.heard {
		want = 0
	}
	if got := o.n.Delta(&h); got != want {
		o.t.Fatalf("%s: packet %d is %d ahead, want %d", o.where(), f.id, got, want)
	}
	o.acked = f.acked
	flush := o.n.waitingFlush
	delta, process := o.n.Update(&h, o)
	if process && flush > o.heard {
		o.gaveUp = true
	}
	if want > 0 && o.heard != f.acked {
		o.t.Fatalf("%s: heard up to %d of %d", o.where(), o.heard, f.acked)
	}
	if process {
		if delta != want || o.n.InID() != f.id {
			o.t.Fatalf("%s: delta %d, want %d", o.where(), delta, want)
		}
		ok := !w.refuse || w.rnd.IntN(50) > 0
		o.processed[f.id] = ok
		o.n.AckSeq(ok)
	} else if want > 0 && !o.n.WaitingForFlush() {
		o.t.Fatalf("%s: packet %d refused for no reason", o.where(), f.id)
	}
	checkInvariants(o.t, &o.n, o.where())
}

// step is one tick: both ends send, now and then a burst longer than the history.
func (w *world) step() {
	w.tick++
	if w.silent--; w.silent < -200 {
		w.silent, w.silentTo = w.rnd.IntN(80), w.rnd.IntN(2)
	}
	for i, o := range w.ends {
		count := w.rnd.IntN(7)
		if w.rnd.IntN(300) == 0 {
			count = 150 + w.rnd.IntN(400)
		}
		for range count {
			full := o.n.Outstanding() >= 2000
			if o.n.cfg.WaitForFlush {
				full = o.n.WindowFull(4) // the rule counts on it
			}
			if !full || w.tick%10 == 0 && o.n.Outstanding() < 8000 { // never silent
				w.send(i)
			}
		}
		w.arrive(i)
	}
}

// settle makes the link perfect until the ends know of each other's packets.
func (w *world) settle() {
	w.loss, w.silent, w.refuse = 0, -1, false
	for range 100 {
		w.tick++
		w.silent = -1
		for i := range w.ends {
			w.send(i)
			w.arrive(i)
		}
	}
	for _, o := range w.ends {
		if o.n.Outstanding() > 20 {
			o.t.Fatalf("%s: %d packets whose fate is unknown", o.where(), o.n.Outstanding())
		}
	}
}

var worlds = map[string]Config{
	"plain":          {},
	"few records":    {AckRecords: 3},
	"wait for flush": {WaitForFlush: true, AckRecords: maxRecords},
}

// Each packet is heard of once and in order, none is acked that wasn't processed,
// and none that was processed is lost, but those behind the history.
func TestModel(t *testing.T) {
	for name, cfg := range worlds {
		t.Run(name, func(t *testing.T) {
			losses := []float64{0, 0.05, 0.3, 0.6, 0.97}
			if testing.Short() {
				losses = []float64{0.05, 0.6}
			}
			for i, loss := range losses {
				w := newWorld(t, cfg, uint64(i+1), loss)
				for sent := int64(0); sent < 3<<14; {
					w.step()
					require.Less(t, w.tick, 100_000, w.ends[0].where())
					sent = min(w.ends[0].n.OutID()-w.ends[0].first, w.ends[1].n.OutID()-w.ends[1].first)
				}
				w.settle()
				a, b := w.ends[0], w.ends[1]
				require.Positive(t, a.ackedSum)
				require.Positive(t, b.ackedSum)
				t.Logf("loss %v: %d and %d sent, %d and %d acked, %d and %d too late to tell, gave up: %v %v", loss,
					a.n.OutID()-a.first, b.n.OutID()-b.first, a.ackedSum, b.ackedSum, a.tooLate, b.tooLate, a.gaveUp, b.gaveUp)
			}
		})
	}
}
