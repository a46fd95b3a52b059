package fleet

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestListAlone: a list whose store keeps a dead server's key removes it after Expiry, counted only as far as marks come back; while they don't it stays, and
// the list isn't fresh.
func TestListAlone(t *testing.T) {
	l, err := NewList(ListConfig{})
	require.NoError(t, err)
	s, err := (&Info{ID: "a-1", Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 1, State: Ready}).encode()
	require.NoError(t, err)
	in := []kv.Event{{Kind: kv.Begin}, {Kind: kv.Changed, Key: serverKey + "a-1", Value: s, Revision: 1}, {Kind: kv.Current}}
	rev := uint64(1)
	for now := time.Duration(0); now < 60*time.Second; now += 100 * time.Millisecond {
		out := l.Step(now, in)
		in = nil
		marks := now < 3*time.Second || now > 30*time.Second
		for _, op := range out {
			rev++
			if marks {
				in = append(in, kv.Event{Kind: kv.Changed, Key: op.Key, Value: op.Value, Revision: rev})
			}
		}
		switch {
		case now > 500*time.Millisecond && now < 4*time.Second:
			require.True(t, l.fresh(), now)
			require.Equal(t, 1, l.Len(), now)
		case now > 7*time.Second && now < 30*time.Second:
			require.False(t, l.fresh(), now)
			require.Equal(t, 1, l.Len(), "nobody knows whether it is dead")
		case now > 33*time.Second:
			require.True(t, l.fresh(), now)
			require.Zero(t, l.Len(), now)
		}
	}
}

// TestCell: what is older than what was seen isn't taken, from a watch or from a replica that is behind.
func TestCell(t *testing.T) {
	c := cell{key: "k"}
	a := asker{timeout: time.Second}
	require.True(t, c.see(kv.Event{Kind: kv.Changed, Value: []byte("new"), Revision: 9}))
	require.False(t, c.see(kv.Event{Kind: kv.Changed, Value: []byte("old"), Revision: 8}))
	c.get(&a, 0)
	require.True(t, c.result(kv.Event{ID: 1, Value: []byte("old"), Revision: 8}))
	require.Equal(t, "new", string(c.value))
	require.EqualValues(t, 9, c.rev)
}

// TestSeatsAreTheirOwn: a member of a party that comes again has no other member's seat; a walk-in waits however often it asks before the store has its seat; and a
// server isn't drained before its record is closed.
func TestSeatsAreTheirOwn(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Info.Capacity = 2 })
	p := b.placer(nil)
	b.run(2 * time.Second)
	pl, err := b.place(p, Want{Players: 2})
	require.NoError(t, err)
	b.run(time.Second)
	require.Equal(t, netcode.Admit, come(s, 1, pl.Ticket))
	s.Left(1)
	require.Equal(t, netcode.Wait, come(s, 1, pl.Ticket), "as a walk-in")
	require.Equal(t, netcode.Wait, come(s, 1, pl.Ticket), "until the store has its seat")
	require.Equal(t, netcode.Admit, come(s, 2, pl.Ticket))

	o := b.server(nil)
	b.run(2 * time.Second)
	o.Drain()
	require.False(t, o.Drained(), "a placer may book yet")
	b.run(time.Second)
	require.True(t, o.Drained())
}

// TestLimits: one above each bound of the package's doc is refused, and has its turn when there is room again; what is within it isn't hurt.
func TestLimits(t *testing.T) {
	t.Run("servers of a list", func(t *testing.T) {
		p, err := NewPlacer(PlacerConfig{})
		require.NoError(t, err)
		id := func(i int) string { return fmt.Sprintf("a-%05d", i) }
		hello := func(i int) (in []kv.Event) {
			s, err := (&Info{ID: id(i), Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 1, State: Ready}).encode()
			require.NoError(t, err)
			rec := (&seats{capacity: 1}).encode()
			return []kv.Event{{Kind: kv.Changed, Key: serverKey + id(i), Value: s, Revision: uint64(2*i + 1)}, {Kind: kv.Changed, Key: seatsKey + id(i), Value: rec, Revision: uint64(2*i + 2)}}
		}
		in := []kv.Event{{Kind: kv.Begin}}
		for i := range MaxServers + 1 {
			in = append(in, hello(i)...)
		}
		p.Step(0, append(in, kv.Event{Kind: kv.Current}))
		require.Equal(t, MaxServers, p.List().Len())
		require.EqualValues(t, 1, p.List().Bad)
		require.Equal(t, MaxServers, len(p.rooms))
		p.Step(time.Second, append([]kv.Event{{Kind: kv.Deleted, Key: serverKey + id(7), Revision: 1 << 30}, {Kind: kv.Deleted, Key: seatsKey + id(7), Revision: 1 << 30}}, hello(MaxServers)...))
		require.Equal(t, MaxServers, p.List().Len())
		require.EqualValues(t, 1, p.List().Bad)
		require.NotNil(t, p.rooms[id(MaxServers)])
	})
	t.Run("placements of a record", func(t *testing.T) {
		b := newBench(t, 1, kvsim.Trouble{})
		s := b.server(func(c *ServerConfig) { c.Info.Capacity = maxPlacements + 1000 })
		placers := []*Placer{b.placer(nil), b.placer(nil)}
		b.run(2 * time.Second)
		for i := range maxPlacements + 10 {
			_, err := placers[i%2].Place(Want{})
			require.NoError(t, err)
		}
		b.run(10 * time.Second)
		placed, full := []Placement{}, 0
		for _, p := range placers {
			for _, o := range b.outcomes[p] {
				if o.Err == nil {
					placed = append(placed, o.Placement)
				} else {
					require.ErrorIs(t, o.Err, ErrFull)
					full++
				}
			}
		}
		require.Equal(t, maxPlacements, len(placed))
		require.Equal(t, 10, full)
		value, _, _ := b.store.Entry(seatsKey + s.ID())
		require.LessOrEqual(t, len(value), 45<<10)
		require.Equal(t, netcode.Admit, come(s, 1, placed[0].Ticket))
		require.Equal(t, netcode.Wait, come(s, 2, Ticket{}), "a walk-in needs no placement")
		b.run(time.Second)
		require.Equal(t, netcode.Admit, come(s, 2, Ticket{}))
		_, err := b.place(placers[0], Want{})
		require.NoError(t, err, "one has come, so another may be placed")
	})
	t.Run("players who wait for a seat", func(t *testing.T) {
		b := newBench(t, 1, kvsim.Trouble{})
		s := b.server(func(c *ServerConfig) { c.Info.Capacity = 2 * maxWalks })
		b.run(2 * time.Second)
		for i := range uint64(maxWalks) {
			require.Equal(t, netcode.Wait, come(s, i+1, Ticket{}))
		}
		require.Equal(t, netcode.Refuse, come(s, maxWalks+1, Ticket{}))
		b.run(time.Second)
		for i := range uint64(maxWalks) {
			require.Equal(t, netcode.Admit, come(s, i+1, Ticket{}))
		}
		require.Equal(t, netcode.Wait, come(s, maxWalks+1, Ticket{}))
	})
}
