package message_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/packetnotify/ackbits"
)

type number struct {
	N    uint32
	Fill []byte
}

func (n *number) Serialize(s *message.Stream) {
	s.Uint32(&n.N)
	s.Bytes(&n.Fill, 700)
}

type other struct {
	Name string
	V    int32
	On   bool
}

func (o *other) Serialize(s *message.Stream) {
	s.String(&o.Name, 30)
	s.Int(&o.V, -100, 100)
	s.Bool(&o.On)
}

type kinds struct {
	reg           message.Registry
	number, other *message.Kind
}

func newKinds() *kinds {
	k := &kinds{}
	k.number = k.reg.Add("number", func() message.Message { return new(number) })
	k.other = k.reg.Add("other", func() message.Message { return new(other) })
	return k
}

// line is two queues whose packets get lost, repeated and reordered; acks are told a step later.
type line struct {
	a, b   *message.Queue
	ka, kb *kinds
	rng    *rand.Rand
	loss   float64
	now    time.Duration
	id     int64
	back   int64 // ids of the packets from b to a
	flying []flight
}

type flight struct {
	id   int64
	data []byte
	at   time.Duration
}

func newLine(mode message.Mode, seed uint64, loss float64) *line {
	l := &line{ka: newKinds(), kb: newKinds(), rng: rand.New(rand.NewPCG(seed, 9)), loss: loss}
	l.a = message.New(message.Config{Mode: mode, Kinds: &l.ka.reg})
	l.b = message.New(message.Config{Mode: mode, Kinds: &l.kb.reg})
	return l
}

func (l *line) step(t *testing.T) {
	l.now += 16 * time.Millisecond
	for range 3 {
		w := bitio.NewWriter(make([]byte, 1000))
		if l.a.Write(l.now, w) == 0 {
			break
		}
		l.id++
		l.a.Sent(l.id)
		f := flight{l.id, w.Bytes(), l.now + time.Duration(l.rng.IntN(60))*time.Millisecond}
		if l.rng.Float64() < l.loss {
			f.data = nil
		}
		l.flying = append(l.flying, f)
		if l.rng.IntN(10) == 0 && f.data != nil {
			f.at += 40 * time.Millisecond
			l.flying = append(l.flying, f)
		}
	}
	rest := l.flying[:0]
	for _, f := range l.flying {
		if f.at > l.now {
			rest = append(rest, f)
			continue
		}
		if f.data == nil {
			if l.rng.IntN(2) == 0 { // a loss is told, or only the timer finds it
				l.a.Lost(f.id)
			}
			continue
		}
		require.NoError(t, l.b.Read(bitio.NewReader(f.data, len(f.data)*8)))
		if l.rng.Float64() >= l.loss {
			l.a.Acked(f.id)
		}
	}
	l.flying = rest
	l.credit(t)
}

// credit takes b's packets to a: b only receives, so they say what room there is.
func (l *line) credit(t *testing.T) {
	w := bitio.NewWriter(make([]byte, 1000))
	if l.b.Write(l.now, w) == 0 {
		return
	}
	l.back++
	l.b.Sent(l.back)
	if l.rng.Float64() < l.loss {
		if l.rng.IntN(2) == 0 {
			l.b.Lost(l.back)
		}
		return
	}
	require.NoError(t, l.a.Read(bitio.NewReader(w.Bytes(), w.Len())))
	if l.rng.Float64() >= l.loss {
		l.b.Acked(l.back)
	}
}

func TestOrderedUnderLoss(t *testing.T) {
	for seed := range uint64(4) {
		for _, loss := range []float64{0, 0.1, 0.5} {
			l := newLine(message.Ordered, seed, loss)
			sent, got := uint32(0), uint32(0)
			for i := 0; got < 70_000 && loss == 0 || got < 3000; i++ {
				require.Less(t, i, 100_000, "seed %d, loss %v: stuck at %d", seed, loss, got)
				for range 60 {
					m := l.ka.number.New().(*number)
					m.N, m.Fill = sent, m.Fill[:0]
					for range l.rng.IntN(20) {
						m.Fill = append(m.Fill, byte(sent))
					}
					if err := l.a.Send(l.ka.number, m); err != nil {
						require.ErrorIs(t, err, message.ErrFull)
						break
					}
					l.ka.number.Free(m)
					sent++
				}
				l.step(t)
				for m, k := l.b.Receive(); m != nil; m, k = l.b.Receive() {
					n := m.(*number)
					require.Equal(t, got, n.N, "seed %d, loss %v", seed, loss)
					for _, b := range n.Fill {
						require.Equal(t, byte(got), b)
					}
					got++
					k.Free(m)
				}
			}
		}
	}
}

