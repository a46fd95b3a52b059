package udptest_test

import (
	"fmt"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// A test writes each datagram that the owner of the socket reads, and looks at each that it sends.
func ExampleNewWire() {
	w := udptest.NewWire(netip.MustParseAddrPort("192.0.2.1:7777"))
	client := netip.MustParseAddrPort("198.51.100.1:4242")
	w.In = append(w.In, udp.Message{Buf: []byte("ping"), Addr: client})

	// What a server does in its tick:
	msgs := []udp.Message{{Buf: make([]byte, 1500)}}
	n, err := w.TryReadBatch(msgs)
	fmt.Println(n, err, string(msgs[0].Buf[:msgs[0].N]), msgs[0].Addr)
	if _, err := w.WriteBatch([]udp.Message{{Buf: []byte("pong"), Addr: msgs[0].Addr}}); err != nil {
		fmt.Println(err)
	}

	for _, m := range w.Out {
		fmt.Println(string(m.Buf), m.Addr)
	}
	// Output:
	// 1 <nil> ping 198.51.100.1:4242
	// pong 198.51.100.1:4242
}
