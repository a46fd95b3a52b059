package main

import (
	"fmt"
	"io"
	"slices"
)

// w7Peers is who W7 compares by default: ours plain and encrypted, and the peers whose throughput is of the kind.
var w7Peers = []string{"bunchnet", "bunchnet-nc", "kcp", "quic"}

// runW7 measures every size of W2 at every round trip of W6, with the settings of W2.
func runW7(w io.Writer, all []*Peer, s settings) []sweptPoint {
	var peers []*Peer
	for _, p := range all {
		if p.Reliable && !p.TCP && (s.only != "" || slices.Contains(w7Peers, p.Name)) {
			peers = append(peers, p)
		}
	}
	var sizes []int
	for _, c := range w2Sizes {
		if s.size == 0 || s.size == c.size {
			sizes = append(sizes, c.size)
		}
	}
	return sweepAll(w, "w7", s, peers, sizes)
}

// printW7 prints a table for each size.
func printW7(w io.Writer, points []sweptPoint) {
	for len(points) > 0 {
		n := slices.IndexFunc(points, func(p sweptPoint) bool { return p.Size != points[0].Size })
		if n < 0 {
			n = len(points)
		}
		printSweep(w, fmt.Sprintf("W7: %d B", points[0].Size), "peer", points[:n])
		points = points[n:]
	}
}
