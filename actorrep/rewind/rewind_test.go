package rewind_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

const ms = time.Millisecond

func lerp(a, b, t float64) float64 { return a + (b-a)*t }

// config is of things on the x axis, a metre wide.
func config() rewind.Config[float64] {
	return rewind.Config[float64]{Lerp: lerp,
		Teleport: func(a, b float64) bool { return b-a > 50 || a-b > 50 },
		Hitboxes: func(_ rewind.ID, x *float64, dst []rewind.Capsule) []rewind.Capsule {
			return append(dst, rewind.Sphere(rewind.Vec{*x}, 0.5), rewind.Capsule{A: rewind.Vec{*x, 0, 1}, B: rewind.Vec{*x, 0, 2}, Radius: 0.3})
		}}
}

func newHistory(t testing.TB, cfg rewind.Config[float64]) *rewind.History[float64] {
	h, err := rewind.New(cfg)
	require.NoError(t, err)
	return h
}

type record struct {
	at    time.Duration
	poses map[rewind.ID]float64
}

// modelAt is the naive view: all snapshots in a list, poses in maps.
func modelAt(all []record, keep int, at time.Duration) map[rewind.ID]float64 {
	all = all[max(0, len(all)-keep):]
	out := map[rewind.ID]float64{}
	if len(all) == 0 {
		return out
	}
	before := 0
	for i, r := range all {
		if r.at <= at {
			before = i
		}
	}
	for id, p := range all[before].poses {
		if before+1 < len(all) && at > all[before].at {
			next := all[before+1]
			if q, ok := next.poses[id]; ok && q-p <= 50 && p-q <= 50 {
				p = lerp(p, q, float64(at-all[before].at)/float64(next.at-all[before].at))
			}
		}
		out[id] = p
	}
	return out
}

func TestModel(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := config()
		cfg.Snapshots, cfg.MaxEntities, cfg.MaxRewind = 2+rnd.IntN(12), 1+rnd.IntN(10), time.Duration(1+rnd.IntN(400))*ms
		h := newHistory(t, cfg)
		var all []record
		now := time.Duration(0)
		for range 100 {
			now += time.Duration(1+rnd.IntN(60)) * ms
			require.NoError(t, h.Begin(now))
			r := record{at: now, poses: map[rewind.ID]float64{}}
			for range rnd.IntN(14) {
				id, p := rewind.ID(1+rnd.IntN(12)), rnd.Float64()*100
				_, known := r.poses[id]
				err := h.Add(id, p)
				if !known && len(r.poses) == cfg.MaxEntities {
					require.ErrorIs(t, err, rewind.ErrFull, "seed %d", seed)
					continue
				}
				require.NoError(t, err, "seed %d", seed)
				r.poses[id] = p
			}
			all = append(all, r)
			view := now - time.Duration(rnd.IntN(600)-50)*ms
			at := min(max(view, now-cfg.MaxRewind), now)
			v := h.At(now, view)
			require.Equal(t, at, v.Time())
			require.Equal(t, at, h.Clamp(now, view))
			want := modelAt(all, cfg.Snapshots, at)
			n, last := 0, rewind.NoID
			v.All(func(id rewind.ID, p float64) bool {
				require.Greater(t, id, last)
				require.InDelta(t, want[id], p, 1e-9, "seed %d: %d", seed, id)
				q, ok := v.Pose(id)
				require.True(t, ok && q == p)
				last, n = id, n+1
				return true
			})
			require.Len(t, want, n, "seed %d", seed)
			for id := rewind.ID(0); id < 15; id++ {
				_, there := want[id]
				_, ok := v.Pose(id)
				require.Equal(t, there, ok)
			}
		}
		require.Equal(t, min(100, cfg.Snapshots), h.Len())
	}
}

