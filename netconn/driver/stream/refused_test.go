package stream

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
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

// ticked is a listener, and a server and a client with a channel type of the game's besides, which has joined; tick ticks them.
func ticked(t *testing.T, cfg Config, other bunch.Name) (l *Listener, server, client *driver.Driver, tick func()) {
	l = Listen(name, cfg)
	now := time.Unix(1_700_000_000, 0)
	busy := channel.Type{Name: other, ServerOpen: true, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
	base := driver.Config{Clock: func() time.Time { return now }, NetSpeed: 1_000_000, MaxMemory: 256 << 10, Link: driver.PlainSalted{}}
	sc, cc := base, base
	sc.Channels, cc.Channels = []channel.Type{l.Type(), busy}, []channel.Type{Type(name), busy}
	server, client, _ = linked(t, sc, cc)
	tick = ticking(&now, server, client)
	for range 10 {
		tick()
	}
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.NoError(t, l.Close())
	})
	return l, server, client, tick
}

// TestRefusalTakesTheRest: a refusal is said at once where there is room for it, however little.
func TestRefusalTakesTheRest(t *testing.T) {
	other := bunch.Name{Index: 311}
	_, _, client, _ := ticked(t, Config{}, other)
	c := client.Server()
	var chs []*channel.Channel
	for range 2 {
		ch, err := c.Open(other, channel.Nop{})
		require.NoError(t, err)
		chs = append(chs, ch)
	}
	for used, most := c.Table().Unreleased(); most-used > enough; used, most = c.Table().Unreleased() {
		_, err := chs[0].SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
		require.NoError(t, err)
	}
	refuse(c, chs[1], TooManyStreams)
	require.Equal(t, 1, chs[1].NumOutRec())
}

// TestWhatCannotBeOpened: settings out of range and names without a channel type are errors of Open, and of Listen a panic; the channel of another connection than a driver's is none
// of a stream's.
func TestWhatCannotBeOpened(t *testing.T) {
	l, server, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	channels := client.Server().Stats().Channels
	_, err := Open(client.Server(), name, Config{Window: 1})
	require.ErrorIs(t, err, ErrConfig)
	_, err = Open(client.Server(), bunch.Name{Index: 312}, Config{})
	require.Error(t, err)
	require.Equal(t, channels, client.Server().Stats().Channels)
	require.Panics(t, func() { Listen(name, Config{Backlog: -1}) })

	require.Equal(t, Addr{}, l.Addr())
	_, err = Open(client.Server(), name, Config{})
	require.NoError(t, err)
	tick()
	require.Equal(t, Addr{AddrPort: server.LocalAddr()}, l.Addr())

	bare, err := netconn.New(netconn.Config{LowLevelSend: func([]byte) {}, Channels: []channel.Type{l.Type()}}, 0, 1, 1)
	require.NoError(t, err)
	ch, err := bare.Open(name, channel.Nop{})
	require.NoError(t, err)
	require.Nil(t, l.Type().Accept(ch))
	require.Nil(t, Type(name).Accept(ch))
}

// lateContext is done, and says so once: the driver looked before.
type lateContext struct {
	context.Context
	asked bool
}

func (c *lateContext) Err() error {
	if c.asked {
		return nil
	}
	c.asked = true
	return c.Context.Err()
}

// TestDialedTooLate: a stream that opens as its Dial gives up is closed.
func TestDialedTooLate(t *testing.T) {
	l, _, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Dial(&lateContext{Context: ctx}, client, name, Config{})
	require.ErrorIs(t, err, context.Canceled)
	for range 10 {
		tick()
	}
	s, err := l.Accept()
	require.NoError(t, err)
	_, err = s.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = s.Write(make([]byte, 1))
	require.ErrorIs(t, err, ErrPeerClosed)
}

// TestManyWritesAreOneCall: however many calls change a stream between two ticks, the driver is asked to look at it once, and so it is before a flush.
func TestManyWritesAreOneCall(t *testing.T) {
	_, _, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	c, err := Open(client.Server(), name, Config{})
	require.NoError(t, err)
	tick()
	calls := 0
	c.runFn = func() { calls++; c.run() }
	for i := range 3 {
		for range 100 {
			_, err = c.Write(make([]byte, 1))
			require.NoError(t, err)
		}
		for range 10 {
			tick()
		}
		require.Equal(t, i+1, calls)
	}
	calls = 0
	c.tickFn = func() { calls++; c.tick() }
	for range 3 {
		c.again()
		c.again()
	}
	tick()
	require.Equal(t, 1, calls)
}

// TestSendDataSends: the driver is told the bytes of what left. Where there is no data, the rest is sent at once, and what is written later asks for another turn.
func TestSendDataSends(t *testing.T) {
	_, _, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	c, err := Open(client.Server(), name, Config{})
	require.NoError(t, err)
	tick()
	_, err = c.Write(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 103, c.sendData())
	require.Zero(t, c.out.n)
	c.creditDue, c.offered = true, true
	require.Zero(t, c.sendData())
	require.False(t, c.creditDue)
	require.False(t, c.offered)
}

// TestOpenedAsItCloses: a stream that a client opens as the server closes the connection in order isn't written to: nothing of that would leave.
func TestOpenedAsItCloses(t *testing.T) {
	l, server, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	for c := range server.Conns {
		_, err := Open(client.Server(), name, Config{})
		require.NoError(t, err)
		c.CloseWithReason("good night")
		tick()
		require.False(t, c.Closed())
		s, err := l.Accept()
		require.NoError(t, err)
		_, err = s.Write([]byte("x"))
		require.ErrorIs(t, err, ErrLost)
	}
}

// TestClosedListenerIsIdle: streams that wait for Accept as a Listener closes count no more once they are gone.
func TestClosedListenerIsIdle(t *testing.T) {
	l, _, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
	var all []*Conn
	for range 3 {
		c, err := Open(client.Server(), name, Config{})
		require.NoError(t, err)
		all = append(all, c)
	}
	tick()
	require.Len(t, l.waiting, 3)
	require.NoError(t, l.Close())
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	for range 10 {
		tick()
	}
	requireIdle(t, l)
}

// TestMalformedEndsTheConnection: a peer that sends what is no segment, or more than it was allowed, has its connection ended, and the result says why.
func TestMalformedEndsTheConnection(t *testing.T) {
	for _, v := range []struct {
		why  error
		sent [][]byte
	}{
		{ErrFormat, [][]byte{{segStop}, {segRefused + 1}}},
		{ErrCredit, slices.Repeat([][]byte{append([]byte{segData, 0, 2}, make([]byte, 512)...)}, (256<<10)/512+1)},
	} {
		l, server, client, tick := ticked(t, Config{}, bunch.Name{Index: 311})
		ch, err := client.Server().Open(name, channel.Nop{})
		require.NoError(t, err)
		for c := range server.Conns {
			for _, p := range v.sent {
				require.False(t, c.Closed())
				_, err = ch.SendBunch(&bunch.Out{Data: p, Reliable: true, NoMerge: true})
				require.NoError(t, err)
				for range 3 {
					tick()
				}
			}
			require.True(t, c.Closed())
			require.Equal(t, netconn.PeerBroke, c.Result().Code)
			require.ErrorIs(t, c.Result().Err, v.why)
		}
		_, err = l.Accept()
		require.NoError(t, err)
		requireIdle(t, l)
	}
}
