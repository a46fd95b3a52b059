package actorrep_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
)

type hulk struct {
	actorrep.Base
	Parts [4]string `net:"cap=8000"`
	After uint32    `net:""`
}

// TestLittleMemory: with the least MaxMemory and the smallest packets, whose reliable bunches cost more than they hold, values and calls that
// together are too much for one message arrive all the same, or the caller is told, and nothing that follows waits for ever.
func TestLittleMemory(t *testing.T) {
	for _, size := range []int{0, 256, 512} {
		var failed []error
		var heard []int
		call := actorrep.MulticastRPC(func(c actorrep.Call, a *hulk, s [32]string) error {
			if !c.World.IsServer() {
				n := 0
				for _, s := range s {
					n += len(s)
				}
				heard = append(heard, n)
			}
			return nil
		}, actorrep.Reliable)
		w := newWorld(t, 5, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("hulk", (*hulk)(nil), actorrep.RPCs{"Call": call}))
		})
		w.ServerMemory, w.Packet, w.Speed = 256<<10, size, 4<<20
		l := w.join()
		a, b := &hulk{}, &hulk{}
		for i := range a.Parts {
			a.Parts[i] = strings.Repeat("p", 7900)
		}
		require.NoError(t, w.Server.Spawn(a))
		require.NoError(t, w.Server.Spawn(b))
		for range 60 {
			w.Step()
		}
		m, _ := l.World.Find(a.GUID()).(*hulk)
		require.NotNil(t, m, "packets of %d", size)
		require.Equal(t, a.Parts, m.Parts)
		sent := []int(nil)
		for kib := 1; kib <= 31; kib += 2 {
			var text [32]string
			for i := range kib {
				text[i] = strings.Repeat("x", 1020)
			}
			for i := range a.Parts {
				a.Parts[i] = strings.Repeat(string(rune('a'+kib%26)), 7900)
			}
			a.After++
			for range 2 {
				require.NoError(t, call.Call(a, text))
				sent = append(sent, kib*1020)
			}
			for range 10 {
				w.Step()
			}
		}
		a.After, b.After = 99, 99
		w.Await("what follows", w.Step, func() bool { return m.After == 99 && l.World.Find(b.GUID()).(*hulk).After == 99 && m.Parts == a.Parts })
		for range 30 * 5 {
			w.Step()
		}
		require.Empty(t, failed, "packets of %d", size)
		require.Equal(t, sent, heard, "packets of %d", size)
	}
}

// TestCallThatNeverFits: a client's reliable call that the connection has no room for, even when everything is acked, is an error also while others wait.
// One that comes from another connection, with more room, is told. Those behind it run.
func TestCallThatNeverFits(t *testing.T) {
	var heard []int
	call := actorrep.ServerRPC(func(_ actorrep.Call, _ *hulk, s [10]string) error {
		heard = append(heard, len(strings.Join(s[:], "")))
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
	w := newWorld(t, 6, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("hulk", (*hulk)(nil), actorrep.RPCs{"Call": call}))
	})
	w.ReliableBuffer = 8
	l := w.JoinOther(w.register)
	a := &hulk{}
	a.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(a))
	w.Await("the hulk", w.Step, func() bool { return l.World.Find(a.GUID()) != nil })
	m := l.World.Find(a.GUID()).(*hulk)
	text := func(n int) (s [10]string) {
		for i := range s {
			s[i] = strings.Repeat("x", n/10)
		}
		return s
	}

	require.NoError(t, call.Call(m, text(5000)))
	require.NoError(t, call.Call(m, text(4000)), "it waits")
	require.ErrorIs(t, call.Call(m, text(8000)), channel.ErrTooLarge)
	require.NoError(t, call.Call(m, text(100)))
	w.Await("the others", w.Step, func() bool { return len(heard) == 3 })
	require.Equal(t, []int{5000, 4000, 100}, heard)
	require.ErrorIs(t, call.Call(m, text(8000)), channel.ErrTooLarge, "the channel is empty")
	require.Empty(t, l.Failed)

	require.NoError(t, call.Call(m, text(6000)), "it waits too")
	require.NoError(t, call.Call(m, text(5000)), "it waits")
	require.NoError(t, call.Call(m, text(200)))
	actorrep.LengthenCall(m, 0, 8000)
	w.Await("the last", w.Step, func() bool { return len(heard) == 5 })
	require.Equal(t, []int{5000, 200}, heard[3:])
	require.Len(t, l.Failed, 1)
	require.ErrorIs(t, l.Failed[0], channel.ErrTooLarge)
	require.ErrorContains(t, l.Failed[0], "hulk.Call")
}
