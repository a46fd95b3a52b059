package actorrep_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type dir struct {
	X, Y float32 `net:"q=0.1"`
	Note string
}

// soldier logs what is called on it.
type soldier struct {
	actorrep.Base
	Ammo  actorrep.Var[uint16] `net:"notify=OnAmmo"`
	Aim   int32                `net:"notify=OnAim"`
	calls []string
	took  int
}

func (s *soldier) OnAmmo() { s.calls = append(s.calls, fmt.Sprint("ammo ", s.Ammo.Get())) }
func (s *soldier) OnAim()  { s.calls = append(s.calls, fmt.Sprint("aim ", s.Aim)) }

var errJam = errors.New("jammed")

var (
	fire = actorrep.ServerRPC(func(c actorrep.Call, s *soldier, d dir) error {
		s.took++
		s.calls = append(s.calls, fmt.Sprintf("fire %.1f %.1f %s", d.X, d.Y, d.Note))
		if d.Note == "jam" {
			return errJam
		}
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest)).Validated(func(_ actorrep.Call, _ *soldier, d dir) bool { return d.X <= 100 })
	wave = actorrep.ServerRPC(func(_ actorrep.Call, s *soldier, n int32) error { s.took++; return nil })
	slow = actorrep.ServerRPC(func(_ actorrep.Call, s *soldier, _ struct{}) error { s.took++; return nil }, actorrep.Reliable, actorrep.RateLimit(2, 3))
	tell = actorrep.ClientRPC(func(_ actorrep.Call, s *soldier, text string) error {
		s.calls = append(s.calls, "tell "+text)
		return nil
	}, actorrep.Reliable)
	newest = actorrep.ClientRPC(func(_ actorrep.Call, s *soldier, n uint32) error {
		s.calls = append(s.calls, fmt.Sprint("newest ", n))
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(actorrep.Coalesce))
	whisper = actorrep.ClientRPC(func(_ actorrep.Call, s *soldier, n uint32) error { s.took++; return nil })
	boom    = actorrep.MulticastRPC(func(_ actorrep.Call, s *soldier, n uint8) error {
		s.calls = append(s.calls, fmt.Sprint("boom ", n))
		return nil
	})
	anthem = actorrep.MulticastRPC(func(_ actorrep.Call, s *soldier, n uint8) error {
		s.calls = append(s.calls, fmt.Sprint("anthem ", n))
		return nil
	}, actorrep.Reliable)
	foreign = actorrep.ServerRPC(func(actorrep.Call, *soldier, int8) error { return nil })
)

func registerSoldier(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("soldier", (*soldier)(nil), actorrep.RPCs{"Fire": fire, "Wave": wave, "Slow": slow, "Tell": tell, "Newest": newest, "Whisper": whisper, "Boom": boom, "Anthem": anthem}))
}

func soldiers(t *testing.T, set netsim.Settings, clients int) (*world, *soldier, []*soldier) {
	w := newWorld(t, 3, set, actorrep.Config{}, registerSoldier)
	w.ReliableBuffer = 256 // which an outage of a few seconds fills
	s := &soldier{}
	for range clients {
		w.join()
	}
	s.SetOwner(w.Lines[0].Peer)
	require.NoError(t, w.Server.Spawn(s))
	var mirrors []*soldier
	for range 200 {
		w.Step()
	}
	for _, l := range w.Lines {
		m, _ := l.World.Find(s.GUID()).(*soldier)
		require.NotNil(t, m)
		mirrors = append(mirrors, m)
	}
	return w, s, mirrors
}

func TestServerRPC(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{Loss: 20, Dup: 10}, 2)
	require.True(t, m[0].IsOwned())
	require.ErrorIs(t, fire.Call(m[1], dir{}), actorrep.ErrNotOwner)
	require.ErrorIs(t, fire.Call(&soldier{}, dir{}), actorrep.ErrNotSpawned)
	require.ErrorIs(t, fire.Call(nil, dir{}), actorrep.ErrNotSpawned, "such as an actor that hasn't come")
	require.ErrorIs(t, foreign.Call(m[0], 1), actorrep.ErrNoProcedure)
	require.ErrorIs(t, tell.Call(m[0], "x"), actorrep.ErrAuthority)
	require.ErrorIs(t, boom.Call(m[0], 1), actorrep.ErrAuthority)
	require.ErrorIs(t, fire.Call(m[0], dir{X: 101}), actorrep.ErrInvalid)
	var want []string
	for i := range 50 {
		require.NoError(t, fire.Call(m[0], dir{X: float32(i), Y: -0.5, Note: "é"}))
		want = append(want, fmt.Sprintf("fire %.1f -0.5 é", float32(i)))
		w.Step()
	}
	for range 100 {
		w.Step()
	}
	require.Equal(t, want, s.calls, "each once, in order")
	s.SetOwner(nil)
	s.took = 0
	require.NoError(t, fire.Call(m[0], dir{}), "the client doesn't know yet")
	for range 100 {
		w.Step()
	}
	require.Zero(t, s.took, "but the server does")
	require.NotZero(t, w.Server.Counters.CallsRefused)
	require.ErrorIs(t, fire.Call(m[0], dir{}), actorrep.ErrNotOwner)
	require.NoError(t, fire.Call(s, dir{X: 1}), "the server may call itself")
	require.Equal(t, 1, s.took)
}

