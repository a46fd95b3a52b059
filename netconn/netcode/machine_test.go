package netcode

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	serverAddr = netip.MustParseAddrPort("10.0.0.1:40000")
	clientAddr = netip.MustParseAddrPort("10.0.0.2:1000")
)

const unixStart = 1_700_000_000

type seeded struct{ r *rand.Rand }

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

// rig is a server and a client with a link each way.
type rig struct {
	t         testing.TB
	now       time.Duration
	server    *Server
	client    *Client
	up, down  *netsim.Link
	got, echo [][]byte
	states    []State
	infos     []ClientInfo
	gone      []Reason
	answered  int // bytes sent to whom has no slot, since the last packet
}

type serverSide struct{ *rig }

func (s serverSide) Send(_ netip.AddrPort, p []byte) {
	if s.server.Clients() == 0 {
		s.answered += len(p)
	}
	s.down.Push(s.now, p)
}
func (s serverSide) Connected(_ int, info ClientInfo)  { s.infos = append(s.infos, info) }
func (s serverSide) Disconnected(_ int, reason Reason) { s.gone = append(s.gone, reason) }
func (s serverSide) Payload(slot int, p []byte) {
	s.got = append(s.got, bytes.Clone(p))
	b := append(make([]byte, Headroom, Headroom+len(p)+Tailroom), p...)
	require.NoError(s.t, s.server.SendPayload(s.now, slot, b))
}

type clientSide struct{ *rig }

func (c clientSide) Send(_ netip.AddrPort, p []byte) { c.up.Push(c.now, p) }
func (c clientSide) StateChanged(_, to State)        { c.states = append(c.states, to) }
func (c clientSide) Payload(p []byte)                { c.echo = append(c.echo, bytes.Clone(p)) }

func newRig(t testing.TB, seed uint64, set netsim.Settings, slots int) *rig {
	r := &rig{t: t}
	var err error
	r.up, err = netsim.NewLink(set, seed)
	require.NoError(t, err)
	r.down, err = netsim.NewLink(set, seed+1)
	require.NoError(t, err)
	r.server, err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: slots, Handler: serverSide{r},
		UnixAtZero: unixStart, Rand: seeded{rand.New(rand.NewPCG(seed, 1))}})
	require.NoError(t, err)
	r.client = newClient(t, clientSide{r})
	return r
}

func newClient(t testing.TB, h ClientHandler) *Client {
	c, err := NewClient(ClientConfig{Handler: h, ProtocolID: 7})
	require.NoError(t, err)
	return c
}

func token(t testing.TB, seed uint64, edit func(*TokenConfig)) []byte {
	cfg := TokenConfig{ProtocolID: 7, ClientID: 99, Create: unixStart, Expire: unixStart + 30, Timeout: 5, Servers: []netip.AddrPort{serverAddr},
		PrivateKey: Key{1}, Rand: seeded{rand.New(rand.NewPCG(seed, 2))}}
	cfg.UserData[5] = 55
	if edit != nil {
		edit(&cfg)
	}
	b, err := GenerateConnectToken(cfg)
	require.NoError(t, err)
	return b
}

func (r *rig) step() {
	r.now += 16 * time.Millisecond
	for p, ok := r.up.Pop(r.now); ok; p, ok = r.up.Pop(r.now) {
		r.answered = 0
		before := r.server.Clients()
		r.server.Receive(r.now, clientAddr, bytes.Clone(p))
		if before == 0 {
			require.LessOrEqual(r.t, r.answered, len(p), "amplification")
		}
	}
	for p, ok := r.down.Pop(r.now); ok; p, ok = r.down.Pop(r.now) {
		r.client.Receive(r.now, serverAddr, bytes.Clone(p))
	}
	r.server.Tick(r.now)
	r.client.Tick(r.now)
}

func TestConnectUnderLoss(t *testing.T) {
	for seed := range uint64(10) {
		r := newRig(t, seed, netsim.Settings{Loss: 30, Dup: 10, Order: 10, Corrupt: 5, Lag: 20 * time.Millisecond}, 4)
		require.NoError(t, r.client.Connect(0, token(t, seed, nil)))
		for i := 0; len(r.echo) < 50; i++ {
			require.Less(t, i, 3000, "seed %d: %v, %+v", seed, r.client.State(), r.server.Counters)
			if r.client.State() == Connected {
				b := append(make([]byte, Headroom, 200), byte(i), 1, 2, 3)
				require.NoError(t, r.client.SendPayload(r.now, b))
			}
			r.step()
		}
		require.Len(t, r.infos, 1, "seed %d", seed)
		require.EqualValues(t, 99, r.infos[0].ID)
		slot, slots := r.client.Slot()
		require.Equal(t, [2]int{0, 4}, [2]int{slot, slots})
		for _, b := range r.echo {
			require.Equal(t, []byte{1, 2, 3}, b[1:])
		}
		r.client.Disconnect(r.now)
		for range 20 {
			r.step()
		}
		require.Equal(t, []Reason{ClientLeft}, r.gone, "seed %d", seed)
	}
}

