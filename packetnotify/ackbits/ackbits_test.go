package ackbits

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func pair(t testing.TB) (a, b *Endpoint, heard *recorder) {
	heard = &recorder{}
	a, err := New(Config{}, heard)
	require.NoError(t, err)
	b, err = New(Config{}, nil)
	require.NoError(t, err)
	return a, b, heard
}

func TestHeaderBytes(t *testing.T) {
	h := Header{Seq: 0x1234, Ack: 0xabcd, AckBits: 0x80000005}
	p := h.Append(nil)
	require.Equal(t, "3412cdab05000080", hex.EncodeToString(p))
	got, payload, ok := ParseHeader(append(p, 9))
	require.True(t, ok)
	require.Equal(t, h, got)
	require.Equal(t, []byte{9}, payload)
	for n := range HeaderBytes {
		_, _, ok := ParseHeader(p[:n])
		require.False(t, ok)
	}
}

func TestFirstHeaders(t *testing.T) {
	a, b, _ := pair(t)
	p0, _ := a.Send(0, nil, 0)
	require.Equal(t, "0000ffff00000000", hex.EncodeToString(p0))
	p1, _ := a.Send(0, nil, 0)
	p2, _ := a.Send(0, nil, 0)
	for _, p := range [][]byte{p0, p2} { // p1 is lost
		_, _, err := b.Receive(0, p)
		require.NoError(t, err)
	}
	q, _ := b.Send(0, nil, 0)
	require.Equal(t, "0000020005000000", hex.EncodeToString(q), "bit n is ack-n")
	_, _, err := b.Receive(0, p1)
	require.NoError(t, err, "late isn't stale")
	q, _ = b.Send(0, nil, 0)
	require.Equal(t, "0100020007000000", hex.EncodeToString(q))
}

func TestAcksOnceAndRising(t *testing.T) {
	a, b, heard := pair(t)
	for range 10 {
		p, _ := a.Send(0, nil, 0)
		_, _, err := b.Receive(0, p)
		require.NoError(t, err)
	}
	for range 5 {
		q, _ := b.Send(0, nil, 0)
		_, _, err := a.Receive(0, q)
		require.NoError(t, err)
	}
	require.Len(t, heard.fates, 10)
	for i, f := range heard.fates {
		require.Equal(t, event{true, int64(i)}, f)
	}
	require.True(t, a.Acked(9))
	require.False(t, a.Acked(10))
}

func TestRefusals(t *testing.T) {
	a, b, heard := pair(t)
	first, _ := a.Send(0, nil, 0)
	for n := range HeaderBytes {
		_, _, err := b.Receive(0, first[:n])
		require.ErrorIs(t, err, ErrShort)
	}
	_, _, err := b.Receive(0, first)
	require.NoError(t, err)
	_, _, err = b.Receive(0, first)
	require.ErrorIs(t, err, ErrDuplicate)
	_, _, err = b.Receive(0, Header{Seq: 1, Ack: 0, AckBits: 1}.Append(nil))
	require.ErrorIs(t, err, ErrAckAhead, "b has sent nothing")
	_, _, err = b.Receive(0, Header{Seq: 300, Ack: 0xffff}.Append(nil))
	require.NoError(t, err)
	_, _, err = b.Receive(0, Header{Seq: 44, Ack: 0xffff}.Append(nil))
	require.ErrorIs(t, err, ErrStale)
	_, _, err = b.Receive(0, Header{Seq: 45, Ack: 0xffff}.Append(nil))
	require.NoError(t, err)
	s := b.Stats()
	require.Equal(t, [4]uint64{8, 1, 1, 1}, [4]uint64{s.RefusedShort, s.RefusedStale, s.RefusedDuplicate, s.RefusedAckAhead})
	require.Empty(t, heard.fates)
}

// TestNothingReceivedYet: before it has received anything, an end acks 0xffff with no
// bits, however much was sent to it.
func TestNothingReceivedYet(t *testing.T) {
	a, b, heard := pair(t)
	for range 60_000 {
		a.Send(0, nil, 0)
	}
	heard.fates = nil
	q, _ := b.Send(0, nil, 0)
	_, _, err := a.Receive(0, q)
	require.NoError(t, err)
	require.Empty(t, heard.fates)
}

