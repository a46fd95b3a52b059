package lockstep

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// Receive takes a packet that came over player's transport; call Tick after the last of a
// batch. After an error nothing has changed but a counter.
func (h *Host) Receive(now time.Duration, player int, p []byte) error {
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
	if player < 0 || player >= h.cfg.Players {
		return ErrNoPlayer
	}
	r := reader{p: p}
	e := readEnvelope(&r)
	c := &h.clients[player]
	switch {
	case r.bad:
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
	}
	return ErrMalformed
}

// hello begins a session, unless it is under way or was.
func (h *Host) hello(now time.Duration, player int, session uint32, r *reader) error {
	c := &h.clients[player]
	m, version, ok := readHello(r)
	switch {
	case !ok:
		return ErrMalformed
	case c.state != absent && session == c.session:
		c.lastHeard = now // said again; the welcome is on its way
		return nil
	case c.past(session):
		h.denyAgain(now, player, session)
		return ErrSession
	case version != wireVersion || m.agreement != h.cfg.agreement():
		h.deny(now, player, session, DenyVersion)
		return nil
	case m.have > h.log.next:
		h.deny(now, player, session, DenyAhead)
		return ErrAhead
	}
	start, snap, ok := h.source(m.have)
	if !ok {
		h.deny(now, player, session, DenyTooOld)
		return nil
	}
	h.deactivate(player, DropRestarted)
	c.life++
	w := h.logged
	base := h.log.offset(start)
	switch {
	case snap != nil:
		w = h.snapshot.turnStart
	case start < h.log.next:
		w = h.log.index[start%int64(len(h.log.index))]
	}
	c.begin(now, session, welcome{start: start, snapshot: len(snap), delay: w.delay, active: w.active, life: c.life}, snap, base, &h.cfg)
	return nil
}

// source is what takes the fewest bytes to bring a peer with have turns up to date.
func (h *Host) source(have int64) (start int64, snap []byte, ok bool) {
	s := &h.snapshot
	useful := s.ok && s.turn > have && h.log.holds(s.turn)
	if !h.log.holds(have) {
		return s.turn, s.data, useful
	}
	if useful && h.log.offset(have)+int64(len(s.data)) < h.log.offset(s.turn) {
		return s.turn, s.data, true
	}
	return have, nil, true
}

// input takes commands, hashes and acks.
func (h *Host) input(now time.Duration, player int, session uint32, r *reader) error {
	c := &h.clients[player]
	if session != c.session || c.state == absent {
		h.denyAgain(now, player, session)
		return ErrSession
	}
	in, err := readInput(r, &h.cfg.Config)
	if err != nil {
		return err
	}
	last := in.firstHash + int64(len(in.hashes)/8)
	if in.received > c.highest || in.executed > h.log.next || len(in.hashes) > 0 && last > in.executed ||
		in.count > 0 && in.first+int64(in.count) > h.log.next+int64(h.cfg.MaxDelay) {
		return ErrAhead
	}
	c.state, c.lastHeard = live, now
	c.acked(now, in.received, int64(h.cfg.Window))
	c.executed = max(c.executed, in.executed)
	if in.hold != noHold {
		c.roundTrip(now, in.stamp, in.held())
	}
	if h.active>>player&1 != 0 && !c.joining && in.life == c.life {
		h.takeInputs(c, &in)
	}
	h.takeHashes(player, &in)
	return nil
}

// takeInputs keeps those that are next. A peer begins with the first we haven't acked, so there
// are no gaps.
func (h *Host) takeInputs(c *client, in *input) {
	r := reader{p: in.inputs}
	for turn := in.first; turn < in.first+int64(in.count); turn++ {
		data := r.bytes(h.cfg.MaxInput)
		if turn < c.received && turn >= c.seen {
			h.stats.InputsTooLate++
		}
		c.seen = max(c.seen, turn+1)
		if turn == c.received {
			c.setInput(turn, data)
			c.received++
		}
	}
}

// takeHashes compares what can be compared.
func (h *Host) takeHashes(player int, in *input) {
	c := &h.clients[player]
	for i := 0; i+8 <= len(in.hashes); i += 8 {
		turn := in.firstHash + int64(i/8)
		if turn < c.hashNext {
			continue
		}
		c.hashNext = turn + 1
		if !c.desynced {
			h.takeHash(player, turn, binary.LittleEndian.Uint64(in.hashes[i:]))
		}
	}
	for h.active != 0 && h.judge.next < h.hashesIn() {
		h.decideHash()
	}
}

// takeHash compares one hash with the verdict, or keeps it for one.
func (h *Host) takeHash(player int, turn int64, hash uint64) {
	for h.judge.full(turn) {
		h.decideHash()
	}
	h.stats.HashesCompared++
	if turn >= h.judge.next {
		h.judge.add(turn, player, hash)
		return
	}
	if v := h.judge.verdict(turn); v.ok && v.hash != hash {
		h.desync(player, turn, hash, v)
	}
}

// hashesIn is the first turn for which not all players in the game have sent a hash.
func (h *Host) hashesIn() int64 {
	first := h.log.next
	for m := h.active; m != 0; m &= m - 1 {
		if c := &h.clients[bits.TrailingZeros64(m)]; !c.desynced {
			first = min(first, c.hashNext)
		}
	}
	return first
}

func (h *Host) decideHash() {
	turn, wrong := h.judge.decide()
	for ; wrong != 0; wrong &= wrong - 1 {
		p := bits.TrailingZeros64(wrong)
		if !h.clients[p].desynced {
			h.desync(p, turn, h.judge.hash(turn, p), h.judge.verdict(turn))
		}
	}
}

// desync makes the first difference of a player's session part of the next turn.
func (h *Host) desync(player int, turn int64, got uint64, v verdict) {
	h.clients[player].desynced = true
	h.stats.Desyncs++
	h.push(Event{Kind: Desynced, Player: player, Value: turn, Got: got, Want: v.hash, Tie: v.tie})
}
