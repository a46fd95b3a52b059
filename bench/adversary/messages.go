package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "messages", name: "blocks to a smaller receiver", promise: "Sent means delivered at 10 % loss, with smaller receivers and 128 blocks at a time: told otherwise", bound: none("blocks"), run: smallerReceivers},
		attack{area: "messages", name: "blocks that claim much", promise: "an end holds at most three times the bytes of blocks that came, whatever sizes are claimed, measured as heap", bound: atMost(3, "bytes a byte"), run: claimedBlocks, alone: true},
		attack{area: "messages", name: "blocks without an end", promise: "what never ends of blocks that a server takes stays within half its MaxMemory, whatever bounds the game set: held", bound: atMost(0.5, "of MaxMemory"), run: endlessBlocks},
		attack{area: "messages", name: "blocks that are closed", promise: "the heap of blocks under way is let go of when their channel closes", bound: atMost(0.05, "of what came"), run: closedBlocks, alone: true},
		attack{area: "messages", name: "a game that doesn't receive", promise: "1025 messages without a Receive end nothing, and all arrive afterwards: missing", bound: none("messages"), run: slowGame},
		attack{area: "messages", name: "chatter both ways on a bad path", promise: "Ordered queues flow again whatever is lost: stalled for over 5 s", bound: none("runs"), run: chatter},
		attack{area: "messages", name: "small packets", promise: "the same where a message doesn't fit a packet of the connection: stalled for over 10 s", bound: none("runs"), run: smallPackets},
		attack{area: "messages", name: "Sequenced after many lost", promise: "the next message that arrives is delivered, whatever number is lost: dropped", bound: none("messages"), run: sequencedAfterMany},
		attack{area: "messages", name: "a large message amid small ones", promise: "packets are filled: of 12 messages in 875 bytes left out", bound: atMost(1, "messages"), run: filledPackets},
		attack{area: "messages", name: "one object in two queues", promise: "what was sent stays what it was: changed", bound: none("messages"), run: oneObject},
		attack{area: "messages", name: "a flood of urgent messages", promise: "a message with a Slack of 1 s isn't overtaken by those sent after that: overtaken by", bound: none("messages"), run: urgentFlood},
		attack{area: "messages", name: "a peer that lies about messages", promise: "hostile messages, credits, blocks and notes break no bound and panic nowhere: broken", bound: none("bounds"), run: hostileMessages},
	)
}

var (
	queueName = bunch.Name{Index: 302}
	blockName = bunch.Name{Index: 303}
)

// note is a numbered message of any length up to 800 bytes.
type note struct {
	N    uint32
	Fill []byte
}

// Serialize is the message's.
func (n *note) Serialize(s *message.Stream) {
	s.Uint32(&n.N)
	s.Bytes(&n.Fill, 800)
}

// talk is the queue and the blocks of each end of a rig.
type talk struct {
	*rig
	reg    [2]message.Registry
	kinds  [2]*message.Kind
	queues [2]*message.Attached
	blocks [2]*message.Blocks
}

// newTalk is a talk whose client opens both channels.
func newTalk(e *env, net netsim.Settings, cfg message.Config, blocks [2]message.BlocksConfig, edit func(i int, c *netconn.Config)) (*talk, error) {
	t := &talk{}
	for i := range t.queues {
		t.kinds[i] = t.reg[i].Add("note", func() message.Message { return &note{} })
		cfg.Kinds = &t.reg[i]
		t.queues[i] = message.Attach(message.New(cfg))
		t.blocks[i] = message.NewBlocks(blocks[i])
	}
	var err error
	t.rig, err = newRig(e, net, func(i int, c *netconn.Config) {
		c.Channels = append(c.Channels,
			channel.Type{Name: queueName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return t.queues[i] }},
			channel.Type{Name: blockName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return t.blocks[i] }})
		c.NetSpeed = 4 << 20
		if edit != nil {
			edit(i, c)
		}
	})
	if err != nil {
		return nil, err
	}
	ch, err := t.conns[0].Open(bunch.Control, channel.Nop{})
	if err == nil {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	}
	if err == nil {
		_, err = t.conns[0].Open(queueName, t.queues[0])
	}
	if err == nil {
		_, err = t.conns[0].Open(blockName, t.blocks[0])
	}
	return t, err
}

// tick is a step in which the game does something before the queues and blocks are written.
func (t *talk) tick(game func()) {
	t.step(func() {
		if game != nil {
			game()
		}
		for i := range t.queues {
			t.queues[i].Tick(t.now)
		}
	})
}

