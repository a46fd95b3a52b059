package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// recording is a sink of events and of packets.
type recording struct {
	events  []nettrace.Event
	packets []nettrace.Packet
}

func (r *recording) Trace(e *nettrace.Event) { r.events = append(r.events, *e) }
func (r *recording) TracePacket(p *nettrace.Packet) {
	q := *p
	q.Data = append([]byte(nil), p.Data...)
	r.packets = append(r.packets, q)
}

func (r *recording) of(k nettrace.Kind) (list []nettrace.Event) {
	for _, e := range r.events {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

// TestOpenedIsTraced: the first event of a connection is that it is there.
func TestOpenedIsTraced(t *testing.T) {
	var r recording
	_, err := New(Config{LowLevelSend: func([]byte) {}, Trace: &r, ID: 7}, time.Minute, 1, 2)
	require.NoError(t, err)
	require.Equal(t, []nettrace.Event{{At: time.Minute, Kind: nettrace.ConnOpened, Conn: 7}}, r.events)
}

// TestTrace: each packet and bunch of a conversation is told to the sinks of both ends, with what it is.
func TestTrace(t *testing.T) {
	var r [2]recording
	h := newHand(t, func(i int, c *Config) { c.Trace, c.Packets, c.ID = &r[i], &r[i], uint32(40+i) })
	for range 3 {
		h.exchange()
	}
	r = [2]recording{}
	p := h.packet(0, true)
	id := h.conns[0].notify.OutID() - 1
	h.give(0, p)
	seq := int64(h.chs[0].NumOutRec()) // so many of this channel's are unacked
	require.EqualValues(t, 1, seq)
	wire := r[0].events[0].ChSequence
	require.Equal(t, []nettrace.Event{
		{At: h.now, Kind: nettrace.BunchSent, Conn: 40, PacketID: id, ChIndex: h.chs[0].Index(), ChSequence: wire, Bits: 24, A: nettrace.Reliable},
		{At: h.now, Kind: nettrace.PacketSent, Conn: 40, PacketID: id, A: uint64(len(p))},
	}, r[0].events)
	got := r[1].of(nettrace.BunchReceived)
	require.Equal(t, []nettrace.Event{{At: h.now, Kind: nettrace.BunchReceived, Conn: 41, PacketID: id, ChIndex: h.chs[0].Index(), ChSequence: wire, Bits: 24, A: nettrace.Reliable}}, got)
	require.Len(t, r[1].of(nettrace.PacketReceived), 1)
	require.EqualValues(t, 1, r[1].of(nettrace.PacketReceived)[0].B)
	require.Equal(t, []nettrace.Packet{{At: h.now, Conn: 40, Sent: true, Data: p}}, r[0].packets)
	require.Equal(t, []nettrace.Packet{{At: h.now, Conn: 41, Server: true, Data: p}}, r[1].packets)

	h.give(0, p) // twice
	require.Len(t, r[1].of(nettrace.PacketRefused), 1)
	sentAt := h.now
	h.now += 30 * time.Millisecond
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.Equal(t, []nettrace.Event{{At: h.now, Kind: nettrace.PacketAcked, Conn: 40, PacketID: id, A: uint64(h.now - sentAt)}}, r[0].of(nettrace.PacketAcked))

	lost := h.conns[0].notify.OutID()
	h.packet(0, true)
	h.give(0, h.packet(0, false))
	h.conns[1].Tick(h.now)
	h.deliver(1)
	naks := r[0].of(nettrace.PacketNak)
	require.Len(t, naks, 1)
	require.Equal(t, lost, naks[0].PacketID)
	h.conns[0].Abort(h.now, "enough")
	require.Equal(t, []nettrace.Event{{At: h.now, Kind: nettrace.ConnClosed, Conn: 40, A: uint64(ClosedByUs), B: uint64(h.conns[0].Result().Unacked)}}, r[0].of(nettrace.ConnClosed))

	n := len(r[1].events)
	h.conns[1].SetTrace(nil)
	h.deliver(0)
	require.Len(t, r[1].events, n)
}

// TestFlagsOfBunches: open, close, reliable and part.
func TestFlagsOfBunches(t *testing.T) {
	require.EqualValues(t, 0, bunchFlags(&bunch.Header{}))
	require.EqualValues(t, nettrace.Reliable, bunchFlags(&bunch.Header{Reliable: true}))
	require.EqualValues(t, nettrace.Open|nettrace.Close, bunchFlags(&bunch.Header{Open: true, Close: true}))
	require.EqualValues(t, nettrace.Partial, bunchFlags(&bunch.Header{Partial: true}))
}

// TestJitterClock: the first packet of a tick tells the millisecond at which it is sent, or that the one before is a second old; the
// others of the tick and those with NoPacketInfo tell nothing.
func TestJitterClock(t *testing.T) {
	for _, silent := range []bool{false, true} {
		h := newHand(t, func(_ int, c *Config) { c.NoPacketInfo, c.KeepAlive = silent, 30*time.Second })
		r := &h.conns[1].rtt
		say := func() int {
			r.lastClock = -7
			h.give(0, h.packet(0, false))
			return int(r.lastClock)
		}
		h.now = h.now.Truncate(time.Second) + 10*time.Second + 345678*time.Microsecond
		h.conns[0].Tick(h.now)
		want := func(clock int) int {
			if silent {
				return -7
			}
			return clock
		}
		h.sent[0] = nil
		h.conns[0].Tick(h.now)
		h.now += 20 * time.Millisecond
		require.Equal(t, want(jitterNone), say(), "ten seconds without a packet")
		require.Equal(t, -7, say(), "the second of the tick")
		h.conns[0].Tick(h.now)
		h.now += time.Second - 1
		require.Equal(t, want(365), say())
		h.conns[0].Tick(h.now)
		h.now += time.Second
		require.Equal(t, want(jitterNone), say())
		h.conns[0].Tick(h.now)
		h.sent[0] = nil
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("begun")})
		require.NoError(t, err)
		h.now += 40 * time.Millisecond
		r.lastClock = -7
		h.conns[0].Tick(h.now)
		h.deliver(0)
		require.Equal(t, want(405), int(r.lastClock), "of the moment of sending, not of writing")
	}
}

