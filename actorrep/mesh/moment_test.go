package mesh

import (
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestEachMoment: whatever stops at whichever moment of a travel, the promises of TestSimulated hold: the server that is left or the next one or the client crashes or stands still, or the paths between two of
// them are cut, both ways or one way, for shorter and for longer than a travel waits. So they do when something else of these happens soon after.
func TestEachMoment(t *testing.T) {
	script := func(faults ...simtest.Fault) simtest.Script {
		s := simtest.Draw(1, simtest.Profile{MaxClients: 1, MinRun: 4 * time.Second, MaxRun: 4 * time.Second})
		s.Servers, s.Clients, s.Faults, s.Net = 2, 1, faults, netsim.Settings{}
		s.Set("rate", "10")
		s.Set("lag", "40")
		s.Set("between", "10")
		return s
	}
	var mishaps []simtest.Fault
	for _, host := range []string{"server1", "server2", "client1"} {
		for _, d := range []time.Duration{300 * time.Millisecond, 5 * time.Second} {
			mishaps = append(mishaps, simtest.Fault{Kind: simtest.Crash, Host: host, For: d}, simtest.Fault{Kind: simtest.Pause, Host: host, For: d})
		}
		for _, other := range []string{"server1", "server2", "client1"} {
			for _, d := range []time.Duration{150 * time.Millisecond, 700 * time.Millisecond, 8 * time.Second} {
				if other != host {
					mishaps = append(mishaps, simtest.Fault{Kind: simtest.CutOne, Host: host, Other: other, For: d})
				}
				if other > host {
					mishaps = append(mishaps, simtest.Fault{Kind: simtest.Cut, Host: host, Other: other, For: d})
				}
			}
		}
	}
	step := time.Duration(seedsToPlay(0, 20, 100)) * time.Millisecond
	rng := simtest.NewRand(*first, 0x6d6f6d656e74)
	var sum tally
	runs := 0
	// The player travels every half second or so: there are several travels in these two seconds.
	for at := 500 * time.Millisecond; at < 2500*time.Millisecond; at += step {
		for _, f := range mishaps {
			f.At = at + time.Duration(runs%9)*time.Millisecond // packets come between the ticks
			faults := []simtest.Fault{f}
			if runs%2 == 1 {
				second := mishaps[rng.IntN(len(mishaps))]
				second.At = f.At + time.Duration(rng.IntN(1500))*time.Millisecond
				faults = append(faults, second)
			}
			r, g := playMesh(script(faults...))
			if !r.OK() {
				t.Fatalf("%v: %v", faults, r.Failure)
			}
			runs++
			for _, s := range g.servers {
				g.tally.add(s.m)
			}
			sum.travels, sum.moved, sum.stayed, sum.lost, sum.lives = sum.travels+g.tally.travels, sum.moved+g.tally.moved, sum.stayed+g.tally.stayed, sum.lost+g.tally.lost, sum.lives+g.tally.lives
		}
	}
	t.Logf("%d runs: %+v", runs, sum)
	if sum.moved == 0 || sum.stayed == 0 || sum.lost == 0 {
		t.Fatal("nothing was tried")
	}
}
