package natskv

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// chest has gold, as its state.
type chest struct {
	mesh.Body
	X    float64 `net:"q=0.01"`
	Gold byte    `net:""`
}

func (c *chest) Location() (x, y, z float64) { return c.X, 0, 0 }

// holder is a server of a world of zones, whose store is NATS. Its time goes on when the store has answered all.
type holder struct {
	world   *actorrep.World
	zone    *mesh.Zone
	keeper  *mesh.Keeper
	store   *Store
	waiting int
	taken   map[netguid.GUID]byte
}

func (h *holder) Make(string) mesh.Actor                 { return &chest{} }
func (h *holder) Give(mesh.Actor, string) ([]byte, bool) { return nil, false }
func (h *holder) Take(a mesh.Actor, state []byte) error {
	c := a.(*chest)
	c.Gold = state[0]
	h.taken[c.GUID()] = c.Gold
	return nil
}
func (h *holder) Call(mesh.Actor, string, []byte)  {}
func (h *holder) Undelivered(netguid.GUID, []byte) {}

func newHolder(t *testing.T, b *Bucket, i int, id string, plan mesh.Table) *holder {
	h := &holder{world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}}), taken: map[netguid.GUID]byte{}}
	require.NoError(t, h.world.Register("Chest", (*chest)(nil)))
	var err error
	h.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: id, World: h.world, Game: h, Table: mesh.Table{Epoch: 1, Cell: 100, Columns: 1, Servers: []string{id}}, Margin: 20, Hysteresis: 2, Key: [32]byte{9}, Rand: rand.Reader,
		ToServer: func(string, []byte) {}})
	require.NoError(t, err)
	h.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: h.zone, Plan: plan, Zones: plan.Servers[i : i+1], Save: func(a mesh.Actor) []byte { return []byte{a.(*chest).Gold} }})
	require.NoError(t, err)
	h.store = b.Store(h.keeper)
	t.Cleanup(h.store.Close)
	return h
}

func (h *holder) tick(now time.Duration) {
	in := h.store.Events()
	for _, e := range in {
		if e.Kind == kv.Result {
			h.waiting--
		}
	}
	for _, op := range h.keeper.Step(now, in) {
		h.waiting++
		h.store.Do(op)
	}
	h.zone.Step(now)
	h.world.Step(now)
}

// TestTakeOver: with NATS as its store, a server takes over the zone and the actors of one that is there no more, with what the store was said to have.
func TestTakeOver(t *testing.T) {
	b, _ := open(t)
	plan := mesh.Table{Cell: 100, Columns: 2, Servers: []string{"left", "right"}}
	west, east := newHolder(t, b, 0, "west", plan), newHolder(t, b, 1, "east", plan)
	live := []*holder{west, east}
	now := time.Duration(0)
	until := func(what string, done func() bool) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for !done() {
			require.True(t, time.Now().Before(deadline), what)
			waiting := 0
			for _, h := range live {
				h.tick(now)
				require.False(t, h.keeper.Over(), what)
				waiting += h.waiting
			}
			if waiting == 0 {
				now += 50 * time.Millisecond
			}
			time.Sleep(time.Millisecond)
		}
	}
	until("both hold their zones", func() bool { return west.keeper.Holds("left") == 1 && east.keeper.Holds("right") == 1 })
	var chests []*chest
	kept := 0
	for i := range 300 {
		c := &chest{X: 50, Gold: byte(i)}
		require.NoError(t, west.world.Spawn(c))
		require.NoError(t, west.zone.Own(c, 1))
		chests = append(chests, c)
	}
	until("the chests are kept", func() bool { return west.keeper.Counters.Written >= 300 })
	for _, c := range chests {
		c.Gold += 7
		require.NoError(t, west.keeper.Keep(c, func(err error) {
			require.NoError(t, err)
			kept++
		}))
	}
	until("the gold is kept", func() bool { return kept == 300 })
	live = live[1:] // west has crashed
	until("east takes over", func() bool { return east.keeper.Counters.Restored == 300 && east.keeper.Holds("left") == 2 })
	for _, c := range chests {
		require.Equal(t, c.Gold, east.taken[c.GUID()])
	}
}
