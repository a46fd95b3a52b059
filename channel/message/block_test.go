package message_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	blockName   = bunch.Name{Index: 310}
	messageName = bunch.Name{Index: 311}
)

// transfer is two connections with a simulated link each way; the client sends.
type transfer struct {
	t        *testing.T
	now      time.Duration
	conns    [2]*netconn.Conn
	links    [2]*netsim.Link // from each end
	out, in  *message.Blocks
	received map[int64][]byte
	qa, qb   *message.Attached
	blocks   *channel.Channel
	messages *channel.Channel
	ka, kb   *kinds
}

func newTransfer(t *testing.T, set netsim.Settings, seed uint64, controller func() congestion.Controller) *transfer {
	failed := func(id int64, err error) { t.Error(id, err) }
	return newTransferOf(t, set, seed, controller, message.BlocksConfig{}, message.BlocksConfig{Broken: failed})
}

func newTransferOf(t *testing.T, set netsim.Settings, seed uint64, controller func() congestion.Controller, out, in message.BlocksConfig) *transfer {
	return newTransferIn(t, set, seed, netconn.Protocol{}, controller, out, in)
}

func newTransferIn(t *testing.T, set netsim.Settings, seed uint64, protocol netconn.Protocol, controller func() congestion.Controller, out, in message.BlocksConfig, edits ...func(*netconn.Config)) *transfer {
	x := &transfer{t: t, received: map[int64][]byte{}, ka: newKinds(), kb: newKinds()}
	in.Received = func(id int64, b []byte) { x.received[id] = b }
	x.in, x.out = message.NewBlocks(in), message.NewBlocks(out)
	x.qa = message.Attach(message.New(message.Config{Kinds: &x.ka.reg}))
	x.qb = message.Attach(message.New(message.Config{Kinds: &x.kb.reg}))
	types := []channel.Type{
		{Name: blockName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler { return x.in }},
		{Name: messageName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler { return x.qb }},
	}
	for i := range x.conns {
		var err error
		x.links[i], err = netsim.NewLink(set, seed+uint64(i))
		require.NoError(t, err)
		cfg := netconn.Config{Server: i == 1, Channels: types, Protocol: protocol, Controller: controller(), MaxMemory: 256 << 20, LowLevelSend: func(p []byte) { x.links[i].Push(x.now, p) }}
		for _, edit := range edits {
			edit(&cfg)
		}
		x.conns[i], err = netconn.New(cfg, 0, 7, 7)
		require.NoError(t, err)
	}
	ch, err := x.conns[0].Open(blockName, x.out)
	require.NoError(t, err)
	x.blocks = ch
	x.messages, err = x.conns[0].Open(messageName, x.qa)
	require.NoError(t, err)
	return x
}

func (x *transfer) step(dt time.Duration) {
	x.now += dt
	for i, c := range x.conns {
		for p, ok := x.links[1-i].Pop(x.now); ok; p, ok = x.links[1-i].Pop(x.now) {
			_ = c.ReceivedPacket(x.now, p)
		}
		c.PostTickDispatch(x.now)
	}
	x.qa.Tick(x.now)
	for _, c := range x.conns {
		c.Tick(x.now)
		require.False(x.t, c.Closed(), "%v", c.Result())
	}
}

// closing is a tick in which the connections, which are closed in order, carry on, and the queues aren't ticked; in the dark what is sent is lost.
func (x *transfer) closing(dark bool) {
	x.now += 16 * time.Millisecond
	for i, c := range x.conns {
		for p, ok := x.links[1-i].Pop(x.now); ok; p, ok = x.links[1-i].Pop(x.now) {
			if !dark {
				_ = c.ReceivedPacket(x.now, p)
			}
		}
		c.PostTickDispatch(x.now)
		c.Tick(x.now)
	}
}

