package lockstep

import "time"

// SetSetup sets what the game begins with: seed, map, settings, seats, as a Setup's bytes or in the game's own form. All
// peers get it, those that join later too. It may be called again until Start. Each time the players must Accept it anew;
// until then they aren't Ready. data is kept and must not change. Errors: ErrStarted, ErrSetup.
func (h *Host) SetSetup(now time.Duration, data []byte) error {
	switch {
	case h.started:
		return ErrStarted
	case len(data) == 0 || len(data) > MaxSetup:
		return ErrSetup
	}
	now = h.clock.At(now)
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

// Mend gives a player whose state is wrong the newest snapshot and the turns since, without a new session. The player is
// out of the game until it has caught up, so the others don't wait for it. A spectator gets the newest snapshot that is
// as old as SpectatorDelay. Errors: ErrNoPlayer when player isn't connected, ErrSnapshot when there is no snapshot.
func (h *Host) Mend(now time.Duration, player int) error {
	if player < 0 || player >= len(h.clients) || h.clients[player].state != live {
		return ErrNoPlayer
	}
	s := h.snapshots.newest(h.log.next - h.clients[player].lag)
	if s == nil || !h.log.holds(s.turn) {
		return ErrSnapshot
	}
	now = h.clock.At(now)
	h.deactivate(now, player, DropMended)
	h.restart(now, player, s.turn, s.turnStart, s.data)
	return nil
}

// Setup returns what the game begins with (Host.SetSetup); ok is false until it has arrived whole. version is the number
// of SetSetup calls. data must not be changed.
func (p *Peer) Setup() (version int64, data []byte, ok bool) {
	if p.welcome.version == 0 || p.state == Connecting || len(p.setup) < p.welcome.setup {
		return 0, nil, false
	}
	return p.welcome.version, p.setup, true
}

// Accept tells the host that this player is ready to begin with the setup, for example has loaded the map. A newer setup
// must be accepted anew. Error: ErrSetup when no setup has arrived.
func (p *Peer) Accept() error {
	version, _, ok := p.Setup()
	if !ok {
		return ErrSetup
	}
	p.accepted, p.news = version, true
	return nil
}
