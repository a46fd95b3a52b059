package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// table prints rows in aligned columns.
func table(w io.Writer, title string, rows func(row func(cells ...any))) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows(func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(tw, "%v\t", c)
		}
		fmt.Fprintln(tw)
	})
	_ = tw.Flush() // to the terminal
}

func printW1(w io.Writer, points []latencyPoint) {
	title := ""
	for len(points) > 0 {
		n := 0
		title = points[0].title()
		for n < len(points) && points[n].title() == title {
			n++
		}
		group := points[:n]
		points = points[n:]
		table(w, title, func(row func(...any)) {
			row("peer", "p50 ms", "p90", "p99", "p99.9", "max", "wire/payload", "got", "")
			for i := range group {
				p := &group[i]
				row(p.name(), ms(p.P50), ms(p.P90), ms(p.P99), ms(p.P999), ms(p.Max), fmt.Sprintf("%.2f", p.WireBytes), fmt.Sprintf("%d/%d", p.Got, p.Sent), p.remark())
			}
		})
	}
}

func (p *latencyPoint) title() string {
	loss := fmt.Sprintf("loss %v %%", p.Loss)
	if p.Burst {
		loss = "loss 5 % in bursts of five"
	}
	if p.Together {
		return fmt.Sprintf("W1: echo of %d B, %d together in each tick of %d Hz, %v one way, %s", w1Size, w1Together, w1TogetherRate/w1Together, w1Lag, loss)
	}
	return fmt.Sprintf("W1: echo of %d B, %d/s, %v one way, jitter %v, %s", w1Size, p.Rate, w1Lag, p.Jitter, loss)
}

func (p *latencyPoint) remark() string {
	switch {
	case p.Err != nil:
		return p.Err.Error()
	case p.Got < p.Sent:
		return "lost some"
	}
	return ""
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }

func printW3(w io.Writer, points []manyPoint) {
	for len(points) > 0 {
		clients, n := points[0].Clients, 0
		for n < len(points) && points[n].Clients == clients {
			n++
		}
		table(w, fmt.Sprintf("W3: %d clients, %d packets/s of %d B each, echoed", clients, points[0].Rate, w3Size), func(row func(...any)) {
			row("peer", "server CPU %", "us/echo", "clients CPU %", "us/echo", "idle kB/conn", "loaded kB/conn", "goroutines/conn", "echoed", "late", "")
			for i := range points[:n] {
				p := &points[i]
				if p.Err != nil {
					row(p.Peer, "-", "-", "-", "-", "-", "-", "-", "-", "-", p.Err)
					continue
				}
				got := float64(max(1, p.Got))
				micros := func(cpu time.Duration) string { return fmt.Sprintf("%.2f", cpu.Seconds()*1e6/got) }
				row(p.Peer, fmt.Sprintf("%.1f", 100*p.share(p.CPU)), micros(p.CPU), fmt.Sprintf("%.1f", 100*p.share(p.ClientCPU)), micros(p.ClientCPU), kB(p.Idle), kB(p.Load), fmt.Sprintf("%.2f", p.Goroutines),
					fmt.Sprintf("%.2f %%", 100*float64(p.Got)/float64(max(1, p.Sent))), fmt.Sprintf("%.2f %%", 100*float64(p.Late)/got), p.remark())
			}
		})
		points = points[n:]
	}
}

func printW4(w io.Writer, points []rawPoint) {
	table(w, fmt.Sprintf("W4: datagrams to one peer over loopback, %d at a time", w4Batch), func(row func(...any)) {
		row("way", "bytes", "CPU ns/datagram", "")
		for _, p := range points {
			if p.Err != nil {
				row(p.Way, p.Size, "-", p.Err)
				continue
			}
			row(p.Way, p.Size, fmt.Sprintf("%.0f", p.NS), "")
		}
	})
}

func printW5(w io.Writer, points []memoryPoint) {
	table(w, fmt.Sprintf("W5: %d B messages in memory: sent, received and acked", w5Size), func(row func(...any)) {
		row("way", "ns/message", "allocs/message", "bytes/message", "")
		for _, p := range points {
			if p.Err != nil {
				row(p.Way, "-", "-", "-", p.Err)
				continue
			}
			row(p.Way, fmt.Sprintf("%.0f", p.NS), fmt.Sprintf("%.3f", p.Allocs), fmt.Sprintf("%.1f", p.Wire), "")
		}
	})
}

func kB(b float64) string { return fmt.Sprintf("%.1f", b/1000) }

func printW2(w io.Writer, points []throughputPoint) {
	for len(points) > 0 {
		size, n := points[0].Size, 0
		for n < len(points) && points[n].Size == size {
			n++
		}
		table(w, fmt.Sprintf("W2: %d B, reliable and ordered, one way over loopback", size), func(row func(...any)) {
			row("peer", "messages/s", "MB/s", "CPU s/million", "allocs/message", "")
			for i := range points[:n] {
				p := &points[i]
				if p.Err != nil {
					row(p.Peer, "-", "-", "-", "-", p.Err)
					continue
				}
				remark := ""
				if p.Disordered {
					remark = "out of order"
				}
				row(p.Peer, fmt.Sprintf("%.0f", p.perSecond()), fmt.Sprintf("%.1f", p.perSecond()*float64(size)/1e6), fmt.Sprintf("%.3f", p.cpuMillion()), fmt.Sprintf("%.3f", p.Allocs), remark)
			}
		})
		points = points[n:]
	}
}
