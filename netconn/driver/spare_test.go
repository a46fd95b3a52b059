package driver

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

// newSharing is a client with two open channels, one for its game and one for others, and so many bytes a second.
func newSharing(t *testing.T, rate int, tick time.Duration) (w *town, c *townClient, chs [2]*channel.Channel) {
	name := bunch.Name{Text: "Data"}
	cfg := Config{Link: PlainSalted{}, Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}}}
	cfg.NetSpeed, cfg.Server.MaxNetSpeed, cfg.Client.NetSpeed = rate, rate, rate
	w = newTown(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, cfg)
	c = w.dial(cfg)
	w.until("joined", func() bool { return c.joined })
	w.tick = tick
	for i := range chs {
		ch, err := c.Server().Open(name, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Reliable: true})
		require.NoError(t, err)
		chs[i] = ch
	}
	return w, c, chs
}

// TestSpareLeavesTheGame: a game that wants half of the bandwidth has it but for what one bunch of others takes; these have most of the rest.
func TestSpareLeavesTheGame(t *testing.T) {
	const rate = 300_000
	for _, size := range []int{500, 3000, 4000, 20_000} {
		w, c, chs := newSharing(t, rate, 33*time.Millisecond)
		conn := c.Server()
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

// TestSpareLeavesTheGameItsPart: a game that wants a part of the bandwidth has it, whatever bunches others send: larger than what a tick brings, or just above what it leaves.
func TestSpareLeavesTheGameItsPart(t *testing.T) {
	for _, c := range []struct {
		rate     int
		tick     time.Duration
		size     int
		part     float64
		reliable bool
	}{{300_000, 5 * time.Millisecond, 4000, 0.3, false}, {300_000, 8 * time.Millisecond, 4000, 0.2, true}, {600_000, 8 * time.Millisecond, 4000, 0.2, false}, {20_000, 250 * time.Millisecond, 4000, 0.7, true}} {
		w, client, chs := newSharing(t, c.rate, c.tick)
		conn := client.Server()
		for range 100 {
			w.step()
		}
		wanted, had, others, longest := 0, 0, 0, 0
		var game func()
		game = func() {
			client.BeforeFlush(game)
			wanted += int(float64(c.rate) * c.part * c.tick.Seconds())
			for had < wanted && conn.IsNetReady() {
				_, err := chs[0].SendBunch(&bunch.Out{Data: make([]byte, 140), StayUnreliable: true})
				require.NoError(t, err)
				had += 150
			}
			longest = max(longest, wanted-had)
		}
		game()
		conn.SendSpare(func() int {
			if chs[1].Room() == 0 {
				return 0
			}
			_, err := chs[1].SendBunch(&bunch.Out{Data: make([]byte, c.size), Reliable: c.reliable, StayUnreliable: !c.reliable, NoMerge: true})
			require.NoError(t, err)
			others += c.size
			return c.size
		})
		for range 300 {
			w.step()
		}
		t.Logf("%+v: the game has %d B of %d, and waits for %d at most; others have %d", c, had, wanted, longest, others)
		require.Less(t, longest, 2*(c.size+int(float64(c.rate)*c.tick.Seconds())), "%+v", c)
		require.Greater(t, float64(others), 0.5*(1-c.part)*float64(c.rate)*300*c.tick.Seconds(), "%+v", c)
	}
}

// TestSpareOfAGameThatTakesAll: others have a sixteenth, however fast the connection is, however long ticks are, and however little a call sends.
func TestSpareOfAGameThatTakesAll(t *testing.T) {
	for _, c := range []struct {
		rate int
		tick time.Duration
		size int
	}{{300_000, 16 * time.Millisecond, 900}, {1_000_000, 33 * time.Millisecond, 900}, {1_000_000, 16 * time.Millisecond, 200}} {
		w, client, chs := newSharing(t, c.rate, c.tick)
		conn, ch := client.Server(), chs[0]
		for range 50 {
			w.step()
		}
		others, begun, before := 0, 0, uint64(0)
		send := func(n int) {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, n), StayUnreliable: true})
			require.NoError(t, err)
		}
		var game func()
		game = func() {
			client.BeforeFlush(game)
			for conn.IsNetReady() {
				send(500)
			}
		}
		game()
		conn.SendSpare(func() int {
			send(c.size)
			others += c.size
			return c.size
		})
		for i := range 170 {
			if i == 70 {
				begun, before = others, conn.Counters.BytesSent
			}
			w.step()
		}
		share := float64(others-begun) / float64(conn.Counters.BytesSent-before)
		t.Logf("%+v: 1/%.1f", c, 1/share)
		require.InDelta(t, 1.0/owedPart, share, 0.01, "%+v", c)
	}
}