func TestRefusals(t *testing.T) {
	other := netip.MustParseAddrPort("10.0.0.9:1")
	for _, c := range []struct {
		name  string
		edit  func(*TokenConfig)
		count func(*ServerCounters) uint64
		state State
	}{
		{"another key", func(c *TokenConfig) { c.PrivateKey = Key{2} }, func(c *ServerCounters) uint64 { return c.BadToken }, RequestTimedOut},
		{"another protocol", func(c *TokenConfig) { c.ProtocolID = 8 }, func(c *ServerCounters) uint64 { return c.BadProtocol }, Denied},
		{"for another server", func(c *TokenConfig) { c.Internal = []netip.AddrPort{other} }, func(c *ServerCounters) uint64 { return c.OtherServer }, RequestTimedOut},
		{"expired", func(c *TokenConfig) { c.Create, c.Expire = unixStart-60, unixStart-30 }, func(c *ServerCounters) uint64 { return c.Expired }, RequestTimedOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1, netsim.Settings{}, 4)
			tok := token(t, 1, c.edit)
			r.client.cfg.ProtocolID = binary.LittleEndian.Uint64(tok[13:])
			require.NoError(t, r.client.Connect(0, tok))
			for range 400 {
				r.step()
			}
			require.Equal(t, c.state, r.client.State())
			require.NotZero(t, c.count(&r.server.Counters))
			require.Zero(t, r.server.Clients())
		})
	}
}

func TestTokenOnce(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 4)
	tok := token(t, 1, nil)
	require.NoError(t, r.client.Connect(0, tok))
	for range 10 {
		r.step()
	}
	require.Equal(t, Connected, r.client.State())
	r.client.Disconnect(r.now)
	r.step()
	require.ErrorIs(t, r.client.Connect(r.now, tok), ErrTokenReused)
	again := newClient(t, clientSide{r}) // one that doesn't know, at the same address
	r.client = again
	require.NoError(t, again.Connect(r.now, tok))
	for range 10 {
		r.step()
	}
	require.NotZero(t, r.server.Counters.TokenUsed)
	require.NotEqual(t, Connected, again.State())
}

func TestFailOver(t *testing.T) {
	dead := netip.MustParseAddrPort("10.0.0.8:1")
	r := newRig(t, 1, netsim.Settings{}, 4)
	require.NoError(t, r.client.Connect(0, token(t, 1, func(c *TokenConfig) { c.Servers = []netip.AddrPort{dead, serverAddr}; c.Timeout = 2 })))
	for range 400 {
		r.now += 16 * time.Millisecond
		for p, ok := r.up.Pop(r.now); ok; p, ok = r.up.Pop(r.now) {
			if r.client.addr() == serverAddr {
				r.server.Receive(r.now, clientAddr, bytes.Clone(p))
			}
		}
		for p, ok := r.down.Pop(r.now); ok; p, ok = r.down.Pop(r.now) {
			r.client.Receive(r.now, serverAddr, bytes.Clone(p))
		}
		r.server.Tick(r.now)
		r.client.Tick(r.now)
	}
	require.Equal(t, Connected, r.client.State())
}

func TestTimeouts(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 4)
	require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
	for range 10 {
		r.step()
	}
	require.Equal(t, Connected, r.client.State())
	require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
	require.NoError(t, r.down.Set(netsim.Settings{Loss: 100}))
	for range 320 {
		r.step()
	}
	require.Equal(t, ConnTimedOut, r.client.State())
	require.Equal(t, []Reason{TimedOut}, r.gone)
}

// TestHostileFlood: spoofed and damaged packets take no slot and keep memory bounded.
func TestHostileFlood(t *testing.T) {
	const seed = 3
	r := newRig(t, seed, netsim.Settings{}, 4)
	rng := rand.New(rand.NewPCG(seed, 7))
	tok := token(t, 1, nil)
	var pub public
	require.NoError(t, pub.read(tok))
	req := appendRequest(nil, &pub)
	for i := range 20_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(i))
		b := bytes.Clone(req)
		switch i % 3 {
		case 0:
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		case 1:
			b = b[:rng.IntN(len(b))]
		}
		r.answered = 0
		r.server.Receive(time.Duration(i)*time.Microsecond, from, b)
		require.LessOrEqual(t, r.answered, len(b))
	}
	require.Zero(t, r.server.Clients())
	require.LessOrEqual(t, len(r.server.mappings.byAddr), minMappings)
	require.LessOrEqual(t, len(r.server.used.byMAC), minUsed)
	require.NoError(t, r.client.Connect(r.now, token(t, 5, nil)))
	for range 400 {
		r.step()
	}
	require.Equal(t, Connected, r.client.State())
}

func FuzzServer(f *testing.F) {
	var pub public
	if err := pub.read(token(f, 1, nil)); err != nil {
		f.Fatal(err)
	}
	f.Add(appendRequest(nil, &pub))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t, 1, netsim.Settings{}, 2)
		r.server.Receive(0, clientAddr, bytes.Clone(b))
		r.server.Receive(0, clientAddr, bytes.Clone(b))
		if r.server.Clients() > 0 {
			t.Fatal("a slot without a challenge")
		}
		_ = r.client.Connect(0, token(t, 1, nil))
		r.client.Receive(0, serverAddr, bytes.Clone(b))
	})
}
