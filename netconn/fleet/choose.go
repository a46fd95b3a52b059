package fleet

import (
	"cmp"
	"slices"
	"time"
)

// candidate is a server that a want may go to.
type candidate struct {
	info    *Info
	room    *room
	free    int
	wanted  bool // Want.Server
	latency time.Duration
	rank    float64 // by the policy; lower is better
	tie     uint64  // of those that are equally good the lowest is taken
}

func (c *candidate) compare(o *candidate) int {
	return cmp.Or(-cmpBool(c.wanted, o.wanted), cmp.Compare(c.latency, o.latency), cmp.Compare(c.rank, o.rank), cmp.Compare(c.tie, o.tie), cmp.Compare(c.info.ID, o.info.ID))
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// choose puts a want into the next write of the best server's record, or ends it when there is none.
func (p *Placer) choose(w *want) {
	for _, r := range w.tried {
		if p.rooms[r.id] == r && r.ok && r.cell.known && r.rec.has(w.placement) {
			if i := p.list.get(r.id); i != nil {
				w.placed.Server, w.placed.Backups = *i, nil
				p.booked(w, r)
				return
			}
		}
		if p.rooms[r.id] == r && !r.cell.known { // its record is being read: then it is certain
			return
		}
	}
	if !p.list.fresh() {
		return // who is dead isn't known
	}
	all, unknown, err := p.candidates(w)
	if len(all) == 0 {
		if !unknown {
			p.finish(w, err)
		}
		return
	}
	best := all[0]
	if best.room.cell.busy() || !best.room.cell.known {
		return // its record changes: the next step sees
	}
	w.placed.Server, w.placed.Backups = *best.info, nil
	if w.Players == 1 {
		for _, c := range all[1:] {
			w.placed.Backups = append(w.placed.Backups, *c.info)
		}
	}
	best.room.next = append(best.room.next, w)
}

// candidates returns the best servers for a want, 1+Backups at most, the best first. Without any err is why; unknown means that it may be otherwise
// in a moment.
func (p *Placer) candidates(w *want) (best []candidate, unknown bool, err error) {
	var ready, build, near, large bool
	var builds []string
	for _, id := range p.list.ids {
		i := p.list.members[id].info
		if i.State != Ready || id == w.Not || p.cfg.Accept != nil && !p.cfg.Accept(i) {
			continue
		}
		ready = true
		if !i.takes(w.Build) || w.Schema != 0 && i.Schema != 0 && i.Schema != w.Schema {
			if len(builds) < 16 {
				builds = append(builds, i.Build)
			}
			continue
		}
		build = true
		latency, measured := w.Latency[i.Region]
		if w.Latency != nil && (!measured || p.cfg.MaxLatency > 0 && latency > p.cfg.MaxLatency) {
			continue
		}
		near = true
		if i.Capacity < w.Players {
			continue
		}
		large = true
		r := p.rooms[id]
		if r == nil || !r.cell.known {
			unknown = true
			continue
		}
		if !r.ok {
			continue
		}
		free := r.rec.free()
		for _, o := range r.next {
			free -= o.Players
		}
		if free < w.Players || len(r.rec.placements)+len(r.next) >= maxPlacements {
			unknown = unknown || len(r.next) > 0 || r.cell.busy()
			continue
		}
		c := candidate{info: i, room: r, free: free, wanted: id == w.Server, latency: latency, rank: float64(free)}
		if p.cfg.Policy == Spread {
			c.rank, c.tie = -float64(free)/float64(i.Capacity), r.tie
		}
		at, _ := slices.BinarySearchFunc(best, &c, func(a candidate, b *candidate) int { return a.compare(b) })
		if at < 1+p.cfg.Backups {
			best = slices.Insert(best[:min(len(best), p.cfg.Backups)], at, c)
		}
	}
	switch {
	case !ready:
		err = ErrNoServers
	case !build:
		slices.Sort(builds)
		err = &OtherBuild{Builds: slices.Compact(builds)}
	case !near:
		err = ErrRegion
	case !large:
		err = ErrTooLarge
	default:
		err = ErrFull
	}
	return best, unknown, err
}
