package actorrep_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// liner is an actor that no bunch holds: up to 450 kB.
type liner struct {
	actorrep.Base
	Name    string                 `net:"initial,cap=8000"`
	Decks   [54]string             `net:"cap=8000"`
	Safe    string                 `net:"owner,cap=8000"`
	Cargo   fastarray.List[uint64] `net:""`
	Flag    string                 `net:"initial,cap=8000"`
	appears func(l *liner)
	ran     []string
}

func (l *liner) Spawned() {
	if l.appears != nil {
		l.appears(l)
	}
}
func (l *liner) Destroyed() {}

// whole says what of it isn't there.
func (l *liner) whole() string {
	switch {
	case l.Name == "", l.Flag == "":
		return "no name or flag"
	case l.Cargo.Len() == 0:
		return "no cargo"
	}
	for i, d := range l.Decks[:20] {
		if d == "" {
			return fmt.Sprintf("no deck %d", i)
		}
	}
	return ""
}

func (l *liner) paint(rng *rand.Rand, deck int) {
	l.Decks[deck] = strings.Repeat(string(rune('a'+rng.IntN(26))), 4000+rng.IntN(4000))
}

func newLiner(rng *rand.Rand) *liner {
	l := &liner{Name: strings.Repeat("n", 8000), Flag: strings.Repeat("f", 8000), Safe: strings.Repeat("s", 8000)}
	for i := range l.Decks {
		l.paint(rng, i)
	}
	for i := range 1000 {
		_, _ = l.Cargo.Add(uint64(i))
	}
	return l
}

func linerText(l *liner, owner bool) string {
	s := fmt.Sprint(l.GUID(), l.Name, l.Decks, l.Flag, l.Cargo.Len())
	if owner {
		s += l.Safe
	}
	return s
}

type hail struct{ Text string }

// fleet is a world of liners and rocks.
type fleet struct {
	*world
	call func(l *liner, text string) error
}

func newFleet(t *testing.T, seed uint64, set netsim.Settings, cfg actorrep.Config) *fleet {
	f := &fleet{}
	hailed := actorrep.MulticastRPC(func(_ actorrep.Call, l *liner, h hail) error {
		if l.Role() == actorrep.Authority {
			return nil
		}
		require.Empty(t, l.whole(), "a call to half an actor")
		l.ran = append(l.ran, h.Text)
		return nil
	}, actorrep.Reliable)
	f.call = func(l *liner, text string) error { return hailed.Call(l, hail{text}) }
	f.world = newWorld(t, seed, set, cfg, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("liner", (*liner)(nil), actorrep.RPCs{"Hail": hailed}))
		require.NoError(t, w.Register("rock", (*rock)(nil)))
	})
	return f
}

// half says what a client sees of liners that aren't whole.
func (f *fleet) half() {
	f.T.Helper()
	for _, l := range f.Lines {
		for a := range l.World.All {
			if a, ok := a.(*liner); ok {
				require.Empty(f.T, a.whole())
			}
		}
	}
}

func (f *fleet) same(l *rig.Line) string {
	if l.World.Len() != f.Server.Len() {
		return fmt.Sprintf("%d actors, the server has %d", l.World.Len(), f.Server.Len())
	}
	for a := range f.Server.All {
		a, ok := a.(*liner)
		if !ok {
			continue
		}
		m, _ := l.World.Find(a.GUID()).(*liner)
		switch {
		case m == nil:
			return fmt.Sprintf("no %v", a.GUID())
		case linerText(m, a.Owner() == l.Peer) != linerText(a, a.Owner() == l.Peer):
			return fmt.Sprintf("%v differs", a.GUID())
		case f.Server.Explain(l.Peer, a).Reason != actorrep.ReasonUpToDate:
			return f.Server.Explain(l.Peer, a).Text
		}
	}
	return ""
}

