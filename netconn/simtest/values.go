package simtest

import "fmt"

// Values checks what others see of an object whose values are set in one place. A [Sight] is one who sees it: each value there must be
// one that was set, whole, and none may be older than what was seen before. A call that was made after some values were set finds them,
// or newer ones.
type Values struct {
	Name string

	world  *Simulation
	fields []history
	now    uint32 // values set so far
}

// history is the values of a field.
type history struct {
	name string
	sets []setValue
}

type setValue struct {
	at    uint32
	value any
}

// NewValues returns an object with such fields, of which nothing is set.
func (w *Simulation) NewValues(name string, fields ...string) *Values {
	v := &Values{Name: name, world: w}
	for _, f := range fields {
		v.fields = append(v.fields, history{name: f})
	}
	return v
}

// Set notes the value that a field has now, as others are to see it: it must be comparable. What doesn't change is no other value.
func (v *Values) Set(field int, value any) {
	f := &v.fields[field]
	if n := len(f.sets); n > 0 && f.sets[n-1].value == value {
		return
	}
	v.now++
	f.sets = append(f.sets, setValue{v.now, value})
}

// Mark is all that was set so far, for a call to take along.
func (v *Values) Mark() uint32 { return v.now }

// Sight is an object as one other end sees it.
type Sight struct {
	of   *Values
	name string
	from []int // by field: the oldest of its values that may be there
}

// NewSight returns a sight of nothing yet.
func (v *Values) NewSight(name string) *Sight {
	return &Sight{of: v, name: name, from: make([]int, len(v.fields))}
}

// Sees checks the value of a field that is there now.
func (s *Sight) Sees(field int, value any) {
	s.at(field, value, s.from[field], "order", "after a newer one")
}

// Ran checks it while a call runs that took a mark along.
func (s *Sight) Ran(mark uint32, field int, value any) {
	from, sets := s.from[field], s.of.fields[field].sets
	for from+1 < len(sets) && sets[from+1].at <= mark {
		from++
	}
	s.at(field, value, from, "calls", fmt.Sprintf("when a call runs that was made after %v was set", valueText(sets, from)))
}

// at finds the value among those that may be there, and says otherwise what is wrong.
func (s *Sight) at(field int, value any, from int, checker, when string) {
	f := &s.of.fields[field]
	for i := from; i < len(f.sets); i++ {
		if f.sets[i].value == value {
			s.from[field] = i
			return
		}
	}
	for i := range min(from, len(f.sets)) {
		if f.sets[i].value == value {
			s.of.world.Failf(checker, "%s: %s.%s is %s, %s", s.name, s.of.Name, f.name, short(value), when)
			return
		}
	}
	s.of.world.Failf("whole", "%s: %s.%s is %s, which it never was", s.name, s.of.Name, f.name, short(value))
}

func valueText(sets []setValue, i int) string {
	if i >= len(sets) {
		return "nothing"
	}
	return short(sets[i].value)
}

// short is a value in 60 bytes at most.
func short(value any) string {
	text := fmt.Sprint(value)
	return text[:min(len(text), 60)]
}
