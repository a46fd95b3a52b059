package stream

import (
	"bytes"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRefusedAtOnce: a stream beyond the bounds is refused in the tick in which it came, so that nothing waits for the next one however
// many come and go until then; and while other channels have filled the memory, as soon as there is some.
func TestRefusedAtOnce(t *testing.T) {
	for _, full := range []bool{false, true} {
		other := bunch.Name{Index: 311}
		l := Listen(name, Config{MaxStreams: 1})
		now := time.Unix(1_700_000_000, 0)
		busy := channel.Type{Name: other, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
		base := driver.Config{Clock: func() time.Time { return now }, NetSpeed: 1_000_000, MaxMemory: 256 << 10}
		sc, cc := base, base
		sc.Channels, cc.Channels = []channel.Type{l.Type(), busy}, []channel.Type{Type(name), busy}
		server, client, _ := linked(t, sc, cc)
		tick := ticking(&now, server, client)
		for range 10 {
			tick()
		}
		if full {
			for c := range server.Conns {
				fill(t, c, other)
			}
		}
		var streams [2]*Conn
		for i := range streams {
			var err error
			streams[i], err = Open(client.Server(), name, Config{})
			require.NoError(t, err)
		}
		refused := func() bool { // what its next Read finds
			c := streams[1]
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.peerFin && c.peerStopped && c.refusal == TooManyStreams
		}
		tick()
		require.EqualValues(t, 1, l.Refused())
		now = now.Add(10 * time.Millisecond)
		client.TickDispatch(now)
		if !full {
			require.True(t, refused())
		}
		for range 1000 {
			if refused() {
				break
			}
			tick()
		}
		require.True(t, refused())
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.NoError(t, l.Close())
	}
}

// fill has bunches of other channels take all of a connection's memory.
func fill(t *testing.T, c *driver.Conn, other bunch.Name) {
	for range 100 {
		ch, err := c.Open(other, channel.Nop{})
		require.NoError(t, err)
		for _, size := range []int{900, 1} {
			for err = nil; err == nil; {
				_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true})
			}
			require.ErrorIs(t, err, channel.ErrReliableFull)
		}
		if ch.Room() > 0 {
			return
		}
	}
	t.Fatal("the memory isn't full")
}

// TestFullMemoryWaits: while other channels' bunches take all the memory, a stream, and one that is refused, have their driver wait
// for the tick, with Prompt too.
func TestFullMemoryWaits(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			other := bunch.Name{Index: 311}
			busy := channel.Type{Name: other, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
			l := Listen(name, Config{MaxStreams: 1})
			clock := &countedClock{}
			clock.limit.Store(2000)
			cfg := driver.Config{Link: driver.PlainSalted{}, TickRate: 20, NetSpeed: 20_000, MaxMemory: 1 << 20}
			sc, cc := cfg, cfg
			sc.Channels, sc.Prompt, sc.Clock = []channel.Type{l.Type(), busy}, true, clock.now
			cc.Channels = []channel.Type{Type(name), busy}
			server, client, dark := linked(t, sc, cc, netsim.Settings{}, netsim.Settings{})
			ctx, stop := running(t, server, client)
			c, err := Dial(ctx, client, name, Config{})
			require.NoError(t, err)
			s, err := l.Accept()
			require.NoError(t, err)
			filled := make(chan struct{})
			client.Do(func() {
				assert.NoError(t, dark.Set(netsim.Settings{}, netsim.Settings{Loss: 100})) // so that nothing is acked
				filled <- struct{}{}
			})
			<-filled
			time.Sleep(time.Second)
			server.Do(func() {
				for c := range server.Conns {
					fill(t, c, other)
				}
				close(filled)
			})
			<-filled
			second := c
			if refused {
				second, err = Dial(ctx, client, name, Config{})
				require.NoError(t, err)
			} else {
				require.NoError(t, s.(*Conn).CloseWrite())
			}
			time.Sleep(5 * time.Second) // 100 ticks
			asked := clock.asked.Load()
			client.Do(func() { assert.NoError(t, dark.Set(netsim.Settings{}, netsim.Settings{})) })
			_, err = io.ReadAll(second) // it goes on when there is memory again
			if refused {
				require.ErrorIs(t, err, TooManyStreams)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, c.Close())
			require.NoError(t, s.Close())
			require.NoError(t, second.Close())
			stop()
			require.NoError(t, l.Close())
			require.Less(t, asked, clock.limit.Load())
		})
	}
}

