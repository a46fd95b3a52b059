package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handler"
)

// TestPacketsUseTheirLastBit: a packet may be filled until only its end marks have room, one or, with handlers, two; and arrives.
func TestPacketsUseTheirLastBit(t *testing.T) {
	for _, chain := range []*handler.Chain{nil, handler.NewChain(marker{})} {
		h := newHand(t, func(_ int, c *Config) { c.Handlers = chain })
		c := h.conns[0]
		marks := byte(0x80)
		if chain != nil {
			marks = 0xc0
		}
		bits, full := 8*1024, false
		p := h.raw(0, func(c *Conn) {
			for ; !c.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Bits: bits}, make([]byte, 1024)); bits-- {
				require.Positive(t, bits)
			}
			full = c.out.Free() == 0
		})
		require.True(t, full)
		require.Len(t, p, (c.proto.PacketBits()+c.proto.HandlerBits)/8)
		require.Equal(t, marks, p[len(p)-1])
		require.NoError(t, h.conns[1].ReceivedPacket(h.now, p))
		require.False(t, h.conns[1].Closed(), "%v", h.conns[1].Result())
	}
}

// TestRoomAroundPackets: Headroom bytes before each packet, however full, and Tailroom behind, and no more memory than that.
func TestRoomAroundPackets(t *testing.T) {
	var got [][2]int
	h := newHand(t, func(i int, c *Config) {
		c.Headroom, c.Tailroom, c.NetSpeed = 11, 23, 10_000_000
		send := c.LowLevelSend
		c.LowLevelSend = func(p []byte) {
			got = append(got, [2]int{len(p), cap(p)})
			send(p[11:])
		}
	})
	h.packet(0, false)
	for range 3 {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 950), NoMerge: true})
		require.NoError(t, err)
	}
	h.conns[0].FlushWritten(h.now)
	for _, n := range got {
		require.GreaterOrEqual(t, n[1]-n[0], 23)
	}
	require.Equal(t, 11+h.conns[0].proto.PacketBits()/8+23, got[len(got)-1][1])
}

// TestHeaderBehindAPrefix: with handlers, too, a packet begun before another arrived acks that one: its header stands behind the prefix.
func TestHeaderBehindAPrefix(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Handlers = handler.NewChain(marker{}) })
	p := h.packet(0, true)
	_, err := h.chs[1].SendBunch(&bunch.Out{Data: []byte("begun before")})
	require.NoError(t, err)
	h.give(0, p)
	h.conns[1].FlushWritten(h.now)
	require.Len(t, h.sent[1], 1)
	h.deliver(1)
	require.Zero(t, h.conns[0].Table().Unacked())
	require.Zero(t, h.conns[0].Counters.BadHandler+h.conns[0].Counters.Stale)
}

// TestMoreAcksThanAHeaderHasRoomFor: a packet begun before many others arrived can't ack them all: one more leaves at once for that.
func TestMoreAcksThanAHeaderHasRoomFor(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	_, err := h.chs[1].SendBunch(&bunch.Out{Data: []byte("begun before")})
	require.NoError(t, err)
	for range 100 {
		h.give(0, h.packet(0, false))
	}
	empty := h.conns[1].Counters.AckOnly
	h.conns[1].FlushWritten(h.now)
	require.Len(t, h.sent[1], 2)
	require.Equal(t, empty+1, h.conns[1].Counters.AckOnly)
	require.False(t, h.conns[1].flow.dirtyAcks)
	h.deliver(1)
	require.Zero(t, h.conns[0].notify.Outstanding())
}

// TestMergedPayloadMovesBehindItsLength: in packets whose size isn't a power of two a bunch's length field changes its width as the bunch
// grows, and what was in it stays.
func TestMergedPayloadMovesBehindItsLength(t *testing.T) {
	for _, v := range []struct {
		writes int
		widths []int // of the length, as it grows
	}{{160, []int{13}}, {165, []int{13, 12}}, {200, []int{13, 12, 13}}} {
		var got collector
		h := newHand(t, func(_ int, c *Config) {
			c.Protocol = Bunchnet()
			c.Protocol.Bunch.MaxPacket = 1000
			get := c.Channels[1].Accept
			c.Channels[1].Accept = func(ch *channel.Channel) channel.Handler { get(ch); return &got }
		})
		c := h.conns[0]
		got.got = nil
		var want []byte
		var widths []int
		for i := range v.writes {
			b := []byte{byte(i), byte(i >> 3), byte(i * 5)}
			_, err := h.chs[0].SendBunch(&bunch.Out{Data: b})
			require.NoError(t, err)
			want = append(want, b...)
			if w := c.proto.LengthBits(c.lastBits); len(widths) == 0 || widths[len(widths)-1] != w {
				widths = append(widths, w)
			}
		}
		require.Equal(t, v.widths, widths)
		h.conns[0].FlushWritten(h.now)
		require.Len(t, h.sent[0], 1)
		h.deliver(0)
		require.Equal(t, [][]byte{want}, got.got)
	}
}

