package graph

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

var (
	baseOf            = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	relevancyIndex    = bridge.RelevancyIndex.(func(a actorrep.Actor) (int, netguid.GUID))
	setRelevancyIndex = bridge.SetRelevancyIndex.(func(a actorrep.Actor, i int))
	watch             = bridge.Watch.(func(w *actorrep.World, due func() bool, err error))
)
