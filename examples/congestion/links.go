package main

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// link is a scene: a narrow place, and how many flows come to it.
type link struct {
	name   string
	title  string
	net    netsim.Settings
	length time.Duration
	flows  int
	second time.Duration                       // when the second flow starts
	rate   func(now time.Duration) (b float64) // bits a second, when it changes
}

var links = []link{
	{
		name: "dsl", title: "256 kbit/s with a buffer of 1 s", length: 60 * time.Second, flows: 1,
		net: netsim.Settings{Bandwidth: 256e3, QueueDelay: time.Second, Lag: 20 * time.Millisecond},
	},
	{
		name: "lossy", title: "20 Mbit/s with 2 % random loss", length: 60 * time.Second, flows: 1,
		net: netsim.Settings{Bandwidth: 20e6, QueueDelay: 200 * time.Millisecond, Lag: 25 * time.Millisecond, Loss: 2},
	},
	{
		name: "drop", title: "10 Mbit/s, 1 Mbit/s from 35 to 65 s", length: 95 * time.Second, flows: 1,
		net: netsim.Settings{Bandwidth: 10e6, QueueDelay: time.Second, Lag: 20 * time.Millisecond},
		rate: func(now time.Duration) float64 {
			if now >= 35*time.Second && now < 65*time.Second {
				return 1e6
			}
			return 10e6
		},
	},
	{
		name: "two", title: "two flows on 10 Mbit/s, the second from 10 s", length: 75 * time.Second, flows: 2,
		second: 10 * time.Second,
		net:    netsim.Settings{Bandwidth: 10e6, QueueDelay: 200 * time.Millisecond, Lag: 20 * time.Millisecond},
	},
}

func (l *link) capacity(now time.Duration) float64 {
	if l.rate != nil {
		return l.rate(now)
	}
	return l.net.Bandwidth
}

// kind is a controller.
type kind struct {
	name string
	make func() congestion.Controller
}

var kinds = []kind{
	{"good/bad", func() congestion.Controller { return congestion.NewGoodBad(packetSize) }},
	{"netspeed", func() congestion.Controller { return congestion.NewTokenBucket(100_000) }},
	{"adaptive", func() congestion.Controller {
		c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
		if err != nil {
			panic(err)
		}
		return c
	}},
}

const theDefault = "adaptive"