func smallerReceivers(e *env) figure {
	wrong := 0
	for _, in := range []message.BlocksConfig{{MaxBlocks: 128}, {MaxBlocks: 2}, {MaxBlocks: 128, MaxBytes: 5000, MaxHeld: 6000}, {MaxBlocks: 512}} {
		told, arrived := map[int64]bool{}, map[int64]int{}
		out := message.BlocksConfig{MaxBlocks: 128, Sent: func(id int64) {
			if told[id] || arrived[id] != 1 {
				wrong++
			}
			told[id] = true
		}, Failed: func(int64, error) { wrong++ }}
		in.Received = func(id int64, data []byte) {
			if len(data) > 0 && data[0] == byte(id) {
				arrived[id]++
			}
		}
		t, err := newTalk(e, netsim.Settings{Loss: 10, LagMin: 10 * time.Millisecond, LagMax: 15 * time.Millisecond}, message.Config{}, [2]message.BlocksConfig{out, in}, nil)
		if err != nil {
			return broken("%v", err)
		}
		n, begun := e.pick(300, 1280), 0
		for t.now < 5*time.Minute && len(told) < n && !t.over() {
			t.tick(func() {
				for ; begun < n; begun++ {
					data := bytes.Repeat([]byte{byte(begun)}, 1+begun*37%5000)
					if _, err := t.blocks[0].Send(data); err != nil {
						break
					}
				}
			})
		}
		e.notef("%d blocks told, %d arrived, %v", len(told), len(arrived), t.now)
		wrong += n - len(told)
	}
	return figure{value: float64(wrong)}
}

// rawFragment is the payload of a block's fragment.
func rawFragment(id uint16, total, sum, frag uint32, data []byte) []byte {
	w := bitio.NewWriter(make([]byte, len(data)+14))
	w.WriteUint16(id)
	w.WriteUint32(total)
	w.WriteUint32(sum)
	w.WriteUint32(frag)
	w.WriteBytes(data)
	return w.Bytes()
}

func fragment(id uint16, total, sum, frag uint32, data []byte) *bunch.In {
	raw := rawFragment(id, total, sum, frag, data)
	in := &bunch.In{}
	in.Data.Reset(raw, len(raw)*8)
	return in
}

const fragmentBytes = 896

// claimedBlocks claims 64 MiB with every block, fragments near and far ahead.
func claimedBlocks(e *env) figure {
	ends := make([]*message.Blocks, 20)
	for i := range ends {
		ends[i] = message.NewBlocks(message.BlocksConfig{MaxBlocks: 4, MaxHeld: 256 << 20})
	}
	before, sent := heap(), 0
	data := make([]byte, fragmentBytes)
	for _, b := range ends {
		stride := uint32(1 + e.rng.IntN(100))
		for i := range uint32(40) {
			for id := range uint16(5) { // one too many
				b.ReceivedBunch(nil, fragment(id, 64<<20, 1, (i*stride)%4096, data))
				sent += fragmentBytes
			}
		}
	}
	held := heap() - before
	runtime.KeepAlive(ends)
	return figure{value: float64(held) / float64(sent)}
}

// endlessBlocks sends of block after block all but the first fragment, up to the bounds that the server tells and then beyond.
func endlessBlocks(e *env) figure {
	most := 0
	for _, blocks := range []int{1, 4, 512} {
		in := message.BlocksConfig{MaxBytes: 1 << 30, MaxBlocks: blocks, Received: func(int64, []byte) {}}
		t, err := newTalk(e, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 5 * time.Millisecond}, message.Config{}, [2]message.BlocksConfig{{}, in}, nil)
		if err != nil {
			return broken("%v", err)
		}
		for range 20 {
			t.tick(nil)
		}
		var ch *channel.Channel
		t.conns[0].Table().All(func(c *channel.Channel) bool {
			ch = c
			return c.Name() != blockName
		})
		data := make([]byte, fragmentBytes)
		total := (2<<20 + 500_000) / blocks / fragmentBytes
		for id := range blocks + 1 {
			for f := 1; f <= total; f++ {
				for !t.conns[0].IsNetReady() && !t.over() {
					t.tick(nil)
				}
				if t.over() {
					break
				}
				raw := rawFragment(uint16(id), uint32((total+1)*fragmentBytes), 1, uint32(f), data)
				_, _ = ch.SendBunch(&bunch.Out{Data: raw, Bits: len(raw) * 8, NoMerge: true})
				most = max(most, t.conns[1].Table().Held())
			}
		}
		e.notef("%d blocks: %d bytes held, %v", blocks, most, t.over())
	}
	if most < 2<<20 {
		return broken("only %d bytes were held", most)
	}
	return figure{value: float64(most) / (8 << 20)}
}

