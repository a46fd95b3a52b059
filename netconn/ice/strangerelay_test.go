package ice

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
	"github.com/stretchr/testify/require"
)

// TestLongByRelay: a datagram that is longer than the game's, which anybody may send to a relay's address from a machine that it lets in, is lost, and nothing else.
func TestLongByRelay(t *testing.T) {
	r := &restarting{}
	cfg := r.server(t)
	t.Cleanup(r.start(t))
	g := newGame(t, HostConfig{Config: cfg}, nil)
	p := g.dial(join(t, g.host, cfg), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 && p.conn != nil })
	at := g.host.Candidates()[0]
	stranger, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at.Addr))
	require.NoError(t, err)
	defer stranger.Close()
	before := g.host.Counters()
	for _, size := range []int{1501, 1502, 1600, 9000, 60000} {
		_, err := stranger.Write(make([]byte, size))
		require.NoError(t, err)
	}
	_, err = stranger.Write([]byte{1})
	require.NoError(t, err)
	g.until("the short one has come", func() bool { return g.host.Counters().Strangers > before.Strangers })
	g.echoes()
	require.Zero(t, g.host.Counters().RelaysLost)
	require.Equal(t, []Candidate{at}, g.host.Candidates())
}

// TestNotTheRelay: who isn't the relay ends nothing and says nothing in its name, by sending to the port that this end asks it from.
func TestNotTheRelay(t *testing.T) {
	r := &restarting{}
	cfg := r.server(t)
	t.Cleanup(r.start(t))
	g := newGame(t, HostConfig{Config: cfg}, nil)
	p := g.dial(join(t, g.host, cfg), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 && p.conn != nil })
	at := g.host.Candidates()
	stranger, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer stranger.Close()
	brief, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassSuccessResponse), stun.RawAttribute{Type: stun.AttrLifetime, Value: make([]byte, 4)})
	require.NoError(t, err)
	_, guest := p.socket.Path()
	data, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodData, stun.ClassIndication),
		&indication{net.UDPAddr{IP: guest.Addr().AsSlice(), Port: int(guest.Port())}, []byte("hello")})
	require.NoError(t, err)
	var to []net.Addr
	r.mu.Lock()
	for known := range r.known {
		to = append(to, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(known)))
	}
	r.mu.Unlock()
	before, received := g.host.Counters().Strangers+p.socket.Counters().Strangers, g.host.Counters().Received+p.socket.Counters().Received
	for _, a := range to {
		for _, m := range [][]byte{brief.Raw, data.Raw, {1}} {
			_, err := stranger.WriteTo(m, a)
			require.NoError(t, err)
		}
	}
	want := before + uint64(3*len(to))
	eventually(t, "they are strangers'", func() bool { return g.host.Counters().Strangers+p.socket.Counters().Strangers >= want })
	require.Equal(t, received, g.host.Counters().Received+p.socket.Counters().Received)
	g.echoes()
	require.Zero(t, g.host.Counters().RelaysLost+p.socket.Counters().RelaysLost)
	require.Equal(t, at, g.host.Candidates())
}

// answers is what a made-up relay says to a request; nil is nothing.
func answers(m *stun.Message, relayed netip.AddrPort) []stun.Setter {
	says := []stun.Setter{m, stun.NewType(m.Type.Method, stun.ClassSuccessResponse), stun.RawAttribute{Type: stun.AttrLifetime, Value: []byte{0, 0, 2, 0}}}
	switch {
	case m.Type.Class != stun.ClassRequest:
		return nil
	case m.Type.Method == stun.MethodAllocate && !m.Contains(stun.AttrMessageIntegrity):
		return []stun.Setter{m, stun.NewType(m.Type.Method, stun.ClassErrorResponse), stun.CodeUnauthorized, stun.NewRealm("test"), stun.NewNonce("nonce")}
	case m.Type.Method == stun.MethodAllocate:
		says = append(says, relayedAddress(relayed))
	}
	return says
}

