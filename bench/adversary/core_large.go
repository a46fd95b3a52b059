package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(attack{area: "core", name: "any settings, large payloads", promise: "payloads of all sizes on many channels arrive in order, with every setting that New takes",
		bound: none("runs failed"), run: largeSettings})
}

// largeSettings plays payloads of 1 byte to 64 KiB on many channels both ways, amid small and unreliable ones, with channels that close and
// others at their index, with settings and networks drawn at random.
func largeSettings(e *env) figure {
	failed := 0
	for i := range e.pick(4, 300) {
		if text, err := largeSetting(e.rng.Uint64()); err != nil {
			failed++
			e.notef("run %d: %v; %s", i, err, text)
		}
	}
	return figure{value: float64(failed)}
}

// cargo is the game of a run: lanes, each a channel from its open to its close, with payloads both ways.
type cargo struct {
	rng    *rand.Rand
	r      *rig
	lanes  []*lane // those under way
	opened int
	came   int // payloads that arrived
	fault  error
	large  int // one payload in so many is large
	buf    []byte
}

// lane is a channel, at both ends. The first 4 bytes of its first payload are its number.
type lane struct {
	c      *cargo
	number uint32
	opener int
	ends   [2]laneEnd
	left   int  // payloads that the opener sends before it closes
	closed bool // Close was called
	gone   [2]bool
}

type laneEnd struct {
	ch         *channel.Channel
	sent, next int
	loose      int          // unreliable ones sent
	had        map[int]bool // unreliable ones that came
}

// laneHandler is a lane at one of the ends; lane is nil before its first payload.
type laneHandler struct {
	channel.Nop
	c    *cargo
	end  int
	lane *lane
}

func (c *cargo) faultf(format string, args ...any) {
	if c.fault == nil {
		c.fault = fmt.Errorf(format, args...)
	}
}

// sizeOf is the size of payload n that an end sends on a lane.
func (l *lane) sizeOf(end, n int) int {
	rng := rand.New(rand.NewPCG(uint64(l.number)<<1|uint64(end), uint64(n)))
	size := 1 + rng.IntN(200)
	switch {
	case rng.IntN(l.c.large) == 0:
		size = 1 + rng.IntN(1<<16)
		if rng.IntN(4) == 0 {
			size = 1 << 16
		}
	case rng.IntN(4) == 0:
		size = 1 + rng.IntN(3000)
	}
	if n == 0 {
		size = max(size, 5)
	}
	return size
}

// thirteens is byte(13*i) for each i, from which payloads are cut, as lanes ask for one at each tick until it is taken.
var thirteens = func() (b [256 + 1<<16]byte) {
	for i := range b {
		b[i] = byte(13 * i)
	}
	return b
}()

// payload is the bytes of payload n, until it is called again: its kind, the number, and what depends on it.
func (l *lane) payload(end, n, size int, loose bool) []byte {
	begin := byte(int(l.number)*31+n*7+end) * 197 // 13*197 is 1, modulo 256
	p := append(l.c.buf[:0], thirteens[begin:int(begin)+size]...)
	l.c.buf = p
	p[0] = byte(n) << 1
	if loose {
		p[0] |= 1
	}
	if loose || n == 0 {
		for i := range 4 {
			p[1+i] = byte(l.number >> (8 * i))
		}
	}
	if loose {
		p[5], p[6] = byte(n), byte(n>>8)
	}
	return p
}

// ReceivedBunch checks a payload.
func (h *laneHandler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	c := h.c
	if in.Bits%8 != 0 {
		c.faultf("%d bits on %v", in.Bits, ch)
		return
	}
	p := make([]byte, in.Bits/8)
	for i := range p {
		p[i] = in.Data.ReadUint8()
	}
	loose := p[0]&1 == 1
	number := func() uint32 { return uint32(p[1]) | uint32(p[2])<<8 | uint32(p[3])<<16 | uint32(p[4])<<24 }
	if h.lane == nil {
		if len(p) < 5 {
			c.faultf("the first on %v has %d bytes", ch, len(p))
			return
		}
		n := number()
		i := slices.IndexFunc(c.lanes, func(l *lane) bool { return l.number == n })
		if i < 0 || loose || c.lanes[i].ends[h.end].ch != nil {
			c.faultf("the first on %v is of lane %d (loose %v)", ch, n, loose)
			return
		}
		h.lane = c.lanes[i]
		h.lane.ends[h.end].ch = ch
	}
	l := h.lane
	me, from := &l.ends[h.end], 1-h.end
	if loose {
		n := int(p[5]) | int(p[6])<<8
		if number() != l.number || n >= l.ends[from].loose || !slices.Equal(p, l.payload(from, n, len(p), true)) || me.had[n] {
			c.faultf("loose %d of %d bytes on lane %d: lane %d, %d sent, had %v", n, len(p), l.number, number(), l.ends[from].loose, me.had[n])
		}
		if me.had == nil {
			me.had = map[int]bool{}
		}
		me.had[n] = true
		return
	}
	if n := me.next; n >= l.ends[from].sent || !slices.Equal(p, l.payload(from, n, l.sizeOf(from, n), false)) {
		c.faultf("payload of %d bytes on lane %d where %d of %d bytes was next, of %d", len(p), l.number, n, l.sizeOf(from, n), l.ends[from].sent)
	}
	me.next++
	c.came++
}

