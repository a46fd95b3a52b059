package actorrep

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSortViews: dense ids, sparse ones, few and many, sorted already or not.
func TestSortViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 18))
	k := newWorker()
	for range 2000 {
		n, spread := 1+rng.IntN(100), 1+rng.IntN(3*maxSpread)
		var views []*view
		for _, id := range rng.Perm(n * spread)[:n] {
			views = append(views, &view{id: uint32(id + 1)})
		}
		want := slices.Clone(views)
		slices.SortFunc(want, byID)
		if k.sort(views); !slices.Equal(want, views) {
			t.Fatalf("%d views of %d ids aren't sorted", n, n*spread)
		}
	}
	if len(k.ids) > len(k.byID)/32+1 {
		t.Errorf("%d words of marks for %d ids", len(k.ids), len(k.byID))
	}
	if slices.ContainsFunc(k.byID, func(v *view) bool { return v != nil }) {
		t.Error("views are kept")
	}
}

// TestSentRingKeepsWhatIsInFlight: whatever room it gets and gives back, records stay at their places.
func TestSentRingKeepsWhatIsInFlight(t *testing.T) {
	var s sentRing
	v := &view{last: -1}
	for round := range 200 {
		for range round * 7 % 500 {
			s.next().v = v
			s.at(s.tail).count = s.tail
			s.push()
		}
		for range round * 11 % 700 {
			if s.head < s.tail {
				s.head++
			}
		}
		most := int(s.tail - s.head)
		s.trim(most * (1 + round%3))
		if most > 64 && len(s.ring) > 16*most {
			t.Fatalf("room for %d, with %d at most", len(s.ring), most)
		}
		for i := s.head; i < s.tail; i++ {
			if r := s.at(i); r.count != i {
				t.Fatalf("place %d has the record of %d", i, r.count)
			}
		}
	}
	s.head = s.tail
	s.trim(0)
	if len(s.ring) > 0 {
		t.Errorf("an idle one keeps %d", len(s.ring))
	}
	s.next().v = v
	s.push()
	if s.at(s.tail-1).v != v {
		t.Error("it can't be used again")
	}
}

// TestLean: what is kept has the same contents, and at most twice the room of the most that was needed.
func TestLean(t *testing.T) {
	s := append(make([]int, 0, 1000), 1, 2, 3)
	if got := lean(s, 300); cap(got) != 1000 {
		t.Errorf("room for %d of 1000 was taken that a third of them needed", cap(got))
	}
	if got := lean(s, 100); len(got) != 3 || got[2] != 3 || cap(got) != 200 {
		t.Errorf("%v, %d", got, cap(got))
	}
	if got := lean(s, 0); len(got) != 3 || cap(got) > 64 {
		t.Errorf("%v, %d", got, cap(got))
	}
}