func closedBlocks(*env) figure {
	failed := 0
	b := message.NewBlocks(message.BlocksConfig{Broken: func(_ int64, err error) {
		if errors.Is(err, message.ErrNoChan) {
			failed++
		}
	}})
	before := heap()
	const n = 4000
	data := make([]byte, fragmentBytes)
	for i := range uint32(n) {
		b.ReceivedBunch(nil, fragment(0, 64<<20, 1, i, data))
	}
	if came := heap() - before; came < n*fragmentBytes {
		return broken("only %d bytes are held", came)
	}
	b.Closed(nil, 0)
	left := heap() - before
	if failed != 1 || b.Held() != 0 {
		return broken("%d blocks were told to have failed, %d bytes held", failed, b.Held())
	}
	runtime.KeepAlive(b)
	return figure{value: float64(left) / (n * fragmentBytes)}
}

func slowGame(e *env) figure {
	t, err := newTalk(e, netsim.Settings{Loss: 5, LagMin: 20 * time.Millisecond, LagMax: 20 * time.Millisecond}, message.Config{}, [2]message.BlocksConfig{}, nil)
	if err != nil {
		return broken("%v", err)
	}
	const n = 4000
	sent, got := uint32(0), uint32(0)
	for t.now < time.Minute && got < n && !t.over() {
		t.tick(func() {
			for sent < n && t.queues[0].Send(t.kinds[0], &note{N: sent}) == nil {
				sent++
			}
			for t.now > 10*time.Second {
				m, k := t.queues[1].Receive()
				if m == nil || m.(*note).N != got {
					break
				}
				got++
				k.Free(m)
			}
		})
	}
	if t.over() {
		return broken("the connection ended: %v %v", t.results[0], t.results[1])
	}
	return figure{value: float64(n - got)}
}

// chatRuns has both ends talk in small windows over lossy paths and receive in fits and starts.
func chatRuns(e *env, runs int, jitter, patience time.Duration, edit func(i int, c *netconn.Config)) figure {
	stalled := 0
	for run := range runs {
		loss := float64(5 + 5*e.rng.IntN(6))
		window := 1 << (2 + e.rng.IntN(7))
		t, err := newTalk(e, netsim.Settings{Loss: loss, LagMin: 10 * time.Millisecond, LagMax: 10*time.Millisecond + jitter, Dup: 5}, message.Config{Window: window}, [2]message.BlocksConfig{}, edit)
		if err != nil {
			return broken("%v", err)
		}
		var sent, got [2]uint32
		var at [2]time.Duration
		wrong := false
		for t.now < 30*time.Second && !t.over() {
			t.tick(func() {
				for i := range t.queues {
					for range 1 + e.rng.IntN(20) {
						if t.queues[i].Send(t.kinds[i], &note{N: sent[i], Fill: make([]byte, e.rng.IntN(700))}) != nil {
							break
						}
						sent[i]++
					}
					if e.rng.IntN(20) > 0 {
						continue
					}
					for m, k := t.queues[i].Receive(); m != nil; m, k = t.queues[i].Receive() {
						wrong = wrong || m.(*note).N != got[i]
						got[i]++
						at[i] = t.now
						k.Free(m)
					}
				}
			})
			if t.now-min(at[0], at[1]) > patience {
				wrong = true
				break
			}
		}
		if wrong || t.over() {
			stalled++
			e.notef("run %d: window %d, loss %v %%, at %v: sent %v, got %v, %v %v", run, window, loss, t.now, sent, got, t.results[0], t.results[1])
		}
	}
	return figure{value: float64(stalled)}
}

func chatter(e *env) figure {
	return chatRuns(e, e.pick(10, 60), 30*time.Millisecond, 5*time.Second, nil)
}

func smallPackets(e *env) figure {
	sizes := []int{256, 512, 700, 900}
	size := 0
	return chatRuns(e, e.pick(8, 40), 0, 10*time.Second, func(i int, c *netconn.Config) {
		if i == 0 {
			size = sizes[e.rng.IntN(len(sizes))]
		}
		c.Protocol = netconn.Bunchnet()
		c.Protocol.Bunch.MaxPacket = size
	})
}

