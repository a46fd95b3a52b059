package counter

import "testing"

func TestCounter(t *testing.T) {
	c := Counter{Limit: 10}
	for i, want := range []bool{true, true, false, false} {
		if c.Add(5) != want || c.Full() == want {
			t.Fatal(i, c)
		}
	}
	if c.Add(-1) || c.N != 10 {
		t.Fatal(c)
	}
}