// Queries against all the hitboxes, one by one.
func TestQueries(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		h := newHistory(t, config())
		require.NoError(t, h.Begin(0))
		poses := map[rewind.ID]float64{}
		for range 10 {
			id := rewind.ID(1 + rnd.IntN(30))
			poses[id] = rnd.Float64() * 20
			require.NoError(t, h.Add(id, poses[id]))
		}
		v := h.At(0, 0)
		for range 20 {
			shape := rewind.Capsule{A: vec(rnd), B: vec(rnd), Radius: rnd.Float64() * 2}
			skip := rewind.ID(rnd.IntN(30))
			var want []string
			for id, x := range poses {
				if id == skip {
					continue
				}
				one := newHistory(t, config())
				require.NoError(t, one.Begin(0))
				require.NoError(t, one.Add(id, x))
				for _, touch := range one.At(0, 0).Overlap(shape, rewind.NoID, nil) {
					want = append(want, fmt.Sprint(touch))
				}
			}
			var got []string
			for _, touch := range v.Overlap(shape, skip, nil) {
				got = append(got, fmt.Sprint(touch))
			}
			sort.Strings(want)
			sort.Strings(got)
			require.Equal(t, want, got, "seed %d", seed)

			hit, ok := v.Ray(shape.A, shape.B, skip)
			thin := shape
			thin.Radius = 0
			touched := v.Overlap(thin, skip, nil)
			require.Equal(t, len(touched) > 0, ok, "seed %d: what a thin capsule touches a ray meets", seed)
			if ok {
				require.NotEqual(t, skip, hit.ID)
				upTo := v.Overlap(rewind.Capsule{A: shape.A, B: along(shape.A, shape.B, hit.T*0.999)}, skip, nil)
				require.True(t, len(upTo) == 0 || hit.T < 1e-3, "seed %d: something is met before", seed)
				at := v.Overlap(rewind.Sphere(hit.At, 1e-6), skip, nil)
				require.NotEmpty(t, at, "seed %d", seed)
				require.Equal(t, hit.ID, at[0].ID)
			}
		}
	}
}

func vec(rnd *rand.Rand) rewind.Vec {
	return rewind.Vec{rnd.Float64()*24 - 2, rnd.Float64()*4 - 2, rnd.Float64()*6 - 2}
}

func along(a, b rewind.Vec, t float64) rewind.Vec {
	for i := range a {
		a[i] += (b[i] - a[i]) * t
	}
	return a
}

// A player shoots at what it saw: with the rewind it hits, without it doesn't.
func TestShot(t *testing.T) {
	h := newHistory(t, config())
	for now := time.Duration(0); now <= time.Second; now += 33 * ms {
		require.NoError(t, h.Begin(now))
		require.NoError(t, h.Add(7, 10*now.Seconds())) // 10 m/s
	}
	now, rtt, delay := 990*ms, 100*ms, 80*ms
	seen := rewind.ViewTime(now-rtt/2, rtt, delay)
	require.Equal(t, now-rtt-delay, seen)
	x := 10 * seen.Seconds()
	from, to := rewind.Vec{x, -20, 0}, rewind.Vec{x, 20, 0}
	hit, ok := h.At(now, seen).Ray(from, to, rewind.NoID)
	require.True(t, ok)
	require.Equal(t, rewind.ID(7), hit.ID)
	require.InDelta(t, -0.5, hit.At[1], 1e-6)
	_, ok = h.At(now, seen).Ray(from, to, 7)
	require.False(t, ok, "nobody shoots oneself")
	_, ok = h.At(now, now).Ray(from, to, rewind.NoID)
	require.False(t, ok)
	_, ok = h.At(now, 0).Ray(rewind.Vec{0, -20, 0}, rewind.Vec{0, 20, 0}, rewind.NoID)
	require.False(t, ok, "it was there too long ago")
	require.Equal(t, uint64(1), h.Counters.Clamped)
	require.Equal(t, uint64(4), h.Counters.Views)
}

// game is a world for Do.
type game map[rewind.ID]float64

func (g game) Pose(id rewind.ID) (float64, bool) { p, ok := g[id]; return p, ok }

func (g game) SetPose(id rewind.ID, p float64) {
	if _, ok := g[id]; !ok {
		panic("set what isn't there")
	}
	if p == 666 {
		panic("666")
	}
	g[id] = p
}

func TestDoRestores(t *testing.T) {
	h := newHistory(t, config())
	require.NoError(t, h.Begin(0))
	for id := rewind.ID(1); id <= 4; id++ {
		require.NoError(t, h.Add(id, float64(id)))
	}
	require.NoError(t, h.Begin(100*ms))
	now := func() game { return game{1: 101, 2: 102, 3: 103, 9: 109} } // 4 left, 9 came
	g := now()
	require.NoError(t, h.Do(100*ms, 0, g, 2, func(v *rewind.View[float64]) {
		require.Equal(t, game{1: 1, 2: 102, 3: 3, 9: 109}, g)
		require.Zero(t, v.Time())
		require.ErrorIs(t, h.Do(100*ms, 0, g, 2, func(*rewind.View[float64]) { t.Fatal("nested") }), rewind.ErrNested)
		require.Equal(t, game{1: 1, 2: 102, 3: 3, 9: 109}, g, "the nested one changed nothing")
		g.SetPose(3, 55)
		delete(g, 1)
	}))
	require.Equal(t, game{2: 102, 3: 103, 9: 109}, g)

	g = now()
	require.PanicsWithValue(t, "the game's", func() {
		_ = h.Do(100*ms, 0, g, 2, func(*rewind.View[float64]) { panic("the game's") })
	})
	require.Equal(t, now(), g)

	require.NoError(t, h.Begin(200*ms))
	require.NoError(t, h.Add(1, 1))
	require.NoError(t, h.Add(3, 666))
	require.PanicsWithValue(t, "666", func() {
		_ = h.Do(200*ms, 200*ms, g, rewind.NoID, func(*rewind.View[float64]) { t.Fatal("called") })
	})
	require.Equal(t, now(), g, "a world half in the past comes back too")
	require.NoError(t, h.Do(100*ms, 0, g, 2, func(*rewind.View[float64]) {}))
}