// TestNothingIsAppendedToAnotherPacket: a bunch that left is not merged into, though the packet under construction ends at the same bit.
func TestNothingIsAppendedToAnotherPacket(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.tick(time.Millisecond)
	h.deliver(0)
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("left")})
	require.NoError(t, err)
	end := c.lastEnd
	require.NotZero(t, end)
	c.FlushNet()
	h.tick(time.Millisecond)
	c.startPacket()
	c.out.WriteBits(0, min(64, end-c.out.Len()))
	for c.out.Len() < end {
		c.out.WriteBits(0, 1)
	}
	require.False(t, (*outlet)(c).ExtendBunch([]byte{1}, 8))
}

// watcher is a controller that keeps what it hears of sent packets: their bytes, and whether they were empty.
type watcher struct {
	congestion.Controller
	sent  [][2]int
	lost  []int
	ticks int
}

func (w *watcher) Tick(time.Duration) { w.ticks++ }

func (w *watcher) OnLost(_ time.Duration, _ int64, bytes int) { w.lost = append(w.lost, bytes) }

func (w *watcher) OnSent(_ time.Duration, _ int64, bytes int) {
	w.sent = append(w.sent, [2]int{bytes, 0})
}

func (w *watcher) OnSentEmpty(_ time.Duration, _ int64, bytes int) {
	w.sent = append(w.sent, [2]int{bytes, 1})
}

// TestBytesWithTheNetworksOverhead: the controller hears of whole datagrams, of those without bunches too.
func TestBytesWithTheNetworksOverhead(t *testing.T) {
	const headroom = 24 // the link's own bytes, which aren't counted
	for _, empty := range []bool{false, true} {
		h := newHand(t, func(_ int, c *Config) {
			c.PacketOverhead, c.Headroom = 40, headroom
			send := c.LowLevelSend
			c.LowLevelSend = func(p []byte) { send(p[headroom:]) }
		})
		c := h.conns[0]
		var w watcher
		w.Controller, c.cfg.Controller = c.cfg.Controller, &w
		var p []byte
		if empty {
			c.oweAcks(0)
			c.FlushNet()
			p = h.sent[0][0]
		} else {
			p = h.packet(0, true)
		}
		require.Equal(t, [][2]int{{len(p) + 40, map[bool]int{true: 1}[empty]}}, w.sent)
	}
}

// TestBytesOfLostPackets: the controller hears of as many bytes when a packet is lost as when it was sent.
func TestBytesOfLostPackets(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.PacketOverhead = 40 })
	c := h.conns[0]
	var w watcher
	w.Controller, c.cfg.Controller = c.cfg.Controller, &w
	p := h.packet(0, false) // lost
	h.give(0, h.packet(0, false))
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.Equal(t, []int{len(p) + 40}, w.lost)
}

// TestTickAfterTheEnd: a connection that has ended no longer asks its controller anything, and its rates stand still.
func TestTickAfterTheEnd(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	for range 30 {
		h.packet(0, true)
		h.exchange()
	}
	require.NotZero(t, c.Stats().Rates.OutPackets)
	c.Abort(h.now, "enough")
	var w watcher
	w.Controller, c.cfg.Controller = c.cfg.Controller, &w
	before := c.Stats().Rates
	h.tick(10 * time.Second)
	require.Equal(t, before, c.Stats().Rates)
	require.Zero(t, w.ticks)
}

// TestEmptyBunchBehindAPacket: an empty bunch goes out too, when the one that it could have been merged with has left.
func TestEmptyBunchBehindAPacket(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		h := newHand(t, nil)
		for range 2 {
			_, err := h.chs[0].SendBunch(&bunch.Out{Reliable: reliable})
			require.NoError(t, err)
			h.conns[0].FlushNet()
		}
		require.Len(t, h.sent[0], 2)
		before := h.conns[1].Table().Counters.Received
		h.deliver(0)
		require.Equal(t, before+2, h.conns[1].Table().Counters.Received)
	}
}

