package bench

import (
	"testing"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/packetnotify"
)

type verdicts struct{ acked, lost int }

func (v *verdicts) PacketAcked(int64) { v.acked++ }
func (v *verdicts) PacketLost(int64)  { v.lost++ }

// A notifyPair is two ends on a line that loses one of every lose packets.
type notifyPair struct {
	ends [2]packetnotify.Notify
	buf  [64]byte
	w    bitio.Writer
	r    bitio.Reader
	got  verdicts
	sent int
	lose int
}

func newNotifyPair(lose int) *notifyPair {
	p := &notifyPair{lose: lose}
	p.ends[0].Init(packetnotify.Config{}, 1, 1)
	p.ends[1].Init(packetnotify.Config{}, 1, 1)
	return p
}

// packet goes from one end to the other.
func (p *notifyPair) packet(from int) {
	n := &p.ends[from]
	p.w.Reset(p.buf[:])
	n.WriteHeader(&p.w)
	n.RefreshHeader(&p.w, 0)
	n.Commit()
	if p.sent++; p.sent%p.lose == 0 {
		return
	}
	p.r.Reset(p.buf[:], p.w.Len())
	var h packetnotify.Header
	err := h.Read(&p.r)
	if err != nil {
		panic(err)
	}
	to := &p.ends[1-from]
	if _, process := to.Update(&h, &p.got); process {
		to.AckSeq(true)
	}
}

// One packet each way and all that is told about it; then the same with as many
// packets between two answers as a busy server sends, and with losses.
func BenchmarkNotify(b *testing.B) {
	cases := []struct {
		name      string
		perAnswer int
		lose      int
	}{
		{"turns", 1, 1 << 30},
		{"30 to 1", 30, 1 << 30},
		{"200 to 1", 200, 1 << 30},
		{"turns, 5% lost", 1, 20},
		{"30 to 1, 5% lost", 30, 21},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			p := newNotifyPair(c.lose)
			for i := 0; b.Loop(); i++ {
				p.packet(0)
				if i%c.perAnswer == c.perAnswer-1 {
					p.packet(1)
				}
			}
			b.ReportMetric(float64(p.got.lost)/float64(p.sent)*100, "%lost")
		})
	}
}

func TestAllocsNotify(t *testing.T) {
	p := newNotifyPair(9)
	exchange := func() {
		p.packet(0)
		p.packet(1)
	}
	for range 100 {
		exchange()
	}
	if n := testing.AllocsPerRun(1000, exchange); n != 0 {
		t.Fatalf("%v allocations for two packets", n)
	}
}
