package counter

import (
	"fmt"
	"testing"
)

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

func TestTake(t *testing.T) {
	c := Counter{N: 3}
	if c.Take(); c.N != 1 {
		t.Fatal(c.N)
	}
}

func TestRoom(t *testing.T) {
	if c := (Counter{N: 7, Limit: 10}); c.Room() != 3 {
		t.Fatal(c.Room())
	}
}

func ExampleCounter_Room() {
	c := Counter{Limit: 5}
	fmt.Println(c.Room())
	// Output: 5
}
