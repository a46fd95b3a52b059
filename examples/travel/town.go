package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

const (
	carts      = 4
	speed      = 6.0
	hysteresis = 2.0 // who is so far beyond a town's border travels on
)

// Keys is a player's input of a tick.
type Keys struct {
	N   uint32 `net:""` // how many there were
	Dir int8   `net:""`
}

// Runner is a player. Its owner predicts it, others see it interpolated.
type Runner struct {
	actorrep.Base
	X float64 `net:"q=0.01,simulated" predict:"0.001,smooth" interp:""`

	took, ordered func(n uint32) // on a server
}

// Simulate is what a key does, at both ends.
func (r *Runner) Simulate(k Keys, dt time.Duration) {
	r.X = min(max(r.X+speed*float64(k.Dir)*dt.Seconds(), 0), towns*length)
	if r.took != nil && k.N > 0 {
		r.took(k.N)
	}
}

// Order is a player's call, and Answer the town's. Each has a number.
var (
	Order = actorrep.ServerRPC(func(c actorrep.Call, r *Runner, n uint32) error {
		r.ordered(n)
		return nil
	}, actorrep.Reliable)
	Answer = actorrep.ClientRPC(func(c actorrep.Call, r *Runner, n uint32) error {
		c.World.User.(*player).answer(n)
		return nil
	}, actorrep.Reliable)
)

// Cart goes up and down the road. It is in all towns, with the same id.
type Cart struct {
	actorrep.Base
	X float64 `net:"q=0.01" interp:""`
}

// end is one end of a connection, or a town: a world and what belongs to it.
type end struct {
	driver  *driver.Driver
	world   *actorrep.World
	interp  *interp.Interpolator
	carts   *interp.Class[*Cart]
	others  *interp.Class[*Runner]
	runners *predict.Class[*Runner, Keys]
}

func (e *end) init(w *actorrep.World, keys func(*Runner) Keys) (err error) {
	e.world = w
	if e.interp, err = interp.New(w, interp.Config{}); err != nil {
		return err
	}
	if err = w.Register("Cart", (*Cart)(nil)); err != nil {
		return err
	}
	if e.runners, err = predict.Register(w, "Runner", predict.Config[*Runner, Keys]{Input: keys}, actorrep.RPCs{"Order": Order, "Answer": Answer}); err != nil {
		return err
	}
	if e.carts, err = interp.Register(e.interp, interp.ClassConfig[*Cart]{}); err != nil {
		return err
	}
	e.others, err = interp.Register(e.interp, interp.ClassConfig[*Runner]{})
	return err
}

// guest is a player in a town.
type guest struct {
	id     uint64
	runner *Runner
	peer   *actorrep.Peer
	ch     *channel.Channel

	Orders, Answers uint32 // orders that have come, and answers that were sent
	again           time.Time
}

// town is a game server.
type town struct {
	end
	g      *game
	index  int
	name   string
	mesh   *mesh.Server
	road   *net.UDPConn  // to the other towns
	mail   chan []byte   // what came by it
	stop   chan struct{} // when it is closed
	guests map[uint64]*guest
	wrong  error
}

func (g *game) newTown(i int) (*town, error) {
	t := &town{g: g, index: i, name: []string{"Ashford", "Brook", "Carrow"}[i], mail: make(chan []byte, 256), stop: make(chan struct{}), guests: map[uint64]*guest{}}
	// Actors get ids that no other town gives, so that a player keeps its own wherever it goes.
	if err := t.init(actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: towns}}), nil); err != nil {
		return nil, err
	}
	for n := range carts {
		c := &Cart{}
		c.SetAlwaysRelevant(true)
		if err := t.world.SpawnAs(c, nil, netguid.GUID(2*towns*(1000+n))); err != nil { // the same in all towns
			return nil, err
		}
	}
	var err error
	if t.mesh, err = mesh.NewServer(mesh.ServerConfig{ID: t.name, Game: t, Key: g.key, Rand: rand.Reader, ToServer: t.toTown,
		ToClient: func(id uint64, packet []byte) { mesh.SendOn(t.guest(id).ch, packet) }}); err != nil {
		return nil, err
	}
	if t.road, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	go t.read()
	t.driver, err = driver.Listen("127.0.0.1:0", driver.Config{Channels: append(t.world.ChannelTypes(), mesh.ChannelType(nil)), Link: driver.Netcode{Key: g.key, TakeOver: true},
		Joined: t.joined, Closed: func(c *driver.Conn, _ netconn.CloseResult) { t.left(c) }})
	return t, err
}

func (t *town) close() {
	if t.driver != nil {
		_ = t.driver.Close()
	}
	_ = t.road.Close()
	<-t.stop
}

// A packet on the road is the index of the town that sends it, and what the mesh sealed. A game with states of more than 64 KiB takes a carrier that splits packets, such as NATS.
func (t *town) toTown(name string, packet []byte) {
	for _, o := range t.g.towns {
		if o.name == name {
			_, _ = t.road.WriteToUDP(append([]byte{byte(t.index)}, packet...), o.road.LocalAddr().(*net.UDPAddr))
		}
	}
}

// read takes packets from the road; the tick handles them.
func (t *town) read() {
	defer close(t.stop)
	b := make([]byte, 1<<16)
	for {
		n, _, err := t.road.ReadFromUDP(b)
		if err != nil {
			return
		}
		if n == 0 {
			continue
		}
		select {
		case t.mail <- append([]byte(nil), b[:n]...):
		default: // too many: it is as if it were lost
		}
	}
}

// guest returns what the town knows of a player.
func (t *town) guest(id uint64) *guest {
	u := t.guests[id]
	if u == nil {
		u = &guest{id: id}
		t.guests[id] = u
	}
	return u
}

