package rollback_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// sums is a game whose state depends on every input of every frame and their order.
type sums struct {
	hash    uint64
	frames  int64
	wrongAt int64   // the state is another from this frame on; 0 never
	last    [8]byte // of each player's input of the last frame, the first byte
}

// Save is rollback's.
func (g *sums) Save(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, g.hash), uint64(g.frames))
}

// Load is rollback's.
func (g *sums) Load(b []byte) {
	g.hash, g.frames = binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))
}

// Advance is rollback's.
func (g *sums) Advance(frame int64, inputs [][]byte) {
	if frame != g.frames {
		panic(fmt.Sprint("frame ", frame, " after ", g.frames))
	}
	for p, in := range inputs {
		g.last[p] = in[0]
		for _, b := range in {
			g.hash = (g.hash ^ uint64(b) ^ uint64(p)<<8) * 0x9E3779B97F4A7C15
			g.hash ^= g.hash >> 29
		}
	}
	if g.frames++; g.wrongAt > 0 && g.frames > g.wrongAt {
		g.hash++
	}
}

// wire is a Transport over a simulated path.
type wire struct {
	link *netsim.Link
	dark bool
}

// Send is lockstep's.
func (w *wire) Send(now time.Duration, p []byte) error {
	if !w.dark {
		w.link.Push(now, p)
	}
	return nil
}

// machine is a player's.
type machine struct {
	*rollback.Session
	game   *sums
	inputs [][]byte // its player's, by frame, as it was first simulated
	events []rollback.Event
	rng    *rand.Rand
	held   []byte
	next   time.Duration
	pace   time.Duration // between frames
	gone   bool
	err    error
	refuse int
}

// party is machines and the paths between all of them, in virtual time.
type party struct {
	t        *testing.T
	now      time.Duration
	machines []*machine
	wires    map[[2]int]*wire // from, to
}

const frameTime = time.Second / 60

func newParty(t *testing.T, seed uint64, players int, set netsim.Settings, edit func(p int, c *rollback.Config)) *party {
	t.Logf("seed %d", seed)
	r := &party{t: t, wires: map[[2]int]*wire{}}
	for p := range players {
		m := &machine{game: &sums{}, rng: rand.New(rand.NewPCG(seed, uint64(p))), pace: frameTime}
		cfg := rollback.Config{Session: seed, Players: players, Local: p, InputSize: 2, Event: func(e rollback.Event) { m.events = append(m.events, e) }}
		if edit != nil {
			edit(p, &cfg)
		}
		var err error
		m.Session, err = rollback.New(cfg, m.game)
		require.NoError(t, err)
		m.held = make([]byte, cfg.InputSize)
		m.next = time.Duration(m.rng.Int64N(int64(40 * time.Millisecond)))
		r.machines = append(r.machines, m)
	}
	for a := range players {
		for b := range players {
			if a == b {
				continue
			}
			link, err := netsim.NewLink(set, seed*100+uint64(a*10+b))
			require.NoError(t, err)
			r.wires[[2]int{a, b}] = &wire{link: link}
			require.NoError(t, r.machines[a].Connect(b, r.wires[[2]int{a, b}]))
		}
	}
	return r
}

// run lets time pass, 4 ms at a time.
func (r *party) run(d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.now += 4 * time.Millisecond
		for b, m := range r.machines {
			if m.gone {
				continue
			}
			for a := range r.machines {
				if w := r.wires[[2]int{a, b}]; w != nil {
					for p, ok := w.link.Pop(r.now); ok; p, ok = w.link.Pop(r.now) {
						if m.Receive(r.now, a, p) != nil {
							m.refuse++
						}
					}
				}
			}
			for r.now >= m.next && m.err == nil {
				m.next += m.pace
				if len(m.held) > 2 || m.rng.IntN(6) == 0 {
					m.held[0], m.held[1] = byte(m.rng.Uint32())|1, byte(m.rng.Uint32N(4))
				}
				var ok bool
				if ok, m.err = m.Step(m.held); ok && m.err == nil {
					m.inputs = append(m.inputs, append([]byte(nil), m.held...))
				}
			}
			m.Tick(r.now)
		}
	}
}

// alive is the machines that play.
func (r *party) alive() (ms []*machine) {
	for _, m := range r.machines {
		if !m.gone && m.err == nil {
			ms = append(ms, m)
		}
	}
	return ms
}