// TestLargeActorOpens: an actor larger than a bunch arrives whole, with its calls behind it, and nobody waits for it.
func TestLargeActorOpens(t *testing.T) {
	for _, loss := range []float64{0, 20} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			f := newFleet(t, 1, netsim.Settings{Loss: loss, LagMin: 20 * time.Millisecond, LagMax: 20 * time.Millisecond}, actorrep.Config{})
			f.Speed = 200_000
			l := f.join()
			clock := &rock{Size: 1}
			require.NoError(t, f.Server.Spawn(clock))
			f.Until(f.same)
			a := newLiner(f.Rand)
			a.SetOwner(l.Peer)
			require.NoError(t, f.Server.Spawn(a))
			require.NoError(t, f.call(a, "first"))
			rocks := 0
			var behind []int // rocks there before the liner
			for i := range 300 {
				clock.Size++
				age := clock.Size - l.World.Find(clock.GUID()).(*rock).Size
				require.Less(t, age, uint16(20), "changes of others wait")
				if i < 30 {
					require.NoError(t, f.Server.Spawn(&rock{Size: 5}))
				}
				if i == 3 {
					require.NoError(t, f.call(a, "second"))
				}
				f.Step()
				f.half()
				if l.World.Find(a.GUID()) == nil {
					require.NotEqual(t, actorrep.ReasonUpToDate, f.Server.Explain(l.Peer, a).Reason)
					rocks = l.World.Len()
					behind = append(behind, rocks)
				}
			}
			require.Empty(t, f.same(l))
			require.Greater(t, len(behind), 5, "its opening takes longer than a Step")
			require.Positive(t, rocks, "others came meanwhile")
			require.Equal(t, []string{"first", "second"}, l.World.Find(a.GUID()).(*liner).ran)
			require.True(t, l.World.Find(a.GUID()).(*liner).IsOwned())
			f.Until(func(*rig.Line) string { // the last parts may still be acked
				if held := l.C.Table().Held(); held > 100_000 {
					return fmt.Sprintf("the client holds %d bytes of parts", held)
				}
				return ""
			})
		})
	}
}

// TestLargeActorEnds: a large actor that goes while it opens is never seen, and comes whole when it comes again.
func TestLargeActorEnds(t *testing.T) {
	for _, end := range []string{"destroy", "irrelevant", "tear off", "tear off early", "disconnect"} {
		for _, loss := range []float64{0, 20} {
			t.Run(fmt.Sprint(end, loss), func(t *testing.T) {
				var told []error
				f := newFleet(t, 2, netsim.Settings{Loss: loss}, actorrep.Config{RelevantTimeout: -1, Failed: func(err error) { told = append(told, err) }})
				f.Speed = 100_000
				f.ReliableBuffer = 256 // too few for all of it
				l := f.join()
				for range 30 {
					f.Step()
				}
				a := newLiner(f.Rand)
				if end == "tear off" { // little enough for the reliable bunches of a channel
					clear(a.Decks[:])
					for i := range 20 {
						a.paint(f.Rand, i)
					}
				}
				require.NoError(t, f.Server.Spawn(a))
				for range 10 {
					f.Step()
				}
				require.Equal(t, actorrep.ReasonOpening, f.Server.Explain(l.Peer, a).Reason)
				require.Contains(t, f.Server.Explain(l.Peer, a).Text, "several")
				switch end {
				case "destroy":
					require.NoError(t, f.Server.Destroy(a))
				case "irrelevant":
					a.SetOnlyOwner(true)
				case "tear off", "tear off early":
					require.NoError(t, a.TearOff())
				case "disconnect":
					f.Server.RemoveConn(l.Peer)
				}
				for range 300 {
					f.Step()
					f.half()
					if end != "tear off" {
						require.Nil(t, l.World.Find(a.GUID()))
					}
				}
				switch end {
				case "irrelevant":
					a.SetOnlyOwner(false)
					for range 600 {
						f.Step()
						f.half()
					}
					require.Empty(t, f.same(l))
				case "tear off":
					require.NotNil(t, l.World.Find(a.GUID()), "there was room for what was left")
				case "tear off early":
					require.Len(t, told, 1)
					require.ErrorIs(t, told[0], actorrep.ErrTornEarly)
					told = nil
				}
				require.Empty(t, told)
			})
		}
	}
}

