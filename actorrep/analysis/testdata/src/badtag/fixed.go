package badtag

import "github.com/bunchnet/bunchnet/actorrep"

type Fixed struct {
	actorrep.Base
	A int     `net:"owneronly"`               // want `error: A: unknown option "owneronly"; is it "owner"\?`
	B int     `net:"COND_SkipOwner"`          // want `error: B: unknown option "COND_SkipOwner"; is it "skipowner"\?`
	C float32 `net:"Q=0.1, inital"`           // want `error: C: unknown option "Q=0.1"; is it "q=0.1"\?` `error: C: unknown option "inital"; is it "initial"\?`
	D uint8   `net:"max=3,owner=1"`           // want `warning: D: owner takes no value`
	E uint8   `json:"e" net:"notify=OnHelth"` // want `error: Fixed has no method OnHelth`
	F uint8   `net:"notfiy=OnHealth"`         // want `error: F: unknown option "notfiy=OnHealth"; is it "notify=OnHealth"\?`
}

func (f *Fixed) OnHealth() {}
