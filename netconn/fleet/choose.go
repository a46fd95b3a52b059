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
			p.takeBack(w)
			p.finish(w, err)
		}
		return
	}
	best := all[0]
	if best.room.cell.busy() || !best.room.cell.known {
		return // its record changes: the next step sees
	}
	w.placement = w.fresh
	if o := w.seatBefore(best.room); o != nil {
		w.placement = renewed(o.id)
	}
	w.placed.Server, w.placed.Backups = *best.info, nil
	if w.Players == 1 {
		for _, c := range all[1:] {
			w.placed.Backups = append(w.placed.Backups, *c.info)
		}
	}
	best.room.next = append(best.room.next, w)
}

// seatBefore returns the seat that a want's player has on a server already, or nil.
func (w *want) seatBefore(r *room) *placement {
	if w.beforeAt != r.id {
		return nil
	}
	return r.rec.find(w.before.placement)
}

// open reports whether players may be placed on a server.
func (p *Placer) open(w *want, i *Info) bool {
	return i.State == Ready && i.ID != w.Not && (p.cfg.Accept == nil || p.cfg.Accept(i))
}

// isOf reports whether a server takes the client's build and schema.
func (w *want) isOf(i *Info) bool {
	return i.takes(w.Build) && (w.Schema == 0 || i.Schema == 0 || i.Schema == w.Schema)
}

func (p *Placer) isNear(w *want, i *Info) bool {
	latency, measured := w.Latency[i.Region]
	return w.Latency == nil || measured && (p.cfg.MaxLatency == 0 || latency <= p.cfg.MaxLatency)
}

// candidates returns the best servers for a want, 1+Backups at most, the best first. Without any err is why; unknown means that it may be otherwise
// in a moment.
func (p *Placer) candidates(w *want) (best []candidate, unknown bool, err error) {
	var ready, build, near, large bool
	var builds []string
	for _, id := range p.list.ids {
		i := p.list.members[id].info
		if !p.open(w, i) {
			continue
		}
		ready = true
		if !w.isOf(i) {
			builds = i.addBuilds(builds)
			continue
		}
		build = true
		if !p.isNear(w, i) {
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
			if o.placement == o.fresh {
				free -= o.Players
			}
		}
		full := len(r.rec.placements)+len(r.next) >= maxPlacements
		if !r.rec.closed && w.seatBefore(r) != nil {
			free, full = free+1, false
		}
		if free < w.Players || full {
			unknown = unknown || len(r.next) > 0 || r.cell.busy()
			continue
		}
		c := candidate{info: i, room: r, free: free, wanted: id == w.Server, latency: w.Latency[i.Region], rank: float64(free)}
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
		err = &OtherBuild{Builds: builds}
	case !near:
		err = ErrRegion
	case !large:
		err = ErrTooLarge
	default:
		err = ErrFull
	}
	return best, unknown, err
}
