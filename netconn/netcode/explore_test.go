package netcode

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	exploreSeeds = flag.Int("explore", 200, "cases of TestEndsAgree")
	exploreFirst = flag.Uint64("first", 1, "seed of the first one")
)

// exploredClient is a client of an explored case, with an id and an address of its own.
type exploredClient struct {
	*Client
	e      *explored
	addr   netip.AddrPort
	got    int
	states []State
}

func (c *exploredClient) Send(_ netip.AddrPort, p []byte) { c.e.push(c.addr, serverAddr, p) }
func (c *exploredClient) StateChanged(_, to State)        { c.states = append(c.states, to) }
func (c *exploredClient) Payload([]byte)                  { c.got++ }

type exploredPacket struct {
	at       time.Duration
	from, to netip.AddrPort
	p        []byte
}

// explored is a case of TestEndsAgree: what is done to two clients, their server and the path between them.
type explored struct {
	t       *testing.T
	rng     *rand.Rand
	seed    uint64
	log     []string
	now     time.Duration
	cfg     ServerConfig
	server  *Server
	slots   map[int]ClientInfo
	clients []*exploredClient
	wire    []exploredPacket
	tokens  uint64
	timeout int32 // of tokens
	loss    float64
	late    float64
	dark    []darkness
}

// darkness drops packets of some kinds, one way or both, for a time.
type darkness struct {
	from, to time.Duration
	kinds    uint8
	ways     uint8
}

func (d *darkness) takes(now time.Duration, up bool, kind packetType) bool {
	way := uint8(1)
	if !up {
		way = 2
	}
	return now >= d.from && now < d.to && d.ways&way != 0 && d.kinds>>kind&1 == 1
}

func (e *explored) say(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf("%7.2f ", e.now.Seconds())+fmt.Sprintf(format, args...))
}

func (e *explored) String() string {
	return fmt.Sprintf("seed %d, tokens' timeout %d s, server %+v, TakeOver %v, HoldFormer %v\n%s", e.seed, e.timeout, e.cfg.Timeout, e.cfg.TakeOver, e.cfg.HoldFormer,
		strings.Join(e.log, "\n"))
}

func (e *explored) push(from, to netip.AddrPort, p []byte) {
	for range 1 + e.rng.IntN(5)/4 {
		at := e.now + 20*time.Millisecond + time.Duration(e.rng.Int64N(int64(30*time.Millisecond)))
		if e.rng.Float64() < e.late {
			at += time.Duration(e.rng.Int64N(int64(8 * time.Second)))
		}
		if e.rng.Float64() < e.loss || slices.ContainsFunc(e.dark, func(d darkness) bool { return d.takes(e.now, to == serverAddr, packetType(p[0]&15)) }) {
			continue
		}
		e.wire = append(e.wire, exploredPacket{at, from, to, bytes.Clone(p)})
	}
}

// Send and the others are the server's handler.
func (e *explored) Send(to netip.AddrPort, p []byte) { e.push(serverAddr, to, p) }
func (e *explored) Payload(int, []byte)              {}
func (e *explored) Connected(slot int, info ClientInfo) {
	require.NotContains(e.t, e.slots, slot, "%v", e)
	e.slots[slot] = info
	if e.cfg.HoldFormer && e.rng.IntN(2) == 0 {
		if former, ok := e.server.Former(slot); ok {
			e.server.Disconnect(e.now, former)
		}
	}
}
func (e *explored) Disconnected(slot int, _ Reason) {
	require.Contains(e.t, e.slots, slot, "%v", e)
	delete(e.slots, slot)
}

func (e *explored) run(d time.Duration) {
	for end := e.now + d; e.now < end; e.now += 10 * time.Millisecond {
		slices.SortStableFunc(e.wire, func(a, b exploredPacket) int { return cmp.Compare(a.at, b.at) })
		for len(e.wire) > 0 && e.wire[0].at <= e.now {
			p := e.wire[0]
			e.wire = e.wire[1:]
			if p.to == serverAddr {
				e.server.Receive(e.now, p.from, p.p)
				continue
			}
			for _, c := range e.clients {
				if c.addr == p.to {
					c.Receive(e.now, p.from, p.p)
				}
			}
		}
		e.server.Tick(e.now)
		for _, c := range e.clients {
			c.Tick(e.now)
		}
	}
}

// restart has the server forget everything, as one that was started anew.
func (e *explored) restart() {
	e.slots = map[int]ClientInfo{}
	var err error
	e.server, err = NewServer(e.cfg)
	require.NoError(e.t, err)
}

func (e *explored) client(i int) *exploredClient {
	c := &exploredClient{e: e, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), 1000)}
	c.Client = newClient(e.t, c)
	return c
}

func (e *explored) connect(i int) {
	e.tokens++
	unix := unixStart + uint64(e.now/time.Second)
	require.NoError(e.t, e.clients[i].Connect(e.now, token(e.t, e.seed<<16+e.tokens, func(c *TokenConfig) {
		c.ClientID, c.Timeout, c.Create, c.Expire = uint64(1+i), e.timeout, unix, unix+60
	})))
}

// TestEndsAgree plays connecting and closing on paths that drop any kind of packet for a while, duplicate, reorder and delay them beyond every
// timeout, with servers and clients that begin anew amid it: when the path is well again both ends soon agree on who is connected, a client
// that isn't knows why, and no slot is left.
func TestEndsAgree(t *testing.T) {
	for seed := range uint64(*exploreSeeds) {
		explore(t, *exploreFirst+seed)
	}
}

