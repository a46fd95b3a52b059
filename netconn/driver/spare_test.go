package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLaterBeforeSpare: what a game leaves for the end of its tick, such as blocks, is the game's: others share what it leaves.
func TestLaterBeforeSpare(t *testing.T) {
	cfg := Config{Link: PlainSalted{}}
	w := newTown(t, 1, netsim.Settings{}, cfg)
	c := w.dial(cfg)
	w.until("joined", func() bool { return c.joined })
	conn := c.Server()
	var order []string
	c.BeforeFlush(func() {
		conn.SendSpare(func() int { order = append(order, "spare"); return 0 })
		conn.Table().Later(func() { order = append(order, "later") })
	})
	w.until("both ran", func() bool { return len(order) == 2 })
	require.Equal(t, []string{"later", "spare"}, order)
	w.step()
	require.Len(t, order, 2, "each once")
	runs := 0
	var each func()
	each = func() {
		runs++
		conn.Table().Later(each)
	}
	each()
	w.step()
	w.step()
	require.Equal(t, 3, runs, "once a tick")
}

// TestSpareLeavesTheGame: a game that wants half of the bandwidth has it but for what one bunch of others takes; these have most of the rest.
func TestSpareLeavesTheGame(t *testing.T) {
	const rate = 300_000
	for _, size := range []int{500, 3000, 4000, 20_000} {
		name := bunch.Name{Text: "Data"}
		cfg := Config{Link: PlainSalted{}, Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}}}
		cfg.NetSpeed, cfg.Server.MaxNetSpeed, cfg.Client.NetSpeed = rate, rate, rate
		w := newTown(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, cfg)
		w.tick = 33 * time.Millisecond
		c := w.dial(cfg)
		w.until("joined", func() bool { return c.joined })
		conn := c.Server()
		var chs [2]*channel.Channel
		for i := range chs {
			ch, err := conn.Open(name, channel.Nop{})
			require.NoError(t, err)
			chs[i] = ch
		}
		wanted, had, others, longest := 0, 0, 0, 0
		var game func()
		game = func() {
			c.BeforeFlush(game)
			wanted += int(rate / 2 * w.tick.Seconds())
			for had < wanted && conn.IsNetReady() && conn.Table().Waiting() == 0 {
				_, err := chs[0].SendBunch(&bunch.Out{Data: make([]byte, 150), Reliable: true})
				require.NoError(t, err)
				had += 150
			}
			longest = max(longest, wanted-had)
		}
		game()
		wanted = 0
		conn.SendSpare(func() int {
			if chs[1].Room() == 0 {
				return 0
			}
			_, err := chs[1].SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			others += size
			return size
		})
		for range 150 {
			w.step()
		}
		wanted, had, others, longest = wanted-had, 0, 0, 0
		for range 300 {
			w.step()
		}
		t.Logf("bunches of %d B: the game has %d B of %d, and waits for %d at most; others have %d", size, had, wanted, longest, others)
		require.Less(t, longest, size+int(rate*w.tick.Seconds()))
		require.Greater(t, others, int(rate/4*300*w.tick.Seconds()))
	}
}
