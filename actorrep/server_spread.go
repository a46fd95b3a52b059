package actorrep

import (
	"math"
	"sort"
)

// Opening an actor costs a server several times as much as an update. Many may become relevant at once, when a player
// joins or many cross a cell's border in the same Step. A Step then opens stepOpenings actors, or one in waitingPart of
// those that wait if that is more. Each connection gets an equal share and opens its most urgent. A recording opens all
// at once.
const (
	stepOpenings = 512
	waitingPart  = 8
)

// shareOpenings sets how many actors each connection may open in this Step.
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

// unopened is how many actors wait to be opened, without those that wait for Release.
func (p *Peer) unopened() int {
	if p.replay || !p.ready {
		return 0
	}
	return max(0, len(p.opening)-p.holding)
}
