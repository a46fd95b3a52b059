package actorrep

import (
	"math"
	"sort"
)

// Opening an actor costs a server several times what an update does. When much comes into sight at once, as when a player joins or many walk
// into other cells in the same Step, a Step opens stepOpenings actors, or one in waitingPart of those that wait if that is more: of
// each connection the most urgent, and as many of each as far as they have them. A recording takes all at once.
const (
	stepOpenings = 512
	waitingPart  = 8
)

// shareOpenings says how many actors each connection may open in this Step.
func (w *World) shareOpenings() {
	total := 0
	for _, p := range w.peers {
		p.mayOpen = math.MaxInt
		total += p.unopened()
	}
	most := max(stepOpenings, total/waitingPart)
	if total <= most {
		return
	}
	share := max(1, sort.Search(most, func(n int) bool {
		sum := 0
		for _, p := range w.peers {
			sum += min(p.unopened(), n+1)
		}
		return sum > most
	}))
	for _, p := range w.peers {
		if !p.replay {
			p.mayOpen = share
		}
	}
}

// unopened is how many actors wait to be opened, but for those that wait for Release.
func (p *Peer) unopened() int {
	if p.replay || !p.ready {
		return 0
	}
	return max(0, len(p.opening)-p.holding)
}
