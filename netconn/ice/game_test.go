package ice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/turn/v5"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/internal/echotest"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// game is a host's driver that echoes, and guests.
type game struct {
	t      testing.TB
	host   *Host
	srv    *driver.Driver
	key    netcode.Key
	joined []*driver.Conn
	ended  []netconn.CloseResult
	guests []*guest
}

type guest struct {
	driver *driver.Driver
	socket *Client // nil by UDP
	conn   *driver.Conn
	end    *netconn.CloseResult
	sink   echotest.Sink
}

func newGame(t testing.TB, hc HostConfig, link driver.Link) *game {
	g := &game{t: t, host: newHost(t, hc), key: netcode.Key{1, 2, 3}}
	s, err := udp.Listen("127.0.0.1:0", udp.Config{NoPoller: true})
	require.NoError(t, err)
	if link == nil {
		link = driver.Netcode{Key: g.key, Addrs: []netip.AddrPort{HostAddr(), s.LocalAddr()}}
	}
	g.srv, err = driver.Listen("", driver.Config{Socket: udp.Join(s, g.host), Link: link, Joined: func(c *driver.Conn) { g.joined = append(g.joined, c) },
		Closed:   func(_ *driver.Conn, r netconn.CloseResult) { g.ended = append(g.ended, r) },
		Channels: []channel.Type{echotest.Server()}})
	require.NoError(t, err)
	g.host.Tell(g.srv)
	t.Cleanup(func() { require.NoError(t, g.srv.Close()) })
	return g
}

// dial adds a guest by a socket; nil is UDP's.
func (g *game) dial(c *Client, link driver.Link) *guest {
	p := &guest{socket: c}
	if link == nil {
		link = driver.Netcode{Key: g.key}
	}
	cfg := driver.Config{Link: link, Channels: []channel.Type{echotest.Client()}, Joined: func(c *driver.Conn) { p.conn = c },
		Closed: func(_ *driver.Conn, r netconn.CloseResult) { p.end = &r }}
	to := g.srv.LocalAddr()
	if c != nil {
		cfg.Socket, to = c, HostAddr()
	}
	var err error
	p.driver, err = driver.Dial(to.String(), cfg)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, p.driver.Close()) })
	g.guests = append(g.guests, p)
	return p
}

func (g *game) tick() {
	now := time.Now()
	g.srv.TickDispatch(now)
	g.srv.TickFlush(now)
	for _, p := range g.guests {
		p.driver.TickDispatch(now)
		p.driver.TickFlush(now)
	}
	time.Sleep(2 * time.Millisecond)
}

func (g *game) until(what string, f func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !f(); g.tick() {
		if time.Now().After(end) {
			g.t.Fatalf("never: %s; host %+v, driver %+v", what, g.host.Counters(), g.srv.Counters)
		}
	}
}

// echoes has all guests send, and waits until all came back in order.
func (g *game) echoes() {
	g.t.Helper()
	var want []string
	for i := range 50 {
		want = append(want, string(make([]byte, 1+i*50)))
	}
	for _, p := range g.guests {
		require.NoError(g.t, p.sink.Send(p.conn, want))
	}
	g.until("all echoed", func() bool {
		for _, p := range g.guests {
			if len(p.sink.Got) < len(want) {
				return false
			}
		}
		return true
	})
	for _, p := range g.guests {
		require.Equal(g.t, want, p.sink.Got)
	}
}

