package actorrep_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// TestUpdateFrequencyOfUnevenSteps: a frequency is met on average when Steps don't fall together with it.
func TestUpdateFrequencyOfUnevenSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Second / 30, time.Second / 60, time.Second / 50, 7 * time.Millisecond} {
		for _, hz := range []float64{1, 3, 7, 10, 20, 25, 29} {
			w := actorrep.NewServer(actorrep.Config{})
			require.NoError(t, w.Register("plain", (*plain)(nil), actorrep.UpdateFrequency(hz)))
			require.NoError(t, w.Register("pushed", (*pushed)(nil), actorrep.UpdateFrequency(hz)))
			a, b := &plain{}, &pushed{}
			require.NoError(t, w.Spawn(a))
			require.NoError(t, w.Spawn(b))
			before := w.Counters.Compared
			for now := time.Duration(0); now < 20*time.Second; now += step {
				b.N.Set(b.N.Get() + 1)
				w.Step(now)
			}
			require.InEpsilon(t, 2*20*hz, w.Counters.Compared-before, 0.05, "%v Hz, Steps of %v", hz, step)
		}
	}
}

// TestHigherFrequencyHoldsAtOnce: an actor that was to be compared in a long time is compared when its new frequency says so.
func TestHigherFrequencyHoldsAtOnce(t *testing.T) {
	for _, hz := range []float64{0, 5, 20} {
		w := actorrep.NewServer(actorrep.Config{})
		require.NoError(t, w.Register("plain", (*plain)(nil), actorrep.UpdateFrequency(0.01)))
		require.NoError(t, w.Register("pushed", (*pushed)(nil), actorrep.UpdateFrequency(0.01)))
		a, b := &plain{}, &pushed{}
		require.NoError(t, w.Spawn(a))
		require.NoError(t, w.Spawn(b))
		now := time.Duration(0)
		steps := func(n int) uint64 {
			before := w.Counters.Changed
			for range n {
				now += time.Second / 60
				w.Step(now)
			}
			return w.Counters.Changed - before
		}
		steps(10)
		a.N++
		b.N.Set(1)
		require.Zero(t, steps(60))
		require.NoError(t, a.SetUpdateFrequency(hz))
		require.NoError(t, b.SetUpdateFrequency(hz))
		if hz > 0 {
			require.Zero(t, steps(int(60/hz)-1), "%v Hz", hz)
		}
		require.EqualValues(t, 2, steps(2), "%v Hz", hz)
	}
}

// TestTearOffWhileDormant: clients of an actor that sleeps are told that it is theirs now, with its last values.
func TestTearOffWhileDormant(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := newWorld(t, 1, clean, actorrep.Config{})
		l := w.join()
		s := &ship{Armor: 5}
		require.NoError(t, w.Server.Spawn(s))
		require.NoError(t, s.SetDormant(true))
		for range 60 {
			w.Step()
		}
		mine := l.World.Find(s.GUID()).(*ship)
		require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, s).Reason)
		if changed {
			s.Armor = 6
		}
		require.NoError(t, s.TearOff())
		for range 30 {
			w.Step()
		}
		require.True(t, mine.TornOff())
		require.Equal(t, actorrep.Authority, mine.Role())
		require.Equal(t, s.Armor, mine.Armor)
		require.NoError(t, w.Server.Destroy(s))
		for range 30 {
			w.Step()
		}
		require.Equal(t, 1, l.World.Len(), "it is the client's own")
	}
}

type begun struct {
	actorrep.Base
	HP    int32                 `net:"notify=OnHP"`
	Name  string                `net:"notify=OnName"`
	Armor actorrep.Var[float32] `net:"q=0.5"`
	Mine  int32                 `net:"owner"`
	Other int32

	told []string
}

func (b *begun) Init() {
	b.HP, b.Name, b.Mine, b.Other = 100, "none", 3, 7
	b.Armor.Set(50)
}
func (b *begun) OnHP(old int32)    { b.told = append(b.told, fmt.Sprint("HP ", old, b.HP)) }
func (b *begun) OnName(old string) { b.told = append(b.told, fmt.Sprint("Name ", old, b.Name)) }
func (b *begun) Spawned()          { b.told = append(b.told, "spawned") }
func (b *begun) Destroyed()        {}

// TestInitDefaults: what Init sets on a client doesn't stay where the server has zero.
func TestInitDefaults(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(tb testing.TB, w *actorrep.World) {
		require.NoError(tb, w.Register("begun", (*begun)(nil)))
	})
	l := w.join()
	a := &begun{}
	require.NoError(t, w.Server.Spawn(a))
	for range 10 {
		w.Step()
	}
	mine := l.World.Find(a.GUID()).(*begun)
	require.Zero(t, mine.HP)
	require.Zero(t, mine.Name)
	require.Zero(t, mine.Armor.Get())
	require.EqualValues(t, 3, mine.Mine, "not for this client")
	require.EqualValues(t, 7, mine.Other, "not replicated")
	require.Equal(t, []string{"spawned"}, mine.told)
}

// TestNotifyAtSpawn: a class may ask for notifies of its first values, behind Spawned.
func TestNotifyAtSpawn(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(tb testing.TB, w *actorrep.World) {
		require.NoError(tb, w.Register("begun", (*begun)(nil), actorrep.NotifyAtSpawn()))
	})
	l := w.join()
	a := &begun{HP: 60, Name: "none"}
	require.NoError(t, w.Server.Spawn(a))
	for range 10 {
		w.Step()
	}
	mine := l.World.Find(a.GUID()).(*begun)
	require.Equal(t, []string{"spawned", "HP 100 60"}, mine.told)
	a.HP = 50
	for range 10 {
		w.Step()
	}
	require.Equal(t, []string{"spawned", "HP 100 60", "HP 60 50"}, mine.told)
}

