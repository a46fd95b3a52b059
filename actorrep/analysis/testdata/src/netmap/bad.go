package netmap

import (
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type Item struct {
	Name string
	next *Item
}

type Node struct{ Kids []Node }

type Bad struct {
	actorrep.Base
	A map[string]int          `net:""` // want `error: A is map\[string\]int, which can't be replicated: a map has no order that two ends share; use a fastarray.Map`
	B chan int                `net:""` // want `error: B is chan int, which can't be replicated: it isn't a value`
	C func()                  `net:""` // want `error: C is func\(\), which can't be replicated: it isn't a value`
	D *Bad                    `net:""` // want `error: D is \*netmap.Bad, which can't be replicated: a pointer means nothing at the other end; use an actorrep.Ref`
	E *int                    `net:""` // want `error: E is \*int, .* use the value`
	F any                     `net:""` // want `error: F is any, .* the other end can't know what is in an interface`
	G []Item                  `net:""` // want `error: G\[\].next is netmap.Item, .* it contains itself`
	H complex128              `net:""` // want `error: H is complex128`
	I uintptr                 `net:""` // want `error: I is uintptr`
	S struct{ mu sync.Mutex } `net:""` // want `error: S.mu is sync.Mutex, .* it belongs to one process`
	J struct {
		p *int
		t time.Time
	} `net:""` // want `error: J.p is \*int`
	K actorrep.Var[map[int]int]           `net:""` // want `error: K is map\[int\]int`
	L []actorrep.Var[int]                 `net:""` // want `error: L\[\] is actorrep.Var\[int\], .* elements of slices can't be Vars`
	M Node                                `net:""` // want `error: M.Kids\[\] is netmap.Node, .* it contains itself`
	N [2]struct{ A struct{ B chan int } } `net:""` // want `error: N\[\].A.B is chan int`
	O actor                               `net:""` // want `error: O is netmap.actor, .* it is an actor; use an actorrep.Ref`
}

type actor struct {
	actorrep.Base
	N int `net:""`
}

type Stack struct {
	ID    uint32
	Owner *Bad
}

type Bags struct {
	actorrep.Base
	A fastarray.List[Stack]                   `net:"owner"` // want `error: A\[\].Owner is \*netmap.Bad, which can't be replicated: a pointer`
	B fastarray.List[struct{ M map[int]int }] `net:""`      // want `error: B\[\].M is map\[int\]int`
	C []fastarray.List[int]                   `net:""`      // want `error: C\[\] is fastarray.List\[int\], which can't be replicated: a slice can't hold fast arrays`
}

type Large struct { // want `error: Large has 1026 replicated units, 1024 at most; move some into a component`
	actorrep.Base
	A [1021]int  `net:""`
	B [2]float64 `net:""`
	C [2]string  `net:""`
	D []int      `net:""`
	E bool       `net:""`
}

type Wordy struct { // want `error: Wordy has 64 replicated units that aren't plain numbers, 64 at most with the numbers put together; move some into a component`
	actorrep.Base
	A [64]string `net:""`
	B int        `net:""`
}

type Args struct {
	N      int
	Target *Bad
}

type table struct{ M map[int]int }

var (
	Send  = actorrep.ServerRPC(func(c actorrep.Call, b *Bad, p Args) error { return nil })                          // want `error: P.Target is \*netmap.Bad, which can't be replicated`
	Table = actorrep.MulticastRPC(func(c actorrep.Call, b *Bad, p map[int]int) error { return nil })                // want `error: P is map\[int\]int`
	Embed = actorrep.ClientRPC(func(c actorrep.Call, b *Bad, p struct{ table }) error { return nil })               // want `error: P.table.M is map\[int\]int`
	Value = actorrep.ClientRPC(func(c actorrep.Call, b *Bad, p struct{ V actorrep.Var[int] }) error { return nil }) // want `error: P.V is actorrep.Var\[int\], .* Vars and fast arrays belong to actors`
)
