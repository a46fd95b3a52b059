package flight

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// Film is what a Recorder had at a moment. Any goroutine may use it, one at a time.
type Film struct {
	world func() (*actorrep.World, error) // of a server's, as its tape
	tape  copied
	culls map[netguid.GUID]float64 // the distances from which its actors are relevant
	shown *shown                   // of a client's
	log   []page
	// dropped is whether the log began before its first page.
	dropped bool
	names   []procedure // that the log's calls are of
	cut     string      // why the world's part ends early
	// refused is when the recorder last had too many reasons to keep another one; -1 is never.
	refused time.Duration
	cause   *cause // of one that the recorder has saved

	values, entries int // the most that are shown
}

// View says what a film shows. The zero value shows all connections.
type View struct {
	// Title is the page's heading. Default "bunchnet".
	Title string
	// Conns is the connections whose packets and records are shown, by ID; empty is all.
	Conns []uint32
	// Names are names of connections, by ID. May be nil.
	Names map[uint32]string
	// Clients are films of this server's clients, to be shown beside what the server had. The page finds out which connection each is of, by
	// its packets.
	Clients []*Film
	// Capture is what package netconn/driver/capture has recorded of the run. It goes into the page, and go run ./bench/capture2test makes a test
	// of the page. Whoever has it can decrypt the run's connections. May be nil.
	Capture []byte
}

// Bounds of a film.
const (
	maxActors  = 4096
	maxValues  = 1_000_000
	maxEntries = 500_000 // of packets, records and notes
	maxParts   = 64      // of an actor
	maxShown   = 80      // characters of a value
)

// scene is the world's part of a film. Times are in ms, by Step.
type scene struct {
	steps   []float64
	classes []shownClass
	actors  []*shownActor
	cut     string // what isn't there

	values  int
	live    map[netguid.GUID]*shownActor
	changed map[netguid.GUID]bool
	index   map[reflect.Type]int
	layouts []*layout.Layout // of the classes
	scratch []byte
}

type shownClass struct {
	Name string
}

// shownActor is an actor from its appearance in the film to its end.
type shownActor struct {
	ID       string
	Class    int
	From, To int     // Steps; To -1 is the end
	Seen     float64 `json:",omitempty"` // the distance from which it is relevant, of one that is there at the end
	Parts    []*shownPart

	guid  netguid.GUID
	actor actorrep.Actor // a server's
	seen  int            // the last Step in which it was there
}

// shownPart is a field, or a part of one that is a struct: its values, and the Steps from which on it had them, each as its difference to
// the one before. Units is the field's, in hexadecimal, Only its condition as in its tag, and Drawn the tag by which a client shows something else than
// what came: predict or interp. The values and Steps are kept as the elements of JSON's lists.
type shownPart struct {
	Name  string
	Units string
	Only  string `json:",omitempty"`
	Drawn string `json:",omitempty"`
	At    list
	Of    list

	path []int // in the actor; nil for its place
	axis int
	step int // of the last value
	last []byte
}

// list is a list in JSON, without its brackets.
type list []byte

// MarshalJSON adds the brackets.
func (l list) MarshalJSON() ([]byte, error) {
	return append(append([]byte{'['}, bytes.TrimSuffix(l, []byte{','})...), ']'), nil
}

var classes = bridge.Classes.(func(w *actorrep.World) []bridge.Class)

// decode plays the recording. When it has too many values, it begins later.
func (f *Film) decode() (*scene, error) {
	if f.shown != nil {
		return f.shown.scene(f.log), nil
	}
	starts := f.tape.starts()
	if len(starts) == 0 {
		return &scene{cut: f.cut}, nil
	}
	for {
		s, err := f.play(starts[0], len(starts) == 1)
		if err != nil || s != nil {
			return s, err
		}
		starts = starts[(len(starts)+1)/2:]
	}
}

