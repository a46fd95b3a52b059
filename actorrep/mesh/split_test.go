package mesh

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// piece is what has one server in a plane that is divided: the naive model.
type piece struct {
	square
	depth  int
	server string
}

// drawDivision returns a table whose cells are divided at random, and its pieces, each found by halving squares.
func drawDivision(rng *rand.Rand, depth int) (Table, []piece) {
	t := Table{Epoch: 1, X: float64(rng.IntN(100)), Y: -float64(rng.IntN(100)), Cell: float64(16 * (1 + rng.IntN(6))), Columns: 1 + rng.IntN(4)}
	var level, next, pieces []piece
	for i := range t.Columns * (1 + rng.IntN(4)) {
		level = append(level, piece{square: square{t.X + float64(i%t.Columns)*t.Cell, t.Y + float64(i/t.Columns)*t.Cell, t.Cell}})
	}
	for len(level) > 0 {
		next = nil
		for _, p := range level {
			if p.depth == depth || rng.IntN(3) > 0 {
				p.server = fmt.Sprint("s", rng.IntN(5))
				pieces = append(pieces, p)
				t.Servers = append(t.Servers, p.server)
				continue
			}
			t.Splits, t.Servers = append(t.Splits, len(t.Servers)), append(t.Servers, "")
			h := p.side / 2
			for _, q := range []square{{p.x, p.y, h}, {p.x + h, p.y, h}, {p.x, p.y + h, h}, {p.x + h, p.y + h, h}} {
				next = append(next, piece{square: q, depth: p.depth + 1})
			}
		}
		level = next
	}
	return t, pieces
}

// TestDivision: a place's server, and which ones are near, are those of the naive model: of the pieces the one that it is in, and the least distance to those of each server. What is outside belongs to what is nearest.
func TestDivision(t *testing.T) {
	for seed := *first; seed < *first+300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		table, pieces := drawDivision(rng, rng.IntN(5))
		require.NoError(t, table.check(), "seed %d", seed)
		require.InDelta(t, slices.MinFunc(pieces, func(a, b piece) int { return b.depth - a.depth }).side, table.side(), 1e-9)
		width, height := float64(table.Columns)*table.Cell, float64(table.rows())*table.Cell
		for range 100 {
			x, y := table.X+width*(1.4*rng.Float64()-0.2), table.Y+height*(1.4*rng.Float64()-0.2)
			if rng.IntN(4) == 0 { // a corner of one
				p := pieces[rng.IntN(len(pieces))]
				x, y = p.x, p.y
			}
			inX, inY := min(max(x, table.X), table.X+width), min(max(y, table.Y), table.Y+height)
			r := table.Cell * 2 * rng.Float64()
			near, in := map[string]float64{}, ""
			for _, p := range pieces {
				d := math.Hypot(max(p.x-inX, 0, inX-p.x-p.side), max(p.y-inY, 0, inY-p.y-p.side))
				if was, ok := near[p.server]; !ok || d < was {
					near[p.server] = d
				}
				if inX >= p.x && (inX < p.x+p.side || p.x+p.side == table.X+width) && inY >= p.y && (inY < p.y+p.side || p.y+p.side == table.Y+height) && in == "" {
					in = p.server
				}
			}
			require.Equal(t, in, table.At(x, y), "seed %d at %v, %v of %+v", seed, x, y, table)
			all := table.near(nil, x, y, r)
			for server, d := range near {
				if d <= r {
					require.InDelta(t, d, distanceOf(all, server), 1e-9, "seed %d at %v, %v: %s within %v of %+v", seed, x, y, server, r, table)
				} else {
					require.True(t, math.IsInf(distanceOf(all, server), 1), "seed %d", seed)
				}
			}
		}
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
			require.NotEmpty(t, table.At(v, v))
			require.NotEmpty(t, table.near(nil, v, -v, 1))
		}
	}
}

