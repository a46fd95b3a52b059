package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// countedClock is a clock that counts who asks, which a driver in Run does in each turn of its loop. A driver that never waits
// would stop a test's virtual time; so when it has been asked too often, the clock goes on by itself.
type countedClock struct{ asked, limit atomic.Int64 }

func (c *countedClock) now() time.Time {
	if over := c.asked.Add(1) - c.limit.Load(); over > 0 {
		return time.Now().Add(time.Duration(over) * time.Millisecond)
	}
	return time.Now()
}

// narrow is a stream of a client with Prompt, over a path of 20 kB a second. more are other channels of the client.
func narrow(t *testing.T, cfg Config, more ...channel.Type) (c *Conn, s net.Conn, server *driver.Driver, clock *countedClock, stop func()) {
	l := Listen(name, Config{})
	clock = &countedClock{}
	clock.limit.Store(3000)
	both := driver.Config{Link: driver.PlainSalted{}, TickRate: 20, NetSpeed: 20_000}
	sc, cc := both, both
	sc.Channels = []channel.Type{l.Type()}
	sc.Channels, sc.Prompt = append(sc.Channels, more...), len(more) > 0
	cc.Channels, cc.Prompt, cc.Clock = append(more, Type(name)), true, clock.now
	server, client, _ := linked(t, sc, cc)
	ctx, stop := running(t, server, client)
	c, err := Dial(ctx, client, name, cfg)
	require.NoError(t, err)
	s, err = l.Accept()
	require.NoError(t, err)
	return c, s, server, clock, stop
}

// TestFullPathWaits: a stream on a path that takes no more, with Prompt, has its driver wait for the next tick.
func TestFullPathWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _, clock, stop := narrow(t, Config{})
		wrote := make(chan bool)
		go func() {
			_, _ = c.Write(make([]byte, 200_000)) // ten seconds of the path
			close(wrote)
		}()
		go func() { _, _ = io.Copy(io.Discard, s) }()
		time.Sleep(5 * time.Second) // 100 ticks
		asked := clock.asked.Load()
		select {
		case <-wrote:
			t.Error("the path wasn't full, or the connection has ended")
		default:
		}
		stop()
		require.Less(t, asked, clock.limit.Load(), "it is asked a few times a tick and a packet")
	})
}

// TestFullPathReads: a client with Prompt whose stream has a path that takes no more gets what the server sends when it arrives, and not in its next tick.
func TestFullPathReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &arrivals{}
		c, s, server, _, stop := narrow(t, Config{}, channel.Type{Name: bunch.Name{Index: 311}, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return got }})
		go func() { _, _ = c.Write(make([]byte, 400_000)) }() // twenty seconds of the path
		go func() { _, _ = io.Copy(io.Discard, s) }()
		const sent = 200
		var ch *channel.Channel
		for i := range sent {
			time.Sleep(43 * time.Millisecond) // of a tick's 50
			server.Do(func() {
				if ch == nil {
					for conn := range server.Conns {
						var err error
						ch, err = conn.Open(bunch.Name{Index: 311}, channel.Nop{})
						assert.NoError(t, err)
					}
				}
				_, err := ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), Reliable: true, NoMerge: true})
				assert.NoError(t, err, "%d", i)
			})
		}
		time.Sleep(time.Second)
		c.mu.Lock()
		waits := c.out.n
		c.mu.Unlock()
		require.Positive(t, waits, "the path is full")
		stop()
		require.Len(t, got.late, sent)
		slices.Sort(got.late)
		require.Less(t, got.late[sent/2], time.Millisecond, "half of them; at most %v", got.late[sent-1])
		require.Less(t, got.late[sent-1], 25*time.Millisecond)
	})
}

// arrivals notes how long messages took that have their time of sending in them.
type arrivals struct {
	channel.Nop
	late []time.Duration
}

func (a *arrivals) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	a.late = append(a.late, time.Since(time.Unix(0, int64(in.Data.ReadUint64()))))
}

// TestWritesDontWake: small writes to a stream that waits for bandwidth anyway don't wake its driver, with Prompt.
func TestWritesDontWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _, clock, stop := narrow(t, Config{Buffer: 1 << 20})
		read := make(chan int64)
		go func() {
			n, _ := io.Copy(io.Discard, s)
			read <- n
		}()
		_, err := c.Write(make([]byte, 200_000)) // ten seconds of the path
		require.NoError(t, err)
		for range 10_000 { // five seconds, 100 ticks
			_, err = c.Write([]byte{1})
			require.NoError(t, err)
			time.Sleep(500 * time.Microsecond)
		}
		asked := clock.asked.Load()
		require.NoError(t, c.CloseWrite())
		require.EqualValues(t, 210_000, <-read)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		stop()
		require.Less(t, asked, clock.limit.Load(), "it is asked a few times a tick and a packet")
	})
}