func TestLossAfterOneSecond(t *testing.T) {
	a, b, heard := pair(t)
	_, ok := a.NextDeadline()
	require.False(t, ok)
	p, id := a.Send(time.Second, nil, 0)
	at, ok := a.NextDeadline()
	require.True(t, ok)
	require.Equal(t, 2*time.Second, at)
	a.Tick(at - 1)
	require.Empty(t, heard.fates)
	a.Tick(at)
	require.Equal(t, []event{{false, id}}, heard.fates)
	_, _, err := b.Receive(at, p)
	require.NoError(t, err)
	q, _ := b.Send(at, nil, 0)
	_, _, err = a.Receive(at+1, q)
	require.NoError(t, err)
	require.Equal(t, []event{{false, id}, {true, id}}, heard.fates, "a late ack is still told")
	require.EqualValues(t, 1, a.Stats().AckedLate)
}

// TestMeasures: 60 packets a second of 92+8 bytes, a round trip of 80 ms, each
// fifth lost.
func TestMeasures(t *testing.T) {
	a, b, _ := pair(t)
	payload := make([]byte, 92)
	var back [][]byte
	for n := range 1200 {
		now := time.Duration(n) * time.Second / 60
		p, _ := a.Send(now, nil, len(payload))
		if n%5 != 0 {
			_, _, err := b.Receive(now+40*time.Millisecond, append(p, payload...))
			require.NoError(t, err)
		}
		q, _ := b.Send(now+40*time.Millisecond, nil, 0)
		back = append(back, q)
		if n >= 5 { // 5 ticks are 83 ms
			_, _, err := a.Receive(now, back[n-5])
			require.NoError(t, err)
		}
		a.Tick(now)
		b.Tick(now)
	}
	s := a.Stats()
	require.InDelta(t, 0.2, s.Loss, 0.01)
	require.InDelta(t, 83.3, s.RTT.Seconds()*1000, 1)
	require.Less(t, s.Jitter, 2*time.Millisecond)
	require.InDelta(t, 48, s.SentKbps, 2)
	require.InDelta(t, 38.4, s.AckedKbps, 2)
	require.InDelta(t, 3.84, s.ReceivedKbps, 0.3)
	require.InDelta(t, 38.4, b.Stats().ReceivedKbps, 2)
	a.Tick(time.Hour)
	require.Less(t, a.Stats().SentKbps, 0.01)
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{Window: 100}, {Window: 16}, {Window: -1}, {Window: 1 << 15}, {LossAfter: -1}, {LossAfter: 1}, {LossAfter: time.Hour + 1}, {Smoothing: -1}, {Smoothing: 2}} {
		_, err := New(c, nil)
		require.ErrorIs(t, err, ErrConfig)
	}
	for _, c := range []Config{{}, {Window: 32}, {Window: 1 << 14}, {LossAfter: time.Millisecond}, {LossAfter: time.Hour}, {Smoothing: 1}} {
		_, err := New(c, nil)
		require.NoError(t, err)
	}
}

func exchange(t testing.TB) func() {
	a, b, _ := pair(t)
	a.handler = deaf{}
	buf, back := make([]byte, 0, 128), make([]byte, 0, 128)
	now := time.Duration(0)
	return func() {
		now += time.Millisecond
		p, _ := a.Send(now, buf, 100)
		if _, _, err := b.Receive(now, p[:HeaderBytes+100]); err != nil {
			t.Fatal(err)
		}
		q, _ := b.Send(now, back, 0)
		if _, _, err := a.Receive(now, q); err != nil {
			t.Fatal(err)
		}
		a.Tick(now)
		b.Tick(now)
	}
}

func TestAllocs(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(2000, exchange(t)))
}

