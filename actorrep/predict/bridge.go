package predict

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf       = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	beforeValues = bridge.BeforeValues.(func(w *actorrep.World, f func(a actorrep.Actor)))
)
