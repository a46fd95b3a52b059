package simtest

import "fmt"

// Values checks the values that observers see of an object. Each value an observer sees must be one that was set, and not older than one it
// saw before. A call that was made after some values were set sees these or newer ones. Set is where the object changes; a Sight is an
// observer.
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

// NewValues returns a checker for an object with these fields, none of which is set yet.
func (w *Simulation) NewValues(name string, fields ...string) *Values {
	v := &Values{Name: name, world: w}
	for _, f := range fields {
		v.fields = append(v.fields, history{name: f})
	}
	return v
}

// Set notes the value that a field has now. It must be comparable. Setting the same value again changes nothing.
func (v *Values) Set(field int, value any) {
	f := &v.fields[field]
	if n := len(f.sets); n > 0 && f.sets[n-1].value == value {
		return
	}
	v.now++
	f.sets = append(f.sets, setValue{v.now, value})
}

// Mark returns a number for all values set so far. A call carries it.
func (v *Values) Mark() uint32 { return v.now }

// Sight is an object as one observer sees it.
type Sight struct {
	of   *Values
	name string
	from []int // by field: the oldest of its values that may be there
}

// NewSight returns an observer that has seen nothing yet.
func (v *Values) NewSight(name string) *Sight {
	return &Sight{of: v, name: name, from: make([]int, len(v.fields))}
}

// Sees checks the value of a field that the observer has now.
func (s *Sight) Sees(field int, value any) {
	s.at(field, value, s.from[field], "order", "after a newer one")
}

// Ran checks the value of a field while a call runs that carried the mark.
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
