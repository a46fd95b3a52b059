package graph

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// TestRecord: a recording sees everything, wherever it is and whoever's it is, but for what its filter leaves out, and at every
// pace.
func TestRecord(t *testing.T) {
	r := newRig(t, &Graph{}, actorrep.Config{})
	r.deaf()
	var file bytes.Buffer
	rec, err := replay.Record(r.w, &file, replay.Config{Checkpoints: time.Second, Filter: func(a actorrep.Actor) bool {
		i, ok := a.(*idea)
		return !ok || i.N.Get() != 7
	}})
	require.NoError(t, err)
	var things []*thing
	for i := range 40 {
		a := &thing{}
		a.move(float64(i)*1000, float64(i%7)*1000, 0)
		a.SetOnlyOwner(i%5 == 0)
		require.NoError(t, r.w.Spawn(a))
		things = append(things, a)
	}
	for _, n := range []uint32{6, 7} {
		a := &idea{}
		a.N.Set(n)
		require.NoError(t, r.w.Spawn(a))
	}
	for i := range 100 {
		for j, a := range things {
			x, y, z := a.Location()
			a.move(x+1, y, z)
			rec.Peer().SetUpdateEvery(a, j%7)
		}
		r.now = time.Duration(i) * tick
		r.w.Step(r.now)
	}
	for range 10 {
		r.now += tick
		r.w.Step(r.now)
	}
	require.NoError(t, rec.Close())
	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	viewer := actorrep.NewClient(actorrep.Config{})
	register(t, viewer)
	require.NoError(t, replay.Play(viewer))
	for _, at := range []time.Duration{replay.Duration(), 0, replay.Duration()} {
		require.NoError(t, replay.Seek(at))
	}
	require.Equal(t, 41, viewer.Len())
	for _, a := range things {
		x, y, _ := a.Location()
		vx, vy, _ := viewer.Find(a.GUID()).(*thing).Location()
		require.Equal(t, []float64{x, y}, []float64{vx, vy})
	}
}