// Closed checks that all that the opener sent has come.
func (h *laneHandler) Closed(ch *channel.Channel, _ channel.CloseReason) {
	l := h.lane
	if l == nil || h.c.r.over() || h.c.r.conns[h.end].Closed() {
		return
	}
	l.gone[h.end] = true
	if !l.closed {
		h.c.faultf("lane %d closed at end %d, by nobody", l.number, h.end)
	}
	if o := l.opener; h.end != o && l.ends[h.end].next != l.ends[o].sent {
		h.c.faultf("lane %d closed behind %d of %d", l.number, l.ends[h.end].next, l.ends[o].sent)
	}
}

// open begins a lane.
func (c *cargo) open(opener, payloads int) {
	c.opened++
	l := &lane{c: c, number: uint32(c.opened), opener: opener, left: payloads}
	ch, err := c.r.conns[opener].Open(dataName, &laneHandler{c: c, end: opener, lane: l})
	if err != nil {
		return // no index
	}
	l.ends[opener].ch = ch
	c.lanes = append(c.lanes, l)
}

// talk sends what an end of a lane has to say in this tick.
func (l *lane) talk(end int, eager bool) {
	e := &l.ends[end]
	if e.ch == nil || e.ch.Closing() || l.gone[end] {
		return
	}
	if end == l.opener && l.left == 0 {
		if err := e.ch.Close(bunch.Destroyed); err == nil {
			l.closed = true
		}
		return
	}
	for i := 0; i < 4 && (end != l.opener || l.left > 0); i++ {
		size := l.sizeOf(end, e.sent)
		_, err := e.ch.SendBunch(&bunch.Out{Data: l.payload(end, e.sent, size, false), Reliable: true, NoMerge: true})
		if err != nil {
			break
		}
		e.sent++
		if end == l.opener {
			l.left--
		}
		if !eager {
			break
		}
	}
	if e.sent > 0 && l.c.rng.IntN(8) == 0 && e.loose < 1<<16-1 {
		size := 7 + l.c.rng.IntN(100)
		if l.c.rng.IntN(3) == 0 {
			size = 7 + l.c.rng.IntN(12000)
		}
		_, _ = e.ch.SendBunch(&bunch.Out{Data: l.payload(end, e.loose, size, true), NoMerge: true}) // what isn't sent doesn't come
		e.loose++
	}
}

// done reports whether all that was sent on a lane has come, and its close, if any.
func (l *lane) done() bool {
	if l.closed {
		return l.gone[0] && l.gone[1]
	}
	return l.ends[0].next == l.ends[1].sent && l.ends[1].next == l.ends[0].sent
}

// largeStuck is how long no payload comes before a run has failed: one of 64 KiB at 20 kB/s, of which 40 % are lost, behind others that
// are refused at first, takes a while.
const largeStuck = 3 * time.Minute

// laneMemory is more than an open channel counts of its peer's memory.
const laneMemory = 700

