package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

func init() {
	register(
		attack{area: "core", name: "acks what was never sent", promise: "an ack of a packet that wasn't sent acks nothing", bound: none("acked"), run: acksUnsent},
		attack{area: "core", name: "lies about its history", promise: "each packet is acked or lost once, in rising order, whatever the peer says", bound: none("wrong fates"), run: changesItsMind},
		attack{area: "core", name: "acks what was lost", promise: "acks of packets that never arrived are found out before they have had so many sent beyond what the path carries", bound: atMost(8192, "packets"),
			run: func(e *env) figure { return acksLost(e, 0) }},
		attack{area: "core", name: "acks ahead", promise: "and so are acks of packets that are still under way", bound: atMost(8192, "packets"),
			run: func(e *env) figure { return acksLost(e, 3) }},
		attack{area: "core", name: "never reads", promise: "a peer that acks nothing costs at most the rate, and less than a tenth of it after 10 s", bound: atMost(0.1, "x the rate"), run: neverReads},
		attack{area: "core", name: "opens and closes", promise: "10,000 opens and closes a second get no more bytes than they send", bound: atMost(1, "x its bytes"), run: opensAndCloses},
		attack{area: "core", name: "ids at every bound", promise: "at a bound is taken, beyond it ends the connection or is dropped, as documented", bound: none("wrong"), run: idsAtBounds},
		attack{area: "core", name: "long names", promise: "a type name is refused by New, or its bunches fit with the longest ack history", bound: none("panics"), run: longNames},
		attack{area: "core", name: "settings", promise: "a setting that can't be is refused by New", bound: none("accepted"), run: settings},
	)
}

// acksUnsent acks packets beyond the newest, by all distances.
func acksUnsent(e *env) figure {
	l, g, _, err := nakker(congestion.NewTokenBucket(100_000))
	if err != nil {
		return broken("%v", err)
	}
	g.fill()
	l.pass(tick)
	acked := l.victim.Stats().Packets.PacketsAcked
	for ahead := int64(1); ahead < 8192; ahead++ {
		_ = l.send(l.newest+ahead, allYes()) // dropped, that's the point
		if l.over() {
			return broken("at %d ahead: %v", ahead, l.result)
		}
	}
	return figure{value: float64(l.victim.Stats().Packets.PacketsAcked - acked)}
}

// fates checks that packets are settled once and in order.
type fates struct {
	sent, settled int64
	begun         bool
	wrong         int
}

// Trace is nettrace's.
func (f *fates) Trace(ev *nettrace.Event) {
	switch ev.Kind {
	case nettrace.PacketSent:
		if !f.begun {
			f.begun, f.settled = true, ev.PacketID-1
		}
		f.sent = ev.PacketID
	case nettrace.PacketAcked, nettrace.PacketNak:
		if ev.PacketID != f.settled+1 || ev.PacketID > f.sent {
			f.wrong++
		}
		f.settled = ev.PacketID
	}
}

// changesItsMind acks at random, tells another story about the same packets later, and goes back.
func changesItsMind(e *env) figure {
	wrong, ended := 0, 0
	for range e.pick(20, 400) {
		var f fates
		l, err := newLiar(nil, func(c *netconn.Config) { c.Trace = &f })
		if err != nil {
			return broken("%v", err)
		}
		if err := l.openControl(); err != nil {
			return broken("%v", err)
		}
		g, err := newGreedy(l.victim, 3)
		if err != nil {
			return broken("%v", err)
		}
		for range 300 {
			g.fill()
			l.pass(tick)
			var h history.History
			for range history.Bits {
				h.Add(e.rng.IntN(3) > 0)
			}
			_ = l.send(l.newest-int64(e.rng.IntN(300))+int64(e.rng.IntN(4)), h) // many are stale
			if e.rng.IntN(50) == 0 {
				l.seq += int64(e.rng.IntN(400))
			}
		}
		wrong += f.wrong
		if l.over() {
			ended++
		}
	}
	e.notef("%d connections ended", ended)
	return figure{value: float64(wrong)}
}

