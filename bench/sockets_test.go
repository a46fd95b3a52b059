package bench

import (
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestAllocsReplicationSockets: a server's tick, from its socket to its socket, encrypted, with actors that move and clients that
// ack, allocates nothing; nor does a client's, notifies included.
func TestAllocsReplicationSockets(t *testing.T) {
	link := driver.Netcode{Key: netcode.Key{1, 2, 3}}
	world := actorrep.NewServer(actorrep.Config{})
	if err := registerMovers(world); err != nil {
		t.Fatal(err)
	}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: link, Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) { world.AddConn(c) }})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var movers []*mover
	for i := range 50 {
		m := &mover{}
		if err := world.Spawn(m); err != nil {
			t.Fatal(err)
		}
		m.fly(i, 0)
		movers = append(movers, m)
	}
	var clients []*driver.Driver
	var mirrors []*actorrep.World
	for range 4 {
		w := actorrep.NewClient(actorrep.Config{})
		if err := registerMovers(w); err != nil {
			t.Fatal(err)
		}
		c, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Link: link, Channels: w.ChannelTypes()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients, mirrors = append(clients, c), append(mirrors, w)
	}
	now := time.Now()
	tick := func() {
		now = now.Add(time.Second / 60)
		for i, m := range movers {
			m.fly(i, srv.Time(now).Seconds())
		}
		srv.TickDispatch(now)
		world.Step(srv.Time(now))
		srv.TickFlush(now)
		for i, c := range clients {
			c.TickDispatch(now)
			mirrors[i].Step(c.Time(now))
			c.TickFlush(now)
		}
	}
	for i := 0; i < 600 || mirrors[3].Len() < len(movers); i++ { // rings grow to their size
		if i > 20_000 {
			t.Fatalf("the last client has %d actors", mirrors[3].Len())
		}
		tick()
	}
	before := world.Counters.Updates
	if n := testing.AllocsPerRun(300, tick); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
	for _, mirror := range mirrors {
		for a := range mirror.All {
			if m := a.(*mover); m.turns < 300 {
				t.Errorf("a client's actor was told of %d turns", m.turns)
			}
		}
	}
	if n := world.Counters.Updates - before; n < 300*4*50*9/10 {
		t.Errorf("only %d updates in 300 ticks", n)
	}
}
