package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/packetnotify"
)

func init() {
	register(
		attack{area: "core", name: "refused opens", promise: "packets that AllowOpen refuses don't count as lost large ones", bound: none("ended"), run: refusedOpens},
		attack{area: "core", name: "half a temporary channel", promise: "a temporary channel of which a part is lost leaves room for another type", bound: none("ended"), run: halfTemporary},
		attack{area: "core", name: "close behind a full buffer", promise: "a close behind a full reliable buffer is seen, whatever its size", bound: none("missed"), run: closeBehindFull},
		attack{area: "core", name: "abort in a callback", promise: "after the connection has ended no handler is called but Closed, once", bound: none("wrong calls"), run: abortInCallback},
		attack{area: "core", name: "reordered close", promise: "a close that arrives early ends both ends soon, with nothing unacked", bound: atMost(0.5, "s"), run: reorderedClose},
		attack{area: "core", name: "acks in a begun packet", promise: "an ack waits at most AckDelay, here 100 ms, and a tick", bound: atMost(117, "ms"), run: lateAcks},
		attack{area: "core", name: "reopen after a gap", promise: "a channel that is opened where another left unacked bunches has room, or its opener is told", bound: none("ended"), run: reopenGap},
		attack{area: "core", name: "jitter alone", promise: "without loss nearly all unreliable bunches arrive with the default settings, whatever the jitter", bound: atLeast(0.95, "arrive"), run: jitterAlone},
		attack{area: "core", name: "any settings, any network", promise: "reliable bunches arrive in order, with every setting that New takes", bound: none("runs failed"), run: anySettings},
	)
}

// refusedOpens opens channels with large messages at a server that refuses them for 30 s.
func refusedOpens(e *env) figure {
	allowed := false
	var got numbers
	r, err := newRig(e, netsim.Settings{Lag: 20 * time.Millisecond}, func(i int, c *netconn.Config) {
		c.Controller = adaptive()
		c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &got }
		if i == 1 {
			c.AllowOpen = func(in *bunch.In) error {
				if in.Name == dataName && !allowed {
					return errors.New("not yet")
				}
				return nil
			}
		}
	})
	if err != nil {
		return broken("%v", err)
	}
	ctl, err := r.conns[0].Open(bunch.Control, channel.Nop{})
	if err != nil {
		return broken("%v", err)
	}
	ch, err := r.conns[0].Open(dataName, channel.Nop{})
	if err != nil {
		return broken("%v", err)
	}
	sent := uint64(0)
	for r.now < 30*time.Second && !r.over() {
		r.step(func() {
			_, err = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
			if err == nil && sent < 8 {
				if err = sendNumber(ch, sent, 900); err == nil {
					sent++
				}
			}
		})
		if err != nil && !r.over() {
			return broken("%v", err)
		}
	}
	if r.over() {
		e.notef("after %v: %v %v", r.now, r.results[0], r.results[1])
		return figure{value: 1}
	}
	allowed = true
	for range 300 {
		r.step(nil)
	}
	if got.next != sent {
		return broken("%d of %d arrived once they were allowed", got.next, sent)
	}
	return figure{}
}

// halfTemporary opens temporary channels of two parts at random types where a fifth of all packets is lost.
func halfTemporary(e *env) figure {
	ended := 0
	for range e.pick(10, 200) {
		r, err := newRig(e, netsim.Settings{Lag: 20 * time.Millisecond, Loss: 20}, func(_ int, c *netconn.Config) {
			c.Channels = append(c.Channels, channel.Type{Name: otherName, ServerOpen: true})
		})
		if err != nil {
			return broken("%v", err)
		}
		for i := 0; i < 600 && !r.over(); i++ {
			r.step(func() {
				if i == 0 {
					_ = r.hello() // the first bunch of all
				}
				name := []bunch.Name{dataName, otherName}[e.rng.IntN(2)]
				if ch, err := r.conns[1].Open(name, channel.Nop{}); err == nil && i > 30 {
					_, _ = ch.SendTemporary(&bunch.Out{Data: make([]byte, 1+e.rng.IntN(2500))}) // it may not fit the window
				}
			})
		}
		if r.over() {
			if ended++; ended == 1 {
				e.notef("%v %v", r.results[0], r.results[1])
			}
		}
	}
	return figure{value: float64(ended)}
}

