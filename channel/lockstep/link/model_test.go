package link

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// end is a Link whose messages are checked as they come.
type end struct {
	t       *testing.T
	l       *Link
	name    string
	out     func(p []byte)
	next    uint64 // number of the message expected next
	sent    uint64
	payload *rand.Rand // what the peer's messages must be made of
	own     *rand.Rand
}

func (e *end) Datagram(p []byte) { e.out(p) }

// makeMessage draws a message: its number and random bytes, 8 to 255 in all.
func makeMessage(buf []byte, number uint64, rng *rand.Rand) []byte {
	n := 8 + rng.IntN(40)
	if rng.IntN(20) == 0 {
		n = MaxMessage
	}
	m := binary.LittleEndian.AppendUint64(buf[:0], number)
	for len(m) < n {
		m = append(m, byte(rng.Uint32()))
	}
	return m
}

func (e *end) Message(msg []byte) {
	var buf [MaxMessage]byte
	want := makeMessage(buf[:], e.next, e.payload)
	if string(want) != string(msg) {
		e.t.Fatalf("%s: message %d is % x, want % x", e.name, e.next, msg, want)
	}
	e.next++
}

type badNet struct {
	rng                   *rand.Rand
	loss, dup, corrupt    float64
	delayMin, delayJitter time.Duration
	air                   []inAir
}

type inAir struct {
	to  *end
	due time.Duration
	p   []byte
}

func (n *badNet) push(now time.Duration, to *end, p []byte) {
	for copies := 1; copies > 0; copies-- {
		if n.rng.Float64() < n.dup {
			copies++
		}
		if n.rng.Float64() < n.loss {
			continue
		}
		q := append([]byte(nil), p...)
		if n.rng.Float64() < n.corrupt {
			// A burst of up to 16 bits, which a CRC-16 always finds.
			bit := n.rng.IntN(len(q)*8 - 16)
			for b := range 16 {
				if b == 0 || n.rng.IntN(2) == 0 {
					q[(bit+b)>>3] ^= 0x80 >> ((bit + b) & 7)
				}
			}
		}
		late := n.delayMin + time.Duration(n.rng.Int64N(int64(n.delayJitter)+1))
		n.air = append(n.air, inAir{to, now + late, q})
	}
}

func (n *badNet) deliver(now time.Duration) {
	kept := n.air[:0]
	for _, f := range n.air {
		if f.due > now {
			kept = append(kept, f)
		} else {
			_ = f.to.l.Receive(now, f.p)
		}
	}
	n.air = kept
}

// run sends count messages each way over n, and returns the time until all were acked.
func run(t *testing.T, seed uint64, cfg Config, n *badNet, count uint64) (a, b *end, took time.Duration) {
	n.rng = rand.New(rand.NewPCG(seed, 99))
	var now time.Duration
	mk := func(name string, own, peer uint64) *end {
		e := &end{t: t, name: fmt.Sprintf("seed %d, end %s", seed, name),
			own: rand.New(rand.NewPCG(seed, own)), payload: rand.New(rand.NewPCG(seed, peer))}
		var err error
		e.l, err = New(cfg, e)
		require.NoError(t, err)
		return e
	}
	a, b = mk("a", 1, 2), mk("b", 2, 1)
	a.out = func(p []byte) { n.push(now, b, p) }
	b.out = func(p []byte) { n.push(now, a, p) }
	var buf [MaxMessage]byte
	for step := 0; a.next < count || b.next < count || a.l.Stats().Unacked+b.l.Stats().Unacked > 0; step++ {
		require.Less(t, step, 4_000_000, "seed %d: stuck at %d and %d", seed, a.next, b.next)
		now += 2 * time.Millisecond
		for _, e := range []*end{a, b} {
			for e.sent < count && e.l.Free() > 0 && n.rng.IntN(4) > 0 {
				require.NoError(t, e.l.Send(now, makeMessage(buf[:], e.sent, e.own)))
				e.sent++
			}
		}
		n.deliver(now)
		for _, e := range []*end{a, b} {
			at, ok := e.l.NextDeadline()
			before := e.l.Stats().DatagramsSent
			e.l.Tick(now)
			if sent := e.l.Stats().DatagramsSent > before; sent && (!ok || at > now) {
				t.Fatalf("%s: sent at %v before its deadline %v", e.name, now, at)
			}
			at, ok = e.l.NextDeadline()
			if !ok || at <= now {
				t.Fatalf("%s: after a Tick at %v the deadline is %v, %v", e.name, now, at, ok)
			}
		}
	}
	return a, b, now
}

func TestBadNetwork(t *testing.T) {
	for seed := range uint64(21) {
		n := &badNet{loss: float64(seed%7) * 0.1, dup: 0.1, corrupt: 0.05,
			delayMin: 20 * time.Millisecond, delayJitter: time.Duration(seed%3) * 30 * time.Millisecond}
		a, b, took := run(t, seed, Config{}, n, 2000)
		if n.corrupt > 0 {
			require.NotZero(t, a.l.Stats().RefusedChecksum+b.l.Stats().RefusedChecksum)
		}
		t.Logf("seed %2d loss %2.0f%%: 2000 messages each way in %v, resent %d, SRTT %v", seed, n.loss*100, took, a.l.Stats().MessagesResent, a.l.Stats().SRTT)
	}
}

// TestWraps sends more than three times the sequence space, with reordering and loss.
func TestWraps(t *testing.T) {
	n := &badNet{loss: 0.1, dup: 0.1, delayMin: 2 * time.Millisecond, delayJitter: 10 * time.Millisecond}
	_, b, _ := run(t, 5, Config{}, n, 3*65536+1000)
	require.Greater(t, b.l.recvNext, int64(3*65536))
}

func TestCleanPathResendsNothing(t *testing.T) {
	n := &badNet{delayMin: 40 * time.Millisecond}
	a, _, _ := run(t, 1, Config{}, n, 1000)
	s := a.l.Stats()
	require.Zero(t, s.MessagesResent)
	require.InDelta(t, 0.082, s.SRTT.Seconds(), 0.01)
}

// TestSlowPath has a round trip over InitialRTO: only pings can find it out.
func TestSlowPath(t *testing.T) {
	n := &badNet{delayMin: 300 * time.Millisecond}
	a, _, _ := run(t, 1, Config{}, n, 2000)
	s := a.l.Stats()
	require.InDelta(t, 0.6, s.SRTT.Seconds(), 0.02)
	require.Less(t, s.MessagesResent, uint64(800), "only until the first answer")
}
