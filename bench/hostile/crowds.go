package main

import (
	"fmt"
	"net/netip"
	"text/tabwriter"
)

// fullHouse is a server whose honest players have all slots, and crowds of honest clients who want in too: they are told
// no, and the players notice nothing.
func fullHouse(w *tabwriter.Writer, link string, n, perTick int) (bool, error) {
	g, err := newGame(link, honest)
	if err != nil {
		return false, err
	}
	g.measure()
	for range 300 {
		g.step(nil)
	}
	base := g.measure()
	a := attack{name: "a full house", n: min(n, 2000)}
	return g.crowd(w, a, base, 200, false)
}

// storm is clients that connect, vanish without a word, and connect again, as after an outage.
func storm(w *tabwriter.Writer, link string) (bool, error) {
	g, err := newGame(link, 1024)
	if err != nil {
		return false, err
	}
	g.measure()
	for range 300 {
		g.step(nil)
	}
	base := g.measure()
	return g.crowd(w, attack{name: "a reconnect storm", n: 960}, base, 120, true)
}

// crowd has a.n clients connect, so many at once; room says whether they should get in.
func (g *game) crowd(w *tabwriter.Writer, a attack, base measure, atOnce int, room bool) (bool, error) {
	before := g.refusals()
	heap, got := heapBytes(), 0
	for done := 0; done < a.n; done += atOnce {
		progress("%s: %s, %d of %d", g.link, a.name, done, a.n)
		n, err := g.wave(atOnce)
		if err != nil {
			return false, err
		}
		got += n
	}
	m := g.measure()
	for range 6 * 60 { // those who vanished time out
		g.step(nil)
	}
	grown := heapBytes() - heap
	var problems []string
	if left := g.server.Len(); left != honest {
		problems = append(problems, fmt.Sprintf("%d connections at the end", left))
	}
	if room && got < a.n || !room && got > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d got in", got, a.n))
	}
	if m.p99 > base.p99 {
		problems = append(problems, "players wait")
	}
	if g.missing() > 0 {
		problems = append(problems, "echoes missing")
	}
	if grown > 8<<20 {
		problems = append(problems, "memory grew")
	}
	g.in = 0 // these were no strangers
	row(w, a, m, g, grown, g.refusalsSince(before), problems)
	return len(problems) == 0, nil
}

// wave has clients connect for half a second, counts who got in, and drops them all without a word.
func (g *game) wave(n int) (in int, err error) {
	var peers []*peer
	var ports []netip.AddrPort
	for range n {
		addr := stranger(int(g.nextID))
		p, err := g.dial(addr, nil)
		if err != nil {
			return 0, err
		}
		peers, ports = append(peers, p), append(ports, addr)
	}
	joined := make([]bool, n)
	for range 45 {
		g.step(func() {
			for i, p := range peers {
				d := p.driver
				d.TickDispatch(p.at(g.now))
				d.TickFlush(p.at(g.now))
				joined[i] = joined[i] || d.Server() != nil && d.Server().Joined()
			}
		})
	}
	for i, addr := range ports {
		delete(g.ports, addr)
		if joined[i] {
			in++
		}
	}
	return in, nil
}
