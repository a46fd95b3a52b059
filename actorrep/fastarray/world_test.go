package fastarray_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type slot struct {
	Name  string
	Count uint16                 `net:"max=999"`
	Seen  struct{ X, Y float64 } `net:"q=0.5"`
}

type hero struct {
	actorrep.Base
	Level  actorrep.Var[uint8]    `net:""`
	Bag    fastarray.List[slot]   `net:"notify=OnBag"`
	Secret fastarray.List[uint32] `net:"owner"`

	told   map[fastarray.ID]slot
	errors []string
	bags   int
}

func (h *hero) OnBag() { h.bags++ }

func (h *hero) fail(format string, args ...any) {
	h.errors = append(h.errors, fmt.Sprintf(format, args...))
}

// Spawned takes what is there and listens to what comes.
func (h *hero) Spawned() {
	h.told = map[fastarray.ID]slot{}
	for id, v := range h.Bag.All {
		h.told[id] = v
	}
	h.Bag.OnAdd = func(id fastarray.ID, v slot) {
		if _, ok := h.told[id]; ok {
			h.fail("%d came twice", id)
		}
		h.told[id] = v
	}
	h.Bag.OnChange = func(id fastarray.ID, old, now slot) {
		if h.told[id] != old {
			h.fail("%d was %v, not %v", id, h.told[id], old)
		}
		h.told[id] = now
	}
	h.Bag.OnRemove = func(id fastarray.ID, old slot) {
		if v, ok := h.told[id]; !ok || v != old {
			h.fail("%d went as %v, was %v", id, old, v)
		}
		delete(h.told, id)
	}
}

func (h *hero) Destroyed() {}

func register(w *actorrep.World) error { return w.Register("hero", (*hero)(nil)) }

func contents[T any](l *fastarray.List[T]) (text string) {
	for id, v := range l.All {
		text += fmt.Sprintf("%d: %v\n", id, v)
	}
	return text
}

// same compares a client's lists with the server's.
func same(r *rig.Rig) func(l *rig.Line) string {
	return func(l *rig.Line) string {
		for a := range r.Server.All {
			s := a.(*hero)
			c, ok := l.World.Find(s.GUID()).(*hero)
			if !ok {
				return "an actor is missing"
			}
			secret := ""
			if s.Owner() == l.Peer {
				secret = contents(&s.Secret)
			}
			if contents(&c.Bag) != contents(&s.Bag) || s.Owner() != nil && contents(&c.Secret) != secret {
				return fmt.Sprintf("\n got %s %s\nwant %s %s", contents(&c.Bag), contents(&c.Secret), contents(&s.Bag), secret)
			}
		}
		return ""
	}
}

func mutate(r *rig.Rig, h *hero) {
	var ids []fastarray.ID
	for id := range h.Bag.All {
		ids = append(ids, id)
	}
	pick := func() fastarray.ID { return ids[r.Rand.IntN(len(ids))] }
	switch n := r.Rand.IntN(100); {
	case n < 30 || len(ids) == 0:
		_, err := h.Bag.Add(slot{Name: fmt.Sprint("thing ", r.Rand.IntN(100)), Count: 1})
		require.NoError(r.T, err)
	case n < 45:
		require.NoError(r.T, h.Bag.Remove(pick()))
	case n < 46:
		require.NoError(r.T, h.Bag.Clear())
	case n < 60:
		_, err := h.Secret.Add(r.Rand.Uint32())
		require.NoError(r.T, err)
	default:
		id := pick()
		v, _ := h.Bag.Find(id)
		v.Count = uint16(r.Rand.IntN(1000))
		v.Seen.X += 0.5
		require.NoError(r.T, h.Bag.Set(id, v))
	}
}

// TestWorlds keeps lists of actors alike over bad networks, with late joiners, and actors that sleep; the callbacks
// alone tell the same story.
func TestWorlds(t *testing.T) {
	for name, set := range map[string]netsim.Settings{
		"clean": {},
		"bad":   {Loss: 10, Dup: 5, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond},
		"worse": {Loss: 40, Dup: 10, Order: 20, LagMin: 10 * time.Millisecond, LagMax: 120 * time.Millisecond},
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				r := rig.New(t, seed, set, actorrep.Config{}, register)
				first := r.Join(register)
				heroes := []*hero{{}, {}, {}}
				for _, h := range heroes {
					_, err := h.Bag.Add(slot{Name: "from the start"})
					require.NoError(t, err)
					require.NoError(t, r.Server.Spawn(h))
				}
				heroes[0].SetOwner(first.Peer)
				for i := range 400 {
					for range r.Rand.IntN(4) {
						mutate(r, heroes[r.Rand.IntN(len(heroes))])
					}
					if i == 150 {
						r.Join(register)
					}
					if i%100 == 50 {
						require.NoError(t, heroes[1].SetDormant(i%200 == 50))
					}
					r.Step()
				}
				require.NoError(t, heroes[1].SetDormant(false))
				r.Until(same(r))
				r.Step()
				for _, l := range r.Lines {
					for a := range l.World.All {
						h := a.(*hero)
						require.Empty(t, h.errors, "seed %d", seed)
						require.Len(t, h.told, h.Bag.Len(), "seed %d", seed)
						for id, v := range h.Bag.All {
							require.Equal(t, v, h.told[id], "seed %d", seed)
						}
						require.Positive(t, h.bags)
					}
				}
			})
		}
	}
}

