package rollback

import (
	"encoding/binary"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// Tick sends a packet to each player and spectator, once each FrameTime, and checks who is silent. A time without calls of Tick and Receive, in which this
// machine stood still, counts as a second of silence at most, and as half of DropAfter.
func (s *Session) Tick(now time.Duration) {
	s.advanceTo(now)
	s.lookForSilence()
	if s.now-s.sentAt < s.cfg.FrameTime*3/4 { // ticks aren't even
		return
	}
	s.sentAt = s.now
	for p := range s.cfg.Players {
		pl := &s.players[p]
		switch {
		case pl.transport == nil || pl.left || pl.there && !s.due(pl.heard, pl.back, &pl.again): // who is dropped gets some, too: it may not know
		case s.err != nil:
			s.packet = binary.LittleEndian.AppendUint32(append(s.packet[:0], typeLeft, byte(s.cfg.Local)), s.agreement)
			s.give(pl.transport, s.packet)
		default:
			s.send(p)
		}
	}
	for i := range s.log.watchers {
		if w := &s.log.watchers[i]; w.transport != nil && w.next >= 0 && s.due(w.heard, longAgo, &w.again) {
			s.sendFinal(i)
		}
	}
}

// goneEvery is how often somebody gets a packet who isn't heard any more, and backEvery who is, although it is dropped: it may not know.
const goneEvery, backEvery = time.Second, time.Second / 8

// due reports whether somebody gets a packet in this frame who was heard last at a time, or after it was dropped; again is when it gets one although it isn't heard.
func (s *Session) due(heard, back time.Duration, again *time.Duration) bool {
	after := s.cfg.DropAfter
	if after < 0 {
		after = defaultDropAfter
	}
	if s.now-heard <= after {
		return true
	}
	if s.now < *again {
		return false
	}
	if *again = s.now + goneEvery; s.now-back < 2*goneEvery {
		*again = s.now + backEvery
	}
	return true
}

// NextDeadline is when Tick sends next.
func (s *Session) NextDeadline() time.Duration {
	return s.clock.Outside(s.sentAt + s.cfg.FrameTime*3/4)
}

// longestTick is how much of a time in which this machine stood still counts as silence of the others: it couldn't hear them.
const longestTick = time.Second

// advanceTo moves the time on.
func (s *Session) advanceTo(now time.Duration) {
	now = s.clock.At(now)
	gap := now - s.now
	switch {
	case !s.ticked:
		s.ticked, s.now = true, now
		return
	case gap <= 0:
		return
	}
	if gap > s.sure()/2 && s.unsure() && s.outStill < slowly { // what was said meanwhile is old
		s.outAt = now
		s.outStill++
	}
	s.now = now
	longest := longestTick
	if s.cfg.DropAfter > 0 {
		longest = min(longest, s.cfg.DropAfter/2)
	}
	still := gap - longest
	if still <= 0 {
		return
	}
	for p := range s.players {
		s.players[p].heard += still
	}
	for i := range s.log.watchers {
		s.log.watchers[i].heard += still
	}
}

func (s *Session) lookForSilence() {
	if !s.started || s.cfg.DropAfter < 0 || s.err != nil {
		return
	}
	gone := uint8(0)
	for mask := s.others(); mask != 0; {
		if p := lowest(&mask); s.now-s.players[p].heard > s.cfg.DropAfter {
			gone |= 1 << p
		}
	}
	if gone != 0 {
		s.silent(gone)
		s.settleDrops()
	}
}

// send sends a player what it lacks.
func (s *Session) send(to int) {
	pl := &s.players[to]
	onward, limit := pl.onward, maxPacket(s.cfg.MaxPacket, pl.transport)
	b := append(s.packet[:0], typePlay, byte(s.cfg.Local))
	b = binary.LittleEndian.AppendUint32(b, s.agreement)
	b = binary.AppendUvarint(b, uint64(s.frame))
	b = binary.AppendVarint(b, min(max(s.frame-pl.frame, -maxLead), maxLead))
	dropping := s.dropping
	if dropping != 0 && s.agreed() && !s.unsure() {
		dropping |= 1 << s.cfg.Local
	}
	b = append(b, dropping)
	for p := range s.cfg.Players {
		b = binary.AppendVarint(b, s.players[p].inputs.next-s.frame)
	}
	b = binary.AppendUvarint(b, uint64(max(s.checked, 0)/CheckEvery))
	if s.checked > 0 {
		b = binary.LittleEndian.AppendUint64(b, s.checks[s.checked/CheckEvery%checksKept].sum)
	}
	b = s.section(b, limit, to, s.cfg.Local)
	for mask := s.dropping &^ (1 << to); mask != 0; { // another may have less of them
		b = s.section(b, limit, to, lowest(&mask))
	}
	s.packet = b
	if !s.give(pl.transport, b) {
		pl.onward = onward
	}
}

// section appends the inputs of a player that another lacks, as far as there is room.
func (s *Session) section(b []byte, limit, to, of int) []byte {
	in, pl := &s.players[of].inputs, &s.players[to]
	acked := pl.next[of]
	if acked >= in.next || acked < in.next-inputFrames || len(b)+sectionHead > limit {
		return b
	}
	start, first := len(b), goOn(acked, pl.onward[of])
	b = binary.AppendUvarint(append(b, byte(of)), uint64(first))
	b, n := appendInputs(b, limit, in.zero, first, in.next-first, func(f int64) []byte { return in.at(in.ring, f) })
	if n == 0 {
		return b[:start]
	}
	pl.onward[of] = rest(first+int64(n), in.next)
	return b
}

// goOnFrames is how far beyond what is acked a packet of inputs begins at most.
const goOnFrames = 64

// goOn is the frame that a packet of inputs begins with: the first that isn't acked, or onward, the rest of the packet before, so that what has no room in one packet
// doesn't wait for an ack.
func goOn(acked, onward int64) int64 {
	if onward > acked && onward < acked+goOnFrames {
		return onward
	}
	return acked
}

// rest is the frame behind those of a packet, or 0 when that had all there are.
func rest(behind, end int64) int64 {
	if behind == end {
		return 0
	}
	return behind
}

// give reports whether the transport has taken the packet.
func (s *Session) give(t lockstep.Transport, b []byte) bool {
	if t.Send(s.clock.Outside(s.now), b) != nil {
		s.stats.NotTaken++
		return false
	}
	s.stats.PacketsOut++
	s.stats.BytesOut += uint64(len(b))
	return true
}

// maxPacket is the largest packet that a transport takes.
func maxPacket(most int, t lockstep.Transport) int {
	if m, ok := t.(interface{ MaxPacket() int }); ok && m.MaxPacket() > 0 {
		return min(most, m.MaxPacket())
	}
	return most
}
