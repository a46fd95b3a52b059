package predict

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type aim struct{ X, Look float64 }

type gun struct {
	actorrep.Base
	X    float64 `net:"simulated" predict:"0.01"`
	Look float64 `predict:"1"`
	Hot  bool    `predict:""`
	Heat int8    `predict:""`
}

func (g *gun) Simulate(in aim, dt time.Duration) {
	g.X = min(max(g.X+min(max(in.X, -1), 1)*dt.Seconds(), -5), 5)
	g.Look, g.Heat = in.Look, int8(in.X)
	g.Hot = g.Heat > 0
}

func guns(t testing.TB, cfg Config[*gun, aim]) (*rig.Rig, *Class[*gun, aim], *Class[*gun, aim], *gun, *gun) {
	var server, client *Class[*gun, aim]
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, func(w *actorrep.World) (err error) {
		server, err = Register(w, "Gun", cfg)
		return err
	})
	l := r.JoinOther(func(w *actorrep.World) (err error) {
		client, err = Register(w, "Gun", cfg)
		return err
	})
	g := &gun{}
	require.NoError(t, r.Server.Spawn(g))
	require.NoError(t, server.Possess(g, l.Peer, r.Now))
	for len(client.pawns) == 0 {
		require.NoError(t, server.Tick(r.Now))
		r.Step()
		require.NoError(t, client.Tick(r.Now))
	}
	return r, server, client, g, client.pawns[0].actor
}

// TestHostileMoves: messages of any bits, with inputs that aren't finite, for other possessions and for actors that aren't the sender's, change
// nothing but counters, or move the actor as an honest input could.
func TestHostileMoves(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 1))
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	p := client.pawns[0]
	began := r.Now
	for i := range 3000 {
		m := message[*gun, aim]{number: p.number, bits: rng.IntN(600)}
		switch i % 4 {
		case 0:
			m.number = uint8(rng.Uint32())
			fallthrough
		case 1:
			for j := range m.data {
				m.data[j] = uint8(rng.Uint32())
			}
		default: // a message as it should be, with what can't be
			w := bitio.NewWriter(m.data[:])
			w.WriteUint8(1)
			w.WriteInt(0, 16)
			w.WriteBits(0, 1)
			w.WriteBits(uint64(rng.Uint32()), 31)
			bad := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 1}
			client.codec.WriteValue(w, ptr(&aim{bad[rng.IntN(len(bad))], bad[rng.IntN(len(bad))]}))
			client.state.writeClaim(w, &snapshot{})
			m.bits = w.Len()
		}
		_ = client.moves.Call(mine, m)
		if i%20 == 0 {
			require.NoError(t, server.Tick(r.Now))
			r.Step()
			require.NoError(t, client.Tick(r.Now))
		}
		require.LessOrEqual(t, math.Abs(g.X), (r.Now-began).Seconds()+0.6)
		require.False(t, math.IsNaN(g.Look) || math.IsInf(g.Look, 0))
	}
	c := server.Counters()
	t.Logf("seed %d: %+v", seed, c)
	require.NotZero(t, c.Strange)
	require.NotZero(t, c.Server.Malformed)
	require.NotZero(t, c.Server.Moves)
}

// FuzzMessages: a server's and a client's reader meet any message.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0}, uint16(64), true)
	f.Add(make([]byte, 60), uint16(480), false)
	r, server, client, g, mine := guns(f, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	peer := g.Owner()
	f.Fuzz(func(t *testing.T, data []byte, bits uint16, toServer bool) {
		m := message[*gun, aim]{number: client.pawns[0].number, bits: min(int(bits), 8*len(data), 8*maxMessage)}
		copy(m.data[:], data)
		w := bitio.NewWriter(make([]byte, maxMessage+8))
		m.WriteNet(w)
		require.NoError(t, w.Err())
		var got message[*gun, aim]
		require.NoError(t, got.ReadNet(bitio.NewReader(w.Bytes(), w.Len())))
		require.Equal(t, m.bits, got.bits)
		r.Step() // time passes for what limits calls, too
		if toServer {
			_ = server.receiveMoves(actorrep.Call{World: r.Server, Peer: peer, Now: r.Now}, g, got)
			require.NoError(t, server.Tick(r.Now))
			require.False(t, math.IsNaN(g.X) || math.IsInf(g.Look, 0) || math.IsNaN(g.Look))
			return
		}
		_ = client.receiveReply(actorrep.Call{World: mine.World(), Now: r.Now}, mine, got)
		require.NoError(t, client.Tick(r.Now))
		require.False(t, math.IsNaN(mine.X) || math.IsInf(mine.Look, 0) || math.IsNaN(mine.Look))
	})
}

// TestAllocs: a Tick in which inputs are sampled, sent, simulated and answered allocates nothing at either end.
func TestAllocs(t *testing.T) {
	n := 0.0
	r, server, client, _, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { n++; return aim{math.Sin(n), n} }})
	frame := func() {
		if err := server.Tick(r.Now); err != nil {
			t.Fatal(err)
		}
		r.Step()
		if err := client.Tick(r.Now); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		frame()
	}
	require.Zero(t, testing.AllocsPerRun(200, frame))
	require.Greater(t, server.Counters().Server.Moves, uint64(500))
}