// narrowPaths are links behind a victim whose peer lies about what came over them. Where the queue is short, lies about losses hide all that a controller could see.
var narrowPaths = []struct {
	bandwidth  int
	lag, queue time.Duration
}{
	{50_000, 40 * time.Millisecond, 100 * time.Millisecond},
	{50_000, 5 * time.Millisecond, 20 * time.Millisecond},
	{200_000, 40 * time.Millisecond, 20 * time.Millisecond},
	{20_000, 5 * time.Millisecond, 100 * time.Millisecond},
}

// acksLost has a narrow path behind the victim, and a peer that acks all that it could have got, and ahead packets more. It measures the packets that the
// victim offers beyond what the path carries, until it ends the connection or 35 s are over.
func acksLost(e *env, ahead int64) figure {
	most := 0.0
	for i := range narrowPaths {
		beyond, err := acksLostOn(e, i, ahead)
		if err != nil {
			return broken("%v", err)
		}
		most = max(most, beyond)
	}
	return figure{value: most}
}

func acksLostOn(e *env, path int, ahead int64) (beyond float64, err error) {
	n := narrowPaths[path]
	const size = 1000
	l, err := newLiar(nil, func(c *netconn.Config) { c.Controller, c.Secret = adaptive(), e.seed|1 })
	if err != nil {
		return 0, err
	}
	link, err := netsim.NewLink(netsim.Settings{Lag: n.lag, Bandwidth: float64(8 * n.bandwidth), QueueDelay: n.queue}, e.seed)
	if err != nil {
		return 0, err
	}
	var arrived int64
	l.hears = func(seq int64, _ *packetnotify.Header, _ *bitio.Reader) {
		p := make([]byte, size)
		binary.LittleEndian.PutUint64(p, uint64(seq))
		link.Push(l.now, p)
	}
	if err := l.openControl(); err != nil {
		return 0, err
	}
	g, err := newGreedy(l.victim, 10)
	if err != nil {
		return 0, err
	}
	for end := time.Duration(e.pick(10, 35)) * time.Second; l.now < end && !l.over(); {
		g.fill()
		l.pass(tick)
		for p, ok := link.Pop(l.now); ok; p, ok = link.Pop(l.now) {
			arrived = int64(binary.LittleEndian.Uint64(p))
		}
		if arrived > 0 {
			_ = l.send(min(arrived+ahead, l.newest), allYes()) // it may have ended
		}
		beyond = max(beyond, (float64(l.got)-l.now.Seconds()*float64(n.bandwidth))/size)
	}
	e.notef("%d B/s: %.0f packets beyond, %v after %v", n.bandwidth, beyond, l.victim.Result(), l.now)
	return beyond, nil
}

// neverReads talks and acks nothing, while the game sends all it can.
func neverReads(e *env) figure {
	l, g, rate, err := nakker(congestion.NewTokenBucket(100_000))
	if err != nil {
		return broken("%v", err)
	}
	step := func() {
		g.fill()
		_, _ = g.channels[0].SendBunch(&bunch.Out{Data: g.message[:]}) // refused when the window is full
		l.pass(tick)
		_ = l.mute() // it may have ended
	}
	before := l.got
	for range 600 {
		step()
	}
	if early := float64(l.got-before) / (10 * rate()); early > 1.15 {
		return broken("%.2f of the rate at first", early)
	}
	before = l.got
	for range 600 {
		step()
	}
	e.notef("%v", l.victim.Result())
	return figure{value: float64(l.got-before) / (10 * rate())}
}

