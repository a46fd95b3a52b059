package mesh

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLingersThroughManyTables: a server that hands its zones one by one, each with a table of its own, is shown all that was its for Linger, however many tables come meanwhile, and also when others split and merge theirs.
func TestLingersThroughManyTables(t *testing.T) {
	const n = 20
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Servers: 3}}, registerLamps)
	table := Table{Epoch: 1, Cell: 100, Columns: n}
	for i := range n {
		table.Servers = append(table.Servers, name(b2i(i > 0)))
	}
	p := newPost(t, 0, func(c *ZoneConfig) { c.World, c.Linger, c.Table = r.Server, 2*time.Second, table })
	p.world = r.Server
	l := r.Join(registerLamps)
	r.Server.RemoveConn(l.Peer)
	l.Peer = p.zone.Accept(name(1), l.S)
	run := func(d time.Duration) {
		for end := p.now + d; p.now < end; {
			p.now += rig.Tick
			p.zone.Step(p.now)
			r.Step()
		}
	}
	for i := 1; i < n-1; i++ {
		table.Servers = slices.Clone(table.Servers)
		table.Servers[i] = name(0)
		table.Epoch++
		require.NoError(t, p.zone.SetTable(table))
		p.lit(float64(100*i + 50))
		run(2 * rig.Tick)
	}
	for range 10 { // nobody loses anything by it
		quarters := table
		quarters.Servers = append(slices.Clone(table.Servers), name(0), name(0), name(0), name(0))
		quarters.Servers[5], quarters.Splits = "", []int{5}
		quarters.Epoch = table.Epoch + 1
		require.NoError(t, p.zone.SetTable(quarters))
		table.Epoch += 2
		require.NoError(t, p.zone.SetTable(table))
	}
	run(100 * time.Millisecond)
	require.Equal(t, n-2, l.World.Len())
	require.Len(t, p.zone.past.all, n-2)
	run(2*time.Second - 2*rig.Tick)
	require.Zero(t, l.World.Len())
	require.Equal(t, past{}, p.zone.past)
}

// TestFormerTables: what is near a place, with what was whose, is by any sequence of divisions of a grid what it is by all tables that were there within Linger.
func TestFormerTables(t *testing.T) {
	for seed := *first; seed < *first+100; seed++ {
		rng := rand.New(rand.NewPCG(seed, 7))
		columns, rows := 1+rng.IntN(3), 1+rng.IntN(3)
		draw := func() Table {
			s := Table{X: -50, Y: 30, Cell: 1000, Columns: columns}
			level := make([]int, columns*rows) // the depth of each place
			for n := 0; n < len(level); n++ {
				if level[n] < 3 && rng.IntN(4) == 0 {
					d := level[n] + 1
					s.Servers, s.Splits, level = append(s.Servers, ""), append(s.Splits, n), append(level, d, d, d, d)
				} else {
					s.Servers = append(s.Servers, fmt.Sprint("s", rng.IntN(4)))
				}
			}
			return s
		}
		p := newPost(t, 0, func(c *ZoneConfig) { c.Linger, c.Table = time.Second, draw(); c.Table.Epoch = 1 })
		var were []former
		for epoch := uint64(2); epoch < 20; epoch++ {
			next := draw()
			if rng.IntN(3) == 0 { // nothing changes but a server, or nothing at all
				next = p.zone.table
				next.Servers = slices.Clone(next.Servers)
				if at := rng.IntN(len(next.Servers)); next.Servers[at] != "" {
					next.Servers[at] = "s1"
				}
			}
			next.Epoch = epoch
			were = append(were, former{Table: p.zone.table, until: p.zone.now + time.Second})
			require.NoError(t, p.zone.SetTable(next))
			p.zone.Step(p.zone.now + time.Duration(rng.Int64N(int64(400*time.Millisecond))))
			for range 30 {
				x, y, reach := -50+float64(columns)*1000*(1.2*rng.Float64()-0.1), 30+float64(rows)*1000*(1.2*rng.Float64()-0.1), 400*rng.Float64()
				want := p.zone.table.near(nil, x, y, reach)
				for _, f := range were {
					if p.zone.now < f.until {
						want = f.near(want, x, y, reach)
					}
				}
				p.zone.measure(x, y, reach)
				require.Len(t, p.zone.wide, len(want), "seed %d at %v, %v", seed, x, y)
				for _, d := range want {
					require.InDelta(t, d.d, distanceOf(p.zone.wide, d.server), 1e-9, "seed %d at %v, %v", seed, x, y)
				}
			}
		}
		require.Empty(t, p.zone.formers)
	}
}

// TestFormerTablesAreBounded: of more than may be kept the oldest is forgotten, and all is forgotten in the end.
func TestFormerTablesAreBounded(t *testing.T) {
	const most = maxBygone / maxCells
	p := newPost(t, 0, nil)
	for i := range most + 2 {
		p.zone.Step(time.Duration(i) * time.Millisecond)
		require.NoError(t, p.zone.SetTable(Table{Epoch: uint64(2 + i), Cell: 200, Columns: 256, Servers: slices.Repeat([]string{fmt.Sprint("s", i)}, maxCells)}))
	}
	require.Len(t, p.zone.past.all, maxBygone)
	p.zone.measure(50, 50, 10)
	for i := range most + 2 {
		require.Equal(t, i == 0, math.IsInf(distanceOf(p.zone.wide, fmt.Sprint("s", i)), 1), "%d", i)
	}
	p.zone.Step(time.Minute)
	require.Equal(t, past{}, p.zone.past)
}
