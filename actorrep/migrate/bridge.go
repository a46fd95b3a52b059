package migrate

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf  = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	classes = bridge.Classes.(func(w *actorrep.World) []bridge.Class)
)
