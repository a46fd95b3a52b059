package flight

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// shown is what a client's actors had, as Look saw them: all values before the log's first entry. What changed since is in the log.
type shown struct {
	classes []shownClass
	parts   [][]*shownPart // by class, without values
	index   map[reflect.Type]int
	base    map[netguid.GUID]values

	now     map[netguid.GUID]*values // as of the last Look
	looked  int                      // actors that were compared in turn
	stamp   uint64                   // of the last Look
	scratch []byte
}

// values is the values of an actor's parts.
type values struct {
	class int
	of    [][]byte
	actor actorrep.Actor // that has the id
	stamp uint64         // of the last Look that saw the actor
}

// maxLooks is how many actors Look compares at a time, besides those that the client owns.
const maxLooks = 256

func newShown(w *actorrep.World) *shown {
	s := newScene(w, "")
	out := &shown{classes: s.classes, index: s.index, base: map[netguid.GUID]values{}, now: map[netguid.GUID]*values{}}
	for _, l := range s.layouts {
		out.parts = append(out.parts, partsOf(l))
	}
	return out
}

// Look notes what a client's actors have at now, a time of its driver. Call it in each frame when the game draws: after World.Step, and after
// what predicts and interpolates. It compares the actors that the client owns, and of the others 256 in turn. Register all classes before
// New. On a server it does nothing.
func (r *Recorder) Look(now time.Duration) {
	s := r.shown
	if s == nil || r.ended {
		return
	}
	r.saveDue(now)
	r.checkClock(now)
	r.log.begin(kindLook, now, 0).uint(0)
	s.stamp++
	i, from, until := 0, s.looked, s.looked+maxLooks
	for a := range r.world.All {
		v := reflect.ValueOf(a).Elem()
		class, ok := s.index[v.Type()]
		if !ok {
			continue
		}
		id := guidOf(a)
		known := s.now[id]
		if known != nil && known.actor != a { // the id went to another one since the last Look
			r.gone(id, now)
			known = nil
		}
		if known == nil {
			if len(s.now) == maxActors {
				continue
			}
			known = &values{class: class, of: make([][]byte, len(s.parts[class])), actor: a}
			s.now[id] = known
			r.log.begin(kindAppears, now, 0).uint(0).uint(uint64(id)).uint(uint64(class))
		}
		fresh := known.stamp == 0
		known.stamp = s.stamp
		if i++; fresh || i > from && i <= until || a.(interface{ IsOwned() bool }).IsOwned() {
			r.compare(id, known, a, v, now)
		}
	}
	if s.looked = until; until >= i {
		s.looked = 0
	}
	if len(s.now) == i {
		return
	}
	for id, known := range s.now {
		if known.stamp != s.stamp {
			r.gone(id, now)
		}
	}
}

// gone notes that a client's actor isn't there any more.
func (r *Recorder) gone(id netguid.GUID, now time.Duration) {
	delete(r.shown.now, id)
	r.log.begin(kindGone, now, 0).uint(0).uint(uint64(id))
}

// compare notes the values of an actor that have changed.
func (r *Recorder) compare(id netguid.GUID, known *values, a actorrep.Actor, v reflect.Value, now time.Duration) {
	s, at := r.shown, placeOf(a)
	for n, p := range s.parts[known.class] {
		s.scratch = p.read(s.scratch[:0], at, v)
		if !bytes.Equal(s.scratch, known.of[n]) {
			known.of[n] = append(known.of[n][:0], s.scratch...)
			r.log.begin(kindValue, now, 0).uint(uint64(n)).uint(uint64(id)).bytes(s.scratch)
		}
	}
}

// settle takes what pages have into base: they are about to be dropped.
func (s *shown) settle(pages []page) {
	entries(pages, func(e *entry) {
		switch id := netguid.GUID(e.a); e.kind {
		case kindAppears:
			s.base[id] = values{class: int(e.b), of: make([][]byte, len(s.parts[e.b]))}
		case kindGone:
			delete(s.base, id)
		case kindValue:
			of := s.base[id].of
			of[e.packet] = append(of[e.packet][:0], e.text...)
		}
	})
}

// copy is a film's.
func (s *shown) copy() *shown {
	out := &shown{classes: s.classes, parts: s.parts, base: map[netguid.GUID]values{}}
	for id, v := range s.base {
		of := make([][]byte, len(v.of))
		for i := range of {
			of[i] = slices.Clone(v.of[i])
		}
		out.base[id] = values{class: v.class, of: of}
	}
	return out
}

// scene plays a client's log.
func (s *shown) scene(log []page) *scene {
	out := &scene{classes: s.classes, live: map[netguid.GUID]*shownActor{}}
	appears := func(id netguid.GUID, class int) *shownActor {
		a := &shownActor{ID: id.String(), Class: class, From: max(len(out.steps)-1, 0), To: -1, guid: id}
		for _, p := range s.parts[class] {
			fresh := *p
			a.Parts = append(a.Parts, &fresh)
		}
		out.live[id], out.actors = a, append(out.actors, a)
		return a
	}
	for _, id := range slices.Sorted(maps.Keys(s.base)) {
		a := appears(id, s.base[id].class)
		for i, value := range s.base[id].of {
			if value != nil {
				out.set(a.Parts[i], value)
			}
		}
	}
	entries(log, func(e *entry) {
		switch id := netguid.GUID(e.a); e.kind {
		case kindLook:
			out.steps = append(out.steps, ms(e.at))
		case kindAppears:
			if len(out.actors) == maxActors {
				out.cut = fmt.Sprintf("only %d actors are shown", maxActors)
				return
			}
			appears(id, int(e.b))
		case kindGone:
			if a := out.live[id]; a != nil {
				a.To = max(len(out.steps)-1, 0)
				delete(out.live, id)
			}
		case kindValue:
			if a := out.live[id]; a != nil {
				out.set(a.Parts[e.packet], e.text)
			}
		}
	})
	if len(out.steps) == 0 {
		out.actors, out.cut = nil, "nothing of the world was recorded: a client's game calls Look in each frame"
	}
	return out
}
