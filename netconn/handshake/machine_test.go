package handshake

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type testHandler struct {
	sent     [][]byte
	accepted []Accept
	restarts []Cookie
	refuse   bool
	now      time.Duration
	since    time.Duration // of the last accept
}

func (h *testHandler) Send(_ netip.AddrPort, p []byte) { h.sent = append(h.sent, bytes.Clone(p)) }
func (h *testHandler) Accepted(_ netip.AddrPort, a Accept) bool {
	if h.refuse {
		return false
	}
	h.accepted, h.since = append(h.accepted, a), h.now
	return true
}
func (h *testHandler) Restarted(_ netip.AddrPort, c Cookie, _ float64) bool {
	h.restarts = append(h.restarts, c)
	return len(h.accepted) > 0 && h.accepted[0].Cookie == c
}

// seeded is a reproducible source of secrets.
type seeded struct{ r *rand.Rand }

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

var here = netip.MustParseAddrPort("10.0.0.1:4000")

// rig is a client and a server with a lossy line between them.
type rig struct {
	t      testing.TB
	now    time.Duration
	h      *testHandler
	server *Server
	client *Client
	rng    *rand.Rand
	loss   float64
	addr   netip.AddrPort
	toSrv  [][]byte
	live   *Live
}

func newRig(t testing.TB, p Protocol, seed uint64, loss float64) *rig {
	r := &rig{t: t, h: &testHandler{}, rng: rand.New(rand.NewPCG(seed, 3)), loss: loss, addr: here}
	var err error
	r.server, err = NewServer(ServerConfig{Protocol: p, Handler: r.h, Rand: seeded{r.rng}, SessionID: 2})
	require.NoError(t, err)
	r.client, err = NewClient(ClientConfig{Protocol: p, ClientID: 5, Rand: seeded{r.rng}, Send: func(b []byte) {
		r.toSrv = append(r.toSrv, bytes.Clone(b))
	}})
	require.NoError(t, err)
	return r
}

func (r *rig) step(dt time.Duration) {
	for _, b := range r.toSrv {
		if r.rng.Float64() < r.loss {
			continue
		}
		before := len(r.h.sent)
		if len(r.h.accepted) > 0 {
			a := r.h.accepted[len(r.h.accepted)-1]
			r.live = &Live{a.Cookie, r.h.since, a.Timestamp}
		}
		r.h.now = r.now
		r.server.Receive(r.now, r.addr, b, r.live)
		for _, a := range r.h.sent[before:] {
			require.LessOrEqual(r.t, len(a), len(b), "amplification")
		}
	}
	r.toSrv = nil
	for _, b := range r.h.sent {
		if r.rng.Float64() >= r.loss {
			r.client.Receive(r.now, b)
		}
	}
	r.h.sent = nil
	r.now += dt
	r.client.Tick(r.now)
}

func protocols() map[string]Protocol {
	magic := Unreal51()
	magic.Magic, magic.MagicBits = 0x5, 3
	long := Unreal53()
	long.Magic, long.MagicBits = 0xdeadbeef, 32
	return map[string]Protocol{"magic of 32 bits": long, "4.27": Unreal427(), "v1": {Version: 1}, "v2": {Version: 2}, "5.1": Unreal51(), "5.3": Unreal53(), "magic": magic}
}

func TestExchange(t *testing.T) {
	for name, p := range protocols() {
		for seed := range uint64(20) {
			loss := float64(seed%5) * 0.15
			r := newRig(t, p, seed, loss)
			r.client.Start(0)
			for i := 0; r.client.State() != Done; i++ {
				require.Less(t, i, 4000, "%s: seed %d, loss %v: %v", name, seed, loss, r.client.State())
				r.step(100 * time.Millisecond)
				if r.client.State() == TimedOut {
					r.client.Start(r.now)
				}
			}
			a := r.h.accepted[len(r.h.accepted)-1]
			require.Equal(t, a.Cookie, r.client.Result().Cookie, "%s: seed %d", name, seed)
			require.Equal(t, a.ServerSeq, r.client.Result().ServerSeq)
			if p.Version >= 3 {
				require.EqualValues(t, 2, r.client.Result().SessionID)
				require.EqualValues(t, 5, a.ClientID)
			}
		}
	}
}

