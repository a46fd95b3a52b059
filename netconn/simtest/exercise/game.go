package exercise

import (
	"fmt"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Game is a run of the exercise.
type Game struct {
	// Counters is what was done, for coverage.
	Counters Counters

	w       *simtest.Simulation
	opt     options
	ends    []*end
	dials   []*end // clients' ends, by the number they log in with
	streams []*stream
	liars   *liars
	calm    bool
	parting bool
}

// Counters is what a run did.
type Counters struct {
	Connections, Joined, Closed, TimedOut                  uint64
	PacketsSent, PacketsAcked, PacketsLost                 uint64
	Repairs, PacketsRepaired, RepairedLate                 uint64 // symbols sent; packets received that were repaired, and those of them that had been given up
	Bunches, ReliableBunches, Channels, Resent             uint64
	Messages, Blocks, Turns, ActorUpdates, Calls, Compares uint64
	Lies, LiesTaken                                        uint64 // bunches of liars; calls and actors of theirs that got through
}

// New returns the exercise of a script.
func New(w *simtest.Simulation, s *simtest.Script) (*Game, error) {
	opt, err := readOptions(s)
	if err != nil {
		return nil, err
	}
	g := &Game{w: w, opt: opt}
	if opt.mayhem {
		w.Only("bounds", "panic", "boot")
	}
	for _, h := range w.Hosts() {
		if h.IsServer() {
			h.SetTick(opt.serverTick)
		} else {
			h.SetTick(opt.tick)
		}
	}
	if opt.liars && opt.actors > 0 {
		if err := g.addLiars(s.Net); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Play plays a script.
func Play(s simtest.Script) simtest.Result {
	return simtest.Play(s, func(w *simtest.Simulation, s *simtest.Script) (simtest.Game, error) { return New(w, s) })
}

// Boot is simtest.Game's.
func (g *Game) Boot(h *simtest.Host) (simtest.Program, error) {
	if l := g.liars; l != nil && h != nil {
		if p, err := l.boot(h); p != nil || err != nil {
			return p, err
		}
	}
	p := &program{g: g, h: h, rng: h.Rand(), odd: g.w.Rand("odd things at " + h.Name())}
	if h.IsServer() {
		return p, p.listen()
	}
	return p, p.dial()
}

// Calm is simtest.Game's: nothing new is sent.
func (g *Game) Calm() {
	g.calm = true
	for _, h := range g.w.Hosts() {
		if p, ok := h.Program().(*program); ok && p.things != nil {
			for _, t := range p.things.all {
				p.check(t.SetDormant(false))
			}
		}
	}
}

// Pending is simtest.Game's: first everything must arrive, then everybody parts.
func (g *Game) Pending() string {
	if !g.parting {
		if what := g.arrived(); what != "" {
			return what
		}
		g.parting = true
		g.part()
	}
	for _, e := range g.ends {
		if e.result == nil && !e.crashed {
			return fmt.Sprintf("%v hasn't ended", e)
		}
	}
	g.compareEnds()
	return ""
}

// arrived is what must still arrive, or "".
func (g *Game) arrived() string {
	for _, h := range g.w.Hosts() {
		p, ok := h.Program().(interface{ pending() string })
		if !ok {
			return h.Name() + " hasn't booted"
		}
		if what := p.pending(); what != "" {
			return what
		}
	}
	return ""
}

// part ends all connections, this way and that.
func (g *Game) part() {
	for _, h := range g.w.Hosts() {
		p, honest := h.Program().(*program)
		if h.IsServer() || !honest {
			continue
		}
		e := p.client
		switch g.w.Rand(h.Name() + " parts").IntN(4) {
		case 0, 1:
			e.leave("the client goes")
		case 2:
			e.peer.leave("the server goes")
		case 3:
			e.abort("the client drops it")
		}
	}
}
