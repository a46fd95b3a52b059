package actorrep_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type beacon struct {
	actorrep.Base
	N uint8 `net:""`
}

type sighting struct {
	Who  actorrep.Ref[*beacon]
	N    uint8
	Also []actorrep.Ref[*watcher]
}

// watcher has references of each kind.
type watcher struct {
	actorrep.Base
	One   actorrep.Ref[*beacon]               `net:"notify=OnOne"`
	Bare  netguid.GUID                        `net:"notify=OnBare"`
	Many  []actorrep.Ref[*beacon]             `net:"notify=OnMany"`
	Deep  []sighting                          `net:"notify=OnDeep"`
	Fixed [3]actorrep.Ref[*beacon]            `net:"notify=OnFixed"`
	Far   *sighting                           `net:"notify=OnFar"`
	Set   actorrep.Var[actorrep.Ref[*beacon]] `net:"notify=OnSet"`
	Own   actorrep.Ref[*watcher]              `net:"owner,notify=OnOwn"`
	In    struct {
		N   uint8
		Who [2]actorrep.Ref[*watcher]
	} `net:"notify=OnIn"`
	Bag   fastarray.List[sighting]                     `net:"notify=OnBag"`
	Table fastarray.Map[uint8, actorrep.Ref[*watcher]] `net:""`

	elements map[string][]sight // of Bag and Table, by element, as it was when the game was told last

	knows  map[string][]sight // by field, as it was when the game was told last
	times  map[string]int     // notifies of this Step
	empty  int                // notifies that said nothing new
	notify int
}

// sight is a reference and the actor that it led to.
type sight struct {
	id netguid.GUID
	a  actorrep.Actor
}

func (w *watcher) at(ids ...netguid.GUID) (list []sight) {
	for _, id := range ids {
		list = append(list, sight{id, w.World().Find(id)})
	}
	return list
}

func (w *watcher) of(s sighting) []sight {
	list := w.at(s.Who.GUID())
	for _, r := range s.Also {
		list = append(list, w.at(r.GUID())...)
	}
	return list
}

// inLists is the references in the elements of Bag and Table.
func (w *watcher) inLists() map[string][]sight {
	m := map[string][]sight{}
	for id, s := range w.Bag.All {
		m[fmt.Sprint("Bag ", id)] = w.of(s)
	}
	for k, r := range w.Table.All {
		m[fmt.Sprint("Table ", k)] = w.at(r.GUID())
	}
	return m
}

func (w *watcher) sights() map[string][]sight {
	at := w.at
	m := map[string][]sight{"One": at(w.One.GUID()), "Bare": at(w.Bare), "Fixed": at(w.Fixed[0].GUID(), w.Fixed[1].GUID(), w.Fixed[2].GUID()), "Set": at(w.Set.Get().GUID()),
		"Own": at(w.Own.GUID()), "In": at(w.In.Who[0].GUID(), w.In.Who[1].GUID()), "Many": nil, "Deep": nil, "Far": nil, "Bag": nil}
	for _, s := range w.Bag.All {
		m["Bag"] = append(m["Bag"], w.of(s)...)
	}
	for _, r := range w.Many {
		m["Many"] = append(m["Many"], at(r.GUID())...)
	}
	list := w.Deep
	for i := range list {
		m["Deep"] = append(m["Deep"], at(list[i].Who.GUID())...)
		for _, r := range list[i].Also {
			m["Deep"] = append(m["Deep"], at(r.GUID())...)
		}
	}
	if w.Far != nil {
		m["Far"] = at(w.Far.Who.GUID())
		for _, r := range w.Far.Also {
			m["Far"] = append(m["Far"], at(r.GUID())...)
		}
	}
	return m
}