// TestClockBelowZero: a server whose clock begins before 0, or far from it, lets clients in.
func TestClockBelowZero(t *testing.T) {
	for _, now := range []time.Duration{-100 * 365 * 24 * time.Hour, -time.Hour, -time.Second, -1, 0, 100 * 365 * 24 * time.Hour} {
		for name, p := range protocols() {
			r := newRig(t, p, 1, 0)
			r.now = now
			r.client.Start(now)
			for range 5 {
				r.step(100 * time.Millisecond)
			}
			require.Equal(t, Done, r.client.State(), "%s at %v: %+v", name, now, r.client.Counters)
		}
	}
}

func TestRestart(t *testing.T) {
	for name, p := range protocols() {
		r := newRig(t, p, 9, 0)
		r.client.Start(0)
		for range 5 {
			r.step(100 * time.Millisecond)
		}
		require.Equal(t, Done, r.client.State(), name)
		first := r.client.Result()
		// The client's address changes; its next game packet comes from a stranger.
		r.addr = netip.MustParseAddrPort("10.0.0.2:999")
		game := bitio.NewWriter(make([]byte, 100))
		(&Component{Protocol: p, SessionID: 2, ClientID: 5}).WritePrefix(game)
		game.WriteBytes(make([]byte, 60))
		game.WriteBool(true)
		r.server.UnknownGame(r.now, r.addr, game.Bytes())
		require.Len(t, r.h.sent, 1, name)
		r.step(time.Millisecond)
		require.Equal(t, Done, r.client.State(), "%s: too soon after the handshake", name)
		r.now += 11 * time.Second
		r.server.UnknownGame(r.now, r.addr, game.Bytes())
		r.live = nil
		r.h.accepted = r.h.accepted[:1]
		for range 6 {
			r.step(100 * time.Millisecond)
		}
		require.Equal(t, Done, r.client.State(), name)
		require.Equal(t, []Cookie{first.Cookie}, r.h.restarts, name)
		require.Equal(t, first, r.client.Result(), "%s: sequences go on", name)
		require.EqualValues(t, 1, r.client.Counters.Restarts)
	}
}

func TestCookieExpiryAndRotation(t *testing.T) {
	p := Unreal51()
	for _, wait := range []time.Duration{0, 14 * time.Second, 21 * time.Second, 39 * time.Second, 41 * time.Second, 80 * time.Second} {
		r := newRig(t, p, 4, 0)
		r.client.Start(0)
		r.server.Receive(0, here, r.toSrv[0], nil)
		r.client.Receive(0, r.h.sent[0])
		response := r.toSrv[1]
		for at := time.Duration(0); at < wait; at += time.Second { // other clients keep the secrets turning
			r.server.Receive(at, here, r.toSrv[0], nil)
		}
		r.server.Receive(wait, here, response, nil)
		if wait < 15*time.Second {
			require.Len(t, r.h.accepted, 1, "after %v", wait)
		}
		if wait > 40*time.Second {
			require.Empty(t, r.h.accepted, "after %v", wait)
			require.EqualValues(t, 1, r.server.Counters.Expired)
		}
	}
}

// TestHostile floods a server: nothing is accepted, nothing kept, nothing amplified.
func TestHostile(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	r := newRig(t, Unreal51(), seed, 0)
	r.client.Start(0)
	initial := r.toSrv[0]
	r.server.Receive(0, here, initial, nil)
	r.client.Receive(0, r.h.sent[0])
	response := r.toSrv[1]
	for i := range 100_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(i))
		b := bytes.Clone([][]byte{initial, response}[i&1])
		switch i % 4 {
		case 2:
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		case 3:
			b = b[:rng.IntN(len(b))]
		}
		r.h.sent = r.h.sent[:0]
		r.server.Receive(time.Duration(i)*time.Microsecond, from, b, nil)
		for _, a := range r.h.sent {
			require.LessOrEqual(t, len(a), len(b))
		}
	}
	require.Empty(t, r.h.accepted, "seed %d", seed)
	for bit := range len(response) * 8 { // the real client's own response, one bit wrong
		b := bytes.Clone(response)
		b[bit/8] ^= 1 << (bit % 8)
		r.server.Receive(time.Second/2, here, b, nil)
	}
	r.server.Receive(time.Second, here, response, nil)
	require.Len(t, r.h.accepted, 1, "bits that say nothing may be wrong, but a cookie is good once")
}

