package exercise

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Draw makes a script of a seed: hosts, links, faults, and what the exercise does.
func Draw(seed uint64) simtest.Script {
	r := simtest.NewRand(seed, 0x6f7074)
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	link, checksum, mayhem := pick(Links), r.IntN(3) == 0, r.IntN(12) == 0
	s := simtest.Draw(seed, simtest.Profile{MaxServers: 2, MaxClients: 4, Corrupt: mayhem || checksum || link == "netcode"})
	s.Settle = 3 * time.Minute // what waits goes at 4 kB a second at worst
	s.Set("preset", pick(Presets))
	s.Set("link", link)
	if mayhem {
		s.Set("mayhem", "1")
		s.Settle, s.Net.Corrupt = 3*time.Second, float64(1+r.IntN(100))/10
	}
	set := func(oneIn int, key, value string) {
		if r.IntN(oneIn) == 0 {
			s.Set(key, value)
		}
	}
	if checksum && !mayhem {
		s.Set("checksum", "1")
	}
	set(5, "window", fmt.Sprint(16<<r.IntN(7)))
	set(5, "buffer", fmt.Sprint(16<<r.IntN(6)))
	set(5, "maxpacket", fmt.Sprint(256+r.IntN(769)))
	set(2, "controller", pick(Controllers))
	set(2, "netspeed", fmt.Sprint(20_000*(1+r.IntN(50))))
	set(3, "copies", fmt.Sprint(1+r.IntN(4)))
	set(3, "adaptive", "1")
	set(4, "lazyacks", "1")
	set(3, "reorder", fmt.Sprint(time.Duration(5+r.IntN(60))*time.Millisecond))
	set(4, "keepalive", fmt.Sprint(time.Duration(50+r.IntN(400))*time.Millisecond))
	set(4, "timeout", fmt.Sprint(time.Duration(2+r.IntN(8))*time.Second))
	set(3, "tick", fmt.Sprint(time.Duration(7+r.IntN(40))*time.Millisecond))
	set(3, "servertick", fmt.Sprint(time.Duration(7+r.IntN(60))*time.Millisecond))
	if r.IntN(6) > 0 {
		s.Set("bunches", fmt.Sprint(1+r.IntN(4)))
		set(2, "churn", fmt.Sprint(5+r.IntN(100)))
	}
	set(3, "messages", "1")
	set(4, "blocks", "1")
	if s.Option("controller") == "goodbad" {
		s.Set("lazyacks", "1") // its packets are counted, and acks would take all of them
	} else {
		set(4, "lockstep", "1")
	}
	set(2, "actors", fmt.Sprint(1+r.IntN(30)))
	set(4, "leave", fmt.Sprint(5+r.IntN(30)))
	if s.Option("actors") != "" {
		set(3, "liars", "1")
	}
	if c := simtest.NewRand(seed, 0x636f6465); mayCode(s.Option("preset"), s.Option("link")) && c.IntN(4) > 0 { // its own, so that other seeds stay as they are
		s.Set("coding", []string{"0.3", "0.5", "1", "1.5", "2", "3"}[c.IntN(6)])
		if c.IntN(2) == 0 {
			s.Set("codingadaptive", "1")
		}
	}
	return s
}