// TestOnlyOpens: a stream to an end that only opens is refused at once, and such an end has nothing to be warned of.
func TestOnlyOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		cfg := driver.Config{Link: driver.PlainSalted{}, Channels: []channel.Type{Type(name)}}
		sc, cc := cfg, cfg
		cc.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
		server, client, _ := linked(t, sc, cc)
		ctx, stop := running(t, server, client)
		c, err := Dial(ctx, client, name, Config{})
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, NoListener)
		_, err = c.Write(make([]byte, 1))
		require.ErrorIs(t, err, NoListener)
		require.NoError(t, c.Close())
		stop()
		require.Empty(t, said.String())
	})
}

// TestRefusals: the opener of a stream that is refused is told why, by Read and by Write, whichever bound it was.
func TestRefusals(t *testing.T) {
	for _, v := range []struct {
		name  string
		cfg   Config
		why   Refusal
		words string
	}{
		{"streams", Config{MaxStreams: 2}, TooManyStreams, "stream: refused: the peer has as many streams as it accepts"},
		{"of a connection", Config{MaxPerConn: 2}, TooManyOfConn, "stream: refused: the peer has as many streams of this connection as it accepts"},
		{"not accepted", Config{Backlog: 2}, BacklogFull, "stream: refused: too many streams wait for the peer's Accept"},
		{"closed", Config{}, NoListener, "stream: refused: the peer accepts no streams of this name"},
	} {
		t.Run(v.name, func(t *testing.T) {
			bubble(t, v.cfg, netsim.Settings{}, func(t *testing.T, e *ends) {
				held := []io.Closer{}
				for range 2 {
					c, err := Dial(t.Context(), e.client, name, Config{})
					require.NoError(t, err)
					held = append(held, c)
				}
				time.Sleep(time.Second)
				if v.why == NoListener {
					require.NoError(t, e.l.Close())
				}
				c, err := Dial(t.Context(), e.client, name, Config{})
				require.NoError(t, err)
				require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
				_, err = c.Read(make([]byte, 1))
				require.ErrorIs(t, err, v.why)
				require.EqualError(t, err, v.words)
				_, err = c.Write(make([]byte, 1))
				var why Refusal
				require.ErrorAs(t, err, &why)
				require.Equal(t, v.why, why)
				require.EqualValues(t, 1, e.l.Refused())
				for _, h := range append(held, c) {
					require.NoError(t, h.Close())
				}
			})
		})
	}
	require.EqualError(t, Refusal(9), "stream: refused for reason 9", "of a later version")
}

// refusedCount is an opener's handler that counts refusals.
type refusedCount struct {
	channel.Nop
	n *int
}

func (r refusedCount) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Data.ReadUint8() == segRefused {
		*r.n++
	}
}

// TestManyRefusalsWait: while other channels' bunches take all the memory, thousands of streams that are refused and that nobody is told of yet
// are only looked at in a tick; when there is memory again each is told.
func TestManyRefusalsWait(t *testing.T) {
	const most = 3000
	other := bunch.Name{Index: 311}
	l := Listen(name, Config{MaxStreams: 1})
	now := time.Unix(1_700_000_000, 0)
	busy := channel.Type{Name: other, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
	base := driver.Config{Clock: func() time.Time { return now }, NetSpeed: 10_000_000, Link: driver.PlainSalted{}}
	sc, cc := base, base
	sc.Channels, cc.Channels = []channel.Type{l.Type(), busy}, []channel.Type{Type(name), busy}
	server, client, dark := linked(t, sc, cc, netsim.Settings{}, netsim.Settings{})
	tick := ticking(&now, server, client)
	for range 10 {
		tick()
	}
	require.NoError(t, dark.Set(netsim.Settings{}, netsim.Settings{Loss: 100})) // so that nothing is acked
	for c := range server.Conns {
		fill(t, c, other)
	}
	told := 0
	for n := range most + 1 {
		ch, err := client.Server().Open(name, refusedCount{n: &told})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{segStop}, Reliable: true})
		require.NoError(t, err)
		if n%300 == 0 {
			tick()
		}
	}
	for range 20 {
		tick()
	}
	require.EqualValues(t, most, l.Refused())
	work := testing.AllocsPerRun(20, func() {
		now = now.Add(10 * time.Millisecond)
		server.TickDispatch(now)
		server.TickFlush(now)
	})
	require.Less(t, work, 100.0, "each that tries again allocates")
	require.NoError(t, dark.Set(netsim.Settings{}, netsim.Settings{}))
	for range 3000 {
		if tick(); told == most {
			break
		}
	}
	require.Equal(t, most, told)
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
	require.NoError(t, l.Close())
}
