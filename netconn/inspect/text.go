package inspect

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// AppendText appends the view as text for a terminal to b.
func (v View) AppendText(b []byte) []byte {
	var out bytes.Buffer
	role := "client"
	if v.Server {
		role = "server"
	}
	c := v.Counters
	fmt.Fprintf(&out, "%s: %s at %v, up %v\n", bitio.Printable(v.Title), role, v.Addr, v.At.Round(time.Second))
	fmt.Fprintf(&out, "datagrams %d in, %d out, %d refused, %d corrupt; connections %d accepted, %d joined, %d closed\n",
		c.DatagramsIn, c.DatagramsOut, c.Refused, c.Corrupt, c.Accepted, c.Joined, c.Closed)
	v.health(&out)
	t := v.Totals
	fmt.Fprintf(&out, "%d connections, %d joined, receive %s, send %s, %d packets in flight, %d reliable bunches unacked, %d channels", v.ConnCount, t.Joined,
		rate(t.InRate), rate(t.OutRate), t.PacketsInFlight, t.QueuedReliable, t.Channels)
	if len(v.Conns) < v.ConnCount {
		fmt.Fprintf(&out, "; %d of %d shown", len(v.Conns), v.ConnMatches)
	}
	out.WriteString("\n")
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "id\taddress\tname\tstate\tRTT\tjitter\tloss out\tloss in\treceives\tsends\tflying\treliable\tchannels\t")
	for _, c := range v.Conns {
		s := c.Stats
		fmt.Fprintf(w, "%d\t%v\t%s\t%s\t%s\t%s\t%.1f %%\t%.1f %%\t%s\t%s\t%d\t%d\t%d\t\n", c.ID, c.Addr, bitio.Printable(c.Name), c.state(), ms(s.RTT), ms(s.Jitter),
			100*s.Rates.OutLoss, 100*s.Rates.InLoss, rate(s.Rates.InBytes), rate(s.Rates.OutBytes), s.PacketsInFlight, s.QueuedReliable, s.Channels)
	}
	w.Flush()
	for _, e := range v.Ended {
		fmt.Fprintf(&out, "  ended at %.1f s: %d %v %s: %s, %d reliable bunches unacked\n", e.At.Seconds(), e.Conn, e.Addr, bitio.Printable(e.Name), e.Why, e.Unacked)
	}
	if v.Detail != nil {
		v.Detail.text(&out)
	}
	for _, o := range v.Others {
		fmt.Fprintf(&out, "\nconnection %d %s\n", o.Conn, bitio.Printable(o.Name))
		if o.NoHistory {
			fmt.Fprintf(&out, "  %s\n", noHistory)
		}
		writePackets(&out, "sent", o.Sent)
		writePackets(&out, "received", o.Received)
	}
	return append(b, out.Bytes()...)
}

// health is the driver's ticks, the collector, what was refused, and the game's figures.
func (v View) health(out *bytes.Buffer) {
	if n := len(v.Load); n > 0 {
		l := v.Load[n-1]
		fmt.Fprintf(out, "ticks of %s (dispatch %s, step %s, flush %s), the longest under %s; %d collections, pause under %s, heap %.1f MB, %d goroutines\n",
			ms(l.Mean), ms(l.Dispatch), ms(l.Step), ms(l.Flush), ms(l.Worst), l.Collections, ms(l.Pause), float64(l.Heap)/1e6, l.Goroutines)
	}
	if len(v.Refusals) > 0 {
		out.WriteString("refused")
		for _, reason := range slices.Sorted(maps.Keys(v.Refusals)) {
			fmt.Fprintf(out, " %s %d", reason, v.Refusals[reason])
		}
		out.WriteByte('\n')
	}
	for i, f := range v.Figures {
		sep := ", "
		if i == len(v.Figures)-1 {
			sep = "\n"
		}
		fmt.Fprintf(out, "%s %d%s", bitio.Printable(f.Name), f.Value, sep)
	}
	out.WriteByte('\n')
}

const noHistory = "no curves and packets: 512 other connections have them"

