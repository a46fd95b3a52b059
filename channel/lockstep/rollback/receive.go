package rollback

import (
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// said is a player's packet.
type said struct {
	frame, lead int64
	dropping    uint8
	agreed      bool // all who are left with it have dropped these
	next        [MaxPlayers]int64
	check       check
	sections    [MaxPlayers]section
	count       int
}

type section struct {
	player int
	first  int64
	run    run
}

// Receive takes a packet from another player or a spectator; from is its number, as given to Connect. An error means that the
// packet was refused; except for a counter nothing has changed. Errors: ErrMalformed, ErrAgreement, ErrNoPlayer, ErrAhead.
func (s *Session) Receive(now time.Duration, from int, p []byte) error {
	s.advanceTo(now)
	err := s.receive(from, p)
	if err != nil {
		s.stats.Refused++
	} else {
		s.stats.PacketsIn++
	}
	return err
}

func (s *Session) receive(from int, p []byte) error {
	r := wire.Reader{P: p}
	kind, number, agreement := r.Uint8(), int(r.Uint8()), r.Uint32()
	switch {
	case r.Bad || kind != typePlay && kind != typeWatch && kind != typeLeft:
		return ErrMalformed
	case agreement != s.agreement:
		return ErrAgreement
	case number != from || from == s.cfg.Local:
		return ErrNoPlayer
	case kind == typeWatch:
		return s.receiveWatch(from-s.cfg.Players, &r)
	case from < 0 || from >= s.cfg.Players || s.players[from].transport == nil:
		return ErrNoPlayer
	case kind == typeLeft:
		return s.receiveLeft(from, &r)
	}
	var in said
	err := s.parse(&r, from, &in)
	pl := &s.players[from]
	gone, dropped := s.dropping>>from&1 != 0, in.dropping>>s.cfg.Local&1 != 0
	switch {
	case err != nil && (err != ErrAhead || !dropped): // they may have played on and be far ahead
		return err
	case gone:
		pl.back = s.now
	}
	switch {
	case s.given>>from&1 != 0:
		return err
	case dropped && in.agreed && s.yields(from, in.dropping):
		s.saidOut()
	case gone:
		return err
	case dropped && s.outnumbered(from, in.dropping): // it counts as silent, and isn't counted on
	case dropped:
		s.silent(1 << from)
		s.settleDrops()
	default:
		s.take(from, &in)
	}
	return nil
}

// receiveLeft takes a player's word that its game has ended.
func (s *Session) receiveLeft(from int, r *wire.Reader) error {
	if !r.Done() {
		return ErrMalformed
	}
	if pl := &s.players[from]; !pl.left {
		pl.left = true
		s.drop(from)
	}
	return nil
}

// parse reads a packet, and checks all that can be checked.
func (s *Session) parse(r *wire.Reader, from int, in *said) error {
	in.frame, in.lead, in.dropping = readFrame(r), readVarint(r), r.Uint8()
	in.agreed = in.dropping>>from&1 != 0
	in.dropping &^= 1 << from
	for p := range s.cfg.Players {
		in.next[p] = in.frame + readVarint(r)
	}
	in.check.frame = readFrame(r)
	if in.check.frame > 0 {
		in.check.sum = r.Uint64()
	}
	ahead := in.frame > s.frame+farthest || in.next[s.cfg.Local] > s.players[s.cfg.Local].inputs.next
	for len(r.P) > 0 && !r.Bad {
		if in.count == len(in.sections) {
			return ErrMalformed
		}
		sec := &in.sections[in.count]
		sec.player, sec.first = int(r.Uint8()), readFrame(r)
		sec.run = readRun(r, s.cfg.InputSize)
		in.count++
		if r.Bad || sec.player >= s.cfg.Players || sec.player == s.cfg.Local || sec.player != from && in.dropping>>sec.player&1 == 0 {
			return ErrMalformed
		}
		ahead = ahead || sec.first+int64(sec.run.count) > s.frame+farthest
	}
	if r.Bad || in.lead < -maxLead || in.lead > maxLead || in.check.frame > in.frame/CheckEvery || in.dropping>>s.cfg.Players != 0 {
		return ErrMalformed
	}
	in.check.frame *= CheckEvery
	for p := range s.cfg.Players {
		ahead = ahead || in.next[p] < 0 || in.next[p] > s.frame+farthest
	}
	if ahead {
		return ErrAhead
	}
	return nil
}

// take applies a packet.
func (s *Session) take(from int, in *said) {
	pl := &s.players[from]
	pl.heard, pl.there = s.now, true
	for p := range s.cfg.Players {
		pl.next[p] = max(pl.next[p], in.next[p])
	}
	pl.dropping |= in.dropping
	if in.frame >= pl.frame { // not overtaken
		pl.frame = in.frame
		s.noteLead(pl, in.lead)
	}
	if in.check.frame > pl.check.frame {
		pl.check = in.check
		s.compare(from)
	}
	for i := range in.count {
		sec := &in.sections[i]
		if s.players[sec.player].out {
			continue
		}
		own := &s.players[sec.player].inputs
		sec.run.each(s.cfg.InputSize, own.zero, func(i int, b []byte) {
			if sec.first+int64(i) == own.next {
				s.arrived(sec.player, b)
			}
		})
	}
	s.silent(in.dropping)
	s.begin()
	s.settleDrops()
}

// begin starts the frames once everybody was heard of.
func (s *Session) begin() {
	if s.started {
		return
	}
	for mask := s.others(); mask != 0; {
		if !s.players[lowest(&mask)].there {
			return
		}
	}
	s.started = true
	for mask := s.others(); mask != 0; {
		s.players[lowest(&mask)].heard = s.now
	}
	s.tell(Event{Kind: Started})
}
