package migrate_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// pawn is a player's, clock what shows that the game goes on.
type pawn struct {
	actorrep.Base
	Name   string `net:"initial"`
	Steps  uint32 `net:""`
	Secret uint32 `net:"owner"`

	player uint64 // at the host only
}

type clock struct {
	actorrep.Base
	Count uint32                        `net:""`
	First actorrep.Ref[*pawn]           `net:""`
	Rows  fastarray.List[row]           `net:""`
	Marks fastarray.Map[uint32, uint32] `net:""`
	Parts actorrep.Var[uint16]          `net:""`
	Grid  [40]uint8                     `net:""`
}

type row struct {
	Name  string `net:"cap=24"`
	Score uint16
}

type flag struct {
	actorrep.Base
	Color uint8 `net:"initial"`
}

func register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("pawn", (*pawn)(nil), actorrep.AlwaysRelevant()))
	require.NoError(t, w.Register("clock", (*clock)(nil), actorrep.AlwaysRelevant()))
	require.NoError(t, w.Register("flag", (*flag)(nil)))
}

// server is the game of who hosts.
type server struct {
	m       *machine
	driver  *driver.Driver
	world   *actorrep.World
	host    *migrate.Host
	players *session.Players[*player]
	clock   *clock
	now     time.Duration
}

type player struct {
	pawn *pawn
	peer *actorrep.Peer
}

func (s *server) save(a actorrep.Actor, dst []byte) []byte {
	if s.m.rig.saved != nil {
		s.m.rig.saved(a)
	}
	if p, ok := a.(*pawn); ok {
		return binary.LittleEndian.AppendUint64(dst, p.player)
	}
	return dst
}

func (s *server) load(a actorrep.Actor, data []byte) error {
	switch a := a.(type) {
	case *clock:
		s.clock = a
	case *pawn:
		if len(data) != 8 {
			return errors.New("no player")
		}
		a.player = binary.LittleEndian.Uint64(data)
		s.players.Restore(fmt.Sprint(a.player), &player{pawn: a})
	}
	return nil
}

func (s *server) enter(c *driver.Conn) *player {
	id := s.m.rig.id(c)
	p := &player{pawn: &pawn{Name: fmt.Sprint("player ", id), player: id, Secret: uint32(id) * 1000}}
	require.NoError(s.m.rig.t, s.world.Spawn(p.pawn))
	s.back(c, p)
	return p
}

func (s *server) back(c *driver.Conn, p *player) {
	s.away(p, netconn.CloseResult{})
	p.peer = s.world.AddConn(c)
	p.pawn.SetOwner(p.peer)
}

func (s *server) away(p *player, _ netconn.CloseResult) {
	if p.peer != nil {
		s.world.RemoveConn(p.peer)
		p.peer = nil
	}
}

func (s *server) tick(now time.Time) {
	s.driver.TickDispatch(now)
	s.now = s.driver.Time(now)
	s.players.Tick(s.now)
	if s.host.Ready() {
		s.clock.Count++
		for p := range s.players.All {
			if p.peer != nil {
				p.pawn.Steps++
			}
		}
		if s.clock.Count%7 == 0 && s.clock.Rows.Len() < 20 {
			_, err := s.clock.Rows.Add(row{"row", uint16(s.clock.Count)})
			require.NoError(s.m.rig.t, err)
			require.NoError(s.m.rig.t, s.clock.Marks.Set(s.clock.Count, 1))
		}
	}
	s.world.Step(s.now)
	s.host.Step(s.now)
	s.driver.TickFlush(now)
}

// client is the game of one connection.
type client struct {
	driver *driver.Driver
	world  *actorrep.World
	clock  *clock
	pawns  []*pawn
}

// machine is a player's: it may host, or have hosted.
type machine struct {
	rig      *rig
	h        *simtest.Host
	follower *migrate.Follower
	clients  map[*driver.Driver]*client
	client   *client
	server   *server
	socket   *simtest.Socket
	own      udp.Socket
	impostor *driver.Driver // at the port where it would host

	count        uint32
	changed, gap time.Duration // of the count
	gapAt        time.Duration
	lost         uint32 // counts that were seen and are gone
	crashed      bool
	quits        string // the callback in which it closes its Follower
	quitted      int
}

