package fastarray_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type target struct {
	Whom actorrep.Ref[*hero]
	And  []netguid.GUID
	N    uint8
}

// TestFreshReferences: after an update only the references of the elements that it set are looked at, so that a small update of a large list costs little, and a list
// says of the elements that refer to an actor that has come, once each.
func TestFreshReferences(t *testing.T) {
	var s, c fastarray.List[target]
	version := uint32(0)
	update := func() []netguid.GUID {
		w := bitio.NewWriter(make([]byte, 1<<14))
		s.NetWrite(w, version)
		version = s.NetKey()
		require.NoError(t, c.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
		return c.NetReferences(nil, true)
	}
	var told []fastarray.ID
	c.OnChange = func(id fastarray.ID, old, now target) { told = append(told, id) }
	var ids []fastarray.ID
	for i := range netguid.GUID(10) {
		id, err := s.Add(target{And: []netguid.GUID{2 * i, 100}})
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Len(t, update(), 30)
	require.Len(t, c.NetReferences(nil, false), 30)
	c.NetTell(false)
	require.NoError(t, s.Set(ids[3], target{And: []netguid.GUID{6, 100, 200}}))
	require.Equal(t, []netguid.GUID{0, 6, 100, 200}, update())
	require.NoError(t, s.Remove(ids[5]))
	require.Empty(t, update())
	require.Len(t, c.NetReferences(nil, false), 28)
	c.NetTell(false)

	require.True(t, c.NetArrived(200))
	require.False(t, c.NetArrived(10), "it was removed")
	require.True(t, c.NetArrived(6))
	require.True(t, c.NetArrived(8))
	c.NetTell(true)
	require.Equal(t, []fastarray.ID{ids[3], ids[4]}, told)

	require.Zero(t, testing.AllocsPerRun(100, func() { c.NetArrived(100); c.NetTell(true) }))
}

// TestWhatDoesntReferIsntLookedAt: lists whose elements refer to nothing remember nothing of an update.
func TestWhatDoesntReferIsntLookedAt(t *testing.T) {
	var l fastarray.List[uint16]
	require.False(t, l.NetRefers())
	var m fastarray.Map[uint8, target]
	require.True(t, m.NetRefers())
	require.False(t, m.NetListens())
	m.OnChange = func(uint8, target, target) {}
	require.True(t, m.NetListens())
}