func (d *Detail) text(out *bytes.Buffer) {
	fmt.Fprintf(out, "\nconnection %d\n", d.Conn)
	if d.NoHistory {
		fmt.Fprintf(out, "  %s\n", noHistory)
	}
	curve := func(name string, f func(Sample) float64, unit string) {
		line, top := spark(d.Samples, f)
		fmt.Fprintf(out, "  %-8s %s  at most %.3g %s\n", name, line, top, unit)
	}
	curve("RTT", func(s Sample) float64 { return s.RTT.Seconds() * 1000 }, "ms")
	curve("loss out", func(s Sample) float64 { return 100 * float64(s.OutLoss) }, "%")
	curve("receives", func(s Sample) float64 { return float64(s.InRate) / 1000 }, "kB/s")
	curve("sends", func(s Sample) float64 { return float64(s.OutRate) / 1000 }, "kB/s")

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\n  channel\ttype\tOutRec\tof\tInRec\t\t")
	for i, ch := range d.Channels {
		if i == textRows {
			fmt.Fprintf(w, "  and %d more\t\t\t\t\t\t\n", len(d.Channels)-i)
			break
		}
		fmt.Fprintf(w, "  %d\t%s\t%d\t%d\t%d\t%s\t\n", ch.Index, bitio.Printable(ch.Name), ch.OutRec, ch.OutRec+ch.Room, ch.InRec, bar(ch.OutRec, ch.OutRec+ch.Room))
	}
	w.Flush()
	for _, c := range d.Idle {
		fmt.Fprintf(out, "  %d idle: %s\n", c.Count, bitio.Printable(c.Name))
	}
	writePackets(out, "sent", d.Sent)
	writePackets(out, "received", d.Received)
	for i, a := range d.Actors {
		if i == textRows {
			break
		}
		fmt.Fprintf(out, "  %s %s on channel %d, %d bits: %s\n", bitio.Printable(a.Class), bitio.Printable(a.ID), a.Channel, a.Bits, bitio.Printable(a.Explain))
	}
	for _, p := range d.Properties {
		fmt.Fprintf(out, "  %-30s %10d bits", bitio.Printable(p.Name), p.Bits)
		if p.Sent+p.Received > 0 {
			fmt.Fprintf(out, ", %d calls sent, %d received, %d refused", p.Sent, p.Received, p.Refused)
		}
		fmt.Fprintln(out)
	}
}

// textRows bounds the rows of each list in text.
const textRows = 16

func writePackets(out *bytes.Buffer, what string, list []Packet) {
	fmt.Fprintf(out, "\n  %s, newest first\n", what)
	for i, p := range list {
		if i == textRows {
			return
		}
		fmt.Fprintf(out, "  %8d  %-8s %5d B", p.ID, p.State, p.Bytes)
		for _, b := range p.Bunches {
			fmt.Fprintf(out, "  %s", b)
		}
		if p.More > 0 {
			fmt.Fprintf(out, "  and %d", p.More)
		}
		out.WriteByte('\n')
	}
}

// String returns the bunch in a few characters: channel, sequence if reliable, bits and flags.
func (b Bunch) String() string {
	s := fmt.Sprintf("#%d", b.Channel)
	if b.Reliable {
		s += fmt.Sprintf(":%d", b.Sequence)
	}
	s += fmt.Sprintf(" %db", b.Bits)
	for _, f := range []struct {
		is   bool
		what string
	}{{b.Open, " open"}, {b.Close, " close"}, {b.Partial, " part"}, {b.Resent, " again"}} {
		if f.is {
			s += f.what
		}
	}
	return "[" + s + "]"
}

var blocks = []rune(" ▁▂▃▄▅▆▇█")

// spark is a curve of the last samples in a line, and its highest value.
func spark(samples []Sample, f func(Sample) float64) (line string, top float64) {
	samples = samples[max(0, len(samples)-60):]
	for _, s := range samples {
		top = max(top, f(s))
	}
	var b strings.Builder
	for _, s := range samples {
		n := 0
		if top > 0 {
			n = int(f(s) / top * float64(len(blocks)-1))
		}
		b.WriteRune(blocks[n])
	}
	return b.String(), top
}

func bar(n, of int) string {
	const width = 20
	full := 0
	if of > 0 {
		full = (n*width + of - 1) / of
	}
	return "|" + strings.Repeat("█", full) + strings.Repeat("·", width-full) + "|"
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func rate(bytes float64) string { return fmt.Sprintf("%.1f kB/s", bytes/1000) }
