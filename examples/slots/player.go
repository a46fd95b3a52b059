package main

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/salted"
)

// player is a game on somebody's computer.
type player struct {
	w        *world
	name     string
	addr     netip.AddrPort
	client   *salted.Client
	up, down *netsim.Link
}

func (w *world) player(name string) *player {
	p := &player{w: w, name: name, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(len(w.players) + 1)}), 5000)}
	for _, link := range []**netsim.Link{&p.up, &p.down} {
		var err error
		if *link, err = netsim.NewLink(network(w.loss), w.rng.Uint64()); err != nil {
			panic(err)
		}
	}
	p.start()
	w.players = append(w.players, p)
	return p
}

func network(loss float64) netsim.Settings {
	return netsim.Settings{Loss: loss, Dup: 1, LagMin: 20 * time.Millisecond, LagMax: 40 * time.Millisecond}
}

func (p *player) start() {
	var err error
	p.client, err = salted.NewClient(salted.ClientConfig{ProtocolID: protocolID, Handler: p, Rand: p.w.secrets()})
	if err != nil {
		panic(err)
	}
}

func (p *player) connect() {
	if err := p.client.Connect(p.w.now, serverAddr); err != nil {
		panic(err)
	}
}

func (p *player) leave() { p.client.Disconnect(p.w.now) }

// restart loses all that the process knew.
func (p *player) restart() { p.start() }

// unplug pulls the cable, or puts it back.
func (p *player) unplug(out bool) {
	if out {
		p.setLoss(100)
	} else {
		p.setLoss(p.w.loss)
	}
}

func (p *player) setLoss(percent float64) {
	for _, link := range []*netsim.Link{p.up, p.down} {
		if err := link.Set(network(percent)); err != nil {
			panic(err)
		}
	}
}

// Send is the client's.
func (p *player) Send(_ netip.AddrPort, b []byte) { p.up.Push(p.w.now, b) }

// StateChanged is the client's.
func (p *player) StateChanged(_, to salted.State) {
	switch slot, slots := p.client.Slot(); to {
	case salted.Connected:
		p.w.say(p.name, "connected, in slot %d of %d", slot, slots)
	case salted.Denied:
		p.w.say(p.name, "denied: %s", p.client.Reason())
	default:
		p.w.say(p.name, "%s", to)
	}
}

// Payload is the client's.
func (p *player) Payload([]byte) {}