// TestRefusedCalls: a cheat that skips the validation at its own end is thrown out.
func TestRefusedCalls(t *testing.T) {
	strict := actorrep.ServerRPC(func(actorrep.Call, *soldier, int32) error { return nil }, actorrep.Reliable)
	var refuse bool
	strict.Validated(func(c actorrep.Call, _ *soldier, n int32) bool { return !refuse || c.Peer == nil })
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("soldier", (*soldier)(nil), actorrep.RPCs{"Strict": strict}))
	})
	l := w.join()
	s := &soldier{}
	s.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(s))
	for range 60 {
		w.Step()
	}
	refuse = true
	require.NoError(t, strict.Call(l.World.Find(s.GUID()).(*soldier), 1))
	l.C.FlushNet()
	for p, ok := l.Up.Pop(w.Now); ok; p, ok = l.Up.Pop(w.Now) {
		_ = l.S.ReceivedPacket(w.Now, p)
	}
	require.True(t, l.S.Closed())
	require.ErrorIs(t, l.S.Result().Err, actorrep.ErrInvalid)
}

func TestRateLimit(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 1)
	good := 0
	for range 60 { // two seconds
		for range 5 {
			if slow.Call(m[0], struct{}{}) == nil {
				good++
			}
		}
		w.Step()
	}
	require.InDelta(t, 7, good, 1, "3 at once and 2 a second")
	for range 20 {
		w.Step()
	}
	require.Equal(t, good, s.took)
}

// TestOrder: on a client the values of a tick come before its notifies, these in the order of declaration, and then the
// calls, even when packets are lost.
func TestOrder(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{Loss: 30, LagMin: 10 * time.Millisecond, LagMax: 90 * time.Millisecond}, 1)
	var errs []string
	for i := range 100 {
		s.Aim = int32(1000 + i)
		require.NoError(t, tell.Call(s, fmt.Sprint(1000+i)))
		before := len(m[0].calls)
		w.Step()
		for _, c := range m[0].calls[before:] {
			var n int32
			if k, _ := fmt.Sscanf(c, "tell %d", &n); k == 1 && m[0].Aim < n {
				errs = append(errs, fmt.Sprintf("%s when aim was %d", c, m[0].Aim))
			}
		}
	}
	for range 200 {
		w.Step()
	}
	require.Empty(t, errs)
	tells := 0
	for _, c := range m[0].calls {
		var n int
		if k, _ := fmt.Sscanf(c, "tell %d", &n); k == 1 {
			require.Equal(t, 1000+tells, n)
			tells++
		}
	}
	require.Equal(t, 100, tells)

	w, s, m = soldiers(t, netsim.Settings{}, 1)
	s.Aim, m[0].calls = 5, nil
	s.Ammo.Set(7)
	require.NoError(t, tell.Call(s, "first"))
	require.NoError(t, boom.Call(s, 9))
	for range 10 {
		w.Step()
	}
	require.Equal(t, []string{"ammo 7", "aim 5"}, m[0].calls[:2], "by declaration, before calls")
	require.ElementsMatch(t, []string{"tell first", "boom 9"}, m[0].calls[2:])
}

func TestClientAndMulticast(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{Loss: 20}, 3)
	require.NoError(t, tell.Call(s, "you"))
	require.NoError(t, anthem.Call(s, 1))
	for range 100 {
		w.Step()
	}
	require.Equal(t, []string{"anthem 1"}, s.calls, "multicasts run at the server too")
	require.ElementsMatch(t, []string{"tell you", "anthem 1"}, m[0].calls)
	require.Equal(t, []string{"anthem 1"}, m[1].calls)
	require.Equal(t, []string{"anthem 1"}, m[2].calls)
	s.SetOwner(nil)
	require.ErrorIs(t, tell.Call(s, "nobody"), actorrep.ErrNoOwner)

	w, s, m = soldiers(t, netsim.Settings{}, 2)
	for i := range uint8(5) { // two of a kind ride with an update
		require.NoError(t, boom.Call(s, i))
	}
	for range 10 {
		w.Step()
	}
	require.Equal(t, []string{"boom 0", "boom 1"}, m[0].calls)
	require.EqualValues(t, 6, w.Server.Counters.CallsDropped)
}

