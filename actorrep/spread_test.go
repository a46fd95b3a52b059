package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// buoy is an actor that lies somewhere.
type buoy struct {
	actorrep.Base
	X float64 `net:""`
}

func (b *buoy) Location() (x, y, z float64) { return b.X, 0, 0 }

func registerBuoys(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("buoy", (*buoy)(nil), actorrep.CullDistance(1000)))
}

// TestOpeningsAreSpread: what comes into the sight of many at once is opened over several Steps, each connection's nearest first, and each
// connection has its share; what is little comes at once, and beside a crowd too.
func TestOpeningsAreSpread(t *testing.T) {
	const many = 3000
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Relevancy: (&graph.Graph{}).Relevancy}, registerBuoys)
	w.Speed = 1 << 24
	var buoys []*buoy
	for i := range many {
		b := &buoy{X: 5000 + 999*float64(i*7%many)/many} // in no order of their distance
		buoys = append(buoys, b)
		require.NoError(t, w.Server.Spawn(b))
	}
	few := &buoy{X: -5000}
	require.NoError(t, w.Server.Spawn(few))
	for range 4 {
		w.join().Peer.SetViewpoint(1e6, 0, 0)
	}
	for range 20 {
		w.Step()
	}
	require.Zero(t, w.Server.Counters.Opened)
	for i, l := range w.Lines {
		l.Peer.SetViewpoint([]float64{5000, 5000, 5000, -5000}[i], 0, 0)
	}
	waiting, steps := 3*many+1, 0
	for ; waiting > 0; steps++ {
		was := w.Server.Counters.Opened
		w.Step()
		opened := int(w.Server.Counters.Opened - was)
		require.LessOrEqual(t, opened, max(512, waiting/8))
		if waiting -= opened; steps == 30 {
			break
		}
		if steps == 0 {
			require.True(t, w.Lines[3].Peer.Has(few), "who has one to open doesn't wait for the others")
		}
		least := many
		for _, l := range w.Lines[:3] {
			least = min(least, l.Peer.Len())
			farthest, nearest := 0., 1e9
			for _, b := range buoys {
				switch {
				case l.Peer.Has(b):
					farthest = max(farthest, b.X)
				default:
					nearest = min(nearest, b.X)
				}
			}
			if l.Peer.Len() > 0 { // within a band of priority they go by their age
				require.LessOrEqual(t, band(farthest-5000), band(nearest-5000))
			}
		}
		if waiting > 0 {
			require.Greater(t, least, (3*many-waiting)/3-64, "each has its share")
		}
	}
	require.Zero(t, waiting, "after %d Steps", steps)
	require.Greater(t, steps, 7)

	was := w.Server.Counters.Opened
	for i := range 150 {
		require.NoError(t, w.Server.Spawn(&buoy{X: 5500 + float64(i)}))
	}
	w.Step()
	require.EqualValues(t, 450, w.Server.Counters.Opened-was, "little isn't put off")
}

// band is in which band of priority a distance is.
func band(d float64) int {
	switch {
	case d < 250:
		return 0
	case d <= 500:
		return 1
	}
	return 2
}

// TestClosingsAreSpread: what goes out of the sight of many at once is closed over several Steps, each connection has its share, and what is destroyed
// or comes back meanwhile isn't waited for.
func TestClosingsAreSpread(t *testing.T) {
	const many = 1500
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Relevancy: (&graph.Graph{}).Relevancy, RelevantTimeout: -1}, registerBuoys)
	w.Speed = 1 << 24
	var buoys []*buoy
	for i := range many {
		b := &buoy{X: float64(i % 900)}
		buoys = append(buoys, b)
		require.NoError(t, w.Server.Spawn(b))
	}
	for range 3 {
		w.join().Peer.SetViewpoint(0, 0, 0)
	}
	for range 120 {
		w.Step()
	}
	require.EqualValues(t, 3*many, w.Server.Counters.Opened)
	for _, l := range w.Lines {
		l.Peer.SetViewpoint(1e6, 0, 0)
	}
	waiting, steps := 3*many, 0
	for ; waiting > 0; steps++ {
		was := w.Server.Counters.Closed
		if steps == 2 {
			for _, b := range buoys[:20] {
				require.NoError(t, w.Server.Destroy(b)) // these go at once
			}
			was = w.Server.Counters.Closed
		}
		w.Step()
		closed := int(w.Server.Counters.Closed - was)
		require.LessOrEqual(t, closed, max(512, waiting/8))
		waiting, closed = 0, 0
		least, most := many, 0
		for _, l := range w.Lines {
			waiting += l.Peer.Len()
			least, most = min(least, l.Peer.Len()), max(most, l.Peer.Len())
		}
		require.LessOrEqual(t, most-least, 64, "each has its share")
		require.Less(t, steps, 30)
	}
	require.Greater(t, steps, 7)
	for range 30 {
		w.Step()
	}
	for _, l := range w.Lines {
		require.Zero(t, l.World.Len())
	}
}
