package actorrep_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// picky refuses 99.
type picky struct{ V uint8 }

var errPicky = errors.New("99")

func (p *picky) WriteNet(w *bitio.Writer) { w.WriteUint8(p.V) }
func (p *picky) ReadNet(r *bitio.Reader) error {
	if p.V = r.ReadUint8(); p.V == 99 {
		return errPicky
	}
	return r.Err()
}

type sign struct {
	actorrep.Base
	N    int32    `net:""`
	Text string   `net:"cap=20"`
	List []string `net:"cap=20"`
	Own  picky    `net:""`
}

// smallSign is a sign at another build of the game.
type smallSign struct {
	actorrep.Base
	N    int32    `net:""`
	Text string   `net:"cap=10"`
	List []string `net:"cap=10"`
	Own  picky    `net:""`
	got  []uint8
}

// TestUnreadValues: a value or parameter that a client can't take is told with its name, and costs it nothing else: not the values of
// other actors in the packet, nor those of the same actor, nor the calls behind it; also in an opening, and reliably.
func TestUnreadValues(t *testing.T) {
	say := actorrep.MulticastRPC(func(_ actorrep.Call, s *sign, p picky) error { return nil })
	order := actorrep.MulticastRPC(func(_ actorrep.Call, s *sign, p picky) error { return nil }, actorrep.Reliable)
	hear := func(_ actorrep.Call, s *smallSign, p picky) error { s.got = append(s.got, p.V); return nil }
	heard, ordered := actorrep.MulticastRPC(hear), actorrep.MulticastRPC(hear, actorrep.Reliable)
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("sign", (*sign)(nil), actorrep.RPCs{"Say": say, "Order": order}))
	})
	l := w.JoinOther(func(w *actorrep.World) error {
		return w.Register("sign", (*smallSign)(nil), actorrep.RPCs{"Say": heard, "Order": ordered})
	})
	var signs []*sign
	for range 5 {
		s := &sign{N: 1}
		require.NoError(t, w.Server.Spawn(s))
		signs = append(signs, s)
	}
	bad := signs[1]
	there := func(s *sign) *smallSign { return l.World.Find(s.GUID()).(*smallSign) }
	told := func(names ...string) {
		t.Helper()
		var got []string
		for _, err := range l.Failed {
			require.ErrorIs(t, err, actorrep.ErrUnread)
			var e *actorrep.ActorError
			require.ErrorAs(t, err, &e)
			got = append(got, e.Name)
		}
		require.Equal(t, names, got)
		l.Failed = nil
	}
	all := func() {
		t.Helper()
		for range 10 {
			w.Step()
		}
		for _, s := range signs {
			require.Equal(t, s.N, there(s).N)
		}
	}
	all()
	require.Empty(t, l.Failed)
	for _, c := range []struct {
		name        string
		break_, fix func()
	}{
		{"Text", func() { bad.Text = strings.Repeat("y", 15) }, func() { bad.Text = "short" }},
		{"List", func() { bad.List = make([]string, 15) }, func() { bad.List = []string{"short"} }},
		{"Own", func() { bad.Own.V = 99 }, func() { bad.Own.V = 5 }},
	} {
		c.break_()
		for _, s := range signs {
			s.N++
		}
		all()
		told(c.name)
		c.fix()
		all()
		require.Empty(t, l.Failed)
	}
	require.Equal(t, smallSign{Text: "short", List: []string{"short"}, Own: picky{5}, N: bad.N}, smallSign{Text: there(bad).Text, List: there(bad).List, Own: there(bad).Own, N: there(bad).N})

	for _, call := range []func(*sign, picky) error{say.Call, order.Call} {
		for _, s := range signs {
			s.N++
		}
		require.NoError(t, call(bad, picky{99}))
		require.NoError(t, call(bad, picky{1}))
		all()
		require.Equal(t, []uint8{1}, there(bad).got)
		there(bad).got = nil
	}
	told("Say", "Order")

	late := &sign{N: 1, Text: strings.Repeat("z", 15), Own: picky{3}}
	require.NoError(t, w.Server.Spawn(late))
	signs = append(signs, late)
	all()
	told("Text")
	require.Equal(t, picky{3}, there(late).Own)
	late.N = 2
	all()
}
