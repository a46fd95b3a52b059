package actorrep_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// imp is an actor whose game does anything from within every hook.
type imp struct {
	actorrep.Base
	N    uint32              `net:""`
	Few  uint8               `net:"max=7"`
	Mate actorrep.Ref[*imp]  `net:""`
	Own  actorrep.Var[uint8] `net:"owner"`
}

// TestHooksDoAnything: the functions that a server calls in the midst of its work may destroy, spawn, call, change owners and settings, and
// remove connections.
func TestHooksDoAnything(t *testing.T) {
	for seed := range uint64(12) {
		hooksDoAnything(t, seed)
	}
}

func hooksDoAnything(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	var r *rig.Rig
	var all []*imp
	busy := 0
	hook := func() {}
	say := actorrep.ClientRPC(func(actorrep.Call, *imp, string) error { return nil }, actorrep.Reliable)
	shout := actorrep.MulticastRPC(func(actorrep.Call, *imp, string) error { hook(); return nil }, actorrep.Reliable)
	ask := actorrep.ServerRPC(func(actorrep.Call, *imp, uint8) error { hook(); return nil }, actorrep.Reliable, actorrep.AnyClient)
	register := func(w *actorrep.World) error {
		return w.Register("imp", (*imp)(nil), actorrep.RPCs{"Say": say, "Shout": shout, "Ask": ask})
	}
	spawn := func(parent *imp) {
		i := &imp{}
		var err error
		if parent == nil || parent.World() == nil {
			err = r.Server.Spawn(i)
		} else {
			err = r.Server.SpawnIn(parent, i)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	removed := map[*actorrep.Peer]bool{}
	some := func() *imp { return all[rng.IntN(len(all))] }
	peer := func() *actorrep.Peer {
		if n := rng.IntN(len(r.Lines) + 1); n < len(r.Lines) {
			return r.Lines[n].Peer
		}
		return nil
	}
	op := func() {
		i := some()
		switch rng.IntN(16) {
		case 0:
			_ = r.Server.Destroy(i)
		case 1:
			if len(all) < 400 {
				spawn(nil)
			}
		case 2:
			if len(all) < 400 {
				spawn(i)
			}
		case 3:
			_ = i.SetDormant(!i.Dormant())
		case 4:
			i.SetOwner(peer())
		case 5:
			_ = i.SetUpdateFrequency([]float64{0, 10, 20}[rng.IntN(3)])
		case 6:
			_ = say.Call(i, "hello")
		case 7:
			_ = shout.Call(i, "HELLO")
		case 8:
			i.Few = 9
		case 9:
			i.Few = 3
		case 10:
			i.Mate = actorrep.RefTo(some())
			i.Own.Set(uint8(rng.Uint32()))
		case 11:
			if rng.IntN(20) == 0 {
				_ = i.TearOff()
			}
		case 12:
			i.ForceUpdate()
		case 13:
			i.SetOnlyOwner(!i.OnlyOwner())
		case 14:
			if p := peer(); p != nil && rng.IntN(200) == 0 && len(removed) < 2 && !removed[p] {
				removed[p] = true
				r.Server.RemoveConn(p)
			}
		case 15:
			if p := peer(); p != nil {
				p.SetUpdateEvery(i, 1+rng.IntN(5))
				_ = r.Server.Explain(p, i).Text
			}
		}
	}
	hook = func() {
		if busy < 3 && r != nil && len(all) > 0 && rng.IntN(3) == 0 {
			busy++
			op()
			busy--
		}
	}
	r = rig.New(t, seed, netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 20}, actorrep.Config{
		Failed: func(error) { hook() },
		Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
			hook()
			return a.(*imp).GUID()%16 != 3
		},
		RelevantTimeout: 100 * time.Millisecond,
	}, register)
	r.Server.OnValues(func(actorrep.Actor) { hook() })
	r.ReliableBuffer = 16
	r.Speed = 60_000
	for range 3 {
		r.JoinOther(register)
	}
	for range 40 {
		spawn(nil)
	}
	for range 400 {
		for range 5 {
			op()
		}
		for range 10 {
			some().N++
		}
		for _, l := range r.Lines {
			for a := range l.World.All {
				if rng.IntN(30) == 0 {
					_ = ask.Call(a.(*imp), 1)
				}
			}
		}
		r.Step()
	}
}

// TestFailedMayDestroy: Config.Failed may destroy the actor that it is told of, and others, and remove the connection.
func TestFailedMayDestroy(t *testing.T) {
	var r *rig.Rig
	register := func(w *actorrep.World) error { return w.Register("imp", (*imp)(nil)) }
	told := 0
	r = rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) {
		told++
		for a := range r.Server.All {
			if a.(*imp).Few < 9 || told == 2 {
				if err := r.Server.Destroy(a); err != nil {
					t.Error(err)
				}
			}
		}
	}}, register)
	r.Join(register)
	imps := make([]*imp, 8)
	for i := range imps {
		imps[i] = &imp{}
		if err := r.Server.Spawn(imps[i]); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		r.Step()
	}
	imps[0].Few, imps[3].Few = 9, 9
	for range 5 {
		r.Step()
	}
	if told != 2 || r.Server.Len() != 0 {
		t.Errorf("told of %d, and %d are left", told, r.Server.Len())
	}
}