// TestFrameTimeByteIsSkipped: a server that sets the frame time bit has a byte behind it; a client that sets it asks for one.
func TestFrameTimeByteIsSkipped(t *testing.T) {
	for _, server := range []bool{false, true} {
		c := &Conn{cfg: Config{Server: server}}
		w := newBits(1, 1, 345, 10, 1, 1, 0x77, 8, 0x5, 3)
		clock, ok := c.readPacketInfo(w)
		require.True(t, ok)
		require.Equal(t, 345, clock)
		if !server {
			require.EqualValues(t, 5, w.ReadBits(3))
		} else {
			require.EqualValues(t, 0x77, w.ReadBits(8))
		}
		_, ok = c.readPacketInfo(newBits(0, 1))
		require.False(t, ok)
	}
}

// TestSmallAccessors: what a connection says of itself.
func TestSmallAccessors(t *testing.T) {
	h := newHand(t, func(i int, c *Config) { c.ID, c.Owner = uint32(9+i), "owner" })
	c := h.conns[1]
	require.True(t, c.IsServer())
	require.False(t, h.conns[0].IsServer())
	require.EqualValues(t, 10, c.ID())
	require.Equal(t, "owner", c.Owner())
	require.Equal(t, h.now, c.Now())
	c.Tick(h.now - time.Second)
	require.Equal(t, h.now, c.Now(), "time doesn't go back")
	free := c.FreeBits()
	require.Equal(t, c.proto.PacketBits()-bunch.MaxPacketHeaderBits-1, free)
	_, err := h.chs[1].SendBunch(&bunch.Out{Data: make([]byte, 100)})
	require.NoError(t, err)
	require.Less(t, c.FreeBits(), free)
	require.Equal(t, c.out.Free(), c.FreeBits())
	var _ channel.Conn = c
}

// newBits is a reader of values and their widths.
func newBits(list ...uint64) *bitio.Reader {
	w := bitio.NewWriter(make([]byte, 64))
	for i := 0; i < len(list); i += 2 {
		w.WriteBits(list[i], int(list[i+1]))
	}
	return bitio.NewReader(w.Bytes(), w.Len())
}