func (t *town) joined(c *driver.Conn) {
	id := c.ClientID()
	u := t.guest(id)
	u.peer = t.world.AddConn(c)
	var err error
	u.ch, err = mesh.Open(c, func(packet []byte) error { return t.mesh.ReceiveClient(id, packet) })
	t.fail(err)
	t.mesh.Connected(id)
	if _, n := t.g.plays(id); n == 0 && t.g.player(id).mesh.Server() == t.name && t.mesh.Enter(id) == nil { // its first login: a game's own records say so
		if err = t.spawn(u, 0); err == nil {
			err = t.runners.Possess(u.runner, u.peer, c.Now())
		}
		t.fail(err)
		u.runner.X = length * (0.2 + 0.6*float64(id)/float64(t.g.o.players+1))
	}
}

func (t *town) left(c *driver.Conn) {
	u := t.guests[c.ClientID()]
	if u == nil || u.peer == nil || u.peer.Conn() != channel.Conn(c.Conn) && u.peer.Conn() != channel.Conn(c) {
		return // it has connected again
	}
	t.world.RemoveConn(u.peer)
	u.peer, u.ch = nil, nil
	t.mesh.Disconnected(c.ClientID())
	if !t.mesh.Plays(c.ClientID()) && u.runner != nil { // it has moved, and its client draws the next town
		_ = t.world.Destroy(u.runner)
		u.runner = nil
	}
}

// spawn makes a player's runner, under the id that it has already, or with a new one.
func (t *town) spawn(u *guest, id netguid.GUID) error {
	if u.runner != nil { // from the last time
		_ = t.world.Destroy(u.runner)
	}
	u.runner = &Runner{took: t.g.player(u.id).took, ordered: func(n uint32) { t.order(u, n) }}
	u.runner.SetAlwaysRelevant(true)
	if id == 0 {
		return t.world.Spawn(u.runner)
	}
	return t.world.SpawnAs(u.runner, nil, id)
}

func (t *town) tick(now time.Time) error {
	t.driver.TickDispatch(now)
	at := t.driver.Time(now)
	for range len(t.mail) {
		packet := <-t.mail
		_ = t.mesh.Receive(t.g.towns[packet[0]%towns].name, packet[1:])
	}
	for a := range t.world.All {
		if c, ok := a.(*Cart); ok {
			way := math.Mod(speed*now.Sub(t.g.began).Seconds()+17*float64(c.GUID()), 2*towns*length)
			c.X = min(way, 2*towns*length-way) // up the road, and back
		}
	}
	for id, u := range t.guests {
		if t.mesh.Plays(id) && u.runner != nil {
			t.sendOn(now, id, u)
		}
	}
	if err := t.runners.Tick(at); err != nil {
		return err
	}
	t.world.Step(at)
	t.interp.Tick(at)
	t.mesh.Step(at)
	t.driver.TickFlush(now)
	if t.wrong != nil {
		return fmt.Errorf("%s: %w", t.name, t.wrong)
	}
	return t.driver.Err()
}

// fail notes what went wrong first, for the verdict.
func (t *town) fail(err error) {
	if t.wrong == nil {
		t.wrong = err
	}
}

// sendOn sends a player who has walked out of the town to the next one.
func (t *town) sendOn(now time.Time, id uint64, u *guest) {
	next := t.index
	switch x := u.runner.X - float64(t.index)*length; {
	case x > length+hysteresis && t.index < towns-1:
		next++
	case x < -hysteresis && t.index > 0:
		next--
	}
	if next == t.index || t.g.stopped || now.Before(u.again) || now.Before(t.g.settled) {
		return
	}
	u.again = now.Add(time.Second)
	_ = t.mesh.Travel(id, t.g.towns[next].name)
}

// Ticket implements mesh.Game: the client's connect token and our address.
func (t *town) Ticket(id uint64) ([]byte, error) { return t.token(id) }

func (t *town) token(id uint64) ([]byte, error) {
	addr := netip.MustParseAddrPort(t.driver.LocalAddr().String())
	now := uint64(time.Now().Unix())
	return netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 30, Timeout: 10, Servers: []netip.AddrPort{addr}, PrivateKey: t.g.key})
}

// Save implements mesh.Game.
func (t *town) Save(id uint64) []byte {
	u := t.guests[id]
	b := binary.LittleEndian.AppendUint32(nil, uint32(u.runner.GUID()))
	b = binary.LittleEndian.AppendUint32(b, u.Orders)
	b = binary.LittleEndian.AppendUint32(b, u.Answers)
	b, err := t.runners.Depart(u.runner, b)
	t.fail(err)
	return b
}

// Play implements mesh.Game.
func (t *town) Play(id uint64, state []byte) {
	u := t.guest(id)
	u.Orders, u.Answers = binary.LittleEndian.Uint32(state[4:]), binary.LittleEndian.Uint32(state[8:])
	err := t.spawn(u, netguid.GUID(binary.LittleEndian.Uint32(state)))
	if err == nil {
		err = t.runners.Arrive(u.runner, u.peer, state[12:], t.driver.Time(time.Now()))
	}
	t.fail(err)
}

// Moved implements mesh.Game. The runner stays until the client's connection ends.
func (t *town) Moved(id uint64) { t.guests[id].runner.took = nil }

// Stays implements mesh.Game.
func (t *town) Stays(id uint64, _ error) { t.runners.Stay(t.guests[id].runner) }

// Message implements mesh.Game.
func (*town) Message(uint64, []byte) {}

// order takes a player's order, and answers it.
func (t *town) order(u *guest, n uint32) {
	if n != u.Orders+1 {
		t.fail(fmt.Errorf("order %d of player %d after %d", n, u.id, u.Orders))
	}
	u.Orders++
	if Answer.Call(u.runner, n) == nil {
		u.Answers++
	}
}