// BenchmarkExchange sends, receives and acks a packet of 100 bytes with a packet back.
func BenchmarkExchange(b *testing.B) {
	f := exchange(b)
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

// FuzzReceive plays packets, each led by its length, to an end that sends between them.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 9, 1, 0, 0, 0, 1, 0, 0, 0, 7})
	f.Add([]byte{3, 1, 2, 3, 8, 0xff, 0xff, 0, 0, 1, 0, 0, 0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := New(Config{Window: 32}, nil)
		require.NoError(t, err)
		var now time.Duration
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			p := data[1 : 1+n]
			data = data[1+n:]
			now += 50 * time.Millisecond
			e.Send(now, nil, 1)
			before := e.Stats()
			payload, _, err := e.Receive(now, p)
			if err == nil {
				require.Len(t, payload, len(p)-HeaderBytes)
			} else {
				require.Equal(t, before.PacketsAcked, e.Stats().PacketsAcked)
				require.Equal(t, before.PacketsReceived, e.Stats().PacketsReceived)
			}
			e.Tick(now)
		}
		s := e.Stats()
		require.LessOrEqual(t, s.PacketsAcked, s.PacketsSent)
	})
}

type printer struct{}

func (printer) PacketAcked(id int64) { fmt.Println("acked", id) }
func (printer) PacketLost(id int64)  { fmt.Println("lost", id) }

func Example() {
	client, _ := New(Config{}, printer{})
	server, _ := New(Config{}, nil)

	hello, _ := client.Send(0, nil, 5)
	client.Send(16*time.Millisecond, nil, 0) // gets lost
	payload, id, _ := server.Receive(20*time.Millisecond, append(hello, "hello"...))
	fmt.Printf("server got packet %d: %s\n", id, payload)

	answer, _ := server.Send(20*time.Millisecond, nil, 0)
	client.Receive(40*time.Millisecond, answer)
	client.Tick(2 * time.Second)
	fmt.Println("round trip", client.Stats().RTT)
	// Output:
	// server got packet 0: hello
	// acked 0
	// lost 1
	// round trip 40ms
}

// TestStatsOfFewPackets checks the figures that a handful of packets make: nothing before the first, and the smallest round trip.
func TestStatsOfFewPackets(t *testing.T) {
	a, b, _ := pair(t)
	require.Zero(t, a.Stats().Loss)
	now := time.Duration(0)
	for _, rtt := range []time.Duration{40, 20, 60} {
		p, _ := a.Send(now, nil, 100)
		_, _, err := b.Receive(now, p)
		require.NoError(t, err)
		now += rtt * time.Millisecond
		q, _ := b.Send(now, nil, 0)
		_, _, err = a.Receive(now, q)
		require.NoError(t, err)
	}
	s := a.Stats()
	require.Equal(t, 20*time.Millisecond, s.MinRTT)
	require.EqualValues(t, 3, s.PacketsAcked)
	require.EqualValues(t, s.BytesSent, s.BytesAcked)
	require.Zero(t, s.Loss)
}

// TestSmoothing checks the ends of the range of weights.
func TestSmoothing(t *testing.T) {
	for weight, fine := range map[float64]bool{-0.1: false, 1e-9: true, 1: true, 1.0001: false} {
		_, err := New(Config{Smoothing: weight}, nil)
		require.Equal(t, fine, err == nil, "%v", weight)
	}
}

// resender sends again what is lost, at once.
type resender struct{ e *Endpoint }

func (r *resender) PacketAcked(int64) {}
func (r *resender) PacketLost(int64)  { r.e.Send(0, nil, 1) }

// TestNoSendWithinPacketLost: a handler that sends when it hears of a loss, in Send or in Tick, is told so. Two packets had the same sequence.
func TestNoSendWithinPacketLost(t *testing.T) {
	r := &resender{}
	var err error
	r.e, err = New(Config{Window: 32}, r)
	require.NoError(t, err)
	for range 32 {
		r.e.Send(0, nil, 1)
	}
	for _, f := range []func(){func() { r.e.Send(0, nil, 1) }, func() { r.e.Tick(time.Second) }} {
		require.PanicsWithValue(t, "ackbits: Send was called within PacketLost; remember what is lost, and send it again later", f)
	}
	_, id := r.e.Send(0, nil, 1)
	require.EqualValues(t, 32, id, "the endpoint goes on")
}