func data(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func bucket() congestion.Controller { return congestion.NewTokenBucket(20 << 20) }

// TestBlockThroughput sends 16 MiB over 100 Mbit/s, 20 ms each way.
func TestBlockThroughput(t *testing.T) {
	for _, c := range []struct {
		loss, least float64
	}{{0, 0.8}, {5, 0.6}} {
		t.Run(fmt.Sprintf("%v%% loss", c.loss), func(t *testing.T) {
			size := 16 << 20
			if testing.Short() {
				size = 4 << 20
			}
			set := netsim.Settings{Bandwidth: 100e6, Lag: 20 * time.Millisecond, Loss: c.loss, QueueDelay: 50 * time.Millisecond}
			x := newTransfer(t, set, 3, bucket)
			want := data(1, size)
			_, err := x.out.Send(want)
			require.NoError(t, err)
			for len(x.received) == 0 {
				require.Less(t, x.now, time.Minute)
				x.step(time.Millisecond)
			}
			require.True(t, bytes.Equal(want, x.received[0]))
			share := float64(size*8) / x.now.Seconds() / 100e6
			t.Logf("%d MiB in %v: %.1f %% of the link, %+v", size>>20, x.now, 100*share, x.out.Counters)
			require.GreaterOrEqual(t, share, c.least)
		})
	}
}

// TestBlocksTogether sends several at once over a bad link, and messages beside them that must not starve.
func TestBlocksTogether(t *testing.T) {
	for seed := range uint64(3) {
		set := netsim.Settings{Loss: 20, Dup: 5, Order: 5, Lag: 10 * time.Millisecond, LagVariance: 5 * time.Millisecond}
		x := newTransfer(t, set, seed, bucket)
		var want [][]byte
		for i, n := range []int{1, 895, 896, 300_000} {
			b := data(uint64(i), n)
			want = append(want, b)
			_, err := x.out.Send(b)
			require.NoError(t, err)
		}
		_, err := x.out.Send([]byte{1})
		require.ErrorIs(t, err, message.ErrBlocks)
		sent, got := uint32(0), uint32(0)
		for len(x.received) < 4 || got < sent {
			require.Less(t, x.now, 2*time.Minute, "seed %d: %d blocks, %d of %d messages", seed, len(x.received), got, sent)
			if sent < 500 {
				require.NoError(t, x.qa.Send(x.ka.number, &number{N: sent}))
				sent++
			}
			x.step(16 * time.Millisecond)
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		for i, b := range want {
			require.True(t, bytes.Equal(b, x.received[int64(i)]), "seed %d, block %d", seed, i)
		}
	}
}

// TestBlocksSentMeansArrived: with a smaller receiver, and with more blocks at a time than it once remembered, Sent is
// told of what arrived whole, once, and of all of it.
func TestBlocksSentMeansArrived(t *testing.T) {
	for _, c := range []struct{ out, in message.BlocksConfig }{
		{message.BlocksConfig{MaxBlocks: 128}, message.BlocksConfig{MaxBlocks: 128}},
		{message.BlocksConfig{MaxBlocks: 128}, message.BlocksConfig{MaxBlocks: 2}},
		{message.BlocksConfig{MaxBlocks: 128}, message.BlocksConfig{MaxBlocks: 128, MaxBytes: 50_000, MaxHeld: 60_000}},
	} {
		sent := map[int64]bool{}
		var x *transfer
		c.out.Sent = func(id int64) {
			require.False(t, sent[id])
			require.NotNil(t, x.received[id], "block %d is said to have arrived", id)
			sent[id] = true
		}
		c.out.Failed = func(id int64, err error) { t.Error(id, err) }
		c.in.Failed = c.out.Failed
		set := netsim.Settings{Loss: 10, Lag: 10 * time.Millisecond, LagVariance: 5 * time.Millisecond}
		x = newTransferOf(t, set, 5, bucket, c.out, c.in)
		const n = 400
		var want [][]byte
		for len(sent) < n {
			require.Less(t, x.now, 2*time.Minute, "%d of %d", len(sent), n)
			for len(want) < n {
				b := data(uint64(len(want)), 1+len(want)*37%5000)
				if _, err := x.out.Send(b); err != nil {
					require.ErrorIs(t, err, message.ErrBlocks)
					break
				}
				want = append(want, b)
			}
			x.step(16 * time.Millisecond)
		}
		for i, b := range want {
			require.True(t, bytes.Equal(b, x.received[int64(i)]), "block %d", i)
		}
		require.Zero(t, x.in.Held())
	}
}

// TestBlockTooLargeForThePeer: it is told to the sender, at once when the peer's bounds are known.
func TestBlockTooLargeForThePeer(t *testing.T) {
	var failed []int64
	out := message.BlocksConfig{Failed: func(id int64, err error) {
		require.ErrorIs(t, err, message.ErrBlockBig)
		failed = append(failed, id)
	}}
	x := newTransferOf(t, netsim.Settings{Lag: 10 * time.Millisecond}, 1, bucket, out, message.BlocksConfig{MaxBytes: 1000})
	_, err := x.out.Send(data(1, 1001))
	require.NoError(t, err, "the bounds aren't known yet")
	for i := range 3 {
		_, err := x.out.Send(data(2, 1000-i))
		require.NoError(t, err)
	}
	for len(x.received) < 3 {
		require.Less(t, x.now, time.Minute)
		x.step(16 * time.Millisecond)
	}
	require.Equal(t, []int64{0}, failed)
	_, err = x.out.Send(data(1, 1001))
	require.ErrorIs(t, err, message.ErrBlockBig)
}

// TestBlockClose: both ends hear of a block that was under way, and let go of it.
func TestBlockClose(t *testing.T) {
	failed := [2]int{}
	cfg := func(i int) message.BlocksConfig {
		note := func(_ int64, err error) {
			require.ErrorIs(t, err, message.ErrNoChan)
			failed[i]++
		}
		if i == 0 {
			return message.BlocksConfig{Failed: note}
		}
		return message.BlocksConfig{Broken: note}
	}
	x := newTransferOf(t, netsim.Settings{Lag: 10 * time.Millisecond, Bandwidth: 1e6, QueueDelay: 50 * time.Millisecond}, 1, bucket, cfg(0), cfg(1))
	_, err := x.out.Send(data(1, 1<<20))
	require.NoError(t, err)
	for x.in.Held() < 100_000 {
		require.Less(t, x.now, time.Minute)
		x.step(16 * time.Millisecond)
	}
	require.NoError(t, x.blocks.Close(0))
	_, err = x.out.Send([]byte{1})
	require.ErrorIs(t, err, message.ErrNoChan)
	for failed != [2]int{1, 1} {
		require.Less(t, x.now, time.Minute, "%v", failed)
		x.step(16 * time.Millisecond)
	}
	require.Zero(t, x.in.Held())
	_, err = x.out.Send([]byte{1})
	require.ErrorIs(t, err, message.ErrNoChan)
}

// hear hands a fragment to blocks.
func hear(b *message.Blocks, id uint16, total, frag uint32, n int) {
	w := bitio.NewWriter(make([]byte, 1000))
	w.WriteUint16(id)
	w.WriteUint32(total)
	w.WriteUint32(7)
	w.WriteUint32(frag)
	w.WriteBytes(make([]byte, n))
	in := &bunch.In{}
	in.Data.Reset(w.Bytes(), w.Len())
	b.ReceivedBunch(nil, in)
}

// TestBlocksHoldWhatCame: whatever sizes a peer claims and wherever its fragments are, memory follows the bytes that
// it sent.
func TestBlocksHoldWhatCame(t *testing.T) {
	var before, after runtime.MemStats
	blocks := make([]*message.Blocks, 50)
	for i := range blocks {
		blocks[i] = message.NewBlocks(message.BlocksConfig{MaxBlocks: 4, MaxHeld: 4 * 64 << 20})
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	sent := 0
	for _, b := range blocks {
		for id := range uint16(6) { // two too many
			for i := range uint32(20) {
				hear(b, id, 64<<20, i*200, 896)
				sent += 896
			}
		}
		require.LessOrEqual(t, b.Held(), 4*20*896)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(3*sent))
	runtime.KeepAlive(blocks)
}

// TestClaimsBeyondMaxHeld: blocks whose sizes are more than MaxHeld together aren't begun, whatever has come of them; one that fits is.
func TestClaimsBeyondMaxHeld(t *testing.T) {
	b := message.NewBlocks(message.BlocksConfig{MaxBytes: 1000, MaxHeld: 1500})
	hear(b, 0, 1000, 1, 104)
	require.Equal(t, 104, b.Held())
	hear(b, 1, 1000, 1, 104)
	require.Equal(t, 104, b.Held())
	require.EqualValues(t, 1, b.Counters.Refused)
	hear(b, 2, 501, 0, 501)
	require.EqualValues(t, 2, b.Counters.Refused)
	received := b.Counters.Received
	hear(b, 3, 500, 0, 500)
	require.EqualValues(t, 2, b.Counters.Refused)
	require.Equal(t, received, b.Counters.Received, "its checksum is wrong")
	require.Equal(t, 104, b.Held())
}

func TestBlockErrors(t *testing.T) {
	b := message.NewBlocks(message.BlocksConfig{MaxBytes: 1000})
	_, err := b.Send(nil)
	require.ErrorIs(t, err, message.ErrEmpty)
	_, err = b.Send(make([]byte, 1001))
	require.ErrorIs(t, err, message.ErrBlockBig)
	_, err = b.Send([]byte{1})
	require.ErrorIs(t, err, message.ErrNoChan)
	require.Panics(t, func() { message.NewBlocks(message.BlocksConfig{MaxBlocks: 513}) })
}

// FuzzFragment gives a receiver arbitrary fragments.
func FuzzFragment(f *testing.F) {
	f.Add(make([]byte, 20), []byte{1, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x := message.NewBlocks(message.BlocksConfig{MaxBytes: 1 << 20})
		for _, p := range [][]byte{a, b, a, b} {
			in := &bunch.In{}
			in.Data.Reset(p, len(p)*8)
			x.ReceivedBunch(nil, in)
		}
	})
}

// TestBlocksAfterDays: three days of silence at ticks of a second between two blocks cost nothing and lose nothing.
func TestBlocksAfterDays(t *testing.T) {
	x := newTransfer(t, netsim.Settings{Lag: 20 * time.Millisecond}, 4, bucket)
	for i := range byte(2) {
		id, err := x.out.Send(bytes.Repeat([]byte{i}, 50_000))
		require.NoError(t, err)
		for until := x.now + time.Minute; x.received[id] == nil; {
			require.Less(t, x.now, until)
			x.step(16 * time.Millisecond)
		}
		require.Equal(t, bytes.Repeat([]byte{i}, 50_000), x.received[id])
		for end := x.now + 72*time.Hour; i == 0 && x.now < end; {
			x.step(time.Second)
		}
	}
}

// TestFailedIsOfOurBlocks: both ends count their blocks from 0, so what becomes of a peer's block isn't said of one's own.
func TestFailedIsOfOurBlocks(t *testing.T) {
	var said []string
	say := func(what string) func(int64) {
		return func(id int64) { said = append(said, fmt.Sprint(what, " ", id)) }
	}
	in := message.BlocksConfig{Sent: say("sent"), Failed: func(id int64, _ error) { say("failed")(id) }, Broken: func(id int64, _ error) { say("broken")(id) }}
	out := message.BlocksConfig{Received: func(int64, []byte) {}}
	x := newTransferOf(t, netsim.Settings{Lag: 10 * time.Millisecond, Bandwidth: 1e6, QueueDelay: 50 * time.Millisecond}, 1, bucket, out, in)
	_, err := x.out.Send(data(1, 1<<20))
	require.NoError(t, err)
	until := func(done func() bool) {
		for !done() {
			require.Less(t, x.now, time.Minute)
			x.step(16 * time.Millisecond)
		}
	}
	until(func() bool { return x.in.Held() > 0 })
	_, err = x.in.Send([]byte{1})
	require.NoError(t, err)
	until(func() bool { return len(said) > 0 })
	require.NoError(t, x.blocks.Close(0))
	until(func() bool { return x.in.Held() == 0 })
	require.Equal(t, []string{"sent 0", "broken 0"}, said)
}

// TestMessagesBesideABlock: while a block takes all the bandwidth that the messages leave, these arrive soon.
func TestMessagesBesideABlock(t *testing.T) {
	const rate, every = 100_000, 3 // a message every 50 ms
	x := newTransfer(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, func() congestion.Controller { return congestion.NewTokenBucket(rate) })
	sentAt, worst := []time.Duration{}, time.Duration(0)
	for i := range 360 {
		if i == 60 {
			_, err := x.out.Send(data(1, 16<<20))
			require.NoError(t, err)
		}
		if i >= 60 && i%every == 0 {
			require.NoError(t, x.qa.Send(x.ka.number, &number{}))
			sentAt = append(sentAt, x.now)
		}
		x.step(time.Second / 60)
		for m, _ := x.qb.Receive(); m != nil; m, _ = x.qb.Receive() {
			worst = max(worst, x.now-sentAt[0])
			sentAt = sentAt[1:]
		}
	}
	require.Less(t, len(sentAt), 5, "they arrive")
	fragments, _ := x.out.Progress(0)
	t.Logf("the slowest message took %v; %d fragments arrived", worst, fragments)
	require.Less(t, worst, 150*time.Millisecond)
	require.Greater(t, fragments, 350, "the block has the rest of the rate")
}

// TestBlocksShareTheRest: several Blocks of a connection have the same part of what the game leaves, also where that isn't a fragment for each tick, and of the
// packet window.
func TestBlocksShareTheRest(t *testing.T) {
	for _, c := range []struct{ rate, window, fragments int }{{28_000, 6144, 312}, {60_000, 6144, 669}, {300_000, 6144, 3348}, {20 << 20, 64, 3000}} {
		protocol, lag := netconn.Bunchnet(), time.Duration(0)
		if protocol.PacketWindow = c.window; c.window == 64 {
			lag = 75 * time.Millisecond
		}
		x := newTransferIn(t, netsim.Settings{Lag: lag}, 1, protocol, func() congestion.Controller { return congestion.NewTokenBucket(c.rate) }, message.BlocksConfig{}, message.BlocksConfig{})
		x.exchange()
		second, none := message.NewBlocks(message.BlocksConfig{}), func(int64, []byte) {}
		x.in = message.NewBlocks(message.BlocksConfig{Received: none})
		_, err := x.conns[0].Open(blockName, second)
		require.NoError(t, err)
		var have [2]int
		blocks := []*message.Blocks{x.out, second}
		for _, b := range blocks {
			_, err := b.Send(make([]byte, 8<<20))
			require.NoError(t, err)
		}
		for x.now < 10*time.Second {
			x.step(time.Second / 60)
		}
		for i, b := range blocks {
			have[i], _ = b.Progress(0)
			require.Greater(t, have[i], c.fragments*4/10, "%v at %d B/s", have, c.rate)
		}
	}
}

// TestBlocksThroughASmallWindow: a fragment that takes half the packets of the window waits until there is room for all of them. Otherwise its first packets take each place that
// an ack makes, those behind them find none, and no fragment ever arrives whole, once other packets have left one by one.
func TestBlocksThroughASmallWindow(t *testing.T) {
	protocol := netconn.Bunchnet()
	protocol.PacketWindow, protocol.Bunch.MaxPacket = 16, 256
	x := newTransferIn(t, netsim.Settings{Lag: 150 * time.Millisecond}, 1, protocol, bucket, message.BlocksConfig{}, message.BlocksConfig{})
	want, begun := data(1, 10_000), false
	for x.received[0] == nil {
		require.Less(t, x.now, 20*time.Second, "%+v", x.out.Counters)
		if x.now < 2*time.Second {
			require.NoError(t, x.qa.Send(x.ka.number, &number{}))
		} else if !begun {
			_, err := x.out.Send(want)
			require.NoError(t, err)
			begun = true
		}
		x.step(16 * time.Millisecond)
	}
	require.True(t, bytes.Equal(want, x.received[0]))
}