// play plays it from a start. It returns nil when there are too many values, or, of the last start, what there is room for.
func (f *Film) play(from start, last bool) (*scene, error) {
	w, err := f.world()
	if err != nil {
		return nil, err
	}
	s := newScene(w, f.cut)
	file := f.tape.file(from.block)
	r, err := replay.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	if err := r.Play(w); err != nil {
		return nil, err
	}
	if err := r.Seek(from.at); err != nil {
		return nil, err
	}
	w.OnValues(func(a actorrep.Actor) { s.changed[guidOf(a)] = true })
	for {
		s.step(f.tape.start+r.Position(), w)
		clear(s.changed)
		next, ok := r.Next()
		if !ok {
			return s, nil
		}
		if s.values > f.values {
			if last {
				s.cut = fmt.Sprintf("the world is shown until %v: there are too many values", next+f.tape.start)
				return s, nil
			}
			return nil, nil
		}
		if err := r.Step(r.Position()); err != nil { // the first after a seek sets the start
			return nil, err
		}
		if err := r.Step(next); err != nil {
			return nil, err
		}
	}
}

func newScene(w *actorrep.World, cut string) *scene {
	s := &scene{cut: cut, live: map[netguid.GUID]*shownActor{}, changed: map[netguid.GUID]bool{}, index: map[reflect.Type]int{}}
	for i, c := range classes(w) {
		s.index[c.Layout.Type], s.layouts = i, append(s.layouts, c.Layout)
		s.classes = append(s.classes, shownClass{c.Name})
	}
	return s
}

func guidOf(a actorrep.Actor) netguid.GUID { return a.(interface{ GUID() netguid.GUID }).GUID() }

// step notes what is there in a Step, and what has changed in it.
func (s *scene) step(at time.Duration, w *actorrep.World) {
	n := len(s.steps)
	s.steps = append(s.steps, ms(at))
	for a := range w.All {
		id := guidOf(a)
		shown, v := s.live[id], reflect.ValueOf(a).Elem()
		if shown != nil && shown.actor != a { // the id went to another one since the last Step
			shown.To, shown = n, nil
			delete(s.live, id)
		}
		fresh := shown == nil
		if fresh {
			if len(s.actors) == maxActors {
				s.cut = fmt.Sprintf("only %d actors are shown", maxActors)
				continue
			}
			class := s.index[v.Type()]
			shown = &shownActor{ID: id.String(), Class: class, From: n, To: -1, Parts: partsOf(s.layouts[class]), guid: id, actor: a}
			s.live[id] = shown
			s.actors = append(s.actors, shown)
		}
		shown.seen = n
		if fresh || s.changed[id] {
			s.note(shown, a, v)
		}
	}
	for id, shown := range s.live {
		if shown.seen != n {
			shown.To = n
			delete(s.live, id)
		}
	}
}

// places are the parts that are an actor's Location.
var places = [...]string{"(x)", "(y)", "(z)"}

func ms(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 100 }

var (
	located = reflect.TypeFor[actorrep.Located]()
	refers  = reflect.TypeFor[interface{ RefersNet() }]()
	pusher  = reflect.TypeFor[layout.Pusher]()
)

// partsOf is the parts of a class, without values.
func partsOf(l *layout.Layout) []*shownPart {
	var a shownActor
	if reflect.PointerTo(l.Type).Implements(located) {
		for axis, name := range places {
			a.Parts = append(a.Parts, &shownPart{Name: name, axis: axis})
		}
	}
	for _, field := range l.Fields {
		f, first := l.Type.FieldByIndex(field.Index), len(a.Parts)
		a.parts(field.Name, field.Mask, f.Type, field.Index)
		for _, p := range a.Parts[first:] {
			p.Only, p.Drawn = onlyOf(l, field.Mask), drawnOf(f.Tag)
		}
	}
	for _, p := range a.Parts {
		if p.path == nil { // its place is where it's drawn
			for _, field := range a.Parts {
				p.Drawn = cmp.Or(p.Drawn, field.Drawn)
			}
		}
	}
	return a.Parts
}

// onlyOf is the condition of units, as in a tag; "" for always, and for units of several.
func onlyOf(l *layout.Layout, units layout.Mask) (only string) {
	for i, u := range l.Units {
		if units&(1<<i) == 0 {
			continue
		}
		s := u.Condition.String()
		if u.Condition == layout.NetGroup {
			s = "group=" + u.NetGroup
		}
		if only != "" && s != only {
			return ""
		}
		only = s
	}
	return only
}

