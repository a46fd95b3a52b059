package driver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// town is a server and clients in virtual time, with a bad path between it and each of them.
type town struct {
	t       *testing.T
	now     time.Time
	began   time.Time
	set     netsim.Settings
	seed    uint64
	server  *Driver
	addr    netip.AddrPort
	byAddr  map[netip.AddrPort]*townSocket
	sockets []*townSocket
	clients []*townClient
	// nextAddr is where the next client is, unless it is zero.
	nextAddr netip.AddrPort
	tick     time.Duration // of all of them; 0 is 16 ms
}

// townSocket is one client's socket, or the server's.
type townSocket struct {
	town     *town
	addr     netip.AddrPort
	up, down *netsim.Link // nil at the server
}

func (s *townSocket) BatchSize() int                         { return 64 }
func (s *townSocket) LocalAddr() netip.AddrPort              { return s.addr }
func (s *townSocket) SetReadDeadline(time.Time) error        { return nil }
func (s *townSocket) Close() error                           { return nil }
func (s *townSocket) ReadBatch(m []udp.Message) (int, error) { return s.TryReadBatch(m) }

func (s *townSocket) WriteBatch(msgs []udp.Message) (int, error) {
	at := s.town.now.Sub(s.town.began)
	for i := range msgs {
		if s.up != nil {
			s.up.Push(at, msgs[i].Buf)
		} else if c := s.town.byAddr[msgs[i].Addr]; c != nil {
			c.down.Push(at, msgs[i].Buf)
		}
	}
	return len(msgs), nil
}

func (s *townSocket) TryReadBatch(msgs []udp.Message) (n int, err error) {
	at := s.town.now.Sub(s.town.began)
	take := func(l *netsim.Link, from netip.AddrPort) {
		for n < len(msgs) {
			p, ok := l.Pop(at)
			if !ok {
				return
			}
			msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, p), from
			n++
		}
	}
	if s.down != nil {
		take(s.down, s.town.addr)
		return n, nil
	}
	for _, c := range s.town.sockets {
		take(c.up, c.addr)
	}
	return n, nil
}

// townClient is a client and how it ended.
type townClient struct {
	*Driver
	joined bool
	result *netconn.CloseResult
}

func newTown(t *testing.T, seed uint64, set netsim.Settings, cfg Config) *town {
	w := &town{t: t, now: time.Unix(1_700_000_000, 0), set: set, seed: seed, addr: netip.MustParseAddrPort("10.0.0.1:7777"), byAddr: map[netip.AddrPort]*townSocket{}}
	w.began = w.now
	cfg.Socket, cfg.Clock, cfg.Rand = &townSocket{town: w, addr: w.addr}, w.clock, w
	var err error
	w.server, err = Listen("", cfg)
	require.NoError(t, err)
	return w
}

func (w *town) clock() time.Time { return w.now }

// Read is a source of randomness that is the same in every run.
func (w *town) Read(p []byte) (int, error) {
	w.seed++
	rng := rand.New(rand.NewPCG(w.seed, 77))
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return len(p), nil
}

func (w *town) dial(cfg Config) *townClient {
	w.t.Helper()
	n := len(w.clients)
	s := &townSocket{town: w, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), 1000)}
	if w.nextAddr.IsValid() {
		s.addr, w.nextAddr = w.nextAddr, netip.AddrPort{}
	}
	var err error
	s.up, err = netsim.NewLink(w.set, w.seed*2)
	require.NoError(w.t, err)
	s.down, err = netsim.NewLink(w.set, w.seed*2+1)
	require.NoError(w.t, err)
	w.seed++
	w.byAddr[s.addr] = s
	w.sockets = append(w.sockets, s)
	c := &townClient{}
	cfg.Socket, cfg.Clock, cfg.Rand = s, w.clock, w
	joined, closed := cfg.Joined, cfg.Closed
	cfg.Joined = func(conn *Conn) {
		if c.joined = true; joined != nil {
			joined(conn)
		}
	}
	cfg.Closed = func(conn *Conn, r netconn.CloseResult) {
		if c.result = &r; closed != nil {
			closed(conn, r)
		}
	}
	c.Driver, err = Dial(w.addr.String(), cfg)
	require.NoError(w.t, err)
	w.clients = append(w.clients, c)
	return c
}

func (w *town) step() {
	w.now = w.now.Add(cmp.Or(w.tick, 16*time.Millisecond))
	w.server.TickDispatch(w.now)
	w.server.TickFlush(w.now)
	for _, c := range w.clients {
		c.TickDispatch(w.now)
		c.TickFlush(w.now)
	}
}