// TestNumbersOfEveryKind: what is stored, sent and compared is what was loaded, for each kind at its ends; a claim is within half a
// tolerance.
func TestNumbersOfEveryKind(t *testing.T) {
	type all struct {
		actorrep.Base
		B   bool       `predict:""`
		I   int        `predict:""`
		I8  int8       `predict:""`
		I16 int16      `predict:""`
		I32 int32      `predict:""`
		I64 int64      `predict:""`
		U   uint       `predict:""`
		U8  uint8      `predict:""`
		U16 uint16     `predict:""`
		U32 uint32     `predict:""`
		U64 uint64     `predict:""`
		F   float32    `predict:""`
		D   float64    `predict:""`
		Tol float32    `predict:"0.1"`
		N   int16      `predict:"3"`
		Arr [2]float64 `predict:"0.5"`
	}
	p, err := stateOf(typeOf[all]())
	require.NoError(t, err)
	require.Len(t, p, 17)
	for _, v := range []all{{}, {B: true, I: math.MinInt, I8: -128, I16: math.MinInt16, I32: math.MinInt32, I64: math.MinInt64, F: -1.5, D: 1e300, Tol: -7.77, N: math.MinInt16, Arr: [2]float64{1e9, -1e-9}},
		{I: math.MaxInt, I8: 127, I16: math.MaxInt16, I32: math.MaxInt32, I64: math.MaxInt64, U: math.MaxUint, U8: 255, U16: math.MaxUint16, U32: math.MaxUint32, U64: math.MaxUint64, F: math.MaxFloat32, N: math.MaxInt16, Tol: 1e6}} {
		var s, back, claim snapshot
		p.load(ptr(&v), &s)
		w := bitio.NewWriter(make([]byte, 400))
		p.writeState(w, &s)
		p.writeClaim(w, &s)
		require.NoError(t, w.Err())
		rd := bitio.NewReader(w.Bytes(), w.Len())
		p.readState(rd, &back)
		p.readClaim(rd, &claim)
		require.NoError(t, rd.Err())
		require.Zero(t, rd.Remaining())
		require.Zero(t, p.distance(&s, &back))
		require.LessOrEqual(t, p.distance(&s, &claim), 0.5)
		var got all
		p.store(ptr(&got), &back)
		require.Equal(t, v, got)
	}
	require.True(t, math.IsInf(p.distance(&snapshot{}, &snapshot{2: 1}), 1), "exact")
	turns, err := stateOf(typeOf[struct {
		actorrep.Base
		Yaw float64 `net:"rot=16,skipowner" predict:"2"`
	}]())
	require.NoError(t, err)
	require.InDelta(t, 1, turns.distance(&snapshot{math.Float64bits(359)}, &snapshot{math.Float64bits(1)}), 1e-9, "the short way round")
}

// TestLeadsGainNothing: a player whose client holds its ticks further ahead of the server's than it must, or behind them, or sends several inputs for one tick, gets
// no further than an honest one: each tick is simulated once, at its time.
func TestLeadsGainNothing(t *testing.T) {
	const seconds = 8
	for name, c := range map[string]struct {
		ahead time.Duration
		most  float64 // of the way that an honest player gets in that time
	}{
		"honest": {0, 1}, "ahead": {300 * time.Millisecond, 1}, "beyond the buffer": {3 * time.Second, 0.3}, "behind": {-150 * time.Millisecond, 0.3},
	} {
		r, server, client, g, _ := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{X: 1} }})
		frame := func(ahead time.Duration) {
			require.NoError(t, server.Tick(r.Now))
			r.Step()
			client.clock.ahead += ahead
			if ahead != 0 {
				client.clock.restart()
			}
			require.NoError(t, client.Tick(r.Now))
			client.clock.ahead -= ahead
		}
		for range 60 {
			frame(0)
		}
		g.X = -5
		before, began := server.Counters().Server, r.Now
		for r.Now-began < seconds*time.Second {
			frame(c.ahead)
			require.LessOrEqual(t, g.X+5, (r.Now-began).Seconds()+0.05, name)
		}
		n := server.Counters().Server
		t.Logf("%s: %.2f m in %d s; %d moves, %d missed, %d late, %d too early", name, g.X+5, seconds, n.Moves-before.Moves, n.Missed-before.Missed, n.Late-before.Late, n.Ahead-before.Ahead)
		require.LessOrEqual(t, g.X+5, c.most*seconds+0.05, name)
		require.LessOrEqual(t, n.Moves-before.Moves+n.Forced-before.Forced, uint64(seconds*60+2), name)
	}
}

// TestAnotherServersTime: the clock of a client that comes to another server, whose time is another, begins anew; one that hears an old reply doesn't.
func TestAnotherServersTime(t *testing.T) {
	const step = 16666 * time.Microsecond
	for _, reached := range []time.Duration{time.Second, 400 * 24 * time.Hour} {
		k := clock{}
		now := time.Hour
		k.begin(now, 2*time.Hour, 50*time.Millisecond, step)
		_, shared := k.advance(now, now)
		require.InDelta(t, 2*time.Hour, shared, float64(time.Second))
		for range 100 {
			now += step
			_, shared = k.advance(now, now)
			k.made(shared-shared%step, now, shared)
			k.hear(timing{told: true, tick: uint8(k.newest / step), early: 5 * time.Millisecond, step: step}, shared)
			k.begin(now, shared-300*time.Millisecond, 50*time.Millisecond, step)
			_, next := k.advance(now, now)
			require.InDelta(t, shared, next, float64(step), "it doesn't jump")
		}
		k.begin(now, reached, 50*time.Millisecond, step)
		_, shared = k.advance(now, now)
		require.InDelta(t, reached, shared, float64(time.Second))
		require.False(t, k.inTime)
	}
}
