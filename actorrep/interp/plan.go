package interp

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/numbers"
	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// ErrClass is wrapped by errors about an interpolated class.
var ErrClass = errors.New("interp: class")

// maxWords bounds the interpolated numbers of an actor. A value of the game's own type takes one for each 8 bytes.
const maxWords = 24

// sample is an actor's interpolated values at one time, in the order of its plan.
type sample [maxWords]uint64

// partKind says how a part is interpolated.
type partKind uint8

const (
	line     partKind = iota // linear
	degrees                  // an angle, the short way round
	radians                  // the same
	rotation                 // a quaternion of four floats
	step                     // the older value, until the time of the newer
	jump                     // as step; a change means that the actor teleported
	custom                   // as a function of the game's says
)

// part is what is interpolated as one.
type part struct {
	kind    partKind
	first   int // word of a sample
	numbers []numbers.Number
	offset  uintptr // of a custom part
	custom  *Lerp
}

// distance is a teleport= option: the actor teleported when these words change by more than most.
type distance struct {
	from, to int
	most     float64
}

// plan is the interpolated fields of a class.
type plan struct {
	parts     []part
	distances []distance
	words     int
	customs   []Lerp

	from, to, shown sample // for customs, whose functions would let others escape to the heap
}

// Lerp interpolates values of one type. LerpOf makes it.
type Lerp struct {
	typ        reflect.Type
	load, save func(words, obj unsafe.Pointer)
	between    func(dst, a, b unsafe.Pointer, t float64)
}

// LerpOf interpolates fields of type T with the game's function f, which returns the value at t, 0 to 1, between a and
// b. T must contain no pointers, and take 192 bytes at most.
func LerpOf[T any](f func(a, b T, t float64) T) Lerp {
	move := func(dst, src unsafe.Pointer) { *(*T)(dst) = *(*T)(src) }
	return Lerp{
		typ:  reflect.TypeFor[T](),
		load: func(words, obj unsafe.Pointer) { move(words, obj) },
		save: func(words, obj unsafe.Pointer) { move(obj, words) },
		between: func(dst, a, b unsafe.Pointer, t float64) {
			*(*T)(dst) = f(*(*T)(a), *(*T)(b), t)
		},
	}
}

// tagged is what the tags say about a field.
type tagged struct {
	name  string
	kind  partKind
	given bool    // kind was set by the interp tag itself
	apart float64 // teleport=
}

// net takes the kind from a net tag.
func (g *tagged) net(tag reflect.StructTag) {
	net, ok := tag.Lookup("net")
	if !ok || g.given {
		return
	}
	for _, option := range strings.Split(net, ",") {
		switch option = strings.TrimSpace(option); {
		case strings.HasPrefix(option, "rot="):
			g.kind = degrees
		case strings.HasPrefix(option, "quat="):
			g.kind = rotation
		}
	}
}

func (g *tagged) interp(tag string) error {
	for _, option := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(option), "=")
		kind := map[string]partKind{"angle": degrees, "radians": radians, "quat": rotation, "step": step, "jump": jump}
		switch k, ok := kind[key]; {
		case key == "":
		case key == "teleport":
			d, err := strconv.ParseFloat(value, 64)
			if err != nil || !(d > 0) || math.IsInf(d, 0) {
				return fmt.Errorf("teleport=%s must be a distance above 0", value)
			}
			g.apart = d
		case ok && value == "" && !g.given:
			g.kind, g.given = k, true
		default:
			return fmt.Errorf("the option %q; there are angle, radians, quat, step, jump, of which one may be given, and teleport=", option)
		}
	}
	return nil
}

// planOf lists the fields of an actor's struct that are tagged.
func planOf(t reflect.Type, customs []Lerp) (*plan, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v is no pointer to a struct", ErrClass, t)
	}
	for _, c := range customs {
		if hasPointers(c.typ) {
			return nil, fmt.Errorf("%w: LerpOf[%v]: the type holds pointers, strings, slices, maps or interfaces", ErrClass, c.typ)
		}
	}
	p := &plan{customs: customs}
	for _, f := range reflect.VisibleFields(t.Elem()) {
		tag, ok := f.Tag.Lookup("interp")
		if !ok {
			continue
		}
		if _, sent := f.Tag.Lookup("net"); !sent {
			return nil, fmt.Errorf("%w: %v.%s has an interp tag and no net tag: no values of it come", ErrClass, t.Elem(), f.Name)
		}
		g := tagged{name: f.Name}
		g.net(f.Tag)
		offset, err := numbers.Offset(t.Elem(), f.Index)
		first := p.words
		if err == nil {
			err = g.interp(tag)
		}
		if err == nil {
			err = p.add(g, offset, f.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %v.%s: %w", ErrClass, t.Elem(), f.Name, err)
		}
		if g.apart > 0 {
			p.distances = append(p.distances, distance{first, p.words, g.apart})
		}
	}
	if len(p.parts) == 0 {
		return nil, fmt.Errorf("%w: %v has no field with an interp tag", ErrClass, t)
	}
	return p, nil
}

