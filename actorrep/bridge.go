package actorrep

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

func init() {
	bridge.BaseOf = func(a Actor) *Base { return a.base() }
	bridge.RelevancyIndex = func(a Actor) (int, netguid.GUID) {
		b := a.base()
		return int(b.relevancyIndex), b.guid
	}
	bridge.SetRelevancyIndex = func(a Actor, i int) { a.base().relevancyIndex = int32(i) }
	bridge.BeforeValues = func(w *World, f func(a Actor)) { w.before = append(w.before, f) }
	bridge.WasSet = func(w *World, offset uintptr) bool {
		return slices.ContainsFunc(w.client.ours, func(u *layout.Unit) bool { return u.Holds(offset) })
	}
	bridge.Classes = func(w *World) (list []bridge.Class) {
		for _, c := range w.classes {
			out := bridge.Class{Name: c.name, Layout: c.layout}
			for i := range c.rpcs {
				d := c.rpcs[i].definition()
				out.Procedures = append(out.Procedures, bridge.Procedure{Name: c.rpcs[i].name, Kind: d.kindName(), Reliable: d.reliable, Parameters: d.params})
			}
			list = append(list, out)
		}
		return list
	}
	bridge.IDs = func(w *World) netguid.Share { return w.ids.Share }
	bridge.AddConnByHand = (*World).addConnByHand
	bridge.Report = (*World).report
	bridge.Watch = (*World).watch
	bridge.SetWaited = func(p *Peer, d time.Duration) { p.waited = d }
	bridge.Waited = func(p *Peer) time.Duration { return p.waited }
	bridge.Observe = func(w *World, o bridge.Observer) { w.observer = o }
	bridge.Corrected = (*World).tellCorrected
	bridge.Silent = (*World).silent
	bridge.Record = newRecording
	bridge.Play = newPlayer
}