// TestLargeActorsRandom: liners that come, change, go and get other owners amid their openings are never seen half, and all
// clients agree at the end.
func TestLargeActorsRandom(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(t, seed, netsim.Settings{Loss: 20, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, actorrep.Config{RelevantTimeout: -1})
			f.join()
			f.join()
			var list []*liner
			for range 120 {
				switch n := len(list); {
				case n == 0 || n < 4 && f.Rand.IntN(10) == 0:
					a := newLiner(f.Rand)
					require.NoError(t, f.Server.Spawn(a))
					list = append(list, a)
				case f.Rand.IntN(20) == 0:
					require.NoError(t, f.Server.Destroy(list[0]))
					list = list[1:]
				case f.Rand.IntN(8) == 0:
					list[n-1].SetOwner(f.Lines[f.Rand.IntN(2)].Peer)
				case f.Rand.IntN(8) == 0:
					list[n-1].SetOnlyOwner(f.Rand.IntN(2) == 0)
				default:
					a := list[f.Rand.IntN(n)]
					a.paint(f.Rand, f.Rand.IntN(len(a.Decks)))
					_, _ = a.Cargo.Add(uint64(f.Rand.IntN(100)))
				}
				f.Step()
				f.half()
			}
			for _, a := range list {
				a.SetOnlyOwner(false)
			}
			f.Until(f.same)
			f.half()
		})
	}
}

// TestLargeUpdate: changes larger than a bunch arrive, as does the call behind them, and those that wake an actor.
func TestLargeUpdate(t *testing.T) {
	f := newFleet(t, 3, netsim.Settings{Loss: 20}, actorrep.Config{})
	l := f.join()
	a := newLiner(f.Rand)
	require.NoError(t, f.Server.Spawn(a))
	f.Until(f.same)
	for i := range a.Decks {
		a.paint(f.Rand, i)
	}
	f.Step()
	f.Until(f.same)
	for i := range a.Decks {
		a.paint(f.Rand, i)
	}
	require.NoError(t, f.call(a, "behind"))
	f.Until(f.same)
	require.Equal(t, []string{"behind"}, l.World.Find(a.GUID()).(*liner).ran)
	require.NoError(t, a.SetDormant(true))
	for range 90 {
		f.Step()
	}
	for i := range a.Decks {
		a.paint(f.Rand, i)
	}
	require.NoError(t, a.SetDormant(false))
	f.Step()
	f.Until(f.same)
}

// TestLargeActorsRecorded: a recording has large actors whole, from the beginning and after seeks.
func TestLargeActorsRecorded(t *testing.T) {
	f := newFleet(t, 4, netsim.Settings{}, actorrep.Config{})
	var file bytes.Buffer
	rec, err := replay.Record(f.Server, &file, replay.Config{Checkpoints: time.Second, ActorsPerFrame: 4})
	require.NoError(t, err)
	var list []*liner
	for i := range 120 {
		if i%4 == 0 && i < 100 {
			for range 2 {
				a := newLiner(f.Rand)
				require.NoError(t, f.Server.Spawn(a))
				list = append(list, a)
			}
		}
		list[f.Rand.IntN(len(list))].paint(f.Rand, f.Rand.IntN(54))
		f.Step()
	}
	require.NoError(t, rec.Close())
	want := map[string]bool{}
	for _, a := range list {
		want[linerText(a, false)] = true
	}
	r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	w := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	require.NoError(t, f.register(w))
	require.NoError(t, r.Play(w))
	at := []time.Duration{0, r.Duration(), r.Duration() / 2, r.Duration() * 3 / 4, r.Duration() / 4, r.Duration()}
	for _, at := range at {
		require.NoError(t, r.Seek(at))
		for a := range w.All {
			require.Empty(t, a.(*liner).whole())
		}
		if at == r.Duration() {
			require.Equal(t, len(list), w.Len())
			for a := range w.All {
				require.True(t, want[linerText(a.(*liner), false)])
			}
		}
	}
}

