package ice

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// liar is a guest made by hand: it has told the host its name, and knows the host's.
type liar struct {
	t       testing.TB
	sig     *wire
	host    Message
	to      netip.AddrPort
	sockets []*net.UDPConn
	joined  chan error
}

const liarName, liarPassword = "liar", "0123456789012345678901"

func newLiar(t testing.TB, h *Host, candidates ...Candidate) *liar {
	a, b := wires()
	l := &liar{t: t, sig: a, to: h.Addr(), joined: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.joined <- h.Join(ctx, b)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		for _, s := range l.sockets {
			_ = s.Close()
		}
	})
	require.NoError(t, a.Send(ctx, Message{Ufrag: liarName, Password: liarPassword, Candidates: candidates}))
	var err error
	l.host, err = a.Receive(ctx)
	require.NoError(t, err)
	return l
}

func (l *liar) socket() *net.UDPConn {
	s, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(l.to))
	require.NoError(l.t, err)
	l.sockets = append(l.sockets, s)
	return s
}

// ask is a check, signed with a password.
func (l *liar) ask(ufrag, password string) []byte {
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(ufrag+":"+liarName), stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{1, 2, 3, 4}},
		stun.RawAttribute{Type: stun.AttrICEControlling, Value: make([]byte, 8)}, stun.NewShortTermIntegrity(password), stun.Fingerprint)
	require.NoError(l.t, err)
	return m.Raw
}

// TestThirdParty: however many guests name the address of somebody else as their own, it gets 60 checks at once and 20 a second; none goes to a
// port of the system's services.
func TestThirdParty(t *testing.T) {
	t.Parallel()
	victim, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer victim.Close()
	port := victim.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	var named []Candidate
	for i := range MaxCandidates {
		ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		c := Candidate{OnHost, netip.AddrPortFrom(ip, port)}
		if i > 0 {
			c.Addr = netip.AddrPortFrom(ip, uint16(20000+i))
		}
		named = append(named, c)
	}
	cfg := HostConfig{Config: local()}
	cfg.ConnectTime = 2 * time.Second
	h := newHost(t, cfg)
	began := time.Now()
	for i := range 10 {
		named[2].Addr = netip.AddrPortFrom(named[2].Addr.Addr(), []uint16{53, 123, 0}[i%3])
		newLiar(t, h, named...)
	}
	eventually(t, "none finds a way", func() bool { return h.Counters().NoWay == 10 })
	took := time.Since(began)
	n := h.Counters()
	require.EqualValues(t, 10, n.BadCandidates)
	require.NotZero(t, n.Held)
	got := 0
	require.NoError(t, victim.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	for p := make([]byte, 1500); ; got++ {
		k, _, err := victim.ReadFrom(p)
		if err != nil {
			break
		}
		require.LessOrEqual(t, k, 200)
	}
	require.Positive(t, got)
	require.LessOrEqual(t, float64(got), checkBurst+checkRate*took.Seconds())
}

// TestNamesAnotherGuest: a guest that names another one's address as its own gets nothing of it, and disturbs nothing.
func TestNamesAnotherGuest(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	good := join(t, h, local())
	from := hello(t, h, good)
	l := newLiar(t, h, Candidate{OnHost, good.LocalAddr()}, Candidate{Reflexive, good.LocalAddr()})
	eventually(t, "the good guest is asked", func() bool { return good.Counters().Strangers > 5 })
	require.Equal(t, from, hello(t, h, good))
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	eventually(t, "it gets an answer", func() bool {
		_, err := h.WriteBatch([]udp.Message{{Buf: []byte("answer"), Addr: from}})
		require.NoError(t, err)
		n, err := good.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1
	})
	select {
	case err := <-l.joined:
		t.Fatal("the liar has a way: ", err)
	default:
	}
}

// TestManyAddresses: a guest that sends checks from hundreds of addresses is known at 48 at most; more are counted.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	h := newHost(t, HostConfig{Config: local()})
	l := newLiar(t, h)
	for i := range 4 * maxAddrs {
		_, err := l.socket().Write(l.ask(l.host.Ufrag, l.host.Password))
		require.NoError(t, err)
		if i%20 == 19 {
			time.Sleep(250 * time.Millisecond) // within its rate
		}
	}
	eventually(t, "counted", func() bool { return h.Counters().TooManyAddrs > 0 })
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		require.LessOrEqual(t, len(s.remotes), maxAddrs)
		require.Empty(t, h.routes, "an address is its own once it has answered")
	}
}

