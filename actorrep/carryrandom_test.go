package actorrep_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTravelsRandom: a player's actor goes from server to server, back, or stays after all, while both ends call it over bad networks. Each reliable call runs
// once, in order, wherever it finds the actor.
func TestTravelsRandom(t *testing.T) {
	for seed := range actorrep.SeedsOf(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { travels(t, seed) })
	}
}

// strider is called by both ends.
type strider struct{ actorrep.Base }

func travels(t *testing.T, seed uint64) {
	var asked, told []uint32 // that ran
	ask := actorrep.ServerRPC(func(_ actorrep.Call, _ *strider, n uint32) error {
		asked = append(asked, n)
		return nil
	}, actorrep.Reliable)
	say := actorrep.ClientRPC(func(_ actorrep.Call, _ *strider, n uint32) error {
		told = append(told, n)
		return nil
	}, actorrep.Reliable)
	register := func(w *actorrep.World) error {
		return w.Register("strider", (*strider)(nil), actorrep.RPCs{"Ask": ask, "Say": say})
	}
	failed := func(err error) {
		if err != nil && !errors.Is(err, actorrep.ErrActorGone) {
			t.Error(err)
		}
	}
	const servers = 3
	var rigs [servers]*rig.Rig
	var lines [servers]*rig.Line
	for i := range rigs {
		rigs[i] = rig.New(t, seed*servers+uint64(i), netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 15},
			actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: servers}, Failed: failed}, register)
		rigs[i].ReliableBuffer = []int{0, 8, 64}[i]
		lines[i] = rigs[i].JoinOther(register)
	}
	order := []int{0, 1, 2} // a world is stepped behind those that it follows
	step := func() {
		for _, i := range order {
			rigs[i].Step()
			rigs[i].Server.Consistent(t)
			lines[i].World.Consistent(t)
		}
	}
	rng := rigs[0].Rand
	var at [servers]*strider
	here, asks, says := 0, uint32(0), uint32(0)
	at[0] = &strider{}
	require.NoError(t, rigs[0].Server.Spawn(at[0]))
	at[0].SetOwner(lines[0].Peer)
	id := at[0].GUID()
	mine := func(i int) *strider {
		a, _ := lines[i].World.Find(id).(*strider)
		return a
	}
	away, travelled := [servers]int{}, 0
	for n := range 500 {
		// The client calls where the player is, as soon as it knows.
		if a := mine(here); a != nil && rng.IntN(3) > 0 && a.IsOwned() {
			if err := ask.Call(a, asks); err == nil {
				asks++
			} else if !errors.Is(err, actorrep.ErrFull) {
				require.ErrorIs(t, err, actorrep.ErrNotThere)
			}
		}
		if rng.IntN(3) > 0 {
			if err := say.Call(at[here], says); err == nil {
				says++
			} else {
				require.ErrorIs(t, err, actorrep.ErrFull)
			}
		}
		if n < 440 && rng.IntN(25) == 0 && mine(here) != nil {
			to := (here + 1 + rng.IntN(servers-1)) % servers
			if away[to] > 0 {
				continue
			}
			lines[to].World.Follow(lines[here].World) // before Depart: from now on the client keeps its calls
			order = append(slices.DeleteFunc(order, func(i int) bool { return i == to }), to)
			state, err := rigs[here].Server.Depart(at[here], nil)
			require.NoError(t, err)
			for range rng.IntN(8) {
				if a := mine(here); rng.IntN(2) == 0 && ask.Call(a, asks) == nil {
					asks++
				}
				step()
			}
			if rng.IntN(4) == 0 {
				rigs[here].Server.Stay(at[here])
				continue
			}
			travelled++
			there := &strider{}
			require.NoError(t, rigs[to].Server.SpawnAs(there, nil, id))
			there.SetOwner(lines[to].Peer)
			if rng.IntN(2) == 0 {
				for range rng.IntN(6) {
					step()
				}
			}
			require.NoError(t, rigs[to].Server.Arrive(there, state))
			away[here] = 1 + rng.IntN(20)
			here, at[to] = to, there
		}
		for i := range away {
			if away[i] > 0 {
				if away[i]--; away[i] == 0 {
					require.NoError(t, rigs[i].Server.Destroy(at[i]))
				}
			}
		}
		step()
	}
	for n := 0; n < 300 && (len(asked) < int(asks) || len(told) < int(says)); n++ {
		step()
	}
	want := func(n uint32) (all []uint32) {
		for i := range n {
			all = append(all, i)
		}
		return all
	}
	for i, l := range lines {
		require.Empty(t, l.Failed, "%d", i)
	}
	require.Greater(t, travelled, 5)
	require.Equal(t, want(asks), asked)
	require.Equal(t, want(says), told)
}

// TestKeptCallsAreBounded: of the calls that the server has acked, a client keeps the newest while another World follows, so many and of so many bytes; none
// otherwise.
func TestKeptCallsAreBounded(t *testing.T) {
	for _, size := range []int{1, 1000} {
		post := actorrep.ServerRPC(func(actorrep.Call, *strider, []byte) error { return nil }, actorrep.Reliable)
		register := func(w *actorrep.World) error {
			return w.Register("strider", (*strider)(nil), actorrep.RPCs{"Post": post})
		}
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register)
		l := r.JoinOther(register)
		a := &strider{}
		a.SetOwner(l.Peer)
		require.NoError(t, r.Server.Spawn(a))
		r.Await("the actor", r.Step, func() bool { return l.World.Len() == 1 })
		mine := l.World.Find(a.GUID()).(*strider)
		most := 0
		call := func(n int) (calls, bytes int) {
			for range n {
				require.NoError(t, post.Call(mine, make([]byte, size)))
				r.Step()
				kept, _ := actorrep.KeptCalls(l.World)
				most = max(most, kept)
			}
			for range 20 {
				r.Step()
			}
			return actorrep.KeptCalls(l.World)
		}
		calls, _ := call(10)
		require.Zero(t, calls)
		next := actorrep.NewClient(actorrep.Config{})
		next.Follow(l.World)
		each := size + 1 + size/128
		calls, bytes := call(actorrep.MaxAcked + 20)
		require.Equal(t, min(actorrep.MaxAcked, actorrep.MaxAckedBytes/each), calls, "%d bytes", bytes)
		require.LessOrEqual(t, bytes, actorrep.MaxAckedBytes)
		require.Less(t, most, calls+10)
		next.Follow(nil)
		calls, _ = call(1)
		require.Zero(t, calls)
	}
}
