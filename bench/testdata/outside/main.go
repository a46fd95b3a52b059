// A game of two files in a module of its own, as a user of bunchnet has it.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

func play() error {
	world := actorrep.NewServer(actorrep.Config{})
	if err := register(world); err != nil {
		return err
	}
	lamp := &Lamp{Watts: 5}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) {
		lamp.SetOwner(world.AddConn(c))
		if err := world.Spawn(lamp); err != nil {
			c.CloseWithReason(err.Error())
		}
	}})
	if err != nil {
		return err
	}
	defer srv.Close()

	var mine *Lamp
	mirror := actorrep.NewClient(actorrep.Config{Spawned: func(a actorrep.Actor) { mine = a.(*Lamp) }})
	if err := register(mirror); err != nil {
		return err
	}
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: mirror.ChannelTypes()})
	if err != nil {
		return err
	}
	defer cl.Close()

	pressed := false
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		now := time.Now()
		srv.TickDispatch(now)
		world.Step(srv.Time(now))
		srv.TickFlush(now)
		cl.TickDispatch(now)
		mirror.Step(cl.Time(now))
		if mine != nil && !pressed {
			if err := Press.Call(mine, 40); err != nil {
				return err
			}
			pressed = true
		}
		cl.TickFlush(now)
		if mine != nil && mine.On && mine.Watts == 40 && mine.seen == 1 && lamp.presses == 1 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("the lamp here is %+v, at the server %+v", mine, lamp)
}

func main() {
	err := play()
	if err == nil {
		_, err = fmt.Println("PASS: the lamp is on at both ends")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
