package rawfloat

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type Tool struct {
	ID   uint32
	Wear float32
	Heat float32 `net:"q=0.1"`
}

type Vec struct{ X, Y float64 }

type Shot struct {
	ID   uint32
	From Vec
}

type wear struct{ Wear float32 }

type Part struct {
	wear
	ID uint32
}

type Bad struct {
	actorrep.Base
	Speed float32               `net:""`        // want `advice: Speed is sent as 32 bits whenever any of them changes; add q=STEP, as q=0.01 for hundredths to its tag`
	Pos   Vec                   `net:"owner"`   // want `advice: Pos.X is sent as 64 bits`
	Yaw   float32               `net:""`        // want `advice: Yaw is sent as 32 bits whenever any of them changes; add rot=16 for an angle in degrees, or q=STEP to its tag`
	Shots []Shot                `net:"cap=8"`   // want `advice: Shots\[\].From.X is sent as 64 bits`
	Fuel  actorrep.Var[float64] `net:""`        // want `advice: Fuel is sent as 64 bits`
	Tools fastarray.List[Tool]  `net:""`        // want `advice: Tools\[\].Wear is sent as 32 bits whenever any of them changes; give it a net tag with q=STEP`
	Parts fastarray.List[Part]  `net:""`        // want `advice: Parts\[\].wear.Wear is sent as 32 bits`
	Grid  [9]float32            `net:"initial"` // want `advice: Grid\[\] is sent as 32 bits`
}
