package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

var (
	turncoatSeeds = flag.Int("turncoats", 0, "seeds of TestTurncoats; 0 a few")
	turncoatFirst = flag.Uint64("turncoatfirst", 0, "the first of them")
)

// turncoat is a peer that is honest, but for a few deviations that begin and end: its packets are those of a connection, and are rewritten on their way.
type turncoat struct {
	rng     *rand.Rand
	proto   bunch.Protocol
	now     time.Duration
	program []deviation
	shift   int64 // of its sequences
	last    int64 // its newest
	heard   int64 // the victim's newest
	old     [][]byte
	bunches []lie
	missing map[uint32]uint16 // sequences that never come, by channel
	late    [][]byte
	large   map[int64]bool // the victim's packets above 700 bytes
	server  bool           // it is one
	did     int            // times that it deviated
	largest int            // packet in bytes

	nameOf       func(index uint32) (bunch.Name, bool) // of a channel; nil says nothing
	lastReliable map[uint32]uint16
	flood        uint32
	mild         bool  // its false messages break no rule
	first        int64 // before the sequences of its channels begin
}

func newTurncoat(rng *rand.Rand) *turncoat {
	return &turncoat{rng: rng, mild: rng.IntN(3) > 0, missing: map[uint32]uint16{}, lastReliable: map[uint32]uint16{}, large: map[int64]bool{}}
}

// deviation is one of deviations, while it lasts.
type deviation struct {
	name        string
	from, until time.Duration
	chance      float64
}

// rewritten is a packet taken apart.
type rewritten struct {
	packetnotify.Header
	info  uint64 // 0 none
	lies  []lie
	times int // that it is sent
	coding.Trailer
}

// deviations change a packet of the turncoat's.
var deviations = map[string]func(k *turncoat, p *rewritten){
	"acks all":      func(_ *turncoat, p *rewritten) { p.History, p.Words = allYes(), history.MaxWords },
	"acks nothing":  func(_ *turncoat, p *rewritten) { p.History = allNo() },
	"acks anything": func(k *turncoat, p *rewritten) { p.History.Add(k.rng.IntN(2) == 0) },
	"acks ahead": func(k *turncoat, p *rewritten) {
		p.AckedSeq = seqnum.Packet.Truncate(int64(p.AckedSeq) + k.rng.Int64N(6))
	},
	"acks the past": func(k *turncoat, p *rewritten) {
		p.AckedSeq = seqnum.Packet.Truncate(int64(p.AckedSeq) - k.rng.Int64N(40))
	},
	"acks what it never got": func(k *turncoat, p *rewritten) {
		p.AckedSeq, p.History, p.Words = seqnum.Packet.Truncate(k.heard), allYes(), history.MaxWords
	},
	"leaps": func(k *turncoat, _ *rewritten) {
		leaps := []int64{1, 2, 33, 255, 256, 257, 1000, 8190, 8191, 8192}
		k.shift += leaps[k.rng.IntN(len(leaps))]
	},
	"loses bunches":   func(k *turncoat, p *rewritten) { p.keep(func(*lie) bool { return k.rng.IntN(2) == 0 }) },
	"first parts":     func(_ *turncoat, p *rewritten) { p.keep(func(b *lie) bool { return !b.Partial || b.PartialInitial }) },
	"last parts":      func(_ *turncoat, p *rewritten) { p.keep(func(b *lie) bool { return !b.PartialInitial }) },
	"endless parts":   func(_ *turncoat, p *rewritten) { p.each(func(b *lie) { b.PartialFinal = false }) },
	"repeats bunches": func(k *turncoat, p *rewritten) { p.lies = append(p.lies, p.lies...) },
	"old bunches":     func(k *turncoat, p *rewritten) { p.lies = append(p.lies, k.bunches[k.rng.IntN(len(k.bunches))]) },
	"shuffles": func(k *turncoat, p *rewritten) {
		k.rng.Shuffle(len(p.lies), func(i, j int) { p.lies[i], p.lies[j] = p.lies[j], p.lies[i] })
	},
	"leaves one out": (*turncoat).leaveOut,
	"other flags":    func(k *turncoat, p *rewritten) { p.each(k.flip) },
	"other channels": func(k *turncoat, p *rewritten) { p.each(func(b *lie) { b.ChIndex += uint32(k.rng.IntN(5)) }) },
	"other sequences": func(k *turncoat, p *rewritten) {
		p.each(func(b *lie) { b.WireSeq = k.proto.Sequences().Truncate(int64(b.WireSeq) + k.rng.Int64N(300)) })
	},
	"false data": func(k *turncoat, p *rewritten) {
		p.each(func(b *lie) { b.data[k.rng.IntN(len(b.data))] ^= 1 << k.rng.IntN(8) })
	},
	"cut data":      func(k *turncoat, p *rewritten) { p.each(func(b *lie) { b.Bits = k.rng.IntN(b.Bits) }) },
	"sends twice":   func(_ *turncoat, p *rewritten) { p.times = 2 },
	"loses packets": func(_ *turncoat, p *rewritten) { p.times = 0 },
	"holds back":    func(_ *turncoat, p *rewritten) { p.times = -1 },
	"hears nothing": func(*turncoat, *rewritten) {}, // see told
	"replays":       func(*turncoat, *rewritten) {}, // see send
	"false symbols": (*turncoat).falsify,
	"says repaired": func(k *turncoat, p *rewritten) {
		p.Repaired = k.rng.Uint32() >> (8 + k.rng.IntN(24))
	},
	"pads":       func(k *turncoat, p *rewritten) { p.pad(k, k.rng.IntN(k.largest)) },
	"acks small": (*turncoat).ackSmall,
}

