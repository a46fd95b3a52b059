package main

import (
	"maps"
	"reflect"
	"runtime"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
)

// memoryBudget is the MaxMemory of a victim. The heap that its peer makes it hold must stay within that.
const memoryBudget = 1 << 20

func init() {
	for _, s := range shapes {
		register(attack{area: "core", name: "memory: " + s.name, promise: "what a peer can make an end hold stays within MaxMemory, measured as heap", bound: atMost(1, "of MaxMemory"), alone: true,
			run: func(e *env) figure { return s.measure(e) }})
	}
	register(
		attack{area: "core", name: "memory: directed search", promise: "and no mixture of these that a search finds holds more", bound: atMost(1, "of MaxMemory"), alone: true, run: searchShapes},
		attack{area: "core", name: "memory: idle", promise: "an idle connection with one open channel and the default controller stays small", bound: atMost(8, "kB"), alone: true, run: idleMemory},
	)
}

// shape is a way of making an end hold much for few bytes.
type shape struct {
	name string
	// fill adds the next few bunches to a packet: the i-th packet of the attack.
	fill func(l *liar, i int) []lie
	// echo has the victim answer each bunch with 900 B, as a game does.
	echo bool
	// mute acks nothing of the victim's.
	mute bool
}

const maxIndex = 32766 // the highest channel by default

// indexAt spreads packets over all channels but 0: k of n bunches in packet i.
func indexAt(i, n, k int) uint32 { return uint32((i*n+k)%maxIndex + 1) }

var shapes = []shape{
	{name: "one early bunch on each channel", fill: func(l *liar, i int) (list []lie) {
		for k := range 40 {
			list = append(list, l.at(indexAt(i, 40, k), dataName, l.chInit+256, []byte{1}))
		}
		return list
	}},
	{name: "large early bunches", fill: func(l *liar, i int) []lie {
		return []lie{l.at(uint32(i/255%maxIndex+1), dataName, l.chInit+2+int64(i%255), make([]byte, 900))}
	}},
	{name: "half of a reliable partial on each channel", fill: func(l *liar, i int) (list []lie) {
		for k := range 8 {
			b := l.open(indexAt(i, 8, k), dataName, make([]byte, 100))
			b.Partial, b.PartialInitial = true, true
			list = append(list, b)
		}
		return list
	}},
	{name: "64 kB partials without an end", fill: func(l *liar, i int) []lie {
		const parts = 70
		b := l.reliable(uint32(i/parts%maxIndex+1), dataName, make([]byte, 900))
		b.Partial, b.PartialInitial, b.Open = true, i%parts == 0, i%parts == 0
		return []lie{b}
	}},
	{name: "abandoned unreliable partials", fill: func(l *liar, i int) (list []lie) {
		for k := range 8 {
			list = append(list, lie{bunch.Header{ChIndex: indexAt(i, 8, k), Name: dataName, Open: true, Partial: true, PartialInitial: true, Bits: 800}, make([]byte, 100)})
		}
		return list
	}},
	{name: "opens every channel", fill: func(l *liar, i int) (list []lie) {
		for k := range 40 {
			list = append(list, l.open(indexAt(i, 40, k), dataName, []byte{1}))
		}
		return list
	}},
	{name: "opens and closes", fill: func(l *liar, i int) (list []lie) {
		for k := range 40 {
			b := l.open(indexAt(i, 40, k), dataName, []byte{1})
			b.Close = true
			list = append(list, b)
		}
		return list
	}},
	{name: "never acks the answers", echo: true, mute: true, fill: func(l *liar, i int) (list []lie) {
		for k := range 40 {
			if ch := indexAt(i, 40, k); l.chSeq[ch] == 0 {
				list = append(list, l.open(ch, dataName, []byte{1}))
			} else {
				list = append(list, l.reliable(ch, dataName, []byte{1}))
			}
		}
		return list
	}},
	{name: "never acks the control channel's answers", echo: true, mute: true, fill: func(l *liar, i int) (list []lie) {
		for range 40 {
			list = append(list, l.reliable(0, bunch.Control, []byte{1}))
		}
		return list
	}},
	{name: "packets with gaps between them", fill: func(l *liar, i int) []lie {
		if i%3 == 2 {
			l.seq -= 4 // late, which makes the end hold back what comes early
		} else {
			l.seq += 2
		}
		return []lie{{bunch.Header{ChIndex: 1, Name: dataName, Bits: 7200}, make([]byte, 900)}}
	}},
}

// echo is a game that answers each bunch with 900 B.
type echo struct{ channel.Nop }

// ReceivedBunch answers.
func (echo) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	var answer [900]byte
	_, _ = ch.SendBunch(&bunch.Out{Data: answer[:], Reliable: true, NoMerge: true}) // the game gives up when it is full
}