// TestLeftOutSequenceInAFullRing: a sequence that no packet has takes the place of none in flight.
func TestLeftOutSequenceInAFullRing(t *testing.T) {
	c := new(Conn)
	for id := range int64(8) {
		c.sent(id, 100)
	}
	require.Len(t, c.packets, 8)
	c.sentNothing(8)
	c.sent(9, 100)
	for id := range int64(10) {
		require.Equal(t, id == 8, c.packetAt(id).skipped, id)
	}
	require.EqualValues(t, 10, c.next)
	c.first = 10
	c.sentNothing(10)
	require.EqualValues(t, 10, c.first)
	require.True(t, c.packetAt(10).skipped)
}

// TestEmptyPackets: they are counted as acks or as keep-alives, aren't sent by FlushWritten when only a keep-alive is due, and don't bring
// the next left-out sequence nearer.
func TestEmptyPackets(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Secret = 5 })
	c := h.conns[0]
	h.now += time.Second
	c.FlushWritten(h.now)
	require.Empty(t, h.sent[0])
	before, left := c.Counters, c.skip.left
	c.FlushNet()
	require.Len(t, h.sent[0], 1)
	require.Equal(t, [2]uint64{before.AckOnly, before.KeepAlives + 1}, [2]uint64{c.Counters.AckOnly, c.Counters.KeepAlives})
	c.oweAcks(0)
	c.FlushWritten(h.now)
	require.Equal(t, [2]uint64{before.AckOnly + 1, before.KeepAlives + 1}, [2]uint64{c.Counters.AckOnly, c.Counters.KeepAlives})
	require.Equal(t, left, c.skip.left)
	h.packet(0, false)
	require.Equal(t, left-1, c.skip.left)
}

// TestExtendBunchToTheLastBit: a bunch is extended as far as the packet has room, that of a length field which becomes wider included. The width
// is 12 for the lengths from 8*MaxPacket-4096 to 4095, and 13 for the others.
func TestExtendBunchToTheLastBit(t *testing.T) {
	for _, maxPacket := range []int{1010, 1020, 1024} {
		for first := 3960; first < 4100; first++ {
			for short := range 3 { // bits that the extension leaves
				p := Bunchnet()
				p.Bunch.MaxPacket = maxPacket
				types := testTypes(func(*channel.Channel) channel.Handler { return channel.Nop{} })
				c, err := New(Config{LowLevelSend: func([]byte) {}, Protocol: p, NetSpeed: 1_000_000, Channels: types}, 0, 1, 1)
				require.NoError(t, err)
				ch, err := c.Open(bunch.Control, channel.Nop{})
				require.NoError(t, err)
				o := (*outlet)(c)
				o.WriteBunch(&bunch.Header{Open: true, Reliable: true, Name: bunch.Control, Bits: first}, make([]byte, 600), ch, 1)
				before, free := c.proto.LengthBits(first), c.out.Free()
				bits := free - short
				fits := bits+c.proto.LengthBits(first+bits)-before <= free
				require.Equal(t, fits, o.ExtendBunch(make([]byte, 600), bits), "%d of %d bits behind %d", bits, free, first)
				require.NoError(t, c.out.Err())
			}
		}
	}
}

// TestWholeBunchesPartNothing: only a packet that the next part of an unreliable bunch follows leaves without copies and acks behind it: before a whole bunch, a first part or a reliable one it ends as ever.
func TestWholeBunchesPartNothing(t *testing.T) {
	for name, v := range map[string]struct {
		h      bunch.Header
		parted bool
	}{
		"whole":         {bunch.Header{}, false},
		"a first part":  {bunch.Header{Partial: true, PartialInitial: true}, false},
		"the next":      {bunch.Header{Partial: true}, true},
		"of a reliable": {bunch.Header{Partial: true, Reliable: true}, false},
	} {
		h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 1_000_000 })
		c := h.conns[0]
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 900), NoMerge: true})
		require.NoError(t, err)
		c.flow.lossNews = true // after which copies leave at once
		v.h.ChIndex, v.h.Bits = h.chs[0].Index(), 8*900
		(*outlet)(c).WriteBunch(&v.h, make([]byte, 900), h.chs[0], -1)
		require.Len(t, h.sent[0], 1)
		require.Equal(t, v.parted, c.flow.lossNews, name)
		require.False(t, c.split)
	}
}