// TestGame: one host socket serves several guests, beside one by UDP, in one driver; each has an address of its own and a path; when they have left,
// their sessions end.
func TestGame(t *testing.T) {
	g := newGame(t, HostConfig{Config: local(), HalfOpen: 2 * patience, Idle: patience}, nil)
	g.dial(nil, nil)
	for range 3 {
		g.dial(join(t, g.host, local()), nil)
	}
	g.until("joined", func() bool { return len(g.joined) == 4 })
	seen := map[netip.AddrPort]bool{}
	for _, c := range g.joined {
		require.False(t, seen[c.RemoteAddr()])
		seen[c.RemoteAddr()] = true
		path, addr := g.host.Path(c.RemoteAddr())
		if !g.host.Has(c.RemoteAddr()) {
			require.Equal(t, NoPath, path)
			continue
		}
		require.Equal(t, Direct, path)
		require.True(t, addr.Addr().IsLoopback())
	}
	g.echoes()
	for s := range g.host.all {
		for _, at := range []int64{s.written.Load(), s.now.Load().consent.Load(), int64(g.host.now())} {
			require.Less(t, time.Duration(at), time.Hour, "it is counted from the host's beginning, so time that is set ends nothing")
		}
	}
	n := g.host.Counters()
	require.EqualValues(t, []uint64{3, 3, 0, 0, 0}, []uint64{n.Sessions, n.Direct, n.Routed, n.Relayed, n.PathChanges})
	for _, p := range g.guests {
		p.conn.CloseWithReason("bye")
	}
	g.until("all left", func() bool { return len(g.ended) == 4 })
	require.Equal(t, 3, g.host.Len())
	g.until("all forgotten", func() bool {
		silent(g.host, patience+time.Second) // the driver may have sent its last word meanwhile
		return g.host.Len() == 0
	})
	require.EqualValues(t, 3, g.host.Counters().Idle)
}

// TestGuestVanishes: the connection of a guest whose machine is gone ends with its session, and others go on.
func TestGuestVanishes(t *testing.T) {
	g := newGame(t, HostConfig{Config: local()}, nil)
	first, second := join(t, g.host, local()), join(t, g.host, local())
	stays := g.dial(first, nil)
	g.until("one joined", func() bool { return len(g.joined) == 1 })
	goes := g.dial(second, nil)
	g.until("both joined", func() bool { return len(g.joined) == 2 })
	g.guests = g.guests[:1]
	require.NoError(t, goes.socket.Close())
	for s := range g.host.all {
		if g.host.peers[g.joined[1].RemoteAddr()] == s {
			s.end(ErrLost) // as after 30 s
		}
	}
	g.until("it ended", func() bool { return len(g.ended) == 1 })
	require.Equal(t, netconn.TimedOut, g.ended[0].Code, "nobody has left")
	require.ErrorIs(t, g.ended[0].Err, ErrLost)
	require.Nil(t, stays.end)
	g.echoes()
}

// turnServer is a relay on the loopback, by UDP, TCP and TLS.
func turnServer(t testing.TB) (servers map[string]Server, conf *tls.Config) {
	servers, conf, _ = turnServerWith(t)
	return servers, conf
}

// noting is a listener that keeps its connections.
type noting struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *noting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
	}
	return c, err
}

