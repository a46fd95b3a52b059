package reliablelooprpc

import (
	"context"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"

	"rpcs"
)

var Move = actorrep.ServerRPC(func(c actorrep.Call, s *rpcs.Soldier, n int) error { return nil }, actorrep.Reliable)

type game struct {
	driver   *driver.Driver
	world    *actorrep.World
	me       *rpcs.Soldier
	soldiers []*rpcs.Soldier
	events   []event
	x        int
}

type event struct{ target *rpcs.Soldier }

func (g *game) Step(now time.Duration) error {
	if g.me == nil || !g.driver.Server().Joined() {
		return nil
	}
	if err := Move.Call(g.me, g.x); err != nil { // want `warning: reliable RPC Move is called every tick \(Step\): unacknowledged calls pile up to ErrFull; call it when something happens, or make it unreliable`
		return err
	}
	for _, s := range g.soldiers {
		_ = rpcs.Fire.Call(s, 1) // want `warning: reliable RPC Fire is called every tick \(Step\)`
	}
	for i := 0; i < len(g.soldiers); i++ {
		_ = rpcs.Checked.Call(g.soldiers[i], 1) // want `warning: reliable RPC Checked is called every tick`
	}
	for a := range g.world.All {
		if s, ok := a.(*rpcs.Soldier); ok {
			_ = Move.Call(s, 1) // want `reliable RPC Move is called every tick`
		}
		switch s := a.(type) {
		case *rpcs.Soldier:
			_ = Move.Call(s, 2) // want `reliable RPC Move is called every tick`
		}
	}
	_ = rpcs.All.Shout.Call(g.me, 1) // want `reliable RPC Shout is called every tick`
	g.always()
	return Move.Call(g.me, 0) // want `reliable RPC Move is called every tick`
}

func (g *game) always() {
	func() {
		_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(Step\)`
	}()
}

func run(d *driver.Driver, g *game) error {
	ticker := time.NewTicker(time.Second)
	for range ticker.C {
		_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(a tick loop\)`
	}
	for {
		now := time.Now()
		d.TickDispatch(now)
		_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(a tick loop\)`
		d.TickFlush(now)
		select {
		case <-ticker.C:
			_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick`
		}
		if g.x > 3 {
			break
		}
	}
	for i := 0; i < 10; i++ {
		_ = Move.Call(g.me, i) // want `warning: reliable RPC Move is called in each turn of a loop on the same actor: 256 unacknowledged calls are ErrFull; send one call with a slice of it all`
	}
	for i := range 10 {
		_ = Move.Call(g.me, i) // want `in each turn of a loop`
	}
	_ = d.Run(context.Background(), g.frameAt)
	return d.Run(context.Background(), func(now time.Time) {
		_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(the step of Run\)`
	})
}

func (g *game) frameAt(now time.Time) {
	_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(the step of Run\)`
}

func local(g *game) {
	update := func() {
		_ = Move.Call(g.me, 1) // want `reliable RPC Move is called every tick \(update\)`
	}
	for i := 0; i < 3; i++ {
		update()
	}
}
