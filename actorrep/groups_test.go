package actorrep_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// skills is more values than a mask has bits.
type skills struct {
	S00, S01, S02, S03, S04, S05, S06, S07, S08, S09 int32
	S10, S11, S12, S13, S14, S15, S16, S17, S18, S19 int32
	S20, S21, S22, S23, S24, S25, S26, S27, S28, S29 int32
	S30, S31, S32, S33, S34, S35, S36, S37, S38, S39 int32
	S40, S41, S42, S43, S44, S45, S46, S47, S48, S49 int32
	S50, S51, S52, S53, S54, S55, S56, S57, S58, S59 int32
	S60, S61, S62, S63, S64, S65, S66, S67, S68, S69 int32
}

type bagSlot struct {
	Kind  uint16
	Count uint8 `net:"max=99"`
	Bound bool
}

// peasant is an actor of more than 64 units.
type peasant struct {
	actorrep.Base
	Pos     vec                    `net:"q=0.01"`
	ID      [16]byte               `net:"initial"`
	Skills  skills                 `net:""`
	Bag     [100]bagSlot           `net:"notify=OnBag"`
	Keys    [200]uint32            `net:"owner,notify=OnKeys"`
	Hidden  [10]int16              `net:"skipowner"`
	Mood    [6]int8                `net:"custom"`
	Title   string                 `net:""`
	Gold    actorrep.Var[[8]int64] `net:""`
	Name    string                 `net:""`
	bags    int
	oldKeys [][200]uint32
}

func (h *peasant) OnBag() { h.bags++ }

func (h *peasant) OnKeys(old [200]uint32) { h.oldKeys = append(h.oldKeys, old) }

// villager is what another build has of a peasant: some of the values, elsewhere, and in no group.
type villager struct {
	actorrep.Base
	Title  string                   `net:""`
	Hidden [3]int16                 `net:"skipowner"`
	Skills struct{ S69, S05 int32 } `net:""`
	Bag    [2]bagSlot               `net:"notify=OnBag"`
	bags   int
}

func (v *villager) OnBag() { v.bags++ }

func registerPeasant(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("peasant", (*peasant)(nil)))
}

func (h *peasant) mutate(rng *rand.Rand) {
	switch rng.IntN(9) {
	case 0:
		h.Pos.X += rng.Float64()
	case 1:
		s := reflect.ValueOf(&h.Skills).Elem()
		s.Field(rng.IntN(s.NumField())).SetInt(int64(rng.IntN(5)))
	case 2:
		h.Bag[rng.IntN(len(h.Bag))] = bagSlot{uint16(rng.IntN(4)), uint8(rng.IntN(100)), rng.IntN(2) == 0}
	case 3:
		h.Keys[rng.IntN(len(h.Keys))] = rng.Uint32N(3)
	case 4:
		h.Hidden[rng.IntN(len(h.Hidden))] = int16(rng.IntN(1000) - 500)
	case 5:
		h.Mood[rng.IntN(len(h.Mood))] = int8(rng.IntN(3))
	case 6:
		gold := h.Gold.Get()
		gold[rng.IntN(len(gold))] -= rng.Int64N(1 << 40)
		h.Gold.Set(gold)
	case 7:
		h.Title = fmt.Sprint(rng.IntN(10))
	case 8:
		for i := range h.Bag { // all at once
			h.Bag[i].Count = uint8(rng.IntN(100))
		}
	}
}

// peasantText is what somebody is to see of a peasant.
func peasantText(h *peasant, owner, mood bool) string {
	s := fmt.Sprintf("%.2f %.2f %v %v %v %v %v", h.Pos.X, h.Pos.Y, h.ID, h.Skills, h.Bag, h.Title, h.Gold.Get())
	if owner {
		s += fmt.Sprint(h.Keys)
	} else {
		s += fmt.Sprint(h.Hidden)
	}
	if mood {
		s += fmt.Sprint(h.Mood)
	}
	return s
}

