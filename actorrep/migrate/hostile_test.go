package migrate_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// world is a server's with something of everything in it.
func world(t testing.TB, n int) (*actorrep.World, *clock) {
	w := actorrep.NewServer(actorrep.Config{})
	register(t, w)
	c := &clock{Count: 77}
	require.NoError(t, w.Spawn(c))
	require.NoError(t, w.SpawnIn(c, &flag{Color: 9}))
	for i := range n {
		p := &pawn{Name: fmt.Sprint("p", i), Secret: uint32(i), player: uint64(i)}
		require.NoError(t, w.Spawn(p))
		_, err := c.Rows.Add(row{p.Name, uint16(i)})
		require.NoError(t, err)
		require.NoError(t, c.Marks.Set(uint32(i), uint32(i)))
		c.First = actorrep.RefTo(p)
		p.SetCullDistance(12)
		p.SetOnlyOwner(i%2 == 0)
		if i%3 == 0 {
			require.NoError(t, p.SetDormant(true))
		}
	}
	c.Parts.Set(300)
	for i := range c.Grid {
		c.Grid[i] = uint8(i)
	}
	w.Step(3 * time.Second)
	return w, c
}

// TestCheckpoint: a world that is restored has everything that the other had, may change it, and clients of it see it.
func TestCheckpoint(t *testing.T) {
	w, c := world(t, 10)
	id := c.First.GUID()
	data, err := migrate.Checkpoint([]byte("before"), w, func(a actorrep.Actor, dst []byte) []byte {
		switch a := a.(type) {
		case nil:
			return append(dst, "the game"...)
		case *pawn:
			return append(dst, byte(a.player))
		}
		return dst
	})
	require.NoError(t, err)
	data = bytes.TrimPrefix(data, []byte("before"))
	to := actorrep.NewServer(actorrep.Config{})
	register(t, to)
	var pawns []*pawn
	var got *clock
	game := ""
	at, err := migrate.Restore(to, data, func(a actorrep.Actor, data []byte) error {
		switch a := a.(type) {
		case nil:
			game = string(data)
		case *pawn:
			require.Len(t, data, 1)
			a.player = uint64(data[0])
			pawns = append(pawns, a)
		case *clock:
			got = a
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, at)
	require.Equal(t, "the game", game)
	require.Len(t, pawns, 10)
	for i, p := range pawns {
		require.Equal(t, []any{fmt.Sprint("p", i), uint32(i), uint64(i), 12.0, i%2 == 0, i%3 == 0},
			[]any{p.Name, p.Secret, p.player, p.CullDistance(), p.OnlyOwner(), p.Dormant()})
	}
	require.Equal(t, id, got.First.GUID())
	require.Same(t, pawns[9], got.First.In(to))
	require.Equal(t, []any{c.Count, c.Grid, c.Parts.Get(), c.Rows.Len(), c.Marks.Len()}, []any{got.Count, got.Grid, got.Parts.Get(), got.Rows.Len(), got.Marks.Len()})
	for a := range got.Children {
		require.Equal(t, uint8(9), a.(*flag).Color)
	}
	added, err := got.Rows.Add(row{"new", 1})
	require.NoError(t, err)
	require.NoError(t, got.Rows.Set(added, row{"newer", 2}))
	require.NoError(t, got.Marks.Set(3, 33))
	require.NoError(t, got.Marks.Delete(4))
	require.NoError(t, to.Spawn(&pawn{})) // under an id that is free
	again, err := migrate.Checkpoint(nil, to, nil)
	require.NoError(t, err)
	_, err = migrate.Restore(to, again, nil)
	require.ErrorIs(t, err, migrate.ErrCheckpoint, "the ids are taken")
	require.Equal(t, 13, to.Len())
}

// TestForgedCheckpoint: a checkpoint that is cut off, or has any other byte, is an error or a world, spawns all or nothing, and takes no memory beyond its size.
func TestForgedCheckpoint(t *testing.T) {
	w, _ := world(t, 4)
	good, err := migrate.Checkpoint(nil, w, nil)
	require.NoError(t, err)
	try := func(data []byte) {
		to := actorrep.NewServer(actorrep.Config{})
		register(t, to)
		if _, err := migrate.Restore(to, data, nil); err != nil {
			require.Zero(t, to.Len(), "%v", err)
		} else {
			to.Step(time.Second)
		}
	}
	for i := range good {
		try(good[:i])
		for _, x := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= x
			try(bad)
		}
	}
	to := actorrep.NewServer(actorrep.Config{})
	_, err = migrate.Restore(to, good, nil)
	require.ErrorIs(t, err, migrate.ErrCheckpoint, "another game")
	claims := append([]byte("BNCP"), 1, 0, 0)
	claims = binary.AppendUvarint(claims, 1<<16)
	_, err = migrate.Restore(to, claims, nil)
	require.ErrorIs(t, err, migrate.ErrCheckpoint, "more than there are bytes for")
}

// vast takes much more memory than bytes on the wire.
type vast struct {
	actorrep.Base
	N     uint8 `net:""`
	local [64 << 20]byte
}

// TestCheckpointOfMuch: a checkpoint whose actors take over 256 MiB of structs is neither made nor restored; and one whose components go too deep is an error that
// spawns nothing.
func TestCheckpointOfMuch(t *testing.T) {
	game := func() *actorrep.World {
		w := actorrep.NewServer(actorrep.Config{})
		require.NoError(t, w.Register("vast", (*vast)(nil)))
		require.NoError(t, w.Register("flag", (*flag)(nil)))
		return w
	}
	from := game()
	empty, err := migrate.Checkpoint(nil, from, nil)
	require.NoError(t, err)
	forged := func(n int, class uint64, parent func(i int) uint64) []byte {
		data := binary.AppendUvarint(bytes.Clone(empty[:len(empty)-2]), uint64(n))
		for i := range n {
			for _, v := range []uint64{class, uint64(2 * (i + 1)), parent(i), 0} {
				data = binary.AppendUvarint(data, v)
			}
			data = append(data, make([]byte, 8)...) // cull distance, priority
			data = append(data, 1, 0)               // a bit of values: none
			data = binary.AppendUvarint(data, 0)    // of Save
		}
		return append(data, 0)
	}
	for _, c := range []struct {
		data []byte
		ok   bool
	}{
		{forged(3, 0, func(int) uint64 { return 0 }), true},
		{forged(5, 0, func(int) uint64 { return 0 }), false},
		{forged(64, 1, func(i int) uint64 { return uint64(2 * i) }), true},
		{forged(80, 1, func(i int) uint64 { return uint64(2 * i) }), false},
	} {
		to := game()
		_, err := migrate.Restore(to, c.data, nil)
		if c.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, migrate.ErrCheckpoint)
		require.Zero(t, to.Len())
	}
	for i := range 4 {
		require.NoError(t, from.Spawn(&vast{N: uint8(i)}))
		_, err = migrate.Checkpoint(nil, from, nil)
		if i < 3 {
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, err, migrate.ErrLarge)
	require.Zero(t, (&vast{}).local[0])
}

// wide and narrow are a class of two builds.
type (
	wide struct {
		actorrep.Base
		Text string    `net:"cap=100"`
		N    uint16    `net:""`
		Grid [9]uint16 `net:"max=60000"`
		List []uint8   `net:"max=200,cap=9"`
	}
	narrow struct {
		actorrep.Base
		Text string    `net:"cap=4"`
		N    uint8     `net:""`
		Grid [9]uint16 `net:"max=200"`
		List []uint8   `net:"max=200,cap=3"`
	}
)

// TestNothingIsCut: a value that doesn't fit the field of another build is an error that names it, and nothing is spawned.
func TestNothingIsCut(t *testing.T) {
	for field, change := range map[string]func(a *wide){
		"":     func(*wide) {},
		"Text": func(a *wide) { a.Text = "four+" },
		"N":    func(a *wide) { a.N = 256 },
		"Grid": func(a *wide) { a.Grid[8] = 256 },
		"List": func(a *wide) { a.List = append(a.List, 4) },
	} {
		from, to := actorrep.NewServer(actorrep.Config{}), actorrep.NewServer(actorrep.Config{})
		require.NoError(t, from.Register("cup", (*wide)(nil)))
		require.NoError(t, to.Register("cup", (*narrow)(nil)))
		a := &wide{Text: "four", N: 255, List: []uint8{1, 2, 3}}
		change(a)
		require.NoError(t, from.Spawn(a))
		data, err := migrate.Checkpoint(nil, from, nil)
		require.NoError(t, err)
		_, err = migrate.Restore(to, data, nil)
		if field == "" {
			require.NoError(t, err)
			require.Equal(t, "four", to.Find(a.GUID()).(*narrow).Text)
			continue
		}
		require.ErrorIs(t, err, migrate.ErrCheckpoint)
		require.ErrorContains(t, err, "cup."+field)
		require.Zero(t, to.Len(), field)
	}
}

// TestTooLarge: a checkpoint over the bound isn't sent, and the host's game is told once; a follower whose bound is lower ends the connection.
func TestTooLarge(t *testing.T) {
	var failed []error
	r := newRig(t, 1, 3, path, func(r *rig) {
		r.save, r.cfg.MaxCheckpoint, r.cfg.Failed = 30_000, 20_000, func(err error) { failed = append(failed, err) }
	})
	r.until(8 * time.Second)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], migrate.ErrLarge)
	for _, m := range r.machines {
		require.Zero(t, m.follower.Counters.Checkpoints)
	}
	r.crash(0)
	r.until(30 * time.Second)
	for _, m := range r.running() {
		require.ErrorIs(t, m.follower.Err(), migrate.ErrNobody)
	}
}

