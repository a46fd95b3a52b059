//go:build js

package main

import (
	"fmt"
	"net/netip"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// mover is an actor that moves in each tick.
type mover struct {
	actorrep.Base
	Pos game.Vec `net:"q=0.02" interp:"teleport=20"`
	vel game.Vec
}

const (
	movers       = 200
	measureTicks = 900
)

// measure has a client in this page tick with 200 moving actors in view, whose server is in this page too, and says what its ticks cost: reading
// packets, applying what came, interpolating and drawing from that, and acks.
func measure() {
	report := "FAIL: "
	ticks, err := measureMovers()
	if err == nil {
		report = fmt.Sprintf("%.2f %.2f", ticks.at(0.5).Seconds()*1000, ticks.at(0.99).Seconds()*1000)
	} else {
		report += err.Error()
	}
	js.Global().Set("measured", report)
	select {} // the page stays
}

func measureMovers() (*times, error) {
	key := netcode.Key{1}
	here, there := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	at, to := udp.Pair(here, there)
	register := func(w *actorrep.World) (*interp.Interpolator, *interp.Class[*mover], error) {
		if err := w.Register("Mover", (*mover)(nil), actorrep.AlwaysRelevant()); err != nil {
			return nil, nil, err
		}
		past, err := interp.New(w, interp.Config{})
		if err != nil {
			return nil, nil, err
		}
		drawn, err := interp.Register(past, interp.ClassConfig[*mover]{})
		return past, drawn, err
	}
	server, client := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	serverPast, _, err := register(server)
	if err != nil {
		return nil, err
	}
	clientPast, drawn, err := register(client)
	if err != nil {
		return nil, err
	}
	var all []*mover
	for i := range movers {
		m := &mover{Pos: game.Vec{X: float64(i), Y: float64(i % 17)}, vel: game.Vec{X: float64(i%7) - 3, Y: float64(i%5) - 2}}
		all = append(all, m)
		if err := server.Spawn(m); err != nil {
			return nil, err
		}
	}
	srv, err := driver.Listen("", driver.Config{Socket: at, Link: driver.Netcode{Key: key}, Channels: server.ChannelTypes(), Joined: func(c *driver.Conn) { server.AddConn(c) }})
	if err != nil {
		return nil, err
	}
	cl, err := driver.Dial(here.String(), driver.Config{Socket: to, Link: driver.Netcode{Key: key}, Channels: client.ChannelTypes()})
	if err != nil {
		return nil, err
	}
	ticks := &times{}
	var shown mover
	for end := time.Now().Add(time.Minute); ticks.n < measureTicks; time.Sleep(tickTime) {
		now := time.Now()
		if now.After(end) {
			return nil, fmt.Errorf("%d actors are here after a minute", client.Len())
		}
		for _, m := range all {
			m.Pos = m.Pos.Plus(m.vel.Times(tickTime.Seconds()))
		}
		srv.TickDispatch(now)
		server.Step(srv.Time(now))
		serverPast.Tick(srv.Time(now))
		srv.TickFlush(now)

		began := time.Now()
		cl.TickDispatch(now)
		client.Step(cl.Time(now))
		clientPast.Tick(cl.Time(now))
		seen := 0
		for a := range client.All {
			if m, ok := a.(*mover); ok {
				drawn.At(m, &shown)
				seen++
			}
		}
		cl.TickFlush(now)
		if took := time.Since(began); seen == movers {
			ticks.add(took)
		}
	}
	return ticks, nil
}
