package main

import (
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// kind is what a network does to datagrams, each way.
type kind struct {
	name    string
	set     netsim.Settings
	outages bool // now and then nothing passes for a second
}

const ms = time.Millisecond

var kinds = []kind{
	{name: "clean"},
	{name: "loss", set: netsim.Settings{Loss: 10}},
	{name: "bursts", set: netsim.Settings{BurstLoss: 1, BurstLength: 8}},
	{name: "repeats", set: netsim.Settings{Dup: 20}},
	{name: "reordering", set: netsim.Settings{Order: 20}},
	{name: "damage", set: netsim.Settings{Corrupt: 5}},
	{name: "delay", set: netsim.Settings{LagMin: 60 * ms, LagMax: 140 * ms, Jitter: 30 * ms}},
	{name: "narrow", set: netsim.Settings{Bandwidth: 512_000, QueueDelay: 300 * ms, Lag: 20 * ms}},
	{name: "small MTU", set: netsim.Settings{MTU: 1100}},
	{name: "outages", outages: true},
	{name: "everything", outages: true, set: netsim.Settings{Loss: 5, BurstLoss: 0.3, BurstLength: 5, Dup: 5, Order: 5, Corrupt: 1,
		LagMin: 20 * ms, LagMax: 120 * ms, Bandwidth: 2_000_000, QueueDelay: 300 * ms, MTU: 1100}},
}

// path is a network to a server, a proxy.
type path struct {
	*kind
	server *server
	proxy  *proxy.Proxy
	rng    *rand.Rand
	dark   time.Time // nothing passes until then
	totals           // of its clients
	clients, vanished,
	moved int
	probes  uint64        // of the packet size, by all connections that are over
	slowest time.Duration // from a client's last word to all being heard
}

func newPath(k *kind, s *server, seed uint64) (*path, error) {
	p, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: s.driver.LocalAddr().String(), Up: k.set, Down: k.set, Seed: seed, IdleTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	return &path{kind: k, server: s, proxy: p, rng: rand.New(rand.NewPCG(seed, 7))}, nil
}

// step carries what is due.
func (p *path) step(now time.Time, rate int) error {
	if p.outages && p.rng.IntN(10*rate) == 0 {
		p.dark = now.Add(time.Duration(p.rng.Int64N(int64(time.Second))))
	}
	if now.Before(p.dark) {
		return nil
	}
	return p.proxy.Step(now)
}
