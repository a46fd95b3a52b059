package salted_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/salted"
)

// game is both ends; what it sends waits in a queue.
type game struct{ toServer, toClient [][]byte }

type host struct{ *game }

func (h host) Send(_ netip.AddrPort, p []byte) {
	h.toClient = append(h.toClient, append([]byte(nil), p...))
}
func (h host) Connected(slot int, _ salted.ClientInfo)     { fmt.Println("server: slot", slot, "taken") }
func (h host) Payload(slot int, p []byte)                  { fmt.Printf("server: slot %d says %s\n", slot, p) }
func (h host) Disconnected(slot int, reason salted.Reason) { fmt.Println("server: slot", slot, reason) }

type guest struct{ *game }

func (g guest) Send(_ netip.AddrPort, p []byte) {
	g.toServer = append(g.toServer, append([]byte(nil), p...))
}
func (g guest) StateChanged(_, to salted.State) { fmt.Println("client:", to) }
func (g guest) Payload([]byte)                  {}

func Example() {
	g := &game{}
	server, err := salted.NewServer(salted.ServerConfig{ProtocolID: 1, Handler: host{g}})
	if err != nil {
		panic(err)
	}
	client, err := salted.NewClient(salted.ClientConfig{ProtocolID: 1, Handler: guest{g}})
	if err != nil {
		panic(err)
	}
	here, there := netip.MustParseAddrPort("127.0.0.1:5000"), netip.MustParseAddrPort("127.0.0.1:4000")
	deliver := func(now time.Duration) {
		for len(g.toServer)+len(g.toClient) > 0 {
			up, down := g.toServer, g.toClient
			g.toServer, g.toClient = nil, nil
			for _, p := range up {
				server.Receive(now, here, p)
			}
			for _, p := range down {
				client.Receive(now, there, p)
			}
		}
	}
	if err := client.Connect(0, there); err != nil {
		panic(err)
	}
	deliver(0)
	if err := client.SendPayload(0, append(make([]byte, salted.Headroom), "hello"...)); err != nil {
		panic(err)
	}
	deliver(0)
	client.Disconnect(0)
	deliver(0)
	// Output:
	// client: sending request
	// client: sending response
	// server: slot 0 taken
	// client: connected
	// server: slot 0 says hello
	// client: disconnected
	// server: slot 0 closed by the other end
}
