package ratelimit

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlaces: each network has its bound, one that is full takes nothing of others, and what is given back can be taken again.
func TestPlaces(t *testing.T) {
	for form, want := range map[string]int{
		"192.0.2.1": 4, "192.0.2.%d": 4 * Wide24, "192.0.%d.1": 4 * 256, "2001:db8::%x": 4, "2001:db8:0:%x::1": 4 * Wide56, "2001:db8:0:%x00::1": 4 * Wide48, "2001:db8:%x::1": 4 * 256,
		"127.0.0.1": 4 * 256, "::1": 4 * 256,
	} {
		p := NewPlaces(4)
		var all []netip.Addr
		for i := range 4 * 256 {
			text := form
			if strings.Contains(form, "%") {
				text = fmt.Sprintf(form, i&255)
			}
			if a := netip.MustParseAddr(text); p.Room(a) {
				p.Add(a)
				all = append(all, a)
			}
		}
		require.Len(t, all, want, form)
		require.True(t, p.Room(netip.MustParseAddr("203.0.113.1")))
		require.True(t, p.Room(netip.MustParseAddr("2001:db9::1")))
		p.Remove(all[0])
		require.True(t, p.Room(all[0]))
		for _, a := range all[1:] {
			p.Remove(a)
		}
		require.Empty(t, p.n, "nothing is kept of who has nothing")
	}
}

// TestPlacesBounds: none is none, but for the loopback; a negative bound and the largest one allow all that come.
func TestPlacesBounds(t *testing.T) {
	a, loopback := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")
	none := NewPlaces(0)
	require.False(t, none.Room(a))
	require.True(t, none.Room(loopback))
	for _, most := range []int{-1, math.MaxInt} {
		p := NewPlaces(most)
		for range 100 {
			require.True(t, p.Room(a), most)
			p.Add(a)
		}
		for range 100 {
			p.Remove(a)
		}
		require.Empty(t, p.n)
	}
}
