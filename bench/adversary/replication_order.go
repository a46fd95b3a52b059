package main

import (
	"errors"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "replication", name: "calls and values", promise: "at 20 % loss a reliable call finds the values that were set before it, in order and once, whatever becomes of the actor", bound: none("calls without their values, again or never"), run: callsAndValues},
		attack{area: "replication", name: "at every cap", promise: "a value below, at and above its cap arrives whole, or the server is told of it", bound: none("values cut or lost in silence"), run: atEveryCap},
		attack{area: "replication", name: "lying groups", promise: "a server that sends parts of groups as it likes overwrites nothing", bound: none("actors harmed"), run: lyingGroups},
		attack{area: "replication", name: "calls of others", promise: "an owner's procedure runs for him only, any client's for who sees the actor only", bound: none("calls that ran"), run: callsOfOthers},
	)
}

// runner is an actor whose calls know what its values are to be.
type runner struct {
	actorrep.Base
	N     uint32    `net:""`
	Steps [9]uint16 `net:""`
	Small uint8     `net:"max=100"`
	Text  string    `net:"cap=64"`
	Raw   []byte    `net:"cap=9000"`
	List  []uint16  `net:"cap=16"`
	Back  *struct {
		Text string `net:"cap=8"`
	} `net:""`

	ran, wrong uint32
	pressed    int
}

var check = actorrep.ClientRPC(func(_ actorrep.Call, r *runner, n uint32) error {
	r.ran++
	if r.ran != n || r.N < n || r.Steps[n%9] < uint16(n) && uint16(n) > 9 {
		r.wrong++
	}
	return nil
}, actorrep.Reliable, actorrep.OnOverflow(actorrep.Refuse))

var press = actorrep.ServerRPC0(func(_ actorrep.Call, r *runner) error { r.pressed++; return nil }, actorrep.Reliable, actorrep.AnyClient)

func callsAndValues(e *env) figure {
	s, err := newStonesOver(e, netsim.Settings{Loss: 20}, actorrep.Config{Failed: func(err error) { e.notef("%v", err) }}, nil)
	if err != nil {
		return broken("%v", err)
	}
	bad, calls := 0, 0
	for range e.pick(20, 400) {
		a := &runner{}
		a.SetOwner(s.peer)
		if err := s.server.Spawn(a); err != nil {
			return broken("%v", err)
		}
		var mirror *runner
		told := uint32(0)
		for range 250 {
			for range e.rng.IntN(3) {
				a.N++
				a.Steps[a.N%9] = uint16(a.N)
				if err := check.Call(a, a.N); err != nil {
					return broken("%v", err)
				}
				told++
			}
			switch e.rng.IntN(60) {
			case 0:
				_ = a.SetDormant(true)
			case 1:
				_ = a.SetDormant(false)
			}
			s.steps(1)
			if mirror == nil {
				mirror, _ = s.client.Find(a.GUID()).(*runner)
			}
		}
		if err := s.server.Destroy(a); err != nil {
			return broken("%v", err)
		}
		for i := 0; i < 1000 && mirror != nil && mirror.ran < told; i++ { // generous: seldom are so many bunches lost in a row
			s.steps(1)
		}
		if mirror == nil {
			return broken("the actor never came")
		}
		calls += int(told)
		if mirror.wrong > 0 || mirror.ran != told {
			e.notef("%d of %d ran, %d of them wrong", mirror.ran, told, mirror.wrong)
		}
		bad += int(mirror.wrong) + int(told-min(told, mirror.ran))
	}
	e.notef("%d calls", calls)
	return figure{value: float64(bad)}
}