func (w *watcher) Spawned() {
	w.knows, w.times, w.elements = w.sights(), map[string]int{}, w.inLists()
	tell := func(name string, was, now []sight) {
		if known := w.elements[name]; len(was) > 0 && !slices.EqualFunc(known, was, func(a, b sight) bool { return a.id == b.id }) {
			w.times[name] = 100 // what is told as the old value isn't what was told last
		}
		w.times[name]++
		if w.elements[name] = now; now == nil {
			delete(w.elements, name)
		}
	}
	w.Bag.OnAdd = func(id fastarray.ID, v sighting) { tell(fmt.Sprint("Bag ", id), nil, w.of(v)) }
	w.Bag.OnChange = func(id fastarray.ID, old, v sighting) { tell(fmt.Sprint("Bag ", id), w.of(old), w.of(v)) }
	w.Bag.OnRemove = func(id fastarray.ID, old sighting) { tell(fmt.Sprint("Bag ", id), w.of(old), nil) }
	w.Table.OnAdd = func(k uint8, v actorrep.Ref[*watcher]) { w.elements[fmt.Sprint("Table ", k)] = w.at(v.GUID()) } // it may have been removed in the same Step
	w.Table.OnChange = func(k uint8, old, v actorrep.Ref[*watcher]) {
		tell(fmt.Sprint("Table ", k), w.at(old.GUID()), w.at(v.GUID()))
	}
	w.Table.OnRemove = func(k uint8, old actorrep.Ref[*watcher]) { tell(fmt.Sprint("Table ", k), w.at(old.GUID()), nil) }
}

func (w *watcher) Destroyed() {}

func (w *watcher) told(field string) {
	now := w.sights()[field]
	if slices.Equal(now, w.knows[field]) {
		w.empty++
	}
	w.notify++
	w.knows[field] = now
	w.times[field]++
}

func (w *watcher) OnOne()   { w.told("One") }
func (w *watcher) OnBare()  { w.told("Bare") }
func (w *watcher) OnMany()  { w.told("Many") }
func (w *watcher) OnDeep()  { w.told("Deep") }
func (w *watcher) OnFixed() { w.told("Fixed") }
func (w *watcher) OnFar()   { w.told("Far") }
func (w *watcher) OnSet()   { w.told("Set") }
func (w *watcher) OnOwn()   { w.told("Own") }
func (w *watcher) OnIn()    { w.told("In") }
func (w *watcher) OnBag()   { w.told("Bag") }

// untold says of which reference the game wasn't told: it refers to another actor than when the game was told last, or its actor has come since.
func (w *watcher) untold() string {
	if w.knows == nil {
		return ""
	}
	all, knows := w.sights(), maps.Clone(w.knows)
	maps.Copy(all, w.inLists())
	maps.Copy(knows, w.elements)
	if len(all) != len(knows) {
		return fmt.Sprintf("%d fields and elements, told %d", len(all), len(knows))
	}
	for field, now := range all {
		if w.times[field] > 1 {
			return fmt.Sprint(field, " told ", w.times[field], " times in a Step")
		}
		was, known := knows[field]
		if len(now) != len(was) || !known {
			return fmt.Sprintf("%s has %d references, told %d", field, len(now), len(was))
		}
		for i, s := range now {
			if s.id != was[i].id || s.a != nil && s.a != was[i].a {
				return fmt.Sprintf("%s[%d] is %v, there %v; told %v, there %v, the same actor %v", field, i, s.id, s.a != nil, was[i].id, was[i].a != nil, s.a == was[i].a)
			}
		}
	}
	clear(w.times)
	return ""
}

// TestReferencesAreTold: whatever comes, goes, returns, sleeps, changes hands and is made anew, at 20 % loss, a client's game is told of each reference that has
// another actor, and each time its actor comes, once a Step; and in the end all references lead where the server's do.
func TestReferencesAreTold(t *testing.T) {
	seeds, steps := 4, 600
	if os.Getenv("CI") != "" {
		seeds, steps = 20, 2000
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { referencesAreTold(t, uint64(seed), steps) })
	}
}

