package proxy_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// A client's socket behind a network that loses everything it sends.
func ExampleImpair() {
	mine, server := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
	bad, err := proxy.Impair(mine, netsim.Settings{Loss: 100}, netsim.Settings{}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bad.Close()
	if _, err := bad.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: server.LocalAddr()}}); err != nil {
		fmt.Println(err)
	}
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n, _ := server.TryReadBatch(in)
	up, _ := bad.Counters()
	fmt.Println(n, up.Lost)
	// Output: 0 1
}

// A bad network between programs: clients dial the proxy.
func ExampleProxy() {
	server, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	p, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: server.LocalAddr().String()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	client, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: p.LocalAddr()}})
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	for n := 0; err == nil && n == 0; {
		if err = p.Step(time.Now()); err == nil {
			n, err = server.TryReadBatch(in)
		}
	}
	fmt.Printf("%s %v\n", in[0].Data(), err)
	// Output: hello <nil>
}