// falsify changes symbols, or makes some up.
func (k *turncoat) falsify(p *rewritten) {
	if p.Covers == 0 {
		p.Covers, p.Size = 1, 1+k.rng.IntN(200)
		p.Symbols = make([]byte, p.Size)
	}
	switch k.rng.IntN(3) {
	case 0:
		p.Symbols = bytes.Clone(p.Symbols)
		for i := range p.Symbols {
			p.Symbols[i] = uint8(k.rng.Uint32())
		}
	case 1:
		p.Covers = coding.Cover(1 + k.rng.IntN(1<<coding.MaxWindow-1))
	case 2:
		p.Size, p.Symbols = 1, p.Symbols[:1]
	}
}

// pad fills a packet with empty bunches, up to so many bytes.
func (p *rewritten) pad(k *turncoat, bytes int) {
	for range bytes / 3 {
		p.lies = append(p.lies, lie{bunch.Header{ChIndex: uint32(k.rng.IntN(8))}, nil})
	}
}

// ackSmall says of every larger packet of the victim's that it didn't arrive.
func (k *turncoat) ackSmall(p *rewritten) {
	n := seqnum.Packet.Expand(p.AckedSeq, k.heard)
	p.History = history.History{}
	for i := min(n, history.Bits) - 1; i >= 0; i-- {
		p.History.Add(!k.large[n-i])
	}
	p.Words = history.MaxWords
}

// each calls f for each bunch with a payload.
func (p *rewritten) each(f func(b *lie)) {
	for i := range p.lies {
		if p.lies[i].Bits > 0 {
			f(&p.lies[i])
		}
	}
}

// keep keeps the bunches that are wanted.
func (p *rewritten) keep(want func(b *lie) bool) {
	kept := p.lies[:0]
	for i := range p.lies {
		if want(&p.lies[i]) {
			kept = append(kept, p.lies[i])
		}
	}
	p.lies = kept
}

func (k *turncoat) leaveOut(p *rewritten) {
	p.keep(func(b *lie) bool {
		if !b.Reliable || b.ChIndex == 0 {
			return true
		}
		if _, ok := k.missing[b.ChIndex]; !ok {
			k.missing[b.ChIndex] = b.WireSeq
		}
		return k.missing[b.ChIndex] != b.WireSeq
	})
}

func (k *turncoat) flip(b *lie) {
	flags := []*bool{&b.Open, &b.Close, &b.Partial, &b.PartialInitial, &b.PartialFinal, &b.Reliable, &b.ReplicationPaused}
	f := flags[k.rng.IntN(len(flags))]
	*f = !*f
}

// does reports whether a deviation is under way.
func (k *turncoat) does(name string) bool {
	for _, d := range k.program {
		if d.name == name && k.now >= d.from && k.now < d.until && k.rng.Float64() < d.chance {
			return true
		}
	}
	return false
}