// add appends the parts of a field, or of a part of one.
func (p *plan) add(g tagged, offset uintptr, t reflect.Type) error {
	own := slices.IndexFunc(p.customs, func(l Lerp) bool { return l.typ == t })
	switch {
	case own >= 0 && (!g.given || g.kind == line):
		words := (int(t.Size()) + 7) / 8
		return p.append(part{kind: custom, offset: offset, custom: &p.customs[own]}, words)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[layout.Pusher]()): // an actorrep.Var
		return p.add(g, offset, t.Field(0).Type)
	case g.kind == rotation:
		list, err := numbers.List(nil, numbers.Number{Name: g.name, Offset: offset}, t, maxWords)
		if err != nil || len(list) != 4 || slices.ContainsFunc(list, func(n numbers.Number) bool { return !n.IsFloat() }) {
			return fmt.Errorf("a quaternion is a struct or array of four floats, not %v", t)
		}
		return p.append(part{kind: rotation, numbers: list}, 4)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f, inner := t.Field(i), g
			inner.net(f.Tag)
			if err := inner.interp(f.Tag.Get("interp")); err != nil {
				return err
			}
			if err := p.add(inner, offset+f.Offset, f.Type); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() == reflect.Array:
		for i := range t.Len() {
			if err := p.add(g, offset+uintptr(i)*t.Elem().Size(), t.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	list, err := numbers.List(nil, numbers.Number{Name: g.name, Offset: offset}, t, 1)
	if err != nil {
		return fmt.Errorf("%w; other types need a LerpOf in ClassConfig.Lerps", err)
	}
	if t.Kind() == reflect.Bool && g.kind != jump {
		g.kind = step
	}
	return p.append(part{kind: g.kind, numbers: list}, 1)
}

func (p *plan) append(q part, words int) error {
	if q.first = p.words; p.words+words > maxWords {
		return fmt.Errorf("over %d numbers", maxWords)
	}
	p.words += words
	p.parts = append(p.parts, q)
	return nil
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.String, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		return true
	case reflect.Array:
		return hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// load copies the values of the actor at obj.
func (p *plan) load(obj unsafe.Pointer, s *sample) {
	for i := range p.parts {
		q := &p.parts[i]
		if q.kind == custom {
			q.custom.load(unsafe.Pointer(&s[q.first]), unsafe.Add(obj, q.offset))
			continue
		}
		for j := range q.numbers {
			s[q.first+j] = q.numbers[j].Load(obj)
		}
	}
}

// store copies values to the actor at obj.
func (p *plan) store(obj unsafe.Pointer, s *sample) {
	for i := range p.parts {
		q := &p.parts[i]
		if q.kind == custom {
			q.custom.save(unsafe.Pointer(&s[q.first]), unsafe.Add(obj, q.offset))
			continue
		}
		for j := range q.numbers {
			q.numbers[j].Store(obj, s[q.first+j])
		}
	}
}

// between interpolates from a to b; t is 0 to 1.
func (p *plan) between(a, b sample, t float64) (s sample) {
	if len(p.customs) > 0 {
		p.from, p.to = a, b
	}
	for i := range p.parts {
		q := &p.parts[i]
		switch q.kind {
		case custom:
			q.custom.between(unsafe.Pointer(&p.shown[q.first]), unsafe.Pointer(&p.from[q.first]), unsafe.Pointer(&p.to[q.first]), t)
			words := (int(q.custom.typ.Size()) + 7) / 8
			copy(s[q.first:q.first+words], p.shown[q.first:q.first+words])
		case step, jump:
			if s[q.first] = a[q.first]; t >= 1 {
				s[q.first] = b[q.first]
			}
		case rotation:
			q.turn(&a, &b, &s, t)
		default:
			n := &q.numbers[0]
			from := n.Value(a[q.first])
			way := n.Value(b[q.first]) - from
			switch q.kind {
			case degrees:
				way = math.Remainder(way, 360)
			case radians:
				way = math.Remainder(way, 2*math.Pi)
			}
			s[q.first] = n.Bits(from + way*t)
		}
	}
	return s
}

// turn interpolates a rotation the short way, at constant speed (slerp).
func (q *part) turn(a, b, s *sample, t float64) {
	var from, to [4]float64
	dot := 0.0
	for i := range from {
		from[i], to[i] = q.numbers[i].Value(a[q.first+i]), q.numbers[i].Value(b[q.first+i])
		dot += from[i] * to[i]
	}
	sign := 1.0
	if dot < 0 {
		sign, dot = -1, -dot
	}
	x, y := 1-t, sign*t
	if dot < 0.9995 { // nearer ones go straight: the sine is too small to divide by
		angle := math.Acos(dot)
		x, y = math.Sin((1-t)*angle)/math.Sin(angle), sign*math.Sin(t*angle)/math.Sin(angle)
	}
	length := 0.0
	for i := range from {
		from[i] = x*from[i] + y*to[i]
		length += from[i] * from[i]
	}
	if length = math.Sqrt(length); length == 0 {
		length = 1 // the zero value stays as it is
	}
	for i := range from {
		s[q.first+i] = q.numbers[i].Bits(from[i] / length)
	}
}

// apart reports whether the actor teleported between a and b.
func (p *plan) apart(a, b *sample) bool {
	for i := range p.parts {
		if q := &p.parts[i]; q.kind == jump && a[q.first] != b[q.first] {
			return true
		}
	}
	for _, d := range p.distances {
		sum := 0.0
		for i := range p.parts {
			q := &p.parts[i]
			if q.first < d.from || q.first >= d.to {
				continue
			}
			for j := range q.numbers {
				way := q.numbers[j].Value(b[q.first+j]) - q.numbers[j].Value(a[q.first+j])
				sum += way * way
			}
		}
		if !(sum <= d.most*d.most) {
			return true
		}
	}
	return false
}

// pointer is where an actor's struct is.
func pointer(a actorrep.Actor) unsafe.Pointer { return reflect.ValueOf(a).UnsafePointer() }
