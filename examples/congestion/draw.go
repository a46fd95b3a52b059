package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"
)

// columns is the width of a plot.
const columns = 75

var blocks = []rune(" ▁▂▃▄▅▆▇█")

// draw plots a run's rates and its queue.
func draw(w io.Writer, r *run, first bool) {
	if first {
		fmt.Fprintf(w, "\n━━ %s: %s ━━\n", r.link.name, r.link.title)
	}
	fmt.Fprintf(w, "\n  %s\n", r.kind)
	top := r.link.net.Bandwidth
	for i, rates := range r.rates {
		label := "rate"
		if len(r.rates) > 1 {
			label = fmt.Sprintf("rate %d", i+1)
		}
		plot(w, label, bits(top), rates, top, 3)
	}
	longest := 0.0
	for _, q := range r.queue {
		longest = max(longest, q)
	}
	scale := 50.0
	for scale < longest {
		scale *= 2
	}
	plot(w, "queue", fmt.Sprintf("%.0f ms", scale), r.queue, scale, 2)
}

// plot draws values as bars, top of the scale at the top of the highest row.
func plot(w io.Writer, label, top string, values []float64, scale float64, rows int) {
	cols := make([]int, columns) // heights in eighths
	for i := range cols {
		from, to := i*len(values)/columns, max((i+1)*len(values)/columns, i*len(values)/columns+1)
		mean := 0.0
		for _, v := range values[from:to] {
			mean += v / float64(to-from)
		}
		cols[i] = min(int(math.Round(mean/scale*float64(rows*8))), rows*8)
	}
	for row := rows - 1; row >= 0; row-- {
		name, mark := "", ""
		if row == rows-1 {
			name, mark = label, top
		}
		line := make([]rune, columns)
		for i, h := range cols {
			line[i] = blocks[min(max(h-row*8, 0), 8)]
		}
		fmt.Fprintf(w, "  %-7s %10s ▕%s▏\n", name, mark, string(line))
	}
}

func bits(b float64) string {
	if b >= 1e6 {
		return fmt.Sprintf("%.0f Mbit/s", b/1e6)
	}
	return fmt.Sprintf("%.0f kbit/s", b/1e3)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1e3) }

func table(w io.Writer, runs []run) {
	fmt.Fprintf(w, "\n%-7s %-9s %12s %10s %10s %7s %9s\n", "link", "control", "utilisation", "queue p50", "queue p95", "loss", "fairness")
	for i := range runs {
		r := &runs[i]
		fair := "-"
		if r.link.flows > 1 {
			fair = fmt.Sprintf("%.2f", r.fairness)
		}
		fmt.Fprintf(w, "%-7s %-9s %10.1f %% %10s %10s %5.1f %% %9s\n",
			r.link.name, r.kind, 100*r.utilisation, ms(r.p50), ms(r.p95), 100*r.loss, fair)
	}
}

// verdict says whether the default kept its promises, and prints it.
func verdict(w io.Writer, runs []run) (good bool, err error) {
	good, judged := true, 0
	fmt.Fprintln(w)
	for i := range runs {
		r := &runs[i]
		if r.kind != theDefault {
			continue
		}
		judged++
		if r.utilisation < 0.9 {
			good = false
			fmt.Fprintf(w, "%s: %.1f %% of the link, less than 90 %%\n", r.link.name, 100*r.utilisation)
		}
		if r.p50 >= 30*time.Millisecond {
			good = false
			fmt.Fprintf(w, "%s: half of the packets queued for %s or more, above 30 ms\n", r.link.name, ms(r.p50))
		}
		if r.link.flows > 1 && r.fairness < 0.9 {
			good = false
			fmt.Fprintf(w, "%s: fairness %.2f, below 0.9\n", r.link.name, r.fairness)
		}
	}
	switch {
	case judged == 0:
		_, err = fmt.Fprintln(w, "PASS: nothing to judge, as the default did not run")
	case good:
		_, err = fmt.Fprintf(w, "PASS: %s uses 90 %% of every link, keeps the median queue under 30 ms and shares\n", theDefault)
	default:
		_, err = fmt.Fprintf(w, "FAIL: %s missed a target\n", theDefault)
	}
	return good, err
}

// writeCSV writes a line for each link, controller and bin: rates in bits a second, the
// second one empty when there is one flow, and the queue in ms.
func writeCSV(name string, runs []run) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	w := csv.NewWriter(file)
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	if err := w.Write([]string{"link", "controller", "seconds", "rate1", "rate2", "queue_ms", "capacity"}); err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		for j := range r.queue {
			at := time.Duration(j) * bin
			second := ""
			if len(r.rates) > 1 {
				second = number(r.rates[1][j])
			}
			row := []string{r.link.name, r.kind, number(at.Seconds()), number(r.rates[0][j]), second, number(r.queue[j]), number(r.link.capacity(at))}
			if err := w.Write(row); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
