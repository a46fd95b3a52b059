package actorrep_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// crate has a field of each kind that has a bound.
type crate struct {
	actorrep.Base
	Text  string               `net:"cap=8"`
	Bytes []byte               `net:"cap=65535"`
	List  []uint16             `net:"cap=2"`
	Level uint8                `net:"max=100"`
	Place vec                  `net:"q=0.5"`
	Other actorrep.Var[string] `net:"cap=8"`
}

type cargo struct {
	Text  string   `net:"cap=8"`
	List  []string `net:"cap=2"`
	Level uint8    `net:"max=100"`
	X     float64  `net:"q=1"`
}

// TestArrivesOrIsTold: a value that doesn't fit its field is told once, with actor, field and reason, counted, and
// explained; one that fits arrives whole.
func TestArrivesOrIsTold(t *testing.T) {
	for _, c := range []struct {
		field    string
		fit, not func(c *crate)
	}{
		{"Text", func(c *crate) { c.Text = "12345678" }, func(c *crate) { c.Text = "123456789" }},
		{"Text", func(c *crate) { c.Text = "é" }, func(c *crate) { c.Text = "\xff" }},
		{"Other", func(c *crate) { c.Other.Set("12345678") }, func(c *crate) { c.Other.Set("123456789") }},
		{"Bytes", func(c *crate) { c.Bytes = make([]byte, 8000) }, func(c *crate) { c.Bytes = make([]byte, 9000) }},
		{"List", func(c *crate) { c.List = []uint16{1, 2} }, func(c *crate) { c.List = []uint16{1, 2, 3} }},
		{"Level", func(c *crate) { c.Level = 100 }, func(c *crate) { c.Level = 101 }},
		{"Place", func(c *crate) { c.Place.X = 1e9 }, func(c *crate) { c.Place.X = math.Inf(1) }},
		{"Place", func(c *crate) { c.Place.X = 0 }, func(c *crate) { c.Place.X = math.NaN() }},
	} {
		t.Run(c.field, func(t *testing.T) {
			var told []*actorrep.ActorError
			w := newWorld(t, 3, netsim.Settings{Loss: 20}, actorrep.Config{Failed: func(err error) {
				var e *actorrep.ActorError
				require.ErrorAs(t, err, &e)
				told = append(told, e)
			}}, func(t testing.TB, w *actorrep.World) { require.NoError(t, w.Register("crate", (*crate)(nil))) })
			l := w.join()
			a := &crate{}
			c.fit(a)
			require.NoError(t, w.Server.Spawn(a))
			for range 60 {
				w.Step()
			}
			require.Empty(t, told)
			m := l.World.Find(a.GUID()).(*crate)
			require.Equal(t, []any{a.Text, len(a.Bytes), len(a.List), a.Level, a.Place, a.Other.Get()}, []any{m.Text, len(m.Bytes), len(m.List), m.Level, m.Place, m.Other.Get()})
			require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, a).Reason)
			c.not(a)
			for range 60 {
				w.Step()
			}
			require.Len(t, told, 1, "once")
			require.Same(t, a, told[0].Actor)
			require.Equal(t, c.field, told[0].Name)
			require.ErrorIs(t, told[0], actorrep.ErrUnfit)
			unfit := fmt.Sprintf("%v: %s", actorrep.ErrUnfit, c.field)
			require.ErrorContains(t, told[0], unfit+": ", "and why")
			require.EqualValues(t, 1, w.Server.Counters.Unfit)
			require.Equal(t, actorrep.ReasonUnfit, w.Server.Explain(l.Peer, a).Reason)
			e := w.Server.Explain(l.Peer, a, c.field)
			require.Equal(t, actorrep.ReasonUnfit, e.Reason)
			require.Contains(t, e.Text, unfit+": ")
			c.fit(a)
			require.NotContains(t, w.Server.Explain(l.Peer, a, c.field).Text, unfit+": ", "nothing is wrong with it any more")
			for range 60 {
				w.Step()
			}
			require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, a).Reason)
		})
	}
}

// TestParametersFit: parameters that don't fit are an error of the call, whoever calls.
func TestParametersFit(t *testing.T) {
	var came []cargo
	took := func(_ actorrep.Call, _ *soldier, p cargo) error { came = append(came, p); return nil }
	up := actorrep.ServerRPC(took, actorrep.Reliable)
	down := actorrep.ClientRPC(took, actorrep.Reliable)
	all := actorrep.MulticastRPC(took, actorrep.Reliable)
	w := newWorld(t, 3, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("soldier", (*soldier)(nil), actorrep.RPCs{"Up": up, "Down": down, "All": all}))
	})
	l := w.join()
	s := &soldier{}
	s.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(s))
	for range 60 {
		w.Step()
	}
	m := l.World.Find(s.GUID()).(*soldier)
	for _, p := range []cargo{{Text: "123456789"}, {Text: "\xff"}, {List: make([]string, 3)}, {List: []string{"\xff"}}, {Level: 101}, {X: math.Inf(1)}, {X: math.NaN()}} {
		require.ErrorIs(t, up.Call(m, p), actorrep.ErrUnfit, "%+v", p)
		require.ErrorIs(t, down.Call(s, p), actorrep.ErrUnfit, "%+v", p)
		require.ErrorIs(t, all.Call(s, p), actorrep.ErrUnfit, "%+v", p)
	}
	require.Empty(t, came)
	p := cargo{"12345678", []string{"a", strings.Repeat("b", 1024)}, 100, 1e9}
	require.NoError(t, up.Call(m, p))
	require.NoError(t, down.Call(s, p))
	for range 10 {
		w.Step()
	}
	require.Equal(t, []cargo{p, p}, came)
}