// TestSpareInTheDark: what others have sent into a darkness doesn't delay the game for long when it is over.
func TestSpareInTheDark(t *testing.T) {
	const rate, part = 100_000, 0.2
	for _, way := range []string{"up", "down", "both"} {
		w, client, chs := newSharing(t, rate, 16*time.Millisecond)
		conn, s := client.Server(), w.byAddr[client.LocalAddr()]
		wanted, had := 0.0, 0
		var game func()
		game = func() {
			client.BeforeFlush(game)
			for wanted += rate * part * w.tick.Seconds(); wanted > 0 && conn.IsNetReady(); wanted -= 150 {
				if _, err := chs[0].SendBunch(&bunch.Out{Data: make([]byte, 140), StayUnreliable: true}); err == nil { // the window may be full
					had += 150
				}
			}
		}
		game()
		conn.SendSpare(func() int {
			_, err := chs[1].SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true})
			require.NoError(t, err)
			return 1000
		})
		run := func(d time.Duration) {
			for end := w.now.Add(d); w.now.Before(end); {
				w.step()
			}
		}
		blind := func(loss float64) {
			set := w.set
			set.Loss = loss
			if way != "down" {
				require.NoError(t, s.up.Set(set))
			}
			if way != "up" {
				require.NoError(t, s.down.Set(set))
			}
		}
		run(2 * time.Second)
		blind(100)
		run(8 * time.Second)
		blind(0)
		run(2 * time.Second)
		wanted, had = 0, 0
		run(time.Second)
		t.Logf("%s: the game has %d B in the third second", way, had)
		require.Greater(t, had, int(rate*part*3/4), way)
	}
}

// TestSpareIsTakenAtOnce: what others begin to send has what the game leaves from its first second on, also on a long path.
func TestSpareIsTakenAtOnce(t *testing.T) {
	for _, lag := range []time.Duration{30 * time.Millisecond, 100 * time.Millisecond} {
		const rate, part = 1_000_000, 400_000
		w, client, chs := newSharing(t, rate, 16*time.Millisecond)
		s, set := w.byAddr[client.LocalAddr()], netsim.Settings{Lag: lag}
		require.NoError(t, s.up.Set(set))
		require.NoError(t, s.down.Set(set))
		for range 3 {
			for range 120 {
				w.step() // nobody sends
			}
			left, began := part, w.now
			client.Server().SendSpare(func() int {
				if left == 0 {
					return 0
				}
				_, err := chs[1].SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true})
				require.NoError(t, err)
				left -= 1000
				return 1000
			})
			w.until("all acked", func() bool { return left == 0 && chs[1].NumOutRec() == 0 })
			took := w.now.Sub(began)
			t.Logf("%v: %v", lag, took)
			require.Less(t, took, part*time.Second/rate+4*lag)
		}
	}
}

// TestCopiesBesideSpare: beside others that take all that a game leaves, or half of the rate, its reliable bunches have their copies.
func TestCopiesBesideSpare(t *testing.T) {
	const rate = 100_000
	for _, part := range []float64{0.5, 1} {
		name := bunch.Name{Text: "Data"}
		var w *town
		late := &spareLate{now: func() time.Time { return w.now }}
		cfg := Config{Link: PlainSalted{}, Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return late }}}}
		cfg.NetSpeed, cfg.Server.MaxNetSpeed, cfg.Client.NetSpeed = rate, rate, rate
		cfg.Redundancy.Copies = 2
		w = newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond, Loss: 5}, cfg)
		c := w.dial(cfg)
		w.until("joined", func() bool { return c.joined })
		var chs [2]*channel.Channel
		for i := range chs {
			var err error
			chs[i], err = c.Server().Open(name, channel.Nop{})
			require.NoError(t, err)
			_, err = chs[i].SendBunch(&bunch.Out{Reliable: true})
			require.NoError(t, err)
		}
		for range 120 {
			w.step()
		}
		may := 0.0
		send := func() int {
			if may < 1000 || chs[1].Room() == 0 {
				return 0
			}
			_, err := chs[1].SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			may -= 1000
			return 1000
		}
		var game func()
		game = func() {
			c.BeforeFlush(game)
			for range 2 {
				_, err := chs[0].SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(make([]byte, 0, 64), uint64(w.now.UnixNano()))[:64], Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
		}
		game()
		for range 600 {
			if may += part * rate * 0.016; len(c.Server().spare.senders) == 0 {
				c.Server().SendSpare(send)
			}
			w.step()
		}
		slices.Sort(late.all)

		require.Less(t, late.all[len(late.all)*99/100], 130*time.Millisecond)
	}
}

// spareLate is how long bunches of 64 bytes, which say when they were sent, took.
type spareLate struct {
	channel.Nop
	now func() time.Time
	all []time.Duration
}

func (l *spareLate) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Bits == 64*8 {
		l.all = append(l.all, time.Duration(uint64(l.now().UnixNano())-in.Data.ReadUint64()))
	}
}
