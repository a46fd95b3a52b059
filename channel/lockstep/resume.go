package lockstep

import (
	"crypto/sha256"
	"encoding/binary"
)

// Resume is where another host, or the same after a restart, takes a game up: on the machine of a player, who has the
// state, or from a file that has it. The commands of turns after it are lost.
type Resume struct {
	// Turn is the number of turns executed, Delay and Active how things stood then.
	Turn   int64
	Delay  int
	Active uint64
	// Generation is that of the host with which they were executed, Peer.Generation: peers that were with it are known to have the same turns.
	Generation int64
	// State is the game's snapshot before Turn. It is kept and must not change.
	State []byte
}

// Resume is where a new host can take up the game from this Peer: put the game's State in. Of those who are left
// the one who has executed most turns should be host; who is ahead of it gets its State. Call it between Done and Next.
func (p *Peer) Resume() Resume {
	return Resume{Turn: p.next, Delay: p.delay, Active: p.active, Generation: p.Generation()}
}

// Generation names the host that this Peer is with: which one of the game it is, and which of several that have taken it up at once, by their Secrets.
// It is for the PeerConfig of the next session.
func (p *Peer) Generation() int64 {
	if p.welcome.generation == 0 {
		return p.cfg.Generation // nothing has come of the host
	}
	return p.welcome.generation
}

func (r *Resume) valid(c *HostConfig) bool {
	return r.Turn >= 0 && r.Turn < 1<<56 && r.Delay >= 1 && r.Delay <= c.MaxDelay && r.Active&^c.mask() == 0 && r.Generation >= 0 && r.Generation < maxGeneration &&
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
// up to where we took over, and ours. Another host that took over as well has others.
func (h *Host) knows(have, g int64) bool {
	r := h.cfg.Resume
	switch {
	case g == h.generation || have == 0 && h.log.first == 0:
		return true
	case r == nil:
		return false
	}
	return g == r.Generation && have <= r.Turn
}

// A generation is the number of hosts before, and 40 bits of the host's own.
const (
	ownBits       = 40
	maxGeneration = 1 << 59
)

// later reports whether generation a is that of a later host than b.
func later(a, b int64) bool { return a>>ownBits > b>>ownBits }

// newGeneration is the one of a Host, never 0. Without a Secret two hosts that take up one game at once have the same.
func newGeneration(cfg *HostConfig) int64 {
	sum := sha256.Sum256(append(cfg.Secret[:], "generation"...))
	g := int64(binary.LittleEndian.Uint64(sum[:])&(1<<ownBits-1) | 1)
	if cfg.Resume != nil {
		g |= (cfg.Resume.Generation>>ownBits + 1) << ownBits
	}
	return g
}