// send is what becomes of a packet of the connection's.
func (k *turncoat) send(p []byte) (out [][]byte) {
	var r bitio.Reader
	var w rewritten
	if coding.Marked(p) {
		ok := false
		if p, w.Trailer, ok = coding.Split(p); !ok {
			return [][]byte{p} // a hello
		}
	}
	if handler.Open(&r, p) != nil || w.Read(&r) != nil {
		return nil
	}
	w.times = 1
	if r.ReadBool() {
		w.info = 1<<11 | r.ReadBits(11)
		if w.info>>10&1 != 0 && k.server {
			r.ReadUint8() // its frame time
			w.info &^= 1 << 10
		}
	}
	for r.Remaining() > 0 {
		var b lie
		var payload bitio.Reader
		if k.proto.Read(&r, &b.Header, &payload) != nil {
			return nil
		}
		b.data = make([]byte, (b.Bits+7)/8)
		payload.ReadBitsTo(b.data, b.Bits)
		if b.Reliable {
			k.lastReliable[b.ChIndex] = b.WireSeq
		}
		w.lies = append(w.lies, b)
		k.bunches = append(k.bunches[max(0, len(k.bunches)-200):], b)
	}
	for _, d := range k.program {
		if (len(k.bunches) > 0 || d.name != "old bunches") && k.does(d.name) {
			deviations[d.name](k, &w)
			k.did++
		}
	}
	seq := seqnum.Packet.Expand(w.Seq, k.last-k.shift) + k.shift
	k.last = max(k.last, seq)
	w.Seq = seqnum.Packet.Truncate(seq)
	q := w.bytes(k.proto, k.largest)
	k.old = append(k.old[max(0, len(k.old)-400):], q)
	for range w.times {
		out = append(out, q)
	}
	if w.times < 0 {
		k.late = append(k.late, q)
	}
	if len(k.late) > 0 && k.rng.IntN(10) == 0 {
		i := k.rng.IntN(len(k.late))
		out = append(out, k.late[i])
		k.late = append(k.late[:i], k.late[i+1:]...)
	}
	if k.does("replays") {
		out = append(out, k.old[k.rng.IntN(len(k.old))])
	}
	return out
}

func (p *rewritten) bytes(proto bunch.Protocol, largest int) []byte {
	w := bitio.NewWriter(make([]byte, 2*largest))
	p.Write(w)
	w.WriteBool(p.info != 0)
	if p.info != 0 {
		w.WriteBits(p.info&^(1<<11), 11)
	}
	for i := range p.lies {
		m := w.Mark()
		if proto.Write(w, &p.lies[i].Header, p.lies[i].data); w.Err() != nil || w.Len() >= 8*largest-proto.HandlerBits {
			w.Rollback(m)
			break
		}
	}
	handler.WriteTerminator(w)
	out := bytes.Clone(w.Bytes())
	if n := p.symbols(); n > 0 || p.Repaired != 0 {
		out = coding.AppendEnd(append(out, p.Symbols...), n, p.Covers, p.Size, p.Repaired)
	}
	return out
}

func (p *rewritten) symbols() int {
	if p.Size == 0 {
		return 0
	}
	return len(p.Symbols) / p.Size
}

// told is what the connection hears of a packet of the victim's; nil nothing. It knows nothing of its lies.
func (k *turncoat) told(p []byte) []byte {
	var r bitio.Reader
	var h packetnotify.Header
	plain := p
	if coding.Marked(p) {
		ok := false
		if plain, _, ok = coding.Split(p); !ok {
			return p // a hello
		}
	}
	if handler.Open(&r, plain) != nil || h.Read(&r) != nil || k.does("hears nothing") {
		return nil
	}
	seq := seqnum.Packet.Expand(h.Seq, k.heard)
	k.heard = max(k.heard, seq)
	k.large[seq] = len(p) > 700
	delete(k.large, seq-4*history.Bits)
	acked := seqnum.Packet.Truncate(int64(h.AckedSeq) - k.shift)
	q := bytes.Clone(p)
	binary.LittleEndian.PutUint32(q, uint32(h.Seq)<<18|uint32(acked)<<4|uint32(h.Words-1))
	return q
}

// busybody is a game that does a little of everything.
type busybody struct {
	rng    *rand.Rand
	conn   *netconn.Conn
	kinds  message.Registry
	text   *message.Kind
	queues []*message.Attached
	blocks []*message.Blocks
	plain  []*channel.Channel
	wrong  string
	told   map[blockOf]bool // of the blocks that were sent, which have been told of
	over   map[blockOf]bool // of the blocks that came, those that are over
}

