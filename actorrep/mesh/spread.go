package mesh

import (
	"errors"
	"slices"
)

// ErrZone: this server doesn't hold the zone, or the other one has no lease or leaves.
var ErrZone = errors.New("mesh: the zone isn't this server's to give, or the other server has no lease or leaves")

// Hand has the next Step give a zone that this server holds, or the parts of it that it holds, to another server, such as one that has less to do. When the store has that, all servers hear of it, and the zone's actors and players go
// there one by one. It is tried again when the store doesn't answer, or another server has written to the zone meanwhile, and given up when the other server has no lease any more or leaves; Holds tells. ErrZone: this server doesn't hold the zone, or the other one has no lease or leaves. ErrAway: the store is away.
func (k *Keeper) Hand(zone, to string) error {
	t, l := k.tenancy(zone), k.lease(to)
	switch {
	case k.Holds(zone) == 0 || k.leaving || to == k.id || l == nil || !k.alive(l) || l.value.leaves:
		return ErrZone
	case k.Away():
		return ErrAway
	}
	for i, p := range t.value.parts {
		if p.holder == k.id {
			t.shares[i].to, k.hands = to, true
		}
	}
	return nil
}

// stepHands hands what is to be handed, until the store has it.
func (k *Keeper) stepHands() {
	if !k.hands {
		return
	}
	k.hands = false
	for _, t := range k.zones {
		if k.ofZones >= maxZoneOps {
			k.hands = true // the others next
			return
		}
		if k.now >= t.tryAt {
			k.change(t, &k.Counters.Handed, func(i int) string {
				z := &t.shares[i]
				if l := k.lease(z.to); l == nil || t.value.parts[i].holder != k.id || !k.alive(l) || l.value.leaves {
					z.to = ""
				}
				return z.to
			})
		}
		k.hands = k.hands || slices.ContainsFunc(t.shares, func(z share) bool { return z.to != "" })
	}
}

// change has the store have others as holders of a zone's parts, if the zone is as this server has heard of it: of each part what to says, or the one that it has where that is "". It counts them when the store has that.
func (k *Keeper) change(t *tenancy, count *uint64, to func(i int) string) {
	var parts []part
	n := uint64(0)
	for i := range t.value.parts {
		if holder := to(i); holder != "" {
			if parts == nil {
				parts = slices.Clone(t.value.parts)
			}
			parts[i].holder, parts[i].calm = holder, false
			n++
		}
	}
	if n > 0 {
		has := n
		k.put(t, zoneValue{t.value.epoch + 1, parts}, func() { *count += has })
	}
}

// stepSpread hands zones to the server that has least to do, if this one has more. Then all wait for Spread.
func (k *Keeper) stepSpread() {
	switch {
	case !k.rests():
		k.load.ready = 0
	case k.cfg.Weight == nil:
		k.stepCount()
	default:
		k.stepWeight()
	}
}

// rests reports whether all zones have stayed where they are for Spread, and nothing comes first.
func (k *Keeper) rests() bool {
	return k.cfg.Spread >= 0 && k.current && k.tabled && !k.leaving && len(k.estates) == 0 && k.allSeen() &&
		!slices.ContainsFunc(k.zones, func(t *tenancy) bool { return k.now-t.at < k.cfg.Spread || k.now < t.tryAt }) &&
		!slices.ContainsFunc(k.leases, func(l *lease) bool { return l.id != k.id && (l.value.over || !k.alive(l)) })
}

// mayGet reports whether a server may be handed zones of itself: it doesn't leave, and has been there for a while.
func (k *Keeper) mayGet(l *lease) bool { return !l.value.leaves && k.now-l.since >= k.cfg.Spread }

// stepCount hands a zone to the server with the fewest, if this one has the most, and two more than that one: of several with as many, that of the lowest ID hands one.
func (k *Keeper) stepCount() {
	most, to := k.holds(k.id), ""
	fewest := most - 1
	for _, l := range k.leases {
		if l.id == k.id {
			continue
		}
		n := k.holds(l.id)
		if n > most || n == most && l.id < k.id {
			return // that one hands one
		}
		if n < fewest && k.mayGet(l) {
			to, fewest = l.id, n
		}
	}
	if to == "" {
		return
	}
	for i := len(k.zones) - 1; ; i-- {
		t := k.zones[i]
		for n := len(t.value.parts) - 1; n >= 0; n-- {
			if t.value.parts[n].holder == k.id {
				t.shares[n].to, k.hands = to, true
				k.stepHands()
				return
			}
		}
	}
}
