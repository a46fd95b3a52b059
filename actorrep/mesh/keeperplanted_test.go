package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestKeptPlanted plants faults in leases, epochs, take-over and records, and expects each to be found.
func TestKeptPlanted(t *testing.T) {
	first := map[string][]byte{} // the first state of each claim
	is := func(op *kv.Op, kind string) bool { return strings.HasPrefix(op.Key, "mesh."+kind+".") }
	plants := []planted{ // found is 0 where a fifth of the answers get lost
		{2, "it says that the store has what was only asked for", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				k.tell(a, a.want, nil)
			}
		}}},
		{2, "it takes over with the old epoch", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				if a.claim.epoch > claimEpochs && !a.claimed {
					a.claim.epoch = max(1, a.claim.epoch-claimEpochs)
				}
			}
		}}},
		{17, "it takes over without waiting for what others have", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				l.value.seen = 1 << 60
			}
		}}},
		{35, "it doesn't stop when its lease has run out", keeperFault{step: func(k *Keeper) { k.mine.until = 1 << 60 }}},
		{3, "it ends leases that haven't run out", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				if k.arrivals > 40 {
					l.at = -time.Hour
				}
			}
		}}},
		{59, "its lease is written whatever there is", keeperFault{op: func(op *kv.Op) {
			if is(op, "server") && op.Kind == kv.Put {
				op.Expect = kv.Any
			}
		}}},
		{8, "records are written whatever there is", keeperFault{op: func(op *kv.Op) {
			if is(op, "actor") && op.Kind == kv.Put {
				op.Expect = kv.Any
			}
		}}},
		{0, "no answer is a good answer", keeperFault{event: func(e *kv.Event) {
			if e.Kind == kv.Result && e.Status == kv.Unknown {
				e.Status = kv.OK
			}
		}}},
		{42, "a refusal is a good answer", keeperFault{event: func(e *kv.Event) {
			if e.Kind == kv.Result && e.Status == kv.Conflict {
				e.Status = kv.OK
			}
		}}},
		{3, "it gives what the store doesn't have yet", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				if r, own := k.own(a); own && k.arrivals%2 == 0 {
					a.epoch, a.known = r.epoch, true
				}
			}
		}}},
		{2, "it doesn't list its actors", keeperFault{step: func(k *Keeper) {
			for _, p := range k.pages {
				p.stored = p.version
			}
		}}},
		{2, "it takes over a former state", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				key := k.actorKey(a.id)
				if r, own := k.own(a); own && a.epoch > 0 && first[key] == nil {
					first[key] = k.cfg.Save(r.a)
				}
				if a.claim.epoch > 0 && !a.claimed && first[key] != nil {
					a.claim.state = first[key]
				}
			}
		}}},
		{2, "it takes over nothing", keeperFault{step: func(k *Keeper) {
			for _, s := range k.estates {
				s.whole = true
			}
		}}},
		{4, "it goes on with who is over", keeperFault{step: func(k *Keeper) {
			for _, l := range k.leases {
				l.gone = true
			}
		}}},
		{2, "it forgets what it has given before another has written it", keeperFault{step: func(k *Keeper) {
			for _, a := range append([]*kept{}, k.list...) {
				if _, own := k.own(a); !own && a.to != "" && !a.busy {
					k.forget(a)
				}
			}
		}}},
		{1, "it doesn't tell that it has seen the end of a lease", keeperFault{step: func(k *Keeper) { k.toldSeen = k.seen; k.seen = 0 }}},
		{1, "a zone changes hands without a new epoch", keeperFault{op: func(op *kv.Op) {
			var v zoneValue
			if is(op, "zone") && op.Kind == kv.Put && v.read(op.Value) && v.epoch > 1 {
				v.epoch--
				op.Value = v.append(nil)
			}
		}}},
		{3, "it never deletes what was destroyed", keeperFault{op: func(op *kv.Op) {
			if is(op, "actor") && op.Kind == kv.Delete {
				op.Kind = kv.Get
			}
		}}},
	}
	expectFound(t, plants, 3, func(seed uint64, p planted) simtest.Result {
		clear(first)
		s := drawKept(seed)
		if p.found == 0 { // it shows when answers get lost
			s.Set("lostresult", "20")
			if r, _ := playPlain(s, nil); !r.OK() {
				t.Fatalf("without a fault: seed %d: %v", seed, r.Failure)
			}
		}
		r, _ := playPlain(s, func(g *plain) { g.fault = p.keeperFault })
		return r
	})
}