type wordy[T any] struct {
	actorrep.Base
	N uint8 `net:""`
}

func registerWordy[T any](t testing.TB, w *actorrep.World) {
	names := actorrep.RPCs{}
	for i := range 60 {
		names[strings.Repeat("x", 200)+fmt.Sprint(i)] = actorrep.MulticastRPC(func(actorrep.Call, *wordy[T], uint8) error { return nil })
	}
	require.NoError(t, w.Register(fmt.Sprintf("%T", *new(T)), (*wordy[T])(nil), names))
}

// TestManyNamesUnderLoss: classes with 100 KiB of names reach clients, whatever is lost.
func TestManyNamesUnderLoss(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Loss: 20}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		for _, register := range []func(testing.TB, *actorrep.World){registerWordy[[0]int], registerWordy[[1]int], registerWordy[[2]int], registerWordy[[3]int],
			registerWordy[[4]int], registerWordy[[5]int], registerWordy[[6]int], registerWordy[[7]int]} {
			register(t, w)
		}
	})
	l := w.join()
	a := &wordy[[7]int]{N: 5}
	require.NoError(t, w.Server.Spawn(a))
	w.Until(func(*rig.Line) string {
		if m, ok := l.World.Find(a.GUID()).(*wordy[[7]int]); !ok || m.N != 5 {
			return "it isn't there: " + w.Server.Explain(l.Peer, a).Text
		}
		return ""
	})
	require.True(t, l.Peer.Ready())
	for range 30 {
		w.Step()
	}
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, a).Reason)
}

// chest is an actor whose opening takes several packets, and whose changes few bits.
type chest struct {
	actorrep.Base
	X    int32  `net:""`
	Load []byte `net:"cap=6000"`
}

// TestOpeningsOfSeveralPackets: an opening in one bunch that takes several packets is there once the last of them is. Records that come before
// would cost the client all behind them in their packet.
func TestOpeningsOfSeveralPackets(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, netsim.Settings{Loss: 15, LagMin: 10 * time.Millisecond, LagMax: 90 * time.Millisecond}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("chest", (*chest)(nil)))
		})
		w.join() // whose trouble fails the test
		var chests []*chest
		for step := range int32(120) {
			if step%10 == 0 {
				c := &chest{Load: make([]byte, 1000+w.Rand.IntN(5000))}
				require.NoError(t, w.Server.Spawn(c))
				chests = append(chests, c)
			}
			for _, c := range chests {
				c.X = step
			}
			w.Step()
		}
		w.Until(func(l *rig.Line) string {
			for _, c := range chests {
				if m, _ := l.World.Find(c.GUID()).(*chest); m == nil || m.X != c.X || !bytes.Equal(m.Load, c.Load) {
					return fmt.Sprintf("%v: %s", c.GUID(), w.Server.Explain(l.Peer, c).Text)
				}
			}
			return ""
		})
	}
}