// soon is how long it takes on a path that is well to ask again, and to connect.
const soon = askAgain + time.Second

func explore(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 4))
	pick := func(d ...time.Duration) time.Duration { return d[rng.IntN(len(d))] }
	e := &explored{t: t, rng: rng, seed: seed, timeout: []int32{2, 5, 20}[rng.IntN(3)], loss: []float64{0, 0, 0.3}[rng.IntN(3)], late: []float64{0, 0, 0.1}[rng.IntN(3)],
		now: pick(0, time.Minute, -time.Hour, 300*24*time.Hour)}
	e.cfg = ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: 1 + rng.IntN(3), Handler: e, UnixAtZero: unixStart,
		Timeout: pick(0, 0, time.Second, 30*time.Second), TakeOver: rng.IntN(2) == 0, Rand: seeded{rand.New(rand.NewPCG(seed, 1))}}
	e.cfg.HoldFormer = e.cfg.TakeOver && rng.IntN(2) == 0
	e.restart()
	e.clients = []*exploredClient{e.client(0), e.client(1)}
	for range rng.IntN(4) {
		from := e.now + time.Duration(rng.Int64N(int64(3*time.Second)))
		e.dark = append(e.dark, darkness{from, from + pick(50*time.Millisecond, time.Second, 6*time.Second, 12*time.Second, 24*time.Second), uint8(rng.Uint32() | rng.Uint32()), uint8(1 + rng.IntN(3))})
	}
	for range 3 + rng.IntN(12) {
		i := rng.IntN(len(e.clients))
		c := e.clients[i]
		switch n := rng.IntN(12); {
		case c.State() <= Disconnected:
			e.say("%d connects", i)
			e.connect(i)
		case n < 2:
			e.say("%d disconnects", i)
			c.Disconnect(e.now)
		case n == 2:
			e.say("%d begins anew", i)
			e.clients[i] = e.client(i)
		case n == 3:
			e.say("the server begins anew")
			e.restart()
		case n == 4 && len(e.slots) > 0:
			slot := slices.Min(keys(e.slots))
			e.say("the server closes slot %d", slot)
			e.server.Disconnect(e.now, slot)
		default:
			e.say("wait")
		}
		e.run(time.Duration(rng.Int64N(int64(pick(50*time.Millisecond, 300*time.Millisecond, 4*time.Second)))))
	}
	e.loss, e.late, e.dark = 0, 0, nil
	e.say("well again: states %v %v, %d in slots", e.clients[0].State(), e.clients[1].State(), e.server.Clients())
	on, asks := make([]bool, 2), make([]bool, 2)
	for i, c := range e.clients {
		slot, taken := e.server.SlotOf(c.addr)
		_, known := e.server.byID[uint64(1+i)]
		timeout := time.Duration(e.timeout) * time.Second
		fresh := func(heard time.Duration) bool { return e.now-heard < 200*time.Millisecond }
		on[i] = taken && c.State() == Connected && fresh(c.heard) && fresh(e.server.slots[slot].heard) && e.server.slots[slot].m.mac == c.mac()
		spent := e.server.used.byMAC[c.mac()]
		asks[i] = (c.State() == SendingRequest || c.State() == SendingResponse) && c.heard+timeout > e.now+soon && !taken && !known && (spent == nil || !spent.connected)
	}
	e.run(soon)
	for i, c := range e.clients {
		if asks[i] {
			// The late acceptance of a server that began anew ends as a connection that fell silent.
			require.Contains(t, []State{Connected, Denied, Disconnected, ConnTimedOut}, c.State(), "client %d, %v", i, e)
		}
	}
	// What was delayed has come after 8 s. Who connects ends that in both steps' time, and who was connected in the timeout's.
	e.run(8*time.Second + 3*time.Duration(e.timeout)*time.Second + max(e.cfg.Timeout, 0) + 2*time.Second)
	e.say("at the end: states %v %v, %d in slots", e.clients[0].State(), e.clients[1].State(), e.server.Clients())
	present := 0
	for i, c := range e.clients {
		if on[i] {
			require.Equal(t, Connected, c.State(), "client %d was connected, %v", i, e)
		}
		slot, ok := e.server.SlotOf(c.addr)
		require.Equal(t, c.State() == Connected, ok, "client %d: %v, %v", i, c.State(), e)
		if !ok {
			require.LessOrEqual(t, c.State(), Disconnected, "client %d, %v", i, e)
			continue
		}
		present++
		got := c.got
		require.NoError(t, e.server.SendPayload(e.now, slot, append(make([]byte, Headroom, 100), 1)))
		e.run(200 * time.Millisecond)
		require.Greater(t, c.got, got, "%v", e)
	}
	require.Equal(t, present, e.server.Clients(), "%v", e)
	require.Len(t, e.slots, present, "%v", e)
	require.Empty(t, e.server.unsettled)
	// Whoever isn't on gets in at once, if there is room.
	for i, c := range e.clients {
		if c.State() == Connected || present == e.cfg.Slots {
			continue
		}
		e.connect(i)
		e.run(time.Second)
		require.Equal(t, Connected, c.State(), "client %d, %v", i, e)
		present++
	}
}

// mac is what a server knows the client's token by.
func (c *exploredClient) mac() [macBytes]byte {
	return [macBytes]byte(c.token.sealed[privateBytes-macBytes:])
}

func keys(m map[int]ClientInfo) (list []int) {
	for k := range m {
		list = append(list, k)
	}
	return list
}
