package salted

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	exploreSeeds = flag.Int("explore", 300, "cases of TestEndsAgree")
	exploreFirst = flag.Uint64("first", 1, "seed of the first one")
)

// explored is a case of TestEndsAgree: what is done to two clients, their server and the path between them.
type explored struct {
	w       *world
	rng     *rand.Rand
	log     []string
	connect time.Duration // ConnectTimeout
	timeout time.Duration
}

func (e *explored) say(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf("%7.2f ", e.w.now.Seconds())+fmt.Sprintf(format, args...))
}

// darkness drops packets of some kinds, one way or both, for a time.
type darkness struct {
	from, to time.Duration
	kinds    uint8
	ways     uint8
}

func (d *darkness) takes(now time.Duration, p *datagram) bool {
	way := uint8(1)
	if p.from == serverAddr {
		way = 2
	}
	return now >= d.from && now < d.to && d.ways&way != 0 && d.kinds>>packetType(p.p[4])&1 == 1
}

func (e *explored) client(i int) *testClient {
	c := &testClient{w: e.w, addr: clientAddr(i)}
	var err error
	c.Client, err = NewClient(ClientConfig{ProtocolID: protocol, Handler: c, Rand: chacha(e.w.rng.Uint64()), Timeout: e.timeout, ConnectTimeout: e.connect})
	require.NoError(e.w.t, err)
	return c
}

// restart has the server forget everything, as one that was started anew.
func (e *explored) restart(slots int) {
	e.w.server = newTestServer(e.w.t, e.rng.Uint64(), ServerConfig{Slots: slots, Timeout: e.timeout})
	e.w.server.send = func(to netip.AddrPort, p []byte) { e.w.push(serverAddr, to, p) }
}

// TestEndsAgree plays connecting and closing on paths that drop any kind of packet for a while or for ever, duplicate, reorder and delay them beyond
// every timeout, with servers and clients that begin anew amid it: when the path is well again both ends soon agree on who is connected, a client
// that isn't knows why, and no slot is left.
func TestEndsAgree(t *testing.T) {
	for seed := range uint64(*exploreSeeds) {
		explore(t, *exploreFirst+seed)
	}
}

func explore(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 4))
	pick := func(d ...time.Duration) time.Duration { return d[rng.IntN(len(d))] }
	e := &explored{rng: rng, timeout: pick(time.Second, 5*time.Second, 20*time.Second), connect: pick(2*time.Second, 5*time.Second, 30*time.Second)}
	slots := 1 + rng.IntN(3)
	e.w = newWorld(t, seed, ServerConfig{Slots: slots, Timeout: e.timeout})
	w := e.w
	w.now = pick(0, time.Minute, -time.Hour, 300*24*time.Hour)
	begin := w.now
	w.clients = []*testClient{e.client(1), e.client(2)}
	var dark []darkness
	for range rng.IntN(4) {
		from := begin + time.Duration(rng.Int64N(int64(3*time.Second)))
		dark = append(dark, darkness{from, from + pick(50*time.Millisecond, time.Second, 6*time.Second, 12*time.Second, 24*time.Second), uint8(rng.Uint32() | rng.Uint32()), uint8(1 + rng.IntN(3))})
	}
	w.loss, w.dup, w.jitter = []float64{0, 0, 0.3}[rng.IntN(3)], []float64{0, 0.3}[rng.IntN(2)], pick(1, 50*time.Millisecond)
	late := []float64{0, 0, 0.1}[rng.IntN(3)]
	w.cut = func(d *datagram) bool {
		for i := range dark {
			if dark[i].takes(w.now, d) {
				return true
			}
		}
		if rng.Float64() < late {
			d.at += time.Duration(rng.Int64N(int64(8 * time.Second)))
		}
		return false
	}
	for range 3 + rng.IntN(12) {
		i := rng.IntN(len(w.clients))
		c := w.clients[i]
		switch n := rng.IntN(12); {
		case c.State() <= Disconnected:
			e.say("%d connects", i)
			require.NoError(t, c.Connect(w.now, serverAddr))
		case n < 2:
			e.say("%d disconnects", i)
			c.Disconnect(w.now)
		case n == 2:
			e.say("%d begins anew", i)
			w.clients[i] = e.client(1 + i)
		case n == 3:
			e.say("the server begins anew")
			e.restart(slots)
		case n == 4 && w.server.Clients() > 0:
			for slot := range w.server.present {
				e.say("the server closes slot %d", slot)
				w.server.Disconnect(w.now, slot)
				break
			}
		default:
			e.say("wait")
		}
		w.run(time.Duration(rng.Int64N(int64(pick(50*time.Millisecond, 300*time.Millisecond, 4*time.Second)))))
	}
	w.loss, w.dup, w.cut = 0, 0, nil
	e.say("well again: states %v %v, %d in slots", w.clients[0].State(), w.clients[1].State(), w.server.Clients())
	on, asks := make([]bool, 2), make([]bool, 2)
	for i, c := range w.clients {
		slot, ok := w.server.SlotOf(c.addr)
		fresh := func(heard time.Duration) bool { return w.now-heard < 200*time.Millisecond }
		on[i] = ok && c.State() == Connected && c.prefix == w.server.slots[slot].prefix && fresh(c.heard) && fresh(w.server.slots[slot].heard)
		asks[i] = (c.State() == SendingRequest || c.State() == SendingResponse) && c.heard+e.connect > w.now+soon
	}
	w.run(soon)
	for i, c := range w.clients {
		if asks[i] {
			// The late acceptance of a server that began anew ends as a connection that fell silent.
			require.Contains(t, []State{Connected, Denied, Disconnected, ConnectionTimedOut}, c.State(), "client %d, seed %d\n%s", i, seed, e)
		}
	}
	// What was delayed has come after 8 s. Who connects ends that in both steps' time, and who was connected in the timeout's.
	w.run(8*time.Second + 2*e.connect + e.timeout + 3*time.Second)
	e.say("at the end: states %v %v, %d in slots", w.clients[0].State(), w.clients[1].State(), w.server.Clients())
	present := 0
	for i, c := range w.clients {
		if on[i] {
			require.Equal(t, Connected, c.State(), "client %d, seed %d was connected\n%s", i, seed, e)
		}
		slot, ok := w.server.SlotOf(c.addr)
		require.Equal(t, c.State() == Connected, ok, "client %d, seed %d: %v\n%s", i, seed, c.State(), e)
		if !ok {
			require.LessOrEqual(t, c.State(), Disconnected, "client %d, seed %d\n%s", i, seed, e)
			continue
		}
		present++
		require.Equal(t, c.salt, w.server.slots[slot].salt)
		got := len(c.got)
		require.NoError(t, w.server.SendPayload(w.now, slot, payload("down")))
		w.run(200 * time.Millisecond)
		require.Len(t, c.got, got+1, "seed %d\n%s", seed, e)
	}
	require.Equal(t, present, w.server.Clients(), "seed %d\n%s", seed, e)
	require.Len(t, w.server.present, present)
	// Whoever isn't on gets in at once, if there is room.
	for i, c := range w.clients {
		if c.State() == Connected || present == slots {
			continue
		}
		require.NoError(t, c.Connect(w.now, serverAddr))
		w.run(time.Second)
		require.Equal(t, Connected, c.State(), "client %d, seed %d\n%s", i, seed, e)
		present++
	}
}

// soon is how long it takes on a path that is well to ask again, and to connect.
const soon = 3 * time.Second

func (e *explored) String() string {
	s := fmt.Sprintf("timeout %v, connect %v\n", e.timeout, e.connect)
	for _, l := range e.log {
		s += l + "\n"
	}
	return s
}
