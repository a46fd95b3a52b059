package flight_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

type tram struct {
	actorrep.Base
	X float64 `net:"q=0.01"`
}

// A server is recorded for 5 s, and what was kept becomes a page.
func Example() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	socket, _ := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:9000"))
	world := actorrep.NewServer(actorrep.Config{})
	if err := world.Register("tram", (*tram)(nil)); err != nil {
		panic(err)
	}
	srv, err := driver.Listen("", driver.Config{Socket: socket, Clock: clock, Link: driver.Netcode{Key: netcode.Key{1}}, Channels: world.ChannelTypes(),
		Joined: func(c *driver.Conn) { world.AddConn(c) }})
	if err != nil {
		panic(err)
	}
	past, err := flight.New(world, srv, flight.Config{Keep: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	t := &tram{}
	if err := world.Spawn(t); err != nil {
		panic(err)
	}
	for range 300 {
		now = now.Add(time.Second / 60)
		t.X += 0.1
		srv.TickDispatch(now)
		world.Step(srv.Time(now))
		srv.TickFlush(now)
	}
	var page bytes.Buffer // a file
	if err := past.Take().WriteHTML(&page, flight.View{Title: "5 s of a tram"}); err != nil {
		panic(err)
	}
	fmt.Println(bytes.Contains(page.Bytes(), []byte(">5 s of a tram</h1>")), past.Close())
	// Output: true <nil>
}
