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
