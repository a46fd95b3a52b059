package stream

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// clockwork changes in each tick of its server. Its values don't compress.
type clockwork struct {
	actorrep.Base
	At   int64      `net:""`
	Junk [16]uint64 `net:""`
}

// game is a world with things that change in each tick, and a stream beside it on the same connection.
type game struct {
	ages   []time.Duration // of what the client sees, in its ticks
	stream atomic.Int64    // bytes
}

// play runs a game for a time, with a stream from the server that always has more to send unless without is set.
func play(t *testing.T, things int, cfg driver.Config, down netsim.Settings, with bool, took time.Duration) *game {
	g := &game{}
	synctest.Test(t, func(t *testing.T) {
		l := Listen(name, Config{})
		world, mirror := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
		require.NoError(t, world.Register("Clockwork", (*clockwork)(nil)))
		require.NoError(t, mirror.Register("Clockwork", (*clockwork)(nil)))
		sc, cc := cfg, cfg
		sc.Channels, sc.Joined = append(world.ChannelTypes(), l.Type()), func(c *driver.Conn) { world.AddConn(c) }
		cc.Channels = append(mirror.ChannelTypes(), Type(name))
		server, client, _ := linked(t, sc, cc, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 5 * time.Millisecond}, down)
		all := make([]*clockwork, things)
		for i := range all {
			all[i] = &clockwork{}
			require.NoError(t, world.Spawn(all[i]))
		}
		seed := uint64(1)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() {
			done <- server.Run(ctx, func(now time.Time) {
				for _, x := range all {
					x.At = now.UnixNano()
					for i := range x.Junk {
						seed = seed*6364136223846793005 + 1442695040888963407
						x.Junk[i] = seed
					}
				}
				world.Step(server.Time(now))
			})
		}()
		began := time.Now()
		go func() {
			done <- client.Run(ctx, func(now time.Time) {
				mirror.Step(client.Time(now))
				if at := now.Sub(began); at < took/2 || at >= took {
					return // until all is there, and the pace is found
				}
				seen := 0
				for x := range mirror.All {
					seen++
					g.ages = append(g.ages, now.Sub(time.Unix(0, x.(*clockwork).At)))
				}
				for range things - seen {
					g.ages = append(g.ages, now.Sub(began))
				}
			})
		}()
		var ends []net.Conn
		c, err := Dial(ctx, client, name, Config{})
		require.NoError(t, err)
		if with {
			s, err := l.Accept()
			require.NoError(t, err)
			ends = append(ends, s)
			go func() {
				for {
					if _, err := s.Write(make([]byte, 10_000)); err != nil {
						return
					}
				}
			}()
		}
		ends = append(ends, c)
		go func() {
			b := make([]byte, 10_000)
			for {
				n, err := c.Read(b)
				if g.stream.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		time.Sleep(took)
		for _, e := range ends {
			require.NoError(t, e.Close())
		}
		stop()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.NoError(t, l.Close())
	})
	return g
}

// mean is how old what the client sees is.
func (g *game) mean() (sum time.Duration) {
	for _, a := range g.ages {
		sum += a
	}
	return sum / time.Duration(max(1, len(g.ages)))
}

// TestGameFirst: a stream takes what the game leaves, so that a world's actors come as if it weren't there; and it gets that.
func TestGameFirst(t *testing.T) {
	narrow := netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 20 * time.Millisecond, Bandwidth: 800_000, QueueDelay: 100 * time.Millisecond}
	for _, c := range []struct {
		what  string
		speed int
		down  netsim.Settings
	}{{"bucket", 100_000, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 20 * time.Millisecond}}, {"adaptive", 0, narrow}} {
		for _, prompt := range []bool{false, true} {
			for _, things := range []int{1, 10} {
				what := fmt.Sprintf("%s, prompt %v, %d actors", c.what, prompt, things)
				cfg := driver.Config{Link: driver.PlainSalted{}, TickRate: 20, Prompt: prompt, NetSpeed: c.speed}
				alone := play(t, things, cfg, c.down, false, 20*time.Second)
				beside := play(t, things, cfg, c.down, true, 20*time.Second)
				t.Logf("%s: age %v alone, %v beside a stream of %d B/s", what, alone.mean(), beside.mean(), beside.stream.Load()/20)
				assert.Less(t, beside.mean(), alone.mean()+200*time.Millisecond, what)
			}
		}
	}
}

// TestGameTakesAll: a game that would use more than there is isn't delayed by a stream, which gets a sixteenth all the same.
func TestGameTakesAll(t *testing.T) {
	cfg := driver.Config{Link: driver.PlainSalted{}, TickRate: 20, NetSpeed: 100_000}
	alone := play(t, 100, cfg, netsim.Settings{}, false, 10*time.Second)
	beside := play(t, 100, cfg, netsim.Settings{}, true, 10*time.Second)
	t.Logf("age %v alone, %v beside a stream of %d B/s", alone.mean(), beside.mean(), beside.stream.Load()/10)
	require.Less(t, beside.mean(), alone.mean()*3)
	require.Greater(t, beside.stream.Load(), int64(10*100_000/16/2))
}

// TestTurns: streams of a connection whose path is full share it, beside one whose reader has stalled.
func TestTurns(t *testing.T) {
	for _, prompt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := Listen(name, Config{})
			cfg := driver.Config{Link: driver.PlainSalted{}, NetSpeed: 100_000, TickRate: 20, Prompt: prompt}
			sc, cc := cfg, cfg
			sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
			server, client, _ := linked(t, sc, cc)
			ctx, stop := running(t, server, client)
			var got [3]atomic.Int64
			var ends []net.Conn
			for i := range 4 {
				c, err := Dial(ctx, client, name, Config{})
				require.NoError(t, err)
				s, err := l.Accept()
				require.NoError(t, err)
				ends = append(ends, c, s)
				go func() {
					for {
						if _, err := s.Write(make([]byte, 10_000)); err != nil {
							return
						}
					}
				}()
				if i == len(got) {
					continue // the stalled one
				}
				go func() {
					b := make([]byte, 1000)
					for {
						n, err := c.Read(b)
						if got[i].Add(int64(n)); err != nil {
							return
						}
					}
				}()
			}
			time.Sleep(20 * time.Second)
			for i := range got {
				assert.Greater(t, got[i].Load(), int64(20*70_000/3), "stream %d, prompt %v", i, prompt)
			}
			for _, e := range ends {
				assert.NoError(t, e.Close())
			}
			stop()
			require.NoError(t, l.Close())
		})
	}
}