// agree sees to it that all have got somewhere, and that no checksum differed from another machine's: they are compared every 16 frames.
func (r *party) agree() {
	r.t.Helper()
	final := int64(1) << 60
	for _, m := range r.alive() {
		final = min(final, m.Final())
	}
	require.Greater(r.t, final, int64(20))
	for _, m := range r.alive() {
		for _, e := range m.events {
			require.NotEqual(r.t, rollback.Desynced, e.Kind, "%+v", e)
		}
	}
}

// TestAllAgree: 2 to 8 players with other delays each, at 2 and 10 % loss, jitter and reordering: no machine's final states differ from another's, at any check,
// and everybody plays on at the pace of the game.
func TestAllAgree(t *testing.T) {
	for _, players := range []int{2, 3, 8} {
		for _, loss := range []float64{2, 10} {
			for seed := range uint64(4) {
				r := newParty(t, seed, players, netsim.Settings{Loss: loss, LagMin: 20 * time.Millisecond, LagMax: 45 * time.Millisecond, Order: 5, Dup: 5},
					func(p int, c *rollback.Config) { c.Delay = []int{2, -1, 4}[p%3] })
				r.run(20 * time.Second)
				r.agree()
				for p, m := range r.machines {
					require.NoError(t, m.err)
					require.Zero(t, m.refuse)
					require.Greater(t, m.Frame(), int64(60*19), "player %d: %+v", p, m.Stats())
					require.Less(t, m.Frame(), int64(60*20+2))
					require.LessOrEqual(t, m.Stats().Deepest, 8)
				}
			}
		}
	}
}

// TestIsTheModel: what a machine has simulated is what comes of all inputs in order, each player's Delay frames after it was given.
func TestIsTheModel(t *testing.T) {
	delays := []int{2, 0, 5}
	r := newParty(t, 1, 3, netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(p int, c *rollback.Config) {
		if c.Delay = delays[p]; c.Delay == 0 {
			c.Delay = -1
		}
	})
	r.run(10 * time.Second)
	for p, m := range r.machines {
		require.Greater(t, m.Stats().Rollbacks, uint64(20))
		hash, frames := finalState(t, r, p)
		require.Greater(t, frames, m.Final()-20)
		model := &sums{}
		for f := range frames {
			inputs := make([][]byte, 3)
			for q := range inputs { // the first Step gives its input to all frames up to its delay
				inputs[q] = r.machines[q].inputs[max(0, f-int64(delays[q]))]
			}
			model.Advance(f, inputs)
		}
		require.Equal(t, model.hash, hash, "player %d at frame %d", p, frames)
	}
}

// finalState is the state that comes of what a machine tells a spectator, and its frame.
func finalState(t *testing.T, r *party, p int) (hash uint64, frames int64) {
	m := r.machines[p]
	game := &sums{}
	var up, down sink
	w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 3, 0, game, &up)
	require.NoError(t, err)
	require.NoError(t, m.Connect(3, &down))
	for range 100 {
		r.now += frameTime
		w.Tick(r.now)
		require.NoError(t, m.Receive(r.now, 3, up.p))
		m.Tick(r.now)
		require.NoError(t, w.Receive(r.now, down.p))
		for n := w.Ready(); n > 0; n-- {
			require.True(t, w.Step(), "%d frames are ready", n)
		}
		require.False(t, w.Step())
	}
	return game.hash, w.Frame()
}

// sink is a Transport that keeps the last packet.
type sink struct{ p []byte }

// Send is lockstep's.
func (s *sink) Send(_ time.Duration, p []byte) error {
	s.p = append(s.p[:0], p...)
	return nil
}

// TestDesyncIsTold: who computes something else is found out by all within a second, once.
func TestDesyncIsTold(t *testing.T) {
	for _, far := range []bool{false, true} {
		r := newParty(t, 1, 3, netsim.Settings{Loss: 5, Lag: 30 * time.Millisecond}, func(p int, c *rollback.Config) {
			if far {
				c.MaxRollback, c.Delay = 16, 16*(p%2)
			}
		})
		r.machines[1].game.wrongAt = 200
		r.run(6 * time.Second)
		desyncs(t, r)
	}
}

func desyncs(t *testing.T, r *party) {
	for p, m := range r.machines {
		var of []int
		for _, e := range m.events {
			if e.Kind == rollback.Desynced {
				require.GreaterOrEqual(t, e.Frame, int64(200))
				require.Less(t, e.Frame, int64(260))
				of = append(of, e.Player)
			}
		}
		if p == 1 {
			require.ElementsMatch(t, []int{0, 2}, of)
		} else {
			require.Equal(t, []int{1}, of)
		}
	}
}

