package largeworld

import "runtime"

// Memory is what an actor takes, with its shadow and its place in the graph, and what a view: an actor as one connection knows it, with its
// channel and a share of what the connection itself takes: both half a minute after anything has changed, when room that isn't needed is given
// back. before, if there is one, is done to both worlds before that.
func Memory(cfg Config, more int, before func(*Rig)) (actor, view float64, err error) {
	load := func(conns int) (heap, views float64, err error) {
		cfg := cfg
		cfg.Conns = conns
		c, err := New(cfg)
		if err != nil {
			return 0, 0, err
		}
		if before != nil {
			before(c)
		}
		for range 35 * Rate {
			c.Serve()
			c.Answer()
		}
		views = c.Seen() * float64(conns)
		c.DropClients()
		full := live()
		runtime.KeepAlive(c)
		return full - live(), views, nil // what else the process gave back while the world was served is no world's
	}
	few, fewViews, err := load(1)
	if err != nil {
		return 0, 0, err
	}
	many, manyViews, err := load(1 + more)
	if err != nil {
		return 0, 0, err
	}
	view = (many - few) / (manyViews - fewViews)
	return (few - view*fewViews) / float64(cfg.Actors), view, nil
}

// live is the bytes of the heap that are in use, when collecting frees no more: pools keep what they hold over one collection, and what has a
// cleanup goes after it.
func live() float64 {
	var m runtime.MemStats
	for last := uint64(0); ; last = m.HeapAlloc {
		runtime.GC()
		if runtime.ReadMemStats(&m); last > 0 && m.HeapAlloc >= last-last/1000 {
			return float64(m.HeapAlloc)
		}
	}
}
