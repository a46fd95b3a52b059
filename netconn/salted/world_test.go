package salted

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const protocol = 0x1122334455667788

var serverAddr = netip.MustParseAddrPort("192.0.2.1:4000")

func clientAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), uint16(2000+i%1000))
}

// chacha is a source of secrets with a seed.
func chacha(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

type datagram struct {
	at       time.Duration
	from, to netip.AddrPort
	p        []byte
}

// world is a server, clients and a bad network between them, in virtual time.
type world struct {
	t       testing.TB
	now     time.Duration
	server  *testServer
	clients []*testClient
	wire    []datagram
	rng     *rand.Rand
	loss    float64
	dup     float64
	jitter  time.Duration
	cut     func(d *datagram) bool // drops what it says true to
}

func newWorld(t testing.TB, seed uint64, cfg ServerConfig) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), jitter: 1}
	w.server = newTestServer(t, seed, cfg)
	w.server.send = func(to netip.AddrPort, p []byte) { w.push(serverAddr, to, p) }
	return w
}

func (w *world) client(i int) *testClient {
	c := &testClient{w: w, addr: clientAddr(i)}
	var err error
	c.Client, err = NewClient(ClientConfig{ProtocolID: protocol, Handler: c, Rand: chacha(w.rng.Uint64())})
	require.NoError(w.t, err)
	w.clients = append(w.clients, c)
	return c
}

func (w *world) push(from, to netip.AddrPort, p []byte) {
	copies := 1
	if w.rng.Float64() < w.dup {
		copies = 2
	}
	for range copies {
		d := datagram{w.now + 20*time.Millisecond + time.Duration(w.rng.Int64N(int64(w.jitter))), from, to, bytes.Clone(p)}
		if w.rng.Float64() < w.loss || w.cut != nil && w.cut(&d) {
			continue
		}
		i, _ := slices.BinarySearchFunc(w.wire, d, func(a, b datagram) int {
			if a.at <= b.at {
				return -1
			}
			return 1
		})
		w.wire = slices.Insert(w.wire, i, d)
	}
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 10 * time.Millisecond {
		for len(w.wire) > 0 && w.wire[0].at <= w.now {
			d := w.wire[0]
			w.wire = w.wire[1:]
			if d.to == serverAddr {
				w.server.receive(w.now, d.from, d.p)
				continue
			}
			for _, c := range w.clients {
				if c.addr == d.to && !c.gone {
					c.Receive(w.now, d.from, d.p)
				}
			}
		}
		w.server.Tick(w.now)
		for _, c := range w.clients {
			if !c.gone {
				c.Tick(w.now)
			}
		}
	}
}

// testServer checks what must be true of a server all the time.
type testServer struct {
	*Server
	t       testing.TB
	send    func(to netip.AddrPort, p []byte)
	bytes   int
	joined  []int
	left    []Reason
	got     [][]byte
	present map[int]ClientInfo
}

func newTestServer(t testing.TB, seed uint64, cfg ServerConfig) *testServer {
	s := &testServer{t: t, present: map[int]ClientInfo{}}
	cfg.ProtocolID, cfg.Handler = protocol, s
	if cfg.Rand == nil {
		cfg.Rand = chacha(seed + 1000)
	}
	var err error
	s.Server, err = NewServer(cfg)
	require.NoError(t, err)
	return s
}

// receive checks that an answer is smaller than its question, and that no address holds
// two slots.
func (s *testServer) receive(now time.Duration, from netip.AddrPort, p []byte) {
	s.bytes = 0
	n := len(p)
	s.Receive(now, from, p)
	if s.bytes >= n && s.bytes > 0 {
		s.t.Fatalf("%d bytes answered with %d", n, s.bytes)
	}
	if len(s.byAddr) != len(s.present) {
		s.t.Fatalf("%d addresses, %d clients", len(s.byAddr), len(s.present))
	}
}

func (s *testServer) Send(to netip.AddrPort, p []byte) {
	s.bytes += len(p)
	if s.send != nil {
		s.send(to, p)
	}
}

func (s *testServer) Connected(slot int, info ClientInfo) {
	_, taken := s.present[slot]
	require.False(s.t, taken, "slot %d twice", slot)
	for _, other := range s.present {
		require.NotEqual(s.t, other.Addr, info.Addr, "two slots for one client")
	}
	s.present[slot] = info
	s.joined = append(s.joined, slot)
}

func (s *testServer) Payload(slot int, p []byte) {
	_, ok := s.present[slot]
	require.True(s.t, ok)
	s.got = append(s.got, bytes.Clone(p))
}

func (s *testServer) Disconnected(slot int, reason Reason) {
	_, ok := s.present[slot]
	require.True(s.t, ok)
	delete(s.present, slot)
	s.left = append(s.left, reason)
}

type testClient struct {
	*Client
	w      *world
	addr   netip.AddrPort
	gone   bool // its process is
	states []State
	got    [][]byte
}

func (c *testClient) Send(to netip.AddrPort, p []byte) { c.w.push(c.addr, to, p) }
func (c *testClient) StateChanged(_, to State)         { c.states = append(c.states, to) }
func (c *testClient) Payload(p []byte)                 { c.got = append(c.got, bytes.Clone(p)) }

func payload(s string) []byte { return append(make([]byte, Headroom), s...) }
