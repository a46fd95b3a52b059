package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// refuser refuses every second bunch.
type refuser struct {
	channel.Nop
	got, refused int
}

func (r *refuser) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	if r.got++; r.got%2 == 0 {
		r.refused++
		ch.Refuse()
	}
}

// TestRefuse: the sender of an unreliable bunch that its receiver refuses hears that it is lost. A refused reliable one has arrived, and what is refused within
// no bunch is nothing.
func TestRefuse(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		in := &refuser{}
		l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) {
			c.Channels = testTypes(func(ch *channel.Channel) channel.Handler {
				ch.Refuse()
				return in
			})
		})
		l.join()
		out := l.open(0)
		_, err := out.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		for range 10 {
			l.step(nil)
		}
		l.conns[1].Channel(out.Index()).Refuse()
		in.got, in.refused = 0, 0
		before, refused := l.conns[0].Counters.PacketsLost, l.conns[1].Table().Counters.Refused
		for range 100 {
			_, err := out.SendBunch(&bunch.Out{Data: []byte{2}, Reliable: reliable, NoMerge: true})
			require.NoError(t, err)
			l.step(nil)
		}
		for range 10 {
			l.step(nil)
		}
		require.Equal(t, 100, in.got)
		require.Equal(t, 50, in.refused)
		want := uint64(50)
		if reliable {
			want = 0
		}
		require.Equal(t, want, l.conns[0].Counters.PacketsLost-before)
		require.Equal(t, want, l.conns[1].Table().Counters.Refused-refused)
		require.Zero(t, l.conns[1].Table().Counters.MemoryFull, "that is for what Hold refuses")
		require.Nil(t, l.res[0])
	}
}