// TestManyUnits: values beyond 64 units arrive as others do: under loss, at late joiners, by their conditions, after sleep and changes
// of owner, with notifies, at another build and in recordings.
func TestManyUnits(t *testing.T) {
	for _, loss := range []float64{0, 20} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			w := newWorld(t, uint64(7+loss), netsim.Settings{Loss: loss, Lag: 40 * time.Millisecond, LagVariance: 30 * time.Millisecond}, actorrep.Config{}, registerPeasant)
			first := w.join()
			h := &peasant{ID: [16]byte{1, 200, 3, 15: 255}}
			h.SetOwner(first.Peer)
			h.Skills.S42 = -7
			require.NoError(t, w.Server.Spawn(h))
			other := &world{Rig: w.Rig, register: func(w *actorrep.World) error { return w.Register("peasant", (*villager)(nil)) }}
			w.join()
			build := other.join()
			file := &bytes.Buffer{}
			rec, err := replay.Record(w.Server, file, replay.Config{Checkpoints: 3 * time.Second})
			require.NoError(t, err)
			mood := true
			agree := func() {
				t.Helper()
				w.Until(func(l *rig.Line) string {
					a := l.World.Find(h.GUID())
					if a == nil {
						return "not there"
					}
					if v, ok := a.(*villager); ok {
						if got, want := fmt.Sprint(v.Title, v.Hidden, v.Skills, v.Bag), fmt.Sprint(h.Title, [3]int16(h.Hidden[:]), struct{ S69, S05 int32 }{h.Skills.S69, h.Skills.S05}, [2]bagSlot(h.Bag[:])); got != want {
							return got + " instead of " + want
						}
						return ""
					}
					owner := h.Owner() == l.Peer
					if got, want := peasantText(a.(*peasant), owner, mood), peasantText(h, owner, mood); got != want {
						return fmt.Sprintf("\n got %s\nwant %s", got, want)
					}
					return ""
				})
			}
			for round := range 40 {
				for range 20 {
					for range w.Rand.IntN(4) {
						h.mutate(w.Rand)
					}
					w.Step()
				}
				switch round % 8 {
				case 1:
					h.SetOwner(w.Lines[w.Rand.IntN(2)].Peer)
				case 2:
					mood = !mood
					require.NoError(t, h.SetCondition("Mood", mood))
				case 3:
					require.NoError(t, h.SetDormant(true))
				case 4:
					h.FlushDormancy()
				case 5:
					require.NoError(t, h.SetDormant(false))
				case 6:
					if len(w.Lines) < 5 {
						w.join()
					}
				}
				if h.Dormant() {
					h.FlushDormancy()
				}
				agree()
			}
			mirror := first.World.Find(h.GUID()).(*peasant)
			require.Positive(t, mirror.bags)
			require.Positive(t, build.World.Find(h.GUID()).(*villager).bags)
			if !mood {
				require.NoError(t, h.SetCondition("Mood", true))
				mood = true
				agree()
			}
			require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(first.Peer, h, "Bag").Reason)
			require.Contains(t, fmt.Sprint(first.Peer.Attribution(0)), "Bag[0].Kind and 299 more")

			require.NoError(t, rec.Close())
			require.Equal(t, peasantText(h, false, true), peasantText(replayed(t, file, registerPeasant).Find(h.GUID()).(*peasant), false, true))
		})
	}
}

// replayed is the end of a recording, by way of its last checkpoint.
func replayed(t *testing.T, file *bytes.Buffer, register func(testing.TB, *actorrep.World)) *actorrep.World {
	r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	c := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	register(t, c)
	require.NoError(t, r.Play(c))
	require.NoError(t, r.Seek(r.Duration()))
	return c
}

// TestGroupNotifies: a notify of an array hears of its changes only, once a Step, with the values of the last one.
func TestGroupNotifies(t *testing.T) {
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, registerPeasant)
	l := w.join()
	h := &peasant{}
	h.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(h))
	for range 20 {
		w.Step()
	}
	m := l.World.Find(h.GUID()).(*peasant)
	h.Keys[3], h.Keys[150] = 7, 8
	h.Skills.S00 = 1
	for range 5 {
		w.Step()
	}
	h.Keys[150] = 9
	h.Skills.S69 = 2
	for range 5 {
		w.Step()
	}
	require.Equal(t, [][200]uint32{{}, {3: 7, 150: 8}}, m.oldKeys)
	require.Zero(t, m.bags)
	require.EqualValues(t, 2, m.Skills.S69)
}

// TestArraysAreOneUnit: an array changes the mask by a bit, and sends the elements that changed.
func TestArraysAreOneUnit(t *testing.T) {
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, registerPeasant)
	l := w.join()
	h := &peasant{}
	require.NoError(t, w.Server.Spawn(h))
	for i := range h.Bag {
		h.Bag[i] = bagSlot{60000, 9, true}
	}
	for range 20 {
		w.Step()
	}
	sum := func() (n uint64) {
		for _, c := range l.Peer.Attribution(0) {
			if c.Class == "peasant" {
				n += c.Bits
			}
		}
		return n
	}
	before := sum()
	h.Bag[77].Count = 10
	for range 20 {
		w.Step()
	}
	require.Equal(t, h.Bag, l.World.Find(h.GUID()).(*peasant).Bag)
	require.LessOrEqual(t, sum()-before, uint64(40), "one of 300 numbers has changed")
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for range 10 {
			h.Bag[5].Kind++
			w.Rig.Step()
		}
	}))
}

// TestLargestClass: 1,024 numbers are a class, and one more is an error.
func TestLargestClass(t *testing.T) {
	type most struct {
		actorrep.Base
		A [1000]int32 `net:""`
		B [24]float64 `net:""`
	}
	type more struct {
		actorrep.Base
		A [1000]int32 `net:""`
		B [25]float64 `net:""`
	}
	reg := func(t testing.TB, w *actorrep.World) { require.NoError(t, w.Register("most", (*most)(nil))) }
	w := newWorld(t, 3, netsim.Settings{Loss: 10}, actorrep.Config{}, reg)
	require.Error(t, w.Server.Register("more", (*more)(nil)))
	w.join()
	a := &most{}
	require.NoError(t, w.Server.Spawn(a))
	for round := range 5 {
		for i := range a.A {
			a.A[i] = int32(i*round*7919) - 1000
		}
		a.B[23] = float64(round)
		w.Until(func(l *rig.Line) string {
			m, _ := l.World.Find(a.GUID()).(*most)
			if m == nil || m.A != a.A || m.B != a.B {
				return "not the same"
			}
			return ""
		})
	}
}
