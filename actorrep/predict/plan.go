package predict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/internal/numbers"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// maxNumbers bounds the predicted numbers of an actor, and the numbers of an input.
const maxNumbers = 32

// ErrClass is wrapped by errors about a predicted class or its input.
var ErrClass = errors.New("predict: class")

// number is a predicted number of an actor, or one of an input.
type number struct {
	numbers.Number
	tolerance float64
	smooth    bool
	turn      bool // an angle in degrees
	sent      bool // it has a net tag
	owners    bool // its owner is sent it when he doesn't play
}

// snapshot is the predicted numbers of an actor, by the order of its plan, each as its bits in memory.
type snapshot [maxNumbers]uint64

// plan is the predicted numbers of a class.
type plan []number

// stateOf lists the fields of an actor's struct that are tagged.
func stateOf(t reflect.Type) (p plan, err error) {
	l, err := layout.Build(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClass, err)
	}
	owners := l.Allowed(layout.Initial|layout.Owner|layout.Autonomous) | l.Custom
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("predict")
		if !ok {
			continue
		}
		from := number{Number: numbers.Number{Name: f.Name}, turn: strings.Contains(f.Tag.Get("net"), "rot=")}
		tolerance, options, _ := strings.Cut(tag, ",")
		if tolerance != "" {
			if from.tolerance, err = strconv.ParseFloat(tolerance, 64); err != nil || !(from.tolerance >= 0) || math.IsInf(from.tolerance, 0) {
				return nil, fmt.Errorf("%w: %s: the tolerance %q is no number from 0 up", ErrClass, f.Name, tolerance)
			}
		}
		if from.smooth = options == "smooth"; !from.smooth && options != "" {
			return nil, fmt.Errorf("%w: %s: the predict tag has the option %q; there is smooth", ErrClass, f.Name, options)
		}
		for _, known := range l.Fields {
			same := slices.Equal(known.Index, f.Index)
			from.sent, from.owners = from.sent || same, from.owners || same && known.Mask&l.Allowed(layout.Owner) != 0
			if same && known.Mask&owners != 0 {
				return nil, fmt.Errorf("%w: %s is sent to its player too, over what is predicted; give its net tag the condition simulated or skipowner", ErrClass, f.Name)
			}
		}
		offset, err := numbers.Offset(t, f.Index)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrClass, f.Name, err)
		}
		from.Offset = offset
		if p, err = p.flatten(from, f.Type); err != nil {
			return nil, err
		}
	}
	if len(p) == 0 {
		return nil, fmt.Errorf(`%w: %v has no field with a predict tag, as in predict:"0.01"`, ErrClass, t)
	}
	return p, nil
}

// flatten appends the numbers of a value of type t.
func (p plan) flatten(from number, t reflect.Type) (plan, error) {
	list, err := numbers.List(nil, from.Number, t, maxNumbers-len(p))
	switch {
	case errors.Is(err, numbers.ErrMany):
		return nil, fmt.Errorf("%w: over %d numbers at %s", ErrClass, maxNumbers, from.Name)
	case err != nil:
		return nil, fmt.Errorf("%w: %w; numbers, bools, and arrays and structs of them can be predicted and be inputs", ErrClass, err)
	}
	for _, n := range list {
		from.Number = n
		p = append(p, from)
	}
	return p, nil
}

// load takes the numbers of the value at obj, which must be of the plan's type.
func (p plan) load(obj unsafe.Pointer, s *snapshot) { p.loadTo(obj, s[:]) }

// store puts them there.
func (p plan) store(obj unsafe.Pointer, s *snapshot) { p.storeFrom(obj, s[:]) }

// loadTo is load to as many words as the plan has numbers, or more.
func (p plan) loadTo(obj unsafe.Pointer, s []uint64) {
	for i := range p {
		s[i] = p[i].Load(obj)
	}
}

// storeFrom is store from them.
func (p plan) storeFrom(obj unsafe.Pointer, s []uint64) {
	for i := range p {
		p[i].Store(obj, s[i])
	}
}

// sent is the numbers that have a net tag.
func (p plan) sent() (m uint32) {
	for i := range p {
		if p[i].sent {
			m |= 1 << i
		}
	}
	return m
}

// form is what of a number's type both ends must have alike: an int is an int64 on every machine.
func (n *number) form() reflect.Kind {
	switch n.Kind {
	case reflect.Int:
		return reflect.Int64
	case reflect.Uint:
		return reflect.Uint64
	default:
		return n.Kind
	}
}

// finite reports whether all floats are numbers.
func (p plan) finite(s []uint64) bool {
	for i := range p {
		if p[i].IsFloat() {
			if v := p[i].Value(s[i]); math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// distance is how far apart two snapshots are, in tolerances; infinite where an exact number differs.
func (p plan) distance(a, b *snapshot) float64 { return p.apart(a[:], b[:]) }

func (p plan) apart(a, b []uint64) (most float64) {
	for i := range p {
		n := &p[i]
		if a[i] == b[i] {
			continue
		}
		d := math.Abs(n.Value(a[i]) - n.Value(b[i]))
		if n.turn {
			d = math.Mod(d, 360)
			d = min(d, 360-d)
		}
		switch {
		case d == 0 && n.tolerance > 0:
		case n.tolerance == 0 || math.IsNaN(d):
			return math.Inf(1)
		default:
			most = max(most, d/n.tolerance)
		}
	}
	return most
}

// off appends the names of the numbers by which two snapshots are more than so many tolerances apart.
func (p plan) off(names []string, a, b []uint64, tolerances float64) []string {
	for i := range p {
		if p[i:i+1].apart(a[i:], b[i:]) > tolerances {
			names = append(names, p[i].Name)
		}
	}
	return names
}

func (p plan) writeState(w *bitio.Writer, s *snapshot) {
	for i := range p {
		w.WriteBits(s[i], p[i].Width())
	}
}

func (p plan) readState(r *bitio.Reader, s *snapshot) {
	for i := range p {
		s[i] = r.ReadBits(p[i].Width())
	}
	if !p.finite(s[:]) {
		r.Fail(bitio.ErrFormat)
	}
}

// mostSteps is the largest number of half tolerances in a claim: what a float64 counts.
const mostSteps = 1 << 53

func (p plan) writeClaim(w *bitio.Writer, s *snapshot) { p.writeNumbers(w, s[:]) }

// readClaim reads what writeClaim wrote.
func (p plan) readClaim(r *bitio.Reader, s *snapshot) { p.readNumbers(r, s[:]) }

// writeNumbers writes numbers as exactly as their tolerances ask for.
func (p plan) writeNumbers(w *bitio.Writer, s []uint64) {
	for i := range p {
		n := &p[i]
		if n.tolerance == 0 {
			w.WriteBits(s[i], n.Width())
			continue
		}
		steps := math.RoundToEven(n.Value(s[i]) / (n.tolerance / 2))
		if !(math.Abs(steps) <= mostSteps) {
			steps = mostSteps
		}
		v := int64(steps)
		w.WriteIntPacked64(uint64(v<<1) ^ uint64(v>>63))
	}
}

// readNumbers reads what writeNumbers wrote.
func (p plan) readNumbers(r *bitio.Reader, s []uint64) {
	for i := range p {
		n := &p[i]
		if n.tolerance == 0 {
			s[i] = r.ReadBits(n.Width())
			continue
		}
		v := r.ReadIntPacked64()
		s[i] = n.Bits(float64(int64(v>>1)^-int64(v&1)) * (n.tolerance / 2))
	}
}
