package lockstep

import (
	"crypto/sha256"
	"encoding/binary"
)

// Resume is the state from which another host, or the same one after a restart, continues a game. It comes from a player's
// Peer, or from a file. Turns after it are lost.
type Resume struct {
	// Turn is the number of turns executed. Delay and Active are the input delay, in turns, and the mask of players then.
	Turn   int64
	Delay  int
	Active uint64
	// Generation is the Peer.Generation with which they were executed. Peers with the same one have the same turns.
	Generation int64
	// State is the game's snapshot before Turn. It is kept and must not change.
	State []byte
}

// Resume returns what a new host needs to continue the game from this Peer's turn; the caller sets State. Of the
// remaining players the one that has executed the most turns should be host: a player ahead of the host gets its State.
// Call Resume between Done and Next. While the game's state is of an earlier session (PeerConfig.Have) and the host hasn't answered, or its snapshot wasn't taken, Delay and
// Active aren't known, and are 0: then keep what Resume of that session's Peer returned.
func (p *Peer) Resume() Resume {
	k := p.game()
	return Resume{Turn: k.turn, Delay: k.delay, Active: k.active, Generation: k.generation}
}

// Generation identifies the host of Turn's turns: how many hosts the game had before, and, by its Secret, which of several that
// took over at once. Give it to the PeerConfig of the next session.
func (p *Peer) Generation() int64 { return p.game().generation }

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
