package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// raw is a packet of end i's with what write adds to it.
func (h *hand) raw(i int, write func(c *Conn)) []byte {
	c := h.conns[i]
	c.startPacket()
	write(c)
	n := len(h.sent[i])
	c.sendPacket(0, false)
	p := h.sent[i][n]
	h.sent[i] = h.sent[i][:n]
	return p
}

// beyond is a packet with an unreliable bunch of end i's, whether there is room in its window or not.
func (h *hand) beyond(i int) []byte {
	return h.raw(i, func(c *Conn) { c.appendBunch(&bunch.Header{ChIndex: h.chs[i].Index(), Bits: 8}, []byte{1}) })
}

// TestBrokenRulesEndTheConnection: a packet that is authentic and wrong inside. What is behind the error isn't looked at.
func TestBrokenRulesEndTheConnection(t *testing.T) {
	for name, v := range map[string]struct {
		write func(c *Conn)
		err   error
	}{
		"half a bunch": {func(c *Conn) { c.out.WriteBits(1, 3) }, bunch.ErrHeader},
		"bad index": {func(c *Conn) {
			c.appendBunch(&bunch.Header{ChIndex: 32767, Bits: 8}, []byte{1})
			c.appendBunch(&bunch.Header{ChIndex: 1, Bits: 8}, []byte{1})
		}, channel.ErrBadIndex},
		"no packet info": {func(c *Conn) {
			c.out.Truncate(c.headerPos)
			c.notify.WriteHeader(&c.out)
			c.infoPos = 0
		}, ErrPacket},
	} {
		h := newHand(t, nil)
		c := h.conns[1]
		before := c.Table().Counters.Received
		require.NoError(t, c.ReceivedPacket(h.now, h.raw(0, v.write)), name)
		require.Equal(t, PeerBroke, c.Result().Code, name)
		require.ErrorIs(t, c.Result().Err, v.err, name)
		require.EqualValues(t, 1, c.Counters.BadBunch, name)
		require.LessOrEqual(t, c.Table().Counters.Received, before+1, name)
	}
}

// bunchNotes is a handler that keeps the packets of its bunches and, if it has a connection, ends that on a bunch or an ack.
type bunchNotes struct {
	channel.Nop
	packets      []int64
	onBunch, ack *Conn
}

func (n *bunchNotes) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	n.packets = append(n.packets, in.PacketID)
	if n.onBunch != nil {
		n.onBunch.Abort(n.onBunch.Now(), "enough")
	}
}

func (n *bunchNotes) ReceivedAck(*channel.Channel, int64) {
	if n.ack != nil {
		n.ack.Abort(n.ack.Now(), "enough")
	}
}

// TestBunchesKnowTheirPacket: also those of a packet that was held back.
func TestBunchesKnowTheirPacket(t *testing.T) {
	var n bunchNotes
	h := newHand(t, func(i int, c *Config) {
		c.ReorderWindow = 20 * time.Millisecond
		if i == 1 {
			get := c.Channels[1].Accept
			c.Channels[1].Accept = func(ch *channel.Channel) channel.Handler { get(ch); return &n }
		}
	})
	c := h.conns[1]
	n.packets = nil
	id := h.conns[0].notify.OutID()
	h.give(0, h.packet(0, false))
	c.enableOrderCache()
	missing := h.packet(0, false)
	h.give(0, h.packet(0, true))
	require.Equal(t, []int64{id, id + 2}, n.packets, "a reliable bunch is taken at once")
	h.give(0, missing)
	require.Equal(t, []int64{id, id + 2, id + 1}, n.packets)
}

