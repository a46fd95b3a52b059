package netconn

import (
	"encoding/binary"
	"slices"
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

// chatter takes the times that bunches of 8 bytes carry.
type chatter struct {
	channel.Nop
	l    *lab
	late []time.Duration
}

func (c *chatter) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Bits == 64 {
		c.late = append(c.late, c.l.now-time.Duration(in.Data.ReadUint64()))
	}
}

// TestRefusedOpensLeaveTheGameItsRate: while the peer refuses the channels of a level that it loads, on a perfect path, what else is sent goes on.
func TestRefusedOpensLeaveTheGameItsRate(t *testing.T) {
	for _, others := range []int{10, 50, 200} {
		loading := false
		in := &chatter{}
		l := newLab(t, both(netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 40 * time.Millisecond}), 5, func(i int, cfg *Config) {
			cfg.Controller = adapt()
			if i == 0 {
				cfg.Channels = testTypes(func(*channel.Channel) channel.Handler { return in })
				cfg.AllowOpen = func(*bunch.In) error {
					if loading {
						return channel.ErrMayNotOpen
					}
					return nil
				}
			}
		})
		in.l = l
		l.control()
		chat, state := l.open(1), l.open(1)
		_, err := state.SendBunch(&bunch.Out{Data: make([]byte, 1), Reliable: true})
		require.NoError(t, err)
		tick, said, refused := 0, 0, 0
		game := func() {
			if tick++; tick%6 == 0 {
				said++
				_, err := chat.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, uint64(l.now)), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			if !l.conns[1].IsNetReady() {
				refused++
			} else if state.OpenAcked() {
				_, err := state.SendBunch(&bunch.Out{Data: make([]byte, 100)})
				require.NoError(t, err)
			}
		}
		l.run(3*time.Second, game)
		loading = true
		for range others {
			_, err := l.open(1).SendBunch(&bunch.Out{Data: make([]byte, 300), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		in.late = nil
		tick, said, refused = 0, 0, 0
		l.run(30*time.Second, game)
		t.Logf("%d channels: not ready in %d of %d ticks, the chat waited %v at most", others, refused, tick, slices.Max(in.late).Round(time.Millisecond))
		require.Less(t, refused, tick/10, "%d channels", others)
		require.Less(t, slices.Max(in.late), 3*time.Second, "%d channels", others)
		require.Less(t, said-len(in.late), 4, "%d channels", others)
	}
}
