package graph

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

var (
	baseOf         = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	driverIndex    = bridge.DriverIndex.(func(a actorrep.Actor) int)
	setDriverIndex = bridge.SetDriverIndex.(func(a actorrep.Actor, i int))
)
