package fleet

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/netconn/fleet/kv"
)

// Where a party is, in the store below partyKey, for Life/2:
//
//	version 1 | placement (8 bytes) | revision (8 bytes) | ID of the server
//
// While a placer books its seats, the revision is 0 and there is no ID: a claim, for Deadline at most. Other placers wait for it, so that one books.
const partyVersion = 1

// partyPoll is the time between two looks at another placer's claim.
const partyPoll = 50 * time.Millisecond

var errParty = errors.New("fleet: not a party's placement")

func encodeParty(server string, t Ticket) []byte {
	b := []byte{partyVersion}
	b = binary.LittleEndian.AppendUint64(b, t.placement)
	b = binary.LittleEndian.AppendUint64(b, t.revision)
	return append(b, server...)
}

// parseParty returns where a party is. server is "" for a claim.
func parseParty(b []byte) (server string, t Ticket, err error) {
	if len(b) < 17 || b[0] != partyVersion {
		return "", t, errParty
	}
	server = string(b[17:])
	t = Ticket{0, binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])}
	if claim := t.revision == 0; claim && server == "" {
		return "", t, nil
	} else if claim || !validName(server) {
		return "", Ticket{}, errParty
	}
	t.server = serverHash(server)
	return server, t, nil
}

// stepParty does what a want of a party that isn't booking can do now.
func (p *Placer) stepParty(w *want) {
	c := &w.party
	if c.giveUp(p.now) && w.step == founds {
		w.step, w.told = reads, true // was it written?
	}
	switch {
	case c.busy() || !p.list.fresh() || p.now < w.next:
	case w.step == reads:
		c.get(&p.ask, p.now)
	case w.step == claims && !c.known:
		w.step = reads
	case w.step == claims:
		c.put(&p.ask, p.now, encodeParty("", Ticket{placement: w.placement}), p.cfg.Deadline)
	case w.step == founds:
		c.put(&p.ask, p.now, encodeParty(w.placed.Server.ID, w.placed.Ticket), p.list.timing.partyTTL())
	}
}

// partyResult is the answer of the store about a party.
func (p *Placer) partyResult(w *want, e kv.Event) {
	put := w.party.kind == kv.Put
	w.party.result(e)
	switch {
	case put && e.Status == kv.OK && w.step == founds:
		p.finish(w, nil)
		return
	case put && e.Status == kv.OK:
		w.step = chooses
		return
	case put:
		w.told = w.told || w.step == founds && e.Status != kv.Conflict
		w.step = reads
		return
	case !w.party.known:
		return
	case !p.list.fresh(): // whether its server lives isn't known
		return
	}
	server, t, err := parseParty(w.party.value)
	i := p.list.get(server)
	switch {
	case err == nil && i != nil && i.State == Ready && server != w.Not: // it has its seats
		if t.placement != w.placement {
			p.takeBack(w)
		}
		w.placed = Placement{Server: *i, Ticket: t}
		p.finish(w, nil)
	case err == nil && server == "" && t.placement != w.placement:
		w.next = p.now + partyPoll
	case err == nil && server == "" && w.at != nil:
		w.step = founds
	case err == nil && server == "":
		w.step = chooses
	default: // nobody's, or of a server that is gone
		w.step = claims
	}
}

// unclaim lets other placers claim a party that this one has no seats for.
func (p *Placer) unclaim(w *want) {
	if _, t, err := parseParty(w.party.value); err == nil && w.party.known && t.revision == 0 && t.placement == w.placement {
		p.ask.ask(kv.Op{Kind: kv.Delete, Key: w.party.key, Expect: w.party.rev})
	}
}
