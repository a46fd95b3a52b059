package actorrep_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type vec struct{ X, Y float64 }

type ship struct {
	actorrep.Base
	Pos    vec          `net:"q=0.01,notify=OnPos"`
	Armor  uint8        `net:"max=100,notify=OnArmor"`
	Fuel   float32      `net:"q=0.1,owner"`
	Hidden int32        `net:"skipowner"`
	Name   string       `net:"initial"`
	Prey   netguid.GUID `net:""`
	Flags  [3]bool      `net:""`
	Score  int64        `net:""`
	Note   string       `net:""`

	moved  int
	armors []uint8
}

func (s *ship) OnPos()            { s.moved++ }
func (s *ship) OnArmor(old uint8) { s.armors = append(s.armors, old) }

type rock struct {
	actorrep.Base
	Size uint16 `net:""`
}

// world is a server's world and its clients', over lossy connections in virtual time.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration
	server *actorrep.World
	lines  []*line
	set    netsim.Settings
	hash   uint64 // of all that was sent
	reg    func(t testing.TB, w *actorrep.World)
	speed  int // bytes a second to each client
	// failures collects what clients can't make sense of, if it isn't nil; it fails the test otherwise.
	failures   *[]string
	controller congestion.Controller // of the next to join; nil is a bucket
}

type line struct {
	world    *actorrep.World
	s, c     *netconn.Conn
	up, down *netsim.Link
	peer     *actorrep.Peer
}

func (w *world) failed(err error) {
	if w.failures == nil {
		w.t.Error(err)
		return
	}
	*w.failures = append(*w.failures, err.Error())
}

var clean netsim.Settings

const tick = time.Second / 30

func newWorld(t *testing.T, seed uint64, set netsim.Settings, cfg actorrep.Config, reg ...func(testing.TB, *actorrep.World)) *world {
	t.Logf("seed %d", seed)
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 5)), server: actorrep.NewServer(cfg), set: set, hash: 14695981039346656037, reg: register, speed: 1 << 20}
	if len(reg) > 0 {
		w.reg = reg[0]
	}
	w.reg(t, w.server)
	return w
}

func register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("ship", (*ship)(nil)))
	require.NoError(t, w.Register("rock", (*rock)(nil)))
}

func (w *world) join() *line {
	l := &line{world: actorrep.NewClient(actorrep.Config{Failed: w.failed})}
	w.reg(w.t, l.world)
	var err error
	l.up, err = netsim.NewLink(w.set, w.rng.Uint64())
	require.NoError(w.t, err)
	l.down, _ = netsim.NewLink(w.set, w.rng.Uint64())
	in, out := uint16(w.rng.UintN(16384)), uint16(w.rng.UintN(16384))
	l.s, err = netconn.New(netconn.Config{Server: true, NetSpeed: w.speed, Controller: w.controller, Channels: w.server.ChannelTypes(),
		LowLevelSend: func(p []byte) {
			for _, b := range p {
				w.hash = (w.hash ^ uint64(b)) * 1099511628211
			}
			l.down.Push(w.now, p)
		}}, w.now, in, out)
	require.NoError(w.t, err)
	l.c, err = netconn.New(netconn.Config{Channels: l.world.ChannelTypes(),
		LowLevelSend: func(p []byte) { l.up.Push(w.now, p) }}, w.now, out, in)
	require.NoError(w.t, err)
	l.peer = w.server.AddConn(l.s)
	w.lines = append(w.lines, l)
	return l
}

func (w *world) step() {
	w.now += tick
	for _, l := range w.lines {
		for p, ok := l.up.Pop(w.now); ok; p, ok = l.up.Pop(w.now) {
			_ = l.s.ReceivedPacket(w.now, p)
		}
		for p, ok := l.down.Pop(w.now); ok; p, ok = l.down.Pop(w.now) {
			_ = l.c.ReceivedPacket(w.now, p)
		}
		l.s.PostTickDispatch(w.now)
		l.c.PostTickDispatch(w.now)
		l.world.Step(w.now)
	}
	w.server.Step(w.now)
	for _, l := range w.lines {
		l.s.Tick(w.now)
		l.c.Tick(w.now)
		require.False(w.t, l.s.Closed(), "%v", l.s.Result())
		require.False(w.t, l.c.Closed(), "%v", l.c.Result())
	}
}

