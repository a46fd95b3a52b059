package inspect

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// AppendText appends the view as text for a terminal of 80 columns to b.
func (v View) AppendText(b []byte) []byte {
	out := &page{}
	role := "client"
	if v.Server {
		role = "server"
	}
	c := v.Counters
	out.wrap(0, "%s: %s at %v, up %v", v.Title, role, v.Addr, v.At.Round(time.Second))
	out.wrap(0, "datagrams %d in, %d out, %d refused, %d corrupt; connections %d accepted, %d joined, %d closed",
		c.DatagramsIn, c.DatagramsOut, c.Refused, c.Corrupt, c.Accepted, c.Joined, c.Closed)
	v.health(out)
	t, shown := v.Totals, ""
	if len(v.Conns) < v.ConnCount {
		shown = fmt.Sprintf("; %d of %d shown", len(v.Conns), v.ConnMatches)
	}
	out.wrap(0, "%d connections, %d joined, receive %s, send %s, %d packets in flight, %d reliable bunches unacked, %d channels%s", v.ConnCount, t.Joined,
		rate(t.InRate), rate(t.OutRate), t.PacketsInFlight, t.QueuedReliable, t.Channels, shown)
	out.line("%9s %8s %7s %8s %7s %9s %9s %7s %8s", "id", "RTT", "jitter", "loss out", "loss in", "receives", "sends", "flying", "reliable")
	out.line("%9s %8s %7s %8s %7s %9s %9s", "", "ms", "ms", "%", "%", "kB/s", "kB/s")
	for _, c := range v.Conns {
		s := c.Stats
		out.line("%9d %8.1f %7.1f %8.1f %7.1f %9.1f %9.1f %7d %8d", c.ID, s.RTT.Seconds()*1000, s.Jitter.Seconds()*1000, 100*s.Rates.OutLoss, 100*s.Rates.InLoss,
			s.Rates.InBytes/1000, s.Rates.OutBytes/1000, s.PacketsInFlight, s.QueuedReliable)
		name := ""
		if c.Name != "" {
			name = ": " + c.Name
		}
		out.wrap(10, "%s, %v, %d channels%s", c.state(), c.Addr, s.Channels, name)
	}
	for _, e := range v.Ended {
		out.wrap(2, "ended at %.1f s: %d %v %s: %s, %d reliable bunches unacked", e.At.Seconds(), e.Conn, e.Addr, e.Name, e.Why, e.Unacked)
	}
	if v.Detail != nil {
		v.Detail.text(out)
	}
	for _, o := range v.Others {
		out.line("")
		out.wrap(0, "connection %d %s", o.Conn, o.Name)
		if o.NoHistory {
			out.wrap(2, "%s", noHistory)
		}
		out.packets("sent", o.Sent)
		out.packets("received", o.Received)
	}
	return append(b, out.Bytes()...)
}

// health is the driver's ticks, the collector, what was refused, and the game's figures.
func (v View) health(out *page) {
	if n := len(v.Load); n > 0 {
		l := v.Load[n-1]
		out.wrap(0, "ticks of %s (dispatch %s, step %s, flush %s), the longest under %s; %d collections, pause under %s, heap %.1f MB, %d goroutines",
			ms(l.Mean), ms(l.Dispatch), ms(l.Step), ms(l.Flush), ms(l.Worst), l.Collections, ms(l.Pause), float64(l.Heap)/1e6, l.Goroutines)
	}
	if len(v.Refusals) > 0 {
		text := "refused"
		for _, reason := range slices.Sorted(maps.Keys(v.Refusals)) {
			text += fmt.Sprintf(" %s %d", reason, v.Refusals[reason])
		}
		out.wrap(0, "%s", text)
	}
	if len(v.Figures) > 0 {
		var all []string
		for _, f := range v.Figures {
			all = append(all, fmt.Sprintf("%s %d", f.Name, f.Value))
		}
		out.wrap(0, "%s", strings.Join(all, ", "))
	}
	out.line("")
}

const noHistory = "no curves and packets: 512 other connections have them"

