package netcode

import (
	"container/heap"
	"container/list"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
)

// mapping is the keys of an address that showed a token and may yet show that it is there.
type mapping struct {
	addr       netip.AddrPort
	send, recv *sealer
	timeout    time.Duration // the token's; negative never
	clientID   uint64
	mac        [macBytes]byte
	path       PathID
	since      time.Duration
	until      time.Duration
	first      uint64        // sequence of the first challenge it got: an older one is a replay
	askAgain   time.Duration // when Admit may be asked about it once more
	index      int           // in the heap
	group      netip.Addr
	place      *list.Element // among those of the group; nil where that isn't bounded
}

const (
	// answerTime is how long a client has to answer its challenge, at most; its token's timeout when that is less.
	answerTime = 10 * time.Second
	// placeTime is how long a mapping can't be displaced by another, of its address or client id or, when there is no room, of its network or of any: several
	// round trips, in which an honest client answers. So an attacker who repeats others' requests, however fast, keeps nobody out. When there is no room, one
	// gives way at once to a client id that has at least two fewer, and after placeTime to one that has no more. The client id that was displaced displaces
	// nobody in the second way for answerTime: who has many accounts can't take each place that becomes free. An id that has some isn't refused for that: an
	// attacker may have repeated its requests.
	placeTime = time.Second
	// mappingsPerID bounds the mappings of one client id, mappingsPerAddr those of one address and port. There must be more than one: otherwise
	// an attacker who has tokens and forges the address would keep the client at that address out.
	mappingsPerID   = 8
	mappingsPerAddr = 8
	// minMappings is the mappings of the smallest server.
	minMappings = 1024
	// groupShare is which part of all mappings one address (IPv6: one /64) may have.
	groupShare = 8
)

// mappings is bounded, and so is what one address, one network and one client id can fill. Those that end first are on top of
// the heap; one whose client connects is removed. When it is full, the one on top makes room; when a network has its share, its oldest.
type mappings struct {
	max    int
	byAddr map[netip.AddrPort][]*mapping // the oldest first, as in byID
	byID   map[uint64][]*mapping
	groups map[netip.Addr]*list.List // those of a network, the oldest first; without the loopback, which isn't bounded
	heap   byUntil
	rests  map[uint64]time.Duration // until when a client id that was displaced displaces nobody
	rested []uint64                 // those ids, the oldest first
}

func newMappings(most int) mappings {
	return mappings{max: most, byAddr: map[netip.AddrPort][]*mapping{}, byID: map[uint64][]*mapping{}, groups: map[netip.Addr]*list.List{}, rests: map[uint64]time.Duration{}}
}

// put keeps m until its time is over; false when there is no room.
func (t *mappings) put(now time.Duration, m *mapping) bool {
	atAddr, ofID := oldestOf(t.at(now, m.addr), mappingsPerAddr), oldestOf(t.byID[m.clientID], mappingsPerID)
	for _, o := range []*mapping{atAddr, ofID} {
		if o != nil && now-o.since < placeTime {
			return false
		}
	}
	if atAddr != nil {
		t.remove(atAddr)
	}
	if ofID != nil && ofID != atAddr {
		t.remove(ofID)
	}
	var bounded bool
	if m.group, bounded = addrgroup.Of(m.addr.Addr()); !bounded {
		m.group = netip.Addr{}
	}
	if g := t.groups[m.group]; g != nil && g.Len() >= max(1, t.max/groupShare) && !t.displace(now, g.Front().Value.(*mapping), m) {
		return false
	}
	if len(t.heap) >= t.max && !t.displace(now, t.heap[0], m) {
		return false
	}
	m.since, m.until = now, now+answerTime
	if m.timeout >= 0 {
		m.until = now + min(m.timeout, answerTime)
	}
	t.byAddr[m.addr] = append(t.byAddr[m.addr], m)
	t.byID[m.clientID] = append(t.byID[m.clientID], m)
	t.join(m)
	heap.Push(&t.heap, m)
	return true
}

// displace removes a mapping if it gives way to a new one where there is no room for both.
func (t *mappings) displace(now time.Duration, old, m *mapping) bool {
	own, others := len(t.byID[m.clientID]), len(t.byID[old.clientID])
	if others < own+2 && (own > others || now < t.rests[m.clientID] || now-old.since < placeTime) {
		return false
	}
	t.remove(old)
	t.rest(now, old.clientID)
	return true
}