// closes counts how often a handler was told of the end.
type closes struct {
	channel.Nop
	n int
}

// Closed counts.
func (c *closes) Closed(*channel.Channel, channel.CloseReason) { c.n++ }

// closeBehindFull fills a channel to the brim and closes it, and loses the first packets: the close comes early.
func closeBehindFull(e *env) figure {
	missed := 0
	for _, buffer := range []int{2, 16, 128, 256, 512} {
		for _, lost := range []int{0, 1, 2, 5, 10, 15} {
			var theirs closes
			r, err := newRig(e, netsim.Settings{Lag: 20 * time.Millisecond}, func(_ int, c *netconn.Config) {
				c.Protocol = netconn.Bunchnet()
				c.Protocol.ReliableBuffer = buffer
				c.NetSpeed = 10_000_000
				c.Channels[0].Static = false // no control channel: its open would be lost, too
				c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &theirs }
			})
			if err != nil {
				return broken("%v", err)
			}
			ch, err := r.conns[0].Open(dataName, channel.Nop{})
			if err != nil {
				return broken("%v", err)
			}
			r.lose[0] = lost
			for i := range 600 {
				r.step(func() {
					if i > 0 {
						return
					}
					for n := uint64(0); ch.Room() > 0; n++ {
						if err := sendNumber(ch, n, 20); err != nil {
							break
						}
					}
					if err := ch.Close(bunch.Destroyed); err != nil {
						e.notef("buffer %d: %v", buffer, err)
					}
				})
			}
			if theirs.n != 1 || r.over() {
				missed++
				e.notef("buffer %d, %d packets lost: closed %d times; %v %v", buffer, lost, theirs.n, r.results[0], r.results[1])
			}
		}
	}
	return figure{value: float64(missed)}
}

// quitter is a handler that ends the connection in one of its callbacks, and counts the calls after that.
type quitter struct {
	l         **liar
	when      string
	quit      bool
	abort     bool
	late      int
	closedNow map[*channel.Channel]int
	lateCalls []string
}

func (q *quitter) call(what string) {
	if q.quit {
		q.late++
		q.lateCalls = append(q.lateCalls, what)
		return
	}
	if what == q.when {
		q.quit = true
		if q.abort {
			(*q.l).victim.Abort((*q.l).now, "enough")
		} else {
			(*q.l).victim.LinkClosed((*q.l).now, "enough")
		}
	}
}

func (q *quitter) accept(*channel.Channel) channel.Handler {
	q.call("Accept")
	return q
}
func (q *quitter) ReceivedBunch(*channel.Channel, *bunch.In) { q.call("ReceivedBunch") }
func (q *quitter) ReceivedAck(*channel.Channel, int64)       { q.call("ReceivedAck") }
func (q *quitter) ReceivedNak(*channel.Channel, int64)       { q.call("ReceivedNak") }
func (q *quitter) Closed(ch *channel.Channel, _ channel.CloseReason) {
	q.closedNow[ch]++
	if q.when == "Closed" && !q.quit {
		q.call("Closed")
	}
}

