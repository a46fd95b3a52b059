package actorrep_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// ticket is parameters that say which call they are of.
type ticket struct{ Actor, Kind, N uint32 }

// clerk notes the tickets that came to one end of an actor.
type clerk struct {
	actorrep.Base
	Age  int32 `net:""`
	came []ticket
}

const clerkKinds = 3 * 4 // who calls, and how: unreliably, or reliably with one of three policies

// clerkCalls is procedures of all kinds.
func clerkCalls() (list [clerkKinds]*actorrep.RPC[*clerk, ticket]) {
	for i := range list {
		took := func(_ actorrep.Call, c *clerk, k ticket) error {
			c.came = append(c.came, k)
			if k.Kind != uint32(i) || k.Actor != uint32(c.GUID()) {
				return fmt.Errorf("%+v came to procedure %d of %v", k, i, c.GUID())
			}
			return nil
		}
		var options []actorrep.RPCOption
		if policy := i % 4; policy > 0 {
			options = append(options, actorrep.Reliable, actorrep.OnOverflow(actorrep.Overflow(policy-1)))
		}
		switch i / 4 {
		case 0:
			list[i] = actorrep.ServerRPC(took, options...)
		case 1:
			list[i] = actorrep.ClientRPC(took, options...)
		case 2:
			list[i] = actorrep.MulticastRPC(took, options...)
		}
	}
	return list
}

// office is a world of clerks, and what was called and came in it.
type office struct {
	*world
	rpcs   [clerkKinds]*actorrep.RPC[*clerk, ticket]
	clerks []*clerk
	called map[ticket]bool
	seen   map[*clerk]map[ticket]bool
	n      uint32
	came   int
}

// call calls some procedures of a clerk, of the kinds from one to another.
func (o *office) call(c *clerk, from, to int) {
	for range 12 {
		o.n++
		k := ticket{uint32(c.GUID()), uint32(from + o.Rand.IntN(to-from)), o.n}
		o.called[k] = true
		_ = o.rpcs[k.Kind].Call(c, k)
	}
}

// look checks what came to a clerk.
func (o *office) look(c *clerk) {
	if o.seen[c] == nil {
		o.seen[c] = map[ticket]bool{}
	}
	for _, k := range c.came {
		require.True(o.T, o.called[k], "%+v wasn't called", k)
		require.False(o.T, o.seen[c][k], "%+v came twice", k)
		o.seen[c][k] = true
		o.came++
	}
	c.came = c.came[:0]
}

// change has clerks and connections come and go.
func (o *office) change() {
	switch r := o.Rand.IntN(40); {
	case r == 0 && len(o.clerks) < 6 || len(o.clerks) == 0:
		c := &clerk{}
		require.NoError(o.T, o.Server.Spawn(c))
		o.clerks = append(o.clerks, c)
	case r == 1 && len(o.clerks) > 2:
		i := o.Rand.IntN(len(o.clerks))
		require.NoError(o.T, o.Server.Destroy(o.clerks[i]))
		o.clerks = append(o.clerks[:i], o.clerks[i+1:]...)
	case r < 4 && len(o.Lines) > 0:
		o.clerks[o.Rand.IntN(len(o.clerks))].SetOwner(o.Lines[o.Rand.IntN(len(o.Lines))].Peer)
	case r == 4 && len(o.Lines) < 4:
		o.join()
	case r == 5 && len(o.Lines) > 2:
		o.Server.RemoveConn(o.Lines[0].Peer)
		o.Lines = o.Lines[1:]
	}
}

func (o *office) setAll(set netsim.Settings) {
	for _, l := range o.Lines {
		require.NoError(o.T, l.Up.Set(set))
		require.NoError(o.T, l.Down.Set(set))
	}
}

// TestCallsRandom calls at random over bad connections, whose buffers overflow, while actors and connections come and
// go. Nothing comes that wasn't called, or twice, or to another.
func TestCallsRandom(t *testing.T) {
	for seed := range actorrep.SeedsOf(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bad := netsim.Settings{Loss: 10, Dup: 5, Order: 10}
			o := &office{rpcs: clerkCalls(), called: map[ticket]bool{}, seen: map[*clerk]map[ticket]bool{}}
			o.world = newWorld(t, seed, bad, actorrep.Config{Failed: func(err error) {
				require.True(t, errors.Is(err, actorrep.ErrActorGone) || errors.Is(err, actorrep.ErrOwnerGone), "%v", err)
			}}, func(t testing.TB, w *actorrep.World) {
				list := actorrep.RPCs{}
				for i, r := range o.rpcs {
					list[fmt.Sprintf("R%02d", i)] = r
				}
				require.NoError(t, w.Register("clerk", (*clerk)(nil), list))
			})
			for step := range 1200 {
				o.change()
				switch step % 300 {
				case 0:
					o.setAll(netsim.Settings{Loss: 100})
				case 90:
					o.setAll(bad)
				}
				for _, c := range o.clerks {
					c.Age++
					o.call(c, 4, clerkKinds)
					o.look(c)
					for _, l := range o.Lines {
						if m, ok := l.World.Find(c.GUID()).(*clerk); ok {
							o.call(m, 0, 4)
							o.look(m)
						}
					}
				}
				o.Step()
			}
			require.Greater(t, o.came, 10000)
			require.NotZero(t, o.Server.Counters.CallsDropped)
		})
	}
}
