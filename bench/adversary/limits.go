package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// limit is a situation in which the module does less than one may wish: netconn/PROMISES.md lists them under "What isn't promised". It has no bound. A
// server sends to a client in each, in virtual time.
type limit struct {
	topic, situation, figure string
	play                     play
	measure                  func(s *stage) float64
}

// of is the share of a rate that came.
func of(rate, seconds float64) func(s *stage) float64 {
	return func(s *stage) float64 { return float64(s.got) / rate / seconds }
}

// offeredOf is how many times as many bytes were offered as pass.
func offeredOf(rate, seconds float64) func(s *stage) float64 {
	return func(s *stage) float64 { return float64(s.offered[1]) / rate / seconds }
}

// bulk keeps some reliable payloads of a size waiting on each channel.
func bulk(size, waiting int) func(s *stage) error {
	data := make([]byte, size)
	return func(s *stage) error {
		for _, ch := range s.channels {
			for ch.NumOutRec() < waiting {
				if _, err := ch.SendBunch(&bunch.Out{Data: data, Reliable: true, NoMerge: true}); errors.Is(err, channel.ErrReliableFull) {
					break
				} else if err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// wants sends unreliable payloads of a size in each tick, as many as make the rate, if IsNetReady allows them.
func wants(rate float64, size int) func(s *stage) error {
	data, began, sent := make([]byte, size), time.Duration(0), 0
	return func(s *stage) error {
		if began == 0 {
			began = s.now
		}
		for ; float64(sent) < rate*(s.now-began).Seconds(); sent += size {
			if !s.conns[1].IsNetReady() {
				continue
			}
			if _, err := s.channels[0].SendBunch(&bunch.Out{Data: data, NoMerge: true}); err != nil {
				return err
			}
		}
		return nil
	}
}

// printLimits plays each on a few networks and prints the mean.
func printLimits(o options) error {
	const networks = 3
	all := limits(nil)
	topic, situation := 0, 0
	for _, l := range all {
		topic, situation = max(topic, utf8.RuneCountInString(l.topic)), max(situation, utf8.RuneCountInString(l.situation))
	}
	for i := range all {
		l, sum := &all[i], 0.0
		for n := range networks {
			v, err := playLimit(i, o.seed+uint64(n))
			if err != nil {
				return err
			}
			sum += v / networks
		}
		fmt.Printf("%-*s  %-*s  %5s %s\n", topic, l.topic, situation, l.situation, number(math.Round(sum*1000)/1000), l.figure)
	}
	return nil
}

// playLimit plays one of them once.
func playLimit(i int, seed uint64) (float64, error) {
	l := limits(rand.New(rand.NewPCG(seed, 1)))[i] // made for this, as games keep count
	s, err := l.play.run(newEnv("limits", l.topic+l.situation, options{seed: seed}))
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", l.topic, l.situation, err)
	}
	return l.measure(s), nil
}

// limits lists them. Uneven ticks are drawn from rng.
func limits(rng *rand.Rand) (all []limit) {
	const (
		ms  = time.Millisecond
		sec = time.Second
		kB  = 1000
	)
	add := func(topic, situation, figure string, p play, measure func(s *stage) float64) {
		all = append(all, limit{topic, situation, figure, p, measure})
	}
	ready := func(s *stage) float64 { return float64(s.ready) / float64(s.turns) }
	between := func(least, most int) func() int { return func() int { return least + rng.IntN(most-least+1) } }
	fixed := func(n int) func() int { return between(n, n) }

	level := play{net: netsim.Settings{Lag: 50 * ms}, narrow: mbit / 8, queue: 500 * ms, settle: sec, length: 30 * sec, game: bulk(20*kB, 100)}
	add("order", "reliable payloads of 20 kB wait, 1 Mbit/s", "of the ticks are ready", level, ready)
	level.messages = 100 * ms
	add("order", "the same, with messages", "of 300 messages come", level, func(s *stage) float64 { return float64(s.messages) })
	level.messages = 0
	level.narrow, level.edit = 0, func(_ int, c *netconn.Config) { c.Controller, c.NetSpeed = nil, mbit/8 }
	add("order", "the same with NetSpeed", "of the ticks are ready", level, ready)

	small := func(bytes int) func(i int, c *netconn.Config) {
		return func(i int, c *netconn.Config) {
			if i == 0 {
				c.MaxMemory = bytes
			} else {
				c.PeerMemory = bytes
			}
		}
	}
	for _, v := range []struct {
		memory, channels, size int
		rtt                    time.Duration
		loss                   float64
	}{{256 << 10, 10, 9 * kB, 100 * ms, 0}, {256 << 10, 100, 1200, 100 * ms, 0}, {1 << 20, 100, 1200, 400 * ms, 2}, {1 << 20, 100, 9 * kB, 400 * ms, 2}} {
		add("memory", fmt.Sprintf("%d channels of payloads of %d bytes to a peer with %d KiB, 400 kB/s, %v, %v %% loss", v.channels, v.size, v.memory>>10, v.rtt, v.loss), "of the rate",
			play{net: netsim.Settings{Lag: v.rtt / 2, Loss: v.loss}, narrow: 400 * kB, queue: 500 * ms, edit: small(v.memory), channels: v.channels, settle: 10 * sec, length: 30 * sec, game: bulk(v.size, 40)}, of(400*kB, 30))
	}
	for _, v := range []struct {
		size int
		rtt  time.Duration
		loss float64
	}{{900, 3600 * ms, 30}, {20 * kB, 2 * sec, 80}} {
		p := play{net: netsim.Settings{Lag: v.rtt / 2, Loss: v.loss}, narrow: 100 * kB, queue: sec, edit: func(i int, c *netconn.Config) {
			small(1<<20)(i, c)
			c.Timeout = 10 * time.Minute
		}, settle: time.Minute, length: 10 * time.Minute, game: bulk(v.size, 200)}
		add("memory", fmt.Sprintf("a channel of payloads of %d bytes to a peer with 1 MiB, 100 kB/s, %v, %v %% loss", v.size, v.rtt, v.loss), "of the rate", p, of(100*kB, 600))
	}

	for _, n := range []int{0, 10, 200} {
		loads := false
		add("rate", fmt.Sprintf("a game of 6 kB/s beside %d channels that AllowOpen refuses", n), "of the ticks are ready",
			play{net: netsim.Settings{Lag: 25 * ms}, settle: 5 * sec, length: 30 * sec, game: wants(6*kB, 100), edit: func(i int, c *netconn.Config) {
				if i == 0 {
					c.AllowOpen = func(*bunch.In) error {
						if loads {
							return errors.New("the level loads")
						}
						return nil
					}
				}
			}, then: func(s *stage) error {
				loads = true
				for range n {
					if err := s.open(); err != nil {
						return err
					}
					ch := s.channels[len(s.channels)-1]
					for range 10 {
						if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true}); err != nil {
							return err
						}
					}
				}
				return nil
			}}, ready)
	}
	for _, slow := range []float64{20 * kB, 40 * kB, 80 * kB} {
		for _, more := range []time.Duration{60 * ms, 100 * ms, 200 * ms} {
			add("rate", fmt.Sprintf("bulk, and %v kB/s and 20 ms become 300 kB/s and %v after 10 s", slow/kB, 20*ms+more), "s until 0.75 of it",
				play{net: netsim.Settings{Lag: 10 * ms}, narrow: slow, queue: 300 * ms, settle: 10 * sec, length: time.Minute, game: bulk(900, 200),
					then: func(s *stage) error {
						n := netsim.Settings{Lag: 10*ms + more/2, Bandwidth: 8 * 300 * kB, QueueDelay: 300 * ms}
						return errors.Join(s.links[0].Set(n), s.links[1].Set(n))
					}}, func(s *stage) float64 {
					for i, n := range s.each {
						if n > 225*kB {
							return float64(i + 1)
						}
					}
					return float64(len(s.each))
				})
		}
	}
	for _, hz := range []int{20, 30} {
		for _, more := range []float64{1.3, 2} {
			add("rate", fmt.Sprintf("a game of %d Hz wants %v times 100 kB/s, a queue of a tick and a half", hz, more), "times what passes is offered",
				play{net: netsim.Settings{Lag: 20 * ms}, narrow: 100 * kB, queue: sec * 3 / 2 / time.Duration(hz), ticks: [2]func() int{nil, fixed(60 / hz)},
					settle: 20 * sec, length: time.Minute, game: wants(more*100*kB, 500)}, offeredOf(100*kB, 60))
		}
	}
	for _, more := range []float64{1.01, 1.06} {
		add("rate", fmt.Sprintf("a game wants %v times 30 kB/s, a queue of 1.3 s", more), "s of queue",
			play{net: netsim.Settings{Lag: 20 * ms}, narrow: 30 * kB, queue: 1300 * ms, settle: 30 * sec, length: time.Minute, game: wants(more*30*kB, 300)},
			func(s *stage) float64 { return s.queued.Seconds() / 60 / 60 })
	}
	for _, least := range []int{0, 500} {
		p := play{net: netsim.Settings{Lag: 20 * ms}, narrow: kB, queue: 4 * sec, settle: 30 * sec, length: time.Minute, game: bulk(300, 20), edit: func(_ int, c *netconn.Config) {
			c.Controller = adaptiveFrom(least)
		}}
		add("rate", fmt.Sprintf("bulk on 1 kB/s, MinRate %d", cmp.Or(least, 4000)), "times what passes is offered", p, offeredOf(kB, 60))
	}

	for _, queue := range []time.Duration{20 * ms, 40 * ms} {
		add("coding", fmt.Sprintf("a game takes three quarters of 50 kB/s, a queue of %v", queue), "times what passes is offered",
			play{net: netsim.Settings{Lag: 20 * ms}, narrow: 50 * kB, queue: queue, settle: 10 * sec, length: time.Minute, game: wants(0.75*50*kB, 300), edit: func(_ int, c *netconn.Config) {
				c.Coding = netconn.Coding{Repairs: 3}
			}}, offeredOf(50*kB, 60))
	}

	tenMbit := play{narrow: 10 * mbit / 8, queue: 500 * ms, settle: 20 * sec, length: 30 * sec, game: bulk(900, 250), channels: 4}
	for _, rtt := range []time.Duration{40 * ms, 400 * ms} {
		p := tenMbit
		p.net.Lag = rtt / 2
		p.ticks = [2]func() int{between(1, 8), between(1, 8)}
		add("ticks", fmt.Sprintf("bulk between ends with ticks of 17 to 133 ms, 10 Mbit/s, %v", rtt), "of the rate", p, of(10*mbit/8, 30))
	}
	for _, n := range []int{6, 9, 12, 30, 120} {
		for _, jitter := range []time.Duration{10 * ms, 50 * ms} {
			p := tenMbit
			p.net = netsim.Settings{Lag: 60 * ms, LagVariance: jitter}
			p.ticks[0] = fixed(n)
			add("ticks", fmt.Sprintf("bulk to ticks of %v, 10 Mbit/s, ±%v", (time.Duration(n)*tick).Round(ms), jitter), "of the rate", p, of(10*mbit/8, 30))
		}
	}
	for _, jitter := range []time.Duration{10 * ms, 50 * ms} {
		p := tenMbit
		p.net = netsim.Settings{Lag: 60 * ms, LagVariance: jitter}
		p.ticks[0] = between(6, 18)
		add("ticks", fmt.Sprintf("bulk to ticks of 100 to 300 ms, 10 Mbit/s, ±%v", jitter), "of the rate", p, of(10*mbit/8, 30))
	}
	for _, n := range [][2]int{{16, 15}, {36, 24}, {60, 18}, {18, 60}} {
		p := play{net: netsim.Settings{Lag: 20 * ms}, narrow: 10 * mbit / 8, queue: 500 * ms, settle: time.Minute, length: 4 * time.Minute, game: wants(100*kB, 900), ticks: [2]func() int{fixed(n[0]), fixed(n[1])}}
		add("ticks", fmt.Sprintf("100 kB/s to ticks of %v by ticks of %v", (time.Duration(n[0])*tick).Round(ms), (time.Duration(n[1])*tick).Round(ms)), "of it come", p, of(100*kB, 240))
	}
	for _, jitter := range []time.Duration{20 * ms, 50 * ms} {
		p := play{net: netsim.Settings{Lag: 60 * ms, LagVariance: jitter}, settle: 10 * sec, length: 5 * time.Minute, game: wants(6*kB, 100), ticks: [2]func() int{fixed(12), nil}}
		add("ticks", fmt.Sprintf("a packet each 17 ms to ticks of 200 ms, ±%v", jitter), "of the packets count as lost", p,
			func(s *stage) float64 {
				c := s.conns[1].Counters
				return float64(c.PacketsLost-s.lost) / float64(c.PacketsSent-s.all)
			})
	}
	return all
}
