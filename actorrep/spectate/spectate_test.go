package spectate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/spectate"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

type clock struct {
	actorrep.Base
	Count  uint32   `net:""`
	Secret uint32   `net:"owner"`
	Fill   [64]byte `net:""`
}

// arena is a server with a relay and spectators in virtual time.
type arena struct {
	t          testing.TB
	world      *simtest.Simulation
	cfg        spectate.RelayConfig
	relay      *spectate.Relay
	server     *driver.Driver
	game       *actorrep.World
	clock      *clock
	more       int // actors beside it
	spectators []*spectator
	max        int // bytes that one holds
}

type spectator struct {
	*spectate.Spectator
	a      *arena
	driver *driver.Driver
	world  *actorrep.World
	clock  *clock
	first  time.Duration // when something was seen
	counts int
	result *netconn.CloseResult
	err    error
}

func register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("clock", (*clock)(nil), actorrep.AlwaysRelevant()))
}

func newArena(t testing.TB, seed uint64, set netsim.Settings, cfg spectate.RelayConfig, spectators int, edit func(*arena)) *arena {
	a := &arena{t: t, cfg: cfg}
	if edit != nil {
		edit(a)
	}
	a.world = simtest.NewSimulation(seed, a.boot)
	a.world.AddHost("server", true)
	a.add(set, spectators)
	return a
}

func (a *arena) add(set netsim.Settings, n int) {
	for range n {
		require.NoError(a.t, a.world.AddHost("spectator", false).SetNet(set, set))
	}
}

func (a *arena) boot(h *simtest.Host) (simtest.Program, error) {
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.PlainSalted{}, Timeout: 10 * time.Second}
	if h.IsServer() {
		a.game = actorrep.NewServer(actorrep.Config{})
		register(a.t, a.game)
		a.clock = &clock{Secret: 9}
		require.NoError(a.t, a.game.Spawn(a.clock))
		for range a.more {
			require.NoError(a.t, a.game.Spawn(&clock{Count: 1}))
		}
		var err error
		a.relay, err = spectate.NewRelay(a.game, a.cfg)
		require.NoError(a.t, err)
		cfg.Socket, _ = h.Listen(7777)
		cfg.Channels = append(a.game.ChannelTypes(), a.relay.Channel())
		a.server, err = driver.Listen("", cfg)
		return a, err
	}
	s := &spectator{a: a, world: actorrep.NewClient(actorrep.Config{})}
	register(a.t, s.world)
	var err error
	s.Spectator, err = spectate.NewSpectator(s.world, a.max)
	require.NoError(a.t, err)
	cfg.Socket, cfg.Channels = h.Open(), append(s.world.ChannelTypes(), s.Channel())
	cfg.Joined = func(c *driver.Conn) { require.NoError(a.t, s.Open(c)) }
	cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) { s.result = &r }
	s.driver, err = driver.Dial("10.0.0.1:7777", cfg)
	a.spectators = append(a.spectators, s)
	return s, err
}

// Tick is a frame of the server's: the clock counts sixtieths of a second.
func (a *arena) Tick(now time.Time) error {
	a.server.TickDispatch(now)
	a.clock.Count = uint32(a.world.Now() * 60 / time.Second)
	a.clock.Fill[a.clock.Count%64]++
	a.game.Step(a.server.Time(now))
	a.relay.Step(a.server.Time(now))
	a.server.TickFlush(now)
	return nil
}

// Tick is a frame of a spectator's.
func (s *spectator) Tick(now time.Time) error {
	s.driver.TickDispatch(now)
	if err := s.Step(s.driver.Time(now)); err != nil {
		s.err = err
	}
	for x := range s.world.All {
		c := x.(*clock)
		if c.Count < 2 {
			continue
		}
		at := s.a.world.Now()
		if s.first == 0 {
			s.first = at
		}
		age := at - time.Duration(c.Count)*time.Second/60
		require.GreaterOrEqual(s.a.t, age, s.a.cfg.Delay, "what is younger has left")
		require.Zero(s.a.t, c.Secret)
		s.clock = c
		s.counts++
	}
	s.driver.TickFlush(now)
	return nil
}

