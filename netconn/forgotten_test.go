package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestForgottenTypeHoldsUpNothing: what is sent on a channel whose type the other end doesn't have is ignored there. It costs other channels
// nothing: no packet is refused for it.
func TestForgottenTypeHoldsUpNothing(t *testing.T) {
	forgottenName := bunch.Name{Index: 301}
	l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(i int, c *Config) {
		if i == 0 {
			c.Channels = append(c.Channels, channel.Type{Name: forgottenName, ClientOpen: true})
		}
		c.NetSpeed = 1_000_000
	})
	l.control()
	l.run(time.Second, nil)
	game := l.open(0)
	forgotten, err := l.conns[0].Open(forgottenName, nil)
	require.NoError(t, err)
	_, err = forgotten.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	l.run(30*time.Second, func() {
		_, err := game.SendBunch(&bunch.Out{Data: labMsg(l.now, 1, 50), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		_, err = forgotten.SendBunch(&bunch.Out{Data: make([]byte, 20)})
		require.NoError(t, err)
	})
	require.Nil(t, l.res[0])
	require.Less(t, l.conns[0].Counters.PacketsLost, uint64(10))
}

// TestSplitUnreliableAmidSplitReliable: a game that sends unreliable payloads of two packets on a channel with a large reliable one under way is
// told that they can't be sent, and the large one arrives: their packets aren't refused.
func TestSplitUnreliableAmidSplitReliable(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(i int, c *Config) { c.Controller = adapt() })
	l.control()
	l.run(time.Second, nil)
	game := l.open(0)
	_, err := game.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	refused := 0
	l.run(20*time.Second, func() {
		if game.NumOutRec() < 300 {
			_, err := game.SendBunch(&bunch.Out{Data: make([]byte, 60000), Reliable: true})
			require.NoError(t, err)
		}
		if _, err := game.SendBunch(&bunch.Out{Data: labMsg(l.now, 2, 1500)}); err != nil {
			require.ErrorIs(t, err, channel.ErrNotSent)
			refused++
		}
	})
	s := l.conns[0].Counters
	t.Log("refused", refused, "arrived", len(l.lat[1]), "bytes", l.got[1], "lost", s.PacketsLost, "acked", s.PacketsAcked)
	require.Nil(t, l.res[0])
	require.Greater(t, l.got[1], 10_000_000)
	require.Less(t, s.PacketsLost, s.PacketsAcked/20)
}