func (d *Detail) text(out *page) {
	out.line("\nconnection %d", d.Conn)
	if d.NoHistory {
		out.wrap(2, "%s", noHistory)
	}
	curve := func(name string, f func(Sample) float64, unit string) {
		line, top := spark(d.Samples, f)
		out.line("  %-8s %s", name, line)
		out.line("           at most %.3g %s", top, unit)
	}
	curve("RTT", func(s Sample) float64 { return s.RTT.Seconds() * 1000 }, "ms")
	curve("loss out", func(s Sample) float64 { return 100 * float64(s.OutLoss) }, "%")
	curve("receives", func(s Sample) float64 { return float64(s.InRate) / 1000 }, "kB/s")
	curve("sends", func(s Sample) float64 { return float64(s.OutRate) / 1000 }, "kB/s")

	out.line("\n%9s %7s %7s %7s %22s  type", "channel", "OutRec", "of", "InRec", "")
	for i, ch := range d.Channels {
		if i == textRows {
			out.line("  and %d more", len(d.Channels)-i)
			break
		}
		out.wrap(58, "%9d %7d %7d %7d %s  %s", ch.Index, ch.OutRec, ch.OutRec+ch.Room, ch.InRec, bar(ch.OutRec, ch.OutRec+ch.Room), ch.Name)
	}
	for _, c := range d.Idle {
		out.wrap(2, "%d idle: %s", c.Count, c.Name)
	}
	out.packets("sent", d.Sent)
	out.packets("received", d.Received)
	for i, a := range d.Actors {
		if i == textRows {
			out.line("  and %d more actors", len(d.Actors)-i)
			break
		}
		out.wrap(2, "%s %s on channel %d, %d bits: %s", a.Class, a.ID, a.Channel, a.Bits, a.Explain)
	}
	for _, p := range d.Properties {
		calls := ""
		if p.Sent+p.Received > 0 {
			calls = fmt.Sprintf(", %d calls sent, %d received, %d refused", p.Sent, p.Received, p.Refused)
		}
		out.wrap(19, "%12d bits  %s%s", p.Bits, p.Name, calls)
	}
}

// textWidth is the columns of the text form.
const textWidth = 80

// page is text of at most textWidth columns.
type page struct{ bytes.Buffer }

// line adds a line that fits.
func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// wrap adds a text, broken at spaces into lines that fit. A text that begins with spaces goes on at indent, any other begins there and goes on a little
// further in. Texts of the game's are made printable.
func (p *page) wrap(indent int, format string, args ...any) {
	text := bitio.Printable(fmt.Sprintf(format, args...))
	rest := strings.TrimLeft(text, " ")
	begin := len(text) - len(rest)
	if begin == 0 {
		begin, indent = indent, indent+2
	}
	p.words(begin, indent, strings.Split(rest, " "))
}

// words adds words with spaces between them, from column begin on, and further lines from indent on. A word that no line has room for is cut into several.
func (p *page) words(begin, indent int, words []string) {
	p.WriteString(strings.Repeat(" ", begin))
	at, first := begin, true
	for _, w := range words {
		n := columns(w)
		switch {
		case first:
		case at+1+n > textWidth:
			p.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			p.WriteByte(' ')
			at++
		}
		first = false
		for _, r := range w {
			if n := columns(string(r)); at+n > textWidth {
				p.WriteString("\n" + strings.Repeat(" ", indent))
				at = indent
			}
			p.WriteRune(r)
			at += columns(string(r))
		}
	}
	p.WriteByte('\n')
}

// columns is how many columns of a terminal a text takes: those of East Asia take two each. What stands above another character is counted too.
func columns(s string) (n int) {
	for _, r := range s {
		n++
		if r >= 0x1100 && (r < 0x2000 || r >= 0x2e80) {
			n++
		}
	}
	return n
}

// textRows bounds the rows of each list in text.
const textRows = 16

func (p *page) packets(what string, list []Packet) {
	p.line("\n  %s, newest first", what)
	for i, k := range list {
		if i == textRows {
			return
		}
		words := []string{fmt.Sprintf("%8d  %-8s %5d B", k.ID, k.State, k.Bytes)}
		if len(k.Bunches) > 0 {
			words[0] += " "
		}
		for _, b := range k.Bunches {
			words = append(words, b.String())
		}
		if k.More > 0 {
			words = append(words, fmt.Sprintf("and %d", k.More))
		}
		p.words(2, 29, words)
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
