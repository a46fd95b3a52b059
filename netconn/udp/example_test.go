//go:build !wasm

package udp_test

import (
	"fmt"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Two sockets on this machine.
func ExampleListen() {
	a, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	if _, err := a.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: b.LocalAddr()}}); err != nil {
		fmt.Println(err)
		return
	}
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n, err := b.ReadBatch(in) // waits
	fmt.Printf("%d %s %v %v\n", n, in[0].Data(), in[0].Addr == a.LocalAddr(), err)
	// Output: 1 hello true <nil>
}

// Two sockets in memory, for tests.
func ExamplePair() {
	a, b := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
	_, err := a.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: b.LocalAddr()}})
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n, _ := b.TryReadBatch(in)
	fmt.Printf("%d %s %v\n", n, in[0].Data(), err)
	// Output: 1 hello <nil>
}