// drawnOf is the tag by which a client shows something else in a field than what came, or "".
func drawnOf(tag reflect.StructTag) string {
	for _, name := range [...]string{"predict", "interp"} {
		if _, ok := tag.Lookup(name); ok {
			return name
		}
	}
	return ""
}

// parts lists what a field consists of. path is where it is in the actor.
func (a *shownActor) parts(name string, units layout.Mask, t reflect.Type, path []int) {
	if reflect.PointerTo(t).Implements(pusher) { // a Var is what it holds
		t, path = t.Field(0).Type, append(slices.Clip(path), 0)
	}
	if t.Kind() == reflect.Struct && plain(t) && len(a.Parts)+t.NumField() < maxParts {
		for i := range t.NumField() {
			a.parts(name+"."+t.Field(i).Name, units, t.Field(i).Type, append(slices.Clip(path), i))
		}
		return
	}
	a.Parts = append(a.Parts, &shownPart{Name: name, Units: fmt.Sprintf("%x", units), path: path})
}

// plain reports a struct whose fields are numbers, texts, or such structs: others are shown as a text.
func plain(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type.Kind() {
		case reflect.Struct:
			if !plain(f.Type) {
				return false
			}
		case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.Array:
			return false
		}
		if !f.IsExported() {
			return false
		}
	}
	return t.NumField() > 0
}

// note adds the values that have changed.
func (s *scene) note(a *shownActor, actor actorrep.Actor, v reflect.Value) {
	at := placeOf(actor)
	for _, p := range a.Parts {
		s.scratch = p.read(s.scratch[:0], at, v)
		s.set(p, s.scratch)
	}
}

// set adds a part's value, if it has changed.
func (s *scene) set(p *shownPart, value []byte) {
	if bytes.Equal(p.last, value) {
		return
	}
	step := max(len(s.steps)-1, 0)
	p.last = append(p.last[:0], value...)
	p.At = append(strconv.AppendInt(p.At, int64(step-p.step), 10), ',')
	p.Of = append(append(p.Of, value...), ',')
	p.step = step
	s.values++
}

func placeOf(a actorrep.Actor) (at [len(places)]float64) {
	if l, ok := a.(actorrep.Located); ok {
		at[0], at[1], at[2] = l.Location()
	}
	return at
}

// read appends a part's value in JSON, of an actor at a place.
func (p *shownPart) read(b []byte, at [len(places)]float64, v reflect.Value) []byte {
	if p.path == nil {
		return appendNumber(b, at[p.axis])
	}
	return appendValue(b, v.FieldByIndex(p.path))
}

// appendValue appends a part's value in JSON: a number, or a text.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, '1')
		}
		return append(b, '0')
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := v.Int(); n >= -exact && n <= exact {
			return strconv.AppendInt(b, n, 10)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if n := v.Uint(); n <= exact {
			return strconv.AppendUint(b, n, 10)
		}
	case reflect.Float32, reflect.Float64:
		return appendNumber(b, v.Float())
	case reflect.Struct:
		if v.Type().Implements(refers) { // a Ref is shown as its actor
			return strconv.AppendQuote(b, netguid.GUID(v.Field(0).Uint()).String())
		}
	case reflect.String:
		if s := v.String(); len(s) <= maxShown && !strings.ContainsFunc(s, escaped) {
			return append(append(append(b, '"'), s...), '"')
		}
	}
	text := []rune(fmt.Sprint(v))
	if len(text) > maxShown {
		text = append(text[:maxShown], '…')
	}
	quoted, _ := json.Marshal(string(text)) // a text has JSON
	return append(b, quoted...)
}

// escaped reports a character that a text in JSON doesn't have as it is.
func escaped(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\\<>&`, r) }

// exact is up to where the page's numbers have all integers; others are texts.
const exact = 1 << 53

// appendNumber appends a number with at most four places.
func appendNumber(b []byte, x float64) []byte {
	if math.IsNaN(x) || math.Abs(x) > exact {
		return strconv.AppendQuote(b, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, math.Round(x*1e4)/1e4, 'f', -1, 64)
}
