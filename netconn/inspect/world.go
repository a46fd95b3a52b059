package inspect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Bounds of a look at a world, whatever its size.
const (
	maxScan  = 4096  // actors compared with a text
	maxFrom  = 65536 // actors passed over
	maxMatch = 256   // bytes of the text; the page's input takes 60 characters
)

// Actors returns a Config.Actors that shows a world's actors, each with the text of World.Explain. peer returns the world's Peer of a
// connection, or nil if the connection isn't in the world.
func Actors(w *actorrep.World, peer func(c *driver.Conn) *actorrep.Peer) func(c *driver.Conn, q ActorQuery) ActorPage {
	return func(c *driver.Conn, q ActorQuery) ActorPage {
		p := peer(c)
		if p == nil {
			return ActorPage{}
		}
		page, at, match := ActorPage{Count: w.Len()}, -1, strings.ToLower(q.Match)
		from := min(q.From, maxFrom)
		for a := range w.All {
			at++
			if at < from {
				continue
			}
			if len(page.Actors) == q.Max || at-from == maxScan {
				if at <= maxFrom {
					page.Next = at
				}
				return page
			}
			named := a.(interface {
				GUID() netguid.GUID
				ClassName() string
			})
			id, class := named.GUID().String(), named.ClassName()
			if match != "" && !strings.Contains(strings.ToLower(class), match) && !strings.Contains(id, match) {
				continue
			}
			e := w.Explain(p, a)
			page.Actors = append(page.Actors, Actor{ID: id, Class: class, Channel: e.Channel, Bits: e.Total, Explain: e.Text})
		}
		return page
	}
}

// Properties returns a Config.Properties that shows how many bits each property and procedure of a connection took, the largest first. Names
// of procedures end in "()".
func Properties(peer func(c *driver.Conn) *actorrep.Peer) func(c *driver.Conn) []Property {
	return func(c *driver.Conn) (list []Property) {
		p := peer(c)
		if p == nil {
			return nil
		}
		for _, cost := range p.Attribution(c.Stats().Packets.BytesSent) {
			name := cost.Name
			if cost.Class != "" {
				name = cost.Class + "." + name
			}
			if cost.Bits > 0 || cost.Received > 0 {
				list = append(list, Property{name, cost.Bits, cost.Sent, cost.Received, cost.Refused})
			}
		}
		slices.SortStableFunc(list, func(a, b Property) int { return cmp.Compare(b.Bits, a.Bits) })
		return list
	}
}

// Figures returns a Config.Figures that shows a world's counters: calls, updates and errors.
func Figures(w *actorrep.World) func() []Figure {
	return func() []Figure {
		c := &w.Counters
		return []Figure{
			{"actors", uint64(w.Len())},
			{"calls sent", c.CallsSent}, {"calls received", c.CallsReceived}, {"calls dropped", c.CallsDropped},
			{"calls refused", c.CallsRefused}, {"calls that failed", c.CallErrors},
			{"updates", c.Updates}, {"updates sent again", c.Resent}, {"ticks without room", c.Saturated},
			{"bunches that made no sense", c.Bad}, {"references to nothing", c.Unmapped},
		}
	}
}