// abortInCallback ends the connection in each kind of callback, in packets that go on with acks, opens and data.
func abortInCallback(e *env) figure {
	wrong := 0
	for _, when := range []string{"Accept", "ReceivedBunch", "ReceivedAck", "ReceivedNak", "Closed"} {
		for way := range 4 {
			abort, control := way&1 == 0, way&2 == 0
			var l *liar
			q := &quitter{l: &l, when: when, abort: abort, closedNow: map[*channel.Channel]int{}}
			l, err := newLiar(q.accept, func(c *netconn.Config) { c.Channels[0].Static = control })
			if err != nil {
				return broken("%v", err)
			}
			q.quit = true // calm until it begins
			_ = l.openControl()
			var mine []*channel.Channel
			for range 3 {
				ch, err := l.victim.Open(dataName, q)
				if err != nil {
					return broken("%v", err)
				}
				if err := sendNumber(ch, 0, 900); err != nil {
					return broken("%v", err)
				}
				mine = append(mine, ch)
			}
			l.pass(tick)
			q.quit, q.late, q.lateCalls = false, 0, nil
			h := allYes()
			if when == "ReceivedNak" {
				h = allNo()
			}
			closing := l.open(7, dataName, []byte{1})
			closing.Close = true
			_ = l.send(l.newest, h, closing, l.open(9, dataName, []byte{1}), l.reliable(9, dataName, []byte{2}), l.open(11, otherName, []byte{3})) // it ends in it
			l.pass(tick)
			_ = l.tell(l.reliable(9, dataName, []byte{2}))
			l.pass(3 * time.Second)
			name := fmt.Sprintf("abort %v in %s, control channel %v", abort, when, control)
			switch {
			case !q.quit:
				return broken("%s: never called", name)
			case !l.over():
				return broken("%s: running", name)
			}
			wrong += q.late
			if q.late > 0 {
				e.notef("%s: then %v", name, q.lateCalls)
			}
			for _, ch := range mine {
				if q.closedNow[ch] != 1 {
					wrong++
					e.notef("%s: Closed %d times for %v", name, q.closedNow[ch], ch)
				}
			}
			for ch, n := range q.closedNow {
				if n != 1 {
					wrong++
					e.notef("%s: Closed %d times for %v", name, n, ch)
				}
			}
		}
	}
	return figure{value: float64(wrong)}
}

// reorderedClose closes while the network reorders, and the ends hold packets back: the longest time until both are done.
func reorderedClose(e *env) figure {
	worst, unacked := time.Duration(0), 0
	for range e.pick(50, 1000) {
		r, err := newRig(e, netsim.Settings{LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(_ int, c *netconn.Config) {
			c.ReorderWindow = 60 * time.Millisecond
		})
		if err != nil {
			return broken("%v", err)
		}
		ctl, err := r.conns[0].Open(bunch.Control, channel.Nop{})
		if err != nil {
			return broken("%v", err)
		}
		closing, closer := 60+e.rng.IntN(60), e.rng.IntN(2)
		for i := 0; i < 600 && (r.results[0] == nil || r.results[1] == nil); i++ {
			r.step(func() {
				if i < closing-30 { // what is under way when the close comes may count as unacked
					_, _ = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true}) // at most what the buffer holds
				}
				if i == closing {
					r.conns[closer].Close(r.now, "done")
				}
			})
		}
		if r.results[0] == nil || r.results[1] == nil {
			return broken("still running after 8 s")
		}
		worst = max(worst, r.now-time.Duration(closing+1)*r.tick)
		unacked += r.results[closer].Unacked // what the other end wrote meanwhile it may list
	}
	e.notef("%d unacked", unacked)
	if unacked > 0 {
		return broken("%d bunches unacked, and up to %v", unacked, worst)
	}
	return figure{value: worst.Seconds()}
}