// blockOf is a block of a channel's.
type blockOf struct {
	blocks *message.Blocks
	id     int64
}

func (g *busybody) newBlocks() *message.Blocks {
	var b *message.Blocks
	tell := func(id int64) {
		if done, ok := g.told[blockOf{b, id}]; !ok || done {
			g.wrong = fmt.Sprintf("block %d is told of twice, or was never sent", id)
		}
		g.told[blockOf{b, id}] = true
	}
	end := func(id int64) {
		if g.over[blockOf{b, id}] {
			g.wrong = fmt.Sprintf("block %d is over twice", id)
		}
		g.over[blockOf{b, id}] = true
	}
	b = message.NewBlocks(message.BlocksConfig{MaxBytes: 100_000, Sent: tell, Failed: func(id int64, _ error) { tell(id) }, Received: func(id int64, _ []byte) { end(id) }, Broken: func(id int64, _ error) { end(id) }})
	return b
}

// allTold fails where the game wasn't told what became of a block that it sent.
func (g *busybody) allTold(t *testing.T, what string) {
	for b, told := range g.told {
		require.True(t, told, "%s: block %d", what, b.id)
	}
}

// busyKinds is the kinds of messages: a text, and a number.
const busyKinds = 2

type text struct{ data []byte }

func (m *text) Serialize(s *message.Stream) { s.Bytes(&m.data, 600) }

type digits struct{ n uint64 }

func (m *digits) Serialize(s *message.Stream) { s.Uint64(&m.n) }

func newBusybody(rng *rand.Rand) *busybody {
	g := &busybody{rng: rng, told: map[blockOf]bool{}, over: map[blockOf]bool{}}
	g.text = g.kinds.Add("text", func() message.Message { return new(text) })
	g.kinds.Add("number", func() message.Message { return new(digits) })
	return g
}

// on is a channel's handler. It answers what comes.
type on struct {
	g      *busybody
	closed bool
}

func (h *on) called(what string) {
	if h.closed {
		h.g.wrong = what + " after Closed"
	}
}

func (h *on) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	h.called("bunch")
	if h.g.rng.IntN(4) == 0 {
		_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, in.Bits/8), Reliable: in.Reliable}) // there may be no room
	}
}
func (h *on) ReceivedAck(*channel.Channel, int64) { h.called("ack") }
func (h *on) ReceivedNak(*channel.Channel, int64) { h.called("nak") }
func (h *on) Closed(*channel.Channel, channel.CloseReason) {
	h.called("Closed")
	h.closed = true
}

// take is the handler of a channel, whoever opens it.
func (g *busybody) take(name bunch.Name) channel.Handler {
	switch name {
	case queueName, unorderedName, sequencedName:
		g.queues = append(g.queues, message.Attach(message.New(message.Config{Mode: queueModes[name], Kinds: &g.kinds, Window: liarWindow})))
		return g.queues[len(g.queues)-1]
	case blockName:
		g.blocks = append(g.blocks, g.newBlocks())
		return g.blocks[len(g.blocks)-1]
	}
	return &on{g: g}
}

func (g *busybody) types() (types []channel.Type) {
	for _, name := range []bunch.Name{bunch.Control, dataName, queueName, blockName, unorderedName, sequencedName} {
		types = append(types, channel.Type{Name: name, ClientOpen: true, ServerOpen: true, Static: name == bunch.Control, Accept: func(*channel.Channel) channel.Handler { return g.take(name) }})
	}
	return types
}

