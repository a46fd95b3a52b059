package actorrep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type path255 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

type path256 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

type path257 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

// TestNameCap: names of classes, procedures and fields of up to 256 bytes work at both ends, longer ones are errors of Register.
func TestNameCap(t *testing.T) {
	none := actorrep.MulticastRPC(func(actorrep.Call, *bell, uint8) error { return nil })
	for _, n := range []int{255, 256, 257} {
		name := strings.Repeat("n", n)
		for what, register := range map[string]func(w *actorrep.World) error{
			"class":     func(w *actorrep.World) error { return w.Register(name, (*bell)(nil)) },
			"procedure": func(w *actorrep.World) error { return w.Register("bell", (*bell)(nil), actorrep.RPCs{name: none}) },
			"field": func(w *actorrep.World) error {
				if err := w.Register("path", map[int]actorrep.Actor{255: (*filler[path255])(nil), 256: (*filler[path256])(nil), 257: (*filler[path257])(nil)}[n]); err != nil {
					return err
				}
				return w.Register("bell", (*bell)(nil))
			},
		} {
			err := register(actorrep.NewServer(actorrep.Config{}))
			if n > 256 {
				require.ErrorIs(t, err, actorrep.ErrLongName, what)
				continue
			}
			require.NoError(t, err, what)
			w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) { require.NoError(t, register(w)) })
			l := w.join()
			b := &bell{Rings: 3}
			require.NoError(t, w.Server.Spawn(b))
			w.Await(what, w.Step, func() bool { m, ok := l.World.Find(b.GUID()).(*bell); return ok && m.Rings == 3 })
		}
	}
}

// sized has a field for each bound of a size.
type sized struct {
	actorrep.Base
	Text  string   `net:""`
	Long  string   `net:"cap=65535"`
	Bytes []byte   `net:""`
	Blob  []byte   `net:"cap=65535"`
	List  []uint16 `net:""`
	Level uint8    `net:"max=100"`
	Count uint64   `net:"max=4294967294"`
}

// TestSizeCaps: a value one below its bound and one at it arrive; one above isn't sent, which is told with its field.
func TestSizeCaps(t *testing.T) {
	var told []error
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{Failed: func(err error) { told = append(told, err) }},
		func(t testing.TB, w *actorrep.World) { require.NoError(t, w.Register("sized", (*sized)(nil))) })
	l := w.join()
	for _, c := range []struct {
		field string
		most  int
		set   func(s *sized, n int)
		get   func(s *sized) int
	}{
		{"Text", 1024, func(s *sized, n int) { s.Text = strings.Repeat("t", n) }, func(s *sized) int { return len(s.Text) }},
		{"Long", 60000, func(s *sized, n int) { s.Long = strings.Repeat("l", n) }, func(s *sized) int { return len(s.Long) }},
		{"Bytes", 1024, func(s *sized, n int) { s.Bytes = make([]byte, n) }, func(s *sized) int { return len(s.Bytes) }},
		{"Blob", 8190, func(s *sized, n int) { s.Blob = make([]byte, n) }, func(s *sized) int { return len(s.Blob) }}, // and two of its length
		{"List", 1024, func(s *sized, n int) { s.List = make([]uint16, n) }, func(s *sized) int { return len(s.List) }},
		{"Level", 100, func(s *sized, n int) { s.Level = uint8(n) }, func(s *sized) int { return int(s.Level) }},
	} {
		for _, opened := range []bool{false, true} {
			for off := -1; off <= 1; off++ {
				told = nil
				s := &sized{}
				if !opened {
					c.set(s, c.most+off)
				}
				require.NoError(t, w.Server.Spawn(s))
				w.Await(c.field, w.Step, func() bool { return l.World.Find(s.GUID()) != nil })
				c.set(s, c.most+off)
				for range 20 {
					w.Step()
				}
				got := c.get(l.World.Find(s.GUID()).(*sized))
				switch {
				case off <= 0:
					require.Equal(t, c.most+off, got, c.field)
					require.Empty(t, told, c.field)
				default:
					if c.field == "Level" { // a number is clamped
						require.Equal(t, c.most, got)
					} else {
						require.Zero(t, got, c.field)
					}
					require.Len(t, told, 1, c.field)
					require.ErrorIs(t, told[0], actorrep.ErrUnfit, c.field)
					require.ErrorContains(t, told[0], c.field)
				}
				require.NoError(t, w.Server.Destroy(s))
			}
		}
	}
}

