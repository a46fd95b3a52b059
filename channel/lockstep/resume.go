package lockstep

// Resume is where another host, or the same after a restart, takes a game up: on the machine of a player, who has the
// state, or from a file that has it. The commands of turns after it are lost.
type Resume struct {
	// Turn is the number of turns executed, Delay and Active how things stood then.
	Turn   int64
	Delay  int
	Active uint64
	// Generation counts the hosts of a game; the first one's is 0.
	Generation int64
	// State is the game's snapshot before Turn. It is kept and must not change.
	State []byte
}

// Resume is where a new host can take up the game from this Peer: put the game's State in. Of those who are left
// the one who has executed most turns should be host; who is ahead of it gets its State. Call it between Done and Next.
func (p *Peer) Resume() Resume {
	return Resume{Turn: p.next, Delay: p.delay, Active: p.active, Generation: p.welcome.generation + 1}
}

// Generation counts the hosts that the game has had; for the PeerConfig of the next session.
func (p *Peer) Generation() int64 { return p.welcome.generation }

func (r *Resume) valid(c *HostConfig) bool {
	return r.Turn >= 0 && r.Turn < 1<<56 && r.Delay >= 1 && r.Delay <= c.MaxDelay && r.Active&^c.mask() == 0 && r.Generation > 0 &&
		len(r.State) > 0 && len(r.State) <= c.MaxSnapshot
}

// resume begins the log where r says. Who was in the game is out until it joins again.
func (h *Host) resume(r *Resume) {
	h.delay = r.Delay
	h.logged = turnStart{active: r.Active, delay: r.Delay}
	h.log.first, h.log.next = r.Turn, r.Turn
	h.snapshots.add(snapshot{r.Turn, r.State, h.logged}, r.Turn, 0)
	for p := range h.cfg.Players {
		if r.Active>>p&1 != 0 {
			h.push(Event{Kind: Dropped, Player: p, Value: int64(DropResumed)})
		}
	}
}

// knows reports whether a peer with have turns of generation g's host has the same ones as we: those of the host before
// up to where we took over, and ours.
func (h *Host) knows(have, g int64) bool {
	r := h.cfg.Resume
	switch {
	case g == h.generation() || have == 0 && h.log.first == 0:
		return true
	case r == nil:
		return false
	}
	return g == r.Generation-1 && have <= r.Turn
}

func (h *Host) generation() int64 {
	if h.cfg.Resume == nil {
		return 0
	}
	return h.cfg.Resume.Generation
}