// step is a tick of the game. Errors are of no interest: what has no room isn't sent.
func (g *busybody) step(now time.Duration) {
	for _, a := range g.queues {
		for m, k := a.Receive(); m != nil; m, k = a.Receive() {
			k.Free(m)
		}
		_ = a.Send(g.text, &text{make([]byte, g.rng.IntN(200))})
		a.Tick(now)
	}
	switch name := []bunch.Name{dataName, queueName, blockName, unorderedName, sequencedName}[g.rng.IntN(5)]; g.rng.IntN(30) {
	case 0:
		if len(g.queues)+len(g.blocks)+len(g.plain) >= 16 { // the least memory has room for no more
			break
		}
		if ch, err := g.conn.Open(name, g.take(name)); err == nil && name == dataName {
			g.plain = append(g.plain, ch)
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, g.rng.IntN(40)), Reliable: true})
		}
	case 1:
		if ch, err := g.conn.Open(dataName, &on{g: g}); err == nil {
			_, _ = ch.SendTemporary(&bunch.Out{Data: make([]byte, g.rng.IntN(60_000))})
		}
	case 2:
		if n := len(g.plain); n > 0 && g.rng.IntN(4) == 0 {
			_ = g.plain[n-1].Close(bunch.Destroyed)
			g.plain = g.plain[:n-1]
		}
	case 3:
		if n := len(g.blocks); n > 0 {
			b := g.rng.IntN(n)
			if id, err := g.blocks[b].Send(make([]byte, 1+g.rng.IntN(30_000))); err == nil {
				g.told[blockOf{g.blocks[b], id}] = false
			}
		}
	case 4, 5, 6, 7, 8:
		if n := len(g.plain); n > 0 {
			_, _ = g.plain[g.rng.IntN(n)].SendBunch(&bunch.Out{Data: make([]byte, g.rng.IntN(1+30_000>>g.rng.IntN(10))), Reliable: g.rng.IntN(3) > 0, NoMerge: g.rng.IntN(2) == 0})
		}
	}
}

// namesOf tells the type of a connection's channels.
func namesOf(c *netconn.Conn) func(index uint32) (bunch.Name, bool) {
	return func(index uint32) (bunch.Name, bool) {
		ch := c.Channel(index)
		if ch == nil {
			return bunch.Name{}, false
		}
		return ch.Name(), true
	}
}

// turncoatSettings are any that both ends may have.
func turncoatSettings(rng *rand.Rand) netconn.Config {
	c := netconn.Config{MaxMemory: 256 << 10 << (2 * rng.IntN(2)), Timeout: 5 * time.Second, NetSpeed: 1_000_000}
	c.Protocol = []netconn.Protocol{netconn.Bunchnet(), netconn.Bunchnet(), netconn.Unreal51(), netconn.Unreal53(false)}[rng.IntN(4)]
	c.Protocol.FirstFree = false // both ends open channels
	if rng.IntN(2) == 0 {
		return c
	}
	c.AckDelay = []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond}[rng.IntN(3)]
	c.KeepAlive = []time.Duration{0, time.Millisecond, 2 * time.Second}[rng.IntN(3)]
	c.OrderCache = []int{0, -1, 4, 256}[rng.IntN(4)]
	c.ReorderWindow = []time.Duration{0, -1, 200 * time.Millisecond}[rng.IntN(3)]
	c.RestartSequence, c.NeverReuseIndex, c.NoPacketInfo = rng.IntN(2) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
	c.MaxChannels = []int{0, 0, 40}[rng.IntN(3)]
	c.Redundancy = netconn.Redundancy{Copies: rng.IntN(4), Adaptive: rng.IntN(2) == 0}
	if !c.Protocol.Unreal {
		c.Protocol.PacketWindow = []int{0, 16, 64, 6144}[rng.IntN(4)]
		switch rng.IntN(3) {
		case 0:
			c.LargestPacket = []int{1100, 1452, 8000}[rng.IntN(3)]
		case 1:
			c.Coding = netconn.Coding{Repairs: []float64{0.5, 1, 3}[rng.IntN(3)], Adaptive: rng.IntN(2) == 0}
			c.MaxMemory = 1 << 20
		}
	}
	return c
}

