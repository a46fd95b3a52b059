package salted

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var observerSeeds = flag.Int("observe", 3, "cases of TestObserver")

// observer sees all packets of a world. It plays them again, late, changed, or from its own addresses, and speaks the protocol from those. It takes none away,
// and makes none that fits what it saw and has somebody else's address: against that nothing here protects.
type observer struct {
	w     *world
	rng   *rand.Rand
	saw   []datagram
	own   []netip.AddrPort // addresses at which it receives
	again bool             // plays packets again with the address that they had
	sends int
}

func (o *observer) see(d *datagram) {
	if len(o.saw) < 4000 {
		o.saw = append(o.saw, *d)
		return
	}
	o.saw[o.rng.IntN(len(o.saw))] = *d
}

// put sends a datagram at once.
func (o *observer) put(from, to netip.AddrPort, p []byte) {
	o.sends++
	p = bytes.Clone(p)
	if to == serverAddr {
		o.w.server.receive(o.w.now, from, p)
		return
	}
	for _, c := range o.w.clients {
		if c.addr == to && !c.gone {
			c.Receive(o.w.now, from, p)
		}
	}
}

// blind is a packet of somebody who guesses: of any type, from any address, with a right checksum.
func (o *observer) blind() {
	size := []int{13, 14, 17, 21, 100, PaddedSize, MaxPacket}[o.rng.IntN(7)]
	p := make([]byte, size)
	kind := packetType(o.rng.IntN(9))
	putFirst(p, o.rng.Uint64())
	if size >= 21 && kind != typeRequest {
		putSecond(p, o.rng.Uint64())
	}
	o.w.server.frame.close(p, kind)
	c := o.w.clients[o.rng.IntN(len(o.w.clients))]
	switch o.rng.IntN(3) {
	case 0:
		o.put(c.addr, serverAddr, p)
	case 1:
		o.put(serverAddr, c.addr, p)
	case 2:
		o.put(clientAddr(1000+o.rng.IntN(30_000)), serverAddr, p)
	}
}

// act does one thing with something that it saw.
func (o *observer) act() {
	if len(o.saw) == 0 || o.rng.IntN(3) == 0 {
		o.blind()
		return
	}
	d := o.saw[o.rng.IntN(len(o.saw))]
	own := o.own[o.rng.IntN(len(o.own))]
	switch o.rng.IntN(6) {
	case 0, 1, 2: // again, and late
		if !o.again {
			return
		}
		o.put(d.from, d.to, d.p)
	case 3: // from elsewhere
		o.put(own, d.to, d.p)
	case 4: // damaged
		p := bytes.Clone(d.p)
		bit := o.rng.IntN(len(p) * 8)
		p[bit/8] ^= 1 << (bit % 8)
		o.put(d.from, d.to, p)
	case 5: // what it knows now, said from its own address
		kinds := []packetType{typeRequest, typeResponse, typeKeepAlive, typePayload, typeDisconnect}
		kind := kinds[o.rng.IntN(len(kinds))]
		p := make([]byte, map[packetType]int{typeRequest: PaddedSize, typeResponse: PaddedSize, typeKeepAlive: clientKeepAliveSize, typePayload: 40, typeDisconnect: disconnectSize}[kind])
		putFirst(p, first(d.p))
		if kind == typeResponse && len(d.p) >= 21 {
			putSecond(p, second(d.p))
		}
		o.put(own, serverAddr, o.w.server.frame.close(p, kind))
	}
}

// answer has the observer answer the challenges to its own addresses, so that it has slots too.
func (o *observer) answer(d *datagram) {
	for _, own := range o.own {
		if d.to == own && packetType(d.p[4]) == typeChallenge {
			salt := first(d.p)
			o.w.push(own, serverAddr, response(salt^second(d.p), salt))
			if o.rng.IntN(2) == 0 {
				p := make([]byte, disconnectSize)
				putFirst(p, salt^second(d.p))
				o.w.push(own, serverAddr, o.w.server.frame.close(p, typeDisconnect))
			}
		}
	}
}

