package mesh_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// ball rolls east.
type ball struct {
	mesh.Body
	X      float64 `net:"q=0.01"`
	bounce float64 // isn't replicated: it goes with the state
}

func (b *ball) Location() (x, y, z float64) { return b.X, 0, 0 }

// field is a server, which has a half of the plane.
type field struct {
	id     string
	world  *actorrep.World
	zone   *mesh.Zone
	driver *driver.Driver
	border *actorrep.World // of the connection to the other field
	dialed *driver.Driver
}

func (f *field) Make(string) mesh.Actor { return &ball{} }
func (f *field) Give(a mesh.Actor, to string) ([]byte, bool) {
	b := a.(*ball)
	fmt.Printf("%s gives the ball to %s at %.0f\n", f.id, to, b.X)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.Float64bits(b.X)), math.Float64bits(b.bounce)), true
}
func (f *field) Take(a mesh.Actor, state []byte) error {
	b := a.(*ball)
	b.X, b.bounce = math.Float64frombits(binary.LittleEndian.Uint64(state)), math.Float64frombits(binary.LittleEndian.Uint64(state[8:]))
	fmt.Printf("%s has it at %.0f\n", f.id, b.X)
	return nil
}
func (f *field) Call(a mesh.Actor, from string, call []byte) {
	fmt.Printf("%s hears %q of %s\n", f.id, call, from)
}
func (f *field) Undelivered(netguid.GUID, []byte) {}

// A ball rolls from one server's half of the world into the other's.
func ExampleZone() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	type packet struct {
		from, to string
		data     []byte
	}
	var between []packet
	fields := map[string]*field{}
	ids := []string{"west", "east"}
	for i, id := range ids {
		f := &field{id: id, world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}}), border: actorrep.NewClient(actorrep.Config{})}
		for _, w := range []*actorrep.World{f.world, f.border} {
			if err := w.Register("Ball", (*ball)(nil)); err != nil {
				panic(err)
			}
		}
		var err error
		f.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: id, World: f.world, Game: f, Table: mesh.Table{Epoch: 1, Cell: 100, Columns: 2, Servers: ids}, Margin: 20, Hysteresis: 2,
			Key: [32]byte{9}, Rand: rand.Reader, ToServer: func(to string, p []byte) { between = append(between, packet{id, to, slices.Clone(p)}) }})
		if err != nil {
			panic(err)
		}
		fields[id] = f
	}
	for i, id := range ids { // each is a client of the other's border
		f, other := fields[id], fields[ids[1-i]]
		here, there := udp.Pair(netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:7777", i+1)), netip.MustParseAddrPort(fmt.Sprintf("10.0.1.%d:9000", i+1)))
		var err error
		f.driver, err = driver.Listen("", driver.Config{Socket: here, Clock: clock, Link: driver.Netcode{Key: netcode.Key{1}}, Channels: f.world.ChannelTypes(),
			Joined: func(c *driver.Conn) { f.zone.Accept(other.id, c) }}) // a game looks who has the connect token
		if err != nil {
			panic(err)
		}
		other.dialed, err = driver.Dial(f.driver.LocalAddr().String(), driver.Config{Socket: there, Clock: clock, Link: driver.Netcode{Key: netcode.Key{1}}, Channels: other.border.ChannelTypes()})
		if err != nil {
			panic(err)
		}
		other.zone.Mirror(id, other.border)
	}
	first := &ball{X: 60, bounce: 0.5}
	if err := fields["west"].world.Spawn(first); err != nil {
		panic(err)
	}
	if err := fields["west"].zone.Own(first, 1); err != nil {
		panic(err)
	}
	seen := false
	for range 200 {
		now = now.Add(time.Second / 60)
		packets := between
		between = nil
		for _, p := range packets {
			_ = fields[p.to].zone.Receive(p.from, p.data)
		}
		for _, id := range ids {
			f := fields[id]
			at := f.driver.Time(now)
			f.driver.TickDispatch(now)
			f.dialed.TickDispatch(now)
			f.border.Step(at)
			for a := range f.world.All {
				if b := a.(*ball); f.zone.Owns(b) {
					b.X += 0.25
				} else if id == "east" && !seen {
					seen = true
					fmt.Printf("east sees it at %.0f\n", b.X)
					_ = f.zone.Call(b.GUID(), []byte("come on"))
				}
			}
			f.zone.Step(at)
			f.world.Step(at)
			f.dialed.TickFlush(now)
			f.driver.TickFlush(now)
		}
	}
	// Output:
	// east sees it at 80
	// west hears "come on" of east
	// west gives the ball to east at 102
	// east has it at 102
}