// TestDeafRelay: a relay by TCP that goes on talking, and doesn't read any more, is lost, and keeps nobody from closing.
func TestDeafRelay(t *testing.T) {
	impatient(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	relayed := netip.MustParseAddrPort("127.0.0.1:50000")
	var deaf atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		pc := turn.NewSTUNConn(c)
		p := make([]byte, 64<<10)
		for !deaf.Load() {
			k, _, err := pc.ReadFrom(p)
			m := stun.Message{Raw: p[:k]}
			if err != nil || m.Decode() != nil {
				return
			}
			if says := answers(&m, relayed); says != nil {
				answer, err := stun.Build(says...)
				if err == nil {
					_, _ = c.Write(answer.Raw)
				}
			}
		}
		_ = l.Close() // it is asked for no other address
		data, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodData, stun.ClassIndication), &indication{net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4000}, []byte("hello")})
		for err == nil && ctx.Err() == nil {
			_, err = c.Write(data.Raw)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	cfg := local()
	cfg.RelayOnly, cfg.Servers = true, []Server{{URL: "turn:" + l.Addr().String() + "?transport=tcp", Username: "ann", Password: "secret"}}
	h, err := Listen(HostConfig{Config: cfg})
	require.NoError(t, err)
	eventually(t, "it is a relay", func() bool { return slices.Contains(h.Candidates(), Candidate{Relayed, relayed}) })
	h.mu.Lock()
	b := h.bases[0]
	h.mu.Unlock()
	to := netip.MustParseAddrPort("127.0.0.1:4000")
	deaf.Store(true)
	eventually(t, "it is lost", func() bool {
		b.write(make([]byte, 1400), to)
		return h.Counters().RelaysLost > 0
	})
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
	stop()
	<-done
}

// TestWanderingAddress: a STUN server that names another address each time has nobody lose its relay. When the relay sees this end elsewhere too, another address is asked for.
func TestWanderingAddress(t *testing.T) {
	was := askAgain
	t.Cleanup(func() { askAgain = was })
	askAgain = 20 * time.Millisecond
	var asked atomic.Int64
	pc, _ := stunServer(t, func(*stun.Message) []stun.Setter {
		n := asked.Add(1)
		return []stun.Setter{stun.BindingSuccess, &stun.XORMappedAddress{IP: net.IPv4(203, 0, byte(n>>8), byte(n)), Port: 5000}}
	})
	defer pc.Close()
	r := &restarting{}
	cfg := r.server(t)
	t.Cleanup(r.start(t))
	cfg.RelayOnly = false
	cfg.Servers = append(cfg.Servers, Server{URL: "stun:" + pc.LocalAddr().String()})
	h := newHost(t, HostConfig{Config: cfg})
	relayed := func() (all []Candidate) {
		for _, c := range h.Candidates() {
			if c.Kind == Relayed {
				all = append(all, c)
			}
		}
		return all
	}
	eventually(t, "it has a relay", func() bool { return len(relayed()) == 1 })
	first, before := relayed(), asked.Load()
	eventually(t, "it was told 50 addresses", func() bool { return asked.Load() > before+50 })
	require.Zero(t, h.Counters().RelaysLost)
	require.Equal(t, first, relayed())

	r.elsewhere.Store(true)
	eventually(t, "it has another one", func() bool { now := relayed(); return len(now) == 1 && now[0] != first[0] })
	require.NotZero(t, h.Counters().RelaysLost)
}

// TestToldAfterItsChecks: only what is sealed goes to a player's relay, also when the relay's address was found by checks from there before the player told it.
func TestToldAfterItsChecks(t *testing.T) {
	n, err := newNode(local())
	require.NoError(t, err)
	s, err := newSession(n, false)
	require.NoError(t, err)
	s.done = func(error) {}
	at := netip.MustParseAddrPort("127.0.0.1:5000")
	n.mu.Lock()
	r := route{n.direct, at}
	to := s.remote(r)
	to.consent = n.now()
	s.now.Store(s.use(r, to))
	s.uncounted = true
	n.mu.Unlock()
	plain := []byte("hello")
	require.Len(t, s.send(nil, plain, n.now()), 1)
	require.NoError(t, s.add(Candidate{Relayed, at}))
	require.Empty(t, s.send(nil, plain, n.now()))
	require.EqualValues(t, 1, n.n.unsealed.Load())
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{n.n.relayed.Load(), n.n.routed.Load()}, "and it is counted as one")
	s.wg.Done()
	s.end(net.ErrClosed)
	require.NoError(t, n.close())
}