// TestReplayedResponse: a Response that was heard on the way makes no second connection when the first has ended,
// and the memory of that is bounded.
func TestReplayedResponse(t *testing.T) {
	for name, p := range protocols() {
		r := newRig(t, p, 1, 0)
		r.client.Start(0)
		r.server.Receive(0, here, r.toSrv[0], nil)
		r.client.Receive(0, r.h.sent[0])
		r.h.refuse = true // no room yet: the client may try again
		r.server.Receive(0, here, r.toSrv[1], nil)
		r.h.refuse = false
		for i := range 5 {
			r.server.Receive(time.Duration(i)*time.Second, here, r.toSrv[1], nil)
		}
		require.Len(t, r.h.accepted, 1, name)
		require.EqualValues(t, 4, r.server.Counters.Replayed, name)
	}
	p := past{most: minPast}
	response := func(i int) *Packet {
		return &Packet{Cookie: Cookie{byte(i), byte(i >> 8), byte(i >> 16)}, Timestamp: 1 + float64(i)/100}
	}
	for i := range 3 * minPast {
		pk := response(i)
		require.False(t, p.has(pk, pk.Timestamp))
		p.add(pk)
		require.True(t, p.has(pk, pk.Timestamp))
		require.LessOrEqual(t, len(p.cookies), minPast)
	}
	require.Len(t, p.ring, minPast)
	for i := range 3 * minPast {
		require.True(t, p.has(response(i), response(3*minPast).Timestamp), "the newest are remembered, and no older one makes a connection")
	}
	old := response(minPast)
	require.False(t, p.has(old, old.Timestamp), "the clock has gone back")
}

func TestAllocsServer(t *testing.T) {
	h := &countingHandler{}
	s, err := NewServer(ServerConfig{Protocol: Unreal51(), Handler: h, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
	require.NoError(t, err)
	r := newRig(t, Unreal51(), 1, 0)
	r.client.Start(0)
	s.Receive(0, here, r.toSrv[0], nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Receive(0, here, r.toSrv[0], nil) }))
	require.NotZero(t, h.n)
	game := bitio.NewWriter(make([]byte, 100))
	(&Component{Protocol: Unreal51()}).WritePrefix(game)
	game.WriteBytes(make([]byte, 10))
	game.WriteBool(true)
	h.n = 0
	now := time.Duration(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now += 100 * time.Millisecond
		s.UnknownGame(now, here, game.Bytes())
	}))
	require.NotZero(t, h.n)
}

type countingHandler struct {
	testHandler
	n int
}

func (h *countingHandler) Send(netip.AddrPort, []byte) { h.n++ }

func TestComponent(t *testing.T) {
	for name, p := range protocols() {
		c := Component{Protocol: p}
		if p.Version >= 3 {
			c.SessionID, c.ClientID = 1, 6
		}
		w := bitio.NewWriter(make([]byte, 8))
		c.WritePrefix(w)
		require.Equal(t, c.ReservedBits(), w.Len(), name)
		require.NoError(t, c.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), name)
		if p.Version < 3 {
			continue
		}
		other := Component{Protocol: p, SessionID: 2, ClientID: 6}
		require.ErrorIs(t, other.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), ErrSession, name)
		other = Component{Protocol: p, SessionID: 1, ClientID: 3}
		require.ErrorIs(t, other.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), ErrClientID, name)
		other.Lenient = true
		require.ErrorIs(t, other.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), ErrClientID, "%s: lenient about 0 alone", name)
		w.Reset(make([]byte, 8))
		(&Component{Protocol: p, SessionID: 1}).WritePrefix(w)
		require.NoError(t, other.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), name)
		other.Lenient = false
		require.ErrorIs(t, other.ReadPrefix(bitio.NewReader(w.Bytes(), w.Len())), ErrClientID, name)
	}
}

