package interp

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	waited = bridge.Waited.(func(p *actorrep.Peer) time.Duration)
	report = bridge.Report.(func(w *actorrep.World, err error))
)