func referencesAreTold(t *testing.T, seed uint64, steps int) {
	type key struct {
		p *actorrep.Peer
		a actorrep.Actor
	}
	hidden := map[key]bool{}
	w := newWorld(t, seed, netsim.Settings{Loss: 20, Dup: 5, LagMin: 10 * time.Millisecond, LagMax: 90 * time.Millisecond}, actorrep.Config{RelevantTimeout: -1,
		Relevant: func(p *actorrep.Peer, a actorrep.Actor) bool { return !hidden[key{p, a}] }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("beacon", (*beacon)(nil)))
		require.NoError(t, w.Register("watcher", (*watcher)(nil)))
	})
	for range 2 {
		w.join()
	}
	var beacons []*beacon
	var watchers []*watcher
	spawnBeacon := func() {
		b := &beacon{}
		require.NoError(t, w.Server.Spawn(b))
		beacons = append(beacons, b)
	}
	spawnWatcher := func() {
		a := &watcher{}
		a.SetOwner(w.Lines[w.Rand.IntN(len(w.Lines))].Peer)
		require.NoError(t, w.Server.Spawn(a))
		watchers = append(watchers, a)
	}
	for range 5 {
		spawnBeacon()
		spawnWatcher()
	}
	toB := func() actorrep.Ref[*beacon] {
		if w.Rand.IntN(5) == 0 {
			return actorrep.Ref[*beacon]{}
		}
		return actorrep.RefTo(beacons[w.Rand.IntN(len(beacons))])
	}
	toW := func() actorrep.Ref[*watcher] { return actorrep.RefTo(watchers[w.Rand.IntN(len(watchers))]) }
	sightingOf := func() (s sighting) {
		s.Who, s.N = toB(), uint8(w.Rand.IntN(3))
		for range w.Rand.IntN(3) {
			s.Also = append(s.Also, toW())
		}
		return s
	}
	change := func() {
		i, j := w.Rand.IntN(len(watchers)), w.Rand.IntN(len(beacons))
		a := watchers[i]
		p := w.Lines[w.Rand.IntN(len(w.Lines))].Peer
		switch w.Rand.IntN(26) {
		case 20, 21, 22:
			var ids []fastarray.ID
			for id := range a.Bag.All {
				ids = append(ids, id)
			}
			if len(ids) == 0 || len(ids) < 6 && w.Rand.IntN(3) == 0 {
				_, err := a.Bag.Add(sightingOf())
				require.NoError(t, err)
			} else if id := ids[w.Rand.IntN(len(ids))]; w.Rand.IntN(4) == 0 {
				require.NoError(t, a.Bag.Remove(id))
			} else {
				require.NoError(t, a.Bag.Set(id, sightingOf()))
			}
		case 23, 24:
			require.NoError(t, a.Table.Set(uint8(w.Rand.IntN(5)), toW()))
		case 25:
			require.NoError(t, a.Table.Delete(uint8(w.Rand.IntN(5))))
		case 0:
			a.One = toB()
		case 1:
			a.Bare = toB().GUID()
		case 2:
			a.Many = nil
			for range w.Rand.IntN(4) {
				a.Many = append(a.Many, toB())
			}
		case 3:
			a.Deep = nil
			for range w.Rand.IntN(3) {
				a.Deep = append(a.Deep, sightingOf())
			}
		case 4:
			a.Fixed[w.Rand.IntN(3)] = toB()
		case 5:
			if a.Far = nil; w.Rand.IntN(3) > 0 {
				s := sightingOf()
				a.Far = &s
			}
		case 6:
			a.Set.Set(toB())
		case 7:
			a.Own = toW()
		case 8:
			a.In.Who[w.Rand.IntN(2)] = toW()
		case 9:
			a.SetOwner(p)
		case 10:
			require.NoError(t, a.SetDormant(!a.Dormant()))
		case 11:
			require.NoError(t, beacons[j].SetDormant(!beacons[j].Dormant()))
		case 12:
			require.NoError(t, w.Server.Destroy(beacons[j]))
			beacons = slices.Delete(beacons, j, j+1)
			spawnBeacon()
		case 13:
			if w.Rand.IntN(3) == 0 {
				require.NoError(t, w.Server.Destroy(a))
				watchers = slices.Delete(watchers, i, i+1)
				spawnWatcher()
			}
		case 14, 15:
			hidden[key{p, a}] = !hidden[key{p, a}]
		default:
			hidden[key{p, beacons[j]}] = !hidden[key{p, beacons[j]}]
		}
	}
	empty, notifies := 0, 0
	step := func() {
		w.Step()
		for n, l := range w.Lines {
			for a := range l.World.All {
				if a, ok := a.(*watcher); ok {
					if s := a.untold(); s != "" {
						t.Fatalf("%v: client %d: %v: %s", w.Now, n, a.GUID(), s)
					}
					empty, notifies = empty+a.empty, notifies+a.notify
					a.empty, a.notify = 0, 0
				}
			}
		}
	}
	for range steps {
		for range w.Rand.IntN(4) {
			change()
		}
		step()
	}
	clear(hidden)
	for _, a := range watchers {
		require.NoError(t, a.SetDormant(false))
	}
	for range 200 {
		step()
	}
	for _, l := range w.Lines {
		for _, a := range watchers {
			mine, _ := l.World.Find(a.GUID()).(*watcher)
			require.NotNil(t, mine)
			want := a.sights()
			for field, list := range mine.sights() {
				if field == "Own" && a.Owner() != l.Peer {
					continue
				}
				require.Len(t, list, len(want[field]), field)
				for i := range list {
					require.Equal(t, want[field][i].id, list[i].id, field)
					require.Equal(t, want[field][i].a != nil, list[i].a != nil, field)
				}
			}
		}
	}
	t.Logf("%d notifies, %d of nothing new", notifies, empty)
	require.Greater(t, notifies, steps/2)
	require.Less(t, empty, notifies/20)
}