// opensAndCloses opens and closes channels with a byte in each bunch, 10,000 a second.
func opensAndCloses(e *env) figure {
	l, err := newLiar(nil, nil)
	if err != nil {
		return broken("%v", err)
	}
	if err := l.openControl(); err != nil {
		return broken("%v", err)
	}
	for i := range 60 * e.pick(3, 60) {
		for k := 0; k < 167; k += 42 {
			var list []lie
			for j := range 42 {
				b := l.open(indexAt(i, 167, k+j), dataName, []byte{1})
				b.Close = true
				list = append(list, b)
			}
			if err := l.tell(list...); err != nil {
				return broken("%v; %v", err, l.victim.Result())
			}
		}
		l.pass(tick)
	}
	c := l.victim.Stats().Bunches
	if c.ChannelsOpened != c.ChannelsClosed+1 {
		return broken("%d channels opened, %d closed", c.ChannelsOpened, c.ChannelsClosed)
	}
	e.notef("%d channels", c.ChannelsOpened)
	return figure{value: float64(l.got) / float64(l.spent)}
}

// sink counts what is delivered.
type sink struct {
	channel.Nop
	bunches, largest int
}

// ReceivedBunch counts.
func (s *sink) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	s.bunches++
	s.largest = max(s.largest, in.Bits/8)
}

// boundCase is a liar's packet and what must come of it.
type boundCase struct {
	name  string
	lies  func(l *liar) []lie
	ends  bool // the connection
	takes int  // bunches delivered
	edit  func(c *netconn.Config)
}

