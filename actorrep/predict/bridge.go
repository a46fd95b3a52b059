package predict

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf       = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	watch        = bridge.Watch.(func(w *actorrep.World, due func() bool, err error))
	beforeValues = bridge.BeforeValues.(func(w *actorrep.World, f func(a actorrep.Actor)))
)
