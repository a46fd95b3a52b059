package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

func init() {
	register(attack{area: "core", name: "work for each byte", promise: "no packet costs an end much more work for each byte than one full of the smallest bunches, however much waits", bound: atMost(12, "x small bunches"),
		alone: true, run: workOfShapes})
}

// labor is a way of making an end work much for few bytes.
type labor struct {
	name    string
	get     func(*channel.Channel) channel.Handler
	edit    func(*netconn.Config) // may be nil
	packets int
	fill    func(l *liar, i int) []lie
}

// workOfShapes compares what the shapes cost the victim's thread with what small bunches do.
func workOfShapes(e *env) figure {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection isn't the packet's work
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ordinary, err := smallBunches.perByte(e)
	if err != nil {
		return broken("%v", err)
	}
	e.notef("small bunches: %.0f ns a byte", ordinary)
	most := 0.0
	for _, s := range []labor{earlyBackwards, newestFlood(1024), newestFlood(16384), farAhead(1024), farAhead(16384), openings, openingsAtAClose, halves, gapsOfPackets, lateSymbols} {
		ns, err := s.perByte(e)
		if err != nil {
			return broken("%s: %v", s.name, err)
		}
		e.notef("%s: %.0f ns a byte", s.name, ns)
		most = max(most, ns/ordinary)
	}
	return figure{value: most}
}

// perByte is the nanoseconds of the thread that each byte of the shape's packets costs, in the best of some runs.
func (s *labor) perByte(e *env) (best float64, err error) {
	best = math.Inf(1)
	for range e.pick(2, 5) {
		l, err := newLiar(s.get, s.edit)
		if err != nil {
			return 0, err
		}
		if err := l.openControl(); err != nil {
			return 0, err
		}
		l.pass(tick)
		var used time.Duration
		spent := l.spent
		for i := 0; i < s.packets && !l.over(); i++ {
			lies := s.fill(l, i)
			l.begin(l.newest, allYes())
			for k := range lies {
				l.proto.Write(&l.w, &lies[k].Header, lies[k].data)
			}
			from := cputime.Thread()
			_ = l.end() // what is refused costs as well
			if i%16 == 15 {
				l.pass(tick)
			}
			used += cputime.Thread() - from
		}
		runtime.GC()
		best = min(best, float64(used)/float64(l.spent-spent))
	}
	return best, nil
}

var smallBunches = labor{name: "small bunches", packets: 2000, fill: func(l *liar, i int) (list []lie) {
	if i == 0 {
		return []lie{l.open(1, dataName, []byte{1})}
	}
	for range 150 {
		list = append(list, lie{bunch.Header{ChIndex: 1, Name: dataName, Bits: 8}, []byte{1}})
	}
	return list
}}

// earlyBackwards sends as many reliable bunches as may wait, the last first, and then the one that they wait for.
var earlyBackwards = labor{name: "early bunches backwards", packets: 600, fill: func(l *liar, i int) (list []lie) {
	const each, most = 90, 8000
	if i == 0 {
		return []lie{l.open(1, dataName, []byte{1})}
	}
	base := l.chInit + 2 + int64((i-1)*each/most)*(most+1)
	at := int64((i - 1) * each % most)
	for k := range int64(each) {
		if at+k < most {
			list = append(list, l.at(1, dataName, base+most-at-k, []byte{1}))
		}
	}
	if at+each >= most {
		list = append(list, l.at(1, dataName, base, []byte{1}))
	}
	return list
}}

// queues has each channel but 0 lead to a queue of its own.
func queues(mode message.Mode, window int) func(*channel.Channel) channel.Handler {
	var reg message.Registry
	reg.Add("signal", func() message.Message { return signal{} })
	return func(ch *channel.Channel) channel.Handler {
		if ch.Index() == 0 {
			return channel.Nop{}
		}
		return message.Attach(message.New(message.Config{Mode: mode, Kinds: &reg, Window: window}))
	}
}

// newestFlood sends messages to a Sequenced queue whose game receives none.
func newestFlood(window int) labor {
	s := labor{name: "more messages than wait", packets: 600, get: queues(message.Sequenced, window)}
	id := uint32(0)
	s.fill = func(l *liar, i int) (list []lie) {
		if i == 0 {
			b := l.open(1, dataName, []byte{0, 0})
			b.Bits = 7 // no message
			return []lie{b}
		}
		for range 10 {
			w := bitio.NewWriter(make([]byte, 100))
			w.WriteInt(64, 65)
			w.WriteUint32(id)
			for range 64 {
				w.WriteUint8(0) // what each takes at least
			}
			id += 64
			list = append(list, lie{bunch.Header{ChIndex: 1, Name: dataName, Bits: w.Len()}, w.Bytes()})
		}
		return list
	}
	return s
}

