package main

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

func init() {
	register(
		attack{area: "core", name: "repeated requests", promise: "who repeats the requests that he sees, from anywhere, keeps nobody out", bound: none("kept out"), run: repeatedRequests},
		attack{area: "core", name: "repeated denials", promise: "nor does he with requests that a full server denied, and he gets no answers", bound: none("kept out"), run: repeatedDenials},
		attack{area: "core", name: "mute tokens", promise: "32 valid tokens that never answer don't keep anybody waiting, from one address or many", bound: atMost(1, "s"), run: muteTokens},
	)
}

var (
	gameAddr   = netip.MustParseAddrPort("10.0.0.1:7777")
	victimAddr = netip.MustParseAddrPort("10.3.0.1:4000")
)

func attackerAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 66, byte(i >> 8), byte(i)}), uint16(5000+i%100))
}

// door is a netcode server and what goes to and fro, a step of 5 ms each way.
type door struct {
	server   *netcode.Server
	now      time.Duration
	clients  map[netip.AddrPort]*visitor
	answered map[netip.AddrPort]int // packets to who is no client
}

// visitor is an honest client.
type visitor struct {
	door   *door
	addr   netip.AddrPort
	client *netcode.Client
	// out and in are on the way. sees is called with each packet that leaves.
	out, in [][]byte
	sees    func(p []byte)
}

func (v *visitor) Send(_ netip.AddrPort, p []byte) {
	v.out = append(v.out, bytes.Clone(p))
	if v.sees != nil {
		v.sees(p)
	}
}
func (v *visitor) StateChanged(_, _ netcode.State) {}
func (v *visitor) Payload([]byte)                  {}

// doorHandler is the server's.
type doorHandler struct{ d *door }

func (h doorHandler) Send(to netip.AddrPort, p []byte) {
	if v := h.d.clients[to]; v != nil {
		v.in = append(v.in, bytes.Clone(p))
		return
	}
	h.d.answered[to]++
}
func (doorHandler) Connected(int, netcode.ClientInfo) {}
func (doorHandler) Payload(int, []byte)               {}
func (doorHandler) Disconnected(int, netcode.Reason)  {}

func newDoor(slots int) (*door, error) {
	d := &door{clients: map[netip.AddrPort]*visitor{}, answered: map[netip.AddrPort]int{}}
	var err error
	d.server, err = netcode.NewServer(netcode.ServerConfig{ProtocolID: 42, PrivateKey: gameKey, Addrs: []netip.AddrPort{gameAddr}, Slots: slots, Handler: doorHandler{d}})
	return d, err
}

func (d *door) token(id uint64) ([]byte, error) {
	return netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 42, ClientID: id, Expire: 600, Timeout: 10, Servers: []netip.AddrPort{gameAddr}, PrivateKey: gameKey})
}

// visit is a client that begins to connect.
func (d *door) visit(addr netip.AddrPort, id uint64, sees func(p []byte)) (*visitor, error) {
	v := &visitor{door: d, addr: addr, sees: sees}
	var err error
	if v.client, err = netcode.NewClient(netcode.ClientConfig{Handler: v, ProtocolID: 42}); err != nil {
		return nil, err
	}
	token, err := d.token(id)
	if err != nil {
		return nil, err
	}
	d.clients[addr] = v
	return v, v.client.Connect(d.now, token)
}

// step is 5 ms.
func (d *door) step() {
	d.now += 5 * time.Millisecond
	for _, v := range d.clients {
		out := v.out
		v.out = nil
		for _, p := range out {
			d.server.Receive(d.now, v.addr, p)
		}
	}
	d.server.Tick(d.now)
	for _, v := range d.clients {
		in := v.in
		v.in = nil
		for _, p := range in {
			v.client.Receive(d.now, gameAddr, p)
		}
		v.client.Tick(d.now)
	}
}

// requestBytes is the size of a netcode request, by which an observer knows one.
const requestBytes = 1078

