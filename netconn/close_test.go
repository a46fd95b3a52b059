package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestWrittenBeforeClose: what the SendBuffer holds for a channel when the peer's close of it arrives must not
// reach the peer with the ack of that close, after which it has no such channel.
func TestWrittenBeforeClose(t *testing.T) {
	var server, client collector
	p := newPair(t, 1, network{}, func(i int, c *Config) {
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return []channel.Handler{&client, &server}[i] })
	})
	steps := func(n int) {
		for range n {
			p.step()
			require.Nil(t, p.ends[0].result)
			require.Nil(t, p.ends[1].result)
		}
	}
	ctl, err := p.ends[0].conn.Open(bunch.Control, &client)
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	steps(3)
	ch, err := p.ends[1].conn.Open(testName, &server)
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	steps(3)
	mirror := p.ends[0].conn.Channel(ch.Index())
	require.NotNil(t, mirror)
	require.NoError(t, ch.Close(bunch.Destroyed))
	p.ends[1].conn.Tick(p.now)
	_, err = mirror.SendBunch(&bunch.Out{Data: []byte("too late"), Reliable: true})
	require.NoError(t, err)
	steps(10)
	require.Nil(t, p.ends[0].conn.Channel(ch.Index()))
	require.Nil(t, p.ends[1].conn.Channel(ch.Index()))
}

// TestUnheardControlEndsInOrder: a control channel that the peer never heard of ends the connection in order when it closes, also after packets
// have come.
func TestUnheardControlEndsInOrder(t *testing.T) {
	p := newPair(t, 1, network{}, func(_ int, c *Config) {
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return channel.Nop{} })
	})
	ch, err := p.ends[1].conn.Open(testName, channel.Nop{})
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
	for range 10 {
		p.step()
	}
	c := p.ends[0].conn
	require.NotZero(t, c.Counters.PacketsReceived)
	_, err = c.Open(bunch.Control, channel.Nop{})
	require.NoError(t, err)
	require.NoError(t, c.Channel(0).Close(bunch.Destroyed))
	for range 20 {
		p.step()
	}
	require.Equal(t, ClosedByUs, c.Result().Code)
	require.Equal(t, ClosedByPeer, p.ends[1].conn.Result().Code)
}

// TestLastAcks: the ack of the peer's close leaves five times, in one sequence: nothing is heard of it when it is lost.
func TestLastAcks(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	id := c.notify.OutID()
	h.conns[0].Close(h.now, "enough")
	h.conns[0].FlushWritten(h.now)
	h.deliver(0)
	require.True(t, c.Closed())
	require.Len(t, h.sent[1], 1+lastCopies)
	require.Equal(t, id+1, c.notify.OutID())
	h.deliver(1)
	require.True(t, h.conns[0].Closed())
	require.Zero(t, h.conns[0].Result().Unacked)
}

// TestSilentPeerEndsALongLinger: a close waits no longer than Timeout for a peer that isn't heard, however long LingerTimeout is, and as long as that for one that is heard.
func TestSilentPeerEndsALongLinger(t *testing.T) {
	const timeout = 5 * time.Second
	for _, c := range []struct{ linger, timeout, ends time.Duration }{
		{time.Hour, timeout, timeout}, {time.Second, timeout, time.Second}, {8 * time.Second, -1, 8 * time.Second},
	} {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, cfg *Config) { cfg.LingerTimeout, cfg.Timeout = c.linger, c.timeout })
		l.join()
		l.dark = [2]bool{true, true}
		l.conns[0].Close(l.now, "bye")
		began := l.now
		for l.res[0] == nil && l.now-began < time.Minute {
			l.step(nil)
		}
		require.NotNil(t, l.res[0])
		require.Equal(t, ClosedByUs, l.res[0].Code)
		require.InDelta(t, c.ends.Seconds(), (l.now - began).Seconds(), 0.3, "LingerTimeout %v", c.linger)
	}
	l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(i int, cfg *Config) {
		if cfg.LingerTimeout, cfg.Timeout = time.Minute, timeout; i == 1 {
			cfg.Timeout = -1
		}
	})
	l.join()
	l.dark[0] = true
	l.conns[0].Close(l.now, "bye")
	for began := l.now; l.now-began < 4*timeout; {
		l.step(nil)
	}
	require.Nil(t, l.res[0], "its keep-alives are heard")
}
