package bench

import (
	"testing"

	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// TestViewMemory holds what an actor takes that a connection sees: idle since it was opened, and idle again after all of them had changed.
func TestViewMemory(t *testing.T) {
	const most = 500
	for _, w := range []struct {
		name   string
		before func(c *largeworld.Rig)
	}{
		{"idle", nil},
		{"idle after changes", func(c *largeworld.Rig) {
			for range 10 {
				c.Change(largeworld.R1.Actors)
				c.Serve()
				c.Answer()
			}
		}},
	} {
		cfg := largeworld.Config{Actors: 4000, Relevant: 2000}
		actor, view, err := largeworld.Memory(cfg, 5, w.before)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f B an actor, %.0f B a view", w.name, actor, view)
		if view > most {
			t.Errorf("%s: a view takes %.0f B, more than %d", w.name, view, most)
		}
	}
}

// TestMemoryOfOthers: what the rest of the process gives back while a world is measured, as other tests' goroutines do when they end, isn't counted.
func TestMemoryOfOthers(t *testing.T) {
	others := [][]byte{make([]byte, 32<<20), make([]byte, 64<<20)}
	actor, view, err := largeworld.Memory(largeworld.Config{Actors: 400, Relevant: 200}, 5, func(*largeworld.Rig) { others[0], others = nil, others[1:] })
	if err != nil {
		t.Fatal(err)
	}
	if actor <= 0 || view <= 0 {
		t.Errorf("%.0f B an actor, %.0f B a view", actor, view)
	}
}
