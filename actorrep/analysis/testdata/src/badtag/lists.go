package badtag

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type Chest struct {
	actorrep.Base
	Items fastarray.List[int] `net:"owner,notify=OnItems"`
	Other fastarray.List[int] `net:"notify=OnOther"` // want `error: notify method OnOther must take nothing: a fast array has callbacks that know what was`
}

func (c *Chest) OnItems()                        {}
func (c *Chest) OnOther(old fastarray.List[int]) {}