// TestDialWaits: Dial to nobody, with Prompt, has the driver look once a tick.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		clock := &countedClock{}
		clock.limit.Store(2000)
		client, err := driver.Dial("127.0.0.1:7777", driver.Config{Socket: b, Link: driver.PlainSalted{}, Channels: []channel.Type{Type(name)}, TickRate: 20, Prompt: true, Clock: clock.now})
		require.NoError(t, err)
		ctx, stop := running(t, client)
		short, cancel := context.WithTimeout(ctx, 4*time.Second) // 80 ticks
		defer cancel()
		_, err = Dial(short, client, name, Config{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, clock.asked.Load(), clock.limit.Load())
		stop()
	})
}

// TestDialEnds: Dial says at once that there will be no connection: on a driver that is closed, that is closed while Dial
// waits, and when the connection has ended.
func TestDialEnds(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
		_, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
		alone, err := driver.Dial("127.0.0.1:1", driver.Config{Socket: b, Link: driver.PlainSalted{}, Channels: []channel.Type{Type(name)}})
		require.NoError(t, err)
		ended := make(chan error)
		go func() {
			_, err := Dial(t.Context(), alone, name, Config{})
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, alone.Close())
		within := time.After(time.Minute) // virtual
		select {
		case err := <-ended:
			require.ErrorIs(t, err, ErrNoConnection)
		case <-within:
			t.Fatal("Dial waits for a driver that was closed")
		}
		go func() {
			_, err := Dial(t.Context(), alone, name, Config{})
			ended <- err
		}()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, ErrNoConnection)
		case <-within:
			t.Fatal("Dial waits for a closed driver")
		}

		e.pair()
		e.parting.Store(true)
		e.client.Do(func() { e.client.Server().CloseWithReason("enough") })
		for _, later := range []time.Duration{0, 5 * time.Second} { // it is being closed, and has ended
			time.Sleep(later)
			go func() {
				_, err := Dial(t.Context(), e.client, name, Config{})
				ended <- err
			}()
			select {
			case err := <-ended:
				require.ErrorIs(t, err, ErrNoConnection, "%v later", later)
			case <-within:
				t.Fatal("Dial waits for a connection that has ended")
			}
		}
	})
}

// TestDialOnServer: Dial is a client's, and says so at once on a server, with clients or without; it doesn't wait, nor take the first of them.
func TestDialOnServer(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
		e.pair()
		_, err := Dial(t.Context(), e.server, name, Config{})
		require.ErrorIs(t, err, ErrServer)
	})
}

// TestDialToNobodyEnds: Dial on a driver that a game's own loop ticks says why there will be no connection.
func TestDialToNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
		d, err := driver.Dial("127.0.0.1:1", driver.Config{Socket: b, Link: driver.PlainSalted{}, Channels: []channel.Type{Type(name)}})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := Dial(t.Context(), d, name, Config{})
			ended <- err
		}()
		for range 1200 { // a minute
			d.TickDispatch(time.Now())
			d.TickFlush(time.Now())
			time.Sleep(50 * time.Millisecond)
		}
		require.NoError(t, d.Close())
		err = <-ended
		require.ErrorIs(t, err, ErrNoConnection)
		require.ErrorIs(t, err, driver.ErrNoAnswer)
	})
}

// player is another client of the same server.
func (e *ends) player(t *testing.T, cfg driver.Config) (*driver.Driver, func()) {
	cfg.Channels, cfg.NetSpeed, cfg.TickRate = []channel.Type{{Name: name, ClientOpen: true}}, 4_000_000, 200
	d, err := driver.Dial(e.server.LocalAddr().String(), cfg)
	require.NoError(t, err)
	_, stop := running(t, d)
	return d, stop
}

// crowd is a server with a socket of the system's, for several clients.
func crowd(t *testing.T, cfg Config) *ends {
	e := &ends{t: t, l: Listen(name, cfg)}
	var err error
	e.server, err = driver.Listen("127.0.0.1:0", driver.Config{NetSpeed: 4_000_000, TickRate: 200, Channels: []channel.Type{e.l.Type()}})
	require.NoError(t, err)
	_, e.stop = running(t, e.server)
	return e
}

