package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "core", name: "wraps, played", promise: "sequences that begin close to their wrap are played past it under loss", bound: none("runs failed"), run: wrapsPlayed},
		attack{area: "core", name: "wraps, idled", promise: "and days without a word leave both ends able to talk", bound: none("runs failed"), run: wrapsIdled},
		attack{area: "core", name: "wraps, links", promise: "over each link, too, its own sequences and clocks included", bound: none("runs failed"), run: wrapsOverLinks},
		attack{area: "core", name: "clock", promise: "a clock that goes back, stands and jumps costs at most the connection's time", bound: none("runs failed"), run: clockTricks},
	)
}

// pairTalk is a rig whose ends talk over a channel that the client opens, and start at given sequences.
func pairTalk(e *env, net netsim.Settings, first [2]uint16, edit func(i int, c *netconn.Config)) (*rig, *[2]talker, error) {
	var ends [2]talker
	r, err := newRigAt(e, net, first, func(i int, c *netconn.Config) {
		c.Channels[1].Accept = func(ch *channel.Channel) channel.Handler {
			ends[1].ch = ch
			return &ends[1]
		}
		if edit != nil {
			edit(i, c)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if err = r.hello(); err != nil {
		return nil, nil, err
	}
	for range 60 {
		r.step(nil)
	}
	ends[0].ch, err = openData(r.conns[0], &ends[0])
	return r, &ends, err
}

// converse has both ends talk for a while, then waits until all has arrived.
func converse(r *rig, ends *[2]talker, d time.Duration) error {
	ends[0].talking, ends[1].talking = true, true
	for end := r.now + d; r.now < end && !r.over(); {
		r.step(func() {
			ends[0].talk()
			ends[1].talk()
		})
	}
	ends[0].talking, ends[1].talking = false, false
	done := func() bool { return ends[0].next == ends[1].sent && ends[1].next == ends[0].sent }
	for end := r.now + 60*time.Second; r.now < end && !r.over() && !done(); {
		r.step(nil)
	}
	switch {
	case r.over():
		return fmt.Errorf("%v %v", r.results[0], r.results[1])
	case !done(), ends[0].wrong+ends[1].wrong > 0:
		return fmt.Errorf("%d of %d and %d of %d came, %d wrong", ends[1].next, ends[0].sent, ends[0].next, ends[1].sent, ends[0].wrong+ends[1].wrong)
	}
	return nil
}

// wrapsPlayed begins at each of the last sequences of the packets, and so of the channels, and at their half.
func wrapsPlayed(e *env) figure {
	failed := 0
	for _, protocol := range []netconn.Protocol{netconn.Bunchnet(), netconn.Unreal53(true)} {
		protocol.FirstFree = false
		for _, from := range []int{0, 1023, 1024, 8190, 8191, 8192, 16380, 16383} {
			for _, other := range []int{0, 8191, 16383} {
				r, ends, err := pairTalk(e, netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond}, [2]uint16{uint16(from), uint16(other)},
					func(_ int, c *netconn.Config) { c.Protocol = protocol })
				if err == nil {
					err = converse(r, ends, time.Duration(e.pick(3, 400))*time.Second) // 400 s at 60 Hz are more than all packet sequences
				}
				if err != nil {
					failed++
					e.notef("%s from %d and %d: %v", protocol.Name, from, other, err)
				}
			}
		}
	}
	return figure{value: float64(failed)}
}

// wrapsIdled says nothing for days but keep-alives: microseconds of 32 bits wrap after 72 minutes, milliseconds after 50
// days, sequences of 14 bits after an hour.
func wrapsIdled(e *env) figure {
	failed := 0
	for _, idle := range []time.Duration{71 * time.Minute, 72 * time.Minute, 25 * 24 * time.Hour, 50 * 24 * time.Hour} {
		keepAlive := 5 * time.Second
		if e.quick {
			keepAlive = 20 * time.Second
		}
		r, ends, err := pairTalk(e, netsim.Settings{Loss: 5, Lag: 30 * time.Millisecond}, [2]uint16{16000, 12}, func(_ int, c *netconn.Config) { c.KeepAlive, c.Timeout = keepAlive, -1 })
		if err == nil {
			err = converse(r, ends, time.Second)
		}
		if err == nil {
			r.tick = keepAlive / 2
			for end := r.now + idle; r.now < end && !r.over(); {
				r.step(nil)
			}
			r.tick = tick
			err = converse(r, ends, 10*time.Second)
		}
		if err != nil {
			failed++
			e.notef("after %v: %v", idle, err)
		}
	}
	return figure{value: float64(failed)}
}

// wrapsOverLinks idles over each link, long enough for its keep-alives to wrap what they number in 16 bits.
func wrapsOverLinks(e *env) figure {
	failed := 0
	for name := range links {
		b := &blackout{link: name, length: time.Duration(e.pick(10, 200)) * time.Minute, keepAlive: 200 * time.Millisecond, tick: 100 * time.Millisecond, protocol: netconn.Bunchnet()}
		if _, _, err := b.play(e); err != nil {
			failed++
			e.notef("%v: %v", b, err)
		}
	}
	return figure{value: float64(failed)}
}

// clockTricks gives connections times that go back, stand, and jump by less than Timeout.
func clockTricks(e *env) figure {
	failed := 0
	for range e.pick(20, 500) {
		r, ends, err := pairTalk(e, netsim.Settings{Loss: 5, Lag: 30 * time.Millisecond}, [2]uint16{uint16(e.rng.Uint32N(1 << 14)), uint16(e.rng.Uint32N(1 << 14))}, nil)
		if err != nil {
			return broken("%v", err)
		}
		for range 100 {
			jump := []time.Duration{-time.Hour, -time.Second, 0, 0, time.Second, 5 * time.Second}[e.rng.IntN(6)]
			for _, c := range r.conns { // what is told once, of one end or both
				if e.rng.IntN(2) == 0 {
					c.Tick(r.now + jump)
					_ = c.ReceivedPacket(min(r.now, r.now+jump), []byte{1}) // no packet
					c.PostTickDispatch(r.now - time.Minute)
				}
			}
			ends[0].talking, ends[1].talking = true, true
			r.step(func() {
				ends[0].talk()
				ends[1].talk()
			})
			r.now += max(0, jump)
		}
		if err := converse(r, ends, time.Second); err != nil {
			failed++
			e.notef("%v", err)
		}
	}
	return figure{value: float64(failed)}
}