// repeatedRequests has an observer repeat each request just after it passed, and every older one, from many addresses.
func repeatedRequests(e *env) figure {
	out := 0
	runs := e.pick(20, 200)
	for run := range runs {
		d, err := newDoor(4)
		if err != nil {
			return broken("%v", err)
		}
		var seen [][]byte
		for id := uint64(1); id <= 4; id++ { // attempts that were given up
			v, err := d.visit(victimAddr, 7, func(p []byte) {
				if len(p) == requestBytes && e.rng.IntN(2) == 0 {
					seen = append(seen, bytes.Clone(p))
				}
			})
			if err != nil {
				return broken("%v", err)
			}
			if id < 4 {
				v.out = nil // lost
				d.step()
				delete(d.clients, victimAddr)
			}
		}
		v := d.clients[victimAddr]
		for i := 0; i < 600 && v.client.State() > 0 && v.client.State() != netcode.Connected; i++ {
			d.step()
			for k, p := range seen {
				from := attackerAddr(1)
				if run%2 == 1 {
					from = attackerAddr(i*8 + k)
				}
				d.server.Receive(d.now, from, bytes.Clone(p))
			}
		}
		if v.client.State() != netcode.Connected {
			out++
			e.notef("run %d: %v, %+v", run, v.client.State(), d.server.Counters)
		}
	}
	return figure{value: float64(out)}
}

// repeatedDenials fills a server, has it deny a client, and repeats that request while the client tries once more.
func repeatedDenials(e *env) figure {
	d, err := newDoor(1)
	if err != nil {
		return broken("%v", err)
	}
	first, err := d.visit(attackerAddr(0), 1, nil)
	if err != nil {
		return broken("%v", err)
	}
	for range 100 {
		d.step()
	}
	if first.client.State() != netcode.Connected {
		return broken("the first client: %v", first.client.State())
	}
	var seen [][]byte
	v, err := d.visit(victimAddr, 2, func(p []byte) {
		if len(p) == requestBytes {
			seen = append(seen, bytes.Clone(p))
		}
	})
	if err != nil {
		return broken("%v", err)
	}
	for range 200 {
		d.step()
	}
	if v.client.State() != netcode.Denied || len(seen) == 0 {
		return broken("%v, not denied", v.client.State())
	}
	for i := range 500 {
		d.server.Receive(d.now, attackerAddr(i+1), bytes.Clone(seen[i%len(seen)]))
	}
	answers := 0
	for _, n := range d.answered {
		answers += n
	}
	d.server.Disconnect(d.now, 0)
	delete(d.clients, attackerAddr(0))
	for i := range 500 { // the observer first, then the owner with the same token
		d.server.Receive(d.now, attackerAddr(i+1), bytes.Clone(seen[i%len(seen)]))
	}
	before := d.server.Clients()
	d.server.Receive(d.now, victimAddr, bytes.Clone(seen[0]))
	if len(v.in) == 0 {
		return figure{value: 1}
	}
	e.notef("%d answers to the observer, %d clients before, %+v", answers, before, d.server.Counters)
	if answers > 0 {
		return broken("%d answers went to who repeats", answers)
	}
	return figure{}
}

// muteTokens shows 32 valid tokens that never answer, again and again, at a server of 8, and times a newcomer.
func muteTokens(e *env) figure {
	worst := time.Duration(0)
	for _, many := range []bool{false, true} {
		d, err := newDoor(8)
		if err != nil {
			return broken("%v", err)
		}
		var requests [][]byte
		for id := range uint64(32) {
			v, err := d.visit(attackerAddr(int(id)), 100+id, nil)
			if err != nil {
				return broken("%v", err)
			}
			v.client.Tick(d.now)
			for _, p := range v.out {
				if len(p) == requestBytes {
					requests = append(requests, p)
				}
			}
			delete(d.clients, v.addr)
		}
		if len(requests) < 32 {
			return broken("%d requests of 32", len(requests))
		}
		show := func() {
			for i, p := range requests {
				from := attackerAddr(i)
				if !many {
					from = netip.AddrPortFrom(attackerAddr(0).Addr(), uint16(6000+i))
				}
				d.server.Receive(d.now, from, bytes.Clone(p))
			}
		}
		show()
		v, err := d.visit(victimAddr, 7, nil)
		if err != nil {
			return broken("%v", err)
		}
		began := d.now
		for d.now-began < 15*time.Second && v.client.State() > 0 && v.client.State() != netcode.Connected {
			d.step()
			show()
		}
		if v.client.State() != netcode.Connected {
			return broken("the newcomer: %v", v.client.State())
		}
		worst = max(worst, d.now-began)
	}
	return figure{value: worst.Seconds()}
}
