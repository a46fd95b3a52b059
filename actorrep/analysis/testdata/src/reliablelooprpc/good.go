package reliablelooprpc

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"

	"rpcs"
)

type better struct {
	game
	pressed, sent bool
	queue         []int
}

func (b *better) Step(now time.Duration) {
	_ = rpcs.Aim.Call(b.me, 1) // unreliable
	if b.pressed {
		_ = rpcs.Fire.Call(b.me, 1)
		b.jump()
	}
	b.driver.Do(func() { _ = Move.Call(b.me, 5) })
}

func (b *better) LateUpdate() {
	if b.me != nil && b.pressed && Move.Call(b.me, 1) != nil {
		return
	}
}

func (b *better) Tick() {
	for _, e := range b.events {
		_ = rpcs.Fire.Call(e.target, 1)
		target := e.target
		_ = rpcs.Fire.Call(target, 1)
		_ = rpcs.Fire.Call(b.me, 1)
	}
	for len(b.queue) > 0 {
		_ = Move.Call(b.me, b.queue[0])
		b.queue = b.queue[1:]
	}
}

func (b *better) FixedUpdate(dt float64) {
	switch b.x {
	case 3:
		_ = Move.Call(b.me, 3)
	default:
		_ = Move.Call(b.me, 4)
	}
}

func (b *better) Frame() {
	if b.sent {
		return
	}
	b.sent = true
	_ = Move.Call(b.me, 6)
}

func (b *better) OnFrame() {
	switch b.x {
	case 3:
		return
	}
	_ = Move.Call(b.me, 6)
}

func (b *better) jump() { _ = Move.Call(b.me, 7) }

// Update takes more than a tick is given: it is called when a name has changed.
func (b *better) Update(name string) { _ = Move.Call(b.me, len(name)) }

func (b *better) wait(events chan int, lines chan string) error {
	for n := range events {
		_ = Move.Call(b.me, n)
	}
	for _, s := range b.soldiers {
		_ = Move.Call(s, 1)
	}
	for i := range 10 {
		_ = Move.Call(b.soldiers[i], 1)
	}
	for {
		if err := Move.Call(b.me, 1); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	for {
		select {
		case <-lines:
			_ = Move.Call(b.me, 2)
		case <-time.After(time.Second):
			return Move.Call(b.me, 3)
		}
	}
}

type input interface{}

type jumped struct{}

func (b *better) OnTick(c actorrep.Call) {
	var in input
	switch in.(type) {
	case jumped:
		_ = Move.Call(b.me, 1)
	}
}

func (b *better) OnUpdate() {
	var in input
	if _, ok := in.(jumped); ok {
		_ = Move.Call(b.me, 1)
	}
}

func once(b *better, a actorrep.Actor) { _ = Move.Call(a.(*rpcs.Soldier), 1) }
