package main

import (
	"fmt"
	"os"
	"sort"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/simtest/exercise"
)

// tally adds up what runs covered.
type tally struct {
	runs, sent uint64
	played     time.Duration
	world      simtest.Counters
	game       exercise.Counters
	rows       map[string]*row // by table and key
}

type row struct {
	table, key           string
	runs, failures       uint64
	faults               uint64
	packets, lost, conns uint64
}

func newTally() *tally { return &tally{rows: map[string]*row{}} }

func (t *tally) add(r *simtest.Result) {
	t.runs++
	t.sent += r.Counters.Sent
	t.played += r.Took
	sum(&t.world, &r.Counters)
	var c exercise.Counters
	if g, ok := r.Game.(*exercise.Game); ok {
		c = g.Counters
		sumGame(&t.game, &c)
	}
	or := func(v, def string) string {
		if v == "" {
			return def
		}
		return v
	}
	s := &r.Script
	t.count("preset", or(s.Option("preset"), "bunchnet"), r, &c, 0)
	t.count("link", or(s.Option("link"), "salted"), r, &c, 0)
	t.count("controller", or(s.Option("controller"), "preset's own"), r, &c, 0)
	for _, work := range []string{"bunches", "churn", "messages", "blocks", "lockstep", "actors", "leave"} {
		if s.Option(work) != "" {
			t.count("work", work, r, &c, 0)
		}
	}
	for _, opt := range []string{"checksum", "copies", "lazyacks", "coding", "reorder", "window", "buffer", "maxpacket", "mayhem", "liars"} {
		if s.Option(opt) != "" {
			t.count("option", opt, r, &c, 0)
		}
	}
	for _, k := range simtest.Kinds {
		n := uint64(0)
		for _, f := range s.Faults {
			if f.Kind == k {
				n++
			}
		}
		if n > 0 {
			t.count("fault", string(k), r, &c, n)
		}
	}
	for name, has := range netKinds(s) {
		if has {
			t.count("network", name, r, &c, 0)
		}
	}
}

// netKinds is what some link of a script does.
func netKinds(s *simtest.Script) map[string]bool {
	m := map[string]bool{}
	nets := append([]simtest.Fault{{Net: s.Net}}, s.Faults...)
	for _, f := range nets {
		for name, has := range map[string]bool{"loss": f.Net.Loss > 0, "burst": f.Net.BurstLoss > 0, "dup": f.Net.Dup > 0, "order": f.Net.Order > 0,
			"corrupt": f.Net.Corrupt > 0, "bandwidth": f.Net.Bandwidth > 0, "mtu": f.Net.MTU > 0, "jitter": f.Net.Jitter > 0} {
			m[name] = m[name] || has
		}
	}
	return m
}

func (t *tally) count(table, key string, r *simtest.Result, c *exercise.Counters, faults uint64) {
	w := t.rows[table+" "+key]
	if w == nil {
		w = &row{table: table, key: key}
		t.rows[table+" "+key] = w
	}
	w.runs++
	w.faults += faults
	if !r.OK() {
		w.failures++
	}
	w.packets += c.PacketsSent
	w.lost += c.PacketsLost
	w.conns += c.Connections
}

func (t *tally) print(took time.Duration) {
	rows := make([]*row, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	order := map[string]int{"preset": 0, "link": 1, "controller": 2, "work": 3, "option": 4, "network": 5, "fault": 6}
	sort.Slice(rows, func(i, j int) bool {
		if a, b := order[rows[i].table], order[rows[j].table]; a != b {
			return a < b
		}
		return rows[i].key < rows[j].key
	})
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\n\t\truns\tfaults\tconnections\tpackets\tlost\tfailures\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t\n", r.table, r.key, r.runs, r.faults, r.conns, r.packets, 100*float64(r.lost)/float64(max(1, r.packets)), r.failures)
	}
	w.Flush()
	g, n := &t.game, &t.world
	fmt.Printf("\n%d runs, %.0f s of play in %.1f s; %d datagrams, %d MB\n", t.runs, t.played.Seconds(), took.Seconds(), n.Sent, n.Bytes>>20)
	fmt.Printf("network: %d lost, %d repeated, %d reordered, %d corrupted, %d over a full queue, %d too large, %d cut off, %d for nobody\n",
		n.Lost, n.Duplicated, n.Reordered, n.Corrupted, n.QueueFull, n.TooBig, n.Cut, n.NoHost)
	fmt.Printf("hosts: %d boots, %d crashes, %d pauses, %d new addresses, %d partitions\n", n.Boots, n.Crashes, n.Pauses, n.Rebinds, n.Cuts)
	fmt.Printf("connections: %d made, %d joined, %d closed, %d timed out; packets: %d sent, %d acked, %d lost\n",
		g.Connections, g.Joined, g.Closed, g.TimedOut, g.PacketsSent, g.PacketsAcked, g.PacketsLost)
	fmt.Printf("coding: %d symbols sent, %d packets repaired, %d of them had been given up\n", g.Repairs, g.PacketsRepaired, g.RepairedLate)
	fmt.Printf("work: %d bunches (%d reliable, %d sent again), %d channels, %d messages, %d blocks, %d turns, %d actor updates, %d calls, %d lies, %d of them taken\n",
		g.Bunches, g.ReliableBunches, g.Resent, g.Channels, g.Messages, g.Blocks, g.Turns, g.ActorUpdates, g.Calls, g.Lies, g.LiesTaken)
}