// want is what a client should see of an actor.
func want(a actorrep.Actor, owner bool) string {
	switch a := a.(type) {
	case *ship:
		fuel, hidden := float32(0), a.Hidden
		if owner {
			fuel, hidden = a.Fuel, 0
		}
		return fmt.Sprintf("ship %v %.2f %.2f %d %.1f %d %s %v %v %d %s", a.GUID(), a.Pos.X, a.Pos.Y, a.Armor, fuel, hidden, a.Name, a.Prey, a.Flags, a.Score, a.Note)
	case *rock:
		return fmt.Sprintf("rock %v %d", a.GUID(), a.Size)
	}
	return "?"
}

func see(a actorrep.Actor) string {
	if s, ok := a.(*ship); ok {
		return fmt.Sprintf("ship %v %.2f %.2f %d %.1f %d %s %v %v %d %s", s.GUID(), s.Pos.X, s.Pos.Y, s.Armor, s.Fuel, s.Hidden, s.Name, s.Prey, s.Flags, s.Score, s.Note)
	}
	return want(a, false)
}

func (w *world) same(l *line) string {
	if l.world.Len() != w.server.Len() {
		return fmt.Sprintf("%d actors, the server has %d", l.world.Len(), w.server.Len())
	}
	for a := range w.server.All {
		mirror := l.world.Find(a.(interface{ GUID() netguid.GUID }).GUID())
		if mirror == nil {
			return fmt.Sprintf("no %v", a)
		}
		owner := a.(interface{ Owner() *actorrep.Peer }).Owner() == l.peer
		if got, want := see(mirror), want(a, owner); got != want {
			return "\n got " + got + "\nwant " + want
		}
	}
	return ""
}

// converge steps until all clients see what the server has.
func (w *world) converge() {
	w.t.Helper()
	diff := ""
	for range 30 * 60 {
		diff = ""
		for _, l := range w.lines {
			if diff = w.same(l); diff != "" {
				break
			}
		}
		if diff == "" {
			return
		}
		w.step()
	}
	w.t.Fatalf("no convergence in a minute: %s", diff)
}

// mutate changes the server's world at random.
func (w *world) mutate() {
	var ships []*ship
	for a := range w.server.All {
		if s, ok := a.(*ship); ok {
			ships = append(ships, s)
		}
	}
	switch r := w.rng.IntN(20); {
	case r == 0 && len(ships) < 40 || len(ships) == 0:
		s := &ship{Name: fmt.Sprintf("ship %d", w.rng.IntN(100)), Armor: 100, Hidden: 5, Fuel: 3}
		require.NoError(w.t, w.server.Spawn(s))
	case r == 1:
		require.NoError(w.t, w.server.Spawn(&rock{Size: uint16(w.rng.IntN(1000))}))
	case r == 2 && len(ships) > 3:
		require.NoError(w.t, w.server.Destroy(ships[w.rng.IntN(len(ships))]))
	case r == 3:
		ships[w.rng.IntN(len(ships))].Note = strings.Repeat("é", w.rng.IntN(30))
	}
	for _, s := range ships {
		if w.rng.IntN(3) == 0 {
			s.Pos.X += w.rng.Float64()*10 - 5
			s.Pos.Y += w.rng.Float64()
			s.Score += int64(w.rng.IntN(9)) - 4
		}
		if w.rng.IntN(10) == 0 {
			s.Armor = uint8(w.rng.IntN(101))
			s.Fuel = float32(w.rng.IntN(100)) / 10
			s.Hidden = int32(w.rng.IntN(100) + 1)
			s.Flags[w.rng.IntN(3)] = w.rng.IntN(2) == 0
			s.Prey = ships[w.rng.IntN(len(ships))].GUID()
		}
	}
}

func TestConvergence(t *testing.T) {
	nets := map[string]netsim.Settings{
		"clean": {},
		"bad":   {Loss: 10, Dup: 5, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond},
		"worse": {Loss: 40, Dup: 10, Order: 20, LagMin: 10 * time.Millisecond, LagMax: 120 * time.Millisecond},
	}
	for name, set := range nets {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				w := newWorld(t, seed, set, actorrep.Config{})
				w.join()
				for i := range 300 {
					w.mutate()
					if i == 100 || i == 200 { // late joiners
						w.join()
					}
					w.step()
				}
				w.converge()
			})
		}
	}
}

