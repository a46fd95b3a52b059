package handshake_test

import (
	"fmt"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/handshake"
)

// door is a server's side: it accepts everybody.
type door struct{ answers [][]byte }

func (d *door) Send(_ netip.AddrPort, p []byte) {
	d.answers = append(d.answers, append([]byte(nil), p...))
}

func (d *door) Accepted(from netip.AddrPort, _ handshake.Accept) bool {
	fmt.Println("server:", from, "is where it says it is")
	return true
}

func (d *door) Restarted(netip.AddrPort, handshake.Cookie, float64) bool { return false }

func Example() {
	here := netip.MustParseAddrPort("10.0.0.2:4000")
	d := &door{}
	server, err := handshake.NewServer(handshake.ServerConfig{Protocol: handshake.Unreal51(), Handler: d})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := handshake.NewClient(handshake.ClientConfig{Protocol: handshake.Unreal51(), ClientID: 1,
		Send: func(p []byte) { server.Receive(0, here, p, nil) }})
	if err != nil {
		fmt.Println(err)
		return
	}
	client.Start(0)
	for len(d.answers) > 0 {
		p := d.answers[0]
		d.answers = d.answers[1:]
		client.Receive(0, p)
	}
	fmt.Println("client:", client.State())
	// Output:
	// server: 10.0.0.2:4000 is where it says it is
	// client: done
}
