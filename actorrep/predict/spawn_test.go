package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type trigger struct{ Fire bool }

// tank fires a shell in each step in which the trigger is pulled and the gun is cool.
type tank struct {
	actorrep.Base
	X    float64 `net:"simulated" predict:"0.01"`
	Cool int8    `predict:""`
}

// shell knows the key by which its shooter has predicted it; nobody else is told.
type shell struct {
	actorrep.Base
	X   float64     `net:"initial"`
	Key predict.Key `net:"owner"`
}

// range is where tanks shoot: one at each end.
type gunnery struct {
	t      *testing.T
	class  *predict.Class[*tank, trigger]
	spawns *predict.Spawns[float64] // on the client: where it was shown first

	fired, taken, denied, others int
	refuse                       func() bool // on the server: what a client can't know
	shells                       []*shell
	peer                         *actorrep.Peer
}

func (k *tank) Simulate(in trigger, dt time.Duration) {
	k.X += dt.Seconds()
	k.Cool = max(k.Cool-1, 0)
	if !in.Fire || k.Cool > 0 {
		return
	}
	k.Cool = 2
	g := k.World().User.(*gunnery)
	key, again := g.class.Key(k, 0)
	switch {
	case !k.World().IsServer():
		if key != 0 && !again {
			g.fired++
			require.NoError(g.t, g.spawns.Add(key, k.X))
		}
	case !g.refuse():
		s := &shell{X: k.X, Key: key}
		s.SetOwner(g.peer)
		require.NoError(g.t, k.World().Spawn(s))
		g.shells = append(g.shells, s)
		g.fired++
	}
}

// Spawned takes the place of what was shown.
func (s *shell) Spawned() {
	g := s.World().User.(*gunnery)
	if s.Key == 0 {
		g.others++
		return
	}
	at, ok := g.spawns.Take(s.Key)
	if !ok {
		g.others++
		return
	}
	g.taken++
	require.InDelta(g.t, at, s.X, 0.05, "without a jump")
}

// Destroyed is for actorrep.Notified.
func (s *shell) Destroyed() {}

// TestPredictedSpawns: in 10,000 shots at 10 % loss each shell that the client showed is taken by the server's, or goes when there is none;
// nothing is doubled, and nothing is left.
func TestPredictedSpawns(t *testing.T) {
	shots := 500
	if !testing.Short() {
		shots = 10_000
	}
	refused, steps := 0, 0
	sg, cg := &gunnery{t: t}, &gunnery{t: t}
	sg.refuse = func() bool {
		if steps++; steps%20 == 0 {
			refused++
			return true
		}
		return false
	}
	cfg := predict.Config[*tank, trigger]{Input: func(*tank) trigger { return trigger{cg.fired < shots} }}
	register := func(w *actorrep.World, g *gunnery) (err error) {
		w.User = g
		if g.class, err = predict.Register(w, "Tank", cfg); err != nil {
			return err
		}
		g.spawns = predict.NewSpawns(g.class, 0, func(_ predict.Key, at float64) { g.denied++ })
		return w.Register("Shell", (*shell)(nil))
	}
	r := rig.New(t, 11, netsim.Settings{Lag: 60 * time.Millisecond, LagVariance: 20 * time.Millisecond, Loss: 10}, actorrep.Config{}, func(w *actorrep.World) error { return register(w, sg) })
	l := r.Join(func(w *actorrep.World) error { return register(w, cg) })
	sg.peer = l.Peer
	k := &tank{}
	require.NoError(t, r.Server.Spawn(k))
	require.NoError(t, sg.class.Possess(k, l.Peer, r.Now))
	quiet := 0
	for frame := 0; quiet < 120; frame++ {
		require.Less(t, frame, 30*60*60)
		require.NoError(t, sg.class.Tick(r.Now))
		if frame%30 == 0 { // what has been seen for a while goes
			keep := max(0, len(sg.shells)-200)
			for _, s := range sg.shells[:keep] {
				require.NoError(t, r.Server.Destroy(s))
			}
			sg.shells = sg.shells[keep:]
		}
		r.Step()
		require.NoError(t, cg.class.Tick(r.Now))
		cg.spawns.Tick(r.Now)
		if cg.fired >= shots {
			quiet++
		}
	}
	t.Logf("%d fired, %d taken, %d denied, %d of others; the server fired %d and refused %d; corrections %d", cg.fired, cg.taken, cg.denied, cg.others, sg.fired, refused, sg.class.Counters().Server.Corrections)
	require.Zero(t, cg.spawns.Len(), "nothing is left over")
	require.Equal(t, cg.fired, cg.taken+cg.denied)
	require.Equal(t, sg.fired, cg.taken+cg.others, "each of the server's is there once")
	require.GreaterOrEqual(t, cg.taken, shots*9/10)
	require.Less(t, cg.denied, refused+shots/50)
	require.Less(t, cg.others, shots/50)
}

// TestSpawnsBounded: what nobody takes is bounded, and told.
func TestSpawnsBounded(t *testing.T) {
	w := actorrep.NewClient(actorrep.Config{})
	class, err := predict.Register(w, "Tank", predict.Config[*tank, trigger]{})
	require.NoError(t, err)
	var denied []predict.Key
	s := predict.NewSpawns(class, time.Second, func(k predict.Key, fake int) { denied = append(denied, k) })
	require.NoError(t, s.Add(0, 0))
	require.Zero(t, s.Len())
	for i := range predict.MaxSpawns {
		require.NoError(t, s.Add(predict.Key(i+1), i))
		require.NoError(t, s.Add(predict.Key(i+1), i), "once is enough")
	}
	require.ErrorIs(t, s.Add(predict.MaxSpawns+1, 0), predict.ErrManySpawns)
	fake, ok := s.Take(5)
	require.True(t, ok)
	require.Equal(t, 4, fake)
	_, ok = s.Take(5)
	require.False(t, ok)
	n := 0
	for k, fake := range s.All {
		require.EqualValues(t, k, fake+1)
		n++
	}
	require.Equal(t, predict.MaxSpawns-1, n)
	s.Tick(0)
	s.Tick(time.Second - 1)
	require.Empty(t, denied)
	s.Tick(time.Second)
	require.Len(t, denied, predict.MaxSpawns-1)
	require.Zero(t, s.Len())
}
