package mesh_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// memory is a store of one process; a game has that of netconn/fleet/natskv.
type memory struct {
	keys  []kv.Event
	rev   uint64
	views []*memoryView
}

type memoryView struct {
	m     *memory
	watch []string
	in    []kv.Event
}

func (m *memory) view(k kv.Machine) *memoryView {
	v := &memoryView{m: m, watch: k.Watches(), in: []kv.Event{{Kind: kv.Begin, Store: 1}}}
	for _, e := range m.keys {
		if kv.Matches(v.watch, e.Key) {
			v.in = append(v.in, e)
		}
	}
	v.in = append(v.in, kv.Event{Kind: kv.Current})
	m.views = append(m.views, v)
	return v
}

func (v *memoryView) Events() []kv.Event {
	in := v.in
	v.in = nil
	return in
}

func (v *memoryView) Do(op kv.Op) {
	m := v.m
	i := slices.IndexFunc(m.keys, func(e kv.Event) bool { return e.Key == op.Key })
	var old kv.Event
	if i >= 0 {
		old = m.keys[i]
	}
	answer := kv.Event{Kind: kv.Result, ID: op.ID, Value: old.Value, Revision: old.Revision}
	switch {
	case op.Kind == kv.Get && i < 0:
		answer.Status = kv.Missing
	case op.Kind == kv.Get:
	case op.Expect != kv.Any && op.Expect != old.Revision:
		answer.Status = kv.Conflict
	default:
		m.rev++
		e := kv.Event{Kind: kv.Changed, Key: op.Key, Value: op.Value, Revision: m.rev}
		if i >= 0 {
			m.keys = slices.Delete(m.keys, i, i+1)
		}
		if op.Kind == kv.Put {
			m.keys = append(m.keys, e)
		} else {
			e.Kind = kv.Deleted
		}
		answer.Revision = m.rev
		for _, o := range m.views {
			if kv.Matches(o.watch, op.Key) {
				o.in = append(o.in, e)
			}
		}
	}
	v.in = append(v.in, answer)
}

// One server is there no more, and the other one takes over its zone and the ball in it.
func ExampleKeeper() {
	store := &memory{}
	plan := mesh.Table{Cell: 100, Columns: 2, Servers: []string{"left", "right"}}
	type server struct {
		*field
		keeper *mesh.Keeper
		store  *memoryView
	}
	var servers []server
	for i, id := range []string{"west", "east"} {
		s := server{field: &field{id: id, world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}})}}
		if err := s.world.Register("Ball", (*ball)(nil)); err != nil {
			panic(err)
		}
		var err error
		s.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: id, World: s.world, Game: s.field, Table: mesh.Table{Epoch: 1, Cell: 100, Columns: 2, Servers: []string{id, id}}, Margin: 20, Hysteresis: 2,
			Key: [32]byte{9}, Rand: rand.Reader, ToServer: func(string, []byte) {}})
		if err != nil {
			panic(err)
		}
		s.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: s.zone, Plan: plan, Zones: plan.Servers[i : i+1], Save: func(a mesh.Actor) []byte {
			b := a.(*ball)
			return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.Float64bits(b.X)), math.Float64bits(b.bounce))
		}})
		if err != nil {
			panic(err)
		}
		s.store = store.view(s.keeper)
		servers = append(servers, s)
	}
	now := time.Duration(0)
	for now < 6*time.Second {
		now += 50 * time.Millisecond
		for i, s := range servers {
			if i == 0 && now > 2*time.Second {
				continue // it has crashed
			}
			kv.Tick(s.keeper, s.store, now)
			if s.keeper.Over() {
				panic("its lease has run out: the game ends here")
			}
			if i == 0 && now == time.Second {
				b := &ball{X: 60}
				if err := s.world.Spawn(b); err != nil {
					panic(err)
				}
				if err := s.zone.Own(b, 1); err != nil {
					panic(err)
				}
				if err := s.keeper.Keep(b, func(err error) { fmt.Println("the store has the ball:", err) }); err != nil {
					panic(err)
				}
			}
			s.zone.Step(now)
			s.world.Step(now)
		}
	}
	fmt.Println("east holds the left zone as its holder number", servers[1].keeper.Holds("left"))
	// Output:
	// the store has the ball: <nil>
	// east has it at 60
	// east holds the left zone as its holder number 2
}
