package simtest

import (
	"net/netip"
	"slices"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// network is the paths between sockets. A path is a link between two public addresses, so that what is
// under way when an address changes goes to the old one.
type network struct {
	world   *Simulation
	sockets map[netip.AddrPort]*Socket // by public address; looked up only
	index   map[[2]netip.AddrPort]*path
	paths   []*path // in the order they came about
	made    uint64
	cuts    []cut
}

type path struct {
	from, to netip.AddrPort
	src, dst *Host
	link     *netsim.Link
	counted  netsim.Counters
}

// cut is a partition between two hosts.
type cut struct {
	from, to *Host
}

func (n *network) init(w *Simulation) {
	*n = network{world: w, sockets: map[netip.AddrPort]*Socket{}, index: map[[2]netip.AddrPort]*path{}}
}

// settings is what a path does: its client's link.
func settings(src, dst *Host) netsim.Settings {
	if !src.server {
		return src.up
	}
	return dst.down
}

// changed applies a host's new settings to its paths.
func (n *network) changed(h *Host) error {
	for _, p := range n.paths {
		if p.src == h || p.dst == h {
			if err := p.link.Set(settings(p.src, p.dst)); err != nil {
				return err
			}
		}
	}
	return nil
}

// send puts a datagram on its way.
func (n *network) send(s *Socket, to netip.AddrPort, b []byte) {
	w := n.world
	w.Counters.Sent++
	w.Counters.Bytes += uint64(len(b))
	p := n.path(s, to)
	if p == nil {
		w.Counters.NoHost++
		w.hash.datagram('n', w.now, s.host.index, 0xffff, b)
		return
	}
	w.hash.datagram('s', w.now, p.src.index, p.dst.index, b)
	if w.IsCut(p.src, p.dst) {
		w.Counters.Cut++
		return
	}
	p.link.Push(w.now, b)
	p.count(&w.Counters)
}

func (n *network) path(s *Socket, to netip.AddrPort) *path {
	key := [2]netip.AddrPort{s.public, to}
	if p := n.index[key]; p != nil {
		return p
	}
	dst := n.sockets[to]
	if dst == nil {
		return nil
	}
	n.prune()
	n.made++
	link, err := netsim.NewLink(settings(s.host, dst.host), n.world.seed*1_000_003+n.made)
	if err != nil {
		panic(err) // SetNet has validated it
	}
	p := &path{from: s.public, to: to, src: s.host, dst: dst.host, link: link}
	n.index[key] = p
	n.paths = append(n.paths, p)
	return p
}

// prune forgets paths of addresses that are no more.
func (n *network) prune() {
	kept := n.paths[:0]
	for _, p := range n.paths {
		if (n.sockets[p.from] == nil || n.sockets[p.to] == nil) && p.link.Len() == 0 {
			delete(n.index, [2]netip.AddrPort{p.from, p.to})
			continue
		}
		kept = append(kept, p)
	}
	clear(n.paths[len(kept):])
	n.paths = kept
}

// deliver puts what has arrived for a host into its sockets.
func (n *network) deliver(h *Host) {
	w := n.world
	for _, p := range n.paths {
		if p.dst != h {
			continue
		}
		for b, ok := p.link.Pop(w.now); ok; b, ok = p.link.Pop(w.now) {
			s := n.sockets[p.to]
			switch {
			case s == nil:
				w.Counters.NoHost++
			case !s.receive(p.from, b):
				w.Counters.InboxFull++
			default:
				w.Counters.Delivered++
				w.hash.datagram('d', w.now, p.src.index, h.index, b)
			}
		}
	}
}

// count adds what the link has done since the last time.
func (p *path) count(c *Counters) {
	l, old := &p.link.Counters, &p.counted
	c.Lost += l.Lost + l.BurstLost - old.Lost - old.BurstLost
	c.Duplicated += l.Duplicated - old.Duplicated
	c.Reordered += l.Reordered - old.Reordered
	c.Corrupted += l.Corrupted - old.Corrupted
	c.QueueFull += l.QueueFull - old.QueueFull
	c.TooBig += l.TooBig - old.TooBig
	*old = *l
}

// rebind gives a socket a new public address.
func (n *network) rebind(s *Socket, to netip.AddrPort) {
	delete(n.sockets, s.public)
	s.public = to
	n.sockets[to] = s
}

// Cut drops all datagrams from a to b from now on, until Join.
func (w *Simulation) Cut(a, b *Host) {
	w.Counters.Cuts++
	w.net.cuts = append(w.net.cuts, cut{a, b})
}

// Join undoes one Cut.
func (w *Simulation) Join(a, b *Host) {
	for i, c := range w.net.cuts {
		if c == (cut{a, b}) {
			w.net.cuts = append(w.net.cuts[:i], w.net.cuts[i+1:]...)
			return
		}
	}
}

// IsCut reports whether nothing passes from a to b.
func (w *Simulation) IsCut(a, b *Host) bool { return slices.Contains(w.net.cuts, cut{a, b}) }
