package lockstep

import "time"

// SetSetup says with what the game begins: seed, map, settings, who is where, as a Setup's bytes or the game's own
// form. It may be called again until Start; each time the peers get it and must Accept it anew, and who hasn't isn't
// Ready. data is kept and must not change. Who joins later gets it as well.
func (h *Host) SetSetup(now time.Duration, data []byte) error {
	switch {
	case h.started:
		return ErrStarted
	case len(data) == 0 || len(data) > MaxSetup:
		return ErrSetup
	}
	h.setup = data
	h.version++
	for p := range h.clients {
		c := &h.clients[p]
		if c.state != absent {
			h.restart(now, p, c.welcome.start, turnStart{active: c.welcome.active, delay: c.welcome.delay}, c.snap)
		}
	}
	return nil
}

// Mend gives a player whose state is wrong the game's newest snapshot and the turns since, in its session. It is out of the game
// until it has caught up, so the others don't wait for it. A spectator gets the newest that its delay allows.
func (h *Host) Mend(now time.Duration, player int) error {
	if player < 0 || player >= len(h.clients) || h.clients[player].state != live {
		return ErrNoPlayer
	}
	s := h.snapshots.newest(h.log.next - h.clients[player].lag)
	if s == nil || !h.log.holds(s.turn) {
		return ErrSnapshot
	}
	h.deactivate(now, player, DropMended)
	h.restart(now, player, s.turn, s.turnStart, s.data)
	return nil
}

// Setup is what the game begins with, once it has come whole; version counts how often the host has set it. The
// bytes must not be changed.
func (p *Peer) Setup() (version int64, data []byte, ok bool) {
	if p.welcome.version == 0 || p.state == Connecting || len(p.setup) < p.welcome.setup {
		return 0, nil, false
	}
	return p.welcome.version, p.setup, true
}

// Accept says that the game is ready to begin with the setup: it agrees, and has loaded the map. A newer setup must
// be accepted anew.
func (p *Peer) Accept() error {
	version, _, ok := p.Setup()
	if !ok {
		return ErrSetup
	}
	p.accepted, p.news = version, true
	return nil
}