// TestForged: checks that nobody signed, answers that nobody asked for and datagrams from strangers are counted, and nothing is sent to who sent them.
func TestForged(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	l := newLiar(t, h)
	s := l.socket()
	counts := func() [2]uint64 { n := h.Counters(); return [2]uint64{n.Strangers, n.Forged} }
	answer, err := stun.Build(stun.TransactionID, stun.BindingSuccess, stun.Fingerprint)
	require.NoError(t, err)
	for _, c := range []struct {
		p    []byte
		want [2]uint64
	}{
		{l.ask("nobody", l.host.Password), [2]uint64{1, 0}},
		{l.ask(l.host.Ufrag, "guessed"), [2]uint64{1, 1}},
		{answer.Raw, [2]uint64{2, 1}},
		{[]byte("hello"), [2]uint64{3, 1}},
		{l.ask(l.host.Ufrag, l.host.Password)[:60], [2]uint64{4, 1}},
	} {
		_, err := s.Write(c.p)
		require.NoError(t, err)
		eventually(t, "counted", func() bool { return counts() == c.want })
	}
	require.NoError(t, s.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	_, err = s.Read(make([]byte, 1500))
	require.Error(t, err, "nothing was sent")
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n, err := h.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestTooFast: a guest's checks beyond 100 a second aren't looked at.
func TestTooFast(t *testing.T) {
	t.Parallel()
	h := newHost(t, HostConfig{Config: local()})
	l := newLiar(t, h)
	s := l.socket()
	eventually(t, "counted", func() bool {
		for range 200 {
			_, err := s.Write(l.ask(l.host.Ufrag, l.host.Password))
			require.NoError(t, err)
		}
		return h.Counters().TooFast > 200
	})
	join(t, h, local()) // others aren't disturbed
}

// TestBadMessages: a message beyond its bounds is an error at who got it, with what is wrong, and ends the attempt.
func TestBadMessages(t *testing.T) {
	many := Message{Ufrag: liarName, Password: liarPassword}
	for i := range MaxCandidates + 1 {
		many.Candidates = append(many.Candidates, Candidate{OnHost, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(2000+i))})
	}
	full, err := many.Append(nil)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"no JSON": "x", "empty": "", "too long": strings.Repeat("x", MaxMessage+1), "a short ufrag": `{"ufrag":"abc","password":"` + liarPassword + `"}`,
		"no password": `{"ufrag":"abcd"}`, "a colon": `{"ufrag":"ab:cd","password":"` + liarPassword + `"}`, "a kind": `{"candidates":["prflx 10.0.0.1:2000"]}`,
		"an address": `{"candidates":["host example.com:2000"]}`, "no kind": `{"candidates":["10.0.0.1:2000"]}`, "too many": string(full),
		"a line feed": "{\"ufrag\":\"ab\\ncd\",\"password\":\"" + liarPassword + "\"}",
	} {
		_, err := ParseMessage([]byte(text))
		require.ErrorIs(t, err, ErrMessage, name)
	}
	_, err = Message{Password: strings.Repeat("x", MaxMessage)}.Append(nil)
	require.ErrorIs(t, err, ErrMessage)

	h := newHost(t, HostConfig{Config: local()})
	for _, first := range []Message{{}, many, {Candidates: many.Candidates[:1]}} {
		a, b := wires()
		text, err := first.Append(nil)
		require.NoError(t, err)
		a.out <- text
		err = h.Join(context.Background(), b)
		require.ErrorIs(t, err, ErrNoWay)
		require.ErrorIs(t, err, ErrMessage)
	}
	require.Zero(t, h.Len())
}