// liar sends a host what no follower does.
type liar struct {
	channel.Nop
	said [][]byte
}

func (l *liar) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Data.Remaining()/8)
	in.Data.ReadBytes(b)
	l.said = append(l.said, b)
}
func offer(b ...byte) *bunch.Out { return &bunch.Out{Data: b, Reliable: true, NoMerge: true} }
func (r *rig) dialAs(h *simtest.Host, id uint64) (*driver.Driver, error) {
	now := uint64(h.Time().Unix())
	to := netip.AddrPortFrom(r.world.Hosts()[0].Addr(), hostPort)
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 60, Timeout: 20, Servers: []netip.AddrPort{to}, PrivateKey: netcode.Key{1}})
	require.NoError(r.t, err)
	w := actorrep.NewClient(actorrep.Config{})
	register(r.t, w)
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: h.Open(), Link: driver.Netcode{Token: token}}
	cfg.Channels = append(w.ChannelTypes(), channel.Type{Name: bunch.Name{Index: 290}, ClientOpen: true})
	return driver.Dial(to.String(), cfg)
}

// TestHostileOffers: a player that breaks the format is cut off; one that offers another port each tick, and asks for tokens, costs the others nothing: plans
// are few, and the game goes on.
func TestHostileOffers(t *testing.T) {
	for _, lie := range [][]byte{{5}, {5, 0}, {5, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {5, 0, 4}, append([]byte{5, 1, 6}, make([]byte, 31)...), append([]byte{5, 1, 6}, make([]byte, 33)...), {5, 0, 8}, {1, 2, 3}, {3, 1, 1, 0, 9}, {4}, bytes.Repeat([]byte{5}, 600), {5, 1, 1, 1}} {
		r := ready(t, 1, 3)
		d, err := r.dialAs(r.world.Hosts()[2], 66)
		require.NoError(t, err)
		var ch *channel.Channel
		for range 600 {
			r.until(r.world.Now() + simtest.DefaultTick)
			now := r.world.Hosts()[2].Time()
			d.TickDispatch(now)
			if c := d.Server(); c != nil && c.Joined() && ch == nil && !c.Closed() {
				ch, err = c.Open(bunch.Name{Index: 290}, &liar{})
				require.NoError(t, err)
				_, err = ch.SendBunch(offer(5, 0, 2))
				require.NoError(t, err)
				_, err = ch.SendBunch(offer(lie...))
				require.NoError(t, err)
			}
			d.TickFlush(now)
		}
		require.NotNil(t, ch)
		require.True(t, d.Server() == nil, "%x", lie)
	}
	r := ready(t, 2, 3)
	plans := r.machines[0].server.host.Counters.Plans
	d, err := r.dialAs(r.world.Hosts()[2], 66)
	require.NoError(t, err)
	l := &liar{}
	var ch *channel.Channel
	for i := range 1200 {
		r.until(r.world.Now() + simtest.DefaultTick)
		now := r.world.Hosts()[2].Time()
		d.TickDispatch(now)
		if c := d.Server(); c != nil && c.Joined() && ch == nil {
			ch, err = c.Open(bunch.Name{Index: 290}, l)
			require.NoError(t, err)
		}
		if ch != nil {
			_, _ = ch.SendBunch(offer(5, byte(1+i%100), 3))
		}
		d.TickFlush(now)
	}
	require.NotNil(t, ch)
	require.LessOrEqual(t, r.machines[0].server.host.Counters.Plans-plans, uint64(60), "in 20 s")
	r.machines[0].server.host.Step(r.machines[0].server.now)
	for _, m := range r.machines[1:] {
		require.NoError(t, m.follower.Err())
		require.Positive(t, m.follower.Counters.Checkpoints)
	}
}

// TestImpostor: who answers at the successor's address without its key is nobody, and a player who is a candidate can't pass for another one at the next host.
func TestImpostor(t *testing.T) {
	r := ready(t, 1, 4)
	r.machines[1].follower.SetPort(0) // leaves its port to somebody else
	heard := 0
	for _, m := range r.machines[1:] {
		s, err := m.h.Listen(hostPort)
		require.NoError(t, err)
		d, err := driver.Listen("", driver.Config{Socket: s, Clock: m.h.Time, Rand: m.h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}},
			Joined: func(*driver.Conn) { heard++ }})
		require.NoError(t, err)
		m.impostor = d
	}
	r.crash(0)
	r.until(r.world.Now() + 20*time.Second)
	require.Zero(t, heard)
	for _, m := range r.running() {
		require.ErrorIs(t, m.follower.Err(), migrate.ErrNobody, "%s", m.h.Name())
	}
}