func sequencedAfterMany(e *env) figure {
	var reg message.Registry
	kind := reg.Add("note", func() message.Message { return &note{} })
	a, b := message.New(message.Config{Mode: message.Sequenced, Kinds: &reg}), message.New(message.Config{Mode: message.Sequenced, Kinds: &reg})
	buf := make([]byte, 100)
	w := bitio.NewWriter(buf)
	dropped, sent := 0, uint32(0)
	for _, lost := range []int{0, 1, 100, 32_767, 32_768, 40_000, 65_535, 65_536, 100_000} {
		for range lost + 1 {
			w.Reset(buf)
			if a.Send(kind, &note{N: sent}) != nil || a.Write(0, w) != 1 {
				return broken("message %d can't be sent", sent)
			}
			a.Sent(int64(sent))
			sent++
		}
		if err := b.Read(bitio.NewReader(w.Bytes(), w.Len())); err != nil {
			return broken("%v", err)
		}
		if m, _ := b.Receive(); m == nil || m.(*note).N != sent-1 {
			dropped++
		}
	}
	return figure{value: float64(dropped)}
}

func filledPackets(*env) figure {
	least := 12
	for _, mode := range []message.Mode{message.Ordered, message.Unordered} {
		var reg message.Registry
		kind := reg.Add("note", func() message.Message { return &note{} })
		q := message.New(message.Config{Mode: mode, Kinds: &reg})
		for i := range 12 {
			size := 10
			if i < 2 {
				size = 400 + i*100
			}
			if err := q.Send(kind, &note{Fill: make([]byte, size)}); err != nil {
				return broken("%v", err)
			}
		}
		least = min(least, q.Write(0, bitio.NewWriter(make([]byte, 875))))
	}
	return figure{value: float64(12 - least)}
}

func oneObject(*env) figure {
	changed := 0
	var reg message.Registry
	kind := reg.Add("note", func() message.Message { return &note{} })
	m := &note{}
	var queues []*message.Queue
	for i := range uint32(100) {
		q := message.New(message.Config{Kinds: &reg})
		m.N = i
		if err := q.Send(kind, m); err != nil {
			return broken("%v", err)
		}
		queues = append(queues, q)
	}
	m.N = 999
	for round := range int64(3) { // the first time and again
		for i, q := range queues {
			w := bitio.NewWriter(make([]byte, 100))
			q.Write(time.Duration(round)*time.Second, w)
			q.Sent(round)
			b := message.New(message.Config{Kinds: &reg})
			if err := b.Read(bitio.NewReader(w.Bytes(), w.Len())); err != nil {
				return broken("%v", err)
			}
			if got, _ := b.Receive(); got == nil || got.(*note).N != uint32(i) {
				changed++
			}
		}
	}
	return figure{value: float64(changed)}
}

func urgentFlood(e *env) figure {
	overtaken := 0
	for range e.pick(5, 30) {
		var reg message.Registry
		urgent := reg.Add("urgent", func() message.Message { return &note{} })
		calm := reg.Add("calm", func() message.Message { return &note{} })
		calm.Slack = time.Second
		a, b := message.New(message.Config{Mode: message.Unordered, Kinds: &reg}), message.New(message.Config{Mode: message.Unordered, Kinds: &reg})
		fill := make([]byte, e.rng.IntN(650)) // of all: smaller ones may fill a packet's room without delaying anything
		if err := a.Send(calm, &note{Fill: fill}); err != nil {
			return broken("%v", err)
		}
		now, found := time.Duration(0), false
		for ; !found; now += tick {
			if now > time.Minute {
				return broken("not sent within a minute")
			}
			for range 1 + e.rng.IntN(40) {
				_ = a.Send(urgent, &note{N: uint32(now / time.Millisecond), Fill: fill}) // a full queue refuses
			}
			w := bitio.NewWriter(make([]byte, 900))
			a.Write(now, w)
			a.Sent(0)
			if err := b.Read(bitio.NewReader(w.Bytes(), w.Len())); err != nil {
				return broken("%v", err)
			}
			for m, k := b.Receive(); m != nil; m, k = b.Receive() {
				found = found || k == calm
				if !found && m.(*note).N > 1000+2*uint32(tick/time.Millisecond) {
					overtaken++
				}
				k.Free(m)
			}
		}
	}
	return figure{value: float64(overtaken)}
}

// hostileMessages gives queues and blocks what their own writers make, with the fields of a liar's choice.
func hostileMessages(e *env) figure {
	wrong := 0
	for range e.pick(300, 5000) {
		wrong += hostileQueue(e, e.rng) + hostileBlocks(e, e.rng)
	}
	return figure{value: float64(wrong)}
}