// cut ends all connections so far.
func (l *noting) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// certificate returns a certificate for the loopback, and who trusts it.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func turnServerWith(t testing.TB) (servers map[string]Server, conf *tls.Config, byTCP *noting) {
	cert, pool := certificate(t)
	generator := func() turn.RelayAddressGenerator {
		return &turn.RelayAddressGeneratorStatic{RelayAddress: net.IPv4(127, 0, 0, 1), Address: "127.0.0.1"}
	}
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	byTCP = &noting{Listener: tcp}
	overTLS, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	s, err := turn.NewServer(turn.ServerConfig{Realm: "test", LoggerFactory: quietLoggers{},
		AuthHandler: func(ra *turn.RequestAttributes) (string, []byte, bool) {
			return ra.Username, turn.GenerateAuthKey(ra.Username, ra.Realm, "secret"), ra.Username == "ann"
		},
		PacketConnConfigs: []turn.PacketConnConfig{{PacketConn: pc, RelayAddressGenerator: generator()}},
		ListenerConfigs:   []turn.ListenerConfig{{Listener: byTCP, RelayAddressGenerator: generator()}, {Listener: overTLS, RelayAddressGenerator: generator()}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	of := func(url string) Server { return Server{URL: url, Username: "ann", Password: "secret"} }
	return map[string]Server{"udp": of("turn:" + pc.LocalAddr().String() + "?transport=udp"), "tcp": of("turn:" + tcp.Addr().String() + "?transport=tcp"),
		"tls": of("turns:" + overTLS.Addr().String() + "?transport=tcp")}, &tls.Config{RootCAs: pool}, byTCP
}

// TestRelay: a game goes by a relay, over UDP, TCP or TLS to it at either end.
func TestRelay(t *testing.T) {
	t.Parallel()
	servers, conf := turnServer(t)
	for _, ways := range [][2]string{{"udp", "udp"}, {"udp", "tls"}, {"tls", "tcp"}} {
		t.Run(ways[0]+" "+ways[1], func(t *testing.T) {
			t.Parallel()
			of := func(way string) Config {
				c := local()
				c.Servers, c.TLS, c.RelayOnly = []Server{servers[way]}, conf, true
				return c
			}
			g := newGame(t, HostConfig{Config: of(ways[0])}, nil)
			p := g.dial(join(t, g.host, of(ways[1])), nil)
			g.until("joined", func() bool { return len(g.joined) == 1 })
			path, _ := p.socket.Path()
			require.Equal(t, ByRelay, path)
			path, _ = g.host.Path(g.joined[0].RemoteAddr())
			require.Equal(t, ByRelay, path)
			for _, c := range append(p.socket.Candidates(), g.host.Candidates()...) {
				require.Equal(t, Relayed, c.Kind)
			}
			g.echoes()
			require.EqualValues(t, 1, g.host.Counters().Relayed)
			require.Zero(t, g.host.Counters().Unsealed)
		})
	}
}

// TestUnsealed: what isn't netcode's doesn't go by a relay.
func TestUnsealed(t *testing.T) {
	t.Parallel()
	servers, conf := turnServer(t)
	c := local()
	c.Servers, c.TLS, c.RelayOnly = []Server{servers["udp"]}, conf, true
	g := newGame(t, HostConfig{Config: c}, driver.PlainUnreal51())
	p := g.dial(join(t, g.host, c), driver.PlainUnreal51())
	g.until("refused", func() bool { return p.socket.Counters().Unsealed > 3 })
	require.Zero(t, p.socket.Counters().Sent)
	require.Empty(t, g.joined)
}

// TestSealed: every packet of a netcode connection is taken for sealed.
func TestSealed(t *testing.T) {
	for _, p := range [][]byte{nil, {0}, {1}, []byte("\x11\x00short"), append([]byte{0x90}, make([]byte, 100)...), append([]byte{0x07}, make([]byte, 100)...), append([]byte{0x17}, make([]byte, 100)...)} {
		require.False(t, sealed(p), "%x", p)
	}
	require.True(t, sealed(append([]byte{0x86}, make([]byte, 24)...)))
	require.False(t, sealed(append([]byte{0x86}, make([]byte, 23)...)))
}

// TestRelayLost: when the host's relay is lost another address is asked for, the guest hears of it, and the game goes on.
func TestRelayLost(t *testing.T) {
	t.Parallel()
	servers, conf, byTCP := turnServerWith(t)
	of := func(way string) Config {
		c := local()
		c.Servers, c.TLS, c.RelayOnly = []Server{servers[way]}, conf, true
		return c
	}
	g := newGame(t, HostConfig{Config: of("tcp")}, nil)
	p := g.dial(join(t, g.host, of("udp")), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 })
	was := g.host.Candidates()
	byTCP.cut()
	g.until("another one", func() bool { return len(g.host.Candidates()) == 1 && g.host.Candidates()[0] != was[0] })
	require.EqualValues(t, 1, g.host.Counters().RelaysLost)
	g.until("the path changes", func() bool { return p.socket.Counters().PathChanges > 0 })
	g.echoes()
	require.Empty(t, g.ended)
}

// TestInspector: an inspector shows the path of each guest, as the package's doc has it.
func TestInspector(t *testing.T) {
	g := newGame(t, HostConfig{Config: local()}, nil)
	i := inspect.New(g.srv, inspect.Config{
		Name: func(c *driver.Conn) string {
			path, at := g.host.Path(c.RemoteAddr())
			return fmt.Sprintf("Ann, %s at %v", path, at)
		},
		Figures: func() []inspect.Figure {
			return []inspect.Figure{{Name: "sessions", Value: g.host.Counters().Sessions}}
		},
	})
	p := g.dial(join(t, g.host, local()), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 && p.conn != nil })
	seen := make(chan string, 1)
	go func() {
		v, err := i.View(t.Context(), inspect.Query{})
		seen <- fmt.Sprint(string(v.AppendText(nil)), err)
	}()
	text := ""
	g.until("seen", func() bool {
		select {
		case text = <-seen:
		default:
		}
		return text != ""
	})
	text = strings.Join(strings.Fields(text), " ") // its lines are wrapped
	require.Contains(t, text, "Ann, direct at "+p.socket.LocalAddr().String())
	require.Contains(t, text, "sessions 1 ")
}