// TestAck: secret bit 1 and time -1 whatever the secret, as recorded; again for 10 s, and not after.
func TestAck(t *testing.T) {
	r := newRig(t, Unreal51(), 4, 0)
	r.client.Start(0)
	r.server.Receive(0, here, r.toSrv[0], nil)
	r.client.Receive(0, r.h.sent[0])
	response := r.toSrv[1]
	p := Unreal51()
	sent, err := p.Read(response, false)
	require.NoError(t, err)
	r.h.sent = nil
	r.server.Receive(0, here, response, nil)
	live := &Live{Cookie: r.h.accepted[0].Cookie, Since: time.Second, Timestamp: r.h.accepted[0].Timestamp}
	r.server.Receive(11*time.Second, here, response, live)
	require.Len(t, r.h.sent, 2)
	for _, b := range r.h.sent {
		ack, err := p.Read(b, true)
		require.NoError(t, err)
		require.Equal(t, Ack, ack.Type)
		require.True(t, ack.SecretID, "the response had %v", sent.SecretID)
		require.EqualValues(t, -1, ack.Timestamp)
	}
	r.server.Receive(11*time.Second+1, here, response, live)
	require.Len(t, r.h.sent, 2)
	require.EqualValues(t, 1, r.server.Counters.LateRepeat)
}

// TestLateResponseOfAnOlderChallenge: it ends no connection that came from a newer one, however late it is.
func TestLateResponseOfAnOlderChallenge(t *testing.T) {
	r := newRig(t, Unreal51(), 4, 0)
	var responses [2][]byte
	for i := range responses {
		now := time.Duration(i) * 6 * time.Second
		r.client.Start(now)
		r.server.Receive(now, here, r.toSrv[len(r.toSrv)-1], nil)
		r.client.Receive(now, r.h.sent[len(r.h.sent)-1])
		responses[i] = r.toSrv[len(r.toSrv)-1]
	}
	r.server.Receive(6*time.Second, here, responses[1], nil)
	live := &Live{r.h.accepted[0].Cookie, 6 * time.Second, r.h.accepted[0].Timestamp}
	for now := 7 * time.Second; now < 20*time.Second; now += time.Second {
		r.server.Receive(now, here, responses[0], live)
	}
	require.Len(t, r.h.accepted, 1)
	require.EqualValues(t, 13, r.server.Counters.LateRepeat)
	r.server.Receive(20*time.Second, here, responses[0], nil)
	require.Len(t, r.h.accepted, 2, "it is good otherwise")
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		ours     Protocol
		min, cur uint8
		fits     bool
	}{{Unreal51(), 1, 3, true}, {Unreal51(), 3, 4, true}, {Unreal51(), 4, 4, false}, {Unreal53(), 1, 3, false}, {Unreal53(), 3, 3, true}, {Unreal53(), 4, 3, false}} {
		require.Equal(t, c.fits, c.ours.fits(&Packet{MinVersion: c.min, CurVersion: c.cur}), "%+v", c)
	}
}

// TestRestartLimit: strangers get at most MaxRestarts requests a second, and half of them at once.
func TestRestartLimit(t *testing.T) {
	h := &testHandler{}
	s, err := NewServer(ServerConfig{Protocol: Unreal51(), Handler: h, MaxRestarts: 64})
	require.NoError(t, err)
	game := make([]byte, 60)
	for i := range 1000 {
		s.UnknownGame(time.Second, here, game)
		if i == 500 {
			require.Len(t, h.sent, 32)
		}
	}
	for i := range 1000 {
		s.UnknownGame(time.Second+time.Duration(i)*time.Millisecond, here, game)
	}
	require.Len(t, h.sent, 64)
	s.UnknownGame(2*time.Second, here, make([]byte, 1))
	s.UnknownGame(3*time.Second, here, game)
	require.Len(t, h.sent, 65)
}

