package driver

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	agreeSeeds = flag.Int("agree", 40, "cases of TestEndsAgree")
	agreeFirst = flag.Uint64("first", 1, "seed of the first one")
)

// agreement is a case of TestEndsAgree: what is done to two clients, their server and the path between them, with one link.
type agreement struct {
	t *testing.T
	*town
	rng     *rand.Rand
	seed    uint64
	name    string
	link    Link
	cfg     Config
	log     []string
	clients [2]*townClient
	open    map[*Conn]bool // at the server: told to be accepted, and not to have ended
	tokens  uint64
	set     netsim.Settings
}

func (a *agreement) say(format string, args ...any) {
	a.log = append(a.log, fmt.Sprintf("%7.2f ", a.now.Sub(a.began).Seconds())+fmt.Sprintf(format, args...))
}

func (a *agreement) String() string {
	return fmt.Sprintf("seed %d, %s, Timeout %v, %+v\n%s", a.seed, a.name, a.cfg.Timeout, a.set, strings.Join(a.log, "\n"))
}

func (a *agreement) addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 3, 0, byte(1 + i)}), 1000)
}

// dial has client i begin, anew or for the first time. Its address stays the same.
func (a *agreement) dial(i int) {
	a.say("%d dials", i)
	a.town.sockets = slices.DeleteFunc(a.town.sockets, func(s *townSocket) bool { return s.addr == a.addr(i) })
	cfg := a.cfg
	if n, ok := a.link.(Netcode); ok {
		a.tokens++
		n.Token = townToken(a.t, a.town, uint64(1+i), nil)
		cfg.Link = n
	}
	a.town.nextAddr = a.addr(i)
	a.town.set = a.set
	a.clients[i] = a.town.dial(cfg)
}

// serve begins the server, which forgets everything that one before knew.
func (a *agreement) serve() {
	cfg := a.cfg
	cfg.Parallel = Cores(a.seed % 3)
	a.open = map[*Conn]bool{}
	open := a.open
	cfg.Socket, cfg.Clock, cfg.Rand = &townSocket{town: a.town, addr: a.town.addr}, a.clock, a.town
	cfg.Accepted = func(c *Conn) { open[c] = true }
	cfg.Closed = func(c *Conn, r netconn.CloseResult) {
		if c.turnedAway() && !open[c] {
			return
		}
		require.True(a.t, open[c], "ended twice, or never accepted: %v, %v", r, a)
		delete(open, c)
	}
	var err error
	a.server, err = Listen("", cfg)
	require.NoError(a.t, err)
}

// paths sets what all paths do.
func (a *agreement) paths(set func(s *townSocket)) {
	for _, s := range a.town.sockets {
		set(s)
	}
}

func (a *agreement) run(d time.Duration) {
	for end := a.now.Add(d); a.now.Before(end); {
		a.town.clients = nil
		for _, c := range a.clients {
			if c != nil {
				a.town.clients = append(a.town.clients, c)
			}
		}
		a.step()
	}
}

// TestEndsAgree plays dials, closes, crashes and restarts of both ends over each link, on paths that lose, duplicate and reorder packets, hold some back beyond
// the timeouts and go dark one way or both: when the path is well again both ends soon agree on who is connected, whoever isn't knows why,
// and the server keeps nothing of who has gone.
func TestEndsAgree(t *testing.T) {
	for seed := range uint64(*agreeSeeds) {
		agree(t, *agreeFirst+seed)
	}
}