// TestLocal: an offline game and a listen server run the same code.
func TestLocal(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	registerSoldier(t, w)
	s := &soldier{}
	s.SetOwner(w.Local())
	require.NoError(t, w.Spawn(s))
	require.True(t, s.IsOwned())
	require.Equal(t, actorrep.Authority, s.Role())
	require.NoError(t, fire.Call(s, dir{X: 1, Note: "local"}))
	require.NoError(t, tell.Call(s, "me"))
	require.NoError(t, boom.Call(s, 3))
	w.Step(time.Second)
	require.Equal(t, []string{"fire 1.0 0.0 local", "tell me", "boom 3"}, s.calls)
	require.ErrorIs(t, fire.Call(s, dir{Note: "jam"}), errJam)
}

// TestOverflow fills the reliable buffer: each policy does what it says, and the connection lives unless it says otherwise.
func TestOverflow(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 1)
	require.NoError(t, w.Lines[0].Down.Set(netsim.Settings{Loss: 100}))
	full := 0
	for i := range 1200 {
		if err := tell.Call(s, fmt.Sprint(i)); err != nil {
			require.ErrorIs(t, err, actorrep.ErrFull)
			full++
		}
		w.Step() // calls of one Step share a bunch
	}
	require.NotZero(t, full, "refused, and said so")
	for i := range uint32(100) {
		require.NoError(t, newest.Call(s, i))
	}
	require.NoError(t, w.Lines[0].Down.Set(netsim.Settings{}))
	for range 400 {
		w.Step()
	}
	tells, last := 0, ""
	for _, c := range m[0].calls {
		var n int
		if k, _ := fmt.Sscanf(c, "tell %d", &n); k == 1 {
			tells++
		} else {
			last = c
		}
	}
	require.Equal(t, 1200-full, tells, "what was taken arrives")
	require.Equal(t, "newest 99", last, "coalesced to the last")
}

func TestUnreliableCalls(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{Loss: 50}, 1)
	for range 200 {
		require.NoError(t, wave.Call(m[0], 1))
		if err := whisper.Call(s, 1); err != nil {
			require.ErrorIs(t, err, actorrep.ErrSaturated)
		}
		w.Step()
	}
	require.InDelta(t, 100, s.took, 40)
	require.InDelta(t, 100, m[0].took, 40)
}

// TestUnreliableCallsWithoutRoom: an unreliable call that there is no room for, because nothing is acked or the line is slow, is refused with ErrSaturated at both ends.
func TestUnreliableCallsWithoutRoom(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 1)
	require.NoError(t, w.Lines[0].Down.Set(netsim.Settings{Loss: 100}))
	refused := [2]int{}
	for range 1200 {
		for i, err := range [2]error{wave.Call(m[0], 1), errors.Join(whisper.Call(s, 1), whisper.Call(s, 2), whisper.Call(s, 3))} {
			if err != nil {
				require.Equal(t, actorrep.ErrSaturated.Error(), err.Error())
				refused[i]++
			}
		}
		w.Step()
	}
	require.NotZero(t, refused[0])
	require.NotZero(t, refused[1])
}

// TestUnreliableCallsOfOneStep: a client's unreliable calls of one Step take no more than its bandwidth and a packet's. The others are refused at once.
func TestUnreliableCallsOfOneStep(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 1)
	for range 2 {
		sent := 0
		for range 10_000 {
			if err := wave.Call(m[0], 1); err == nil {
				sent++
			} else {
				require.ErrorIs(t, err, actorrep.ErrSaturated)
			}
		}
		require.Less(t, sent, 1500)
		took := s.took
		for range 30 {
			w.Step()
		}
		require.Equal(t, sent, s.took-took)
	}
}

// TestCallsSentAreCounted: reliable calls and unreliable ones, which go with the values, at both ends.
func TestCallsSentAreCounted(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 2)
	sent, came := w.Server.Counters, [2]actorrep.Counters{w.Lines[0].World.Counters, w.Lines[1].World.Counters}
	for range 10 {
		require.NoError(t, whisper.Call(s, 1)) // to the owner
		require.NoError(t, tell.Call(s, "x"))  // the same, reliable
		require.NoError(t, boom.Call(s, 1))    // to both
		require.NoError(t, wave.Call(m[0], 1))
		w.Step()
	}
	for range 30 {
		w.Step()
	}
	require.EqualValues(t, 40, w.Server.Counters.CallsSent-sent.CallsSent)
	require.EqualValues(t, 10, w.Server.Counters.CallsReceived-sent.CallsReceived)
	require.EqualValues(t, 30, w.Lines[0].World.Counters.CallsReceived-came[0].CallsReceived)
	require.EqualValues(t, 10, w.Lines[1].World.Counters.CallsReceived-came[1].CallsReceived)
	require.EqualValues(t, 10, w.Lines[0].World.Counters.CallsSent-came[0].CallsSent)
}