// TestRestartAckWithFirstCookie: some servers answer a restart with the connection's first cookie.
func TestRestartAckWithFirstCookie(t *testing.T) {
	p := Unreal51()
	c, err := NewClient(ClientConfig{Protocol: p, Send: func([]byte) {}, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
	require.NoError(t, err)
	c.state, c.restart = SendingResponse, true
	c.result.Cookie, c.challenge.Cookie = Cookie{1}, Cookie{2}
	w := bitio.NewWriter(make([]byte, 128))
	p.Write(w, &Packet{Type: Ack, MinVersion: 1, CurVersion: 3, SecretID: true, Timestamp: -1, Cookie: Cookie{1}}, make([]byte, 8))
	c.Receive(0, w.Bytes())
	require.Equal(t, Done, c.State())
	require.Equal(t, Cookie{1}, c.Result().Cookie)
}

func FuzzServer(f *testing.F) {
	r := newRig(f, Unreal51(), 1, 0)
	r.client.Start(0)
	f.Add(uint8(3), r.toSrv[0])
	f.Add(uint8(0), []byte{7})
	f.Fuzz(func(t *testing.T, version uint8, b []byte) {
		h := &testHandler{}
		s, err := NewServer(ServerConfig{Protocol: fuzzed(version), Handler: h, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
		if err != nil {
			t.Fatal(err)
		}
		s.Receive(0, here, b, nil)
		s.UnknownGame(0, here, b)
		for _, a := range h.sent {
			if len(a) > len(b) {
				t.Fatalf("%d bytes answered with %d", len(b), len(a))
			}
		}
		if len(h.accepted) > 0 {
			t.Fatal("accepted without a challenge")
		}
	})
}

func FuzzClient(f *testing.F) {
	f.Add(uint8(3), []byte{7}, []byte{1})
	f.Fuzz(func(t *testing.T, version uint8, a, b []byte) {
		c, err := NewClient(ClientConfig{Protocol: fuzzed(version), Send: func([]byte) {}, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
		if err != nil {
			t.Fatal(err)
		}
		c.Start(0)
		c.Receive(0, a)
		c.Receive(time.Second, b)
		c.Tick(20 * time.Second)
	})
}

// fuzzed is a protocol for each value: the version, and for the newest whether it has features.
func fuzzed(version uint8) Protocol {
	p := Protocol{Version: version % 5}
	p.Features = version&8 != 0 && p.Version >= SessionClientID
	p.OriginalReplies = version&16 != 0
	return p
}

// TestValidate: each impossible setting is refused, by client and server.
func TestValidate(t *testing.T) {
	for _, p := range []Protocol{{Version: 5}, {Version: 1, MinVersion: 2}, {Version: 2, Features: true}, {MagicBits: 33}, {Magic: 4, MagicBits: 2}} {
		_, err := NewServer(ServerConfig{Protocol: p, Handler: &testHandler{}})
		require.ErrorIs(t, err, ErrConfig, "%+v", p)
		_, err = NewClient(ClientConfig{Protocol: p, Send: func([]byte) {}})
		require.ErrorIs(t, err, ErrConfig, "%+v", p)
	}
	for _, p := range []Protocol{{Version: SessionClientID, Features: true}, {Magic: 1 << 31, MagicBits: 32}, {Version: 4, MinVersion: 4}} {
		require.NoError(t, p.Validate(), "%+v", p)
	}
	_, err := NewServer(ServerConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewClient(ClientConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewClient(ClientConfig{Send: func([]byte) {}, Timeout: time.Nanosecond})
	require.ErrorIs(t, err, ErrConfig)
}

// TestRefusals: each reason of the server has its counter.
func TestRefusals(t *testing.T) {
	p := Unreal51()
	packet := func(pr Protocol, session, client uint8, pk Packet) []byte {
		w := bitio.NewWriter(make([]byte, maxPacket))
		pk.SessionID, pk.ClientID = session, client
		pr.Write(w, &pk, make([]byte, 8))
		return bytes.Clone(w.Bytes())
	}
	response := Packet{Type: Response, MinVersion: 1, CurVersion: 3, Timestamp: 1}
	forged, old := response, response
	forged.SecretID = true
	old.SecretID = true // and 60 s later
	for _, c := range []struct {
		name    string
		b       []byte
		counter func(c *ServerCounters) uint64
	}{
		{"empty", nil, func(c *ServerCounters) uint64 { return c.Malformed.Empty }},
		{"zero last byte", []byte{1, 0}, func(c *ServerCounters) uint64 { return c.Malformed.ZeroLastByte }},
		{"short", []byte{0x20, 1}, func(c *ServerCounters) uint64 { return c.Malformed.TooShort }},
		{"type", packet(p, 2, 5, Packet{Type: 77, MinVersion: 1, CurVersion: 3}), func(c *ServerCounters) uint64 { return c.Malformed.UnknownType }},
		{"first type that there isn't", packet(p, 2, 5, Packet{Type: types, MinVersion: 1, CurVersion: 3}), func(c *ServerCounters) uint64 { return c.Malformed.UnknownType }},
		{"a server's", packet(p, 2, 5, Packet{Type: Challenge, MinVersion: 1, CurVersion: 3, Timestamp: 1}), func(c *ServerCounters) uint64 { return c.WrongType }},
		{"version", packet(p, 2, 5, Packet{Type: Response, MinVersion: 4, CurVersion: 4, Timestamp: 1}), func(c *ServerCounters) uint64 { return c.WrongVersion }},
		{"session", packet(p, 1, 5, response), func(c *ServerCounters) uint64 { return c.WrongSession }},
		{"secret", packet(p, 2, 5, response), func(c *ServerCounters) uint64 { return c.WrongSecret }},
		{"cookie", packet(p, 2, 5, forged), func(c *ServerCounters) uint64 { return c.BadCookie }},
		{"old", packet(p, 2, 5, old), func(c *ServerCounters) uint64 { return c.Expired }},
	} {
		h := &testHandler{}
		s, err := NewServer(ServerConfig{Protocol: p, Handler: h, SessionID: 2, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
		require.NoError(t, err)
		at := 2 * time.Second
		if c.name == "old" {
			at = time.Minute
		}
		s.Receive(at, here, c.b, nil)
		require.EqualValues(t, 1, c.counter(&s.Counters), "%s: %+v", c.name, s.Counters)
		require.Empty(t, h.sent, c.name)
		require.Empty(t, h.accepted, c.name)
	}
}

// TestOriginalReplies: a restart request and an Ack in the form of version 0 are understood by a client of
// version 3 that was told so, and only by such a one.
func TestOriginalReplies(t *testing.T) {
	v0 := Unreal427()
	w := bitio.NewWriter(make([]byte, maxPacket))
	v0.Write(w, &Packet{Type: RestartHandshake, Restart: true}, nil)
	request := bytes.Clone(w.Bytes())
	w = bitio.NewWriter(make([]byte, maxPacket))
	v0.Write(w, &Packet{Type: Ack, SecretID: true, Timestamp: -1, Cookie: Cookie{9}}, nil)
	ack := bytes.Clone(w.Bytes())
	for _, liberal := range []bool{true, false} {
		p := Unreal51()
		p.OriginalReplies = liberal
		sent := 0
		c, err := NewClient(ClientConfig{Protocol: p, Send: func([]byte) { sent++ }, Rand: seeded{rand.New(rand.NewPCG(1, 1))}})
		require.NoError(t, err)
		c.state, c.challenge.Cookie = SendingResponse, Cookie{9}
		c.Receive(0, ack)
		if !liberal {
			require.Equal(t, SendingResponse, c.State())
			continue
		}
		require.Equal(t, Done, c.State())
		c.Receive(11*time.Second, request)
		require.Equal(t, 1, sent, "%+v", c.Counters)
		require.Equal(t, SendingInitial, c.State())
	}
}

// TestIDsWrap: session and client ids count modulo 4 and 8.
func TestIDsWrap(t *testing.T) {
	h := &testHandler{}
	s, err := NewServer(ServerConfig{Protocol: Unreal51(), Handler: h, SessionID: 6})
	require.NoError(t, err)
	var c *Client
	c, err = NewClient(ClientConfig{Protocol: Unreal51(), ClientID: 13, Send: func(b []byte) { s.Receive(time.Second, here, bytes.Clone(b), nil) }})
	require.NoError(t, err)
	c.Start(time.Second)
	for i := 0; i < len(h.sent); i++ {
		c.Receive(time.Second, h.sent[i])
	}
	require.Equal(t, Done, c.State(), "%+v, %+v", c.Counters, s.Counters)
	require.EqualValues(t, 2, c.Result().SessionID)
	require.EqualValues(t, 5, c.Result().ClientID)
	require.EqualValues(t, 5, h.accepted[0].ClientID)
}

// TestOlderServer: a client answers a challenge in the version of the server that made it.
func TestOlderServer(t *testing.T) {
	ours := Protocol{Version: NetCLUpgradeMessage, MinVersion: SessionClientID}
	c, sent := lone(t, ClientConfig{Protocol: ours})
	c.Start(0)
	require.Equal(t, NetCLUpgradeMessage, (*sent)[0].CurVersion)
	theirs := Protocol{Version: SessionClientID, MinVersion: SessionClientID}
	c.Receive(0, write(theirs, Packet{Type: Challenge, MinVersion: 3, CurVersion: 3, Timestamp: 1}))
	require.Len(t, *sent, 2)
	require.Equal(t, SessionClientID, (*sent)[1].CurVersion)
}

// TestOriginalRepliesAreToldApart: by size, timestamp and terminator; a challenge without a cookie is a restart request. Nothing else of
// a server, and nothing of a client, is taken for one.
func TestOriginalRepliesAreToldApart(t *testing.T) {
	p, v0 := Unreal51(), Unreal427()
	p.Magic, p.MagicBits, v0.Magic, v0.MagicBits = 0x5, 3, 0x5, 3
	bits := func(n int, pr Protocol, pk Packet) []byte { // the first n bits of a packet, all when 0
		w := bitio.NewWriter(make([]byte, maxPacket))
		pr.Write(w, &pk, nil)
		if n == 0 {
			return w.Bytes()
		}
		cut := bitio.NewWriter(make([]byte, maxPacket))
		cut.WriteBitsFrom(w.Bytes(), 0, n)
		cut.WriteBool(true)
		return cut.Bytes()
	}
	const header = 3 + 5 + 1 + 1 + 4*8 + 32
	restart := Packet{Type: Challenge, Restart: true, MinVersion: 1, CurVersion: 3, Timestamp: 1}
	response := restart
	response.Type = Response
	plain := restart
	plain.Restart = false
	for _, c := range []struct {
		name       string
		b          []byte
		fromServer bool
		want       Type
		err        error
	}{
		{"request of version 0", bits(0, v0, Packet{Type: RestartHandshake, Restart: true}), true, RestartHandshake, nil},
		{"the same from a client", bits(0, v0, Packet{Type: RestartHandshake, Restart: true}), false, 0, ErrShort},
		{"without the restart bit", bits(0, v0, Packet{Type: RestartHandshake}), true, 0, ErrShort},
		{"ack of version 0", bits(0, v0, Packet{Type: Ack, Timestamp: -1}), true, Ack, nil},
		{"of another time", bits(0, v0, Packet{Type: Ack, Timestamp: -2}), true, 0, ErrGame},
		{"challenge of version 0", bits(0, v0, Packet{Type: Challenge, Timestamp: 7}), true, 0, ErrGame},
		{"challenge without a cookie", bits(header, p, restart), true, RestartHandshake, nil},
		{"the same from a client", bits(header, p, restart), false, 0, ErrShort},
		{"the same without the restart bit", bits(header, p, plain), true, 0, ErrShort},
		{"challenge with a cookie", bits(header+cookieBits, p, restart), true, Challenge, nil},
		{"response without a cookie", bits(header, p, response), true, 0, ErrShort},
	} {
		pk, err := p.Read(c.b, c.fromServer)
		if c.err != nil {
			require.Error(t, err, "%s: %+v", c.name, pk)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, pk.Type, c.name)
	}
	p.OriginalReplies = false
	_, err := p.Read(bits(header, p, restart), true)
	require.ErrorIs(t, err, ErrShort, "only for who asked for it")
}

// TestNetworkVersions: each end hears the other's network version.
func TestNetworkVersions(t *testing.T) {
	ours, theirs := Unreal53(), Unreal53()
	ours.NetworkVersion, theirs.NetworkVersion = 7, 9
	r := newRig(t, ours, 1, 0)
	r.client.cfg.Protocol = theirs
	r.client.Start(0)
	for range 5 {
		r.step(time.Millisecond)
	}
	require.Equal(t, Done, r.client.State())
	require.EqualValues(t, 7, r.client.Result().NetworkVersion)
	require.EqualValues(t, 9, r.h.accepted[0].NetworkVersion)
}