// mute opens n channels of streams and never says another word on them.
func mute(t *testing.T, d *driver.Driver, n int) {
	opened := make(chan int)
	var try func()
	try = func() {
		c := d.Server()
		if c == nil || !c.Joined() {
			d.BeforeFlush(try)
			return
		}
		for i := range n {
			ch, err := c.Open(name, channel.Nop{})
			if err != nil {
				opened <- i
				return
			}
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte{segCredit, 0, 0, 1, 0, 0, 0, 0, 0}, Reliable: true}); err != nil {
				opened <- i
				return
			}
		}
		opened <- n
	}
	d.Do(try)
	require.Equal(t, n, <-opened)
}

// TestMuteClient: the slots of streams that the server's program has closed are free, although the client that opened them
// never closes; and one client has no more of them than Config.MaxPerConn.
func TestMuteClient(t *testing.T) {
	e := crowd(t, Config{MaxStreams: 16, MaxPerConn: 12})
	defer e.stop()
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			s, err := e.l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- s
		}
	}()
	bad, stopBad := e.player(t, driver.Config{})
	defer stopBad()
	mute(t, bad, 40)
	held := []net.Conn{}
	for range 12 {
		held = append(held, <-accepted)
	}
	require.Eventually(t, func() bool { return e.l.Refused() == 28 }, 20*time.Second, time.Millisecond)

	good, stopGood := e.player(t, driver.Config{})
	defer stopGood()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	open := func() net.Conn {
		c, err := Dial(ctx, good, name, Config{})
		require.NoError(t, err)
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		return c
	}
	for range 4 { // what the mute one leaves
		open()
		held = append(held, <-accepted)
	}
	require.EqualValues(t, 28, e.l.Refused())
	for _, s := range held {
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "a second time frees no second slot")
	}
	e.l.mu.Lock()
	require.Zero(t, e.l.open)
	e.l.mu.Unlock()
	for range 8 { // with the four above all that one connection may have
		open()
		held = append(held, <-accepted)
	}
	require.EqualValues(t, 28, e.l.Refused())
	mute(t, bad, 1) // its own are still there, so it has no room
	require.Eventually(t, func() bool { return e.l.Refused() == 29 }, 20*time.Second, time.Millisecond)
	require.NoError(t, e.l.Close())
}

// TestDeadStreamsWait: streams that their client has closed before anybody accepted them still count as the client's.
func TestDeadStreamsWait(t *testing.T) {
	e := crowd(t, Config{MaxPerConn: 3})
	defer e.stop()
	d, stop := e.player(t, driver.Config{})
	defer stop()
	for n := range 5 {
		c, err := Dial(t.Context(), d, name, Config{})
		require.NoError(t, err)
		_, err = fmt.Fprint(c, "last words ", n)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return e.l.Refused() == 2 }, 20*time.Second, time.Millisecond)
	for n := range 3 {
		s, err := e.l.Accept()
		require.NoError(t, err)
		b, err := io.ReadAll(s)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("last words ", n), string(b))
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool {
		e.l.mu.Lock()
		defer e.l.mu.Unlock()
		return e.l.open == 0 && len(e.l.perConn) == 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, e.l.Close())
}

// TestGoneStreamsCountUntilClosed: streams that a client opens and closes again and again, and which the server's program still works on, count as that
// client's until the program has closed them.
func TestGoneStreamsCountUntilClosed(t *testing.T) {
	const most = 3
	e := crowd(t, Config{MaxPerConn: most})
	defer e.stop()
	d, stop := e.player(t, driver.Config{})
	defer stop()
	accepted := make(chan *Conn, 100)
	go func() {
		for s, err := e.l.Accept(); err == nil; s, err = e.l.Accept() {
			accepted <- s.(*Conn)
		}
	}()
	opened, held := 0, []*Conn{}
	openAndClose := func(n int) {
		for range n {
			c, err := Dial(t.Context(), d, name, Config{})
			require.NoError(t, err)
			_, err = c.Write(make([]byte, 1000))
			require.NoError(t, err)
			require.NoError(t, c.Close())
			opened++
			require.Eventually(t, func() bool {
				for len(accepted) > 0 {
					held = append(held, <-accepted)
				}
				gone := 0
				for _, s := range held {
					s.mu.Lock()
					if s.ended {
						gone++
					}
					s.mu.Unlock()
				}
				return gone+int(e.l.Refused()) == opened
			}, 20*time.Second, time.Millisecond)
		}
	}
	openAndClose(8)
	require.Len(t, held, most)
	require.NoError(t, held[0].Close())
	openAndClose(2)
	require.Len(t, held, most+1)
	for _, s := range held {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool {
		e.l.mu.Lock()
		defer e.l.mu.Unlock()
		return len(e.l.perConn) == 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, e.l.Close())
}
