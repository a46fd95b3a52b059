package rpcs

import "github.com/bunchnet/bunchnet/actorrep"

type Soldier struct{ actorrep.Base }

func do(c actorrep.Call, s *Soldier, n int) error { return nil }

var Fire = actorrep.ServerRPC(do, actorrep.Reliable, actorrep.OnOverflow(actorrep.Coalesce)) // want Fire:`reliable server`

var Aim = actorrep.ServerRPC(do, actorrep.RateLimit(60, 10)) // want Aim:`server`

var Checked = actorrep.ClientRPC(do, actorrep.Reliable).Validated(nil) // want Checked:`reliable client`

var All = struct {
	Shout *actorrep.RPC[*Soldier, int] // want Shout:`reliable multicast`
}{Shout: actorrep.MulticastRPC(do, actorrep.Reliable)}

var Push = actorrep.ServerRPC0(func(c actorrep.Call, s *Soldier) error { return nil }, actorrep.Reliable).Validated(nil) // want Push:`reliable server`

var Later = actorrep.ServerRPC[*Soldier, int](nil, actorrep.Reliable) // want Later:`reliable server`