const hostPort = 7777

type rig struct {
	t        testing.TB
	world    *simtest.Simulation
	machines []*machine
	save     int                    // bytes more in each checkpoint
	saved    func(a actorrep.Actor) // is told of each call of a Save; may be nil
	cfg      migrate.HostConfig
	local    netip.AddrPort
	later    time.Duration // that the clocks are ahead
}

// id is who is at a connection: the token says it.
func (r *rig) id(c *driver.Conn) uint64 { return c.ClientID() }

func newRig(t testing.TB, seed uint64, n int, set netsim.Settings, edit func(*rig)) *rig {
	r := &rig{t: t, local: netip.MustParseAddrPort("127.0.0.1:1")}
	if edit != nil {
		edit(r)
	}
	r.world = simtest.NewSimulation(seed, r.boot)
	for i := range n {
		h := r.world.AddHost(fmt.Sprint("player", i+1), false)
		require.NoError(t, h.SetNet(set, set))
	}
	return r
}

// time is the time of day on this machine.
func (m *machine) time() time.Time { return m.h.Time().Add(m.rig.later) }

func (m *machine) config() driver.Config {
	return driver.Config{Clock: m.time, Rand: m.h.Secrets(), Timeout: 8 * time.Second, KeepAlive: 50 * time.Millisecond}
}

func (r *rig) boot(h *simtest.Host) (simtest.Program, error) {
	m := &machine{rig: r, h: h, clients: map[*driver.Driver]*client{}}
	if h.Boots() > 1 {
		m.crashed = true // it doesn't come back
		return m, nil
	}
	r.machines = append(r.machines, m)
	slices.SortFunc(r.machines, func(a, b *machine) int { return a.h.Index() - b.h.Index() })
	var err error
	m.follower, err = migrate.NewFollower(migrate.FollowerConfig{Port: hostPort, Dial: m.dial, Host: m.become, Moved: m.moved})
	if err != nil {
		return nil, err
	}
	first := netip.AddrPortFrom(r.world.Hosts()[0].Addr(), hostPort)
	key := netcode.Key{1}
	if h.Index() == 0 {
		if err := m.open(driver.Netcode{Key: key, Addrs: []netip.AddrPort{first}}, nil); err != nil {
			return nil, err
		}
	}
	now := uint64(h.Time().Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(h.Index() + 1), Create: now, Expire: now + 60, Timeout: 20,
		Servers: []netip.AddrPort{first}, PrivateKey: key, Rand: h.Secrets()})
	if err != nil {
		return nil, err
	}
	d, err := m.dial(migrate.Destination{Addr: first, Link: driver.Netcode{Token: token}, Own: h.Index() == 0})
	if err == nil {
		m.follower.Follow(d)
		m.moved(d, h.Index() == 0)
	}
	return m, err
}

// open makes this machine's server.
func (m *machine) open(link driver.Netcode, s *migrate.Succession) (err error) {
	g := &server{m: m, world: actorrep.NewServer(actorrep.Config{})}
	register(m.rig.t, g.world)
	g.players, err = session.NewPlayers(session.Config[*player]{New: g.enter, Rejoin: g.back, Away: g.away,
		Gone: func(p *player, r netconn.CloseResult) { g.away(p, r); _ = g.world.Destroy(p.pawn) }})
	require.NoError(m.rig.t, err)
	cfg := m.rig.cfg
	cfg.Succession, cfg.Save, cfg.Clock, cfg.Rand = s, g.save, m.time, m.h.Secrets()
	cfg.Own = func(c *driver.Conn) bool { return c.RemoteAddr() == m.rig.local }
	if g.host, err = migrate.NewHost(g.world, cfg); err != nil {
		return err
	}
	if s != nil {
		if _, err := migrate.Restore(g.world, s.Checkpoint, g.load); err != nil {
			return err
		}
	} else {
		g.clock = &clock{}
		require.NoError(m.rig.t, g.world.Spawn(g.clock))
		require.NoError(m.rig.t, g.world.SpawnIn(g.clock, &flag{Color: 9}))
		for i := range m.rig.save / 1000 {
			p := &pawn{Name: fmt.Sprintf("%01000d", i)}
			require.NoError(m.rig.t, g.world.Spawn(p))
		}
	}
	if m.socket, err = m.h.Listen(hostPort); err != nil {
		return err
	}
	dc := m.config()
	dc.Socket, m.own = udp.WithLocal(m.socket, m.rig.local)
	dc.Link, dc.Joined, dc.Closed = link, g.players.Joined, g.players.Closed
	dc.Channels = append(g.world.ChannelTypes(), g.host.Channel())
	g.driver, err = driver.Listen("", dc)
	m.server = g
	return err
}

