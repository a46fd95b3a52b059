package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
)

// party is who plays, as far as it is in this process.
type party struct {
	names   []string
	real    bool // the clock is real: how well it went says as much of the machine, and isn't judged
	server  *game.Server
	clients map[string]*game.Client
	before  map[string]*game.Client // of a client that crashed
}

func newParty(names []string) party {
	return party{names: names, clients: map[string]*game.Client{}, before: map[string]*game.Client{}}
}

// verdict compares what all have, and what happened with what should, when everything stands.
func (m *party) verdict(out io.Writer, shots int) error {
	names := m.names
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	fmt.Fprintln(out, "\nplayer  inputs  corrections  draws late  shots  seen in line  hits  drones seen  score")
	aimed, hits := 0, 0
	board := m.clients[names[0]].View().Board
	for _, name := range names {
		c := m.clients[name]
		v := c.View()
		shots, inLine := c.Shots, c.Aimed
		if old := m.before[name]; old != nil { // its client before the crash
			shots, inLine = shots+old.Shots, inLine+old.Aimed
		}
		late := 100 * float64(v.LateDraws) / float64(max(v.Draws, 1))
		fmt.Fprintf(out, "%-6s  %6d  %11d  %8.2f %%  %5d  %12d  %4d  %11d  %5d\n", name, v.Inputs, v.Corrections, late, shots, inLine, m.server.Hits[name], v.Drones, c.Score(name))
		aimed, hits = aimed+inLine, hits+m.server.Hits[name]
		at, ok := c.Own()
		truth, there := m.server.Place(name)
		switch {
		case !ok || !there:
			wrong("%s has no tank", name)
		case at.Distance(truth) > 0.05:
			wrong("%s's tank is at %v, and feels to be at %v", name, truth, at)
		}
		if v.Corrections*50 > v.Inputs && !m.real {
			wrong("%s was corrected %d times in %d inputs", name, v.Corrections, v.Inputs)
		}
		if late > 1 && !m.real {
			wrong("%.2f %% of what %s saw had to wait", late, name)
		}
		if v.OthersAmmo > 0 {
			wrong("%s knows the others' ammunition", name)
		}
		if v.Waiting > 0 {
			wrong("%s still shows %d shells that the server doesn't have", name, v.Waiting)
		}
		if v.Board != board || c.Score(name) != m.server.Hits[name] {
			wrong("%s has the score board %s, another %s, and hit %d", name, v.Board, board, m.server.Hits[name])
		}
		if v.Drones == m.server.Drones() {
			wrong("%s sees all drones, however far", name)
		}
		if m.before[name] == nil && len(c.Heard) != len(names) {
			wrong("%s heard %d of %d", name, len(c.Heard), len(names))
		}
	}
	fmt.Fprintf(out, "\n%d of %d shots that a player saw hit were hits, %.0f %%; %d of %d crates asleep\n", hits, aimed, 100*float64(hits)/float64(max(aimed, 1)), m.server.Asleep(), m.server.Crates())
	if aimed < shots || float64(hits) < 0.9*float64(aimed) && !m.real {
		wrong("%d of %d shots that a player saw hit were hits", hits, aimed)
	}
	if m.server.Asleep() < m.server.Crates() {
		wrong("%d of %d crates are awake", m.server.Crates()-m.server.Asleep(), m.server.Crates())
	}
	return errors.Join(errs...)
}
