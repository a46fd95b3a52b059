package migrate

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

var (
	baseOf  = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	classes = bridge.Classes.(func(w *actorrep.World) []bridge.Class)
	spawnAs = bridge.SpawnAs.(func(w *actorrep.World, a, parent actorrep.Actor, id netguid.GUID) error)
)