func (w *town) until(what string, f func() bool) {
	w.t.Helper()
	for range 20_000 {
		if f() {
			return
		}
		w.step()
	}
	w.t.Fatal("never: ", what)
}

func townToken(t *testing.T, w *town, id uint64, edit func(*netcode.TokenConfig)) netcode.Token {
	unix := uint64(w.now.Unix())
	cfg := netcode.TokenConfig{ClientID: id, Create: unix, Expire: unix + 60, Timeout: 5, Servers: []netip.AddrPort{w.addr}, PrivateKey: netcode.Key{1}, Rand: w}
	if edit != nil {
		edit(&cfg)
	}
	token, err := netcode.GenerateConnectToken(cfg)
	require.NoError(t, err)
	return token
}

// refusedClients is how many clients each refusal is told to: many for the game's, which has a way of its own.
func refusedClients(many bool) int {
	if many || os.Getenv("CI") != "" {
		return 1000
	}
	return 60
}

// TestRefusedLearnWhy: every refused client learns why, as an error of its own and in the game's words, though packets overtake each
// other and a tenth is lost.
func TestRefusedLearnWhy(t *testing.T) {
	bad := netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}
	never := func(w *town, i int) {}
	for _, c := range []struct {
		name           string
		server, client Config
		want           error
		reason         string
		prepare        func(w *town, i int)
		links          string
		many           bool
	}{
		{name: "banned", want: ErrBanned, reason: "banned: until the snow melts", links: "netcode unreal salted", many: true, prepare: never,
			server: Config{Server: control.ServerConfig{Authorize: func(*control.Login) error { return fmt.Errorf("%w: until the snow melts", ErrBanned) }}}},
		{name: "denied", want: ErrDenied, reason: "you don't look it", links: "netcode unreal salted", prepare: never,
			server: Config{Server: control.ServerConfig{Authorize: func(*control.Login) error { return errors.New("you don't look it") }}}},
		{name: "version", want: ErrVersion, reason: "control: network versions differ: the server has 0x2, we 0x1", links: "netcode unreal salted", prepare: never,
			server: Config{Server: control.ServerConfig{NetworkVersion: 2}}, client: Config{Client: control.ClientConfig{NetworkVersion: 1}}},
		{name: "full", want: ErrFull, links: "netcode unreal salted", server: Config{MaxConns: 1}, prepare: func(w *town, i int) {
			if w.server.Len() == 0 {
				w.dial(Config{Link: w.server.cfg.Link})
				w.until("the place is taken", func() bool { return w.server.Len() == 1 && w.clients[0].joined })
			}
		}},
	} {
		for name, link := range links() {
			if !strings.Contains(c.links, name) {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				server, client := c.server, c.client
				if name == "salted" && c.server.MaxConns > 0 {
					link = PlainSalted{Slots: c.server.MaxConns}
				}
				var told int
				server.Link, client.Link = link, link
				server.Closed = func(cn *Conn, r netconn.CloseResult) {
					if !cn.Joined() {
						told++
						if r.Code != netconn.ClosedByUs {
							t.Errorf("the server refused, and calls it: %v", r)
						}
					}
				}
				w := newTown(t, 1, bad, server)
				n, learned := refusedClients(c.many), 0
				const atOnce = 20
				for done := 0; done < n; done += atOnce {
					c.prepare(w, done)
					stay := w.clients
					for range atOnce {
						w.dial(client)
					}
					refused := w.clients[len(stay):]
					w.until("all are refused", func() bool {
						for _, c := range refused {
							if c.result == nil {
								return false
							}
						}
						return true
					})
					for i, cl := range refused {
						require.ErrorIs(t, cl.result.Err, c.want, "client %d: %v", done+i, cl.result)
						require.Equal(t, netconn.ClosedByPeer, cl.result.Code, "client %d: %v", done+i, cl.result)
						if c.reason != "" {
							require.Equal(t, c.reason, cl.result.Reason)
							require.Equal(t, 1, strings.Count(cl.result.String(), c.reason), cl.result.String())
						}
						require.False(t, cl.joined)
						w.step()
						require.ErrorIs(t, cl.Err(), c.want)
						learned++
					}
					for range 200 { // the server ends its sides too
						w.step()
					}
					w.clients, w.sockets = w.clients[:len(stay)], w.sockets[:len(stay)]
				}
				require.Equal(t, n, learned)
				if c.want != ErrFull {
					require.Equal(t, n, told)
					require.Zero(t, w.server.Len())
				}
			})
		}
	}
}