// TestSplitPlanted plants faults in what is split, merged and taken over in parts, and expects each to be found.
func TestSplitPlanted(t *testing.T) {
	var by *Keeper
	stored := map[string]zoneValue{} // as any server has heard it
	parts := map[*Keeper]int{}
	step := func(k *Keeper) { by = k }
	hear := func(e *kv.Event) *zoneValue {
		var v zoneValue
		if e.Kind != kv.Changed || !strings.HasPrefix(e.Key, "mesh.zone.") || !v.read(e.Value) {
			return nil
		}
		if v.epoch >= stored[e.Key].epoch {
			stored[e.Key] = v
		}
		return &v
	}
	write := func(op *kv.Op, change func(v *zoneValue, was zoneValue)) {
		var v zoneValue
		if op.Kind == kv.Put && strings.HasPrefix(op.Key, "mesh.zone.") && v.read(op.Value) {
			change(&v, stored[op.Key])
			op.Value = v.append(nil)
		}
	}
	plants := []planted{
		{2, "who merges takes the actors at once", keeperFault{step: func(k *Keeper) {
			n := 0
			for _, t := range k.zones {
				n += len(t.value.parts)
			}
			if n < parts[k] {
				for _, r := range k.z.list {
					if r.a != nil && r.owner != k.id && r.a.body().World() != nil {
						if x, y, _ := r.a.Location(); k.z.table.At(x, y) == k.id {
							k.z.own(r, max(r.epoch, 1))
						}
					}
				}
			}
			parts[k] = n
		}}},
		{3, "it has the quarters in another order than all others", keeperFault{step: step, event: func(e *kv.Event) {
			if v := hear(e); v != nil && len(v.parts) >= 4 && strings.HasPrefix(by.id, "server1") {
				last := len(v.parts) - 1
				v.parts[0].holder, v.parts[last].holder = v.parts[last].holder, v.parts[0].holder
				e.Value = v.append(nil)
			}
		}}},
		{2, "it doesn't take parts over", keeperFault{step: step, event: func(e *kv.Event) { hear(e) }, op: func(op *kv.Op) {
			write(op, func(v *zoneValue, was zoneValue) {
				for i := range v.parts {
					if len(v.parts) > 1 && len(v.parts) == len(was.parts) {
						if l := by.lease(was.parts[i].holder); l == nil || l.value.over {
							v.parts[i].holder = was.parts[i].holder
						}
					}
				}
			})
		}}},
		{4, "zones are merged without a new epoch", keeperFault{step: step, event: func(e *kv.Event) { hear(e) }, op: func(op *kv.Op) {
			write(op, func(v *zoneValue, was zoneValue) {
				if len(v.parts) < len(was.parts) {
					v.epoch = was.epoch
				}
			})
		}}},
		{4, "a part changes hands without a new epoch", keeperFault{step: step, event: func(e *kv.Event) { hear(e) }, op: func(op *kv.Op) {
			write(op, func(v *zoneValue, was zoneValue) {
				if len(v.parts) > 1 && len(v.parts) == len(was.parts) {
					v.epoch = was.epoch
				}
			})
		}}},
		{5, "it doesn't hear of a merge", keeperFault{step: step, event: func(e *kv.Event) {
			was := stored[e.Key]
			if v := hear(e); v != nil && strings.HasPrefix(by.id, "server2") && len(v.parts) < len(was.parts) {
				e.Key = "mesh.none"
			}
		}}},
	}
	expectFound(t, plants, 2, func(seed uint64, p planted) simtest.Result {
		clear(stored)
		clear(parts)
		r, _ := playPlain(drawKept(seed), func(g *plain) {
			crowded(g)
			g.fault = p.keeperFault
		})
		return r
	})
}