// lateAcks is the longest time from a packet to its ack when the end has begun a packet of its own before many come.
func lateAcks(e *env) figure {
	worst := time.Duration(0)
	for _, packets := range []int{1, 20, 40, 100, 200} {
		var l *liar
		var ch *channel.Channel
		first := true
		l, err := newLiar(func(*channel.Channel) channel.Handler {
			return onBunch(func() {
				if ch != nil && first {
					first = false
					_, _ = ch.SendBunch(&bunch.Out{Data: []byte{1}}) // begins a packet
				}
			})
		}, func(c *netconn.Config) { c.AckDelay, c.KeepAlive = 100*time.Millisecond, time.Second })
		if err != nil {
			return broken("%v", err)
		}
		sent, heard := map[int64]time.Duration{}, int64(liarFirst-1)
		l.hears = func(_ int64, h *packetnotify.Header, _ *bitio.Reader) {
			for acked := seqnum.Packet.Expand(h.AckedSeq, heard); heard < acked; {
				if heard++; sent[heard] > 0 {
					worst = max(worst, l.now-sent[heard])
				}
			}
		}
		_ = l.openControl()
		if ch, err = l.victim.Open(dataName, channel.Nop{}); err == nil {
			err = sendNumber(ch, 0, 20)
		}
		if err != nil {
			return broken("%v", err)
		}
		for range 60 {
			l.pass(tick)
			_ = l.mute()
		}
		for range 10 {
			first = true
			for range packets {
				sent[l.seq] = l.now
				_ = l.mute(lie{bunch.Header{ChIndex: 0, Bits: 8}, []byte{1}})
			}
			for range 30 {
				l.pass(tick)
			}
		}
		if l.over() {
			return broken("%v", l.result)
		}
		e.notef("%d packets: %v", packets, worst)
	}
	return figure{value: float64(worst) / float64(time.Millisecond)}
}

// bunchHandler is a handler that calls a function for each bunch.
type bunchHandler struct {
	channel.Nop
	f func()
}

func onBunch(f func()) channel.Handler { return bunchHandler{f: f} }

// ReceivedBunch calls it.
func (h bunchHandler) ReceivedBunch(*channel.Channel, *bunch.In) { h.f() }

// reopenGap has a peer close a channel that is full of our bunches, and opens another at its index.
func reopenGap(e *env) figure {
	ended := 0
	for _, protocol := range []netconn.Protocol{netconn.Bunchnet(), netconn.Unreal51(), netconn.Unreal53(true)} {
		for _, full := range []int{1, 100, 200, 253, 254, 255} {
			protocol.FirstFree = true
			var server *channel.Channel
			r, err := newRig(e, netsim.Settings{Lag: 30 * time.Millisecond}, func(i int, c *netconn.Config) {
				c.Protocol, c.NetSpeed = protocol, 10_000_000
				if i == 1 {
					c.Channels[1].Accept = func(ch *channel.Channel) channel.Handler { server = ch; return channel.Nop{} }
				}
			})
			if err != nil {
				return broken("%v", err)
			}
			if err = r.hello(); err != nil {
				return broken("%v", err)
			}
			for range 10 {
				r.step(nil)
			}
			ch, err := r.conns[0].Open(dataName, channel.Nop{})
			if err == nil {
				err = sendNumber(ch, 0, 20)
			}
			if err != nil {
				return broken("%v", err)
			}
			for range 10 {
				r.step(nil)
			}
			r.step(func() {
				for range full {
					_ = sendNumber(server, 0, 20) // told when there is no room
				}
				r.dark[1] = true
				_ = ch.Close(bunch.Destroyed)
			})
			for range 10 {
				r.step(nil)
			}
			r.dark[1] = false
			for range 5 {
				r.step(func() {
					if next, err := r.conns[1].Open(dataName, channel.Nop{}); err == nil {
						if err := sendNumber(next, 1, 20); err != nil {
							e.notef("%s, %d in flight: %v", protocol.Name, full, err)
						}
					}
				})
			}
			for range 60 {
				r.step(nil)
			}
			if r.over() {
				ended++
				e.notef("%s, %d in flight: %v %v", protocol.Name, full, r.results[0], r.results[1])
			}
		}
	}
	return figure{value: float64(ended)}
}

// jitterAlone is the share of unreliable bunches that arrive with the default settings over paths that lose nothing.
func jitterAlone(e *env) figure {
	worst := 1.0
	for _, jitter := range []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond} {
		got := 0
		r, err := newRig(e, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 20*time.Millisecond + jitter}, func(_ int, c *netconn.Config) {
			c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return onBunch(func() { got++ }) }
		})
		if err != nil {
			return broken("%v", err)
		}
		if err = r.hello(); err != nil {
			return broken("%v", err)
		}
		ch, err := r.conns[0].Open(dataName, channel.Nop{})
		if err == nil {
			err = sendNumber(ch, 0, 20)
		}
		if err != nil {
			return broken("%v", err)
		}
		for range 120 {
			r.step(nil)
		}
		for range 300 { // time to measure the reordering
			r.step(func() { _, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 100)}) })
		}
		for range 60 {
			r.step(nil)
		}
		sent, before := 0, got
		for range 60 * e.pick(10, 120) {
			r.step(func() {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 100)}); err == nil {
					sent++
				}
			})
		}
		for range 60 {
			r.step(nil)
		}
		share := float64(got-before) / float64(sent)
		e.notef("jitter %v: %.3f", jitter, share)
		worst = min(worst, share)
	}
	return figure{value: worst}
}

