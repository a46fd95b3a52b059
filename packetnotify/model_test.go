package packetnotify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// oracle is what really happened to an end's packets.
type oracle struct {
	t         *testing.T
	where     string
	next      int64
	delivered map[int64]bool // processed by the peer
	acked     int
	lost      int
}

func (o *oracle) PacketAcked(id int64) { o.told(id, true) }
func (o *oracle) PacketLost(id int64)  { o.told(id, false) }
func (o *oracle) told(id int64, acked bool) {
	require.Equal(o.t, o.next, id, "%s: each packet once and in order", o.where)
	o.next++
	if acked {
		require.True(o.t, o.delivered[id], "%s: packet %d was never delivered", o.where, id)
		o.acked++
		return
	}
	o.lost++
}

type endpoint struct {
	n   Notify
	o   oracle
	out []flying // on the way to the peer
}

type flying struct {
	id    int64
	bytes []byte
}

// TestModel plays random traffic over a line that loses, repeats and reorders, around the 14 bits
// more than twice.
func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		for _, cfg := range []Config{{}, {WaitForFlush: true, AckRecords: maxRecords}} {
			rng := rand.New(rand.NewPCG(seed, 2))
			loss := []float64{0, 0.05, 0.3, 0.6, 0.9, 0.02}[seed]
			var ends [2]endpoint
			in, out := uint16(rng.UintN(1<<14)), uint16(rng.UintN(1<<14))
			for i := range ends {
				e := &ends[i]
				a, b := in, out
				if i == 1 {
					a, b = out, in
				}
				e.n.Init(cfg, a, b)
				e.o = oracle{t: t, where: fmt.Sprintf("seed %d, end %d, %+v", seed, i, cfg), next: int64(b), delivered: map[int64]bool{}}
			}
			for step := range 80_000 {
				e, peer := &ends[step&1], &ends[1-step&1]
				if rng.IntN(10) < 9 && e.n.Outstanding() < 300 {
					w := bitio.NewWriter(make([]byte, 64))
					e.n.WriteHeader(w)
					e.out = append(e.out, flying{e.n.OutID(), w.Bytes()})
					e.n.Commit()
				} else if e.n.Outstanding() >= 300 && rng.IntN(20) == 0 { // nobody hears us: keep-alive
					w := bitio.NewWriter(make([]byte, 64))
					e.n.WriteHeader(w)
					e.out = append(e.out, flying{e.n.OutID(), w.Bytes()})
					e.n.Commit()
				}
				for len(e.out) > 0 && rng.IntN(3) > 0 {
					k := 0
					if rng.IntN(20) == 0 {
						k = rng.IntN(len(e.out)) // out of order
					}
					f := e.out[k]
					if rng.IntN(50) > 0 { // otherwise it comes again
						e.out = append(e.out[:k], e.out[k+1:]...)
					}
					if rng.Float64() >= loss {
						deliver(t, e, peer, f, rng.IntN(30) > 0)
					}
				}
			}
			for i := range ends {
				o := &ends[i].o
				require.Greater(t, o.acked+o.lost, 1000, o.where)
				require.NotZero(t, o.acked, o.where)
				if loss < 0.5 {
					require.Greater(t, o.acked+o.lost, 2*16384, "%s: the sequence wrapped twice", o.where)
				}
			}
		}
	}
}

func deliver(t *testing.T, from, to *endpoint, f flying, process bool) {
	h, err := ReadHeader(bitio.NewReader(f.bytes, len(f.bytes)*8))
	require.NoError(t, err)
	want := to.n.Delta(&h)
	before := to.n.InID()
	delta, bunches := to.n.Update(&h, &to.o)
	if bunches {
		require.Equal(t, want, delta)
		require.Equal(t, f.id, to.n.InID(), "ids are the sender's")
		if process {
			from.o.delivered[f.id] = true
		}
		to.n.AckSeq(process)
	}
	require.GreaterOrEqual(t, to.n.InID(), before)
	n := &to.n
	require.LessOrEqual(t, n.inAckSeqAck, n.inAckSeq)
	require.LessOrEqual(t, n.inAckSeq, n.inSeq)
	require.Less(t, n.outAckSeq, n.outSeq)
}

func FuzzReadHeader(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(bitio.NewReader(b, len(b)*8))
		if err != nil {
			return
		}
		w := bitio.NewWriter(make([]byte, 64))
		h.Write(w)
		if w.Err() != nil || string(w.Bytes()) != string(b[:w.Len()/8]) {
			t.Fatalf("read from %x, written as %x", b, w.Bytes())
		}
		var n Notify
		n.Init(Config{}, 5, 9)
		n.Update(&h, &recorder{})
	})
}

func TestAllocsNotify(t *testing.T) {
	var a, b Notify
	a.Init(Config{}, 1, 1)
	b.Init(Config{}, 1, 1)
	buf := make([]byte, 64)
	var w bitio.Writer
	var r bitio.Reader
	h := &nobody{}
	turn := func(from, to *Notify) {
		w.Reset(buf)
		from.WriteHeader(&w)
		from.Commit()
		r.Reset(w.Bytes(), w.Len())
		hd, err := ReadHeader(&r)
		if err != nil {
			t.Fatal(err)
		}
		to.Update(&hd, h)
		to.AckSeq(true)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() { turn(&a, &b); turn(&b, &a) }))
}

type nobody struct{}

func (*nobody) PacketAcked(int64) {}
func (*nobody) PacketLost(int64)  {}