// TestHostileDivisions: a table whose splits aren't those of squares is refused, as is one that is too large or too deep.
func TestHostileDivisions(t *testing.T) {
	table := func(cells, columns int, splits ...int) Table {
		t := Table{Epoch: 1, Cell: 1 << 20, Columns: columns, Splits: splits, Servers: slices.Repeat([]string{"a"}, cells+4*len(splits))}
		for _, at := range splits {
			if at >= 0 && at < len(t.Servers) {
				t.Servers[at] = ""
			}
		}
		return t
	}
	chain := func(depth int) (splits []int) {
		for i := range depth {
			splits = append(splits, 4*i)
		}
		return splits
	}
	all := func(n int) (splits []int) {
		for i := range n {
			splits = append(splits, i)
		}
		return splits
	}
	for _, good := range []Table{table(1, 1, 0), table(1, 1, 0, 1, 2), table(4, 2, 1, 3, 4, 11), table(1, 1, chain(maxDepth)...), table(maxCells, 256, all(maxSplits)...)} {
		require.NoError(t, good.check())
		require.Equal(t, "a", good.At(0.1, 0.1))
	}
	named, unnamed := table(4, 2, 1), table(4, 2, 1)
	named.Servers[1], unnamed.Servers[2] = "a", ""
	negative := table(4, 2)
	negative.Splits = []int{0, 1}
	for i, bad := range []Table{table(1, 1, 1), table(1, 1, 0, 0), table(4, 2, 3, 1), table(4, 2, -1), table(4, 2, math.MinInt), table(4, 2, math.MaxInt), table(4, 2, 4), table(4, 2, 1, 8), table(1, 1, chain(maxDepth+1)...),
		named, unnamed, negative, table(maxCells, 256, all(maxSplits+1)...), table(maxCells+256, 256, 1), table(3, 2, 1), table(4, 0, 1), table(4, -2, 1), {Epoch: 1, Cell: 1, Columns: 1, Splits: []int{0}, Servers: []string{"", "a", "a", "a"}}} {
		require.ErrorIs(t, bad.check(), ErrConfig, "%d", i)
	}
	p := newPost(t, 0, nil)
	for depth, allowed := range []bool{true, true, true, true, true, false} {
		deep := table(1, 1, chain(depth)...)
		deep.Epoch, deep.Cell = uint64(10+depth), 100
		if err := p.zone.SetTable(deep); allowed {
			require.NoError(t, err)
			require.Equal(t, "a", p.zone.Table().At(1, 99))
		} else {
			require.ErrorIs(t, err, ErrConfig, "quarters of 3, with a margin of 20")
		}
	}
	require.EqualValues(t, 4, p.zone.deepest(200))
}

// drawParts divides a zone at random.
func drawParts(rng *rand.Rand, depth uint8) []part {
	parts := wholly(fmt.Sprint("s", rng.IntN(4)))
	for range rng.IntN(20) {
		if at := rng.IntN(len(parts)); parts[at].depth < depth {
			parts = divided(parts, at)
		}
	}
	for i := range parts {
		parts[i].holder, parts[i].calm = fmt.Sprint("s", rng.IntN(4)), rng.IntN(2) == 0
	}
	if len(parts) == 1 {
		parts[0].calm = false
	}
	return parts
}

// TestZoneParts: what is written of a zone is read as it was. What isn't a zone's parts is damaged.
func TestZoneParts(t *testing.T) {
	for seed := *first; seed < *first+300; seed++ {
		v, read := zoneValue{seed, drawParts(rand.New(rand.NewPCG(seed, 3)), maxDepth)}, zoneValue{}
		require.True(t, read.read(v.append(nil)), "seed %d: %+v", seed, v)
		require.Equal(t, v, read)
	}
	of := func(depths ...uint8) (parts []part) {
		for _, d := range depths {
			parts = append(parts, part{depth: d, holder: "b"})
		}
		return parts
	}
	many := func(n int) []part {
		parts := wholly("b")
		for len(parts)+3 <= n {
			parts = divided(parts, slices.IndexFunc(parts, func(p part) bool { return p.depth < 5 }))
		}
		return parts
	}
	for _, good := range [][]part{of(0), of(1, 1, 1, 1), of(1, 2, 2, 2, 2, 1, 1), many(maxParts)} {
		require.True(t, new(zoneValue).read((&zoneValue{1, good}).append(nil)), "%v", good)
	}
	nobody := of(1, 1, 1, 1)
	nobody[2].holder = ""
	for _, bad := range [][]part{of(1, 1, 1), of(1, 1, 1, 1, 1), of(2, 1, 2, 1, 2, 1, 2), of(1, 1, 1, 2, 2, 2), of(9, 9, 9, 9), of(127, 1), of(0, 0), nobody, slices.Repeat(of(1), 1<<12), many(maxParts + 3)} {
		require.False(t, new(zoneValue).read((&zoneValue{1, bad}).append(nil)), "%v", bad)
	}
	long := many(maxParts)
	for i := range long {
		long[i].holder = strings.Repeat("b", maxID)
	}
	require.LessOrEqual(t, len((&zoneValue{maxTenancies - 1, long}).append(nil)), maxRecord)
	one := (&zoneValue{1, of(1, 1, 1, 1)}).append(nil)
	for n := range one {
		require.False(t, new(zoneValue).read(one[:n]))
	}
	require.False(t, new(zoneValue).read([]byte{splitVersion, 1, 0, 1, 'b'}), "a zone that isn't split is written in one way")
}