// TestMessage: what is appended is parsed.
func TestMessage(t *testing.T) {
	m := Message{Ufrag: liarName, Password: liarPassword, Candidates: []Candidate{{OnHost, netip.MustParseAddrPort("192.168.1.7:50000")},
		{Reflexive, netip.MustParseAddrPort("[2001:db8::1]:50000")}, {Relayed, netip.MustParseAddrPort("203.0.113.9:60000")}}}
	text, err := m.Append(nil)
	require.NoError(t, err)
	require.Equal(t, `{"ufrag":"liar","password":"0123456789012345678901","candidates":["host 192.168.1.7:50000","reflexive [2001:db8::1]:50000","relayed 203.0.113.9:60000"]}`, string(text))
	got, err := ParseMessage(text)
	require.NoError(t, err)
	require.Equal(t, m, got)
}

// TestAcceptable says where checks go.
func TestAcceptable(t *testing.T) {
	for addr, want := range map[string]bool{"192.0.2.1:1024": true, "192.0.2.1:1023": false, "192.0.2.1:0": false, "10.0.0.1:5000": true, "127.0.0.1:5000": false,
		"224.0.0.1:5000": false, "255.255.255.255:5000": false, "0.0.0.0:5000": false, "169.254.1.1:5000": false, "[::1]:5000": false, "[ff02::1]:5000": false,
		"[fe80::1%eth0]:5000": false, "[2001:db8::1]:5000": true, "[2001:db8::1%ice.1]:5000": false} {
		require.Equal(t, want, acceptable(netip.MustParseAddrPort(addr), false), addr)
	}
	require.True(t, acceptable(netip.MustParseAddrPort("127.0.0.1:5000"), true))
	require.False(t, acceptable(netip.AddrPort{}, true))
}

// addrs has the machine be in these networks.
func addrs(t *testing.T, list ...string) {
	was := interfaceAddrs
	t.Cleanup(func() { interfaceAddrs = was })
	interfaceAddrs = func() (all []net.Addr, err error) {
		for _, a := range list {
			ip, network, err := net.ParseCIDR(a)
			require.NoError(t, err)
			all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return all, nil
	}
}

// TestBroadcast: a player can't have all machines of a network checked.
func TestBroadcast(t *testing.T) {
	addrs(t, "192.168.1.7/24", "10.1.2.3/9", "172.16.0.1/31", "172.17.0.1/32", "2001:db8::1/64")
	for ip, want := range map[string]bool{"192.168.1.255": true, "192.168.1.0": true, "192.168.1.8": false, "192.168.2.255": false, "10.127.255.255": true, "10.255.255.255": false, "10.0.0.0": true,
		"172.16.0.0": false, "172.16.0.1": false, "172.17.0.1": false, "2001:db8::": false} {
		require.Equal(t, want, broadcast(netip.MustParseAddr(ip)), ip)
	}
	h := newHost(t, HostConfig{Config: local()})
	a, b := wires()
	text, err := Message{Ufrag: liarName, Password: liarPassword, Candidates: []Candidate{{OnHost, netip.MustParseAddrPort("192.168.1.255:5000")}}}.Append(nil)
	require.NoError(t, err)
	a.out <- text
	ctx, cancel := context.WithCancel(t.Context())
	joined := make(chan error)
	go func() { joined <- h.Join(ctx, b) }()
	eventually(t, "it is refused", func() bool { return h.Counters().BadCandidates == 1 })
	cancel()
	require.Error(t, <-joined)
}

// TestServersOfOthers: what a rendezvous names as a STUN or TURN server isn't this machine, or all of a network, unless Loopback is set.
func TestServersOfOthers(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	for at, want := range map[string]bool{"127.0.0.1": false, "[::1]": false, "169.254.169.254": false, "224.0.0.1": false, "255.255.255.255": false, "0.0.0.0": false, "192.0.2.1": true, "10.0.0.1": true} {
		u, err := stun.ParseURI("stun:" + at + ":3478")
		require.NoError(t, err)
		h.node.cfg.Loopback = false
		_, err = h.node.resolve(u)
		require.Equal(t, want, err == nil, "%s: %v", at, err)
		h.node.cfg.Loopback = true
		_, err = h.node.resolve(u)
		require.Equal(t, want || at == "127.0.0.1" || at == "[::1]", err == nil, "%s: %v", at, err)
	}
}

// TestVanish: who goes amid joining leaves nothing behind, and the other one is told.
func TestVanish(t *testing.T) {
	t.Parallel()
	cfg := HostConfig{Config: local()}
	cfg.ConnectTime = 500 * time.Millisecond
	h := newHost(t, cfg)
	a, b := wires()
	a.close()
	require.ErrorIs(t, h.Join(context.Background(), b), ErrNoWay)

	l := newLiar(t, h) // it never asks anything
	err := <-l.joined
	require.ErrorIs(t, err, ErrNoWay)
	require.Contains(t, err.Error(), "need a relay")
	l = newLiar(t, h)
	l.sig.close()
	err = <-l.joined
	require.ErrorIs(t, err, ErrNoWay)
	require.Contains(t, err.Error(), "the other player went")

	ctx, stop := context.WithCancel(context.Background())
	a, b = wires()
	time.AfterFunc(10*time.Millisecond, stop)
	require.ErrorIs(t, h.Join(ctx, b), context.Canceled)
	require.Zero(t, h.Len())

	c, err := Dial(context.Background(), a, cfg.Config) // nobody answers
	require.NoError(t, err)
	defer c.Close()
	require.ErrorIs(t, c.Connected(context.Background()), ErrNoWay)
	_, err = c.ReadBatch(make([]udp.Message, 1))
	require.ErrorIs(t, err, ErrNoWay)
	_, err = c.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: HostAddr()}})
	require.ErrorIs(t, err, ErrNoWay)
	require.EqualValues(t, 1, c.Counters().NoWay)
	require.EqualValues(t, 4, h.Counters().NoWay)
}

