package netcode_test

import (
	"fmt"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

type packet struct {
	to netip.AddrPort
	p  []byte
}

// wire is both ends' packets under way.
type wire struct{ packets []packet }

func (w *wire) Send(to netip.AddrPort, p []byte) {
	w.packets = append(w.packets, packet{to, append([]byte(nil), p...)})
}

type game struct{ *wire }

func (game) Connected(_ int, info netcode.ClientInfo) {
	fmt.Println("server: player", info.ID, "is here")
}
func (game) Payload(_ int, p []byte)                   { fmt.Printf("server: %s\n", p) }
func (game) Disconnected(_ int, reason netcode.Reason) { fmt.Println("server: gone,", reason) }

type player struct{ *wire }

func (player) StateChanged(_, to netcode.State) {
	if to == netcode.Connected {
		fmt.Println("client: connected")
	}
}
func (player) Payload([]byte) {}

// A back end makes a token, the client connects with it.
func Example() {
	serverAddr, clientAddr := netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("10.0.0.2:1000")
	key, w := netcode.Key{1, 2, 3}, &wire{}
	server, err := netcode.NewServer(netcode.ServerConfig{ProtocolID: 7, PrivateKey: key, Addrs: []netip.AddrPort{serverAddr}, Handler: game{w}, UnixAtZero: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 7, ClientID: 99, Create: 1000, Expire: 1030, Timeout: 5,
		Servers: []netip.AddrPort{serverAddr}, PrivateKey: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := netcode.NewClient(netcode.ClientConfig{ProtocolID: 7, Handler: player{w}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Connect(0, token); err != nil {
		fmt.Println(err)
		return
	}
	client.Tick(0)
	deliver := func() {
		for len(w.packets) > 0 {
			next := w.packets[0]
			w.packets = w.packets[1:]
			if next.to == serverAddr {
				server.Receive(0, clientAddr, next.p)
			} else {
				client.Receive(0, serverAddr, next.p)
			}
			client.Tick(0)
			server.Tick(0)
		}
	}
	deliver()
	b := append(make([]byte, netcode.Headroom, 1300), "hello"...) // with room for what seals it
	if err := client.SendPayload(0, b); err != nil {
		fmt.Println(err)
	}
	deliver()
	// Output:
	// server: player 99 is here
	// client: connected
	// server: hello
}
