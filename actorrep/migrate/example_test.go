package migrate_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

type castle struct {
	actorrep.Base
	Gold uint32 `net:""`
}

func castles(server bool) *actorrep.World {
	w := actorrep.NewClient(actorrep.Config{})
	if server {
		w = actorrep.NewServer(actorrep.Config{})
	}
	if err := w.Register("castle", (*castle)(nil)); err != nil {
		panic(err)
	}
	return w
}

// What a host and a player do; examples/tanks has all of it.
func Example() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	here, there := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:9000"))
	key := netcode.Key{1}

	world := castles(true)
	host, err := migrate.NewHost(world, migrate.HostConfig{Clock: clock})
	if err != nil {
		panic(err)
	}
	srv, err := driver.Listen("", driver.Config{Socket: here, Clock: clock, Link: driver.Netcode{Key: key}, Channels: append(world.ChannelTypes(), host.Channel()),
		Joined: func(c *driver.Conn) { world.AddConn(c) }})
	if err != nil {
		panic(err)
	}
	_ = world.Spawn(&castle{Gold: 7})

	mirror := castles(false)
	follower, err := migrate.NewFollower(migrate.FollowerConfig{Port: 7777,
		Dial: func(migrate.Destination) (*driver.Driver, error) { return nil, nil }, // a world and a driver as below, with the Link that it is given
		Host: func(s migrate.Succession) (*migrate.Host, error) { // the game goes on here
			world := castles(true)
			_, err := migrate.Restore(world, s.Checkpoint, nil)
			if err == nil {
				fmt.Println(world.Len(), "castle is mine")
			}
			return nil, err
		}})
	if err != nil {
		panic(err)
	}
	d, err := driver.Dial("10.0.0.1:7777", driver.Config{Socket: there, Clock: clock, Link: driver.Netcode{Key: key}, Channels: append(mirror.ChannelTypes(), follower.Channel())})
	if err != nil {
		panic(err)
	}
	follower.Follow(d)
	for i := range 400 {
		now = now.Add(time.Second / 60)
		follower.TickDispatch(now)
		mirror.Step(d.Time(now))
		follower.TickFlush(now)
		if i > 180 {
			continue // the host has crashed
		}
		srv.TickDispatch(now)
		world.Step(srv.Time(now))
		host.Step(srv.Time(now))
		srv.TickFlush(now)
	}
	// Output: 1 castle is mine
}
