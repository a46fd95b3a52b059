package actorrep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
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

// world is a rig and the classes of both its ends.
type world struct {
	*rig.Rig
	register func(w *actorrep.World) error
	steps    int
}

var clean netsim.Settings

const tick = rig.Tick

func newWorld(t *testing.T, seed uint64, set netsim.Settings, cfg actorrep.Config, reg ...func(testing.TB, *actorrep.World)) *world {
	names := func(w *actorrep.World) error {
		append(reg, register)[0](t, w)
		return nil
	}
	return &world{Rig: rig.New(t, seed, set, cfg, names), register: names}
}

func register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("ship", (*ship)(nil)))
	require.NoError(t, w.Register("rock", (*rock)(nil)))
}

func (w *world) join() *rig.Line { return w.Join(w.register) }

// Step lets a tick pass. After every third, or with many actors and clients now and then, all bookkeeping must agree.
func (w *world) Step() {
	w.T.Helper()
	w.Rig.Step()
	if w.steps++; w.steps%(3+w.Server.Len()*len(w.Lines)/64) != 0 {
		return
	}
	w.Server.Consistent(w.T)
	for _, l := range w.Lines {
		l.World.Consistent(w.T)
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

func (w *world) same(l *rig.Line) string {
	if l.World.Len() != w.Server.Len() {
		return fmt.Sprintf("%d actors, the server has %d", l.World.Len(), w.Server.Len())
	}
	for a := range w.Server.All {
		mirror := l.World.Find(a.(interface{ GUID() netguid.GUID }).GUID())
		if mirror == nil {
			return fmt.Sprintf("no %v", a)
		}
		owner := a.(interface{ Owner() *actorrep.Peer }).Owner() == l.Peer
		if got, want := see(mirror), want(a, owner); got != want {
			return "\n got " + got + "\nwant " + want
		}
	}
	return ""
}

// converge steps until all clients see what the server has.
func (w *world) converge() {
	w.T.Helper()
	w.UntilBy(w.Step, w.same)
}

// mutate changes the server's world at random.
func (w *world) mutate() {
	var ships []*ship
	for a := range w.Server.All {
		if s, ok := a.(*ship); ok {
			ships = append(ships, s)
		}
	}
	switch r := w.Rand.IntN(20); {
	case r == 0 && len(ships) < 40 || len(ships) == 0:
		s := &ship{Name: fmt.Sprintf("ship %d", w.Rand.IntN(100)), Armor: 100, Hidden: 5, Fuel: 3}
		require.NoError(w.T, w.Server.Spawn(s))
	case r == 1:
		require.NoError(w.T, w.Server.Spawn(&rock{Size: uint16(w.Rand.IntN(1000))}))
	case r == 2 && len(ships) > 3:
		require.NoError(w.T, w.Server.Destroy(ships[w.Rand.IntN(len(ships))]))
	case r == 3:
		ships[w.Rand.IntN(len(ships))].Note = strings.Repeat("é", w.Rand.IntN(30))
	}
	for _, s := range ships {
		if w.Rand.IntN(3) == 0 {
			s.Pos.X += w.Rand.Float64()*10 - 5
			s.Pos.Y += w.Rand.Float64()
			s.Score += int64(w.Rand.IntN(9)) - 4
		}
		if w.Rand.IntN(10) == 0 {
			s.Armor = uint8(w.Rand.IntN(101))
			s.Fuel = float32(w.Rand.IntN(100)) / 10
			s.Hidden = int32(w.Rand.IntN(100) + 1)
			s.Flags[w.Rand.IntN(3)] = w.Rand.IntN(2) == 0
			s.Prey = ships[w.Rand.IntN(len(ships))].GUID()
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
					w.Step()
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
	s.SetOwner(a.Peer)
	require.NoError(t, w.Server.Spawn(s))
	for range 60 {
		w.Step()
	}
	mine, theirs := a.World.Find(s.GUID()).(*ship), b.World.Find(s.GUID()).(*ship)
	require.InDelta(t, 7, mine.Fuel, 0.01)
	require.Zero(t, mine.Hidden)
	require.Zero(t, theirs.Fuel)
	require.EqualValues(t, 9, theirs.Hidden)
	s.SetOwner(b.Peer)
	for range 60 {
		w.Step()
	}
	require.InDelta(t, 7, theirs.Fuel, 0.01, "the new owner learns what was hidden")
	require.EqualValues(t, 9, mine.Hidden)
}

func TestNotify(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
	l := w.join()
	s := &ship{Armor: 50}
	require.NoError(t, w.Server.Spawn(s))
	w.converge()
	for range 10 {
		w.Step()
	}
	s.Armor = 40
	s.Pos.X = 1
	w.converge()
	m := l.World.Find(s.GUID()).(*ship)
	require.Equal(t, []uint8{50}, m.armors)
	require.Equal(t, 1, m.moved)
	s.Pos.X = 1.001 // below a step
	for range 10 {
		w.Step()
	}
	require.Equal(t, 1, m.moved)
}

func TestRelevancy(t *testing.T) {
	far := false
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: time.Second, Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return !far }})
	l := w.join()
	require.NoError(t, w.Server.Spawn(&rock{Size: 3}))
	w.converge()
	far = true
	for range 60 {
		w.Step()
	}
	require.Zero(t, l.World.Len())
	far = false
	w.converge()
}

// TestOnlyRelevantToOwner: actors of such a class exist at their owner alone, and move with the ownership.
func TestOnlyRelevantToOwner(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 20}, actorrep.Config{RelevantTimeout: time.Second}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("rock", (*rock)(nil), actorrep.OnlyRelevantToOwner()))
	})
	a, b := w.join(), w.join()
	s := &rock{Size: 3}
	require.NoError(t, w.Server.Spawn(s))
	run := func() {
		for range 120 {
			w.Step()
		}
	}
	run()
	require.Zero(t, a.World.Len()+b.World.Len(), "without an owner nobody has it")
	s.SetOwner(a.Peer)
	run()
	require.Equal(t, []int{1, 0}, []int{a.World.Len(), b.World.Len()})
	s.SetOwner(b.Peer)
	run()
	require.Equal(t, []int{0, 1}, []int{a.World.Len(), b.World.Len()})
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
		require.NoError(t, w.Server.Spawn(s))
		ships = append(ships, s)
	}
	step := func() {
		for _, s := range ships {
			s.Pos.X++
		}
		w.Step()
	}
	for range 600 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(50, func() {
		for _, s := range ships {
			s.Pos.X++
		}
		w.Server.Step(w.Now)
		w.Lose()
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
	w.Controller = slivers{congestion.NewTokenBucket(1 << 20), &n}
	l := w.join()
	s := &ship{}
	require.NoError(t, w.Server.Spawn(s))
	for range 30 {
		w.Step()
	}
	for i := range 60 {
		s.Armor, n = uint8(i), i%4
		w.Step()
	}
	n = 1
	for range 3 {
		w.Step()
	}
	require.Equal(t, s.Armor, l.World.Find(s.GUID()).(*ship).Armor)
}