// TestTurncoats: a peer that was honest and then deviates in one to three ways, and is honest again, makes nobody panic or hold more than MaxMemory; its victim's connection ends with a
// reason or works, sleeps between its ticks, and ends within LingerTimeout when it is closed. The victim is a server or a client, with any settings, on a path that may lose packets.
func TestTurncoats(t *testing.T) {
	seeds := cmp.Or(*turncoatSeeds, 8)
	if os.Getenv("CI") != "" {
		seeds = max(seeds, 40)
	}
	names := slices.Sorted(maps.Keys(deviations))
	ends := map[netconn.CloseCode]int{}
	for seed := *turncoatFirst; seed < *turncoatFirst+uint64(seeds); seed++ {
		rng := rand.New(rand.NewPCG(seed, 13))
		k := newTurncoat(rng)
		for range 1 + rng.IntN(3) {
			from := time.Duration(rng.IntN(10)) * time.Second
			k.program = append(k.program, deviation{names[rng.IntN(len(names))], from, from + time.Duration(1+rng.IntN(10))*time.Second, []float64{0.01, 0.1, 1}[rng.IntN(3)]})
		}
		what := fmt.Sprintf("seed %d: %v", seed, k.program)
		games := [2]*busybody{newBusybody(rand.New(rand.NewPCG(seed, 1))), newBusybody(rand.New(rand.NewPCG(seed, 2)))}
		cfg := turncoatSettings(rng)
		what += fmt.Sprintf(" %+v", cfg)
		victimServes := rng.IntN(2) == 0
		k.server = !victimServes
		adaptive := rng.IntN(3) == 0
		k.largest = max(cfg.LargestPacket, cfg.Protocol.Bunch.PacketBytes())
		var flying [2][][]byte
		for i := range games { // 0 is the victim
			c := cfg
			c.Server = victimServes == (i == 0)
			c.Channels, c.Secret = games[i].types(), seed
			c.LowLevelSend = func(p []byte) { flying[i] = append(flying[i], bytes.Clone(p)) }
			if adaptive {
				a, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
				require.NoError(t, err)
				c.Controller = a
			}
			conn, err := netconn.New(c, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
			require.NoError(t, err, what)
			games[i].conn = conn
		}
		memory := cfg.MaxMemory
		k.last, k.heard = 8, 6
		step := []time.Duration{tick, tick, time.Millisecond, 100 * time.Millisecond}[rng.IntN(4)]
		loss := []int{0, 0, 5, 30}[rng.IntN(4)]
		delay := rng.IntN(6)
		var line [2][][][]byte // what is on its way, by tick
		k.proto = cfg.Protocol.Bunch
		if cfg.Coding.Repairs > 0 {
			k.proto.HandlerBits = 8 * 40 // what Coding takes
		}
		victim, peer := games[0].conn, games[1].conn
		k.nameOf, k.first = namesOf(peer), 7
		login, err := peer.Open(bunch.Control, &on{g: games[1]})
		require.NoError(t, err)
		_, err = login.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
		require.NoError(t, err)
		closeAt, progress, awake, acked, refused := time.Duration(rng.IntN(80))*time.Second, time.Duration(0), 0, 0, uint64(0)
		for k.now < 40*time.Second && !victim.Closed() {
			k.now += step
			for i := range line {
				line[i] = append(line[i], slices.DeleteFunc(flying[i], func([]byte) bool { return rng.IntN(100) < loss }))
			}
			flying = [2][][]byte{}
			var said, heard [][]byte
			if len(line[0]) > delay {
				said, heard = line[1][0], line[0][0]
				line[0], line[1] = line[0][1:], line[1][1:]
			}
			for _, p := range heard {
				if q := k.told(p); q != nil {
					_ = peer.ReceivedPacket(k.now, q) // it may have ended
				}
			}
			for _, p := range said {
				for _, q := range k.send(p) {
					_ = victim.ReceivedPacket(k.now, q) // it may be refused
				}
			}
			for _, g := range games {
				g.conn.PostTickDispatch(k.now)
				if k.now < 25*time.Second && k.now/tick != (k.now-step)/tick {
					g.step(k.now)
				}
				g.conn.Tick(k.now)
				require.Empty(t, g.wrong, what)
			}
			require.LessOrEqual(t, victim.Table().Held(), memory, what)
			if at, ok := victim.NextDeadline(); !ok || at > k.now {
				awake = 0
			}
			awake++
			require.Less(t, awake, 100, what)
			if n := int(victim.Table().Counters.SentReliable) - victim.Table().Unacked(); n != acked || victim.Table().Unacked() == 0 {
				acked, progress = n, k.now
			}
			if n := peer.Counters.Refused; n != refused { // it has no room behind what it was made to miss
				refused, progress = n, k.now
			}
			require.Less(t, k.now-progress, 15*time.Second, what)
			if k.now >= closeAt {
				victim.Close(k.now, "over")
				require.Less(t, k.now, closeAt+4*time.Second, what)
			}
		}
		r := victim.Result()
		ends[r.Code]++
		if r.Code == netconn.PeerBroke {
			require.Error(t, r.Err, what)
		}
		if victim.Closed() {
			games[0].allTold(t, what)
			used, _ := victim.Table().Unreleased()
			require.Zero(t, used, what)
			require.Zero(t, victim.Table().Len()+victim.Table().Unacked()+victim.Table().Waiting(), what)
		}
	}
	t.Log(ends)
}
