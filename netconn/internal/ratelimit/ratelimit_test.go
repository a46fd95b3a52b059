package ratelimit

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockSetBack: a clock that is set back neither fills a bucket nor empties it, and it fills on from there.
func TestClockSetBack(t *testing.T) {
	b, now := newBucket(1, 2), time.Unix(1000, 0)
	require.True(t, b.take(now))
	now = now.Add(-time.Hour)
	require.True(t, b.take(now))
	require.False(t, b.take(now))
	now = now.Add(10 * time.Second)
	require.True(t, b.take(now), "ten seconds have passed since")
}

// TestPlayers: a player who is at the limit takes nothing from all, and one whom the limit of all refuses keeps their own; as many are remembered as addresses.
func TestPlayers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := New(func() time.Time { return now }, 1, 3, Scopes, 10)
	allowed := func(id uint64, n int) (good int) {
		for range n {
			if l.AllowPlayer(id) {
				good++
			}
		}
		return good
	}
	require.Equal(t, 3, allowed(1, 100))
	require.Equal(t, 3, allowed(2, 100))
	require.Equal(t, 3, allowed(3, 100))
	require.Equal(t, 1, allowed(4, 100), "the rest of all")
	require.Equal(t, Scopes, l.players.order.Len())
	now = now.Add(time.Second)
	require.Equal(t, 3, allowed(4, 100), "what was refused by all cost nothing")
	require.Equal(t, 1, allowed(3, 100))
}

// TestReady: who only asks whether a request would be let through takes nothing, isn't remembered, and is told what Allow and AllowTotal say.
func TestReady(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := New(func() time.Time { return now }, 1, 2, 1000, 3)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for range 100 {
		require.True(t, l.Ready(a))
	}
	require.Zero(t, l.Len())
	for range 2 {
		require.True(t, l.Allow(a) && l.AllowTotal())
	}
	require.False(t, l.Ready(a))
	require.True(t, l.Ready(b))
	require.True(t, l.AllowTotal())
	require.False(t, l.Ready(b), "all have had what all may have")
	now = now.Add(time.Second)
	require.True(t, l.Ready(a))
	require.True(t, l.Allow(a))
	require.False(t, l.Ready(a))
}

// TestAllow: each network has its limit, one at its limit takes nothing of others, and all get more as time passes.
func TestAllow(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := New(func() time.Time { return now }, 2, 3, 1000, 1)
	allowed := func(form string, each int) (good int) {
		for i := range 256 * each {
			text := form
			if strings.Contains(form, "%") {
				text = fmt.Sprintf(form, i&255)
			}
			if l.Allow(netip.MustParseAddr(text)) {
				good++
			}
		}
		return good
	}
	require.Equal(t, 3, allowed("192.0.2.1", 1))
	require.Equal(t, 3, allowed("2001:db8::%x", 1))
	require.Equal(t, 3*Wide24-3, allowed("192.0.2.%d", 4), "what the first has had counts")
	require.Equal(t, 3*Wide56-3, allowed("2001:db8:0:%x::1", 1))
	require.Equal(t, 3*(Wide48-Wide56), allowed("2001:db8:0:%x00::1", 4))
	require.Equal(t, 3, allowed("192.0.3.1", 1))
	now = now.Add(time.Second)
	require.Equal(t, 2, allowed("192.0.2.1", 1), "the /24 has 64 more")
	require.Equal(t, 2*Wide24-2, allowed("192.0.2.%d", 1))
}

// TestHeardLastIsKept: of more networks or players than there is room for, those that were heard last are remembered, and nothing is kept of others.
func TestHeardLastIsKept(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	l := New(func() time.Time { return now }, 1, 1, Scopes, 1000)
	require.True(t, l.AllowPlayer(1))
	for id := range uint64(100) {
		require.False(t, l.AllowPlayer(1), "%d others", id)
		require.True(t, l.AllowPlayer(2+id))
		require.LessOrEqual(t, len(l.players.byKey), Scopes)
		require.Len(t, l.players.byKey, l.players.order.Len())
	}
	require.False(t, l.AllowPlayer(101))
	require.False(t, l.AllowPlayer(100))
	require.True(t, l.AllowPlayer(99), "forgotten")
	a := netip.MustParseAddr("2001:db8::1")
	require.True(t, l.Allow(a))
	require.False(t, l.Allow(a))
	require.True(t, l.Allow(netip.MustParseAddr("192.0.2.1")), "of two networks")
	require.Equal(t, Scopes, l.Len())
	require.True(t, l.Allow(a), "its wider networks were forgotten, and take the place of the narrowest as they come anew")
	require.Len(t, l.origins.byKey, Scopes)
}