// crowd has as many references as a client lets wait, of which no notify tells.
type crowd struct {
	actorrep.Base
	All []actorrep.Ref[*beacon] `net:"cap=1024"`
}

// TestUntoldReferencesDontWait: references without a notify take none of the room of those that wait to be told.
func TestUntoldReferencesDontWait(t *testing.T) {
	seen := map[actorrep.Actor]bool{}
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
		_, is := a.(*beacon)
		return !is || seen[a]
	}}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("beacon", (*beacon)(nil)))
		require.NoError(t, w.Register("watcher", (*watcher)(nil)))
		require.NoError(t, w.Register("crowd", (*crowd)(nil)))
	})
	l := w.join()
	var crowds []*crowd
	for range 5 {
		c := &crowd{}
		for range 1000 {
			b := &beacon{}
			require.NoError(t, w.Server.Spawn(b))
			c.All = append(c.All, actorrep.RefTo(b))
		}
		require.NoError(t, w.Server.Spawn(c))
		crowds = append(crowds, c)
	}
	for range 40 {
		w.Step()
	}
	a, b := &watcher{}, &beacon{}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, w.Server.Spawn(b))
	a.One = actorrep.RefTo(b)
	for range 20 {
		w.Step()
	}
	mine := l.World.Find(a.GUID()).(*watcher)
	theirs := l.World.Find(crowds[4].GUID()).(*crowd)
	require.Equal(t, 1000, len(theirs.All))
	require.EqualValues(t, 5001, l.World.Counters.Unmapped)
	require.Zero(t, mine.notify)
	seen[b] = true
	for range 20 {
		w.Step()
	}
	require.NotNil(t, mine.One.In(l.World))
	require.Equal(t, 1, mine.notify)
}

// early has its callbacks before its first elements come.
type early struct {
	actorrep.Base
	Bag fastarray.List[actorrep.Ref[*beacon]] `net:""`

	here int
	told []string
}

func (e *early) Init() {
	note := func(what string) func(fastarray.ID, actorrep.Ref[*beacon]) {
		return func(id fastarray.ID, _ actorrep.Ref[*beacon]) { e.told = append(e.told, fmt.Sprint(what, " ", id)) }
	}
	e.Bag.OnAdd, e.Bag.OnRemove = note("came"), note("went")
	e.Bag.OnChange = func(id fastarray.ID, _, _ actorrep.Ref[*beacon]) { note("changed")(id, actorrep.Ref[*beacon]{}) }
}

func (e *early) Spawned()   { e.here = e.Bag.Len() }
func (e *early) Destroyed() {}

// TestFirstElementsAreThere: elements that a list has when its actor appears are there in Spawned and told to nobody, neither then nor with what comes later, also when the
// callbacks are set in Init and though the actor comes to which one refers; what comes or changes later is told once.
func TestFirstElementsAreThere(t *testing.T) {
	b, seen := &beacon{}, false
	w := newWorld(t, 1, netsim.Settings{Loss: 10}, actorrep.Config{RelevantTimeout: -1, Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool { return seen || a != actorrep.Actor(b) }},
		func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("beacon", (*beacon)(nil)))
			require.NoError(t, w.Register("early", (*early)(nil)))
		})
	l := w.join()
	require.NoError(t, w.Server.Spawn(b))
	s := &early{}
	require.NoError(t, w.Server.Spawn(s))
	steps := func() {
		for range 30 {
			w.Step()
		}
	}
	for _, r := range []actorrep.Ref[*beacon]{{}, actorrep.RefTo(b)} {
		_, err := s.Bag.Add(r)
		require.NoError(t, err)
	}
	steps()
	c := l.World.Find(s.GUID()).(*early)
	require.Equal(t, 2, c.here)
	require.Empty(t, c.told)
	_, err := s.Bag.Add(actorrep.Ref[*beacon]{})
	require.NoError(t, err)
	steps()
	require.Equal(t, []string{"came 3"}, c.told)
	seen = true
	steps()
	require.Equal(t, []string{"came 3", "changed 2"}, c.told)
}