// TestNetworkComesLater: addresses that the machines have only once the session has begun are told, and found.
func TestNetworkComesLater(t *testing.T) {
	all, every := interfaceAddrs, interfacesEvery
	t.Cleanup(func() { interfaceAddrs, interfacesEvery = all, every })
	var up atomic.Bool
	interfacesEvery, interfaceAddrs = 10*time.Millisecond, func() ([]net.Addr, error) {
		if !up.Load() {
			return nil, nil
		}
		return all()
	}
	cfg := local()
	cfg.Addr = "0.0.0.0:0"
	h := newHost(t, HostConfig{Config: cfg})
	a, b := wires()
	joined := make(chan error, 1)
	go func() { joined <- h.Join(t.Context(), b) }()
	c, err := Dial(t.Context(), a, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	eventually(t, "the ends know each other", func() bool { return c.session().started() })
	require.Empty(t, h.Candidates())
	require.Empty(t, c.Candidates())
	up.Store(true)
	require.NoError(t, c.Connected(t.Context()))
	require.NoError(t, <-joined)
	eventually(t, "the path is direct", func() bool { // a check may arrive before the message that names its address
		path, _ := c.Path()
		return path == Direct
	})
}

// TestRelayTakenBack: a server that gives addresses and takes them back at once isn't asked all the time.
func TestRelayTakenBack(t *testing.T) {
	t.Parallel()
	servers, conf, byTCP := turnServerWith(t)
	c := local()
	c.Servers, c.TLS, c.RelayOnly = []Server{servers["tcp"]}, conf, true
	h := newHost(t, HostConfig{Config: c})
	began := time.Now()
	lost := func() uint64 { n := h.Counters(); return n.RelaysLost + n.RelayErrors }
	eventually(t, "relays are lost for 2 s", func() bool {
		byTCP.cut()
		return lost() > 0 && time.Since(began) > 2*time.Second
	})
	require.LessOrEqual(t, float64(lost()), 2+time.Since(began).Seconds()/relayAgain.Seconds())
}

// TestRelaysComeAndGo: what a session keeps of relays that are lost goes with them.
func TestRelaysComeAndGo(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	c := join(t, h, local())
	before := len(c.session().ports)
	for i := range maxAddrs + 5 {
		b := &base{relay: true, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 9}), uint16(5000+i)), write: func([]byte, netip.AddrPort) {}}
		c.change(func() { c.bases = append(c.bases[:1:1], b) })
		c.session().addBases()
		c.mu.Lock()
		port, ports, remote := c.session().ports[portKey{b, true}], len(c.session().ports), c.session().remotes[route{b, c.session().candidates[0].Addr}]
		c.mu.Unlock()
		require.NotNil(t, port)
		require.Equal(t, before+1, ports)
		require.NotNil(t, remote)
	}
	hello(t, h, c)
}

// TestEndsAmidChange: a session may end while the guest looks for a better path.
func TestEndsAmidChange(t *testing.T) {
	h := newHost(t, HostConfig{Config: local()})
	c := join(t, h, local())
	best, _, _ := c.session().best()
	require.NotNil(t, best)
	c.session().agentMu.Lock() // the agent still answers
	defer c.session().agentMu.Unlock()
	c.session().end(ErrLost)
	best, _, _ = c.session().best()
	require.Nil(t, best)
}
