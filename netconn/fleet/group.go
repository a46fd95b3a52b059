package fleet

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Where a party is, in the store below partyKey, for Life/2, and a player's last placement below playerKey, for as long as there may be a seat for it:
//
//	version 2 | placement (8 bytes) | stamp of a revision (8 bytes) | its seats (2 bytes) | ID of the server
//
// While a placer books a party's seats, the stamp is 0 and there is no ID: a claim, for Deadline at most. Other placers wait for it, so that one books.
const partyVersion = 2

// partyPoll is the time between two looks at another placer's claim.
const partyPoll = 50 * time.Millisecond

var errParty = errors.New("fleet: not a party's placement")

func encodeParty(server string, t Ticket) []byte {
	b := []byte{partyVersion}
	b = binary.LittleEndian.AppendUint64(b, t.placement)
	b = binary.LittleEndian.AppendUint64(b, t.stamp)
	b = binary.LittleEndian.AppendUint16(b, uint16(t.seats))
	return append(b, server...)
}

// parseParty returns where a party is. server is "" for a claim.
func parseParty(b []byte) (server string, t Ticket, err error) {
	if len(b) < 19 || b[0] != partyVersion {
		return "", t, errParty
	}
	server = string(b[19:])
	t = Ticket{0, binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:]), int(binary.LittleEndian.Uint16(b[17:]))}
	if claim := t.stamp == 0; claim && server == "" {
		return "", t, nil
	} else if claim || !validName(server) {
		return "", Ticket{}, errParty
	}
	t.server = serverHash(server)
	return server, t, nil
}

// stepGroup does what a want of a party or a known player that isn't booking can do now.
func (p *Placer) stepGroup(w *want) {
	c := &w.group
	if c.giveUp(p.now) && w.step == founds {
		w.step, w.told = reads, true // was it written?
	}
	switch {
	case c.waits(p.now) || !p.list.fresh() || p.now < w.next:
	case w.step == reads:
		c.get(&p.ask, p.now)
	case w.step == claims && !c.known:
		w.step = reads
	case w.step == claims:
		c.put(&p.ask, p.now, encodeParty("", Ticket{placement: w.placement}), p.cfg.Deadline)
	case w.step == founds:
		ttl := p.list.timing.young()
		if w.Party == "" {
			ttl = p.list.timing.seatsTTL()
		}
		c.put(&p.ask, p.now, encodeParty(w.placed.Server.ID, w.placed.Ticket), ttl)
	}
}

// groupResult is the answer of the store about a party or a player.
func (p *Placer) groupResult(w *want, e kv.Event) {
	put := w.group.kind == kv.Put
	w.group.result(e)
	switch {
	case put && e.Status == kv.OK && w.step == founds:
		if r := p.rooms[w.beforeAt]; r != nil && (r != w.at || slot(w.before.placement) != slot(w.placement)) {
			r.takeBack(w.before)
		}
		p.finish(w, nil)
		return
	case put && e.Status == kv.OK:
		w.step = chooses
		return
	case put:
		w.told = w.told || w.step == founds && e.Status != kv.Conflict
		w.step = reads
		return
	case !w.group.known:
		return
	case !p.list.fresh(): // whether its server lives isn't known
		return
	}
	server, t, err := parseParty(w.group.value)
	i := p.list.get(server)
	again := err == nil && i != nil && i.State == Ready && (w.Party != "" || server != w.Not) // it has its seats
	if w.Party == "" {
		w.before, w.beforeAt = t, server
		again = again && p.asBefore(w, i)
	}
	switch {
	case again:
		if t.placement != w.placement {
			p.takeBack(w)
		}
		w.placed = Placement{Server: *i, Ticket: t}
		p.finish(w, nil)
	case w.Party == "" && w.at != nil && w.placement == w.fresh:
		w.step = founds
	case w.Party == "": // a seat that it renewed may have been revoked by who placed its player meanwhile
		w.step, w.at = chooses, nil
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

// asBefore reports whether a player is given its last placement, on the server i, again.
func (p *Placer) asBefore(w *want, i *Info) bool {
	r := p.rooms[i.ID]
	return (w.Server == "" || w.Server == i.ID) && p.open(w, i) && w.isOf(i) && p.isNear(w, i) && p.list.young(w.group.rev) &&
		r != nil && r.ok && r.rec.has(w.before.placement)
}

// unclaim lets other placers claim a party that this one has no seats for.
func (p *Placer) unclaim(w *want) {
	if _, t, err := parseParty(w.group.value); err == nil && w.group.known && t.stamp == 0 && t.placement == w.placement {
		p.ask.ask(kv.Op{Kind: kv.Delete, Key: w.group.key, Expect: w.group.rev})
	}
}
