package lockstep

import (
	"encoding/binary"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// Receive takes a packet that came over player's transport. Call Tick after the last packet of a batch. An error means
// that the packet was refused; except for a counter nothing has changed. Errors: ErrMalformed, ErrPlayer, ErrNoPlayer,
// ErrSession, ErrAhead, ErrOversize.
func (h *Host) Receive(now time.Duration, player int, p []byte) error {
	now = h.clock.At(now)
	h.still.look(now, h.cfg.sendEvery())
	err := h.receive(now, player, p)
	switch err {
	case nil:
		h.stats.PacketsReceived++
		h.stats.BytesReceived += uint64(len(p))
	case ErrMalformed:
		h.stats.RefusedMalformed++
	case ErrPlayer, ErrNoPlayer:
		h.stats.RefusedPlayer++
	case ErrSession:
		h.stats.RefusedSession++
	case ErrAhead:
		h.stats.RefusedAhead++
	case ErrOversize:
		h.stats.RefusedOversize++
	}
	return err
}

func (h *Host) receive(now time.Duration, player int, p []byte) error {
	if player < 0 || player >= len(h.clients) {
		return ErrNoPlayer
	}
	r := wire.Reader{P: p}
	e := readEnvelope(&r)
	c := &h.clients[player]
	switch {
	case r.Bad:
		return ErrMalformed
	case e.player != player:
		return ErrPlayer
	case c.transport == nil:
		return ErrSession
	}
	switch e.typ {
	case typeHello:
		return h.hello(now, player, e.session, &r)
	case typeInput:
		return h.input(now, player, e.session, &r)
	case typeReady, typeParts:
		if e.session != c.key || c.state != live {
			return ErrSession
		}
		if e.typ == typeParts {
			return h.takeParts(now, player, &r)
		}
		version := r.Count()
		if !r.Done() || version > h.version {
			return ErrMalformed
		}
		c.accepted = version
		return nil
	}
	return ErrMalformed
}

// hello begins a session, unless it is under way or was.
func (h *Host) hello(now time.Duration, player int, session uint32, r *wire.Reader) error {
	c := &h.clients[player]
	m, version, ok := readHello(r)
	switch {
	case !ok:
		return ErrMalformed
	case c.state == absent && c.past(session):
		h.denyAgain(now, player, session, false)
		return ErrSession
	case version != wireVersion && c.state != absent && session == c.session:
		return ErrSession // whoever has this session has our version
	case version != wireVersion:
		h.deny(now, player, session, DenyVersion)
		return nil
	case !proven(c.transport) && m.proof != h.proof(player, session):
		h.challenge(now, player, session)
		return nil
	case m.agreement != h.cfg.agreement():
		h.deny(now, player, session, DenyVersion)
		return nil
	case c.state != absent && session == c.session:
		c.lastHeard = now // said again; the welcome is on its way
		return nil
	case c.past(session):
		h.denyAgain(now, player, session, false)
		return ErrSession
	case later(m.generation, h.generation):
		h.deny(now, player, session, DenyOldHost)
		return nil
	case m.have > h.log.next && m.generation == h.generation:
		h.deny(now, player, session, DenyAhead)
		return ErrAhead
	}
	if !h.knows(m.have, m.generation) {
		m.have = noTurns
	}
	start, at, snap, why := h.source(m.have, m.maxSnapshot, c.lag)
	if why != 0 {
		h.deny(now, player, session, why)
		return nil
	}
	h.deactivate(now, player, DropRestarted)
	c.life++
	c.begin(now, session, &h.cfg)
	h.restart(now, player, start, at, snap)
	return nil
}

// restart begins a player's stream before turn start, when things stood as at says, or with the snapshot before it.
func (h *Host) restart(now time.Duration, player int, start int64, at turnStart, snap []byte) {
	c := &h.clients[player]
	h.forget(player)
	w := welcome{key: keyOf(h.proof(player, c.session)), version: h.version, start: start, delay: at.delay, active: at.active, life: c.life, generation: h.generation}
	c.restart(now, w, h.setup, snap, h.log.offset(start), &h.cfg)
}

// challenge asks for a proof that the peer gets what is sent to it. It is shorter than the Hello.
func (h *Host) challenge(now time.Duration, player int, session uint32) {
	h.stats.Challenges++
	h.send(now, &h.clients[player], binary.LittleEndian.AppendUint64(h.open(typeChallenge, player, session), h.proof(player, session)))
}

// noTurns stands for turns that another host's log has and ours hasn't.
const noTurns = -1

// source is what takes the fewest bytes to bring a peer with have turns up to date.
func (h *Host) source(have, maxSnapshot, lag int64) (start int64, at turnStart, snap []byte, why DenyReason) {
	s := h.snapshots.newest(h.log.next - lag)
	useful := s != nil && s.turn > have && h.log.holds(s.turn)
	fits := useful && int64(len(s.data)) <= maxSnapshot
	switch {
	case h.log.holds(have) && !(fits && h.log.offset(have)+int64(len(s.data)) < h.log.offset(s.turn)):
		return have, h.before(have), nil, 0
	case fits:
		return s.turn, s.turnStart, s.data, 0
	case useful:
		return 0, at, nil, DenySnapshot
	}
	return 0, at, nil, DenyTooOld
}

// before is how things stood before a turn that the log holds.
func (h *Host) before(turn int64) turnStart {
	if turn < h.log.next {
		return h.log.index[turn%int64(len(h.log.index))]
	}
	return h.logged
}

// input takes commands, hashes and acks.
func (h *Host) input(now time.Duration, player int, key uint32, r *wire.Reader) error {
	c := &h.clients[player]
	in, err := readInput(r, &h.cfg.Config)
	if err != nil {
		return err
	}
	if key != c.key || c.state == absent {
		h.denyAgain(now, player, key, true)
		return ErrSession
	}
	if in.received < c.welcome.base {
		return nil // from before the stream was begun anew
	}
	last := in.firstHash + int64(len(in.hashes)/8)
	if in.received > c.highest || in.executed > h.log.next || len(in.hashes) > 0 && last > in.executed ||
		in.count > 0 && in.first+int64(in.count) > h.log.next+int64(h.cfg.MaxDelay) {
		return ErrAhead
	}
	plays := h.active>>player&1 != 0 && !c.joining && in.life == c.life
	if plays && h.overBudget(c, &in) {
		return ErrOversize
	}
	c.state, c.lastHeard = live, now
	c.acked(now, in.received, int64(h.cfg.Window))
	if h.started && c.ack >= c.turnsAt() {
		c.snap = nil
	}
	c.executed = max(c.executed, in.executed)
	if in.hold != noHold {
		c.roundTrip(now, in.stamp, in.held(), &h.still)
	}
	if plays {
		h.takeInputs(c, &in)
	}
	h.takeHashes(player, &in)
	return nil
}

// overBudget reports whether in has more commands than the player's budget allows. What is behind a gap is looked at by takeInOrder.
func (h *Host) overBudget(c *client, in *input) bool {
	if in.first > c.received {
		return false
	}
	b, r := c.budget, wire.Reader{P: in.inputs}
	for turn := in.first; turn < in.first+int64(in.count); turn++ {
		n := len(r.Bytes(h.cfg.MaxInput))
		if turn < c.received {
			continue
		}
		if n > b.left {
			return true
		}
		b.spend(&h.cfg.Config, n)
	}
	return false
}

// takeInputs keeps those that aren't collected, also behind a gap.
func (h *Host) takeInputs(c *client, in *input) {
	r := wire.Reader{P: in.inputs}
	for turn := in.first; turn < in.first+int64(in.count); turn++ {
		data := r.Bytes(h.cfg.MaxInput)
		switch {
		case turn >= c.received:
			c.setInput(turn, data)
		case c.tooLate(turn):
			h.stats.InputsTooLate++
		}
	}
	c.takeInOrder(&h.cfg.Config)
}
