package netconn

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLinkEndDeliversWhatIsHeld: when the link says that the peer has gone, packets that are held back for a late one are delivered first, as all that has arrived
// before the end is; but not within another packet, whose handler is told of the end.
func TestLinkEndDeliversWhatIsHeld(t *testing.T) {
	for _, within := range []bool{false, true} {
		l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) { c.ReorderWindow = -1 })
		l.control()
		l.run(time.Second, nil)
		ch := l.open(1)
		say := func(on *channel.Channel, reliable bool, data string) {
			_, err := on.SendBunch(&bunch.Out{Data: []byte(data), Reliable: reliable, NoMerge: true})
			require.NoError(t, err)
			l.conns[1].FlushNet()
		}
		say(ch, true, "open")
		l.run(time.Second, nil)
		c, before := l.conns[0], l.got[0]
		c.enableOrderCache()
		var late []byte
		l.lose[1] = func(p []byte) bool {
			late = slices.Clone(p)
			return true
		}
		say(l.open(1), true, "late")
		l.lose[1] = nil
		say(ch, false, "held")
		say(ch, true, "words")
		l.now += 10 * time.Millisecond
		for p, ok := l.links[1].Pop(l.now); ok; p, ok = l.links[1].Pop(l.now) {
			_ = c.ReceivedPacket(l.now, p)
		}
		require.Nil(t, l.res[0])
		require.Equal(t, 2, c.order.held)
		want := before + len("held") + len("words")
		if within {
			want = before
			l.accept[0] = func(*channel.Channel) { c.LinkClosed(l.now, "gone") }
			_ = c.ReceivedPacket(l.now, late)
		} else {
			c.LinkClosed(l.now, "gone")
		}
		require.NotNil(t, l.res[0])
		require.Equal(t, "gone", l.res[0].Reason)
		require.Equal(t, want, l.got[0])
	}
}
