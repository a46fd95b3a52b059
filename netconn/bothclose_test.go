package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCloseWaitsForASlowPeerThatClosesToo: when both ends close, the one that is done waits for all that the other has sent, however slow that
// is, and neither says that the other broke the protocol.
func TestCloseWaitsForASlowPeerThatClosesToo(t *testing.T) {
	var got collector
	p := newPair(t, 1, network{delay: 5 * time.Millisecond}, func(i int, c *Config) {
		c.LingerTimeout, c.NetSpeed = 10*time.Minute, [2]int{1_000_000, 4000}[i]
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &got })
	})
	ctl, err := p.ends[0].conn.Open(bunch.Control, channel.Nop{})
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	for range 60 {
		p.step()
	}
	ch, err := p.ends[1].conn.Open(testName, channel.Nop{})
	require.NoError(t, err)
	const sent = 400
	for range sent {
		_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	for _, e := range p.ends {
		e.conn.Close(p.now, "done")
	}
	for end := p.now + 10*time.Minute; p.now < end && (p.ends[0].result == nil || p.ends[1].result == nil); {
		p.step()
	}
	require.Equal(t, sent+1, len(got.got), "and what the client said on the control channel")
	for _, e := range p.ends {
		require.NotNil(t, e.result)
		require.Equal(t, ClosedByUs, e.result.Code, e.result)
		require.Zero(t, e.result.Unacked)
	}
}

// Both ends close at once; one has more to deliver than the other. Neither lingers, and all arrives.
func TestBothCloseAtOnce(t *testing.T) {
	for _, lag := range []time.Duration{0, 50, 200} {
		l := newLab(t, both(netsim.Settings{Lag: lag * time.Millisecond}), 1, nil)
		l.control()
		l.run(time.Second, nil)
		ch := l.open(1)
		for range 60 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			require.NoError(t, err)
		}
		start := l.now
		l.conns[0].Close(l.now, "done")
		l.conns[1].Close(l.now, "done")
		for l.now-start < 10*time.Second && (l.res[0] == nil || l.res[1] == nil) {
			l.step(nil)
		}
		t.Logf("%+v %+v lag %v: %v, %v and %v", l.res[0].Undelivered, l.res[1].Undelivered, lag, l.now-start, l.res[0], l.res[1])
		if l.res[1].Unacked > 0 {
			t.Errorf("lag %v: %d bunches of an end that closed at the same time were cut off although both ends and the path were well", lag, l.res[1].Unacked)
		}
		if l.now-start > 1900*time.Millisecond {
			t.Errorf("lag %v: lingers %v", lag, l.now-start)
		}
	}
}

// TestAcksTheOthersClose: an end that closes, too, acks the other's close before it ends, though its acks would wait: who ends is heard no more.
func TestAcksTheOthersClose(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.AckDelay = 100 * time.Millisecond })
	for _, c := range h.conns {
		c.Close(h.now, "")
	}
	h.tick(10 * time.Millisecond)
	h.sent[0] = nil // lost
	h.deliver(1)
	require.True(t, h.conns[0].Closed())
	require.False(t, h.conns[1].Closed())
	h.deliver(0)
	require.True(t, h.conns[1].Closed())
	require.Equal(t, ClosedByUs, h.conns[1].Result().Code)
}

// TestTheCloseIsAckedWhenBothClose: who is closed by the other's close, which waited for what that had left, acks it as often as one that didn't close: the other mustn't wait for LingerTimeout.
func TestTheCloseIsAckedWhenBothClose(t *testing.T) {
	for _, sent := range []int{0, 1, 60} {
		for who := range 2 {
			waited := 0
			for seed := range uint64(100) {
				l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond, Loss: 10}), seed, nil)
				l.control()
				l.run(time.Second, nil)
				if sent > 0 {
					ch := l.open(who)
					for range sent {
						_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
						require.NoError(t, err)
					}
				}
				for i := range l.lose {
					l.lose[i] = func([]byte) bool { return l.res[1-i] != nil } // the link forgets who has ended
				}
				for _, c := range l.conns {
					c.Close(l.now, "bye")
				}
				begun := l.now
				for l.res[0] == nil || l.res[1] == nil {
					l.step(nil)
				}
				if l.now-begun >= 2*time.Second {
					waited++
				}
			}
			require.LessOrEqual(t, waited, 1, "%d bunches of %d", sent, who)
		}
	}
}
