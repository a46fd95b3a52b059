package interp

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	report = bridge.Report.(func(w *actorrep.World, err error))
)