// TestRefusedByToken: a player who is on already, a token of another build and one that has expired are errors of their own.
func TestRefusedByToken(t *testing.T) {
	bad := netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}
	w := newTown(t, 1, bad, Config{Link: Netcode{Key: netcode.Key{1}}})
	w.dial(Config{Link: Netcode{Token: townToken(t, w, 7, nil)}})
	w.until("joined", func() bool { return w.clients[0].joined })
	for i := range 20 {
		again := w.dial(Config{Link: Netcode{Token: townToken(t, w, 7, nil)}})
		w.until("refused", func() bool { return again.result != nil })
		require.ErrorIs(t, again.result.Err, ErrAlreadyConnected, "%d: %v", i, again.result)
		require.ErrorIs(t, again.result.Err, ErrDenied)
		require.Equal(t, netconn.ClosedByPeer, again.result.Code)

		other := w.dial(Config{Link: Netcode{ProtocolID: 5, Token: townToken(t, w, 8, func(c *netcode.TokenConfig) { c.ProtocolID = 5 })}})
		w.until("refused", func() bool { return other.result != nil })
		require.ErrorIs(t, other.result.Err, ErrVersion, "%d: %v", i, other.result)
	}
	old := w.dial(Config{Link: Netcode{Token: townToken(t, w, 9, func(c *netcode.TokenConfig) { c.Create, c.Expire = c.Create-100, c.Create-50 })}})
	w.until("given up", func() bool { return old.result != nil })
	require.ErrorIs(t, old.result.Err, ErrExpired)
	require.True(t, w.clients[0].Server() != nil, "the player plays on")

	_, err := Dial(w.addr.String(), Config{Link: Netcode{ProtocolID: 4, Token: townToken(t, w, 8, nil)}, Clock: w.clock, Socket: keepSocket()})
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorIs(t, err, netcode.ErrProtocol)
}

// TestNobodyThere: each link says so, in its own time.
func TestNobodyThere(t *testing.T) {
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{Loss: 100}, Config{Link: link})
		c := w.dial(Config{Link: link, Timeout: 10 * time.Second})
		w.until("given up", func() bool { return c.result != nil })
		require.ErrorIs(t, c.result.Err, ErrNoAnswer, name)
		require.Equal(t, netconn.TimedOut, c.result.Code, name)
		require.ErrorIs(t, c.Err(), ErrNoAnswer, name)
		require.LessOrEqual(t, w.now.Sub(w.began), 11*time.Second, name)
		for _, timeout := range []time.Duration{-1, 24 * time.Hour} {
			w := newTown(t, 1, netsim.Settings{Loss: 100}, Config{Link: link})
			c := w.dial(Config{Link: link, Timeout: timeout})
			w.until("given up", func() bool { return c.result != nil })
			require.ErrorIs(t, c.Err(), ErrNoAnswer, name)
			require.LessOrEqual(t, w.now.Sub(w.began), 61*time.Second, "%s, Timeout %v", name, timeout)
		}
	}
	w := newTown(t, 1, netsim.Settings{}, Config{Link: PlainUnreal53()})
	c := w.dial(Config{Link: PlainUnreal{Handshake: handshake.Unreal51()}, Timeout: 10 * time.Second})
	w.until("given up", func() bool { return c.result != nil })
	require.True(t, errors.Is(c.result.Err, ErrNoAnswer) || errors.Is(c.result.Err, ErrVersion), c.result)
}

// TestLoginTimeoutIsTold: who doesn't complete the login learns that that is why.
func TestLoginTimeoutIsTold(t *testing.T) {
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, Config{Link: link, LoginTimeout: time.Second})
		c := w.dial(Config{Link: link})
		c.cfg.Client.Respond = nil
		w.server.cfg.Server.Challenge = "answer me"
		w.until("connected", func() bool { return c.Server() != nil })
		c.Server().client = control.NewClient(control.ClientConfig{}, func(control.Message) error { return nil }) // a client that says nothing more
		w.until("ended", func() bool { return c.result != nil && w.server.Len() == 0 })
		require.Contains(t, c.result.Reason, "login timed out", name)
		require.ErrorIs(t, c.result.Err, ErrDenied, name)
		require.EqualValues(t, 1, w.server.Counters.NoLogin)
	}
}

