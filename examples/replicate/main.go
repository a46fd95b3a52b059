// Replicate is the smallest honest program that replicates: a server with one lamp, and a client that sees
// it, over real UDP, encrypted, in one process.
//
//	go run ./examples/replicate
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Lamp is the same type at both ends.
type Lamp struct {
	actorrep.Base
	Brightness actorrep.Var[uint8] `net:"max=100,notify=OnBrightness"`

	flips int // has no tag, so isn't replicated: how often the server ran Flip
}

// OnBrightness is called on the client when the value has changed, with the old one.
func (l *Lamp) OnBrightness(old uint8) { fmt.Printf("client: %d -> %d\n", old, l.Brightness.Get()) }

// Flip is called by the lamp's owner and runs at the server.
var Flip = actorrep.ServerRPC0(func(_ actorrep.Call, l *Lamp) error {
	l.flips++
	l.Brightness.Set(100 - l.Brightness.Get())
	return nil
}, actorrep.Reliable)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "it has no flags and takes no arguments")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run() error {
	lamp := &Lamp{}
	server, client := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	for _, w := range []*actorrep.World{server, client} {
		if err := w.Register("Lamp", (*Lamp)(nil), actorrep.RPCs{"Flip": Flip}); err != nil {
			return err
		}
	}
	if err := server.Spawn(lamp); err != nil {
		return err
	}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: server.ChannelTypes(),
		Joined: func(c *driver.Conn) { lamp.SetOwner(server.AddConn(c)) }})
	if err != nil {
		return err
	}
	defer srv.Close()
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: client.ChannelTypes()})
	if err != nil {
		return err
	}
	defer cl.Close()

	const most = 3 // flips
	flips := 0
	for tick := range 3600 { // a game's loop, a minute at most
		now := time.Now()
		srv.TickDispatch(now)
		server.Step(srv.Time(now))
		srv.TickFlush(now)

		cl.TickDispatch(now)
		client.Step(cl.Time(now))
		mirror, ok := client.Find(lamp.GUID()).(*Lamp)
		if ok && mirror.IsOwned() && tick%10 == 0 && flips < most {
			flips++
			if err := Flip.Call(mirror); err != nil {
				return err
			}
		}
		cl.TickFlush(now)
		if err := cl.Err(); err != nil {
			return err // why it has no connection
		}
		if ok && lamp.flips == most && mirror.Brightness.Get() == lamp.Brightness.Get() {
			_, err := fmt.Printf("PASS: the client flipped it %d times and sees %d\n", flips, mirror.Brightness.Get())
			return err
		}
		time.Sleep(time.Second / 60)
	}
	return fmt.Errorf("the client sees %d lamps, and the server ran %d of %d flips", client.Len(), lamp.flips, flips)
}