// rest notes that a client id was displaced. The oldest are forgotten when there are too many.
func (t *mappings) rest(now time.Duration, id uint64) {
	for len(t.rested) > 0 && (now >= t.rests[t.rested[0]] || len(t.rested) == t.max) {
		delete(t.rests, t.rested[0])
		t.rested = t.rested[1:]
	}
	if _, ok := t.rests[id]; !ok {
		t.rests[id] = now + answerTime
		t.rested = append(t.rested, id)
	}
}

// join makes m the newest of its group.
func (t *mappings) join(m *mapping) {
	if m.group == (netip.Addr{}) {
		return
	}
	g := t.groups[m.group]
	if g == nil {
		g = list.New()
		t.groups[m.group] = g
	}
	m.place = g.PushBack(m)
}

// leave takes m out of its group.
func (t *mappings) leave(m *mapping) {
	if m.place == nil {
		return
	}
	g := t.groups[m.group]
	if g.Remove(m.place); g.Len() == 0 {
		delete(t.groups, m.group)
	}
}

// oldestOf is the mapping that must give way to another one; nil when the list has room.
func oldestOf(list []*mapping, most int) *mapping {
	if len(list) < most {
		return nil
	}
	return list[0]
}

// at is the mappings of an address, the oldest first. Those whose time is over are forgotten.
func (t *mappings) at(now time.Duration, addr netip.AddrPort) []*mapping {
	for len(t.heap) > 0 && now >= t.heap[0].until {
		t.remove(t.heap[0])
	}
	return t.byAddr[addr]
}

func (t *mappings) remove(m *mapping) {
	heap.Remove(&t.heap, m.index)
	t.leave(m)
	without(t.byAddr, m.addr, m)
	without(t.byID, m.clientID, m)
}

// connected removes the mapping of a client that connects, and older ones of its client id: of dials that it has given up. A late response of one would take over its connection,
// from another port too where takeOver is set. Otherwise those elsewhere stay, so that their clients are told why they don't get in.
func (t *mappings) connected(m *mapping, takeOver bool) {
	for _, o := range slices.Clone(t.byID[m.clientID]) {
		if takeOver || o.addr == m.addr {
			t.remove(o)
		}
		if o == m {
			return
		}
	}
}

// without takes m off the list of a key.
func without[K comparable](lists map[K][]*mapping, key K, m *mapping) {
	i := slices.Index(lists[key], m)
	if lists[key] = slices.Delete(lists[key], i, i+1); len(lists[key]) == 0 {
		delete(lists, key)
	}
}

// byUntil is a heap.Interface.
type byUntil []*mapping

func (h byUntil) Len() int           { return len(h) }
func (h byUntil) Less(i, j int) bool { return h[i].until < h[j].until }
func (h byUntil) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *byUntil) Push(x any) {
	m := x.(*mapping)
	m.index = len(*h)
	*h = append(*h, m)
}

// Pop is heap.Interface's.
func (h *byUntil) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return m
}

// usedTokens remembers which address used each of the last tokens; the oldest is forgotten. Its own bound is far above what clients can
// fetch in a token's life.
type usedTokens struct {
	max   int
	byMAC map[[macBytes]byte]*usedToken
	ring  [][macBytes]byte
	next  int // the oldest, when the ring is full
}

// minUsed is how many tokens the smallest server remembers: the reference's number.
const minUsed = 2048

type usedToken struct {
	addr      netip.AddrPort
	connected bool // its client had a slot: the token is spent
}

func newUsedTokens(max int) usedTokens {
	return usedTokens{max: max, byMAC: map[[macBytes]byte]*usedToken{}}
}

// refuses reports whether a token is another address's, or spent.
func (t *usedTokens) refuses(mac [macBytes]byte, from netip.AddrPort) bool {
	u := t.byMAC[mac]
	return u != nil && (u.addr != from || u.connected)
}

// add notes a token's address.
func (t *usedTokens) add(mac [macBytes]byte, from netip.AddrPort) {
	switch {
	case t.byMAC[mac] != nil:
		return
	case len(t.ring) < t.max:
		t.ring = append(t.ring, mac)
	default:
		delete(t.byMAC, t.ring[t.next])
		t.ring[t.next] = mac
		t.next = (t.next + 1) % t.max
	}
	t.byMAC[mac] = &usedToken{addr: from}
}

// spend notes that a token's client has had a slot.
func (t *usedTokens) spend(mac [macBytes]byte) {
	if u := t.byMAC[mac]; u != nil {
		u.connected = true
	}
}