// idsAtBounds sends what is one below, at and one above each bound.
func idsAtBounds(e *env) figure {
	one := []byte{1}
	var cases []boundCase
	add := func(name string, ends bool, takes int, lies func(l *liar) []lie) {
		cases = append(cases, boundCase{name: name, lies: lies, ends: ends, takes: takes})
	}
	for _, index := range []uint32{1, 32766, 32767, 32768, 65535, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		fine := index <= maxIndex
		add(fmt.Sprintf("channel %d", index), !fine, b2i(fine), func(l *liar) []lie { return []lie{l.open(index, dataName, one)} })
		if fine {
			add(fmt.Sprintf("channel %d of %d", index, index), true, 0, func(l *liar) []lie { return []lie{l.open(index, dataName, one)} })
			cases[len(cases)-1].edit = func(c *netconn.Config) { c.MaxChannels = int(index) }
		}
	}
	for _, buffer := range []int64{256, 512} {
		for _, ahead := range []int64{1, 255, 256, 257, 510, 511, 512, 513, 1021} {
			add(fmt.Sprintf("%d ahead of %d", ahead, buffer), ahead >= buffer, 0, func(l *liar) []lie { return []lie{l.at(1, dataName, l.chInit+1+ahead, one)} })
			cases[len(cases)-1].edit = func(c *netconn.Config) { c.Protocol = netconn.Bunchnet(); c.Protocol.ReliableBuffer = int(buffer) }
		}
	}
	for _, ahead := range []int64{1, 255, 256, 1022, 4094, 8190} { // with the default nothing can be said that is too far ahead
		add(fmt.Sprintf("%d ahead", ahead), false, 0, func(l *liar) []lie { return []lie{l.at(1, dataName, l.chInit+1+ahead, one)} })
	}
	for _, behind := range []int64{0, 1, 255, 511, 1023} {
		add(fmt.Sprintf("%d behind", behind), false, 0, func(l *liar) []lie { return []lie{l.at(1, dataName, l.chInit-behind, one)} })
	}
	for _, n := range []int{1, 63, 64, 65, 300} {
		name := bunch.Name{Text: strings.Repeat("n", n)}
		add(fmt.Sprintf("a name of %d", n), n > 64, 0, func(l *liar) []lie { return []lie{l.open(1, name, one)} })
	}
	for _, index := range []uint32{0, 101, 1<<32 - 1} {
		add(fmt.Sprintf("unknown name %d", index), false, 0, func(l *liar) []lie { return []lie{l.open(1, bunch.Name{Index: index}, one)} })
	}
	add("reason 14", false, 1, func(l *liar) []lie {
		b := l.open(1, dataName, one)
		b.Close, b.CloseReason = true, 14
		return []lie{b}
	})
	add("closes what isn't open", true, 0, func(l *liar) []lie {
		b := l.reliable(1, dataName, one)
		b.Close = true
		return []lie{b}
	})
	add("reliable before its open", true, 0, func(l *liar) []lie { return []lie{l.reliable(1, dataName, one)} })
	add("open for another type", true, 1, func(l *liar) []lie {
		return []lie{l.open(1, dataName, one), l.open(1, otherName, one)}
	})
	add("a second control channel", false, 0, func(l *liar) []lie { return []lie{l.open(1, bunch.Control, one)} })
	for _, size := range []int{bunch.MaxPayload, bunch.MaxPayload + 1} {
		add(fmt.Sprintf("parts of %d bytes together", size), size > bunch.MaxPayload, b2i(size <= bunch.MaxPayload), func(l *liar) (list []lie) {
			for left := size; left > 0; left -= 900 {
				b := l.reliable(1, dataName, make([]byte, min(left, 900)))
				b.Partial, b.PartialInitial, b.PartialFinal = true, left == size, left <= 900
				b.Open = b.PartialInitial
				list = append(list, b)
			}
			return list
		})
	}
	add("a part without a beginning", false, 1, func(l *liar) []lie {
		b := l.reliable(1, dataName, one)
		b.Partial, b.PartialFinal = true, true
		return []lie{l.open(1, dataName, one), b}
	})
	wrong := 0
	for _, c := range cases {
		if err := c.play(); err != nil {
			wrong++
			e.notef("%s: %v", c.name, err)
		}
	}
	wrong += badPackets(e)
	e.notef("%d cases", len(cases))
	return figure{value: float64(wrong)}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *boundCase) play() error {
	var got sink
	l, err := newLiar(func(ch *channel.Channel) channel.Handler {
		if ch.Name() == bunch.Control {
			return channel.Nop{}
		}
		return &got
	}, c.edit)
	if err != nil {
		return err
	}
	if err := l.openControl(); err != nil {
		return err
	}
	for _, b := range c.lies(l) { // one packet each
		_ = l.tell(b) // what comes of it is seen by the result
		l.pass(tick)
	}
	if l.over() != c.ends || c.ends && l.result.Code != netconn.PeerBroke {
		return fmt.Errorf("%v", l.victim.Result())
	}
	if got.bunches != c.takes {
		return fmt.Errorf("%d bunches were delivered, not %d", got.bunches, c.takes)
	}
	return nil
}

// badPackets sends packets that are none; each must be dropped. It counts those that end the connection.
func badPackets(e *env) (wrong int) {
	l, err := newLiar(nil, nil)
	if err != nil || l.openControl() != nil {
		return 1
	}
	packets := [][]byte{nil, {0}, {1}, {0x80}, bytes.Repeat([]byte{0xff}, 2000), bytes.Repeat([]byte{0}, 2000), make([]byte, 70_000)}
	for words := range 16 {
		l.begin(l.newest, allYes())
		p := append([]byte(nil), l.w.Bytes()...)
		packets = append(packets, append([]byte{p[0]&^15 | byte(words)}, append(p[1:5:5], 1)...)) // cut short: less history than it says
	}
	for _, p := range packets {
		received := l.victim.Stats().Packets.PacketsReceived
		if err := l.victim.ReceivedPacket(l.now, p); l.over() {
			e.notef("a packet of %d bytes, %x..., ended it: %v", len(p), p[:min(8, len(p))], l.result)
			return wrong + 1
		} else if err == nil && l.victim.Stats().Packets.PacketsReceived != received+1 {
			wrong++
		}
	}
	return wrong
}