// TestParameterCaps: parameters of up to 32 KiB arrive, in either direction; larger ones are errors of their call.
func TestParameterCaps(t *testing.T) {
	type args struct {
		Data []byte `net:"cap=65535"`
	}
	var came []int
	took := func(_ actorrep.Call, _ *bell, p args) error { came = append(came, len(p.Data)); return nil }
	up, down, all := actorrep.ServerRPC(took, actorrep.Reliable), actorrep.ClientRPC(took, actorrep.Reliable), actorrep.MulticastRPC(took, actorrep.Reliable)
	loose := actorrep.ServerRPC(took)
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("bell", (*bell)(nil), actorrep.RPCs{"Up": up, "Down": down, "All": all, "Loose": loose}))
	})
	l := w.join()
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	w.Await("bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
	m := l.World.Find(b.GUID()).(*bell)
	const most = 32<<10 - 3 // and its length
	for _, c := range []struct {
		call func(p args) error
		runs int
	}{
		{func(p args) error { return up.Call(m, p) }, 1}, {func(p args) error { return loose.Call(m, p) }, 1},
		{func(p args) error { return down.Call(b, p) }, 1}, {func(p args) error { return all.Call(b, p) }, 2},
	} {
		for off := -1; off <= 1; off++ {
			came = nil
			err := c.call(args{make([]byte, most+off)})
			for range 40 {
				w.Step()
			}
			if off > 0 {
				require.ErrorIs(t, err, actorrep.ErrTooLarge)
				require.Empty(t, came)
				continue
			}
			require.NoError(t, err)
			require.Len(t, came, c.runs)
			require.Equal(t, most+off, came[0])
		}
	}
}

// TestProcedureCap: a class may have 256 procedures, of which the last is called as the first.
func TestProcedureCap(t *testing.T) {
	ran := 0
	procedures := func(n int) (list actorrep.RPCs, last *actorrep.RPC[*bell, uint8]) {
		list = actorrep.RPCs{}
		for i := range n {
			last = actorrep.MulticastRPC(func(c actorrep.Call, _ *bell, n uint8) error { ran += int(n); return nil }, actorrep.Reliable)
			list[fmt.Sprintf("P%04d", i)] = last
		}
		return list, last
	}
	for _, n := range []int{255, 256, 257} {
		list, last := procedures(n)
		if n > 256 {
			require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("bell", (*bell)(nil), list))
			require.Error(t, actorrep.NewClient(actorrep.Config{}).Register("bell", (*bell)(nil), list))
			continue
		}
		w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("bell", (*bell)(nil), list))
		})
		l := w.join()
		b := &bell{}
		require.NoError(t, w.Server.Spawn(b))
		w.Await("bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
		ran = 0
		require.NoError(t, last.Call(b, 1))
		for range 10 {
			w.Step()
		}
		require.Equal(t, 2, ran)
	}
}

// TestCallCaps: an update carries two unreliable calls of a procedure and eight in all; 64 reliable calls of an actor wait. Who makes one more
// is told.
func TestCallCaps(t *testing.T) {
	var ran []uint8
	heard := func(c actorrep.Call, _ *bell, n uint8) error {
		if !c.World.IsServer() {
			ran = append(ran, n)
		}
		return nil
	}
	list, loose := actorrep.RPCs{}, []*actorrep.RPC[*bell, uint8]{}
	for i := range 5 {
		loose = append(loose, actorrep.ClientRPC(heard))
		list[fmt.Sprint("Loose", i)] = loose[i]
	}
	firm := actorrep.ClientRPC(heard, actorrep.Reliable)
	list["Firm"] = firm
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("bell", (*bell)(nil), list))
	})
	l := w.join()
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	w.Await("bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
	for range 5 {
		w.Step()
	}
	for i := range uint8(15) {
		err := loose[i%5].Call(b, i)
		if i < 8 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, actorrep.ErrSaturated, "%d", i)
		}
	}
	w.Step()
	w.Step()
	require.Equal(t, []uint8{0, 1, 2, 3, 4, 5, 6, 7}, ran)
	require.NoError(t, loose[0].Call(b, 1))
	require.NoError(t, loose[0].Call(b, 2))
	require.ErrorIs(t, loose[0].Call(b, 3), actorrep.ErrSaturated)
	ran = nil
	for i := range uint8(actorrep.MaxWaitingCalls + 1) {
		err := firm.Call(b, i)
		if i < actorrep.MaxWaitingCalls {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, actorrep.ErrFull)
		}
	}
	w.Step()
	w.Step()
	require.Len(t, ran, 2+actorrep.MaxWaitingCalls)
}