// heap is the bytes that are in use.
func heap() int {
	runtime.GC()
	runtime.GC() // what the first one left to finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// setMaxMemory sets Config.MaxMemory, once there is one.
func setMaxMemory(c *netconn.Config, n int) {
	if f := reflect.ValueOf(c).Elem().FieldByName("MaxMemory"); f.IsValid() {
		f.SetInt(int64(n))
	}
}

// victimOf is a victim with a budget whose control channel is open. controller may be nil.
func victimOf(echoes bool, controller congestion.Controller) (*liar, error) {
	l, err := newLiar(func(*channel.Channel) channel.Handler {
		if echoes {
			return echo{}
		}
		return channel.Nop{}
	}, func(c *netconn.Config) { setMaxMemory(c, memoryBudget); c.Controller = controller })
	if err != nil {
		return nil, err
	}
	for range 30 {
		if err := l.openControlOnce(); err != nil {
			return nil, err
		}
		l.pass(tick)
	}
	return l, nil
}

// openControlOnce opens channel 0 unless it is open, and acks what came.
func (l *liar) openControlOnce() error {
	if l.chSeq[0] == 0 {
		return l.openControl()
	}
	return l.tell()
}

// measure is the most heap that the shape makes its victim hold.
func (s *shape) measure(e *env) figure {
	l, err := victimOf(s.echo, nil)
	if err != nil {
		return broken("%v", err)
	}
	most := grow(l, e.pick(1<<20, 32<<20), s.mute, func(i int) []lie { return s.fill(l, i) })
	e.notef("%d kB for %d kB sent; %v, %d channels", most>>10, l.spent>>10, l.victim.Result(), l.victim.Stats().Channels)
	return figure{value: float64(most) / memoryBudget}
}

// grow sends packets until so many bytes are spent or the connection has ended, and measures the heap that it holds in
// between. What an idle one has doesn't count.
func grow(l *liar, spend int, mute bool, fill func(i int) []lie) (most int) {
	own := make(map[uint32]int64, maxIndex) // what the liar itself remembers isn't its victim's
	maps.Copy(own, l.chSeq)
	l.chSeq = own
	base := heap()
	next := l.spent
	for i := 0; l.spent < spend && !l.over(); i++ {
		lies := fill(i)
		if mute {
			_ = l.mute(lies...) // it may have ended
		} else {
			_ = l.tell(lies...)
		}
		clear(lies)
		if i%8 == 7 {
			l.pass(tick)
		}
		if l.spent >= next {
			next += spend / 20
			if most = max(most, heap()-base); most > 64*memoryBudget {
				break // it won't get better
			}
		}
	}
	most = max(most, heap()-base)
	runtime.KeepAlive(l)
	return most
}

// searchShapes mixes the shapes, and keeps changing the mixture that holds most.
func searchShapes(e *env) figure {
	var best []int
	most := -1
	for round := range e.pick(4, 40) {
		mix := make([]int, len(shapes))
		for i := range mix {
			if best == nil {
				mix[i] = e.rng.IntN(8)
			} else {
				mix[i] = max(0, best[i]+e.rng.IntN(5)-2)
			}
		}
		mix[round%len(mix)]++
		l, err := victimOf(e.rng.IntN(2) == 0, nil)
		if err != nil {
			return broken("%v", err)
		}
		var order []int
		for i, n := range mix {
			for range n {
				order = append(order, i)
			}
		}
		e.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		used := grow(l, e.pick(1<<19, 8<<20), e.rng.IntN(2) == 0, func(i int) []lie { return shapes[order[i%len(order)]].fill(l, i) })
		if used > most {
			best, most = mix, used
			e.notef("%d kB by %v; %v", used>>10, mix, l.victim.Result())
		}
	}
	return figure{value: float64(most) / memoryBudget}
}

// idleMemory is the heap of an idle connection with a control channel, of a thousand.
func idleMemory(e *env) figure {
	const n = 1000
	base := heap()
	var all [n]*liar
	for i := range all {
		l, err := victimOf(false, adaptive())
		if err != nil {
			return broken("%v", err)
		}
		if l.over() {
			return broken("it ended: %v", l.result)
		}
		all[i] = l
	}
	withLiars := heap()
	size := int(reflect.TypeOf(liar{}).Size()) + mapBytes
	used := float64((withLiars-base)/n-size) / 1024
	runtime.KeepAlive(&all)
	e.notef("besides %d bytes of the liar's own", size)
	return figure{value: used}
}

// mapBytes is what a liar's map of sequences takes, more or less.
const mapBytes = 400
