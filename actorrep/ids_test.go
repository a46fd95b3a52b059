package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// TestIDsOfAMesh: actors of two servers have different ids; one that comes from the other server keeps its own, once.
func TestIDsOfAMesh(t *testing.T) {
	type thing struct{ actorrep.Base }
	var worlds []*actorrep.World
	seen := map[netguid.GUID]bool{}
	for server := range uint32(2) {
		w := actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: server, Servers: 2}})
		require.NoError(t, w.Register("thing", (*thing)(nil)))
		worlds = append(worlds, w)
		for range 10 {
			a := &thing{}
			require.NoError(t, w.Spawn(a))
			require.False(t, seen[a.GUID()], "%v", a.GUID())
			seen[a.GUID()] = true
		}
	}
	for a := range worlds[0].All {
		id := a.(*thing).GUID()
		moved, part := &thing{}, &thing{}
		require.NoError(t, worlds[1].SpawnAs(moved, nil, id))
		require.Equal(t, id, moved.GUID())
		require.ErrorIs(t, worlds[1].SpawnAs(&thing{}, nil, id), actorrep.ErrTaken)
		require.ErrorIs(t, worlds[1].SpawnAs(part, a, id+1<<20), actorrep.ErrNotSpawned, "its parent is elsewhere")
		require.NoError(t, worlds[1].SpawnAs(part, moved, id+1<<20))
		require.Equal(t, actorrep.Actor(moved), part.Parent())
	}
	require.ErrorIs(t, worlds[1].SpawnAs(&thing{}, nil, 1), actorrep.ErrTaken)
	require.ErrorIs(t, actorrep.NewClient(actorrep.Config{}).SpawnAs(&thing{}, nil, 4), actorrep.ErrClient)
	require.Panics(t, func() { actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: 2, Servers: 2}}) })
}
