package actorrep_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// banner has the conditions that aren't fixed for a connection and an actor.
type banner struct {
	actorrep.Base
	Physics  int32      `net:"simulatedorphysics"`
	NoTape   int32      `net:"simulatednoreplay"`
	PhysTape int32      `net:"simulatedorphysicsnoreplay"`
	Red      int32      `net:"group=red"`
	Blue     int32      `net:"group=blue"`
	Runes    [20]uint16 `net:"group=blue"`
}

func registerBanner(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("banner", (*banner)(nil)))
}

func (b *banner) set(n int32) {
	b.Physics, b.NoTape, b.PhysTape, b.Red, b.Blue, b.Runes[7] = n, n, n, n, n, uint16(n)
}

func (b *banner) text() string {
	return fmt.Sprint(b.Physics, b.NoTape, b.PhysTape, b.Red, b.Blue, b.Runes[7])
}

// TestGroupsAndPhysics: fields with conditions that change while the connection lives go to whom they may at that time, and what changed
// meanwhile follows; awake and asleep, without loss and with.
func TestGroupsAndPhysics(t *testing.T) {
	for _, asleep := range []bool{false, true} {
		for _, loss := range []float64{0, 20} {
			t.Run(fmt.Sprint(asleep, loss), func(t *testing.T) {
				w := newWorld(t, 5, netsim.Settings{Loss: loss}, actorrep.Config{}, registerBanner)
				owner, other := w.join(), w.join()
				require.NoError(t, other.Peer.JoinGroup("red"))
				file := &bytes.Buffer{}
				rec, err := replay.Record(w.Server, file, replay.Config{})
				require.NoError(t, err)
				b := &banner{}
				b.SetOwner(owner.Peer)
				b.SetAutonomous(true)
				b.set(1)
				require.NoError(t, w.Server.Spawn(b))
				see := func(ownerSees, otherSees string) {
					t.Helper()
					for range 90 {
						w.Step()
					}
					require.Equal(t, ownerSees, owner.World.Find(b.GUID()).(*banner).text(), "the owner")
					require.Equal(t, otherSees, other.World.Find(b.GUID()).(*banner).text(), "the other")
				}
				set := func(n int32) {
					b.set(n)
					b.FlushDormancy()
				}
				see("0 0 0 0 0 0", "1 1 1 1 0 0")
				require.NoError(t, b.SetDormant(asleep))
				set(2)
				see("0 0 0 0 0 0", "2 2 2 2 0 0")
				require.NoError(t, owner.Peer.JoinGroup("blue"))
				b.SetPhysics(true)
				see("2 0 2 0 2 2", "2 2 2 2 0 0")
				set(3)
				see("3 0 3 0 3 3", "3 3 3 3 0 0")
				owner.Peer.LeaveGroup("blue")
				require.False(t, owner.Peer.InGroup("blue"))
				b.SetPhysics(false)
				set(4)
				see("3 0 3 0 3 3", "4 4 4 4 0 0")
				require.NoError(t, owner.Peer.JoinGroup("blue"))
				require.NoError(t, owner.Peer.JoinGroup("red"))
				require.NoError(t, other.Peer.JoinGroup("blue"))
				see("3 0 3 4 4 4", "4 4 4 4 4 4")
				require.NoError(t, rec.Close())
				require.Equal(t, "4 0 0 4 4 4", replayed(t, file, registerBanner).Find(b.GUID()).(*banner).text(), "a recording is in all groups")
			})
		}
	}
}

// TestGroupsAreBounded: a connection is in 256 groups at most.
func TestGroupsAreBounded(t *testing.T) {
	w := newWorld(t, 5, netsim.Settings{}, actorrep.Config{}, registerBanner)
	p := w.join().Peer
	for i := range actorrep.MaxGroups {
		require.NoError(t, p.JoinGroup(fmt.Sprint(i)))
	}
	require.NoError(t, p.JoinGroup("7"), "it is in that one")
	require.ErrorIs(t, p.JoinGroup("more"), actorrep.ErrManyGroups)
	p.LeaveGroup("7")
	require.NoError(t, p.JoinGroup("more"))
}