// largeSetting is one run, which its seed determines.
func largeSetting(seed uint64) (text string, err error) {
	e := &env{rng: rand.New(rand.NewPCG(seed, 2))}
	pick := func(list ...int) int { return list[e.rng.IntN(len(list))] }
	ms := func(list ...int) time.Duration { return time.Duration(pick(list...)) * time.Millisecond }
	low := ms(0, 5, 40, 150)
	net := netsim.Settings{Loss: float64(pick(0, 0, 3, 10, 20, 40)), LagMin: low, LagMax: low + 1 + ms(0, 0, 10, 60), Dup: float64(pick(0, 0, 5)), Order: float64(pick(0, 0, 10))}
	protocol := []netconn.Protocol{netconn.Bunchnet(), netconn.Bunchnet(), netconn.Unreal51(), netconn.Unreal53(true)}[e.rng.IntN(4)]
	protocol.FirstFree = false
	if !protocol.Unreal {
		protocol.ReliableBuffer = pick(128, 256, 512, 4096)
		protocol.PacketWindow = pick(64, 256, 4096)
	}
	protocol.CloseOnOverflow = false
	protocol.Bunch.MaxPacket = pick(0, 0, 0, 512, 4096)
	memory := [2]int{pick(256, 256, 384, 1024, 8192) << 10, pick(256, 256, 384, 1024, 8192) << 10}
	speed := pick(20_000, 100_000, 1_000_000, 10_000_000)
	set := anyTuning(e)
	if set.Coding.Repairs > 0 && !protocol.Unreal {
		for i := range memory {
			memory[i] = max(memory[i], cmp.Or(protocol.Bunch.MaxPacket, 1024)<<10) // it needs a part of it
		}
	}
	copies := netconn.Redundancy{Copies: pick(0, 0, 2, 16), Adaptive: e.rng.IntN(2) == 0}
	find := e.rng.IntN(3) == 0
	c := &cargo{rng: e.rng, large: pick(1, 2, 5, 20)}
	c.r, err = newRig(e, net, func(i int, n *netconn.Config) {
		n.Protocol, n.Redundancy, n.MaxMemory, n.NetSpeed = protocol, copies, memory[i], speed
		set.give(n)
		if find {
			n.Controller = adaptive()
		}
		n.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &laneHandler{c: c, end: i} }
	})
	r := c.r
	if err != nil {
		return "", err
	}
	r.tick = ms(5, 16, 33, 100)
	most := (min(memory[0], memory[1])/2 - max(min(memory[0], memory[1])/8, bunch.MaxPayload)) / laneMemory // more aren't let open
	chans, ways, mayClose, dark, eager := min(pick(1, 5, 30, 100, 300), most), 1+e.rng.IntN(3), e.rng.IntN(2) == 0, e.rng.IntN(4) == 0, e.rng.IntN(2) == 0
	text = fmt.Sprintf("seed %#x: %s of %d, window %d, packet %d, memory %v, speed %d (adaptive %v), %+v, %+v, %+v, tick %v; %d lanes, ways %d, large 1/%d, close %v, dark %v, eager %v", seed, protocol.Name, protocol.ReliableBuffer, protocol.PacketWindow,
		protocol.Bunch.MaxPacket, memory, speed, find, net, set, copies, r.tick, chans, ways, c.large, mayClose, dark, eager)
	if err = r.join(); err != nil {
		return text, err
	}
	talking, payloads := true, 10
	talk := func() {
		for i := 0; len(c.lanes) < chans && i < 20 && talking; i++ {
			opener := e.rng.IntN(2)
			if ways < 3 {
				opener = ways - 1
			}
			n := 1 << 30
			if mayClose {
				n = 1 + e.rng.IntN(payloads)
			}
			c.open(opener, n)
		}
		kept := c.lanes[:0]
		for _, l := range c.lanes {
			if talking {
				l.talk(l.opener, eager)
				l.talk(1-l.opener, eager && ways == 3)
			} else if l.left == 0 {
				l.talk(l.opener, false) // closes
			}
			if !l.gone[0] || !l.gone[1] {
				kept = append(kept, l)
			}
		}
		clear(c.lanes[len(kept):])
		c.lanes = kept
	}
	check := func() error {
		for i := range r.conns {
			if held := r.conns[i].Table().Held(); held > memory[i] {
				return fmt.Errorf("end %d holds %d of %d", i, held, memory[i])
			}
		}
		return nil
	}
	ticks := 0
	for end := r.now + 5*time.Second; r.now < end && c.fault == nil && !r.over(); {
		if dark {
			for i := range r.dark {
				if e.rng.IntN(60) == 0 {
					r.dark[i] = !r.dark[i]
				}
			}
		}
		r.step(talk)
		if ticks++; ticks%8 == 0 {
			if err := check(); err != nil {
				return text, err
			}
		}
	}
	talking, r.dark = false, [2]bool{}
	done := func() bool {
		for _, l := range c.lanes {
			if !l.done() {
				return false
			}
		}
		return true
	}
	came, end := c.came, r.now+largeStuck
	for r.now < end && !done() && !r.over() && c.fault == nil {
		r.step(talk)
		if c.came+c.opened-len(c.lanes) > came {
			came, end = c.came+c.opened-len(c.lanes), r.now+largeStuck
		}
		if ticks++; ticks%8 == 0 {
			if err := check(); err != nil {
				return text, err
			}
		}
	}
	text = fmt.Sprintf("%s; %d payloads, %d lanes opened in %v, offered %v", text, c.came, c.opened, r.now, r.offered)
	switch {
	case c.fault != nil:
		return text, c.fault
	case r.over():
		return text, fmt.Errorf("ended: %v %v", r.results[0], r.results[1])
	case !done():
		n := 0
		for _, l := range c.lanes {
			if !l.done() {
				n++
			}
		}
		return text, fmt.Errorf("%d of %d lanes not done after %v without a payload", n, len(c.lanes), largeStuck)
	}
	return text, nil
}