// longNames has types with names of every length, nearly full payloads, and a peer that acks nothing, so that the
// ack history in the headers is as long as it gets.
func longNames(e *env) figure {
	refused := 0
	for n := 1; n <= 70; n++ {
		for _, size := range []int{1, 850, 890, 920, 940, 955, 960, 1000} {
			ok, err := longName(n, size)
			if err != nil {
				return broken("a name of %d with %d B: %v", n, size, err)
			}
			if !ok {
				refused++
			}
		}
	}
	e.notef("%d of %d refused", refused/8, 70)
	return figure{value: 0}
}

func longName(n, size int) (ok bool, err error) {
	name := bunch.Name{Text: strings.Repeat("n", n)}
	l, err := newLiar(nil, func(c *netconn.Config) {
		c.Channels = append(c.Channels, channel.Type{Name: name, ServerOpen: true})
	})
	if err != nil {
		return false, nil // refused where it is given
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := l.openControl(); err != nil {
		return false, err
	}
	for range 300 { // their acks are never acked
		if err := l.mute(lie{bunch.Header{ChIndex: 0, Name: bunch.Control, Bits: 8}, []byte{1}}); err != nil {
			return false, err
		}
		l.pass(time.Millisecond)
	}
	ch, err := l.victim.Open(name, channel.Nop{})
	if err != nil {
		return false, err
	}
	for range 5 {
		if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true}); err != nil {
			return false, err
		}
		l.pass(tick)
	}
	return true, nil
}

// settings tries what can't be.
func settings(e *env) figure {
	accepted := 0
	for name, edit := range map[string]func(c *netconn.Config){
		"KeepAlive below 0":       func(c *netconn.Config) { c.KeepAlive = -1 },
		"LingerTimeout below 0":   func(c *netconn.Config) { c.LingerTimeout = -1 },
		"AckDelay below 0":        func(c *netconn.Config) { c.AckDelay = -1 },
		"NetSpeed below 0":        func(c *netconn.Config) { c.NetSpeed = -1 },
		"PacketOverhead below 0":  func(c *netconn.Config) { c.PacketOverhead = -1 },
		"MaxBits below 0":         func(c *netconn.Config) { c.Redundancy.MaxBits = -1 },
		"Copies below 0":          func(c *netconn.Config) { c.Redundancy.Copies = -1 },
		"MaxChannels below 0":     func(c *netconn.Config) { c.MaxChannels = -1 },
		"OrderCache of 3":         func(c *netconn.Config) { c.OrderCache = 3 },
		"OrderCache of 1<<20":     func(c *netconn.Config) { c.OrderCache = 1 << 20 },
		"MaxPacket of 100":        func(c *netconn.Config) { c.Protocol = netconn.Bunchnet(); c.Protocol.Bunch.MaxPacket = 100 },
		"ReliableBuffer of 1024":  func(c *netconn.Config) { c.Protocol = netconn.Unreal51(); c.Protocol.ReliableBuffer = 1024 },
		"ReliableBuffer of 16384": func(c *netconn.Config) { c.Protocol = netconn.Bunchnet(); c.Protocol.ReliableBuffer = 16384 },
		"PacketWindow of 6145":    func(c *netconn.Config) { c.Protocol = netconn.Bunchnet(); c.Protocol.PacketWindow = 6145 },
		"a name of 100": func(c *netconn.Config) {
			c.Channels = append(c.Channels, channel.Type{Name: bunch.Name{Text: strings.Repeat("n", 100)}})
		},
		"control not at 0": func(c *netconn.Config) { c.Channels[0].Index = 7 },
		"two types at one index": func(c *netconn.Config) {
			c.Channels[1].Static, c.Channels[2].Static, c.Channels[1].Index, c.Channels[2].Index = true, true, 5, 5
		},
	} {
		if _, err := newLiar(nil, edit); err == nil {
			accepted++
			e.notef("%s is accepted", name)
		}
	}
	return figure{value: float64(accepted)}
}