type inner struct {
	List []int32
	Deep [2]struct{ Names []string }
}

type shared struct {
	actorrep.Base
	In    inner          `net:"notify=OnIn"`
	Slice []inner        `net:"notify=OnSlice"`
	Whom  []netguid.GUID `net:"notify=OnWhom"`
	Prey  netguid.GUID   `net:"notify=OnPrey"`
	In2   []struct {
		Who  netguid.GUID
		What uint8
	} `net:"notify=OnIn2"`

	told []string
}

func (s *shared) OnIn(old inner)      { s.told = append(s.told, fmt.Sprint("In ", old, s.In)) }
func (s *shared) OnSlice(old []inner) { s.told = append(s.told, fmt.Sprint("Slice ", old, s.Slice)) }
func (s *shared) OnWhom()             { s.told = append(s.told, "Whom") }
func (s *shared) OnPrey()             { s.told = append(s.told, "Prey") }
func (s *shared) OnIn2()              { s.told = append(s.told, "In2") }

func registerShared(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("shared", (*shared)(nil)))
	require.NoError(t, w.Register("rock", (*rock)(nil)))
}

// TestOldValuesOfSlices: the old value of a notify keeps its slices, however deep.
func TestOldValuesOfSlices(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, registerShared)
	l := w.join()
	make := func(n int32) inner {
		in := inner{List: []int32{n, n}}
		in.Deep[1].Names = []string{fmt.Sprint(n)}
		return in
	}
	a := &shared{In: make(1), Slice: []inner{make(2)}}
	require.NoError(t, w.Server.Spawn(a))
	for range 10 {
		w.Step()
	}
	mine := l.World.Find(a.GUID()).(*shared)
	a.In, a.Slice = make(3), []inner{make(4)}
	for range 10 {
		w.Step()
	}
	require.Equal(t, []string{
		"In {[1 1] [{[]} {[1]}]} {[3 3] [{[]} {[3]}]}",
		"Slice [{[2 2] [{[]} {[2]}]}] [{[4 4] [{[]} {[4]}]}]"}, mine.told)
}

// TestReferencesThatFlicker: a field that refers to an actor is told when the actor comes, and when it comes again, alone, in
// slices and in structs in them.
func TestReferencesThatFlicker(t *testing.T) {
	seen := false
	w := newWorld(t, 1, clean, actorrep.Config{RelevantTimeout: -1, Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
		_, is := a.(*rock)
		return !is || seen
	}}, registerShared)
	l := w.join()
	a, r := &shared{}, &rock{Size: 1}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, w.Server.Spawn(r))
	steps := func() (told []string) {
		for range 20 {
			w.Step()
		}
		mine := l.World.Find(a.GUID()).(*shared)
		told, mine.told = mine.told, nil
		return told
	}
	require.Empty(t, steps())
	a.Whom, a.Prey = []netguid.GUID{0, r.GUID()}, r.GUID()
	a.In2 = append(a.In2, struct {
		Who  netguid.GUID
		What uint8
	}{r.GUID(), 3})
	all := []string{"Whom", "Prey", "In2"}
	require.Equal(t, all, steps(), "the values came")
	for range 3 {
		seen = true
		require.Equal(t, all, steps(), "the actor came")
		seen = false
		require.Empty(t, steps())
	}
	a.Prey = 0
	require.Equal(t, []string{"Prey"}, steps())
	seen = true
	require.Equal(t, []string{"Whom", "In2"}, steps())
}

// TestIsOwnedOfComponents: at a listen server its player's components are his.
func TestIsOwnedOfComponents(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	register(t, w)
	s, r := &ship{}, &rock{}
	s.SetOwner(w.Local())
	require.NoError(t, w.Spawn(s))
	require.NoError(t, w.SpawnIn(s, r))
	require.True(t, s.IsOwned())
	require.True(t, r.IsOwned())
	s.SetOwner(nil)
	require.False(t, r.IsOwned())
}

type locked struct {
	actorrep.Base
	State struct {
		N  int
		mu sync.Mutex
	} `net:""`
}

type tooMuch struct {
	actorrep.Base
	N uint8 `net:"max=300"`
}

type pointing struct {
	actorrep.Base
	Whom *tooMuch `net:""`
}

// TestWhatCantBeReplicated: Register says what would otherwise be replicated wrongly.
func TestWhatCantBeReplicated(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	err := w.Register("locked", (*locked)(nil))
	require.ErrorIs(t, err, layout.ErrKind)
	require.Contains(t, err.Error(), "State.mu")
	err = w.Register("tooMuch", (*tooMuch)(nil))
	require.ErrorIs(t, err, layout.ErrTag)
	require.Contains(t, err.Error(), "max=300")
	err = w.Register("pointing", (*pointing)(nil))
	require.ErrorIs(t, err, layout.ErrKind)
	require.Contains(t, err.Error(), "use an actorrep.Ref")
}

// TestCoalesceKeepsOrder: a call that takes the place of another of its kind which waits still runs behind those that were
// made before it.
func TestCoalesceKeepsOrder(t *testing.T) {
	w, s, mirrors := soldiers(t, clean, 1)
	for i := range 400 {
		require.NoError(t, newest.Call(s, uint32(i)))
		if i == 390 {
			_ = tell.Call(s, "between")
		}
	}
	for range 60 {
		w.Step()
	}
	calls := mirrors[0].calls
	last := -1
	for _, c := range calls {
		var n int
		if _, err := fmt.Sscanf(c, "newest %d", &n); err == nil {
			require.Greater(t, n, last, strings.Join(calls, ", "))
			last = n
		}
	}
	require.Equal(t, 399, last)
}