func TestOwnerConditions(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 20}, actorrep.Config{})
	a, b := w.join(), w.join()
	s := &ship{Fuel: 7, Hidden: 9, Name: "x"}
	s.SetOwner(a.peer)
	require.NoError(t, w.server.Spawn(s))
	for range 60 {
		w.step()
	}
	mine, theirs := a.world.Find(s.GUID()).(*ship), b.world.Find(s.GUID()).(*ship)
	require.InDelta(t, 7, mine.Fuel, 0.01)
	require.Zero(t, mine.Hidden)
	require.Zero(t, theirs.Fuel)
	require.EqualValues(t, 9, theirs.Hidden)
	s.SetOwner(b.peer)
	for range 60 {
		w.step()
	}
	require.InDelta(t, 7, theirs.Fuel, 0.01, "the new owner learns what was hidden")
	require.EqualValues(t, 9, mine.Hidden)
}

func TestNotify(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
	l := w.join()
	s := &ship{Armor: 50}
	require.NoError(t, w.server.Spawn(s))
	w.converge()
	for range 10 {
		w.step()
	}
	s.Armor = 40
	s.Pos.X = 1
	w.converge()
	m := l.world.Find(s.GUID()).(*ship)
	require.Equal(t, []uint8{50}, m.armors)
	require.Equal(t, 1, m.moved)
	s.Pos.X = 1.001 // below a step
	for range 10 {
		w.step()
	}
	require.Equal(t, 1, m.moved)
}

func TestRelevancy(t *testing.T) {
	far := false
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: time.Second, Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return !far }})
	l := w.join()
	require.NoError(t, w.server.Spawn(&rock{Size: 3}))
	w.converge()
	far = true
	for range 60 {
		w.step()
	}
	require.Zero(t, l.world.Len())
	far = false
	w.converge()
}

func TestErrors(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.ErrorIs(t, w.Spawn(&rock{}), actorrep.ErrUnknown)
	register(t, w)
	require.ErrorIs(t, w.Register("ship", (*ship)(nil)), actorrep.ErrRegistered)
	r := &rock{}
	require.NoError(t, w.Spawn(r))
	require.ErrorIs(t, w.Spawn(r), actorrep.ErrSpawned)
	require.ErrorIs(t, actorrep.NewClient(actorrep.Config{}).Spawn(&rock{}), actorrep.ErrClient)
}

// TestAllocsStep: a tick that replicates changes to two clients allocates nothing on the server.
func TestAllocsStep(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
	w.join()
	w.join()
	var ships []*ship
	for range 20 {
		s := &ship{}
		require.NoError(t, w.server.Spawn(s))
		ships = append(ships, s)
	}
	step := func() {
		for _, s := range ships {
			s.Pos.X++
		}
		w.step()
	}
	for range 600 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(50, func() {
		for _, s := range ships {
			s.Pos.X++
		}
		w.server.Step(w.now)
		for _, l := range w.lines { // what it wrote leaves, and is lost
			l.s.Tick(w.now)
			for _, ok := l.down.Pop(w.now); ok; _, ok = l.down.Pop(w.now) {
			}
		}
	}))
}

// slivers is a controller that at times has room for a few bytes only.
type slivers struct {
	congestion.Controller
	n *int // bytes, when not negative
}

// Budget is congestion.Controller's.
func (c slivers) Budget(now time.Duration) int {
	if *c.n >= 0 {
		return *c.n
	}
	return c.Controller.Budget(now)
}

// TestSliverOfBudget: bandwidth for a few bits, less than a bunch of changes begins with, is enough for one actor.
func TestSliverOfBudget(t *testing.T) {
	w, n := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}), -1
	w.controller = slivers{congestion.NewTokenBucket(1 << 20), &n}
	l := w.join()
	s := &ship{}
	require.NoError(t, w.server.Spawn(s))
	for range 30 {
		w.step()
	}
	for i := range 60 {
		s.Armor, n = uint8(i), i%4
		w.step()
	}
	n = 1
	for range 3 {
		w.step()
	}
	require.Equal(t, s.Armor, l.world.Find(s.GUID()).(*ship).Armor)
}