func TestUnreliableModes(t *testing.T) {
	for _, mode := range []message.Mode{message.Unordered, message.Sequenced} {
		l := newLine(mode, 3, 0.2)
		last, got := int64(-1), 0
		seen := map[uint32]int{}
		for i := range uint32(5000) {
			m := l.ka.number.New().(*number)
			m.N, m.Fill = i, m.Fill[:0]
			require.NoError(t, l.a.Send(l.ka.number, m))
			l.step(t)
			for m, k := l.b.Receive(); m != nil; m, k = l.b.Receive() {
				n := m.(*number).N
				got++
				seen[n]++
				if mode == message.Sequenced {
					require.Greater(t, int64(n), last)
				}
				last = int64(n)
				k.Free(m)
			}
		}
		require.Greater(t, got, 2500)
		require.Zero(t, l.a.Pending())
	}
}

func TestSendErrors(t *testing.T) {
	l := newLine(message.Ordered, 1, 0)
	require.ErrorIs(t, l.a.Send(l.kb.number, &number{}), message.ErrKind)
	require.ErrorIs(t, l.a.Send(l.ka.other, &other{V: 101}), message.ErrRange)
	require.ErrorIs(t, l.a.Send(l.ka.number, &number{Fill: make([]byte, 701)}), message.ErrRange)
	small := message.New(message.Config{Kinds: &l.ka.reg, MaxBits: 100})
	require.ErrorIs(t, small.Send(l.ka.number, &number{Fill: make([]byte, 20)}), message.ErrTooLarge)
	for range 1024 {
		require.NoError(t, l.a.Send(l.ka.other, &other{}))
	}
	require.ErrorIs(t, l.a.Send(l.ka.other, &other{}), message.ErrFull)
	require.Equal(t, 1024, l.a.Pending())
}

// TestQuietThenOne: tens of thousands of packets without messages, then one.
func TestQuietThenOne(t *testing.T) {
	l := newLine(message.Ordered, 1, 0)
	for range 70_000 {
		l.id++
		l.a.Acked(l.id)
	}
	m := &other{Name: "late", V: -100, On: true}
	require.NoError(t, l.a.Send(l.ka.other, m))
	for range 10 {
		l.step(t)
	}
	got, _ := l.b.Receive()
	require.Equal(t, &other{Name: "late", V: -100, On: true}, got)
	require.Zero(t, l.a.Pending())
}

func TestReadRejects(t *testing.T) {
	l := newLine(message.Ordered, 1, 0)
	require.NoError(t, l.a.Send(l.ka.other, &other{Name: "x", V: 5}))
	w := bitio.NewWriter(make([]byte, 1000))
	require.Equal(t, 1, l.a.Write(0, w))
	for n := range w.Len() {
		q := message.New(message.Config{Kinds: &newKinds().reg})
		require.Error(t, q.Read(bitio.NewReader(w.Bytes(), n)), "cut to %d bits", n)
	}
	far := bitio.NewWriter(make([]byte, 10))
	far.WriteBool(false)
	far.WriteInt(1, 65)
	far.WriteUint16(20_000)
	far.WriteInt(1, 2)
	far.WriteBits(0, 32+10)
	require.ErrorIs(t, l.b.Read(bitio.NewReader(far.Bytes(), far.Len())), message.ErrWindow)
	credit := bitio.NewWriter(make([]byte, 10))
	credit.WriteBool(true)
	credit.WriteUint16(20_000)
	credit.WriteInt(0, 65)
	require.ErrorIs(t, l.a.Read(bitio.NewReader(credit.Bytes(), credit.Len())), message.ErrWindow)
}

// acker leads the fates of packets to a queue.
type acker struct{ q *message.Queue }

func (a acker) PacketAcked(id int64) { a.q.Acked(id) }
func (a acker) PacketLost(id int64)  { a.q.Lost(id) }

