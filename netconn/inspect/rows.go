package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/bunchnet/bunchnet/netconn"
)

// ConnQuery asks for a page of connections: those whose ID, address, name or state contains Match, in an order, from index From on.
type ConnQuery struct {
	Match string
	Sort  string // a key of the page's columns, such as rtt; default id
	Down  bool   // the largest first
	From  int
}

// Totals are sums over all connections, whatever page is shown.
type Totals struct {
	Joined          int
	InRate, OutRate float64 // bytes a second
	PacketsInFlight int
	QueuedReliable  int
	Channels        int
}

// maxRows bounds the connections in a View, and maxExportRows those in an export.
const (
	maxRows       = 64
	maxExportRows = 4096
)

// orders is how connections are sorted, by the key of a column.
var orders = map[string]func(a, b *Conn) int{
	"id":       func(a, b *Conn) int { return 0 },
	"address":  func(a, b *Conn) int { return a.Addr.Compare(b.Addr) },
	"name":     func(a, b *Conn) int { return cmp.Compare(a.Name, b.Name) },
	"state":    func(a, b *Conn) int { return cmp.Compare(a.state(), b.state()) },
	"rtt":      by(func(s *netconn.Stats) float64 { return float64(s.RTT) }),
	"jitter":   by(func(s *netconn.Stats) float64 { return float64(s.Jitter) }),
	"lossout":  by(func(s *netconn.Stats) float64 { return s.Rates.OutLoss }),
	"lossin":   by(func(s *netconn.Stats) float64 { return s.Rates.InLoss }),
	"receives": by(func(s *netconn.Stats) float64 { return s.Rates.InBytes }),
	"sends":    by(func(s *netconn.Stats) float64 { return s.Rates.OutBytes }),
	"inflight": by(func(s *netconn.Stats) float64 { return float64(s.PacketsInFlight) }),
	"reliable": by(func(s *netconn.Stats) float64 { return float64(s.QueuedReliable) }),
	"channels": by(func(s *netconn.Stats) float64 { return float64(s.Channels) }),
}

func by(f func(*netconn.Stats) float64) func(a, b *Conn) int {
	return func(a, b *Conn) int { return cmp.Compare(f(&a.Stats), f(&b.Stats)) }
}

func (c *Conn) state() string {
	if c.Joined {
		return "joined"
	}
	return "login"
}

func (c *Conn) matches(lower string) bool {
	text := strconv.FormatUint(uint64(c.ID), 10) + " " + c.Addr.String() + " " + c.Name + " " + c.state()
	return strings.Contains(strings.ToLower(text), lower)
}

// rows replaces all connections of a view by a page of them. The snapshot is shared, so it isn't changed.
func (v *View) rows(q ConnQuery, most int) {
	all := v.Conns
	v.ConnCount, v.Totals = len(all), totals(all)
	found, lower := make([]*Conn, 0, len(all)), strings.ToLower(q.Match)
	for i := range all {
		if c := &all[i]; lower == "" || c.matches(lower) {
			found = append(found, c)
		}
	}
	order := orders[cmp.Or(q.Sort, "id")]
	slices.SortFunc(found, func(a, b *Conn) int {
		n := cmp.Or(order(a, b), cmp.Compare(a.ID, b.ID))
		if q.Down {
			return -n
		}
		return n
	})
	v.ConnMatches = len(found)
	from := min(q.From, len(found))
	page := found[from:min(from+most, len(found))]
	if end := from + len(page); end < len(found) {
		v.ConnNext = end
	}
	v.Conns = make([]Conn, 0, len(page))
	for _, c := range page {
		v.Conns = append(v.Conns, *c)
	}
}

func totals(all []Conn) (t Totals) {
	for i := range all {
		c, s := &all[i], &all[i].Stats
		if c.Joined {
			t.Joined++
		}
		t.InRate += s.Rates.InBytes
		t.OutRate += s.Rates.OutBytes
		t.PacketsInFlight += s.PacketsInFlight
		t.QueuedReliable += s.QueuedReliable
		t.Channels += s.Channels
	}
	return t
}
