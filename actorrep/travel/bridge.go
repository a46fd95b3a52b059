package travel

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	report = bridge.Report.(func(w *actorrep.World, err error))
	watch  = bridge.Watch.(func(w *actorrep.World, due func() bool, err error))
)