func agree(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	pick := func(d ...time.Duration) time.Duration { return d[rng.IntN(len(d))] }
	a := &agreement{t: t, rng: rng, seed: seed}
	a.cfg = Config{Timeout: pick(2*time.Second, 6*time.Second, 20*time.Second), LoginTimeout: pick(2*time.Second, 15*time.Second), MaxConns: 1 + rng.IntN(3), Channels: chat(&echo{})}
	switch seed % 5 {
	case 0:
		a.name, a.link = "netcode", Netcode{Key: netcode.Key{1}}
	case 1:
		a.name, a.link = "netcode, TakeOver", Netcode{Key: netcode.Key{1}, TakeOver: true}
	case 2:
		a.name, a.link = "salted", PlainSalted{ProtocolID: 5}
	case 3:
		a.name, a.link, a.cfg.Protocol = "unreal 5.1", PlainUnreal51(), netconn.Unreal51()
	case 4:
		a.name, a.link, a.cfg.Protocol = "unreal 4.27", PlainUnreal427(), netconn.Unreal427()
	}
	a.cfg.Link = a.link
	a.set = netsim.Settings{Lag: 30 * time.Millisecond, Loss: []float64{0, 0, 10, 30}[rng.IntN(4)], Dup: []float64{0, 20}[rng.IntN(2)],
		Order: []float64{0, 0, 10}[rng.IntN(3)], OrderDelay: pick(100*time.Millisecond, 3*time.Second, 9*time.Second)}
	a.town = newTown(t, seed, a.set, a.cfg)
	a.serve()
	a.dial(0)
	for range 4 + rng.IntN(14) {
		i := rng.IntN(2)
		c := a.clients[i]
		switch n := rng.IntN(14); {
		case c == nil || c.result != nil:
			a.dial(i)
		case n == 0:
			a.say("%d closes its driver", i)
			require.NoError(t, c.Close())
			a.clients[i] = nil
		case n == 1:
			a.say("%d crashes", i)
			a.clients[i] = nil
		case n == 2 && c.Server() != nil:
			a.say("%d leaves", i)
			c.Server().CloseWithReason("bye")
		case n == 3:
			a.say("%d shuts down", i)
			c.Shutdown("bye")
		case n == 4:
			a.say("the server crashes")
			a.serve()
		case n <= 6:
			for conn := range a.server.Conns {
				a.say("the server kicks %v", conn.RemoteAddr())
				if n == 5 {
					conn.CloseWithReason("kicked")
				} else {
					conn.Abort(conn.Now(), "kicked")
				}
				break
			}
		case n <= 9:
			up, down := rng.IntN(3) > 0, rng.IntN(3) > 0
			a.say("dark %v %v", up, down)
			a.paths(func(s *townSocket) {
				dark := a.set
				dark.Loss = 100
				if up {
					require.NoError(t, s.up.Set(dark))
				}
				if down {
					require.NoError(t, s.down.Set(dark))
				}
			})
		case n <= 11:
			a.say("light")
			a.light(a.set)
		}
		a.run(time.Duration(rng.Int64N(int64(pick(60*time.Millisecond, 400*time.Millisecond, 5*time.Second)))))
	}
	a.set = netsim.Settings{Lag: 30 * time.Millisecond}
	a.light(a.set)
	a.say("well again: %d at the server", a.server.Len())
	// What was held back has come after 9 s; then whoever connects does so or gives up, and whoever is alone notices.
	a.run(9*time.Second + 2*linkConnectTimeout + a.cfg.LoginTimeout + 2*a.cfg.Timeout + 6*time.Second)
	a.check()
}

func (a *agreement) light(set netsim.Settings) {
	a.paths(func(s *townSocket) {
		require.NoError(a.t, s.up.Set(set))
		require.NoError(a.t, s.down.Set(set))
	})
}

func (a *agreement) check() {
	t := a.t
	on := 0
	for i, c := range a.clients {
		if c == nil || c.result != nil {
			continue
		}
		require.True(t, c.joined, "client %d, which ended in nothing, %v", i, a)
		on++
		s := &sink{}
		ch, err := c.Server().Open(chatName, s)
		require.NoError(t, err, "%v", a)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
		require.NoError(t, err, "%v", a)
		a.run(time.Second)
		require.Equal(t, []string{"hello"}, s.got, "client %d, %v", i, a)
		require.Nil(t, c.result, "client %d, %v", i, a)
	}
	require.Equal(t, on, a.server.Len(), "%v", a)
	require.Len(t, a.open, on, "%v", a)
	require.Len(t, a.server.conns, on, "%v", a)
	require.NoError(t, a.server.Err())
	switch s := a.server.server.(type) {
	case *netcodeServer:
		require.Equal(t, on, s.m.Clients(), "%v", a)
	case *saltedServer:
		require.Equal(t, on, s.m.Clients(), "%v", a)
	case *unrealServer:
		require.Len(t, s.byAddr, on, "%v", a)
		require.Len(t, s.byCookie, on, "%v", a)
		require.Zero(t, s.refused)
	}
}