// TestLarge: a list of many packets' size arrives, and then its changes are small again.
func TestLarge(t *testing.T) {
	r := rig.New(t, 3, netsim.Settings{Loss: 5}, actorrep.Config{}, register)
	r.Join(register)
	h := &hero{}
	require.NoError(t, r.Server.Spawn(h))
	r.Until(same(r))
	for range 600 {
		_, err := h.Bag.Add(slot{Name: "twelve bytes"})
		require.NoError(t, err)
	}
	r.Until(same(r))
	for range 30 {
		r.Step()
	}
	large := r.Server.Counters.Large
	require.Positive(t, large)
	require.NoError(t, h.Bag.Set(300, slot{Name: "twelve bytes", Count: 5}))
	r.Until(same(r))
	require.Equal(t, large, r.Server.Counters.Large, "one element's change fits a packet")
}

// TestAfterOpening: what changes after an actor's first values is sent against them, not as the whole list.
func TestAfterOpening(t *testing.T) {
	r := rig.New(t, 3, netsim.Settings{}, actorrep.Config{}, register)
	r.Join(register)
	h := &hero{}
	for range 20 {
		_, err := h.Bag.Add(slot{Name: "twelve bytes"})
		require.NoError(t, err)
	}
	require.NoError(t, r.Server.Spawn(h))
	r.Until(same(r))
	for range 30 {
		r.Step()
	}
	bits := r.Server.Counters.UpdateBits
	require.NoError(t, h.Bag.Set(3, slot{Name: "twelve bytes", Count: 5}))
	r.Until(same(r))
	require.Less(t, r.Server.Counters.UpdateBits-bits, uint64(170)) // of which 20 are the time
}

// TestPush: an actor whose fields all mark themselves isn't compared while nothing is set, and a list that changes is
// sent.
func TestPush(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register)
	r.Join(register)
	h := &hero{}
	require.NoError(t, r.Server.Spawn(h))
	_, err := h.Bag.Add(slot{})
	require.NoError(t, err)
	r.Until(same(r))
	compared := r.Server.Counters.Compared
	for range 20 {
		r.Step()
	}
	require.Equal(t, compared, r.Server.Counters.Compared)
	require.NoError(t, r.Server.Destroy(h))
	_, err = h.Bag.Add(slot{}) // of no world any more
	require.NoError(t, err)
}

// TestAllocsWorld: a Step with lists that don't change allocates nothing; nor do changes, on the server.
func TestAllocsWorld(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register)
	r.Join(register)
	h := &hero{}
	for range 10 {
		_, err := h.Bag.Add(slot{Name: "thing"})
		require.NoError(t, err)
	}
	require.NoError(t, r.Server.Spawn(h))
	n := uint16(0)
	change := func() {
		n++
		if err := h.Bag.Set(5, slot{Name: "thing", Count: n % 1000}); err != nil {
			t.Error(err)
		}
	}
	for range 600 {
		change()
		r.Step()
	}
	for name, f := range map[string]func(){"unchanged": func() {}, "changed": change} {
		require.Zero(t, testing.AllocsPerRun(50, func() {
			f()
			r.Server.Step(r.Now)
			r.Lose()
		}), name)
	}
}

// TestReplay records lists, and shows them at any time of the recording as they were then.
func TestReplay(t *testing.T) {
	const seed = 5
	r := rig.New(t, seed, netsim.Settings{}, actorrep.Config{}, register)
	var file bytes.Buffer
	rec, err := replay.Record(r.Server, &file, replay.Config{Rate: -1, Checkpoints: time.Second})
	require.NoError(t, err)
	h := &hero{}
	require.NoError(t, r.Server.Spawn(h))
	for range 50 {
		_, err := h.Bag.Add(slot{Name: "a thing with a long name"})
		require.NoError(t, err)
	}
	var was []string
	for range 150 {
		mutate(r, h)
		r.Step()
		was = append(was, contents(&h.Bag))
	}
	require.NoError(t, rec.Close())
	require.Less(t, file.Len(), 10_800, "changes, not whole lists")

	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	viewer := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	require.NoError(t, register(viewer))
	require.NoError(t, replay.Play(viewer))
	for range 200 {
		at := r.Rand.IntN(len(was))
		require.NoError(t, replay.Seek(time.Duration(at)*rig.Tick))
		require.Equal(t, was[at], contents(&viewer.Find(h.GUID()).(*hero).Bag), "seed %d, frame %d", seed, at)
	}
}

type otherSlot struct{ Name string }

type otherHero struct {
	actorrep.Base
	Bag fastarray.List[otherSlot] `net:""`
}

type badHero struct {
	actorrep.Base
	Bag fastarray.List[slot] `net:"notify=OnBag"`
}

func (*badHero) OnBag(fastarray.List[slot]) {}

type mapHero struct {
	actorrep.Base
	Bag fastarray.List[map[int]int] `net:""`
}

// TestRegister refuses what can't work when it is registered, and other elements at the other end by name.
func TestRegister(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.ErrorIs(t, w.Register("bad", (*badHero)(nil)), actorrep.ErrNotify)
	require.ErrorContains(t, w.Register("map", (*mapHero)(nil)), "Bag")

	refused := ""
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{SchemaRefused: func(_ *actorrep.Peer, why string) { refused = why }}, register)
	l := r.JoinOther(func(w *actorrep.World) error { return w.Register("hero", (*otherHero)(nil)) })
	for range 10 {
		r.Step()
	}
	require.Len(t, l.Failed, 1)
	require.ErrorIs(t, l.Failed[0], actorrep.ErrSchema)
	require.ErrorContains(t, l.Failed[0], "Bag")
	require.Contains(t, refused, "Bag")
}
