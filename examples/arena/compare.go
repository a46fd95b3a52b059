package main

import (
	"fmt"
	"sort"

	"github.com/bunchnet/bunchnet/actorrep"
)

// snapshot is a world as sorted lines. Owner-only values are part of it for players that owner
// names. Positions are rounded to their replicated step.
func snapshot(w *actorrep.World, owns func(*Player) bool) []string {
	var lines []string
	for a := range w.All {
		switch a := a.(type) {
		case *Player:
			energy := "hidden"
			if owns(a) {
				energy = fmt.Sprintf("%.1f", a.Energy)
			}
			lines = append(lines, fmt.Sprintf("player %v %q (%.2f, %.2f) health %d score %d target %v energy %s", a.GUID(), a.Name, a.Pos.X, a.Pos.Y, a.Health, a.Score, a.Target, energy))
		case *Pickup:
			lines = append(lines, fmt.Sprintf("pickup %v (%.2f, %.2f) value %d taken %v", a.GUID(), a.Pos.X, a.Pos.Y, a.Value, a.Taken))
		}
	}
	sort.Strings(lines)
	return lines
}

// difference is the first line in which two snapshots differ, or "".
func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("the client has %s, the server %s", g, w)
		}
	}
	return ""
}
