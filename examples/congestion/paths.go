package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// everyPath prints what Adaptive makes of paths, and reports whether its promises hold on all.
func everyPath(w io.Writer, seed uint64, table []paths.Path) bool {
	good := true
	fmt.Fprintf(w, "%-55s %6s %9s %9s %9s %8s\n", "path", "share", "queue p50", "queue p95", "recovery", "fairness")
	for i := range table {
		p := &table[i]
		f := p.Run(seed, func() paths.Controller {
			c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
			if err != nil {
				panic(err)
			}
			return c
		})
		recovery, fair := "-", "-"
		if f.Recovery == paths.Never {
			recovery = "never"
		} else if len(p.Events) > 0 {
			recovery = fmt.Sprintf("%.1f s", f.Recovery.Seconds())
		}
		if p.Flows > 1 {
			fair = fmt.Sprintf("%.2f", f.Fairness)
		}
		missed := strings.Join(p.Missed(f), ", ")
		good = good && missed == ""
		fmt.Fprintf(w, "%-55s %4.1f %% %9s %9s %9s %8s  %s\n", p.Name, 100*f.Share, ms(f.P50), ms(f.P95), recovery, fair, missed)
	}
	if good {
		fmt.Fprintf(w, "\nVERDICT: good; %s keeps its promises on %d paths\n", theDefault, len(table))
	} else {
		fmt.Fprintf(w, "\nVERDICT: bad; %s missed a target\n", theDefault)
	}
	return good
}