// TestDrop: a player that falls silent in the midst of its packets, of which everybody has another part, is dropped in the same frame by all, and the
// others go on alike.
func TestDrop(t *testing.T) {
	for seed := range uint64(30) {
		r := newParty(t, seed, 4, netsim.Settings{Loss: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(_ int, c *rollback.Config) {
			c.DropAfter = 2 * time.Second
		})
		r.run(3 * time.Second)
		r.wires[[2]int{2, 0}].dark = true // its last words reach some
		r.run(40 * time.Millisecond)
		if seed%2 == 0 {
			r.wires[[2]int{2, 1}].dark = true
			r.run(20 * time.Millisecond)
		}
		r.machines[2].gone = true
		if seed%3 == 0 { // another one goes while they agree
			r.run(2 * time.Second)
			r.machines[3].gone = true
		}
		r.run(12 * time.Second)
		r.agree()
		at := map[int]int64{}
		for _, p := range []int{0, 1, 3} {
			m := r.machines[p]
			if m.gone {
				continue
			}
			require.NoError(t, m.err)
			require.Greater(t, m.Frame(), int64(60*6), "seed %d, player %d waits for %b", seed, p, m.Waiting())
			for _, e := range m.events {
				if e.Kind != rollback.Dropped {
					continue
				}
				if f, ok := at[e.Player]; ok {
					require.Equal(t, f, e.Frame, "seed %d", seed)
				}
				at[e.Player] = e.Frame
			}
		}
		require.Contains(t, at, 2)
	}
}

// TestDroppedKnows: who was dropped although it plays on is told; what it sends meanwhile is nobody's, and its inputs are zeros for all from the same
// frame on.
func TestDroppedKnows(t *testing.T) {
	for seed := range uint64(30) {
		r := newParty(t, seed, 4, netsim.Settings{Loss: 5, LagMin: 10 * time.Millisecond, LagMax: 80 * time.Millisecond}, func(_ int, c *rollback.Config) {
			if seed%2 == 1 {
				c.InputSize, c.MaxPacket = 16, 140 // the own inputs leave no room for those to forward
			}
		})
		r.run(2 * time.Second)
		require.NoError(t, r.machines[0].Drop(2))
		r.run(6 * time.Second)
		require.ErrorIs(t, r.machines[2].err, rollback.ErrDropped)
		frames := map[int64]bool{}
		for _, p := range []int{0, 1, 3} {
			m := r.machines[p]
			require.Equal(t, uint8(0b1011), m.Active())
			require.Greater(t, m.Frame(), int64(60*5))
			require.Zero(t, m.game.last[2])
			require.NotZero(t, m.game.last[3]|m.game.last[1]|m.game.last[0])
			for _, e := range m.events {
				if e.Kind == rollback.Dropped {
					frames[e.Frame] = true
				}
			}
		}
		require.Len(t, frames, 1, "seed %d", seed)
		r.agree()
	}
}

// TestAhead: a packet of frames that can't be yet is refused, such as one of a session that goes on while this one began again.
func TestAhead(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	var seen sink
	require.NoError(t, r.machines[1].Connect(0, both{&seen, r.wires[[2]int{1, 0}]}))
	r.run(time.Second)
	m, err := rollback.New(rollback.Config{Session: 1, Players: 2, InputSize: 2}, &sums{})
	require.NoError(t, err)
	require.NoError(t, m.Connect(1, &sink{}))
	require.ErrorIs(t, m.Receive(0, 1, seen.p), rollback.ErrAhead, "it acks what wasn't sent")
	r.run(3 * time.Second)
	require.ErrorIs(t, m.Receive(0, 1, seen.p), rollback.ErrAhead)
	require.ErrorIs(t, m.Receive(0, 0, seen.p), rollback.ErrNoPlayer)
	require.Equal(t, uint64(3), m.Stats().Refused)
	other, err := rollback.New(rollback.Config{Session: 2, Players: 2, InputSize: 2}, &sums{})
	require.NoError(t, err)
	require.ErrorIs(t, other.Receive(0, 1, seen.p), rollback.ErrAgreement)
}

// TestBalance: who begins 30 frames' time later, and whose clock runs 1 % fast, don't stay ahead of the others: nobody waits for inputs.
func TestBalance(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{Lag: 40 * time.Millisecond}, nil)
	r.machines[0].pace = frameTime * 99 / 100
	r.run(20 * time.Second)
	a, b := r.machines[0], r.machines[1]
	require.InDelta(t, a.Frame(), b.Frame(), 3)
	require.Less(t, a.Stats().Stalled+b.Stats().Stalled, uint64(20), "%+v %+v", a.Stats(), b.Stats())
	require.Greater(t, a.Stats().Balanced, uint64(5))
}

