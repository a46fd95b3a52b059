package main

import (
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

func init() {
	register(
		attack{area: "replication", name: "endless openings", promise: "openings whose last bunch never comes cost a client at most half its MaxMemory", bound: atMost(0.5, "of MaxMemory"), run: endlessOpenings},
		attack{area: "replication", name: "large actor", promise: "an actor larger than a bunch is seen whole or not at all, and holds nobody up", bound: none("Steps in which it is half or others wait"), run: largeActor},
	)
}

// endlessOpenings opens many actors with bunches that say each that more follow.
func endlessOpenings(e *env) figure {
	s, err := newStones(e, nil)
	if err != nil {
		return broken("%v", err)
	}
	s.steps(10)
	var list []*channel.Channel
	most, sent := 0, 0
	data := make([]byte, 8<<10)
	data[0] = 1
	for !s.conns[0].Closed() && sent < 64<<20 {
		if len(list) < 100 {
			ch, err := s.conns[1].Open(bunch.Actor, channel.Nop{})
			if err != nil {
				return broken("%v", err)
			}
			list = append(list, ch)
		}
		ch := list[e.rng.IntN(len(list))]
		if _, err := ch.SendBunch(&bunch.Out{Data: data, Bits: len(data) * 8, Reliable: true, NoMerge: true}); err == nil {
			sent += len(data)
		}
		s.steps(1)
		most = max(most, s.conns[0].Table().Held())
	}
	if !s.conns[0].Closed() {
		return broken("the client took %d bytes of openings that never end", sent)
	}
	const maxMemory = 64 << 20 // the default of clients
	return figure{value: float64(most) / maxMemory}
}

// freight is an actor of half a megabyte.
type freight struct {
	actorrep.Base
	Holds [60]string `net:"cap=8000"`
}

// largeActor lets such an actor appear, change and go while a fifth of the Steps loses packets.
func largeActor(e *env) figure {
	s, err := newStones(e, nil)
	if err != nil {
		return broken("%v", err)
	}
	clock := &pebble{}
	if err := s.server.Spawn(clock); err != nil {
		return broken("%v", err)
	}
	s.steps(30)
	bad, seen := 0, 0
	for i := range 10 {
		a := &freight{}
		for h := range a.Holds {
			a.Holds[h] = strings.Repeat("x", 8000)
		}
		if err := s.server.Spawn(a); err != nil {
			return broken("%v", err)
		}
		waits := 0
		for range 60 + 30*i {
			clock.N++
			if e.rng.IntN(5) == 0 {
				s.lose[1] = 1 + e.rng.IntN(3)
			}
			s.steps(1)
			m, _ := s.client.Find(clock.GUID()).(*pebble)
			if waits++; m != nil && clock.N-m.N < 30 {
				waits = 0
			}
			if waits > 30 {
				bad++
			}
			if l, ok := s.client.Find(a.GUID()).(*freight); ok {
				seen++
				for h := range l.Holds {
					if l.Holds[h] == "" {
						bad++
						break
					}
				}
			}
		}
		if err := s.server.Destroy(a); err != nil {
			return broken("%v", err)
		}
	}
	if seen == 0 {
		return broken("it was never seen")
	}
	return figure{value: float64(bad)}
}
