package netguid

import "testing"

func TestIDsComeAgain(t *testing.T) {
	a := Allocator{last: 1<<31 - 2}
	if last, first := a.Next(), a.Next(); last != 1<<32-2 || first != 2 {
		t.Fatal(last, first)
	}
}