func atEveryCap(e *env) figure {
	told := 0
	s, err := newStonesOver(e, netsim.Settings{}, actorrep.Config{Failed: func(err error) {
		if errors.Is(err, actorrep.ErrUnfit) {
			told++
		}
	}}, nil)
	if err != nil {
		return broken("%v", err)
	}
	silent, refused := 0, 0
	try := func(set func(a *runner), same func(a, b *runner) bool) bool {
		a := &runner{}
		if err := s.server.Spawn(a); err != nil {
			return false
		}
		s.steps(10)
		before := told
		set(a)
		s.steps(10)
		m, _ := s.client.Find(a.GUID()).(*runner)
		switch {
		case m == nil:
			return false
		case told > before:
			refused++
		case !same(a, m):
			silent++
		}
		return s.server.Destroy(a) == nil
	}
	ok := true
	for d := -1; d <= 1; d++ {
		ok = ok && try(func(a *runner) { a.Small = uint8(100 + d) }, func(a, b *runner) bool { return a.Small == b.Small }) &&
			try(func(a *runner) { a.Text = strings.Repeat("t", 64+d) }, func(a, b *runner) bool { return a.Text == b.Text }) &&
			try(func(a *runner) { a.Raw = make([]byte, 8192+d); a.Raw[0] = 1 }, func(a, b *runner) bool { return string(a.Raw) == string(b.Raw) }) &&
			try(func(a *runner) { a.List = make([]uint16, 16+d) }, func(a, b *runner) bool { return len(a.List) == len(b.List) }) &&
			try(func(a *runner) {
				a.Back = &struct {
					Text string `net:"cap=8"`
				}{strings.Repeat("b", 8+d)}
			}, func(a, b *runner) bool { return b.Back != nil && a.Back.Text == b.Back.Text })
	}
	ok = ok && try(func(a *runner) { a.Text = "\xff" }, func(a, b *runner) bool { return a.Text == b.Text })
	if !ok || refused < 6 {
		return broken("%d refused", refused)
	}
	e.notef("%d told", refused)
	return figure{value: float64(silent)}
}

func lyingGroups(e *env) figure {
	bad := 0
	for range e.pick(20, 400) {
		s, err := newStones(e, nil)
		if err != nil {
			return broken("%v", err)
		}
		s.steps(10)
		ch, err := s.conns[1].Open(bunch.Actor, channel.Nop{})
		if err != nil {
			return broken("%v", err)
		}
		if _, err = ch.SendBunch(opening(e, 2, 1, s.server.Frame(), false, 3)); err != nil {
			return broken("%v", err)
		}
		for i := range uint32(50) {
			w := bitio.NewWriter(make([]byte, 512))
			w.WriteBits(0, 2) // values
			w.WriteUint32(s.server.Frame() + i)
			w.WriteBits(1, 3)               // the group
			w.WriteBool(e.rng.IntN(2) == 0) // a bit a part, or a list
			for range 1 + e.rng.IntN(60) {
				w.WriteBits(e.rng.Uint64(), 1+e.rng.IntN(64))
			}
			if _, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}); err != nil {
				break
			}
			s.steps(1)
		}
		bad += harmed(s.client)
	}
	return figure{value: float64(bad)}
}

func callsOfOthers(e *env) figure {
	ran := 0
	for _, see := range []bool{false, true} {
		var actors []*channel.Channel
		s, err := newStones(e, func(ch *channel.Channel) channel.Handler {
			actors = append(actors, ch)
			return channel.Nop{}
		})
		if err != nil {
			return broken("%v", err)
		}
		a, p := &runner{}, &pebble{}
		if err := errors.Join(s.server.Spawn(p), s.server.Spawn(a)); err != nil {
			return broken("%v", err)
		}
		s.steps(20)
		if len(actors) < 2 {
			return broken("%d channels came", len(actors))
		}
		if !see {
			a.SetOnlyOwner(true)
			s.steps(10 * 60)
		}
		for range 3 { // neither is its own
			_, _ = actors[0].SendBunch(callBunch(0, 24, 24))
			_, _ = actors[1].SendBunch(callBunch(1, 0, 0))
		}
		s.steps(20)
		ran += s.peer.User.(int)
		switch {
		case !see:
			ran += a.pressed
		case a.pressed != 3:
			return broken("%d of 3 calls ran that may", a.pressed)
		}
	}
	return figure{value: float64(ran)}
}