// TestManyLargeActors: of many large actors that appear at once all arrive at a client with the least MaxMemory that its doc names, and nobody's connection ends.
func TestManyLargeActors(t *testing.T) {
	for _, lag := range []time.Duration{5 * time.Millisecond, 60 * time.Millisecond} {
		for seed := range uint64(3) {
			f := newFleet(t, seed, netsim.Settings{Loss: 10, LagMin: lag, LagMax: 2 * lag}, actorrep.Config{})
			f.Memory, f.Speed = 12*(80<<10+256<<10), 16<<20
			l := f.join()
			largest := 0
			for range 100 {
				a := newLiner(f.Rand)
				for i := range a.Decks {
					if a.Decks[i] = ""; i < 20 {
						a.Decks[i] = strings.Repeat("d", 500+f.Rand.IntN(1900))
					}
				}
				largest = max(largest, 4000+len(linerText(a, true)))
				require.NoError(t, f.Server.Spawn(a))
				require.NoError(t, f.Server.Spawn(&rock{Size: 5}))
			}
			require.Less(t, largest, 80<<10)
			f.Until(func(l *rig.Line) string {
				require.False(t, l.C.Closed(), "seed %d, lag %v", seed, lag)
				return f.same(l)
			})
			require.Less(t, l.C.Table().Held(), 300<<10, "seed %d", seed)
		}
	}
}

// TestTooLargeActor: a client without memory for an opening says which actor it was of, how much of it came, and which setting to raise.
func TestTooLargeActor(t *testing.T) {
	f := newFleet(t, 1, netsim.Settings{}, actorrep.Config{})
	f.Memory = 256 << 10
	l := f.JoinOther(f.register)
	a := newLiner(f.Rand)
	require.NoError(t, f.Server.Spawn(a))
	for now := f.Now; !l.C.Closed() && now < time.Minute; now += rig.Tick { // a connection's end fails a Step
		for p, ok := l.Up.Pop(now); ok; p, ok = l.Up.Pop(now) {
			_ = l.S.ReceivedPacket(now, p)
		}
		for p, ok := l.Down.Pop(now); ok; p, ok = l.Down.Pop(now) {
			_ = l.C.ReceivedPacket(now, p)
		}
		l.World.Step(now)
		f.Now = now
		f.Server.Step(now)
		l.S.Tick(now)
		l.C.Tick(now)
	}
	for _, err := range []error{l.C.Result().Err, l.Failed[0]} {
		require.ErrorIs(t, err, actorrep.ErrOpening)
		for _, said := range []string{"liner " + a.GUID().String(), "bytes", "MaxMemory", "raise"} {
			require.ErrorContains(t, err, said)
		}
	}
}

// TestListOfALargeActor: when an actor that opened in several bunches changes an element of a list, the others aren't sent again.
func TestListOfALargeActor(t *testing.T) {
	f := newFleet(t, 1, netsim.Settings{}, actorrep.Config{})
	l := f.join()
	a := newLiner(f.Rand)
	require.NoError(t, f.Server.Spawn(a))
	f.Until(f.same)
	for n := range 3 {
		before := l.S.Stats().Packets.BytesSent
		for id := range a.Cargo.All {
			require.NoError(t, a.Cargo.Set(id, uint64(1e6+n)))
			for range 10 {
				f.Step()
			}
			now, _ := l.World.Find(a.GUID()).(*liner).Cargo.Find(id)
			require.EqualValues(t, 1e6+n, now)
			break
		}
		require.Less(t, l.S.Stats().Packets.BytesSent-before, uint64(1500))
	}
	require.Equal(t, 1000, l.World.Find(a.GUID()).(*liner).Cargo.Len())
}

// TestLargeActorsNewOwner: who becomes the owner of an actor amid its opening in several bunches has what only the owner gets from the first moment.
func TestLargeActorsNewOwner(t *testing.T) {
	f := newFleet(t, 1, netsim.Settings{}, actorrep.Config{})
	f.Speed = 100_000
	l := f.join()
	for range 10 {
		f.Step()
	}
	a := newLiner(f.Rand)
	require.NoError(t, f.Server.Spawn(a))
	for range 10 {
		f.Step()
	}
	require.Equal(t, actorrep.ReasonOpening, f.Server.Explain(l.Peer, a).Reason)
	a.SetOwner(l.Peer)
	for l.World.Find(a.GUID()) == nil {
		f.Step()
	}
	mine := l.World.Find(a.GUID()).(*liner)
	require.True(t, mine.IsOwned())
	require.Equal(t, a.Safe, mine.Safe)
}