// TestForgottenJoinIsTold: a client that has Welcomed and doesn't call Join learns that that is why.
func TestForgottenJoinIsTold(t *testing.T) {
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, LoginTimeout: 2 * time.Second})
		c := w.dial(Config{Link: link, LoginTimeout: 2 * time.Second, Client: control.ClientConfig{Welcomed: func(*control.Welcome) {}}})
		w.until("ended", func() bool { return c.result != nil })
		require.ErrorContains(t, c.result.Err, "Conn.Join", name)
		require.ErrorIs(t, c.result.Err, ErrDenied, name)
		require.NotErrorIs(t, c.result.Err, ErrNoAnswer, name)
	}
}

// TestEndedInLogin: a client whose connection the server's game ends within the login, as while it loads the map, gets the error that the game gave.
func TestEndedInLogin(t *testing.T) {
	for name, link := range links() {
		for _, why := range []error{ErrBanned, ErrKicked, fmt.Errorf("%w: too slow", ErrFull), ErrShuttingDown} {
			w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link})
			welcomed := false
			c := w.dial(Config{Link: link, Client: control.ClientConfig{Welcomed: func(*control.Welcome) { welcomed = true }}})
			w.until("welcomed", func() bool { return welcomed })
			w.server.conns[0].CloseWithError(why)
			w.until("ended", func() bool { return c.result != nil })
			require.ErrorIs(t, c.result.Err, cmp.Or(errors.Unwrap(why), why), name)
			require.ErrorIs(t, c.result.Err, ErrDenied, name)
			require.Equal(t, why.Error(), c.result.Reason, name)
		}
	}
}

// TestTurnedAwayInALateLogin: a client that is refused, and whose login takes longer than the server waits for it, learns why it is refused all the same.
func TestTurnedAwayInALateLogin(t *testing.T) {
	for name, link := range links() {
		for _, want := range []error{ErrFull, ErrShuttingDown} {
			if want == ErrFull && name != "unreal" {
				continue // refused by the link
			}
			w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, MaxConns: 1})
			if want == ErrFull {
				first := w.dial(Config{Link: link})
				w.until("joined", func() bool { return first.joined && w.server.Len() == 1 })
			} else {
				w.server.Shutdown("for good")
			}
			n := len(w.clients)
			c := w.dial(Config{Link: link})
			w.until("a login has begun", func() bool { return len(w.server.conns) == n+1 && w.server.conns[n].Channel(0) != nil })
			w.dark(n, true, false)
			w.until("ended", func() bool { return c.result != nil })
			require.ErrorIs(t, c.result.Err, want, "%s: %v", name, c.result)
			require.ErrorIs(t, c.result.Err, ErrDenied, name)
		}
	}
}