// TestFull: guests beyond MaxGuests and MaxConnecting are refused at once, and those that show no token make room.
func TestFull(t *testing.T) {
	h := newHost(t, HostConfig{Config: local(), MaxGuests: 2, MaxConnecting: 1})
	newLiar(t, h)
	_, b := wires()
	require.ErrorIs(t, h.Join(context.Background(), b), ErrFull, "one is connecting")
	g := newHost(t, HostConfig{Config: local(), MaxGuests: 2, HalfOpen: patience, Idle: 2 * patience})
	join(t, g, local())
	c := join(t, g, local())
	require.ErrorIs(t, g.Join(context.Background(), b), ErrFull)
	silent(g, patience+time.Second)
	eventually(t, "unanswered ones go", func() bool { return g.Len() == 0 })
	require.EqualValues(t, 2, g.Counters().Unanswered)
	require.EqualValues(t, 1, g.Counters().Full)
	path, _ := c.Path()
	require.Equal(t, Direct, path, "it hears of it when nothing is answered any more")
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Join(context.Background(), b), net.ErrClosed)
}

// TestUnread: what one guest sends beyond its share of what waits is lost, and another's arrives.
func TestUnread(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	flood, good := join(t, h, local()), join(t, h, local())
	eventually(t, "lost", func() bool {
		_, err := flood.WriteBatch([]udp.Message{{Buf: []byte("flood"), Addr: HostAddr()}})
		require.NoError(t, err)
		return h.Counters().Unread > 100
	})
	require.NoError(t, flood.Close())
	in := make([]udp.Message, 64)
	for i := range in {
		in[i].Buf = make([]byte, 1500)
	}
	eventually(t, "the other's", func() bool {
		_, err := good.WriteBatch([]udp.Message{{Buf: []byte("good"), Addr: HostAddr()}})
		require.NoError(t, err)
		n, err := h.TryReadBatch(in)
		require.NoError(t, err)
		for i := range in[:n] {
			if string(in[i].Data()) == "good" {
				return true
			}
		}
		return false
	})
}

