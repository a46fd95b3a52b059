package main

import "testing"

// TestTruth: who plays an actor that another plays, or has played in the same epoch, is found; a change of authority isn't.
func TestTruth(t *testing.T) {
	for _, c := range []struct {
		what  string
		spans []span // by starts 1, 2, 3
		wrong int
	}{
		{"one after the other", []span{{8, 1, 10, 20}, {8, 2, 20, 30}, {8, 3, 31, 40}}, 0},
		{"told in another order", []span{{8, 5, 50, 60}, {8, 3, 30, 40}, {8, 4, 41, 49}}, 0},
		{"the first one goes on", []span{{8, 1, 10, 25}, {8, 2, 20, 30}}, 1},
		{"the first one goes on, and is told of later", []span{{8, 2, 20, 30}, {8, 1, 10, 25}}, 1},
		{"two in one epoch", []span{{8, 1, 10, 20}, {8, 1, 30, 40}}, 1},
		{"two actors", []span{{8, 1, 10, 20}, {10, 1, 15, 40}}, 0},
	} {
		x := truth{actors: map[uint32][]tenure{}}
		for i, p := range c.spans {
			x.played(i+1, p)
		}
		if len(x.wrong) != c.wrong {
			t.Errorf("%s: %q", c.what, x.wrong)
		}
	}
	x := truth{actors: map[uint32][]tenure{}}
	x.played(1, span{8, 3, 10, 20})
	x.seen(8, who(1, 3))
	x.seen(8, who(2, 4))
	if _, again := x.since(8, 1); len(x.wrong) > 0 || again {
		t.Fatal(x.wrong, again)
	}
	x.played(2, span{8, 4, 25, 26})
	if at, again := x.since(8, 1); at != 25 || !again || x.moves != 1 {
		t.Fatal(at, again, x.moves)
	}
	if x.seen(8, who(3, 4)); len(x.wrong) != 1 {
		t.Fatal("a client sees another server's value in the same epoch")
	}
	for epoch := range uint32(100) {
		x.played(1, span{8, 10 + epoch, 100 + int64(epoch), 100 + int64(epoch)})
	}
	if len(x.actors[8]) != maxTenures || len(x.wrong) != 1 {
		t.Fatal(len(x.actors[8]), x.wrong)
	}
}
