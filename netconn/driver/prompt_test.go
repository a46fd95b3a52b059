package driver

import (
	"context"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestPrompt echoes back and forth at two ends that tick four times a second: each answer goes out at once, and
// so does what Do writes.
func TestPrompt(t *testing.T) {
	const trips = 20
	e := &echo{}
	srv, err := Listen("127.0.0.1:0", Config{Channels: chat(e), TickRate: 4, Prompt: true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx, nil) }()

	got := &sink{}
	joined := make(chan *Conn, 1)
	cl, err := Dial(srv.LocalAddr().String(), Config{Channels: chat(got), TickRate: 4, Prompt: true, Joined: func(c *Conn) { joined <- c }})
	require.NoError(t, err)
	ticks := 0
	cctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		var ch *channel.Channel
		answer := make(chan int)
		do := func(f func() error) {
			cl.Do(func() {
				if err := f(); err != nil {
					t.Error(err)
				}
				answer <- len(got.got)
			})
			<-answer
		}
		c := <-joined
		do(func() (err error) { ch, err = c.Open(chatName, got); return err })
		for n := 0; n < trips && ctx.Err() == nil; {
			do(func() error {
				_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
				return err
			})
			for n++; ctx.Err() == nil; {
				have := 0
				do(func() error { have = len(got.got); return nil })
				if have >= n {
					break
				}
			}
		}
	}()
	require.NoError(t, cl.Run(cctx, func(time.Time) { ticks++ }))
	require.Len(t, got.got, trips)
	require.Less(t, ticks, trips/2, "not one a round trip")
	cancel()
	require.NoError(t, <-done)
}

// TestPromptCallsLeaveReading: with Prompt, calls that never end are no reason not to read. Each call of Do asks for the next
// one, and echoes must come back all the same, without a tick.
func TestPromptCallsLeaveReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trips, enough = 100, 2_000_000
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		fast := func() congestion.Controller { // the clock stands still, so it never gives more than at first
			c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{InitialRate: 100_000_000})
			require.NoError(t, err)
			return c
		}
		srv, err := Listen("", Config{Socket: a, Channels: chat(&echo{}), Prompt: true, Controller: fast})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 2)
		go func() { done <- srv.Run(ctx, nil) }()

		got, joined := &sink{}, make(chan *Conn, 1)
		cl, err := Dial("127.0.0.1:7777", Config{Socket: b, Channels: chat(got), TickRate: 1, Prompt: true, Controller: fast, Joined: func(c *Conn) { joined <- c }})
		require.NoError(t, err)
		go func() { done <- cl.Run(ctx, nil) }()
		c, over := <-joined, make(chan bool)
		ch, sent, calls := (*channel.Channel)(nil), 0, 0
		var call func()
		call = func() {
			if calls++; calls == enough || len(got.got) == trips {
				close(over)
				return
			}
			if ch == nil {
				ch, _ = c.Open(chatName, got)
			}
			if sent == len(got.got) {
				sent++
				_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
				if err != nil {
					t.Error(err)
				}
			}
			runtime.Gosched() // the server may have the only processor
			cl.Do(call)
		}
		begin := time.Now()
		cl.Do(call)
		<-over
		assert.Len(t, got.got, trips)
		assert.Less(t, time.Since(begin), time.Second, "in virtual time: before the tick")
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
}

// TestBeforeFlush: what is put off comes in the next TickFlush and no sooner, and what it puts off itself in the one after.
func TestBeforeFlush(t *testing.T) {
	m := newMemory(t, Config{Channels: chat(&echo{})}, Config{Channels: chat(&sink{})})
	ran := 0
	var again func()
	again = func() { ran++; m.client.BeforeFlush(again) }
	m.client.BeforeFlush(again)
	for n := range 5 {
		m.client.TickDispatch(m.now)
		require.Equal(t, n, ran)
		m.client.prompt(m.client.at(m.now))
		require.Equal(t, n, ran)
		m.client.TickFlush(m.now)
		require.Equal(t, n+1, ran)
	}
	select {
	case <-m.client.Done():
		t.Fatal("done before Close")
	default:
	}
	require.NoError(t, m.client.Close())
	require.NoError(t, m.client.Close())
	<-m.client.Done()
	require.NoError(t, m.server.Close())
}

// TestFastAtTicks: without Prompt, at 60 ticks a second, a reliable channel over a path without a delay sends its window several times a tick.
func TestFastAtTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, ticks, size = 1000, 60, 900 // udp.Pair has room for 1024
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		cfg := Config{TickRate: ticks, MaxMemory: 24 << 20, Protocol: netconn.Bunchnet(), Controller: func() congestion.Controller {
			c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{InitialRate: 1_000_000_000})
			require.NoError(t, err)
			return c
		}}
		cfg.Protocol.PacketWindow = window
		got, done := &tally{}, make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		run := func(d *Driver, err error) {
			require.NoError(t, err)
			go func() { done <- d.Run(ctx, nil) }()
		}
		sc, cc := cfg, cfg
		sc.Socket, sc.Channels = a, chat(got)
		run(Listen("", sc))
		cc.Socket, cc.Channels = b, chat(&filler{})
		cc.Joined = func(c *Conn) {
			ch, err := c.Open(chatName, &filler{size: size})
			assert.NoError(t, err)
			ch.Handler().(*filler).ReceivedAck(ch, 0)
		}
		run(Dial("127.0.0.1:7777", cc))
		const measured = 6 // ticks
		const length = measured * time.Second / ticks
		time.Sleep(length)
		before := got.bytes.Load()
		time.Sleep(length)
		windows := float64(got.bytes.Load()-before) / measured / (window * size)
		t.Logf("%.1f windows a tick", windows)
		assert.Greater(t, windows, 6.0) // 3.0 when it sends as often as it ticks
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
}

// tally counts bytes.
type tally struct {
	channel.Nop
	bytes atomic.Int64 // read beside its driver
}

func (s *tally) ReceivedBunch(_ *channel.Channel, in *bunch.In) { s.bytes.Add(int64(in.Bits / 8)) }

// filler keeps a channel's buffer full.
type filler struct {
	channel.Nop
	size int
}

func (f *filler) ReceivedAck(ch *channel.Channel, _ int64) {
	for ch.Room() > 0 {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, f.size), Reliable: true, NoMerge: true})
		if err != nil {
			return
		}
	}
}
