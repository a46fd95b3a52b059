package actorrep

import (
	"math"
	"sort"
)

// Opening or closing an actor costs a server several times as much as an update. Many may become relevant at once, when a
// player joins or many cross a cell's border in the same Step; and all of them cease to be so at once. A Step opens
// stepChannels actors, or one in waitingPart of those that wait if that is more, and closes as many. Each connection gets
// an equal share. It opens its most urgent, and closes those that have waited longest. A recording opens and closes all at
// once, and an actor that is destroyed isn't waited for.
const (
	stepChannels = 512
	waitingPart  = 8
)

// shareChannels sets how many actors each connection may open and close in this Step.
func (w *World) shareChannels() {
	opening, closing := 0, 0
	for _, p := range w.peers {
		if len(p.opening)|len(p.leaving)|len(p.going.list) != 0 { // seldom
			opening += p.unopened()
			closing += p.unclosed()
		}
	}
	w.mayOpen, w.mayClose = w.share(opening, (*Peer).unopened), w.share(closing, (*Peer).unclosed)
}

// share is how many of what waits each connection may do in this Step. total is the sum of waiting over them.
func (w *World) share(total int, waiting func(*Peer) int) int {
	most := max(stepChannels, total/waitingPart)
	if total <= most {
		return math.MaxInt
	}
	return max(1, sort.Search(most, func(n int) bool {
		sum := 0
		for _, p := range w.peers {
			sum += min(waiting(p), n+1)
		}
		return sum > most
	}))
}

// unopened is how many actors wait to be opened, without those that wait for Release.
func (p *Peer) unopened() int {
	if p.replay || !p.ready {
		return 0
	}
	return max(0, len(p.opening)-p.holding)
}

// unclosed is how many actors wait to be closed, those included that became relevant again meanwhile.
func (p *Peer) unclosed() int {
	if p.replay || !p.ready {
		return 0
	}
	return len(p.leaving) + p.going.overdue(p.world.now)
}

// mayOpen is how many of its actors the connection may open in this Step, mayClose how many it may close.
func (p *Peer) mayOpen() int  { return p.may(p.world.mayOpen) }
func (p *Peer) mayClose() int { return p.may(p.world.mayClose) }

func (p *Peer) may(share int) int {
	if p.replay {
		return math.MaxInt
	}
	return share
}
