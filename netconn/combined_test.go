package netconn

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// comboChan is a channel whose messages say whose they are and in which order.
type comboChan struct {
	channel.Nop
	w      *combo
	local  bool
	ch     *channel.Channel
	inc    uint32 // which of all channels it is; 0 not known yet
	sent   uint32
	next   uint32
	closed bool
}

// combo is two ends that open, fill and close channels at random.
type combo struct {
	p     *pair
	chans [2][]*comboChan // opened by an end
	acc   [2][]*comboChan // accepted by it
	inc   uint32
	bad   string // what is wrong
}

func (h *comboChan) send(size int, reliable, noMerge bool) error {
	b := make([]byte, 12+size)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], h.inc)
	seq := h.sent + 1
	if !reliable {
		seq = 0
	}
	binary.LittleEndian.PutUint32(b[8:], seq)
	for i := 12; i < len(b); i++ {
		b[i] = byte(uint32(i)*7 + h.inc*3 + seq)
	}
	_, err := h.ch.SendBunch(&bunch.Out{Data: b, Reliable: reliable, NoMerge: noMerge})
	if err == nil && reliable {
		h.sent++
	}
	return err
}

func (h *comboChan) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	for len(b) > 0 {
		if len(b) < 12 || int(binary.LittleEndian.Uint32(b)) > len(b) {
			h.w.bad = fmt.Sprint("broken message ", len(b))
			return
		}
		n := binary.LittleEndian.Uint32(b)
		inc, seq := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
		for i := 12; i < int(n); i++ {
			if b[i] != byte(uint32(i)*7+inc*3+seq) {
				h.w.bad = "damaged"
			}
		}
		b = b[n:]
		if h.inc == 0 {
			h.inc = inc
		}
		if inc != h.inc {
			h.w.bad = fmt.Sprintf("message of incarnation %d on %d", inc, h.inc)
		}
		if seq == 0 {
			continue
		}
		if seq != h.next+1 {
			h.w.bad = fmt.Sprintf("incarnation %d local %v: %d after %d", inc, h.local, seq, h.next)
		}
		h.next = seq
	}
}
func (h *comboChan) Closed(*channel.Channel, channel.CloseReason) { h.closed = true }