// TestNothingIsOpenedAfterTheEnd: when a handler ends the connection on a bunch or on an ack, the rest of the packet opens no channel.
func TestNothingIsOpenedAfterTheEnd(t *testing.T) {
	for _, onAck := range []bool{false, true} {
		var handlers []*bunchNotes
		var conns [2]*Conn
		var sent [2][][]byte
		for i := range conns {
			c, err := New(Config{Server: i == 1, LowLevelSend: func(p []byte) { sent[i] = append(sent[i], append([]byte(nil), p...)) },
				Channels: testTypes(func(*channel.Channel) channel.Handler {
					handlers = append(handlers, new(bunchNotes))
					return handlers[len(handlers)-1]
				})[1:]}, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
			require.NoError(t, err)
			conns[i] = c
		}
		now := time.Duration(0)
		give := func(i int) {
			now += 50 * time.Millisecond
			conns[i].Tick(now)
			for _, p := range sent[i] {
				_ = conns[1-i].ReceivedPacket(now, p)
			}
			sent[i] = nil
		}
		ch, err := conns[0].Open(testName, channel.Nop{})
		require.NoError(t, err)
		say := func(ch *channel.Channel) {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		say(ch)
		give(0)
		give(1)
		require.Len(t, handlers, 1)
		if onAck {
			handlers[0].ack = conns[1]
			say(conns[1].Channel(ch.Index()))
			give(1)
		} else {
			handlers[0].onBunch = conns[1]
			say(ch)
		}
		other, err := conns[0].Open(testName, channel.Nop{})
		require.NoError(t, err)
		say(other)
		give(0)
		require.True(t, conns[1].Closed())
		require.Len(t, handlers, 1, "on an ack: %v", onAck)
		require.Zero(t, conns[1].Table().Len())
	}
}

// TestFarAheadOfAHeldClose: a packet so far ahead that the held ones must go first is dropped when one of these ends the connection.
func TestFarAheadOfAHeldClose(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow, c.OrderCache = 20*time.Millisecond, 4 })
	c := h.conns[1]
	c.enableOrderCache()
	h.packet(0, false)
	h.conns[0].Abort(h.now, "done")
	h.give(0, h.sent[0][0])
	require.Equal(t, 1, c.order.held)
	h2 := h.conns[0]
	h2.closer.result.Code = Running // it goes on, as no honest peer does
	var far []byte
	for range 5 {
		far = h.raw(0, func(*Conn) {})
	}
	h.give(0, far)
	require.Equal(t, ClosedByPeer, c.Result().Code)
	require.Less(t, c.notify.InID(), h2.notify.OutID()-1)
}

// TestAcksLeaveWithTheTick: also when a channel that nothing was written on is closed by the peer.
func TestAcksLeaveWithTheTick(t *testing.T) {
	h := newHand(t, nil)
	h.give(0, h.packet(0, true))
	require.True(t, h.conns[1].acksDue())
	require.NoError(t, h.chs[0].Close(bunch.Destroyed))
	h.conns[0].FlushWritten(h.now)
	h.deliver2(0)
	require.Nil(t, h.conns[1].Channel(h.chs[0].Index()))
	require.Empty(t, h.sent[1])
}

// TestCloseFollowsTheLastAck: channel 0 is closed as soon as the ack comes that Close waited for, without a Tick.
func TestCloseFollowsTheLastAck(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.give(0, h.packet(0, true))
	c.Close(h.now, "")
	require.False(t, c.Channel(0).Closing())
	h.conns[1].FlushWritten(h.now)
	h.deliver(1)
	require.True(t, c.Channel(0).Closing())
}

// TestAcksBeforeTheHistoryIsFull: the packet that makes them acksAtOnce sends the acks, whatever AckDelay says.
func TestAcksBeforeTheHistoryIsFull(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	h.conns[1].FlushNet()
	c := h.conns[1]
	c.cfg.AckDelay = time.Hour
	c.flow.unheard = 0
	for i := 1; i <= acksAtOnce; i++ {
		h.sent[1] = nil
		h.give(0, h.packet(0, false))
		require.Equal(t, i == acksAtOnce, len(h.sent[1]) == 1, "%d packets", i)
	}
}

// overflow has end 1 wait for its peer to hear of the fifty packets that it took before 250 got lost: the history can't tell of all.
func (h *hand) overflow() {
	for range 50 {
		h.give(0, h.beyond(0))
		h.sent[1] = nil
	}
	received := h.conns[1].Table().Counters.Received
	for range 250 {
		h.beyond(0)
	}
	h.conns[1].flow.dirtyAcks = false
	h.give(0, h.beyond(0))
	require.True(h.t, h.conns[1].notify.WaitingForFlush())
	require.Equal(h.t, received, h.conns[1].Table().Counters.Received)
}

