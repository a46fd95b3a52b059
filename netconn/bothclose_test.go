package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
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