func (m *machine) become(s migrate.Succession) (*migrate.Host, error) {
	m.closeServer()
	m.quit("Host")
	if err := m.open(s.Link, &s); err != nil {
		return nil, err
	}
	return m.server.host, nil
}

func (m *machine) closeServer() {
	if m.server != nil {
		_ = m.server.driver.Close()
		m.server = nil
	}
}

// quit closes the Follower if it is to be closed in that callback.
func (m *machine) quit(in string) {
	if m.quits == in {
		m.quitted++
		_ = m.follower.Close()
	}
}

func (m *machine) dial(to migrate.Destination) (*driver.Driver, error) {
	m.quit("Dial")
	c := &client{world: actorrep.NewClient(actorrep.Config{})}
	register(m.rig.t, c.world)
	cfg := m.config()
	cfg.Link, cfg.Socket = to.Link, udp.Socket(nil)
	if to.Own {
		cfg.Socket = m.own
	} else {
		cfg.Socket = m.h.Open()
	}
	cfg.Channels = append(c.world.ChannelTypes(), m.follower.Channel())
	cfg.Closed = func(*driver.Conn, netconn.CloseResult) { m.quit("Closed") }
	var err error
	c.driver, err = driver.Dial(to.Addr.String(), cfg)
	m.clients[c.driver] = c
	return c.driver, err
}

func (m *machine) moved(d *driver.Driver, own bool) {
	m.client = m.clients[d]
	clear(m.clients)
	m.clients[d] = m.client
	m.quit("Moved")
	if !own {
		m.closeServer()
	}
}

// Tick is a frame.
func (m *machine) Tick(now time.Time) error {
	if m.crashed {
		return nil
	}
	now = now.Add(m.rig.later)
	if m.impostor != nil {
		m.impostor.TickDispatch(now)
		m.impostor.TickFlush(now)
	}
	m.follower.TickDispatch(now)
	c := m.client
	c.world.Step(c.driver.Time(now))
	c.clock, c.pawns = nil, c.pawns[:0]
	for a := range c.world.All {
		switch a := a.(type) {
		case *clock:
			c.clock = a
		case *pawn:
			c.pawns = append(c.pawns, a)
		}
	}
	at := m.rig.world.Now()
	if c.clock != nil && c.clock.Count != m.count {
		if m.count > c.clock.Count {
			m.lost = max(m.lost, m.count-c.clock.Count)
		}
		if gap := at - m.changed; m.changed != 0 && gap > m.gap {
			m.gap, m.gapAt = gap, at
		}
		m.changed, m.count = at, c.clock.Count
	}
	m.follower.TickFlush(now)
	if m.server != nil {
		m.server.tick(now)
		if m.server.host.Left() || m.server.host.Err() != nil {
			m.closeServer()
		}
	}
	return nil
}

// Crashed is simtest's.
func (m *machine) Crashed() { m.crashed = true }

// running is who is still there.
func (r *rig) running() (list []*machine) {
	for _, m := range r.machines {
		if !m.crashed {
			list = append(list, m)
		}
	}
	return list
}

func (r *rig) crash(i int) { r.world.Hosts()[i].Crash(time.Hour) }

func (r *rig) until(at time.Duration) {
	r.world.RunUntil(at)
	require.Nil(r.t, r.world.Failure(), "at %v", r.world.Now())
}

// hosts is who goes on as a host.
func (r *rig) hosts() (list []*machine) {
	for _, m := range r.running() {
		if m.server != nil && m.server.host.Ready() {
			list = append(list, m)
		}
	}
	return list
}

