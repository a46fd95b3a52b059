package message_test

import (
	"math/bits"
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

// crowd is a server that takes any number of queues from a client, and that client, whose channels have no queues of their own.
type crowd struct {
	now     time.Duration
	conns   [2]*netconn.Conn
	links   [2]*netsim.Link
	kinds   *kinds
	mode    message.Mode
	queues  []*message.Attached // the server's
	opened  []*channel.Channel
	failure error
	resend  time.Duration // Config.Resend of the queues
	maxBits int           // and MaxBits
	silent  bool          // nothing of the client's arrives
}

const crowdMemory = 1 << 20

func newCrowd(t *testing.T, mode message.Mode) *crowd {
	x := &crowd{kinds: newKinds(), mode: mode}
	accept := func(*channel.Channel) channel.Handler {
		a := message.Attach(message.New(message.Config{Mode: mode, Kinds: &x.kinds.reg, Resend: x.resend, MaxBits: x.maxBits}))
		a.Failed = func(err error) { x.failure = err }
		x.queues = append(x.queues, a)
		return a
	}
	for i := range x.conns {
		var err error
		x.links[i], err = netsim.NewLink(netsim.Settings{Lag: 5 * time.Millisecond}, uint64(i))
		require.NoError(t, err)
		x.conns[i], err = netconn.New(netconn.Config{Server: i == 1, MaxMemory: crowdMemory, Controller: congestion.NewTokenBucket(20 << 20),
			Channels:     []channel.Type{{Name: messageName, ClientOpen: true, Accept: accept}},
			LowLevelSend: func(p []byte) { x.links[i].Push(x.now, p) }}, 0, 7, 7)
		require.NoError(t, err)
	}
	return x
}

func (x *crowd) step() {
	x.now += 16 * time.Millisecond
	for i, c := range x.conns {
		for p, ok := x.links[1-i].Pop(x.now); ok; p, ok = x.links[1-i].Pop(x.now) {
			if i == 0 || !x.silent {
				_ = c.ReceivedPacket(x.now, p)
			}
		}
		c.PostTickDispatch(x.now)
	}
	for _, c := range x.conns {
		c.Tick(x.now)
	}
}

// packet is what a queue sends: message n of its window, unless none is wanted.
func (x *crowd) packet(t *testing.T, n int, with bool) (b []byte, bits int) {
	w := bitio.NewWriter(make([]byte, 1000))
	if x.mode == message.Ordered {
		w.WriteBool(false)
	}
	if !with {
		w.WriteInt(0, 65)
		return w.Bytes(), w.Len()
	}
	w.WriteInt(1, 65)
	switch x.mode {
	case message.Ordered:
		w.WriteUint16(uint16(n))
	case message.Sequenced:
		w.WriteUint32(uint32(n))
	}
	w.WriteInt(0, 2)
	w.WriteUint32(uint32(n))
	w.WriteBits(60, 10)
	w.WriteBytes(make([]byte, 60))
	return w.Bytes(), w.Len()
}

func (x *crowd) open(t *testing.T, n int) {
	for len(x.opened) < n && !x.conns[1].Closed() {
		for len(x.opened) < n && x.conns[0].IsNetReady() {
			ch, err := x.conns[0].Open(messageName, channel.Nop{})
			if err != nil {
				break
			}
			b, bits := x.packet(t, 0, false)
			_, err = ch.SendBunch(&bunch.Out{Data: b, Bits: bits, Reliable: true, NoMerge: true})
			if err != nil {
				break
			}
			x.opened = append(x.opened, ch)
		}
		x.step()
		require.Less(t, x.now, time.Minute)
	}
	for range 10 {
		x.step()
	}
}

// send sends one message on each of the channels.
func (x *crowd) send(t *testing.T, n int) {
	for _, ch := range x.opened {
		for !x.conns[0].IsNetReady() && !x.conns[1].Closed() {
			x.step()
		}
		b, bits := x.packet(t, n, true)
		_, _ = ch.SendBunch(&bunch.Out{Data: b, Bits: bits, NoMerge: true})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestQueuesWithinMaxMemory: however many queues a client opens, and whatever it sends on them that can't be received yet or isn't, the server
// holds no more than MaxMemory, on the heap as well. What is sent beyond that in order is refused; messages that may be lost are dropped.
func TestQueuesWithinMaxMemory(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		for _, c := range []struct{ queues, first, messages int }{{800, 0, 0}, {50, 1, 400}, {6, 1, 1000}, {50, 1000, 1}} {
			if c.first > 1 && mode != message.Ordered {
				continue // there's no gap in front
			}
			x := newCrowd(t, mode)
			before := heap()
			x.open(t, c.queues)
			for n := c.first; n < c.first+c.messages && !x.conns[1].Closed(); n++ {
				x.send(t, n)
			}
			for range 10 {
				x.step()
			}
			held, dropped := 0, uint64(0)
			for _, q := range x.queues {
				held += q.Held()
				dropped += q.Counters.Dropped
			}
			x.conns[0], x.links, x.opened = nil, [2]*netsim.Link{}, nil
			after := heap()
			t.Logf("mode %d: %d queues, %d bytes of messages, %d on the heap, %d held, %d dropped, %v", mode, len(x.queues), held, after-before, x.conns[1].Table().Held(), dropped, x.conns[1].Result())
			require.LessOrEqual(t, after-before, crowdMemory)
			require.LessOrEqual(t, x.conns[1].Table().Held(), crowdMemory/2)
			if c.messages > 0 && mode != message.Ordered {
				require.False(t, x.conns[1].Closed())
				require.Greater(t, dropped, uint64(1000))
				require.Greater(t, held, crowdMemory/25)
				continue
			}
			require.False(t, x.conns[1].Closed(), "%v", x.conns[1].Result())
			require.Positive(t, x.conns[1].Table().Counters.MemoryFull)
		}
	}
}

// TestUnackedMessagesWithinMaxMemory: what Ordered queues remember of packets while a peer acks nothing counts within the half of MaxMemory that is for that,
// on the heap as well. Messages that find no room wait. When acks come again all arrive, and the memory is given back.
func TestUnackedMessagesWithinMaxMemory(t *testing.T) {
	const queues = 100
	x := newCrowd(t, message.Ordered)
	x.resend = time.Millisecond
	x.open(t, queues)
	for range 20 {
		x.step()
	}
	ticks := func(d time.Duration) {
		for end := x.now + d; x.now < end; {
			for _, q := range x.queues {
				q.Tick(x.now)
			}
			x.step()
		}
	}
	ticks(time.Second)
	sent, begin, before := uint64(0), x.conns[1].Table().Held(), heap()
	for _, q := range x.queues {
		require.NoError(t, q.Send(x.kinds.number, &number{N: 1}))
		sent++
	}
	x.silent = true
	ticks(20 * time.Second)
	held, grown := x.conns[1].Table().Held(), heap()-before
	t.Logf("%d bytes counted, %d on the heap, of a MaxMemory of %d", held-begin, grown, crowdMemory)
	require.False(t, x.conns[1].Closed(), "%v", x.conns[1].Result())
	require.LessOrEqual(t, held-begin, crowdMemory/2)
	require.LessOrEqual(t, grown, crowdMemory)
	require.Greater(t, held-begin, crowdMemory/4, "it counts")
	for range 10 {
		for _, q := range x.queues {
			require.NoError(t, q.Send(x.kinds.number, &number{N: 1}))
			sent++
		}
	}
	x.silent = false
	ticks(40 * time.Second)
	acked := uint64(0)
	for _, q := range x.queues {
		acked += q.Counters.Acked
	}
	require.Equal(t, sent, acked)
	t.Logf("then %d and %d", x.conns[1].Table().Held()-begin, heap()-before)
	require.Equal(t, begin, x.conns[1].Table().Held())
	require.Less(t, heap()-before, crowdMemory/4)
}

// TestOpensBesideMessages: messages that wait and take all memory that they may leave room for more channels with queues.
func TestOpensBesideMessages(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		x := newCrowd(t, mode)
		x.open(t, 6)
		for n := 1; n < 1000; n++ {
			x.send(t, n)
		}
		x.open(t, 8)
		require.False(t, x.conns[1].Closed(), "%v", x.conns[1].Result())
		require.Len(t, x.queues, 8)
	}
}

// TestOpensWaitForMemory: a channel that opens while there is no memory for its queue is refused and comes again, until there is.
func TestOpensWaitForMemory(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		x := newCrowd(t, mode)
		x.open(t, 6)
		for n := range 1000 {
			x.send(t, n)
		}
		x.open(t, 40)
		require.False(t, x.conns[1].Closed(), "%v", x.conns[1].Result())
		require.Less(t, len(x.queues), 40)
		for _, q := range x.queues {
			for m, _ := q.Receive(); m != nil; m, _ = q.Receive() {
			}
		}
		for range 100 {
			x.step()
		}
		require.Len(t, x.queues, 40)
	}
}

