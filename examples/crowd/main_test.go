package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TestVerdict: who reads the verdict learns of everything that doesn't fit, and of nothing else.
func TestVerdict(t *testing.T) {
	for _, x := range []struct {
		what             string
		slow, old, bytes int // ticks of 100, views of 100, bytes in 5 s
		ticks, age, much bool
	}{
		{what: "all fits", slow: 1, old: 0, bytes: 5 * 70_000},
		{what: "two slow ticks", slow: 2, ticks: true},
		{what: "old views", old: 2, age: true},
		{what: "bytes", bytes: 5 * 71_000, much: true},
		{what: "all of it", slow: 100, old: 100, bytes: 5 * 71_000, ticks: true, age: true, much: true},
	} {
		c := &crowd{o: options{hz: 20, bandwidth: 64_000, limit: 500 * time.Millisecond}, server: actorrep.NewServer(actorrep.Config{}), clients: []*client{{bytes: x.bytes}}}
		var ages []uint32
		for i := range 100 {
			took, age := 50*time.Millisecond, uint32(10)
			if i < x.slow {
				took++
			}
			if i < x.old {
				age++
			}
			c.took, ages = append(c.took, took), append(ages, age)
		}
		err := c.report(ages, 100, actorrep.Counters{})
		text := ""
		if err != nil {
			text = err.Error()
		}
		for part, want := range map[string]bool{"ticks of the server": x.ticks, "players in view": x.age, "kB/s": x.much} {
			if got := strings.Contains(text, part); got != want {
				t.Errorf("%s: %q, and %q in it is %v", x.what, text, part, got)
			}
		}
		if x.ticks && !strings.Contains(text, "of 100 ticks") {
			t.Errorf("%s: %q", x.what, text)
		}
	}
}