func TestTearOff(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{Loss: 20}, 2)
	s.Aim = 77
	require.NoError(t, s.TearOff())
	s.Aim = 78
	for range 100 {
		w.Step()
	}
	for i, l := range w.Lines {
		require.NotNil(t, l.World.Find(m[i].GUID()), "the client keeps it")
		require.EqualValues(t, 77, m[i].Aim, "with its last values")
		require.Equal(t, actorrep.Authority, m[i].Role())
		require.True(t, m[i].TornOff())
	}
	w.join()
	for range 60 {
		w.Step()
	}
	require.Zero(t, w.Lines[2].World.Len(), "who comes later doesn't see it")
	late := &soldier{}
	require.NoError(t, w.Server.SpawnIn(s, late))
	w.Step()
	require.True(t, late.TornOff())
	require.Equal(t, actorrep.ReasonTornOff, w.Server.Explain(w.Lines[0].Peer, late).Reason)
}

type corpse struct {
	actorrep.Base
	N    int32 `net:""`
	gone int
}

func (c *corpse) Spawned()   {}
func (c *corpse) Destroyed() { c.gone++ }

// TestDestroyTornOff: what was torn off is the client's, who may remove it with its components; nothing else.
func TestDestroyTornOff(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 20, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("corpse", (*corpse)(nil)))
	})
	c := w.join().World
	for range 10 {
		h, other, p := &corpse{}, &corpse{}, &corpse{}
		require.NoError(t, w.Server.Spawn(h))
		require.NoError(t, w.Server.Spawn(other))
		require.NoError(t, w.Server.SpawnIn(h, p))
		w.Await("their coming", w.Step, func() bool { return c.Find(p.GUID()) != nil && c.Find(h.GUID()) != nil && c.Find(other.GUID()) != nil })
		m, n, n0 := c.Find(h.GUID()).(*corpse), c.Find(p.GUID()).(*corpse), c.Len()
		require.ErrorIs(t, c.Destroy(m), actorrep.ErrClient)
		h.N++
		require.NoError(t, h.TearOff())
		require.NoError(t, w.Server.Destroy(h))
		w.Await("the end of its replication", w.Step, m.TornOff)
		require.EqualValues(t, 1, m.N)
		require.NoError(t, c.Destroy(m))
		require.NoError(t, c.Destroy(m), "it is gone")
		require.Equal(t, n0-2, c.Len())
		require.Nil(t, c.Find(p.GUID()))
		require.Zero(t, m.gone)
		for range 60 {
			w.Step()
		}
		require.Equal(t, 1, m.gone)
		require.Equal(t, 1, n.gone)
		require.ErrorIs(t, c.Destroy(c.Find(other.GUID())), actorrep.ErrClient)
	}
}

// TestCallsOfWhatHasNoChannel: who calls an actor that sleeps or was torn off is told so, and what to do.
func TestCallsOfWhatHasNoChannel(t *testing.T) {
	w, s, m := soldiers(t, clean, 1)
	refused := func(err error, why string) {
		t.Helper()
		require.ErrorIs(t, err, actorrep.ErrNotThere)
		require.ErrorContains(t, err, why)
	}
	steps := func() {
		for range 30 {
			w.Step()
		}
	}
	for range 2 {
		require.NoError(t, s.SetDormant(true))
		steps()
		refused(fire.Call(m[0], dir{}), "dormant")
		refused(wave.Call(m[0], 1), "dormant")
		refused(whisper.Call(s, 1), "only a reliable call wakes it")
		m[0].calls = nil
		require.NoError(t, tell.Call(s, "wake"))
		steps()
		require.Equal(t, []string{"tell wake"}, m[0].calls)
		refused(fire.Call(m[0], dir{}), "dormant")
		require.NoError(t, s.SetDormant(false))
		s.Aim++
		steps()
		require.NoError(t, fire.Call(m[0], dir{}))
		require.NoError(t, whisper.Call(s, 1))
		steps()
		require.Contains(t, s.calls, "fire 0.0 0.0 ")
		s.calls = nil
	}
	require.NoError(t, s.TearOff())
	steps()
	refused(fire.Call(m[0], dir{}), "torn off")
	refused(tell.Call(s, "gone"), "any more")
}