// check looks that all who run play one game, with everything in it.
func (r *rig) check(what string) {
	r.t.Helper()
	hosts := r.hosts()
	require.Len(r.t, hosts, 1, what)
	truth := hosts[0].server
	for _, m := range r.running() {
		require.NoError(r.t, m.follower.Err(), "%s: %s", what, m.h.Name())
		require.False(r.t, m.follower.Migrating(), "%s: %s", what, m.h.Name())
		c := m.client
		require.NotNil(r.t, c.clock, "%s: %s", what, m.h.Name())
		require.InDelta(r.t, truth.clock.Count, c.clock.Count, 60, "%s: %s", what, m.h.Name())
		require.Equal(r.t, truth.clock.Rows.Len(), c.clock.Rows.Len())
		require.Equal(r.t, truth.clock.Marks.Len(), c.clock.Marks.Len())
		own := 0
		for _, p := range c.pawns {
			if p.IsOwned() {
				own++
				require.Equal(r.t, uint32(m.h.Index()+1)*1000, p.Secret, "%s: %s", what, m.h.Name())
				require.Equal(r.t, fmt.Sprint("player ", m.h.Index()+1), p.Name)
			} else {
				require.Zero(r.t, p.Secret)
			}
		}
		require.Equal(r.t, 1, own, "%s: %s has its pawn", what, m.h.Name())
	}
}

// seeds is how many seeds a test plays.
func seeds(quick, full uint64) uint64 {
	if os.Getenv("CI") != "" {
		return full
	}
	return quick
}

var path = netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 10}

// TestHostGoes: when the host of four leaves or crashes, at any moment, also amid a checkpoint, with another player, with the successor, or the successor
// follows it at once, the others go on within 3 s, with all that was there a checkpoint ago. Where one packet is lost again and again it takes a little longer:
// in two of a thousand runs.
func TestHostGoes(t *testing.T) {
	for what, crash := range map[string]func(r *rig, at time.Duration){
		"leaves": func(r *rig, at time.Duration) {
			r.machines[0].server.host.Leave()
			r.until(at + 2*time.Second)
			r.crash(0)
		},
		"crashes":                        func(r *rig, _ time.Duration) { r.crash(0) },
		"crashes with a player":          func(r *rig, _ time.Duration) { r.crash(0); r.crash(3) },
		"crashes with the successor":     func(r *rig, _ time.Duration) { r.crash(0); r.crash(1) },
		"crashes, the successor as well": func(r *rig, at time.Duration) { r.crash(0); r.until(at + 1200*time.Millisecond); r.crash(1) },
	} {
		t.Run(what, func(t *testing.T) {
			worst, lost := time.Duration(0), uint32(0)
			late, n := 0, seeds(8, 30)
			for seed := range n {
				r := newRig(t, seed+1, 4, path, func(r *rig) { r.save = 20_000 })
				at := 5*time.Second + time.Duration(seed)*37*time.Millisecond
				r.until(at)
				require.Len(t, r.hosts(), 1)
				for _, m := range r.running() {
					m.gap = 0
				}
				crash(r, at)
				r.until(r.world.Now() + 10*time.Second)
				r.check(fmt.Sprintf("%s, seed %d", what, seed+1))
				gap := time.Duration(0)
				for _, m := range r.running() {
					gap, lost = max(gap, m.gap), max(lost, m.lost)
				}
				if gap > 3*time.Second {
					t.Logf("%s, seed %d: still for %v", what, seed+1, gap)
					late++
				}
				require.LessOrEqual(t, gap, 4*time.Second, "seed %d", seed+1)
				worst = max(worst, gap)
				if what == "leaves" {
					require.LessOrEqual(t, lost, uint32(1), "seed %d", seed+1)
				}
				require.LessOrEqual(t, lost, uint32(180), "seed %d: ticks lost", seed+1)
			}
			require.LessOrEqual(t, late, int(n)/50)
			t.Logf("%s: still for %v at most, %d ticks of 60 a second lost", what, worst, lost)
		})
	}
}
