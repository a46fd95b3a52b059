package actorrep_test

import (
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// herald is told single values, and keeps lists of them.
type herald struct {
	actorrep.Base
	Times fastarray.List[time.Time]             `net:""`
	Whom  fastarray.List[actorrep.Ref[*herald]] `net:""`

	got []any
}

// tally is a value with its own serializer.
type tally struct{ n uint8 }

func (v *tally) WriteNet(w *bitio.Writer) { w.WriteUint8(v.n) }
func (v *tally) ReadNet(r *bitio.Reader) error {
	v.n = r.ReadUint8()
	return r.Err()
}

// sprint embeds a struct whose name isn't exported; its fields are.
type sprint struct {
	stride
	Fast bool
}

type stride struct{ X, Y int32 }

func single[P any]() *actorrep.RPC[*herald, P] {
	return actorrep.ClientRPC(func(_ actorrep.Call, h *herald, p P) error {
		h.got = append(h.got, p)
		return nil
	}, actorrep.Reliable)
}

// TestSingleParameters: a parameter that isn't a struct of fields arrives as it is, and so does an element of a list.
func TestSingleParameters(t *testing.T) {
	when, whom, from := single[time.Time](), single[actorrep.Ref[*herald]](), single[netip.Addr]()
	id, worth, own, wait, text, list := single[netguid.GUID](), single[big.Int](), single[tally](), single[time.Duration](), single[string](), single[[]time.Time]()
	step := single[sprint]()
	w := newWorld(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("herald", (*herald)(nil), actorrep.RPCs{"When": when, "Whom": whom, "From": from, "ID": id, "Worth": worth, "Own": own,
			"Wait": wait, "Text": text, "List": list, "Step": step}))
	})
	l := w.join()
	h := &herald{}
	h.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(h))
	now, addr := time.Unix(1e9, 5).UTC(), netip.MustParseAddr("10.1.2.3")
	h.Times.Add(now)
	h.Whom.Add(actorrep.RefTo(h))
	for range 60 {
		w.Step()
	}
	there, _ := l.World.Find(h.GUID()).(*herald)
	require.NotNil(t, there)
	require.NoError(t, when.Call(h, now))
	require.NoError(t, whom.Call(h, actorrep.RefTo(h)))
	require.NoError(t, from.Call(h, addr))
	require.NoError(t, id.Call(h, h.GUID()))
	require.NoError(t, worth.Call(h, *big.NewInt(77)))
	require.NoError(t, own.Call(h, tally{7}))
	require.NoError(t, wait.Call(h, time.Minute))
	require.NoError(t, text.Call(h, "now"))
	require.NoError(t, list.Call(h, []time.Time{now}))
	require.NoError(t, step.Call(h, sprint{stride{1, 2}, true}))
	for range 60 {
		w.Step()
	}
	require.Equal(t, []any{now, actorrep.RefTo(h), addr, h.GUID(), *big.NewInt(77), tally{7}, time.Minute, "now", []time.Time{now}, sprint{stride{1, 2}, true}}, there.got)
	for _, v := range there.Times.All {
		require.Equal(t, now, v)
	}
	for _, v := range there.Whom.All {
		require.Same(t, there, v.In(l.World))
	}
}

// TestParametersOfNothing: a procedure whose parameter would arrive empty can't be registered, nor can a class with a list of such.
func TestParametersOfNothing(t *testing.T) {
	type hidden struct{ n int }
	_ = hidden{}.n
	for name, p := range map[string]actorrep.Procedure{
		"hidden": single[hidden](), "a Var": single[actorrep.Var[int]](), "a list": single[fastarray.List[int]](), "a channel": single[chan int](),
	} {
		w := actorrep.NewServer(actorrep.Config{})
		require.ErrorContains(t, w.Register("herald", (*herald)(nil), actorrep.RPCs{"P": p}), "can't be replicated", name)
	}
	type lists struct {
		actorrep.Base
		L fastarray.List[hidden] `net:""`
	}
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("lists", (*lists)(nil)))
}
