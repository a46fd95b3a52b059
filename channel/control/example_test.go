package control_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/control"
)

// The login, with each end's messages handed to the other.
func Example() {
	var server *control.Server
	var client *control.Client
	var up, down [][]byte
	to := func(queue *[][]byte) control.Sender {
		return func(m control.Message) error {
			b, err := control.Encode(m, false)
			*queue = append(*queue, b)
			return err
		}
	}
	server = control.NewServer(control.ServerConfig{Map: "/Game/Arena", Authorize: func(l *control.Login) error {
		fmt.Println("server: may", l.URL, "in?")
		return nil
	}}, to(&down))
	client = control.NewClient(control.ClientConfig{URL: "Ann", Entered: func(w *control.Welcome) { fmt.Println("client: welcome to", w.Map) }}, to(&up))
	err := client.Start()
	for err == nil && len(up)+len(down) > 0 {
		if len(up) > 0 {
			err = server.Receive(bitio.NewReader(up[0], 8*len(up[0])))
			up = up[1:]
			continue
		}
		err = client.Receive(bitio.NewReader(down[0], 8*len(down[0])))
		down = down[1:]
	}
	fmt.Println(server.Joined(), client.Joined(), err)
	// Output:
	// server: may Ann in?
	// client: welcome to /Game/Arena
	// true true <nil>
}
