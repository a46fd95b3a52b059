package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHandlersKeepToTheBudget: a handler that sends reliably while IsNetReady says so doesn't fill the buffer, and what it sends isn't seconds late.
func TestHandlersKeepToTheBudget(t *testing.T) {
	for _, bandwidth := range []float64{8e6, 2e6} {
		var l *lab
		l = newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Bandwidth: bandwidth, QueueDelay: 300 * time.Millisecond}), 1, func(i int, c *Config) {
			c.Controller = adapt()
			if i == 0 {
				c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &eager{l: l} }
			}
		})
		l.join()
		ch := l.open(1)
		most := 0
		for range 20 * 60 {
			l.step(func() {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 200), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			})
			most = max(most, l.conns[0].Table().Unacked())
		}
		t.Logf("%v bit/s: %d unacked at most, %d kB came", bandwidth, most, l.got[1]/1000)
		require.Less(t, most, 2000)
		require.Greater(t, float64(l.got[1]), 20*0.8*bandwidth/8)
	}
}

// filler sends as long as IsNetReady says so, and measures by how much that was more than the budget.
type filler struct {
	channel.Nop
	l      *lab
	beyond int // bytes, at most
}

func (f *filler) ReceivedBunch(ch *channel.Channel, _ *bunch.In) { f.fill(ch) }

func (f *filler) fill(ch *channel.Channel) {
	c := f.l.conns[0]
	left := c.Budget()
	for c.IsNetReady() && ch.Room() > 10 {
		if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true}); err != nil {
			return
		}
		left -= 900
	}
	f.beyond = max(f.beyond, -left)
}

// TestFillsToTheBudget: who sends while IsNetReady says so queues no more in a call than the budget: in the game's own step, and in a handler when its bunches wait for the peer's memory.
func TestFillsToTheBudget(t *testing.T) {
	const ms = time.Millisecond
	for _, handles := range []bool{false, true} {
		for _, loss := range []float64{0, 1, 5} {
			f := &filler{}
			l := newLab(t, both(netsim.Settings{Lag: 40 * ms, Loss: loss, Bandwidth: 4e6, QueueDelay: 100 * ms}), 8, func(i int, c *Config) {
				c.Controller = adapt()
				if handles {
					c.MaxMemory, c.PeerMemory = 1<<20, 1<<20
				}
				if i == 0 {
					c.Channels[1].Accept = func(*channel.Channel) channel.Handler {
						if handles {
							return f
						}
						return channel.Nop{}
					}
				}
			})
			f.l = l
			l.join()
			ch := l.open(1)
			l.tick, l.fine = 33*ms, 4*ms
			l.run(10*time.Second, func() {
				if answers := l.conns[0].Channel(ch.Index()); answers != nil && !handles {
					f.fill(answers)
				}
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			})
			require.Less(t, f.beyond, 2000, "in a handler: %v, %v %% loss", handles, loss)
		}
	}
}

// asker sends a bunch in its handler, and asks before and behind it whether it may.
type asker struct {
	channel.Nop
	h     *hand
	ch    *channel.Channel
	ready []bool
}

func (a *asker) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if in.Reliable {
		return
	}
	c := a.h.conns[1]
	a.ready = append(a.ready, c.IsNetReady())
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true, NoMerge: true})
	require.NoError(a.h.t, err)
	a.ready = append(a.ready, c.IsNetReady())
}

// TestReadyAsOthersWait: a handler may send though bunches wait, until it has queued one behind these. What has left by then, its own too, takes
// none of the budget that there is after the packet.
func TestReadyAsOthersWait(t *testing.T) {
	a := &asker{}
	h := newHand(t, func(i int, c *Config) {
		if i == 1 {
			c.Channels = testTypes(func(ch *channel.Channel) channel.Handler {
				if ch.Index() == 0 {
					return channel.Nop{}
				}
				a.ch = ch
				return a
			})
		}
	})
	a.h = h
	c := h.conns[1]
	g := &gate{Controller: c.cfg.Controller}
	c.cfg.Controller = g
	for range 3 {
		_, err := a.ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	h.tick(0)
	require.Equal(t, 3, c.Table().Waiting())
	require.False(t, c.IsNetReady())
	g.budget = 3000
	h.give(0, h.packet(0, false))
	require.Equal(t, []bool{true, false}, a.ready)
	require.Zero(t, c.Table().Waiting())
	c.FlushNet()
	g.budget = 500
	require.True(t, c.IsNetReady())
}
