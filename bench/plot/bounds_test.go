package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestBounds: numbers that would take an axis for ever, and more plots than fit a picture, are refused.
func TestBounds(t *testing.T) {
	var many strings.Builder
	for i := range maxPlots + 1 {
		fmt.Fprintf(&many, "panel %d,udp,1\n", i)
	}
	for _, table := range []string{
		latencyHead + "\n60,kcp,1e308,1\n", latencyHead + "\n60,kcp,1,1e-320\n", frontierHead + "\na,quic,1e308,1\n", dotsHead + "\na,tcp,1e-300\n",
		growthHead + "\nactors,all,9000000000000000000,1\n", congestionHead + "\na,delay,1e300,1,,1,1\n", soakHead + "\n1,1,1,1e300,1,1\n", feelHead + "\na,b,c,1,-1e300\n",
		dotsHead + "\n" + many.String(),
	} {
		if _, err := read(strings.NewReader(table)); err == nil {
			t.Errorf("%.60q was drawn", table)
		}
	}
}
