package spectate_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/spectate"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

type lamp struct {
	actorrep.Base
	On bool `net:""`
}

// A server shows its game 3 s later to who isn't among its players.
func Example() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	here, there := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:9000"))

	world := actorrep.NewServer(actorrep.Config{})
	_ = world.Register("lamp", (*lamp)(nil))
	relay, err := spectate.NewRelay(world, spectate.RelayConfig{Delay: 3 * time.Second})
	if err != nil {
		panic(err)
	}
	srv, err := driver.Listen("", driver.Config{Socket: here, Clock: clock, Link: driver.PlainSalted{}, Channels: append(world.ChannelTypes(), relay.Channel())})
	if err != nil {
		panic(err)
	}
	_ = world.Spawn(&lamp{On: true})

	mirror := actorrep.NewClient(actorrep.Config{})
	_ = mirror.Register("lamp", (*lamp)(nil))
	s, err := spectate.NewSpectator(mirror, 0)
	if err != nil {
		panic(err)
	}
	d, err := driver.Dial("10.0.0.1:7777", driver.Config{Socket: there, Clock: clock, Link: driver.PlainSalted{}, Channels: append(mirror.ChannelTypes(), s.Channel()),
		Joined: func(c *driver.Conn) { _ = s.Open(c) }})
	if err != nil {
		panic(err)
	}
	for i := 0; mirror.Len() == 0; i++ {
		now = now.Add(time.Second / 60)
		srv.TickDispatch(now)
		world.Step(srv.Time(now))
		relay.Step(srv.Time(now))
		srv.TickFlush(now)
		d.TickDispatch(now)
		if err := s.Step(d.Time(now)); err != nil {
			panic(err)
		}
		d.TickFlush(now)
		if mirror.Len() > 0 {
			fmt.Println("seen after 3 s or more:", i >= 180)
		}
	}
	// Output: seen after 3 s or more: true
}
