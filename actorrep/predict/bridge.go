package predict

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf       = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	watch        = bridge.Watch.(func(w *actorrep.World, due func() bool, err error))
	report       = bridge.Report.(func(w *actorrep.World, err error))
	setWaited    = bridge.SetWaited.(func(p *actorrep.Peer, d time.Duration))
	corrected    = bridge.Corrected.(func(w *actorrep.World, a actorrep.Actor, p *actorrep.Peer, size float64, off []string))
	wasSet       = bridge.WasSet.(func(w *actorrep.World, offset uintptr) bool)
	beforeValues = bridge.BeforeValues.(func(w *actorrep.World, f func(a actorrep.Actor)))
)