func hostileQueue(e *env, rng *rand.Rand) (wrong int) {
	var reg message.Registry
	kind := reg.Add("note", func() message.Message { return &note{} })
	reg.Add("other", func() message.Message { return &note{} })
	cfg := message.Config{Mode: message.Mode(rng.IntN(3)), Kinds: &reg, Window: 1 << rng.IntN(15)}
	q := message.New(cfg)
	buf := make([]byte, 1000)
	now := time.Duration(0)
	for i := range 60 {
		now += time.Duration(rng.IntN(200)) * time.Millisecond
		w := bitio.NewWriter(make([]byte, 1000))
		if cfg.Mode == message.Ordered {
			credit := rng.IntN(2) == 0
			w.WriteBool(credit)
			if credit {
				w.WriteUint16(uint16(rng.IntN(3*cfg.Window) - cfg.Window))
			}
		}
		n := uint32(rng.IntN(66))
		w.WriteInt(min(n, 64), 65)
		for k := range min(n, 64) {
			switch {
			case cfg.Mode == message.Ordered && (k == 0 || rng.IntN(3) == 0):
				if k > 0 {
					w.WriteBool(false)
				}
				w.WriteUint16(uint16(rng.IntN(2 * cfg.Window)))
			case cfg.Mode == message.Ordered:
				w.WriteBool(true)
			case cfg.Mode == message.Sequenced && k == 0:
				w.WriteUint32(rng.Uint32() >> rng.IntN(32))
			}
			w.WriteInt(uint32(rng.IntN(2)), 2)
			w.WriteUint32(rng.Uint32())
			w.WriteBits(uint64(rng.IntN(1024))>>rng.IntN(10), 10) // the length of Fill
		}
		_ = q.Read(bitio.NewReader(w.Bytes(), max(0, w.Len()-rng.IntN(9)))) // an error ends the connection; go on anyway
		_ = q.Send(kind, &note{Fill: make([]byte, rng.IntN(600))})
		out := bitio.NewWriter(buf)
		q.Write(now, out)
		q.Sent(int64(i))
		q.Acked(int64(rng.IntN(70)) - 5) // of packets never sent as well
		q.Lost(int64(rng.IntN(70)) - 5)
		if q.Held() < 0 || q.Held() > 2*cfg.Window*6000/8 || q.Pending() < 0 || q.Pending() > cfg.Window {
			e.notef("mode %d, window %d: held %d, pending %d", cfg.Mode, cfg.Window, q.Held(), q.Pending())
			return 1
		}
		for range rng.IntN(3) {
			q.Receive()
		}
	}
	for m, _ := q.Receive(); m != nil; m, _ = q.Receive() {
	}
	q.Forget()
	if q.Held() != 0 && cfg.Mode != message.Ordered { // there, messages beyond a gap wait
		e.notef("mode %d: %d bytes held at the end", cfg.Mode, q.Held())
		return 1
	}
	return 0
}

func hostileBlocks(e *env, rng *rand.Rand) (wrong int) {
	const maxHeld = 100_000
	came := 0
	b := message.NewBlocks(message.BlocksConfig{MaxBytes: 50_000, MaxHeld: maxHeld, MaxBlocks: 1 + rng.IntN(8), Received: func(_ int64, data []byte) { came += len(data) }})
	total := uint32(1 + rng.IntN(60_000))
	base := uint16(rng.Uint32())
	for range 200 {
		switch rng.IntN(6) {
		case 0: // a note
			w := bitio.NewWriter(make([]byte, 24))
			w.WriteUint8(uint8(rng.IntN(6)))
			w.WriteUint16(base + uint16(rng.IntN(1100)))
			w.WriteUint64(rng.Uint64() >> rng.IntN(64))
			w.WriteUint64(rng.Uint64() >> rng.IntN(64))
			in := &bunch.In{}
			in.Reliable = true
			in.Data.Reset(w.Bytes(), w.Len()-rng.IntN(3))
			b.ReceivedBunch(nil, in)
		case 1:
			b.ReceivedBunch(nil, fragment(uint16(rng.IntN(12)), rng.Uint32()>>rng.IntN(32), rng.Uint32(), rng.Uint32()>>rng.IntN(32), make([]byte, rng.IntN(900))))
		default:
			n := (total + fragmentBytes - 1) / fragmentBytes
			f := rng.Uint32N(n)
			size := min(fragmentBytes, total-f*fragmentBytes)
			b.ReceivedBunch(nil, fragment(uint16(rng.IntN(12)), total, 7, f, make([]byte, size)))
		}
		b.ReceivedAck(nil, rng.Int64())
		b.ReceivedNak(nil, rng.Int64())
		if b.Held() < 0 || b.Held() > maxHeld {
			e.notef("%d bytes held", b.Held())
			return 1
		}
	}
	b.Closed(nil, 0)
	if b.Held() != 0 {
		e.notef("%d bytes held after the close", b.Held())
		return 1
	}
	return 0
}