func TestErrors(t *testing.T) {
	h := newHistory(t, config())
	require.ErrorIs(t, h.Add(1, 1), rewind.ErrOrder)
	_, ok := h.At(0, 0).Ray(rewind.Vec{}, rewind.Vec{1}, rewind.NoID)
	require.False(t, ok)
	require.NoError(t, h.Begin(5))
	require.ErrorIs(t, h.Begin(5), rewind.ErrOrder)
	for i, cfg := range []rewind.Config[float64]{
		{}, {Lerp: lerp, MaxRewind: -1}, {Lerp: lerp, MaxRewind: time.Minute}, {Lerp: lerp, Snapshots: 1}, {Lerp: lerp, Snapshots: 2000},
		{Lerp: lerp, MaxEntities: -1}, {Lerp: lerp, MaxEntities: 70000},
	} {
		_, err := rewind.New(cfg)
		require.ErrorIs(t, err, rewind.ErrConfig, "case %d", i)
	}
	cfg := rewind.Config[float64]{Lerp: lerp}
	h = newHistory(t, cfg)
	require.NoError(t, h.Begin(5))
	require.NoError(t, h.Add(1, 0))
	require.Empty(t, h.At(5, 5).Overlap(rewind.Sphere(rewind.Vec{}, 1), rewind.NoID, nil), "there are no hitboxes")
	cfg.Hitboxes = func(id rewind.ID, p *float64, dst []rewind.Capsule) []rewind.Capsule {
		if id == 1 {
			return dst
		}
		for range 40 {
			dst = append(dst, rewind.Sphere(rewind.Vec{*p}, 1))
		}
		return dst
	}
	h = newHistory(t, cfg)
	require.NoError(t, h.Begin(5))
	require.NoError(t, h.Add(1, 0))
	require.NoError(t, h.Add(2, 0))
	require.Len(t, h.At(5, 5).Overlap(rewind.Sphere(rewind.Vec{}, 1), rewind.NoID, nil), rewind.MaxHitboxes)
	require.Equal(t, uint64(8), h.Counters.Ignored)
	n := 0
	h.At(5, 5).All(func(rewind.ID, float64) bool { n++; return false })
	require.Equal(t, 1, n)
}

// TestShow: a view of poses from elsewhere answers as one of a history, whatever the order in which they are added, and is bounded.
func TestShow(t *testing.T) {
	h, err := rewind.New(rewind.Config[rewind.Vec]{Lerp: func(a, _ rewind.Vec, _ float64) rewind.Vec { return a }, MaxEntities: 3,
		Hitboxes: func(_ rewind.ID, p *rewind.Vec, dst []rewind.Capsule) []rewind.Capsule {
			return append(dst, rewind.Capsule{A: *p, B: *p, Radius: 1})
		}})
	require.NoError(t, err)
	for range 2 { // nothing of the view before is left
		v := h.Show(7, func(add func(id rewind.ID, p rewind.Vec) error) {
			require.NoError(t, add(5, rewind.Vec{0, 50, 0}))
			require.NoError(t, add(2, rewind.Vec{0, 20, 0}))
			require.NoError(t, add(9, rewind.Vec{0, 90, 0}))
			require.NoError(t, add(2, rewind.Vec{0, 25, 0}))
			require.ErrorIs(t, add(3, rewind.Vec{}), rewind.ErrFull)
		})
		require.EqualValues(t, 7, v.Time())
		var ids []rewind.ID
		v.All(func(id rewind.ID, _ rewind.Vec) bool { ids = append(ids, id); return true })
		require.Equal(t, []rewind.ID{2, 5, 9}, ids)
		hit, ok := v.Ray(rewind.Vec{-5, 25, 0}, rewind.Vec{5, 25, 0}, rewind.NoID)
		require.True(t, ok)
		require.EqualValues(t, 2, hit.ID)
	}
	require.EqualValues(t, 2, h.Counters.Full)
}
