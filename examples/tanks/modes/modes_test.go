package modes

import (
	"slices"
	"strings"
	"testing"
)

// TestModes: the game sees the same happen, event by event, offline, as the host of a listen server, on a dedicated one at two distances, and, but for what is
// its player's alone, in the recording of each.
func TestModes(t *testing.T) {
	var offline []string
	for _, m := range All {
		saw, replayed, err := m.Play()
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if offline == nil {
			offline = saw
			if hits, crates := begins(saw, "Ann has "), begins(saw, "a crate"); hits < 4 || crates < 1 {
				t.Errorf("%d hits and %d crates are too few to compare", hits, crates)
			}
		}
		if !slices.Equal(saw, offline) {
			t.Errorf("%s:\n%s\noffline:\n%s", m.Name, strings.Join(saw, "\n"), strings.Join(offline, "\n"))
		}
		if want := slices.DeleteFunc(slices.Clone(offline), Own); !slices.Equal(replayed, want) {
			t.Errorf("the replay of %s:\n%s\nshould be\n%s", m.Name, strings.Join(replayed, "\n"), strings.Join(want, "\n"))
		}
	}
}

func begins(all []string, begin string) (n int) {
	for _, s := range all {
		if strings.HasPrefix(s, begin) {
			n++
		}
	}
	return n
}