// TestSettings: what can't work is refused, with what to do.
func TestSettings(t *testing.T) {
	for _, c := range []Config{{RelayOnly: true}, {Servers: make([]Server, maxServers+1)}, {Servers: []Server{{URL: "http://x"}}}, {Servers: []Server{{URL: "stuns:x"}}},
		{Servers: []Server{{URL: "turn:x"}}}, {Servers: []Server{{URL: "turns:x?transport=udp", Username: "a", Password: "b"}}}, {ConnectTime: -1}} {
		_, err := Listen(HostConfig{Config: c})
		require.ErrorIs(t, err, ErrConfig, fmt.Sprint(c))
		_, err = Dial(context.Background(), nil, c)
		require.ErrorIs(t, err, ErrConfig)
	}
	_, err := Listen(HostConfig{MaxGuests: -1})
	require.ErrorIs(t, err, ErrConfig)
	require.Equal(t, []string{"none", "direct", "through the router", "relayed", "Path(9)"}, []string{NoPath.String(), Direct.String(), Routed.String(), ByRelay.String(), Path(9).String()})
}

// TestAllocs: datagrams in a steady state take no memory.
func TestAllocs(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	c := join(t, h, local())
	from := hello(t, h, c)
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	out, back := []udp.Message{{Buf: make([]byte, 200), Addr: HostAddr()}}, []udp.Message{{Buf: make([]byte, 200), Addr: from}}
	pass := func(from, to udp.Socket, msgs []udp.Message) {
		if _, err := from.WriteBatch(msgs); err != nil {
			t.Error(err)
		}
		for {
			if n, err := to.TryReadBatch(in); n > 0 || err != nil {
				return
			}
			time.Sleep(10 * time.Microsecond)
		}
	}
	allocs := 1.0
	for i := 0; i < 500 && allocs > 0; i++ { // the agents' checks, once a second, are in some of these, on a machine without time in many
		allocs = testing.AllocsPerRun(5, func() {
			pass(c, h, out)
			pass(h, c, back)
		})
	}
	require.Zero(t, allocs)
}