// TestOpensAtTheLastByte: however little memory is left, a channel with a queue is opened or refused, and ends nothing.
func TestOpensAtTheLastByte(t *testing.T) {
	for maxBits, opens := range map[int]bool{0: false, 8192: false} {
		for free := 3500; free < 6000; free += 25 {
			x := newCrowd(t, message.Ordered)
			x.maxBits = maxBits
			x.open(t, 1)
			ch := x.conns[1].Channel(x.opened[0].Index())
			for n := crowdMemory; n > 0; n /= 2 {
				for ch.Hold(n) == nil {
				}
			}
			ch.Release(free)
			x.open(t, 2)
			require.NoError(t, x.failure, "MaxBits %d, %d bytes free", maxBits, free)
			require.False(t, opens && len(x.queues) == 1, "MaxBits %d, %d bytes free", maxBits, free)
			opens = len(x.queues) == 2
		}
		require.True(t, opens)
	}
}

// TestRoomOfTheNextMessageCounts: the room that a queue always has for one message counts from the beginning, at both ends.
func TestRoomOfTheNextMessageCounts(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		for end := range 2 {
			held := func(maxBits int) int {
				x := newCrowd(t, mode)
				x.maxBits = maxBits
				if end == 1 {
					x.open(t, 1)
				} else {
					_, err := x.conns[0].Open(messageName, message.Attach(message.New(message.Config{Mode: mode, Kinds: &x.kinds.reg, MaxBits: maxBits})))
					require.NoError(t, err)
				}
				return x.conns[end].Table().Held()
			}
			require.Equal(t, 8000/8-1, held(8000)-held(8), "end %d", end)
		}
	}
}

