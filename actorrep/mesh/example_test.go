package mesh_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// town is a server, which knows how much gold its players have.
type town struct {
	mesh   *mesh.Server
	driver *driver.Driver
	gold   map[uint64]uint32
	conns  map[uint64]*channel.Channel
}

func (t *town) Ticket(uint64) ([]byte, error) { return []byte("a connect token"), nil }
func (t *town) Save(player uint64) []byte {
	return binary.LittleEndian.AppendUint32(nil, t.gold[player])
}
func (t *town) Play(player uint64, state []byte) {
	t.gold[player] = binary.LittleEndian.Uint32(state)
}
func (t *town) Moved(player uint64)        { delete(t.gold, player) }
func (t *town) Stays(_ uint64, err error)  { fmt.Println("the player stays:", err) }
func (t *town) Message(p uint64, m []byte) { t.gold[p] += uint32(m[0]) }

// A player goes from one town to the next, with its gold.
func Example() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	key := netcode.Key{1}

	// The servers. What they send each other is carried by whatever they have.
	type packet struct {
		from, to string
		data     []byte
	}
	var between []packet
	towns, ways := map[string]*town{}, map[string]udp.Socket{}
	for i, id := range []string{"north", "south"} {
		t := &town{gold: map[uint64]uint32{}, conns: map[uint64]*channel.Channel{}}
		var err error
		t.mesh, err = mesh.NewServer(mesh.ServerConfig{ID: id, Game: t, Key: [32]byte{9}, Rand: rand.Reader,
			ToServer: func(to string, p []byte) { between = append(between, packet{id, to, slices.Clone(p)}) },
			ToClient: func(player uint64, p []byte) { mesh.SendOn(t.conns[player], p) }})
		if err != nil {
			panic(err)
		}
		addr := netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:7777", i+1))
		here, there := udp.Pair(addr, netip.MustParseAddrPort("10.0.1.1:9000"))
		t.driver, err = driver.Listen("", driver.Config{Socket: here, Clock: clock, Link: driver.Netcode{Key: key}, Channels: []channel.Type{mesh.ChannelType(nil)},
			Joined: func(c *driver.Conn) {
				const player = 7 // a game takes the ClientID of the connect token
				t.conns[player], err = mesh.Open(c, func(p []byte) error { return t.mesh.ReceiveClient(player, p) })
				if err != nil {
					panic(err)
				}
				t.mesh.Connected(player)
			}})
		if err != nil {
			panic(err)
		}
		towns[id], ways[id] = t, there
	}
	north, south := towns["north"], towns["south"]
	if err := north.mesh.Enter(7); err != nil { // it has logged in there
		panic(err)
	}
	north.gold[7] = 10

	// The client, with a connection to each of the servers that it needs.
	drivers, chans := map[string]*driver.Driver{}, map[string]*channel.Channel{}
	player, err := mesh.NewClient(mesh.ClientConfig{Session: 5, Server: "north", Message: func([]byte) {},
		Send:  func(server string, p []byte) { mesh.SendOn(chans[server], p) },
		Moved: func(server string) { fmt.Println("I play in the", server) }})
	if err != nil {
		panic(err)
	}
	dial := func(server string) {
		drivers[server], err = driver.Dial(towns[server].driver.LocalAddr().String(), driver.Config{Socket: ways[server], Clock: clock, Link: driver.Netcode{Key: key},
			Channels: []channel.Type{mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
				chans[server] = ch
				return func(p []byte) error { return player.Receive(server, p) }
			})}})
		if err != nil {
			panic(err)
		}
	}
	dial("north")

	for i := range 300 {
		now = now.Add(time.Second / 60)
		for _, t := range towns {
			t.driver.TickDispatch(now)
			t.mesh.Step(t.driver.Time(now))
			t.driver.TickFlush(now)
		}
		packets := between
		between = nil
		for _, p := range packets {
			_ = towns[p.to].mesh.Receive(p.from, p.data)
		}
		for _, d := range drivers {
			d.TickDispatch(now)
		}
		if next, _, ok := player.Next(); ok && drivers[next] == nil {
			dial(next) // with the ticket
		}
		player.Step(now.Sub(time.Unix(1000, 0)))
		for _, d := range drivers {
			d.TickFlush(now)
		}
		switch i {
		case 100:
			err = north.mesh.Travel(7, "south")
		case 101:
			err = player.Send([]byte{5}) // found on the way
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(north.gold, south.gold)
	// Output:
	// I play in the south
	// map[] map[7:15]
}