// FuzzZoneParts reads any bytes as a zone's value: what is taken is parts of one zone, of a bounded number, and is written so that it is read again.
func FuzzZoneParts(f *testing.F) {
	for seed := range uint64(5) {
		f.Add((&zoneValue{seed, drawParts(rand.New(rand.NewPCG(seed, 3)), maxDepth)}).append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again zoneValue
		if !v.read(b) {
			return
		}
		require.LessOrEqual(t, len(v.parts), maxParts)
		at, left := squaresOf(square{side: 1}, 0, v.parts)
		require.Len(t, at, len(v.parts))
		require.Empty(t, left)
		require.True(t, again.read(v.append(nil)))
		require.Equal(t, v, again)
		merged, n := merge(slices.Clone(v.parts), v.parts[0].holder)
		require.True(t, fits(merged))
		require.Equal(t, len(v.parts)-3*n, len(merged))
	})
}

// TestMerge: four parts become one that were split from one, are all calm, and whose first is the holder's; no others do.
func TestMerge(t *testing.T) {
	merged := 0
	for seed := *first; seed < *first+1000; seed++ {
		parts := drawParts(rand.New(rand.NewPCG(seed, 4)), 4)
		at, _ := squaresOf(square{side: wholeZone}, 0, parts)
		want := map[square]string{}
		for i, q := range at {
			want[q] = parts[i].holder
		}
		for i, q := range at {
			if parts[i].holder != "s1" || !parts[i].calm || math.Mod(q.x, 2*q.side) != 0 || math.Mod(q.y, 2*q.side) != 0 {
				continue
			}
			four := 0
			for n, o := range at {
				four += b2i(parts[n].calm && o.side == q.side && o.x >= q.x && o.x <= q.x+q.side && o.y >= q.y && o.y <= q.y+q.side)
			}
			if four == 4 {
				merged++
				for _, o := range []square{q, {q.x + q.side, q.y, q.side}, {q.x, q.y + q.side, q.side}, {q.x + q.side, q.y + q.side, q.side}} {
					delete(want, o)
				}
				want[square{q.x, q.y, 2 * q.side}] = "s1"
			}
		}
		was := slices.Clone(parts)
		is, _ := merge(parts, "s1")
		places, _ := squaresOf(square{side: wholeZone}, 0, is)
		got := map[square]string{}
		for i, q := range places {
			got[q] = is[i].holder
		}
		require.Equal(t, want, got, "seed %d: %v", seed, was)
	}
	require.Greater(t, merged, 10)
}

// newDivided returns a Keeper's server whose zones are divided at random.
func newDivided(t testing.TB, rng *rand.Rand) *solo {
	s := newScales(t, 12, 4, func(Actor) float64 { return 1 })
	for _, z := range s.keeper.zones {
		z.takes(zoneValue{1, drawParts(rng, 4)})
	}
	s.keeper.zonesChanged()
	return s
}