// farAhead opens a channel, sends its Ordered queue the last message of its window, and closes it, again and again.
func farAhead(window int) labor {
	s := labor{name: "one message far ahead", packets: 200, get: queues(message.Ordered, window)}
	s.fill = func(l *liar, i int) (list []lie) {
		for k := range 25 {
			index := indexAt(i, 25, k)
			b := l.open(index, dataName, []byte{0, 0})
			b.Bits = 8 // no message
			w := bitio.NewWriter(make([]byte, 100))
			w.WriteBool(false)
			w.WriteInt(1, 65)
			w.WriteUint16(uint16(window - 1))
			w.WriteUint8(0)
			end := l.at(index, dataName, l.chInit+2, nil)
			end.Close = true
			list = append(list, b, lie{bunch.Header{ChIndex: index, Name: dataName, Bits: w.Len()}, w.Bytes()}, end)
		}
		return list
	}
	return s
}

// signal is the smallest message.
type signal struct{}

// Serialize is the message's.
func (signal) Serialize(*message.Stream) {}

var openings = labor{name: "opens and closes", packets: 600, fill: func(l *liar, i int) (list []lie) {
	for k := range 40 {
		b := l.open(indexAt(i, 40, k), dataName, []byte{1})
		b.Close = true
		list = append(list, b)
	}
	return list
}}

// unfinished never sends what it has left.
type unfinished struct{ channel.Nop }

// Finish is channel.Finisher's.
func (unfinished) Finish(*channel.Channel) (done bool) { return false }

// openingsAtAClose opens and closes channels at an end that closes, and has thousands of Finishers left.
var openingsAtAClose = labor{name: "opens and closes while it closes", packets: 300, edit: func(c *netconn.Config) {
	c.LingerTimeout, c.MaxChannels, c.MaxMemory = time.Hour, 32767, 64<<20
}, fill: func(l *liar, i int) (list []lie) {
	if i == 0 {
		for range 10_000 {
			_, _ = l.victim.Open(dataName, unfinished{})
		}
		l.victim.Close(l.now, "over")
		l.pass(tick)
	}
	for k := range 80 {
		list = append(list, lie{bunch.Header{ChIndex: uint32(2*((i*80+k)%300) + 1), Name: dataName, Open: true, Close: true}, nil}) // the victim's own are even
	}
	return list
}}

var halves = labor{name: "first parts on many channels", packets: 600, fill: func(l *liar, i int) (list []lie) {
	for k := range 90 {
		list = append(list, lie{bunch.Header{ChIndex: indexAt(i, 90, k), Name: dataName, Open: true, Partial: true, PartialInitial: true, Bits: 8}, []byte{1}})
	}
	return list
}}

var gapsOfPackets = labor{name: "packets with gaps between them", packets: 3000, fill: func(l *liar, i int) []lie {
	switch {
	case i == 0:
		return []lie{l.open(1, dataName, []byte{1})}
	case i%3 == 2:
		l.seq -= 4
	case i%200 == 0:
		l.seq += 100
	}
	return []lie{{bunch.Header{ChIndex: 1, Name: dataName, Bits: 8}, []byte{1}}}
}}

func withCoding(c *netconn.Config) { c.Coding = netconn.Coding{Repairs: 1} }

// symbolsOf makes the packets' trailers so many symbols of a size over all of the last packets.
func (l *liar) symbolsOf(n, size int, c coding.Cover) {
	l.trailer = coding.AppendEnd(make([]byte, n*size), n, c, size, 0)
}

// lateSymbols sends long symbols over packets that never come, and then one late packet again and again, with as many symbols as there may be, of a byte each.
var lateSymbols = labor{name: "repair symbols of a late packet", packets: 1000, edit: withCoding, fill: func(l *liar, i int) []lie {
	const all, long = 1<<coding.MaxWindow - 1, 8
	switch {
	case i == 0:
		l.symbolsOf(1, 1, 1) // symbols over what was before the first of them say nothing
		return []lie{l.open(1, dataName, []byte{1})}
	case i <= long:
		if i == 1 {
			l.seq += coding.MaxWindow + 1
		}
		l.symbolsOf(1, 960, all&^(1<<i-1)) // not over the late one
	default:
		if i == long+1 {
			l.pass(time.Second) // nothing waits for what is missing any more
		}
		l.seq = liarFirst + 2 + coding.MaxWindow
		l.symbolsOf(coding.MaxSymbols, 1, all)
	}
	return nil
}}
