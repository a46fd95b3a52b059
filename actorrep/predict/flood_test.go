package predict

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// flooder is a client that speaks the protocol of a class of guns and isn't held to the rates of this package: its procedures are its own.
type flooder struct {
	line   *rig.Line
	moves  *actorrep.RPC[*gun, message[*gun, aim]]
	number uint8 // of the possession, from what the server said
}

func joinFlooder(t testing.TB, r *rig.Rig) *flooder {
	f := &flooder{}
	hear := func(_ actorrep.Call, _ *gun, m message[*gun, aim]) error { f.number = m.number; return nil }
	f.moves = actorrep.ServerRPC[*gun, message[*gun, aim]](nil)
	f.line = r.JoinOther(func(w *actorrep.World) error {
		return w.Register("Gun", (*gun)(nil), actorrep.RPCs{"predict.Moves": f.moves, "predict.Reply": actorrep.ClientRPC(hear), "predict.Begin": actorrep.ClientRPC(hear, actorrep.Reliable)})
	})
	return f
}

// TestFloodOfMoves: a client that sends as many moves as its rate allows, of times in the past, now, in the future and beyond all, the same tick again and again with other
// inputs, has its actor simulated once a tick and no further than an honest one; another player isn't corrected for it, and the server holds no more afterwards. Above the
// rate its connection ends.
func TestFloodOfMoves(t *testing.T) {
	const seed, seconds = 4, 20
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := Config[*gun, aim]{Input: func(*gun) aim { return aim{X: 1} }}
	var server, client *Class[*gun, aim]
	r := rig.New(t, seed, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, func(w *actorrep.World) (err error) {
		server, err = Register(w, "Gun", cfg)
		return err
	})
	honest := r.JoinOther(func(w *actorrep.World) (err error) {
		client, err = Register(w, "Gun", cfg)
		return err
	})
	liar := joinFlooder(t, r)
	mine, its := &gun{X: -5}, &gun{X: -5}
	for _, c := range []struct {
		g *gun
		l *rig.Line
	}{{mine, honest}, {its, liar.line}} {
		require.NoError(t, r.Server.Spawn(c.g))
		require.NoError(t, server.Possess(c.g, c.l.Peer, r.Now))
	}
	frame := func() {
		require.NoError(t, server.Tick(r.Now))
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	r.Await("both have theirs", frame, func() bool {
		return liar.line.World.Find(its.GUID()) != nil && liar.number != 0 && len(client.pawns) == 1
	})
	there := liar.line.World.Find(its.GUID()).(*gun)
	p := server.byActor[its]
	step := server.step
	// say sends one message of moves.
	say := func() error {
		m := message[*gun, aim]{number: liar.number}
		w := bitio.NewWriter(m.data[:])
		n := 1 + rng.IntN(6)
		w.WriteUint8(uint8(rng.IntN(256)))
		w.WriteInt(uint32(n-1), 16)
		now := p.server.Timestamp()
		at := []time.Duration{now, now + step, now + 30*step, now + 64*step, now - 10*step, 0, now + time.Hour, time.Microsecond<<52 - time.Second, now + step/2}[rng.IntN(9)]
		w.WriteBool(true)
		w.WriteBits(uint64(at/time.Microsecond), 52)
		for i := range n {
			if i > 0 {
				w.WriteIntPacked64(uint64([]time.Duration{step, step, step, 2 * step, time.Microsecond, 1000 * time.Hour}[rng.IntN(6)] / time.Microsecond))
			}
			server.codec.WriteValue(w, ptr(&aim{[]float64{1, 1, 1, 1e300, -1e300}[rng.IntN(5)], rng.Float64()}))
		}
		server.state.writeClaim(w, &snapshot{})
		require.NoError(t, w.Err())
		m.bits = w.Len()
		return liar.moves.Call(there, m)
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for range 60 {
		frame()
	}
	from := its.X
	held, began, before, corrected := heap(), r.Now, p.server.Counters, server.byActor[mine].server.Counters.Corrections
	sent := 0
	for r.Now-began < seconds*time.Second {
		for range maxPossessed * 2 * 60 / 30 { // the rate
			if say() == nil {
				sent++
			}
		}
		frame()
		require.LessOrEqual(t, its.X-from, (r.Now-began).Seconds()+0.1)
		require.False(t, math.IsNaN(its.X))
	}
	n := p.server.Counters
	grown := int64(heap()) - int64(held)
	t.Logf("%d messages: %d moves, %d late, %d too early, %d old, %d forced; the heap has grown by %d bytes", n.Messages-before.Messages, n.Moves-before.Moves, n.Late-before.Late, n.Ahead-before.Ahead,
		n.Old-before.Old, n.Forced-before.Forced, grown)
	require.Greater(t, n.Messages-before.Messages, uint64(1000*seconds))
	require.LessOrEqual(t, n.Moves+n.Forced-before.Moves-before.Forced, uint64(seconds*60+2))
	require.Less(t, grown, int64(1<<20))
	require.Equal(t, corrected, server.byActor[mine].server.Counters.Corrections, "another player")
	require.InDelta(t, 5, mine.X, 0.1)

	l := liar.line
	for n := 0; n < 30*60 && !l.S.Closing() && !l.S.Closed(); n++ {
		for range 1000 {
			if liar.moves.Call(there, message[*gun, aim]{number: liar.number}) != nil {
				break // its own bandwidth
			}
		}
		r.Now += rig.Tick
		for p, ok := l.Up.Pop(r.Now); ok; p, ok = l.Up.Pop(r.Now) {
			_ = l.S.ReceivedPacket(r.Now, p)
		}
		for p, ok := l.Down.Pop(r.Now); ok; p, ok = l.Down.Pop(r.Now) {
			_ = l.C.ReceivedPacket(r.Now, p)
		}
		l.S.PostTickDispatch(r.Now)
		l.C.PostTickDispatch(r.Now)
		require.NoError(t, server.Tick(r.Now))
		r.Server.Step(r.Now)
		l.S.Tick(r.Now)
		l.C.Tick(r.Now)
	}
	require.ErrorIs(t, liar.line.S.Result().Err, actorrep.ErrRateLimited)
}