// TestOverAckbits runs two queues over the smaller ack scheme, a third of the packets lost.
func TestOverAckbits(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 1))
	var qs [2]*message.Queue
	var ends [2]*ackbits.Endpoint
	var ks [2]*kinds
	for i := range qs {
		ks[i] = newKinds()
		qs[i] = message.New(message.Config{Kinds: &ks[i].reg})
		var err error
		ends[i], err = ackbits.New(ackbits.Config{}, acker{qs[i]})
		require.NoError(t, err)
	}
	sent, got := [2]uint32{}, [2]uint32{}
	buf := make([]byte, 1000)
	for step := 0; got[0] < 5000 || got[1] < 5000; step++ {
		require.Less(t, step, 100_000, "seed %d: %v of %v", seed, got, sent)
		now := time.Duration(step) * 16 * time.Millisecond
		for i, q := range qs {
			for range 5 {
				if q.Send(ks[i].number, &number{N: sent[i]}) == nil {
					sent[i]++
				}
			}
			var w bitio.Writer
			w.Reset(buf)
			q.Write(now, &w)
			packet, id := ends[i].Send(now, nil, len(w.Bytes()))
			q.Sent(id)
			packet = append(packet, w.Bytes()...)
			ends[i].Tick(now)
			if rng.IntN(3) == 0 {
				continue
			}
			payload, _, err := ends[1-i].Receive(now, packet)
			require.NoError(t, err)
			if len(payload) > 0 {
				require.NoError(t, qs[1-i].Read(bitio.NewReader(payload, len(payload)*8)))
			}
			for m, k := qs[1-i].Receive(); m != nil; m, k = qs[1-i].Receive() {
				require.Equal(t, got[1-i], m.(*number).N, "seed %d", seed)
				got[1-i]++
				k.Free(m)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		for mode := range message.Sequenced + 1 {
			q := message.New(message.Config{Mode: mode, Kinds: &newKinds().reg})
			_ = q.Read(bitio.NewReader(b, len(b)*8))
			for m, k := q.Receive(); m != nil; m, k = q.Receive() {
				k.Free(m)
			}
		}
	})
}

func cycle(tb testing.TB, size int) func() {
	l := newLine(message.Ordered, 1, 0)
	buf := make([]byte, 1100)
	var w bitio.Writer
	var r bitio.Reader
	fill := make([]byte, size-4)
	now, id := time.Duration(0), int64(0)
	batch := min(32, 7000/(size*8+60))
	return func() {
		for range batch {
			m := l.ka.number.New().(*number)
			m.N, m.Fill = 1, append(m.Fill[:0], fill...)
			if err := l.a.Send(l.ka.number, m); err != nil {
				tb.Fatal(err)
			}
			l.ka.number.Free(m)
		}
		now += 16 * time.Millisecond
		w.Reset(buf)
		if n := l.a.Write(now, &w); n != batch {
			tb.Fatalf("%d of %d written", n, batch)
		}
		id++
		l.a.Sent(id)
		r.Reset(w.Bytes(), w.Len())
		if err := l.b.Read(&r); err != nil {
			tb.Fatal(err)
		}
		for m, k := l.b.Receive(); m != nil; m, k = l.b.Receive() {
			k.Free(m)
		}
		l.a.Acked(id)
		w.Reset(buf)
		if l.b.Write(now, &w) > 0 {
			l.b.Sent(id)
			r.Reset(w.Bytes(), w.Len())
			if err := l.a.Read(&r); err != nil {
				tb.Fatal(err)
			}
			l.b.Acked(id)
		}
	}
}

func TestAllocsQueue(t *testing.T) {
	for _, size := range []int{8, 256} {
		f := cycle(t, size)
		for range 600 {
			f()
		}
		require.Zero(t, testing.AllocsPerRun(200, f), "%d bytes", size)
	}
}

func BenchmarkOrdered(b *testing.B) {
	for _, size := range []int{8, 256} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			f := cycle(b, size)
			batch := min(32, 7000/(size*8+60))
			b.ReportAllocs()
			for i := 0; i < b.N; i += batch {
				f()
			}
		})
	}
}

// TestDaysOfSilence: queues that wrapped their numbers, were silent for three days at ticks of a second, and go on.
func TestDaysOfSilence(t *testing.T) {
	for _, mode := range []message.Mode{message.Ordered, message.Sequenced, message.Unordered} {
		l := newLine(mode, 5, 0)
		sent, got, last := 0, 0, -1
		play := func(n int) {
			limit := l.now + time.Hour
			for end := sent + n; sent < end || l.a.Pending() > 0; {
				require.Less(t, l.now, limit, "%v: %d of %d came", mode, got, end)
				for sent < end && l.a.Send(l.ka.number, &number{N: uint32(sent)}) == nil {
					sent++
				}
				l.step(t)
				for m, _ := l.b.Receive(); m != nil; m, _ = l.b.Receive() {
					at := int(m.(*number).N)
					require.True(t, mode == message.Unordered || at > last, "%v: %d after %d", mode, at, last)
					got, last = got+1, at
				}
			}
			for range 10 {
				l.step(t)
			}
			for m, _ := l.b.Receive(); m != nil; m, _ = l.b.Receive() {
				got++
			}
		}
		play(80_000)
		for range int(72 * time.Hour / time.Second) {
			l.now += time.Second
			w := bitio.NewWriter(make([]byte, 8))
			require.Zero(t, l.a.Write(l.now, w), "%v", mode)
		}
		before := got
		play(1000)
		require.Greater(t, got, before+300, "%v", mode)
		if mode == message.Ordered {
			require.Equal(t, sent, got)
		}
	}
}
