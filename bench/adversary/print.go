package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

type verdict int

const (
	verdictOK verdict = iota
	verdictFail
	verdictKnown
)

// printer prints aligned lines as they come: the widths are those of all attacks that were chosen.
type printer struct {
	o                            options
	area, name, promise, measure int
	terminal                     bool
}

func newPrinter(chosen []attack, o options) *printer {
	p := &printer{o: o, measure: len("measured")}
	for i := range chosen {
		a := &chosen[i]
		p.area = max(p.area, utf8.RuneCountInString(a.area))
		p.name = max(p.name, utf8.RuneCountInString(a.name))
		p.promise = max(p.promise, utf8.RuneCountInString(a.promise))
		p.measure = max(p.measure, 9+len(a.bound.unit))
	}
	info, err := os.Stderr.Stat()
	p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	p.row("area", "attack", "promise", "measured", "bound", "cost", "")
	return p
}

func (p *printer) row(area, name, promise, measured, bound, cost, verdict string) {
	fmt.Println(strings.TrimRight(fmt.Sprintf("%-*s  %-*s  %-*s  %-*s  %-10s  %-7s  %s", p.area, area, p.name, name, p.promise, promise, p.measure, measured, bound, cost, verdict), " "))
}

// waiting shows on a terminal what is under way.
func (p *printer) waiting(a *attack) {
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %s ...", a.area, a.name)
	}
}

// line prints what came of an attack.
func (p *printer) line(a *attack, out outcome) (v verdict) {
	if p.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	measured, text := number(out.figure.value)+" "+a.bound.unit, "ok"
	if out.figure.broken != "" {
		measured = "-"
	}
	holds := out.figure.broken == "" && a.bound.holds(out.figure.value)
	switch {
	case holds && a.known != "":
		text = "ok; take its known off"
	case holds:
	case a.known != "":
		v, text = verdictKnown, "known: "+a.known
	default:
		v, text = verdictFail, "FAIL"
	}
	if out.figure.broken != "" {
		text += ": " + strings.ReplaceAll(out.figure.broken, "\n", " ")
	}
	p.row(a.area, a.name, a.promise, measured, a.bound.String(), fmt.Sprintf("%.1f s", out.cost.Seconds()), text)
	if p.o.verbose {
		for _, n := range out.notes {
			fmt.Println("      " + strings.ReplaceAll(n, "\n", "\n      "))
		}
	}
	return v
}

// number is a value with three digits, or all when it is whole.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