// TestDarkness: a path that is dark for less than DropAfter stalls the game, which goes on behind it.
func TestDarkness(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
	r.run(2 * time.Second)
	for _, d := range []time.Duration{100 * time.Millisecond, time.Second, 4 * time.Second} {
		for _, both := range []bool{false, true} {
			r.wires[[2]int{0, 1}].dark = true
			r.wires[[2]int{1, 0}].dark = both
			r.run(d)
			r.wires[[2]int{0, 1}].dark, r.wires[[2]int{1, 0}].dark = false, false
			before := r.machines[0].Frame()
			r.run(2 * time.Second)
			require.Greater(t, r.machines[0].Frame(), before+100, "%v", d)
			for _, m := range r.machines {
				require.LessOrEqual(t, m.Stats().Deepest, 8)
			}
		}
	}
	r.agree()
}

// TestSpectators: one sees the same game, some frames late, at 10 % loss; one that isn't heard of for too long is told of.
func TestSpectators(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{Loss: 10, Lag: 20 * time.Millisecond}, func(_ int, c *rollback.Config) { c.SpectatorDelay = 30 })
	r.run(3 * time.Second)
	var down, up sink
	game := &sums{}
	w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 2, InputSize: 2}, 9, 0, game, &up)
	require.NoError(t, err)
	m := r.machines[0]
	require.NoError(t, m.Connect(9, &down))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 600 {
		r.run(16 * time.Millisecond)
		w.Tick(r.now)
		if len(up.p) > 0 && rng.IntN(10) > 0 {
			require.NoError(t, m.Receive(r.now, 9, up.p))
		}
		if len(down.p) > 0 && rng.IntN(10) > 0 {
			require.NoError(t, w.Receive(r.now, down.p))
		}
		for range 3 {
			w.Step()
		}
		require.LessOrEqual(t, w.Frame(), m.Final()-30)
	}
	require.Greater(t, w.Frame(), m.Final()-60)
	model := &sums{}
	for f := range w.Frame() {
		model.Advance(f, [][]byte{r.machines[0].inputs[max(0, f-2)], r.machines[1].inputs[max(0, f-2)]})
	}
	require.Equal(t, model.hash, game.hash)
	r.run(25 * time.Second)
	last := m.events[len(m.events)-1]
	require.Equal(t, rollback.Behind, last.Kind)
	require.Equal(t, 9, last.Player)
	require.NoError(t, w.Err())
	require.NoError(t, w.Receive(r.now, down.p))
	require.ErrorIs(t, w.Err(), rollback.ErrBehind, "the spectator is told as well")
	require.ErrorIs(t, w.Receive(r.now, append(slices.Clone(down.p), 0)), rollback.ErrMalformed)
}

// TestSyncTest: a game that keeps something back from its state, or draws from elsewhere, is found out.
func TestSyncTest(t *testing.T) {
	input := func(p int, f int64, dst []byte) { dst[0] = byte(f) * byte(p+3) }
	cfg := rollback.Config{Players: 2, InputSize: 2}
	require.NoError(t, rollback.SyncTest(cfg, &sums{}, 500, input))
	err := rollback.SyncTest(cfg, &forgetful{}, 500, input)
	require.ErrorIs(t, err, rollback.ErrDesync)
}

// forgetful has state that it doesn't save.
type forgetful struct {
	sums
	secret uint64
}

// Advance is rollback's.
func (g *forgetful) Advance(frame int64, inputs [][]byte) {
	g.secret++
	g.sums.Advance(frame, inputs)
	g.hash += g.secret
}

