package main

import (
	"bytes"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "core", name: "false repairs", promise: "random, replayed and contradicting repair symbols end the liar's connection at most, as its own broken packets would", bound: none("wrong ends"), run: falseRepairs},
		attack{area: "core", name: "says that all was repaired", promise: "a peer that says that every packet was lost and repaired gets no more than the rate", bound: atMost(1.15, "x the rate"), run: claimsRepairs},
	)
}

// lying has end 0 of a rig falsify its packets with f, which gets the packet without its trailer, and the trailer.
func lying(e *env, net netsim.Settings, edit func(i int, c *netconn.Config), f func(plain []byte, t coding.Trailer) []byte) (*rig, error) {
	return newRig(e, net, func(i int, c *netconn.Config) {
		c.Coding = netconn.Coding{Repairs: 2}
		edit(i, c)
		if send := c.LowLevelSend; i == 0 {
			c.LowLevelSend = func(p []byte) {
				plain, t := p, coding.Trailer{}
				if coding.Marked(p) {
					ok := false
					if plain, t, ok = coding.Split(p); !ok {
						send(p) // a hello
						return
					}
				}
				send(f(bytes.Clone(plain), t))
			}
		}
	})
}

// falseRepairs is a client whose symbols are mostly false, on paths that lose packets and that don't.
func falseRepairs(e *env) figure {
	wrong, ended := 0, 0
	for range e.pick(20, 200) {
		var old []byte
		r, err := lying(e, netsim.Settings{Lag: 20 * time.Millisecond, Loss: float64(5 * e.rng.IntN(3))}, func(int, *netconn.Config) {}, func(plain []byte, t coding.Trailer) []byte {
			if t.Covers == 0 {
				t = coding.Trailer{Covers: 1, Size: 1 + e.rng.IntN(200)}
				t.Symbols = make([]byte, t.Size)
			}
			n := len(t.Symbols) / t.Size
			symbols := bytes.Clone(t.Symbols)
			switch e.rng.IntN(4) {
			case 0:
				for i := range symbols {
					symbols[i] = uint8(e.rng.Uint32())
				}
			case 1:
				copy(symbols, old)
			case 2:
				t.Covers = coding.Cover(1 + e.rng.IntN(1<<coding.MaxWindow-1))
			}
			old = symbols
			return coding.AppendEnd(append(plain, symbols...), n, t.Covers, t.Size, e.rng.Uint32()>>8)
		})
		if err != nil {
			return broken("%v", err)
		}
		if err := r.hello(); err != nil {
			return broken("%v", err)
		}
		ch, err := r.conns[0].Open(dataName, channel.Nop{})
		if err != nil {
			return broken("%v", err)
		}
		for range 600 {
			r.step(func() {
				_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 8+e.rng.IntN(200)), Reliable: e.rng.IntN(2) == 0}) // until its buffer is full
			})
			if s := r.conns[1].Stats(); s.Held > 8<<20 {
				return broken("%d bytes are held", s.Held)
			}
			if r.over() {
				break
			}
		}
		if res := r.results[1]; res != nil {
			ended++
			if res.Code != netconn.PeerBroke && res.Code != netconn.ClosedByPeer {
				wrong++
				e.notef("%v", res)
			}
		}
	}
	e.notef("%d connections ended", ended)
	return figure{value: float64(wrong)}
}

// claimsRepairs tells a server that sends all it may that all its packets were repaired.
func claimsRepairs(e *env) figure {
	const rate, seconds = 100_000, 20
	r, err := lying(e, netsim.Settings{Lag: 20 * time.Millisecond, Loss: 5}, func(i int, c *netconn.Config) {
		c.Controller = congestion.NewTokenBucket(rate)
		c.Coding.Repairs, c.Coding.Adaptive = coding.MaxSymbols, true
	}, func(plain []byte, _ coding.Trailer) []byte {
		return coding.AppendEnd(plain, 0, 0, 0, 1<<coding.MaxRepaired-1)
	})
	if err != nil {
		return broken("%v", err)
	}
	if err := r.hello(); err != nil {
		return broken("%v", err)
	}
	ch, err := r.conns[1].Open(dataName, channel.Nop{})
	if err != nil {
		return broken("%v", err)
	}
	for range 60 * seconds {
		r.step(func() {
			for ch.Room() > 10 && r.conns[1].IsNetReady() {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 100), Reliable: true, NoMerge: true}); err != nil {
					return
				}
			}
		})
		if r.over() {
			return broken("%v %v", r.results[0], r.results[1])
		}
	}
	if r.conns[1].Counters.Repairs == 0 {
		return broken("no symbol was sent")
	}
	return figure{value: float64(r.offered[1]) / (rate * seconds)}
}
