package migrate

import (
	"fmt"
	"slices"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// ReceivedBunch implements channel.Handler: it takes the host's messages.
func (s *session) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	r := read(in)
	switch kind := r.uvarint(); kind {
	case kindPlan:
		p := r.plan()
		if r.done() == nil && p.epoch >= s.plan.epoch {
			p.keep(s.plan.key)
			s.plan = p
		}
	case kindTokens:
		s.takeTokens(&r)
	case kindChunk:
		s.takeChunk(&r)
	case kindLeave:
		s.leaves = true
	default:
		r.fail("unknown kind %d", kind)
	}
	if err := r.done(); err != nil {
		ch.Conn().Fail(err, false)
	}
}

// takeTokens keeps those of a candidate, and of no more candidates than there may be.
func (s *session) takeTokens(r *reader) {
	id := r.uint64()
	var list []netcode.Token
	for range tokensEach {
		list = append(list, slices.Clone(r.bytes(netcode.ConnectTokenBytes)))
	}
	if r.done() != nil {
		return
	}
	if s.tokens[id] == nil && len(s.tokens) >= 2*maxCandidates { // of who isn't one any more
		for old := range s.tokens {
			if !slices.ContainsFunc(s.plan.candidates, func(c candidate) bool { return c.id == old }) {
				delete(s.tokens, old)
				delete(s.used, old)
			}
		}
		if len(s.tokens) >= 2*maxCandidates {
			r.fail("tokens for too many candidates")
			return
		}
	}
	s.keepTokens(id, list, 0)
}

func (s *session) keepTokens(id uint64, list []netcode.Token, used int) {
	if s.tokens == nil {
		s.tokens, s.used = map[uint64][]netcode.Token{}, map[uint64]int{}
	}
	s.tokens[id], s.used[id] = list, used
}

// takeChunk takes a part of a checkpoint.
func (s *session) takeChunk(r *reader) {
	number, total, at := r.uvarint(), r.uvarint(), r.uvarint()
	if r.err != nil {
		return
	}
	if at == 0 {
		s.part, s.number, s.total, s.from = s.part[:0], number, total, s.f.now
	}
	switch {
	case total > uint64(s.f.cfg.MaxCheckpoint):
		r.err = fmt.Errorf("%w: %d bytes", ErrLarge, total)
	case number != s.number || total != s.total || at != uint64(len(s.part)) || len(r.data) == 0 || at+uint64(len(r.data)) > total:
		r.fail("an unexpected chunk at byte %d of %d", at, total)
	}
	if r.err != nil {
		return
	}
	s.part = append(s.part, r.data...)
	r.data = nil
	if uint64(len(s.part)) == total {
		s.whole, s.part = s.part, s.whole[:0]
		s.wholeAt = s.from
		s.f.Counters.Checkpoints++
	}
}