var path = netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 5}

// TestDelayed: a spectator, from the beginning or later, sees the game with the delay and at most 4 s more, never less, at 5 % loss; he has it within seconds of coming.
func TestDelayed(t *testing.T) {
	for seed := range uint64(5) {
		a := newArena(t, seed+1, path, spectate.RelayConfig{Delay: 5 * time.Second, Checkpoints: 4 * time.Second}, 1, func(a *arena) { a.more = 30 })
		a.world.RunUntil(30 * time.Second)
		a.add(path, 2)
		a.world.RunUntil(60 * time.Second)
		require.Nil(t, a.world.Failure())
		for i, s := range a.spectators {
			require.NoError(t, s.err)
			require.NotNil(t, s.clock, "spectator %d", i)
			age := 60*time.Second - time.Duration(s.clock.Count)*time.Second/60
			require.LessOrEqual(t, age, 5*time.Second+4*time.Second, "spectator %d", i)
			require.Equal(t, 31, s.world.Len())
			if i > 0 {
				require.LessOrEqual(t, s.first, 34*time.Second)
			}
		}
		require.Equal(t, 3, a.relay.Spectators())
	}
}

// TestBounds: a relay whose delay has more than MaxBytes ends and says so; spectators beyond MaxSpectators are refused; one whose server sends more than it
// may hold ends the connection.
func TestBounds(t *testing.T) {
	a := newArena(t, 1, path, spectate.RelayConfig{Delay: time.Minute, MaxBytes: 10_000}, 0, func(a *arena) { a.more = 50 })
	a.world.RunUntil(30 * time.Second)
	require.ErrorIs(t, a.relay.Err(), spectate.ErrFull)
	a = newArena(t, 1, path, spectate.RelayConfig{Delay: time.Second, MaxSpectators: 2}, 3, nil)
	a.world.RunUntil(10 * time.Second)
	refused := 0
	for _, s := range a.spectators {
		if s.result != nil {
			require.Contains(t, s.result.Reason, "too many")
			refused++
		}
	}
	require.Equal(t, 1, refused)
	a = newArena(t, 1, path, spectate.RelayConfig{Delay: time.Second}, 1, func(a *arena) { a.max, a.more = 3000, 200 })
	a.world.RunUntil(10 * time.Second)
	require.NotNil(t, a.spectators[0].result)
	require.ErrorIs(t, a.spectators[0].result.Err, spectate.ErrTooMuch)
}

// TestNotAllowed: who may not watch gets nothing of the game, and is told.
func TestNotAllowed(t *testing.T) {
	asked := 0
	a := newArena(t, 1, path, spectate.RelayConfig{Delay: time.Second, Allow: func(c *driver.Conn) bool {
		require.True(t, c.Joined())
		asked++
		return asked > 1
	}}, 2, nil)
	a.world.RunUntil(10 * time.Second)
	require.Equal(t, 2, asked)
	refused := 0
	for _, s := range a.spectators {
		if s.result != nil {
			require.Contains(t, s.result.Reason, "not allowed")
			require.Zero(t, s.counts)
			refused++
		} else {
			require.Positive(t, s.counts)
		}
	}
	require.Equal(t, 1, refused)
}

// TestSlow: a spectator that can't take what the game makes is told, and costs the server no more than the others.
func TestSlow(t *testing.T) {
	slow := netsim.Settings{Lag: 50 * time.Millisecond, Bandwidth: 20_000, QueueDelay: 200 * time.Millisecond}
	a := newArena(t, 1, slow, spectate.RelayConfig{Delay: 2 * time.Second, Checkpoints: 3 * time.Second}, 1, func(a *arena) { a.more = 300 })
	for range 120 {
		a.world.RunUntil(a.world.Now() + time.Second)
		for x := range a.game.All {
			x.(*clock).Fill[int(a.world.Now()/time.Second)%64]++
		}
	}
	require.NotNil(t, a.spectators[0].result)
	require.Contains(t, a.spectators[0].result.Reason, "too slow")
	require.Zero(t, a.relay.Spectators())
}
