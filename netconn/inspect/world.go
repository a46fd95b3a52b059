package inspect

import (
	"cmp"
	"slices"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Actors is a Config.Actors that shows a world's actors, with what World.Explain says of each. peer finds the
// world's side of a connection; nil for one that isn't in the world.
func Actors(w *actorrep.World, peer func(c *driver.Conn) *actorrep.Peer) func(c *driver.Conn) []Actor {
	return func(c *driver.Conn) (list []Actor) {
		p := peer(c)
		if p == nil {
			return nil
		}
		for a := range w.All {
			e := w.Explain(p, a)
			named := a.(interface {
				GUID() netguid.GUID
				ClassName() string
			})
			list = append(list, Actor{ID: named.GUID().String(), Class: named.ClassName(), Channel: e.Channel, Bits: e.Total, Explain: e.Text})
		}
		return list
	}
}

// Properties is a Config.Properties that shows where a connection's bits went, the most expensive first.
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
			if cost.Bits > 0 {
				list = append(list, Property{name, cost.Bits})
			}
		}
		slices.SortStableFunc(list, func(a, b Property) int { return cmp.Compare(b.Bits, a.Bits) })
		return list
	}
}