// TestPlacesOfParts: the table that a Keeper makes, and the part of each place in it, are those of the zones' parts by halving squares, and parts touch where these do.
func TestPlacesOfParts(t *testing.T) {
	for seed := *first; seed < *first+50; seed++ {
		s := newDivided(t, rand.New(rand.NewPCG(seed, 5)))
		k := s.keeper
		table := k.lay().Table
		table.Epoch = 1
		require.NoError(t, table.check())
		type place struct {
			square
			zone, part int
		}
		var all []place
		for n, z := range k.zones {
			at, left := squaresOf(square{float64(n%4) * 10, float64(n/4) * 10, 10}, 0, z.value.parts)
			require.Empty(t, left)
			for i, q := range at {
				all = append(all, place{q, n, i})
				x, y := q.x+q.side/2, q.y+q.side/2
				require.Equal(t, z.value.parts[i].holder, table.At(x, y), "seed %d", seed)
				spot := k.lay().spots[k.lay().find(x, y)]
				require.Equal(t, place{q, n, i}, place{spot.square, spot.zone, spot.part}, "seed %d", seed)
			}
		}
		want := map[[4]int]int{}
		for _, a := range all {
			for _, b := range all {
				beside := a.x+a.side == b.x || b.x+b.side == a.x
				above := a.y+a.side == b.y || b.y+b.side == a.y
				dx, dy := min(a.x+a.side, b.x+b.side)-max(a.x, b.x), min(a.y+a.side, b.y+b.side)-max(a.y, b.y)
				if length := max(dx, dy); length > 0 && (beside && dx == 0 || above && dy == 0) {
					want[[4]int{a.zone, a.part, b.zone, b.part}] = int(length * (1 << maxDepth) / 10)
				}
			}
		}
		got := map[[4]int]int{}
		for _, b := range k.lay().borders() {
			i, j := k.lay().spots[b.a], k.lay().spots[b.b]
			got[[4]int{i.zone, i.part, j.zone, j.part}] += b.length
			got[[4]int{j.zone, j.part, i.zone, i.part}] += b.length
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// zoneOps are the zones' values that a Keeper has asked for since, as parts by key.
func (s *solo) zoneOps() map[string]zoneValue {
	m := map[string]zoneValue{}
	for _, op := range s.keeper.ops {
		var v zoneValue
		if op.Kind == kv.Put && v.read(op.Value) {
			m[op.Key] = v
		}
	}
	s.keeper.ops = nil
	return m
}

// TestSplitsWhatIsTooHeavy: a crowd in one zone is split when it can't be handed, though some around it is; what weighs no more than Split isn't, nor when all weigh as much, nor beyond the smallest side, nor a zone of several cells, nor at a server without Split.
func TestSplitsWhatIsTooHeavy(t *testing.T) {
	play := func(change func(s *solo), weights map[int]uint64) (split []string, handed int) {
		s := newScales(t, 4, 4, func(Actor) float64 { return 1 })
		s.keeper.cfg.Split, s.keeper.deepest = 50, 1
		s.server("b", 1)
		change(s)
		s.weigh(weights)
		for key, v := range s.zoneOps() {
			if len(v.parts) > 1 {
				split = append(split, key)
				for _, p := range v.parts {
					require.Equal(t, part{depth: 1, holder: "a"}, p)
				}
			} else {
				handed++
			}
		}
		return split, handed
	}
	as := func(*solo) {}
	crowd := map[int]uint64{1: 500, 2: 100_000}
	split, handed := play(as, crowd)
	require.Equal(t, []string{"mesh.zone.z2"}, split)
	require.Equal(t, 1, handed)
	for name, change := range map[string]func(s *solo){
		"without Split": func(s *solo) { s.keeper.cfg.Split = 0 },
		"above it":      func(s *solo) { s.keeper.cfg.Split = 100 },
		"the smallest":  func(s *solo) { s.keeper.deepest = 0 },
		"of cells":      func(s *solo) { s.keeper.zones[2].cells = 2 },
		"many parts": func(s *solo) {
			s.keeper.lay().Splits = make([]int, splitsTaken)
		},
		"it is written":  func(s *solo) { s.keeper.zones[2].tryAt = s.keeper.now + 1 },
		"it isn't alone": func(s *solo) { s.server("b", 99_000) },
	} {
		split, _ := play(change, crowd)
		require.Empty(t, split, name)
	}
	split, handed = play(as, map[int]uint64{0: 60_000, 1: 60_000})
	require.Empty(t, split)
	require.Equal(t, 1, handed)
}

// TestFormerReleaseIsTold: beside a server whose lease doesn't say that it knows zones that are split, or can't be read, nothing is split, which is told once. When it is over, or has the new release, zones are split.
func TestFormerReleaseIsTold(t *testing.T) {
	var told []error
	s := newScales(t, 4, 4, func(Actor) float64 { return 1 })
	s.zone.cfg.World = actorrep.NewServer(actorrep.Config{Failed: func(err error) { told = append(told, err) }})
	k := s.keeper
	k.cfg.Split, k.deepest = 50, 1
	s.server("b", 1)
	require.Greater(t, k.mine.beat, uint64(splitBeats))
	splits := func() bool {
		s.server("b", 1)
		s.weigh(map[int]uint64{2: 100_000})
		k.zones[2].tryAt = 0
		ops := s.zoneOps()
		return len(ops["mesh.zone.z2"].parts) == 4
	}
	require.True(t, splits())
	hears := func(value []byte) {
		s.rev++
		k.heardLease("c", &kv.Event{Kind: kv.Changed, Value: value, Revision: s.rev})
	}
	former := leaseValue{beat: 1<<32 - 1, length: 2 * time.Second, load: 1}
	for _, value := range [][]byte{{leaseVersion + 1}, former.append(nil)} {
		hears(value)
		require.False(t, splits())
		require.Len(t, told, 1)
		require.ErrorContains(t, told[0], `"c"`)
	}
	former.over = true
	hears(former.append(nil))
	k.lease("c").gone = true
	k.seen, k.end = s.rev, s.rev
	require.True(t, splits())
	s.server("c", 1)
	require.True(t, splits())
	require.Len(t, told, 1)
}

// TestSplitConfig: a Split that never splits anything is told.
func TestSplitConfig(t *testing.T) {
	s := newScales(t, 1, 1, nil)
	s.zone.keeper = nil
	weight := func(Actor) float64 { return 1 }
	for _, c := range []struct {
		change func(c *KeeperConfig)
		good   bool
	}{
		{func(c *KeeperConfig) {}, true},
		{func(c *KeeperConfig) { c.Split = 0 }, true},
		{func(c *KeeperConfig) { c.Split = math.Inf(1) }, true},
		{func(c *KeeperConfig) { c.Split = -1 }, false},
		{func(c *KeeperConfig) { c.Split = math.NaN() }, false},
		{func(c *KeeperConfig) { c.Weight = nil }, false},
		{func(c *KeeperConfig) { c.Spread = -1 }, false},
		{func(c *KeeperConfig) { c.Plan.Cell = 5.4 }, false},
		{func(c *KeeperConfig) { c.Plan.Cell = 5.6 }, false},
		{func(c *KeeperConfig) { c.Plan.Cell = 8 }, true},
		{func(c *KeeperConfig) { c.Split, c.Plan.Cell = 0, 2.7 }, false},
		{func(c *KeeperConfig) { c.Plan.Servers, c.Plan.Splits = []string{"", "z", "z", "z", "z"}, []int{0} }, false},
	} {
		cfg := KeeperConfig{Zone: s.zone, Plan: Table{Cell: 10, Columns: 1, Servers: []string{"z"}}, Zones: []string{"z"}, Weight: weight, Split: 10, Save: func(Actor) []byte { return nil }}
		c.change(&cfg)
		k, err := NewKeeper(cfg)
		s.zone.keeper = nil
		if c.good {
			require.NoError(t, err)
			require.NotZero(t, k.deepest)
		} else {
			require.ErrorIs(t, err, ErrConfig)
		}
	}
}

// TestCalmParts: a part is calm when it has weighed little for four Spreads, and isn't any more when it weighs twice as much; its zone's epoch stays. With all four calm the first one's holder merges them.
func TestCalmParts(t *testing.T) {
	s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
	k := s.keeper
	k.cfg.Split = 16
	z := k.zones[0]
	of := func(holders string, calm ...bool) (parts []part) {
		for i, h := range holders {
			parts = append(parts, part{1, calm[i], string(h)})
		}
		return parts
	}
	step := func(parts []part, weight uint64, times float64) (zoneValue, bool) {
		z.takes(zoneValue{7, parts})
		z.tryAt = 0
		for i := range z.shares {
			z.shares[i].mean, z.shares[i].times = weight, times
		}
		k.stepCalm()
		v, ok := s.zoneOps()["mesh.zone.z0"]
		return v, ok
	}
	most := k.mostTimes()
	none := []bool{false, false, false, false}
	v, ok := step(of("aabb", none...), 1000, most)
	require.True(t, ok)
	require.Equal(t, zoneValue{7, of("aabb", true, true, false, false)}, v)
	for _, c := range []struct {
		weight uint64
		times  float64
	}{{1001, most}, {0, most - 1}} {
		_, ok = step(of("aabb", none...), c.weight, c.times)
		require.False(t, ok)
	}
	_, ok = step(of("aabb", true, true, false, false), 2000, most)
	require.False(t, ok)
	v, _ = step(of("aabb", true, true, true, true), 2001, most)
	require.Equal(t, zoneValue{7, of("aabb", false, false, true, true)}, v)
	v, _ = step(of("aabb", true, false, true, true), 0, most)
	require.Equal(t, zoneValue{8, wholly("a")}, v)
	_, ok = step(of("baab", true, true, true, true), 0, most)
	require.False(t, ok, "the first one's holder does it")
	k.cfg.Split = 0
	_, ok = step(of("aabb", true, false, true, true), 0, most)
	require.False(t, ok)
}

// TestPartsAllocateNothing: while no zone changes hands nothing is allocated for their parts.
func TestPartsAllocateNothing(t *testing.T) {
	s := newDivided(t, rand.New(rand.NewPCG(1, 5)))
	k := s.keeper
	k.cfg.Split = 1e6
	for i := range 4 {
		s.server(fmt.Sprint("s", i), 1)
	}
	for _, z := range k.zones {
		for i := range z.value.parts {
			z.value.parts[i].calm = false
		}
	}
	step := func() {
		k.stepLeases()
		k.stepCalm()
	}
	step()
	require.Empty(t, s.zoneOps())
	require.Zero(t, testing.AllocsPerRun(100, step))
}

// TestCalmIsNoChange: that parts have become calm doesn't keep zones from being handed, as when one has changed hands. A zone of which something is being written isn't handed meanwhile.
func TestCalmIsNoChange(t *testing.T) {
	z := tenancy{value: zoneValue{parts: wholly("")}, shares: make([]share, 1)}
	parts := divided(wholly("a"), 0)
	for i, c := range []struct {
		epoch uint64
		calm  bool
		at    time.Duration
	}{{7, false, 1}, {7, true, 1}, {8, true, 3}, {8, false, 3}} {
		parts[2].calm = c.calm
		z.heard(&kv.Event{Kind: kv.Changed, Value: (&zoneValue{c.epoch, parts}).append(nil), Revision: uint64(70 + i)}, time.Duration(1+i))
		require.Equal(t, c.at, z.at)
		require.Equal(t, parts, z.value.parts)
		require.EqualValues(t, 70+i, z.rev)
	}
	s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
	s.server("b", 1)
	s.keeper.zones[0].tryAt = s.keeper.now + 1
	require.Equal(t, map[string]string{"mesh.zone.z1": "b"}, s.weigh(map[int]uint64{0: 1000, 1: 1000}))
	require.Empty(t, s.keeper.zones[0].shares[0].to)
}

// TestHandsItsParts: Hand gives the parts that this server holds, and no others; without Weight they are counted and handed one by one as zones are.
func TestHandsItsParts(t *testing.T) {
	s := newScales(t, 2, 2, nil)
	k := s.keeper
	s.server("b", 0)
	s.server("c", 0)
	parts := []part{{1, true, "a"}, {1, true, "c"}, {1, true, "b"}, {1, false, "a"}}
	k.zones[0].takes(zoneValue{7, parts})
	k.zones[1].takes(zoneValue{3, wholly("c")})
	k.zonesChanged()
	require.EqualValues(t, 7, k.Holds("z0"))
	require.Zero(t, k.Holds("z1"))
	require.ErrorIs(t, k.Hand("z1", "b"), ErrZone)
	require.NoError(t, k.Hand("z0", "b"))
	k.stepHands()
	id := k.ops[len(k.ops)-1].ID
	require.Equal(t, map[string]zoneValue{"mesh.zone.z0": {8, []part{{1, false, "b"}, {1, true, "c"}, {1, true, "b"}, {1, false, "b"}}}}, s.zoneOps())
	k.result(kv.Event{ID: id, Status: kv.OK, Revision: 9})
	require.EqualValues(t, 2, k.Counters.Handed)
	k.zones[0].takes(zoneValue{8, []part{{1, false, "b"}, {1, true, "c"}, {1, true, "b"}, {1, false, "b"}}})
	k.zones[0].takes(zoneValue{7, []part{{1, true, "a"}, {1, true, "a"}, {1, true, "b"}, {1, true, "a"}}})
	k.zonesChanged()
	for _, z := range k.zones {
		z.tryAt = 0
	}
	k.stepCount()
	require.Equal(t, map[string]zoneValue{"mesh.zone.z0": {8, []part{{1, true, "a"}, {1, true, "a"}, {1, true, "b"}, {1, false, "b"}}}}, s.zoneOps())
}

// TestTakesPartsOver: of a split zone only what a server that is over has had is taken over, and isn't taken for calm.
func TestTakesPartsOver(t *testing.T) {
	s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
	k := s.keeper
	s.server("b", 1)
	s.server("c", 1)
	k.zones[0].takes(zoneValue{7, []part{{1, true, "b"}, {1, true, "c"}, {1, true, "a"}, {1, false, "b"}}})
	k.zonesChanged()
	s.rev++
	over := leaseValue{over: true, beat: s.rev, length: 2 * time.Second, heir: "a"}
	k.heardLease("b", &kv.Event{Kind: kv.Changed, Value: over.append(nil), Revision: s.rev})
	k.cfg.Spread = -1
	k.stepLeases()
	require.Equal(t, map[string]zoneValue{"mesh.zone.z0": {8, []part{{1, false, "a"}, {1, true, "c"}, {1, true, "a"}, {1, false, "a"}}}}, s.zoneOps())
	require.Equal(t, 2, k.holds("b"))
	require.Equal(t, 2, k.holds("a"))
}

// TestPartsOfSeveralCellsAreDamaged: parts of a zone of several cells, or of more than there may be, are taken for damaged: the zone is taken whole, by a higher epoch.
func TestPartsOfSeveralCellsAreDamaged(t *testing.T) {
	deep := wholly("b")
	for range maxDepth + 1 {
		deep = divided(deep, 0)
	}
	four := divided(wholly("b"), 0)
	for _, c := range []struct {
		cells int
		parts []part
		fits  bool
	}{{1, four, true}, {2, four, false}, {2, wholly("b"), true}, {1, divided(four, 2), true}, {1, deep, false}} {
		z := tenancy{cells: c.cells, value: zoneValue{parts: wholly("")}, shares: make([]share, 1)}
		z.heard(&kv.Event{Kind: kv.Changed, Value: (&zoneValue{7, c.parts}).append(nil), Revision: 70}, time.Second)
		if c.fits {
			require.Equal(t, zoneValue{7, c.parts}, z.value)
		} else {
			require.Equal(t, zoneValue{70, wholly("")}, z.value)
		}
		require.Len(t, z.shares, len(z.value.parts))
	}
}

// TestPartsKeepTheirWeight: what is known of a part stays when others are split or merged.
func TestPartsKeepTheirWeight(t *testing.T) {
	for seed := *first; seed < *first+200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 6))
		z := tenancy{value: zoneValue{parts: wholly("")}, shares: make([]share, 1)}
		known := map[square]uint64{}
		for range 10 {
			v := zoneValue{1, drawParts(rng, 3)}
			z.takes(v)
			at, _ := squaresOf(square{side: 1}, 0, v.parts)
			is := map[square]uint64{}
			for i, q := range at {
				require.Equal(t, known[q], z.shares[i].mean, "seed %d", seed)
				z.shares[i].mean = rng.Uint64()
				is[q] = z.shares[i].mean
			}
			known = is
		}
	}
}

