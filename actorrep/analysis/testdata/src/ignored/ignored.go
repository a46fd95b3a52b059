package ignored

import "github.com/bunchnet/bunchnet/actorrep"

type Actor struct {
	actorrep.Base
	A float64 `net:""` //bunchvet:ignore rawfloat the exact bits matter
	B float64 `net:""` // want `B is sent`
	//bunchvet:ignore rawfloat the exact bits matter
	C float64 `net:""`
	//bunchvet:ignore badtag another analyser
	D float64 `net:""` // want `D is sent`
	//bunchvet:ignore rawfloat
	E float64 `net:""` // want `E is sent`
}
