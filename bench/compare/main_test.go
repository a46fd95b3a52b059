package main

import (
	"bytes"
	"testing"
	"time"
)

// TestW1 echoes over every peer through a clean network for a moment.
func TestW1(t *testing.T) {
	all, err := choose(&bytes.Buffer{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			point := latencyPoint{Peer: p.Name, Rate: 60, Loss: 1}
			err := point.measure(p, 500*time.Millisecond, 1)
			if err != nil && p.TCP {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if point.P50 < 2*w1Lag || point.WireBytes < 1 {
				t.Fatalf("%+v", point)
			}
			if p.Reliable && (point.Got != point.Sent || point.Disordered > 0) {
				t.Fatalf("%d of %d, %d out of order", point.Got, point.Sent, point.Disordered)
			}
		})
	}
}
