package actorrep_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// mount is a struct that is pointed to.
type mount struct {
	Name string
	Legs uint8 `net:"max=8"`
	Of   actorrep.Ref[*caravan]
	Tags []string
}

// caravan is an actor with values of types that have their own forms.
type caravan struct {
	actorrep.Base
	Sent   time.Time            `net:"notify=OnSent"`
	Left   time.Duration        `net:""`
	From   netip.Addr           `net:""`
	Port   netip.AddrPort       `net:""`
	Net    netip.Prefix         `net:""`
	Worth  big.Int              `net:"cap=32"`
	Carry  *mount               `net:"notify=OnCarry"`
	When   []time.Time          `net:""`
	Pushed actorrep.Var[*mount] `net:""`

	sents  []time.Time
	carrys []*mount
}

func (p *caravan) OnSent(old time.Time) { p.sents = append(p.sents, old) }
func (p *caravan) OnCarry(old *mount)   { p.carrys = append(p.carrys, old) }

func registerCaravan(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("caravan", (*caravan)(nil)))
}

func caravanText(p *caravan) string {
	s := fmt.Sprint(p.Sent.UnixNano(), p.Sent.IsZero(), p.Left, p.From, p.Port, p.Net, p.Worth.String(), len(p.When))
	for _, m := range []*mount{p.Carry, p.Pushed.Get()} {
		if m != nil {
			s += fmt.Sprint(*m)
		} else {
			s += "none"
		}
	}
	for _, at := range p.When {
		s += fmt.Sprint(at.UnixNano())
	}
	return s
}

// TestValuesOfOtherTypes: times, addresses, values with a text form and pointers to structs arrive, change and go under loss; an old
// value is what it was.
func TestValuesOfOtherTypes(t *testing.T) {
	w := newWorld(t, 9, netsim.Settings{Loss: 10}, actorrep.Config{}, registerCaravan)
	l := w.join()
	other, p := &caravan{}, &caravan{}
	require.NoError(t, w.Server.Spawn(other))
	require.NoError(t, w.Server.Spawn(p))
	agree := func() *caravan {
		t.Helper()
		w.Step()
		w.Until(func(l *rig.Line) string {
			m, _ := l.World.Find(p.GUID()).(*caravan)
			if m == nil {
				return "not there"
			}
			if got, want := caravanText(m), caravanText(p); got != want {
				return got + " instead of " + want
			}
			return ""
		})
		m := l.World.Find(p.GUID()).(*caravan)
		for range 3 {
			w.Step()
		}
		return m
	}
	agree()
	at := time.Date(2031, 5, 6, 7, 8, 9, 123456789, time.FixedZone("x", 3600))
	p.Sent, p.Left = at, -time.Hour
	p.From, p.Port, p.Net = netip.MustParseAddr("192.0.2.7"), netip.MustParseAddrPort("[2001:db8::1%eth0]:80"), netip.MustParsePrefix("10.0.0.0/8")
	p.Worth.SetString("-123456789012345678901234567", 10)
	p.Carry = &mount{"mule", 4, actorrep.RefTo(other), []string{"a", "b"}}
	p.When = []time.Time{at, {}, time.Unix(-1e10, 5)}
	p.Pushed.Set(&mount{Name: "ox"})
	m := agree()
	require.True(t, m.Sent.Equal(at))
	require.Equal(t, time.UTC, m.Sent.Location())
	require.Same(t, l.World.Find(other.GUID()), m.Carry.Of.In(l.World))
	first := m.Carry

	p.Carry.Legs, p.Carry.Tags[1] = 3, "c" // changed in place
	p.Sent = p.Sent.In(time.UTC)           // the same moment: no change
	agree()
	p.Carry, p.Sent, p.From, p.Worth = nil, time.Time{}, netip.Addr{}, big.Int{}
	agree()
	require.Equal(t, mount{"mule", 4, actorrep.RefTo(other), []string{"a", "b"}}, *first, "nobody writes to an old value")
	require.Equal(t, []*mount{nil, first, {"mule", 3, actorrep.RefTo(other), []string{"a", "c"}}}, m.carrys)
	require.Len(t, m.sents, 2)
	require.True(t, m.sents[1].Equal(at))
}

// TestOtherTypesFitOrAreTold: what can't be sent is told, and pointers that can't be values are errors of Register.
func TestOtherTypesFitOrAreTold(t *testing.T) {
	var told []error
	w := newWorld(t, 9, netsim.Settings{}, actorrep.Config{Failed: func(err error) { told = append(told, err) }}, registerCaravan)
	l := w.join()
	p := &caravan{Carry: &mount{Legs: 8}}
	require.NoError(t, w.Server.Spawn(p))
	p.Worth.SetInt64(7)
	for range 20 {
		w.Step()
	}
	p.Carry.Legs = 9
	p.Worth.Exp(big.NewInt(10), big.NewInt(40), nil)
	for range 20 {
		w.Step()
	}
	m := l.World.Find(p.GUID()).(*caravan)
	require.Equal(t, "7", m.Worth.String())
	require.EqualValues(t, 8, m.Carry.Legs)
	require.Len(t, told, 2)
	for _, err := range told {
		require.ErrorIs(t, err, actorrep.ErrUnfit)
	}

	type loop struct {
		Next *loop
		Kids []loop
	}
	for _, a := range []actorrep.Actor{&struct {
		actorrep.Base
		To *caravan `net:""`
	}{}, &struct {
		actorrep.Base
		N *int `net:""`
	}{}, &struct {
		actorrep.Base
		L loop `net:""`
	}{}, &struct {
		actorrep.Base
		P **mount `net:""`
	}{}} {
		require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", a), "%T", a)
	}
}