func runCombo(t *testing.T, seed uint64, coding Coding) (why string, delivered int) {
	rng := rand.New(rand.NewPCG(seed, 77))
	w := new(combo)
	bits := []uint8{5, 5, 6, 7, 0, 11}[rng.IntN(6)]
	buffer := map[uint8]int{5: 16, 6: 32, 7: 64, 0: 512, 11: 1024}[bits] >> rng.IntN(2)
	net := network{loss: []float64{0, 0.02, 0.1, 0.3}[rng.IntN(4)], dup: rng.Float64() * 0.1, reorder: rng.Float64() * 0.3,
		delay: time.Duration(rng.IntN(60)) * time.Millisecond, jitter: time.Duration(rng.IntN(40)) * time.Millisecond}
	red := Redundancy{Copies: rng.IntN(17), Adaptive: rng.IntN(2) == 0}
	if rng.IntN(3) == 0 {
		red = Redundancy{}
	}
	window := []time.Duration{0, 0, -1, 20 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond}[rng.IntN(6)]
	cache := []int{0, 8, 32, 256}[rng.IntN(4)]
	ackDelay := []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond}[rng.IntN(3)]
	speed := []int{20_000, 200_000, 20_000_000}[rng.IntN(3)]
	flush := rng.IntN(3) == 0
	w.p = newPair(t, seed, net, func(i int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.Bunch.SequenceBits = bits
		c.Protocol.ReliableBuffer = buffer
		c.Protocol.Notify.WaitForFlush = flush
		if rng.IntN(3) == 0 {
			c.Protocol.PacketWindow = 16 << rng.IntN(5)
		}
		if flush {
			c.Protocol.PacketWindow = min(c.Protocol.PacketWindow, 256)
		}
		c.Redundancy, c.ReorderWindow, c.OrderCache, c.AckDelay, c.NetSpeed = red, window, cache, ackDelay, speed
		c.MaxMemory = 256 << 10
		if c.Coding = coding; coding.on() {
			c.MaxMemory = 1 << 20
		}
		c.Secret = seed
		acc := func(ch *channel.Channel) channel.Handler {
			h := &comboChan{w: w, ch: ch}
			w.acc[i] = append(w.acc[i], h)
			return h
		}
		c.Channels = testTypes(acc)
	})
	ctl, err := w.p.ends[0].conn.Open(bunch.Control, &collector{})
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte{12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, Reliable: true})
	require.NoError(t, err)
	dark := 0
	loss := w.p.net.loss
	for i := 0; i < 1500 && w.bad == "" && w.p.ends[0].result == nil && w.p.ends[1].result == nil; i++ {
		if dark--; dark == 0 {
			w.p.net.loss = loss
		} else if dark < -200 && rng.IntN(300) == 0 {
			dark = 1 + rng.IntN(60)
			w.p.net.loss = 1
		}
		for e := range 2 {
			live := w.chans[e][:0]
			for _, h := range w.chans[e] {
				if !h.closed {
					live = append(live, h)
				}
			}
			w.chans[e] = live
			live = w.acc[e][:0]
			for _, h := range w.acc[e] {
				if !h.closed {
					live = append(live, h)
				}
			}
			w.acc[e] = live
			if len(w.chans[e]) < 6 && rng.IntN(4) == 0 {
				w.inc++
				h := &comboChan{w: w, local: true, inc: 100 + w.inc}
				if h.ch, err = w.p.ends[e].conn.Open(testName, h); err == nil {
					w.chans[e] = append(w.chans[e], h)
					h.send(rng.IntN(40), true, true)
				}
			}
			for _, list := range [][]*comboChan{w.chans[e], w.acc[e]} {
				for _, h := range list {
					if h.inc == 0 || h.closed || h.ch.Index() == 0 {
						continue
					}
					for range rng.IntN(8) {
						size := rng.IntN(30)
						if rng.IntN(30) == 0 {
							size = rng.IntN(4000)
						}
						_ = h.send(size, rng.IntN(5) != 0, rng.IntN(2) == 0)
					}
					if h.local && rng.IntN(60) == 0 {
						_ = h.ch.Close(bunch.Destroyed)
					}
				}
			}
		}
		w.p.step()
	}
	for e := range 2 {
		for _, l := range [][]*comboChan{w.acc[e], w.chans[e]} {
			for _, h := range l {
				delivered += int(h.next)
			}
		}
	}
	if w.bad != "" {
		return w.bad + fmt.Sprintf(" [bits %d buffer %d %+v red %+v window %v cache %d flush %v]", bits, buffer, net, red, window, cache, flush), delivered
	}
	for e := range 2 {
		if r := w.p.ends[e].result; r != nil {
			return fmt.Sprintf("end %d: %v [bits %d buffer %d %+v red %+v window %v cache %d flush %v]", e, r, bits, buffer, net, red, window, cache, flush), delivered
		}
	}
	// all must arrive
	w.p.net = network{delay: 10 * time.Millisecond}
	for i := 0; i < 60*60; i++ {
		if w.p.ends[0].conn.Table().Unacked()+w.p.ends[1].conn.Table().Unacked() == 0 {
			return "", delivered
		}
		w.p.step()
		if w.bad != "" || w.p.ends[0].result != nil || w.p.ends[1].result != nil {
			return fmt.Sprint("drain: ", w.bad, w.p.ends[0].result, w.p.ends[1].result), delivered
		}
	}
	return fmt.Sprintf("never drained: %d %d [bits %d buffer %d]", w.p.ends[0].conn.Table().Unacked(), w.p.ends[1].conn.Table().Unacked(), bits, buffer), delivered
}

// TestReopenedChannelsUnderAnything: reliable bunches arrive once, in order and on the channel that they were sent on, however channels are
// opened and closed at both ends, over any network, with any redundancy, order cache, window and number of sequences; and all of them arrive.
func TestReopenedChannelsUnderAnything(t *testing.T) {
	seeds := uint64(14)
	if os.Getenv("CI") != "" {
		seeds = 84
	}
	for seed := range seeds {
		coding := Coding{}
		if seed%2 == 1 {
			coding = Coding{Repairs: float64(1+seed/2%6) / 2, Adaptive: seed/2%3 == 2}
		}
		why, _ := runCombo(t, 85+seed, coding)
		require.Empty(t, why, "seed %d, %+v", 85+seed, coding)
	}
}