// TestWaitForFlush: with Unreal53 an end that would lose track of what it delivered takes no packets until the peer has heard of that.
// It owes acks at once all the while, also for packets that come twice, and knows that the peer is there.
func TestWaitForFlush(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol, c.NetSpeed, c.AckDelay = Unreal53(false), 10_000_000, 500*time.Millisecond
	})
	require.Equal(t, packetnotify.Config{WaitForFlush: true, AckRecords: 8191}, h.conns[1].cfg.Protocol.Notify)
	c := h.conns[1]
	h.overflow()
	require.EqualValues(t, 1, c.Counters.NotProcessed)
	require.True(t, c.acksDue())

	received := c.Table().Counters.Received
	c.flow.dirtyAcks = false
	h.now += time.Millisecond
	h.give(0, h.beyond(0))
	require.Equal(t, received, c.Table().Counters.Received)
	require.True(t, c.acksDue())
	require.Equal(t, h.now, c.flow.lastReceive)

	h.sent[1] = nil
	c.FlushNet()
	h.deliver(1)
	h.give(0, h.beyond(0))
	require.False(t, c.notify.WaitingForFlush())
	require.Greater(t, c.Table().Counters.Received, received)
}

// TestCloseWhileWaitingForFlush: acks are taken from packets that aren't processed; when they were all that Close waited for, the next
// Tick closes channel 0.
func TestCloseWhileWaitingForFlush(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Protocol, c.NetSpeed = Unreal53(false), 10_000_000 })
	c := h.conns[1]
	late := h.packet(1, true)
	c.Close(h.now, "")
	h.overflow()
	h.give(1, late)
	h.give(0, h.beyond(0))
	require.True(t, c.notify.WaitingForFlush())
	require.Zero(t, c.Table().Unacked())
	require.False(t, c.Channel(0).Closing())
	c.Tick(h.now)
	require.True(t, c.Channel(0).Closing())
}

// TestControlOfARefusedPacket: of a packet that isn't processed the reliable bunches of channel 0 are taken, up to one that ends the connection or
// breaks a rule, and nothing else.
func TestControlOfARefusedPacket(t *testing.T) {
	for _, noInfo := range []bool{false, true} {
		refusing := func() (h *hand, control, game *bunchNotes) {
			control, game = new(bunchNotes), new(bunchNotes)
			h = newHand(t, func(i int, c *Config) {
				c.Protocol, c.NetSpeed, c.NoPacketInfo = Unreal53(false), 10_000_000, noInfo
				if i == 1 {
					c.Channels[0].Accept = func(*channel.Channel) channel.Handler { return control }
					c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return game }
				}
			})
			h.overflow()
			control.packets, game.packets = nil, nil
			return h, control, game
		}
		reliable := func(seq uint16) *bunch.Header { // the open was 8
			return &bunch.Header{Name: bunch.Control, Reliable: true, WireSeq: seq, Bits: 8}
		}
		h, control, game := refusing()
		id := h.conns[0].notify.OutID()
		h.give(0, h.raw(0, func(c *Conn) {
			c.appendBunch(&bunch.Header{Bits: 8}, []byte{1})
			c.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Name: testName, Reliable: true, WireSeq: 9, Bits: 8}, []byte{1})
			c.appendBunch(reliable(9), []byte{1})
			c.appendBunch(reliable(10), []byte{1})
		}))
		require.True(t, h.conns[1].notify.WaitingForFlush())
		require.Equal(t, []int64{id, id}, control.packets)
		require.Empty(t, game.packets)
		control.onBunch = h.conns[1]
		h.give(0, h.raw(0, func(c *Conn) {
			c.appendBunch(reliable(11), []byte{1})
			c.appendBunch(reliable(12), []byte{1})
		}))
		require.Len(t, control.packets, 3, "nothing after the end")

		for name, write := range map[string]func(c *Conn){
			"half a bunch": func(c *Conn) { c.out.WriteBits(1, 3) },
			"another type": func(c *Conn) {
				other := reliable(9)
				other.Name = testName
				c.appendBunch(other, []byte{1})
			},
		} {
			h, _, _ = refusing()
			h.give(0, h.raw(0, write))
			require.Equal(t, PeerBroke, h.conns[1].Result().Code, name)
			require.EqualValues(t, 1, h.conns[1].Counters.BadBunch, name)
		}
	}
}
