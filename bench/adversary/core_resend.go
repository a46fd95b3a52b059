package main

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/packetnotify"
)

func init() {
	const promise = "a peer that naks everything costs at most the controller's rate"
	register(
		attack{area: "core", name: "naks everything, bucket", promise: promise, bound: atMost(1.15, "x the rate"),
			run: func(e *env) figure { return naksEverything(e, congestion.NewTokenBucket(100_000)) }},
		attack{area: "core", name: "naks everything, adaptive", promise: promise, bound: atMost(1.15, "x the rate"),
			run: func(e *env) figure { return naksEverything(e, adaptive()) }},
		attack{area: "core", name: "naks everything for ever", promise: "that peer is noticed, and the connection ends with a reason of its own", bound: atMost(120, "s"),
			run: naksForEver},
		attack{area: "core", name: "takes channel 0 only", promise: "a peer that naks all but channel 0 gets little more than the controller's first rate", bound: atMost(1.5, "x the rate"),
			run: takesControlOnly},
		attack{area: "core", name: "narrow link, bytes", promise: "180 kB over 50 kB/s with a queue of 100 ms offer little more than their size", bound: atMost(1.3, "x payload"),
			run: func(e *env) figure { offered, _ := narrowLink(e); return offered }},
		attack{area: "core", name: "narrow link, time", promise: "and take little longer than the link needs", bound: atMost(1.15, "x ideal"),
			run: func(e *env) figure { _, took := narrowLink(e); return took }},
	)
}

// greedy is a game at the victim's end that fills channels of its own to the brim with messages of 900 B.
type greedy struct {
	channels []*channel.Channel
	message  [900]byte
	sent     int
}

func newGreedy(c *netconn.Conn, channels int) (*greedy, error) {
	g := &greedy{}
	for range channels {
		ch, err := c.Open(dataName, channel.Nop{})
		if err != nil {
			return nil, err
		}
		g.channels = append(g.channels, ch)
	}
	return g, nil
}

func (g *greedy) fill() {
	for _, ch := range g.channels {
		for ch.Room() > 0 {
			if _, err := ch.SendBunch(&bunch.Out{Data: g.message[:], Reliable: true, NoMerge: true}); err != nil {
				break
			}
			g.sent++
		}
	}
}

// nakker is a victim with ten full channels and a liar that has been honest for two seconds.
func nakker(controller congestion.Controller) (l *liar, g *greedy, rate func() float64, err error) {
	if l, err = newLiar(nil, func(c *netconn.Config) { c.Controller = controller }); err != nil {
		return nil, nil, nil, err
	}
	if err = l.openControl(); err != nil {
		return nil, nil, nil, err
	}
	if g, err = newGreedy(l.victim, 10); err != nil {
		return nil, nil, nil, err
	}
	for range 120 {
		g.fill()
		l.pass(tick)
		if err = l.tell(); err != nil {
			return nil, nil, nil, err
		}
	}
	return l, g, controller.Rate, nil
}

// naksEverything is the bytes that the victim spends in some seconds, for one that its controller allows. Its peer naks
// all that comes, five times a tick.
func naksEverything(e *env, controller congestion.Controller) figure {
	l, g, rate, err := nakker(controller)
	if err != nil {
		return broken("%v", err)
	}
	before, spent, allowed := l.gotFull, l.spent, 3000.0 // a tick's credit, and a packet of debt
	ticks := 60 * e.pick(1, 10)
	for range ticks {
		allowed += rate() * tick.Seconds() // what the naks of this tick bring is the next one's
		g.fill()
		l.pass(tick)
		for range 5 {
			_ = l.send(l.newest, allNo()) // it may have ended
		}
	}
	used := l.gotFull - before
	e.notef("%d bytes in %v for %d of the peer's, %.0f allowed, the rate is %.0f B/s; %v", used, time.Duration(ticks)*tick, l.spent-spent, allowed, rate(), l.victim.Result())
	return figure{value: float64(used) / allowed}
}

// naksForEver is how long it takes the victim to end a connection whose peer naks everything.
func naksForEver(e *env) figure {
	l, g, _, err := nakker(congestion.NewTokenBucket(100_000))
	if err != nil {
		return broken("%v", err)
	}
	for began := l.now; l.now-began < 150*time.Second; {
		g.fill()
		l.pass(tick)
		_ = l.send(l.newest, allNo())
		if l.over() {
			e.notef("%v", l.victim.Result())
			if l.result.Code == netconn.TimedOut {
				return broken("it says %v", l.result)
			}
			return figure{value: (l.now - began).Seconds()}
		}
	}
	return figure{value: 150}
}