// FuzzMessage: what is parsed is within bounds, and is the same when it is written and parsed again.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"ufrag":"liar","password":"0123456789012345678901","candidates":["host 192.168.1.7:50000"]}`))
	f.Add([]byte(`{"candidates":["relayed [::1]:1"]}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := ParseMessage(p)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(m.Candidates), MaxCandidates)
		text, err := m.Append(nil)
		require.NoError(t, err)
		again, err := ParseMessage(text)
		require.NoError(t, err)
		require.Equal(t, len(m.Candidates), len(again.Candidates))
		require.Equal(t, m.Ufrag, again.Ufrag)
	})
}

// FuzzReceive: whatever comes to the socket, nothing of it is a session's.
func FuzzReceive(f *testing.F) {
	h, err := Listen(HostConfig{Config: local()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, h.Close()) })
	ask, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername("a:b"), stun.NewShortTermIntegrity("x"), stun.Fingerprint)
	require.NoError(f, err)
	f.Add(ask.Raw)
	f.Add([]byte{1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	from := netip.MustParseAddrPort("192.0.2.7:5000")
	f.Fuzz(func(t *testing.T, p []byte) {
		h.receive(h.direct, p, from)
		require.Empty(t, h.routes)
		require.Zero(t, h.Counters().Received)
	})
}

// TestGuestsAtOnce: MaxGuests holds for guests that come at the same moment too.
func TestGuestsAtOnce(t *testing.T) {
	const joins, most = 12, 2
	h := newHost(t, HostConfig{Config: local(), MaxGuests: most})
	for range 100 {
		ctx, stop := context.WithCancel(t.Context())
		begin, results := make(chan struct{}), make(chan error, joins)
		for range joins {
			go func() {
				_, b := wires()
				<-begin
				results <- h.Join(ctx, b)
			}()
		}
		close(begin)
		for range joins - most {
			assert.ErrorIs(t, <-results, ErrFull)
		}
		stop()
		for range most {
			assert.ErrorIs(t, <-results, ErrNoWay)
		}
		if t.Failed() {
			return
		}
	}
}

// TestNamedBeforeItIsRead: a guest has its address before any datagram of its can be read, which would seem to come from nowhere.
func TestNamedBeforeItIsRead(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	a, b := wires()
	ctx, stop := context.WithCancel(context.Background())
	joined := make(chan error, 1)
	go func() { joined <- h.Join(ctx, b) }()
	early, named := -1, make(chan struct{})
	eventually(t, "it looks for a path", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for s := range h.all {
			name := s.named
			s.named = func(from netip.AddrPort) { // h.mu is held
				early = len(h.routes)
				name(from)
				close(named)
			}
		}
		return len(h.all) == 1
	})
	c, err := Dial(ctx, a, local())
	require.NoError(t, err)
	<-named
	require.NoError(t, <-joined)
	require.Zero(t, early)
	require.True(t, h.Has(hello(t, h, c)))
	require.NoError(t, c.Close())
	stop()
}

// TestCandidatesBeforeChecks: a session knows the other player's addresses before it looks at checks, so that one of an interface isn't taken for a router's.
func TestCandidatesBeforeChecks(t *testing.T) {
	n, err := newNode(local())
	require.NoError(t, err)
	s, err := newSession(n, false)
	require.NoError(t, err)
	s.done = func(error) {}
	from := Candidate{OnHost, netip.MustParseAddrPort("127.0.0.1:5000")}
	m := Message{Ufrag: "abcdefgh", Password: "abcdefghijklmnopqrstuvwx", Candidates: []Candidate{from}}
	_, err = s.agent.StartAccept(m.Ufrag, m.Password) // it can't be started again
	require.NoError(t, err)
	a, b := wires()
	require.NoError(t, a.Send(t.Context(), m))
	require.ErrorIs(t, s.hear(t.Context(), b), ice.ErrMultipleStart)
	require.Equal(t, []Candidate{from}, s.candidates)
	s.wg.Done()
	s.end(net.ErrClosed)
	require.NoError(t, n.close())
}

// TestClosesAmidJoins: a host that closes while guests come waits for all that it began.
func TestClosesAmidJoins(t *testing.T) {
	for i := range 50 {
		h, err := Listen(HostConfig{Config: local()})
		require.NoError(t, err)
		var joins sync.WaitGroup
		for range 4 {
			_, b := wires()
			joins.Go(func() { assert.ErrorIs(t, h.Join(context.Background(), b), net.ErrClosed) })
		}
		time.Sleep(time.Duration(i%10) * 100 * time.Microsecond)
		require.NoError(t, h.Close())
		h.mu.Lock()
		require.Zero(t, h.connecting)
		h.mu.Unlock()
		joins.Wait()
	}
}

// TestForgedFlood: who knows a session's name, which relays and networks see, but not its password, doesn't keep its player's checks from being answered.
func TestForgedFlood(t *testing.T) {
	t.Parallel()
	h := newHost(t, HostConfig{Config: local()})
	l := newLiar(t, h)
	good, bad := l.socket(), l.socket()
	answered := func() bool {
		_, err := good.Write(l.ask(l.host.Ufrag, l.host.Password))
		require.NoError(t, err)
		require.NoError(t, good.SetReadDeadline(time.Now().Add(time.Second)))
		for p := make([]byte, 1500); ; {
			n, err := good.Read(p)
			if err != nil {
				return false
			}
			m := stun.Message{Raw: p[:n]}
			if m.Decode() == nil && m.Type == stun.BindingSuccess {
				return true
			}
		}
	}
	eventually(t, "answered", answered)
	for range 3 {
		before := h.Counters()
		for range 2 * maxRequests {
			_, err := bad.Write(l.ask(l.host.Ufrag, "x"))
			require.NoError(t, err)
		}
		eventually(t, "they have come", func() bool {
			n := h.Counters()
			return n.TooFast+n.Forged-before.TooFast-before.Forged == 2*maxRequests
		})
		require.True(t, answered())
	}
	require.NotZero(t, h.Counters().TooFast)
}