// TestHostilePackets: whatever comes, nothing breaks, and what is refused changes nothing: the game goes on alike.
func TestHostilePackets(t *testing.T) {
	r := newParty(t, 1, 3, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	rng := rand.New(rand.NewPCG(1, 5))
	var seen sink
	for i := range 600 {
		r.run(16 * time.Millisecond)
		_ = r.machines[1].Connect(0, both{&seen, r.wires[[2]int{1, 0}]})
		if len(seen.p) == 0 {
			continue
		}
		p := append([]byte(nil), seen.p...)
		switch i % 4 {
		case 0:
			p = p[:rng.IntN(len(p))]
		case 1:
			p[6+rng.IntN(len(p)-6)] ^= 1 << rng.IntN(8)
		case 2:
			p = append(p, byte(rng.Uint32()))
		case 3:
			for j := range p[6:] {
				if rng.IntN(4) == 0 {
					p[6+j] = byte(rng.Uint32())
				}
			}
		}
		m := r.machines[0]
		frame, final, stats := m.Frame(), m.Final(), m.Stats()
		if err := m.Receive(r.now, []int{1, 1, 2, 0, -1, 77}[rng.IntN(6)], p); err != nil {
			require.Equal(t, []int64{frame, final}, []int64{m.Frame(), m.Final()})
			stats.Refused++
			require.Equal(t, stats, m.Stats())
		}
	}
}

// both sends to two.
type both struct {
	a, b interface {
		Send(time.Duration, []byte) error
	}
}

// Send is lockstep's.
func (w both) Send(now time.Duration, p []byte) error {
	return errors.Join(w.a.Send(now, p), w.b.Send(now, p))
}

// TestConfig: each wrong setting is an error.
func TestConfig(t *testing.T) {
	good := rollback.Config{Players: 2, InputSize: 1}
	_, err := rollback.New(good, &sums{})
	require.NoError(t, err)
	for i, edit := range []func(c *rollback.Config){
		func(c *rollback.Config) { c.Players = 1 }, func(c *rollback.Config) { c.Players = 9 }, func(c *rollback.Config) { c.Local = 2 }, func(c *rollback.Config) { c.Local = -1 },
		func(c *rollback.Config) { c.InputSize = 0 }, func(c *rollback.Config) { c.InputSize = 33 }, func(c *rollback.Config) { c.Delay = 17 },
		func(c *rollback.Config) { c.MaxRollback = 17 }, func(c *rollback.Config) { c.MaxRollback = -1 }, func(c *rollback.Config) { c.FrameTime = time.Hour },
		func(c *rollback.Config) { c.DropAfter = 9 * time.Millisecond }, func(c *rollback.Config) { c.DropAfter, c.FrameTime = 9*time.Millisecond, time.Millisecond },
		func(c *rollback.Config) { c.DropAfter, c.FrameTime = 2*time.Second-1, time.Second }, func(c *rollback.Config) { c.DropAfter = 2*(time.Second/60) - 1 },
		func(c *rollback.Config) { c.MaxPacket = 100 }, func(c *rollback.Config) { c.SpectatorDelay = 1000 },
		func(c *rollback.Config) { c.Players, c.InputSize, c.MaxPacket = 8, 32, 255 },
	} {
		c := good
		edit(&c)
		_, err := rollback.New(c, &sums{})
		require.ErrorIs(t, err, rollback.ErrConfig, i)
	}
	s, err := rollback.New(good, &sums{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Connect(0, &sink{}), rollback.ErrNoPlayer)
	require.ErrorIs(t, s.Drop(-1), rollback.ErrNoPlayer)
	require.ErrorIs(t, s.Drop(good.Players), rollback.ErrNoPlayer)
	_, err = s.Step(nil)
	require.ErrorIs(t, err, rollback.ErrInput)
	require.ErrorIs(t, s.SetDelay(17), rollback.ErrConfig)
}

// TestAllocations: frames, rollbacks and packets allocate nothing once the buffers have their sizes.
func TestAllocations(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{}, func(_ int, c *rollback.Config) { c.Delay = -1 })
	for _, w := range r.wires {
		w.dark = true
	}
	a, b := r.machines[0], r.machines[1]
	var toA, toB sink
	require.NoError(t, a.Connect(1, &toB))
	require.NoError(t, b.Connect(0, &toA))
	now, held := time.Duration(0), []byte{0, 0}
	frame := func() {
		now += frameTime
		held[0]++ // never what was repeated
		for _, m := range []*machine{a, b} {
			if _, err := m.Step(held); err != nil {
				t.Fatal(err)
			}
			m.Tick(now)
		}
		_, _ = a.Receive(now, 1, toA.p), b.Receive(now, 0, toB.p)
	}
	for range 200 {
		frame()
	}
	require.Zero(t, testing.AllocsPerRun(500, frame))
	require.Greater(t, a.Stats().Rollbacks, uint64(600))
}
