package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// finisher has bunches of its own to send at the end, so many each time that it is asked.
type finisher struct {
	channel.Nop
	left, atOnce int
	asked        int
	other        *channel.Channel
	others       error
}

func (f *finisher) Finish(ch *channel.Channel) bool {
	f.asked++
	for range min(f.left, f.atOnce) {
		if _, err := ch.SendBunch(&bunch.Out{Data: []byte("last"), Reliable: true, NoMerge: true}); err != nil {
			panic(err)
		}
		f.left--
	}
	if f.other != nil {
		_, f.others = f.other.SendBunch(&bunch.Out{Data: []byte("no"), Reliable: true})
	}
	return f.left == 0
}

// opens has end 0 open a channel with a handler, and exchanges packets until both ends have it.
func (h *hand) opens(handler channel.Handler) *channel.Channel {
	ch, err := h.conns[0].Open(testName, handler)
	require.NoError(h.t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(h.t, err)
	for range 5 {
		h.exchange()
	}
	return ch
}

// TestFinishers: at an orderly end handlers with something left are asked until they have sent it, and the peer gets that; other channels, and
// the same one outside of Finish, send no more.
func TestFinishers(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	f := &finisher{left: 7, atOnce: 2}
	ch, err := c.Open(testName, f)
	require.NoError(t, err)
	f.other, err = c.Open(testName, channel.Nop{})
	require.NoError(t, err)
	for _, ch := range []*channel.Channel{ch, f.other} {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
	}
	for range 5 {
		h.exchange()
	}
	require.Zero(t, f.asked)
	received := h.conns[1].Table().Counters.ReceivedReliable
	c.Close(h.now, "")
	require.Equal(t, 1, f.asked)
	require.ErrorIs(t, f.others, channel.ErrClosed)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("no"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrClosed)
	for range 20 {
		h.exchange()
	}
	require.Zero(t, f.left)
	asked := f.asked
	require.GreaterOrEqual(t, asked, 4)
	require.Equal(t, ClosedByUs, c.Result().Code)
	require.Zero(t, c.Result().Unacked)
	require.Equal(t, ClosedByPeer, h.conns[1].Result().Code)
	require.EqualValues(t, 7, h.conns[1].Table().Counters.ReceivedReliable-received-1, "and the close")
}

// TestFinishersThatDoNotFinish: the end comes after LingerTimeout, and lists the channel.
func TestFinishersThatDoNotFinish(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	f := &finisher{left: 7}
	ch := h.opens(f)
	begin := h.now
	c.Close(h.now, "")
	for !c.Closed() {
		h.exchange()
		require.LessOrEqual(t, h.now-begin, 2*c.cfg.LingerTimeout)
	}
	require.GreaterOrEqual(t, h.now-begin, c.cfg.LingerTimeout)
	require.Equal(t, []channel.Undelivered{{Index: ch.Index(), Name: testName, Bunches: 1}}, c.Result().Undelivered)
	require.Equal(t, 1, c.Result().Unacked)
	for range 5 {
		h.exchange()
	}
	require.Equal(t, ClosedByPeer, h.conns[1].Result().Code)
}

// TestFinisherWithoutAChannel: a channel that ends while its handler has something left holds up nothing.
func TestFinisherWithoutAChannel(t *testing.T) {
	f := &finisher{left: 7}
	h := newHand(t, func(_ int, cfg *Config) {
		cfg.Channels = testTypes(func(ch *channel.Channel) channel.Handler {
			if ch.Index() > 0 {
				return f
			}
			return channel.Nop{}
		})
	})
	c := h.conns[1]
	begin := h.now
	c.Close(h.now, "")
	require.NoError(t, h.chs[0].Close(bunch.Destroyed))
	for !c.Closed() {
		h.exchange()
	}
	require.Less(t, h.now-begin, c.cfg.LingerTimeout)
	require.Positive(t, f.asked)
	require.Equal(t, ClosedByUs, c.Result().Code)
	require.Empty(t, c.Result().Undelivered)
}

// TestFinishersAreAskedSeldom: however many packets come at once from a peer, Finishers are asked once for them, and once by the tick.
func TestFinishersAreAskedSeldom(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	f := &finisher{left: 7}
	h.opens(f)
	c.Close(h.now, "")
	for range 10 {
		asked := f.asked
		for range 50 {
			h.conns[1].oweAcks(0)
			h.conns[1].FlushNet()
		}
		h.exchange()
		require.Equal(t, asked+2, f.asked)
	}
}

// ender is a Finisher that ends its connection.
type ender struct {
	channel.Nop
	end func()
}

func (f *ender) Finish(*channel.Channel) bool {
	f.end()
	return true
}

// TestFinisherThatEnds: after a Finisher has ended the connection nothing is opened to close it.
func TestFinisherThatEnds(t *testing.T) {
	for name, end := range map[string]func(c *Conn){
		"abort": func(c *Conn) { c.Abort(c.Now(), "enough") },
		"fail":  func(c *Conn) { c.Fail(channel.ErrMemory, true) },
		"link":  func(c *Conn) { c.LinkClosed(c.Now(), "gone") },
	} {
		h := newHand(t, nil)
		c := h.conns[0]
		h.opens(&ender{end: func() { end(c) }})
		c.Close(h.now, "")
		require.True(t, c.Closed(), name)
		require.Zero(t, c.Table().Len(), name)
		require.Zero(t, c.Table().Unacked(), name)
	}
}

// TestFinishersAreAskedSeldomThoughPacketsComeApart: with driver.Config.Prompt each packet comes at a time of its own. Finishers are asked each 4 ms at most for these, and what the last of them was for isn't
// forgotten.
func TestFinishersAreAskedSeldomThoughPacketsComeApart(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	f := &finisher{left: 100}
	h.opens(f)
	c.Close(h.now, "")
	asked, begun := f.asked, h.now
	for range 1000 {
		h.now += 50 * time.Microsecond
		h.conns[1].now = h.now
		h.conns[1].oweAcks(0)
		h.conns[1].FlushNet()
		h.deliver(1)
	}
	require.LessOrEqual(t, f.asked-asked, int((h.now-begun)/looksApart)+1)
	require.Greater(t, f.asked-asked, 5)
	at, ok := c.NextDeadline()
	require.True(t, ok)
	require.LessOrEqual(t, at, h.now+looksApart)
	c.Tick(at)
	h.sent[0] = nil
	next, ok := c.NextDeadline()
	require.True(t, ok)
	require.Greater(t, next, at+looksApart, "and no more than once")
}