// TestMessagesBesideBlocks: blocks and messages that together have no room within MaxMemory end nothing, and all messages arrive in order, though the
// game receives them once a second only.
func TestMessagesBesideBlocks(t *testing.T) {
	for _, every := range []int{1, 60} {
		const n = 3000
		x := newTransferIn(t, netsim.Settings{Loss: 2, Lag: 60 * time.Millisecond}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{},
			func(c *netconn.Config) { c.MaxMemory = 0 })
		sent, got := uint32(0), uint32(0)
		big := data(1, 2_500_000)
		for i := 0; got < n; i++ {
			require.Less(t, x.now, time.Minute, "%d of %d", got, n)
			for k := 0; k < 40 && sent < n && x.qa.Send(x.ka.number, &number{N: sent, Fill: make([]byte, 650)}) == nil; k++ {
				sent++
			}
			_, _ = x.out.Send(big) // as often as it may
			x.step(16 * time.Millisecond)
			if i%every > 0 {
				continue
			}
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		require.Positive(t, x.conns[1].Table().Counters.MemoryFull)
	}
}

// TestBlocksLeaveRoomForMessages: at an end with the least memory, messages flow beside blocks that never end, also after a game has received none for 2 s.
func TestBlocksLeaveRoomForMessages(t *testing.T) {
	all := uint32(0)
	for seed := range uint64(4) {
		x := newTransferIn(t, netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: 10 * time.Millisecond}, seed, netconn.Protocol{}, func() congestion.Controller { return congestion.NewTokenBucket(1 << 20) },
			message.BlocksConfig{}, message.BlocksConfig{}, func(c *netconn.Config) { c.MaxMemory = 256 << 10 })
		sent, got := uint32(0), uint32(0)
		for i := 0; x.now < 12*time.Second; i++ {
			for range 20 {
				if x.qa.Send(x.ka.number, &number{N: sent, Fill: make([]byte, 300)}) == nil {
					sent++
				}
			}
			for range 2 {
				if x.messages.OpenAcked() && x.messages.Room() > 10 {
					_, err := x.messages.SendBunch(&bunch.Out{Data: make([]byte, 700), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
			}
			if i%10 == 0 {
				_, _ = x.out.Send(make([]byte, 1+i*7919%120_000)) // as large as it may be
			}
			x.step(16 * time.Millisecond)
			if x.now < 4*time.Second {
				continue
			}
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		all += got
		require.Greater(t, got, uint32(4600), "seed %d", seed)
		require.NotEmpty(t, x.received)
	}
	require.Greater(t, all/4, uint32(6000), "of 10,000 that were sent meanwhile")
}

// TestRefusedMessagesWait: a game that receives nothing for 20 s, at an end with little memory, is sent few packets in vain, loses neither messages nor
// the connection, and has all of them soon after that.
func TestRefusedMessagesWait(t *testing.T) {
	const n = 1500
	x := newTransferIn(t, netsim.Settings{Lag: 30 * time.Millisecond}, 3, netconn.Protocol{}, bucket, message.BlocksConfig{}, message.BlocksConfig{},
		func(c *netconn.Config) { c.MaxMemory = 256 << 10 })
	sent, got := uint32(0), uint32(0)
	step := func() {
		for sent < n && x.qa.Send(x.ka.number, &number{N: sent, Fill: make([]byte, 200)}) == nil {
			sent++
		}
		if x.messages.OpenAcked() { // reliable bunches in the same packets
			_, err := x.messages.SendBunch(&bunch.Out{Data: []byte{0}, Bits: 8, Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		x.step(16 * time.Millisecond)
	}
	for x.now < time.Second {
		step()
	}
	refused := x.conns[1].Table().Counters.MemoryFull
	require.Positive(t, refused)
	for x.now < 20*time.Second {
		step()
	}
	require.Less(t, x.conns[1].Table().Counters.MemoryFull-refused, uint64(200), "ten a second")
	for since := x.now; got < n; {
		require.Less(t, x.now-since, 5*time.Second, "%d of %d", got, n)
		for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
			require.Equal(t, got, m.(*number).N)
			got++
			k.Free(m)
		}
		step()
	}
}

// TestQueuesGiveMemoryBack: what was received, and queues that are closed, don't count any more.
func TestQueuesGiveMemoryBack(t *testing.T) {
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		x := newCrowd(t, mode)
		begin := x.conns[1].Table().Held()
		for round := range 5 {
			x.open(t, 10)
			require.Len(t, x.queues, 10*(round+1))
			for batch := range 8 { // more than MaxMemory in all
				for n := range 100 {
					x.send(t, 100*batch+n)
				}
				for range 10 {
					x.step()
				}
				got := 0
				for _, q := range x.queues {
					for m, k := q.Receive(); m != nil; m, k = q.Receive() {
						k.Free(m)
						got++
					}
				}
				require.Equal(t, 1000, got)
				require.Greater(t, x.conns[1].Table().Held(), begin+10*128*4*bits.UintSize/8, "room for so many messages stays")
			}
			for _, ch := range x.opened {
				require.NoError(t, ch.Close(bunch.Destroyed))
			}
			x.opened = nil
			for range 20 {
				x.step()
			}
			require.False(t, x.conns[1].Closed(), "%v", x.conns[1].Result())
			require.Less(t, x.conns[1].Table().Held(), begin+20_000)
		}
	}
}

// lateness is a channel whose bunches say when they were sent.
type lateness struct {
	channel.Nop
	x     *transfer
	total time.Duration
	n     int
}

func (l *lateness) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if l.x.now > 4*time.Second {
		l.total += l.x.now - time.Duration(in.Data.ReadUint64())
		l.n++
	}
}

// TestFullQueuesLeaveRoomForEarly: while queues from which the game doesn't receive hold all that they may, other channels' bunches behind a lost one are kept.
func TestFullQueuesLeaveRoomForEarly(t *testing.T) {
	for _, c := range []struct{ queues, memory int }{{1, 256 << 10}, {2, 1 << 20}, {4, 8 << 20}} {
		var full []*message.Attached
		kinds := newKinds()
		late := &lateness{}
		types := []channel.Type{
			{Name: blockName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return late }},
			{Name: messageName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
				return message.Attach(message.New(message.Config{Kinds: &kinds.reg, Window: 4096, MaxBits: 8000}))
			}},
		}
		late.x = newTransferIn(t, netsim.Settings{Lag: 40 * time.Millisecond, Loss: 5}, 1, netconn.Protocol{}, func() congestion.Controller { return congestion.NewTokenBucket(4 << 20) },
			message.BlocksConfig{}, message.BlocksConfig{}, func(cfg *netconn.Config) {
				if cfg.Channels = types; cfg.Server {
					cfg.MaxMemory = c.memory
				}
			})
		x := late.x
		for range c.queues {
			q := message.Attach(message.New(message.Config{Kinds: &x.ka.reg, Window: 4096, MaxBits: 8000}))
			_, err := x.conns[0].Open(messageName, q)
			require.NoError(t, err)
			full = append(full, q)
		}
		for x.now < 10*time.Second {
			for _, q := range full {
				for q.Send(x.ka.number, &number{Fill: make([]byte, 300)}) == nil {
				}
				q.Tick(x.now)
			}
			if x.blocks.OpenAcked() && x.blocks.Room() > 0 {
				w := bitio.NewWriter(make([]byte, 900))
				w.WriteUint64(uint64(x.now))
				w.WriteBytes(make([]byte, 892))
				_, err := x.blocks.SendBunch(&bunch.Out{Data: w.Bytes(), Reliable: true})
				require.NoError(t, err)
			}
			x.step(16 * time.Millisecond)
		}
		require.Less(t, late.total/time.Duration(late.n), 120*time.Millisecond, "%d queues, MaxMemory %d", c.queues, c.memory)
	}
}