// takesControlOnly is the bytes that the victim spends in 20 s, for one of its controller's first rate, the worst of several peers. They take the packets with bunches of
// channel 0 alone, where the game says something each few ticks, and nak all others, in reports each few ticks: as if those were refused because something of channel 0 is missing.
func takesControlOnly(e *env) figure {
	const length = 20 * time.Second
	worst := 0.0
	for every := 1; every <= 3; every++ {
		for batch := 1; batch <= 4; batch++ {
			controller := adaptive()
			first := controller.Rate()
			l, err := newLiar(nil, func(c *netconn.Config) { c.Controller = controller })
			if err != nil {
				return broken("%v", err)
			}
			var fates history.History
			told := l.newest
			var b bunch.Header
			var data bitio.Reader
			l.hears = func(seq int64, _ *packetnotify.Header, r *bitio.Reader) {
				takes := r.Remaining() > 0
				for r.Remaining() > 0 && l.proto.Read(r, &b, &data) == nil {
					takes = takes && b.ChIndex == 0
				}
				for ; told+1 < seq; told++ {
					fates.Add(false)
				}
				fates.Add(takes)
				told = seq
			}
			if err := l.openControl(); err != nil {
				return broken("%v", err)
			}
			g, err := newGreedy(l.victim, 10)
			if err != nil {
				return broken("%v", err)
			}
			before := l.got
			for i := 0; l.now < length && !l.over(); i++ {
				if i%every == 0 {
					l.victim.FlushNet()
					_, _ = l.victim.Channel(0).SendBunch(&bunch.Out{Data: g.message[:10], Reliable: true, NoMerge: true}) // its buffer may be full
					l.victim.FlushNet()
				}
				g.fill()
				l.pass(tick)
				if i%batch == 0 {
					_ = l.send(told, fates) // it may have ended
				}
			}
			used := float64(l.got-before) / (first * length.Seconds())
			e.notef("a word each %d ticks, reports each %d: %.2f, the rate is %.0f B/s; %v", every, batch, used, controller.Rate(), l.victim.Result())
			worst = max(worst, used)
		}
	}
	return figure{value: worst}
}

// narrowLink sends 180 kB in messages of 900 B over a link of 50 kB/s whose queue holds 100 ms: the bytes offered for one
// of payload, and the time for what the link needs at least.
func narrowLink(e *env) (offered, took figure) {
	const size, messages, bandwidth = 900, 200, 50_000
	const lag = 20 * time.Millisecond
	var got numbers
	r, err := newRig(e, netsim.Settings{Lag: lag, Bandwidth: bandwidth * 8, QueueDelay: 100 * time.Millisecond}, func(_ int, c *netconn.Config) {
		c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &got }
		c.Controller = adaptive()
	})
	if err != nil {
		return broken("%v", err), broken("%v", err)
	}
	if err = r.hello(); err != nil {
		return broken("%v", err), broken("%v", err)
	}
	for range 60 {
		r.step(nil)
	}
	ch, err := r.conns[0].Open(dataName, channel.Nop{})
	if err != nil {
		return broken("%v", err), broken("%v", err)
	}
	sent, base, began := 0, r.offered[0], r.now
	for got.next < messages {
		r.step(func() {
			for ; sent < messages && ch.Room() > 0; sent++ {
				if _, err := ch.SendBunch(&bunch.Out{Data: numbered(uint64(sent), size), Reliable: true, NoMerge: true}); err != nil {
					break
				}
			}
		})
		if r.over() || r.now > time.Minute {
			f := broken("%d of %d messages after %v: %v %v", got.next, messages, r.now-began, r.results[0], r.results[1])
			return f, f
		}
	}
	ideal := time.Duration(float64(size*messages)/bandwidth*float64(time.Second)) + lag + tick
	for end := r.now + 2*time.Second; r.now < end; { // what is sent once more though it has arrived counts, too
		r.step(nil)
	}
	e.notef("%d bytes offered for %d, %v for %v; queue lost %d packets", r.offered[0]-base, size*messages, r.now-2*time.Second-began, ideal, r.links[0].Counters.QueueFull)
	return figure{value: float64(r.offered[0]-base) / (size * messages)}, figure{value: float64(r.now-2*time.Second-began) / float64(ideal)}
}