// TestPendingCallCap: a client keeps 4096 calls for its next Step; of those above it the game is told how many.
func TestPendingCallCap(t *testing.T) {
	for _, n := range []int{4095, 4096, 4097} {
		ran := 0
		firm := actorrep.ClientRPC(func(actorrep.Call, *bell, uint8) error { ran++; return nil }, actorrep.Reliable)
		register := func(w *actorrep.World) error { return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Firm": firm}) }
		w := rig.New(t, 3, netsim.Settings{}, actorrep.Config{}, register)
		l := w.JoinOther(register)
		b := &bell{}
		b.SetOwner(l.Peer)
		require.NoError(t, w.Server.Spawn(b))
		w.Await("bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
		w.Step()
		for sent := 0; sent < n; {
			for range min(actorrep.MaxWaitingCalls, n-sent) {
				require.NoError(t, firm.Call(b, 1))
				sent++
			}
			w.Server.Step(w.Now)
			exchange(w, l, 1)
		}
		exchange(w, l, 20)
		l.World.Step(w.Now)
		require.Equal(t, min(n, 4096), ran)
		if n <= 4096 {
			require.Empty(t, l.Failed)
			continue
		}
		require.Len(t, l.Failed, 1)
		require.ErrorIs(t, l.Failed[0], actorrep.ErrCallsPending)
		require.ErrorContains(t, l.Failed[0], "1 were dropped")
	}
}

type leaf struct {
	Text []byte `net:"cap=30000"`
}

// TestWaitingCallCaps: 64 multicasts of an actor wait for its first Step, and 64 calls with Coalesce, of which one more takes the place of the
// oldest; a client's that wait for room are sent as it comes.
func TestWaitingCallCaps(t *testing.T) {
	var ran []uint8
	heard := func(c actorrep.Call, _ *bell, n uint8) error {
		if !c.World.IsServer() {
			ran = append(ran, n)
		}
		return nil
	}
	asked := 0
	shout := actorrep.MulticastRPC(heard, actorrep.Reliable)
	newest := actorrep.ClientRPC(heard, actorrep.Reliable, actorrep.OnOverflow(actorrep.Coalesce))
	ask := actorrep.ServerRPC(func(actorrep.Call, *bell, [900]uint8) error { asked++; return nil }, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
	tome := actorrep.ServerRPC(func(actorrep.Call, *bell, leaf) error { return nil }, actorrep.Reliable)
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("bell", (*bell)(nil), actorrep.RPCs{"Shout": shout, "Newest": newest, "Ask": ask, "Tome": tome}))
	})
	l := w.join()
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	for i := range uint8(actorrep.MaxWaitingCalls) {
		require.NoError(t, shout.Call(b, i))
	}
	require.ErrorIs(t, shout.Call(b, 99), actorrep.ErrFull)
	w.Await("the shouts", w.Step, func() bool { return len(ran) >= actorrep.MaxWaitingCalls })
	for range 5 {
		w.Step()
	}
	require.Len(t, ran, actorrep.MaxWaitingCalls)
	ran = nil
	for i := range uint8(actorrep.MaxWaitingCalls + 1) {
		require.NoError(t, newest.Call(b, i))
	}
	for range 5 {
		w.Step()
	}
	require.Len(t, ran, actorrep.MaxWaitingCalls)
	require.EqualValues(t, 1, ran[0])
	require.EqualValues(t, actorrep.MaxWaitingCalls, ran[actorrep.MaxWaitingCalls-1])
	w.ReliableBuffer = 16
	l = w.join()
	b.SetOwner(l.Peer)
	w.Await("the bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
	m := l.World.Find(b.GUID()).(*bell)
	require.ErrorIs(t, tome.Call(m, leaf{make([]byte, 30000)}), channel.ErrTooLarge, "it never fits")
	for range 40 {
		require.NoError(t, ask.Call(m, [900]uint8{}))
	}
	for range 30 {
		w.Step()
	}
	require.Equal(t, 40, asked)
}

// TestCallsThatFail: what a procedure returns is counted and told where it ran, and of a call that ran its client isn't told that it may not have.
func TestCallsThatFail(t *testing.T) {
	failure := errors.New("it failed")
	up := actorrep.ServerRPC(func(actorrep.Call, *bell, uint8) error { return failure }, actorrep.Reliable)
	down := actorrep.ClientRPC(func(actorrep.Call, *bell, uint8) error { return failure }, actorrep.Reliable)
	register := func(w *actorrep.World) error {
		return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Up": up, "Down": down})
	}
	var failed []error
	w := rig.New(t, 3, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Failed: func(err error) { failed = append(failed, err) }}, register)
	l := w.JoinOther(register)
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	w.Await("bell", w.Step, func() bool { return l.World.Find(b.GUID()) != nil })
	require.NoError(t, up.Call(l.World.Find(b.GUID()).(*bell), 1))
	require.NoError(t, down.Call(b, 1))
	for range 10 {
		w.Step()
	}
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], failure)
	require.EqualValues(t, 1, w.Server.Counters.CallErrors)
	require.Len(t, l.Failed, 1)
	require.ErrorIs(t, l.Failed[0], failure)
	require.EqualValues(t, 1, l.World.Counters.CallErrors)
	require.NoError(t, b.SetDormant(true))
	for range 10 {
		w.Step()
	}
	require.NoError(t, w.Server.Destroy(b))
	for range 10 {
		w.Step()
	}
	require.Nil(t, l.World.Find(b.GUID()))
	require.Len(t, l.Failed, 1, "the call was acked")
}