// anySettings plays numbered messages both ways with settings and networks drawn at random.
func anySettings(e *env) figure {
	failed := 0
	for i := range e.pick(40, 3000) {
		if text, err := anySetting(e.rng.Uint64()); err != nil {
			failed++
			e.notef("run %d: %v; %s", i, err, text)
		}
	}
	return figure{value: float64(failed)}
}

// stuck is how long nothing comes that waits before a run has failed. There is no limit to the whole: where the network makes all but a
// hundredth of the packets useless, as one whose delays vary by 200 packets does for ends that hold none back, what waits takes minutes.
const stuck = time.Minute

// anySetting is one run, which its seed determines.
func anySetting(seed uint64) (text string, err error) {
	e := &env{rng: rand.New(rand.NewPCG(seed, 1))}
	ms := func(list ...int) time.Duration { return time.Duration(list[e.rng.IntN(len(list))]) * time.Millisecond }
	low := ms(0, 5, 40, 150)
	net := netsim.Settings{Loss: float64(e.rng.IntN(4) * 8), LagMin: low, LagMax: low + 1 + ms(0, 10, 60, 200), Dup: float64(e.rng.IntN(3) * 5), Order: float64(e.rng.IntN(3) * 10)}
	protocol := []netconn.Protocol{netconn.Bunchnet(), netconn.Unreal51(), netconn.Unreal53(true)}[e.rng.IntN(3)]
	protocol.FirstFree = false
	protocol.ReliableBuffer = []int{16, 256, 512}[e.rng.IntN(3)]
	set := anyTuning(e)
	copies := netconn.Redundancy{Copies: e.rng.IntN(4), Adaptive: e.rng.IntN(2) == 0}
	var ends [2]talker
	r, err := newRig(e, net, func(i int, c *netconn.Config) {
		c.Protocol, c.Redundancy = protocol, copies
		set.give(c)
		if e.rng.IntN(2) == 0 {
			c.Controller = adaptive()
		}
		c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &ends[i] }
	})
	if err != nil {
		return "", err
	}
	r.tick = ms(1, 16, 33, 100)
	text = fmt.Sprintf("seed %#x: %s of %d, %+v, %+v, %+v, tick %v", seed, protocol.Name, protocol.ReliableBuffer, net, set, copies, r.tick)
	if err = r.join(); err != nil {
		return text, err
	}
	for i := range ends {
		if ends[i].ch, err = r.conns[i].Open(dataName, &ends[i]); err != nil {
			return text, err
		}
		ends[i].talking = true
	}
	talk := func() {
		for i := range ends {
			ends[i].talk()
		}
	}
	for end := r.now + 5*time.Second; r.now < end; {
		r.step(talk)
	}
	done := func() bool { return ends[0].next == ends[1].sent && ends[1].next == ends[0].sent }
	came, end := uint64(0), r.now+stuck
	for r.now < end && !done() && !r.over() {
		r.step(nil)
		if n := ends[0].next + ends[1].next; n > came {
			came, end = n, r.now+stuck
		}
	}
	switch {
	case r.over():
		return text, fmt.Errorf("%v %v", r.results[0], r.results[1])
	case !done() || ends[0].wrong+ends[1].wrong > 0:
		return text, fmt.Errorf("%d of %d and %d of %d came, %d wrong", ends[1].next, ends[0].sent, ends[0].next, ends[1].sent, ends[0].wrong+ends[1].wrong)
	}
	return text, nil
}