// TestKickIsLoggedAsOne: the server's log and result say that it kicked, however the client's goodbye and its acks overtake each other.
func TestKickIsLoggedAsOne(t *testing.T) {
	for name, link := range links() {
		for seed := range uint64(100) {
			var log strings.Builder
			var result *netconn.CloseResult
			w := newTown(t, seed, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 95 * time.Millisecond}, Config{Link: link,
				Logger: slog.New(slog.NewTextHandler(&log, nil)), Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
			for sc := range w.server.Conns {
				w.until("joined there too", sc.Joined)
				sc.CloseWithReason("cheating")
			}
			w.until("ended", func() bool { return c.result != nil && result != nil })
			require.Equal(t, netconn.ClosedByUs, result.Code, "%s, seed %d: %v", name, seed, result)
			require.Equal(t, "cheating", result.Reason)
			require.Equal(t, "cheating", c.result.Reason, "%s, seed %d: %v", name, seed, c.result)
			require.Contains(t, log.String(), "closed by us: cheating")
			require.NotContains(t, log.String(), "left")
		}
	}
}

// TestBlackouts: whatever link, a silence below Config.Timeout ends nothing, and one above it ends both ends.
func TestBlackouts(t *testing.T) {
	for name, link := range links() {
		for _, c := range []struct {
			timeout, dark time.Duration
			survives      bool
		}{{time.Minute, 8 * time.Second, true}, {time.Minute, 55 * time.Second, true}, {3 * time.Second, 4 * time.Second, false}, {time.Minute, 65 * time.Second, false}} {
			w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, Timeout: c.timeout})
			cl := w.dial(Config{Link: link, Timeout: c.timeout})
			w.until("joined", func() bool { return cl.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			s := w.sockets[0]
			for _, l := range []*netsim.Link{s.up, s.down} {
				require.NoError(t, l.Set(netsim.Settings{Loss: 100}))
			}
			for end := w.now.Add(c.dark); w.now.Before(end); {
				w.step()
			}
			for _, l := range []*netsim.Link{s.up, s.down} {
				require.NoError(t, l.Set(netsim.Settings{Lag: 20 * time.Millisecond}))
			}
			for range 300 {
				w.step()
			}
			require.Equal(t, c.survives, cl.result == nil, "%s, %v of %v: %v", name, c.dark, c.timeout, cl.result)
			require.Equal(t, c.survives, w.server.Len() == 1, "%s, %v of %v", name, c.dark, c.timeout)
		}
	}
}

// TestOneAddressHasItsShare: on the links that know nothing else of their clients one address, or one /64, gets a share of the
// connections, whatever its ports; the rest is others'. The setting raises it, or takes it away.
func TestOneAddressHasItsShare(t *testing.T) {
	for _, c := range []struct {
		link        Link
		max, joined int
	}{{PlainSalted{Slots: 16}, 0, 4}, {PlainUnreal51(), 0, 4}, {PlainSalted{Slots: 16}, 6, 6}, {PlainUnreal51(), 6, 6}, {PlainSalted{Slots: 16}, -1, 16}, {PlainUnreal51(), -1, 16}} {
		w := newTown(t, 1, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 15 * time.Millisecond}, Config{Link: c.link, MaxConns: 16, MaxPerAddr: c.max})
		for i := range 64 {
			w.nextAddr = netip.AddrPortFrom(netip.MustParseAddr("2001:db8::").Next(), uint16(1000+i))
			w.dial(Config{Link: c.link})
		}
		for range 200 {
			w.step()
		}
		joined, refused := 0, 0
		for _, cl := range w.clients {
			if cl.joined {
				joined++
			}
			if cl.result != nil {
				require.ErrorIs(t, cl.result.Err, ErrDenied, "%T: %v", c.link, cl.result)
				refused++
			}
		}
		require.Equal(t, c.joined, joined, "%T, %d", c.link, c.max)
		require.Equal(t, c.joined, w.server.Len(), "%T, %d", c.link, c.max)
		if _, salted := c.link.(PlainSalted); salted {
			require.Equal(t, 64-c.joined, refused)
		} else {
			require.NotZero(t, refused)
		}
		if c.joined == 16 {
			continue
		}
		w.nextAddr = netip.MustParseAddrPort("[2001:db8:0:7::1]:9")
		other := w.dial(Config{Link: c.link})
		w.until("another gets in", func() bool { return other.joined })

		first := w.clients[0]
		for _, cl := range w.clients { // one of the share leaves: its place is free again
			if cl.joined {
				first = cl
				break
			}
		}
		first.Server().CloseWithReason("enough")
		w.until("it has left", func() bool { return first.result != nil && w.server.Len() == c.joined })
		w.step()
		w.nextAddr = netip.MustParseAddrPort("[2001:db8::77]:9")
		next := w.dial(Config{Link: c.link})
		w.until("the next one gets in", func() bool { return next.joined })
	}
}

// TestPresetsGoTogether: a link and a protocol of different releases are an error at once, and one call sets both.
func TestPresetsGoTogether(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		fits bool
	}{
		{Unreal427(Config{}), true}, {Unreal51(Config{}), true}, {Unreal53(true, Config{}), true},
		{Config{Link: PlainUnreal51(), Protocol: netconn.Unreal53(false)}, false},
		{Config{Link: PlainUnreal427(), Protocol: netconn.Unreal51()}, false},
		{Config{Protocol: netconn.Unreal51()}, false},
		{Config{Link: PlainUnreal51()}, true},
		{Config{Link: PlainUnreal{Handshake: handshake.Unreal51()}, Protocol: netconn.Unreal53(false)}, true},
		{Config{Link: PlainSalted{}, Protocol: netconn.Unreal51()}, true},
	} {
		for _, open := range []func(string, Config) (*Driver, error){Listen, Dial} {
			cfg := c.cfg
			cfg.Socket = keepSocket()
			d, err := open("127.0.0.1:7777", cfg)
			if !c.fits {
				require.ErrorIs(t, err, ErrPreset)
				require.ErrorIs(t, err, netconn.ErrConfig)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, d.Close())
		}
	}
}

// dark makes the way of a client to the server, and the way back, lose everything, or nothing any more.
func (w *town) dark(client int, up, down bool) {
	s := w.sockets[client]
	for l, dark := range map[*netsim.Link]bool{s.up: up, s.down: down} {
		set := w.set
		if dark {
			set.Loss = 100
		}
		require.NoError(w.t, l.Set(set))
	}
}

// move gives a client another address.
func (w *town) move(client int, to netip.AddrPort) {
	s := w.sockets[client]
	delete(w.byAddr, s.addr)
	s.addr = to
	w.byAddr[to] = s
}