// TestSplitsOfAllZones: zones are split until there are as many splits as the doc says, and no further.
func TestSplitsOfAllZones(t *testing.T) {
	const each = (maxParts - 1) / 3
	deep := wholly("a")
	for len(deep)+3 <= maxParts {
		deep = divided(deep, slices.IndexFunc(deep, func(p part) bool { return p.depth < 4 }))
	}
	for taken, split := range map[int]int{splitsTaken - 1: 1, splitsTaken: 0} {
		s := newScales(t, 200, 20, func(Actor) float64 { return 1 })
		k := s.keeper
		k.cfg.Split, k.deepest = 50, 4
		left := taken
		for _, z := range k.zones[1:] {
			switch {
			case left >= each:
				z.takes(zoneValue{1, deep})
				left -= each
			case left > 0:
				z.takes(zoneValue{1, divided(z.value.parts, 0)})
				left--
			}
		}
		require.Zero(t, left)
		k.zonesChanged()
		s.server("b", 1)
		s.weigh(map[int]uint64{0: 100_000})
		require.Len(t, s.zoneOps(), split, "%d", taken)
	}
	require.Equal(t, 8192, splitsTaken)
}

// TestHandIsTriedAgain: what the game hands is handed though another server writes to the zone meanwhile, this one splits it, or the store doesn't answer; not when the other server has begun to leave, nor again when the zone has come back.
func TestHandIsTriedAgain(t *testing.T) {
	whole, four := wholly("a"), divided(wholly("a"), 0)
	calm := slices.Clone(four)
	calm[1].calm = true
	for name, c := range map[string]struct {
		parts, next []part
		status      kv.Status
		leaves      bool
		again       bool
	}{
		"another has written": {four, calm, kv.Conflict, false, true},
		"it was split":        {whole, four, kv.Conflict, false, true},
		"it was merged":       {four, whole, kv.Conflict, false, true},
		"no answer":           {whole, whole, kv.Unknown, false, true},
		"it leaves":           {whole, whole, kv.Unknown, true, false},
		"it was handed":       {whole, wholly("b"), kv.Unknown, false, false},
	} {
		s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
		k := s.keeper
		s.server("b", 1)
		z := k.zones[0]
		z.takes(zoneValue{7, c.parts})
		require.NoError(t, k.Hand("z0", "b"))
		k.stepHands()
		id := k.ops[len(k.ops)-1].ID
		require.Len(t, s.zoneOps(), 1, name)
		z.takes(zoneValue{8, c.next})
		k.result(kv.Event{ID: id, Status: c.status})
		if c.leaves {
			s.leaves("b")
		}
		k.stepHands()
		require.Empty(t, s.zoneOps(), name)
		k.now += k.cfg.Lease / 4
		k.stepHands()
		ops := s.zoneOps()
		if !c.again {
			require.Empty(t, ops, name)
			z.takes(zoneValue{9, whole})
			k.stepHands()
			require.Empty(t, s.zoneOps(), name)
			continue
		}
		handed := slices.Clone(c.next)
		for i := range handed {
			handed[i] = part{depth: handed[i].depth, holder: "b"}
		}
		require.Equal(t, map[string]zoneValue{"mesh.zone.z0": {9, handed}}, ops, name)
	}
}

