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