// TestObserver: somebody who sees all packets, replays them at any time after, changes bits, speaks with everybody's salts and prefixes from
// addresses of its own, and guesses with those of others, ends no connection and moves none, while honest clients come, go, die and come back with another
// salt. Who replays nothing with another's address keeps nobody out. What the server holds is bounded all the while.
func TestObserver(t *testing.T) {
	if testing.Short() {
		t.Skip("the server's other tests are enough there")
	}
	for seed := range uint64(*observerSeeds) {
		observe(t, seed)
	}
}

func observe(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	slots := []int{8, 16, 64}[rng.IntN(3)]
	w := newWorld(t, seed, ServerConfig{Slots: slots, MaxPerAddr: 3})
	w.dup, w.jitter = []float64{0, 0.2}[rng.IntN(2)], []time.Duration{1, 60 * time.Millisecond}[rng.IntN(2)]
	o := &observer{w: w, rng: rng, again: rng.IntN(2) == 0, own: []netip.AddrPort{clientAddr(500)}}
	for i := range 5 {
		o.own = append(o.own, netip.AddrPortFrom(o.own[0].Addr(), uint16(9000+i)))
	}
	w.cut = func(d *datagram) bool {
		o.see(d)
		o.answer(d)
		return false
	}
	// Three of one address, two of others; the observer's address has three slots at most.
	for i := range 5 {
		c := w.client(1 + i)
		if i < 3 {
			c.addr = netip.AddrPortFrom(clientAddr(1).Addr(), uint16(3000+i))
		}
	}
	type since struct {
		connecting, connected time.Duration
		prefix                uint64
		slot                  int
	}
	at := make([]since, len(w.clients))
	fail := func(i int, what string) {
		c := w.clients[i]
		t.Fatalf("seed %d, %v: client %d %s: %v, %v, %v; server %+v", seed, w.now, i, what, c.State(), c.Reason(), c.states, w.server.Counters)
	}
	rate := []int{1, 10, 50}[rng.IntN(3)] // of the observer, for each 10 ms
	for end := w.now + time.Duration(5+rng.IntN(60))*time.Second; w.now < end; {
		for range rate {
			o.act()
		}
		if i := rng.IntN(200); i < len(w.clients) {
			switch c := w.clients[i]; {
			case c.State() <= Disconnected:
				require.NoError(t, c.Connect(w.now, serverAddr))
				at[i] = since{connecting: w.now}
			case c.State() == Connected && rng.IntN(2) == 0:
				c.Disconnect(w.now)
				at[i] = since{}
			case c.State() == Connected && rng.IntN(2) == 0: // it dies, and is there again
				addr := c.addr
				c.gone = true
				n := w.client(0)
				w.clients = w.clients[:len(w.clients)-1]
				n.addr = addr
				w.clients[i] = n
				require.NoError(t, n.Connect(w.now, serverAddr))
				at[i] = since{connecting: w.now}
			case c.State() == Connected:
				require.NoError(t, c.SendPayload(w.now, payload("up")))
			}
		}
		w.run(10 * time.Millisecond)
		for i, c := range w.clients {
			a := &at[i]
			switch {
			case c.State() == Connected:
				if a.prefix == 0 {
					a.prefix, a.connected = c.prefix, w.now
					a.slot, _ = c.Slot()
				}
				slot, ok := w.server.SlotOf(c.addr)
				same := ok && slot == a.slot && w.server.slots[slot].salt == c.salt && c.prefix == a.prefix
				// Until its first packet from there has come, a response to another challenge may move it for a while.
				if !same || w.server.slots[slot].prefix != a.prefix && w.now-a.connected > 100*time.Millisecond {
					fail(i, "isn't the one of its slot")
				}
			case a.prefix != 0:
				fail(i, "isn't connected any more")
			case o.again: // an old response may be in its way, and an old refusal
			case a.connecting != 0 && c.State() <= Disconnected:
				fail(i, "was refused")
			case a.connecting != 0 && w.now-a.connecting > 1500*time.Millisecond:
				fail(i, "waits")
			}
		}
		if n := len(w.server.byAddr); n > slots || n > len(w.clients)+3 {
			t.Fatalf("seed %d: %d addresses", seed, n)
		}
	}
	require.Positive(t, o.sends)
}