// TestTakesSmallerParts: a server whose Margin doesn't allow a part's side takes what another one has split, in its table too, and leaves it to its holder. It splits nothing so far itself.
func TestTakesSmallerParts(t *testing.T) {
	s := newScales(t, 4, 2, func(Actor) float64 { return 1 })
	k := s.keeper
	k.cfg.Spread = -1
	s.server("b", 1)
	deep := wholly("b")
	for range 3 {
		deep = divided(deep, 0)
	}
	require.Less(t, int(k.deepest), 3)
	k.heardKey(&kv.Event{Kind: kv.Changed, Key: "mesh.zone.z0", Value: (&zoneValue{7, deep}).append(nil), Revision: 70})
	for range 100 {
		k.now += time.Second
		s.server("b", 1)
		k.stepLeases()
	}
	require.Empty(t, s.zoneOps())
	require.Zero(t, k.Counters.Failed)
	require.Equal(t, deep, k.zones[0].value.parts)
	require.Equal(t, "b", s.zone.Table().At(0.5, 0.5))
	require.Equal(t, "a", s.zone.Table().At(15, 0.5))
	require.Len(t, s.zone.table.Splits, 3)
	small := s.zone.table
	small.Epoch++
	require.ErrorIs(t, s.zone.SetTable(small), ErrConfig, "a game's table is to have larger ones")
}
